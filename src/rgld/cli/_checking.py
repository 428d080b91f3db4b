"""Checking: the rows that a command has scored, beside the training table.

In: scored rows. Out: a `Check`, or the one line of warning that `rgld score --model` prints. This module prints
nothing.
"""

from typing import TYPE_CHECKING

from ._scoring import Scored, as_fitted

if TYPE_CHECKING:
    from rgld._drift.sequence import Watch
    from rgld._drift.verdict import Check
    from rgld._table.table import Table

WARNING_ALPHA = 0.01
"""Probability that `rgld score --model` warns of a table that is like the training table."""
MAX_WARNED = 2
"""Reasons in the warning."""


def _sampled(scored: Scored) -> "Table":
    from rgld._table.schema import Schema

    assert scored.sample is not None, "the rows were scored by a model file"
    detector = scored.detector
    dropped = detector.model_.encoding.dropped
    return Schema.of_fitted(detector).read(as_fitted(detector, scored.sample), unused=dropped)


def check_scored(scored: Scored, alpha: float, watch: "Watch | None" = None) -> "Check":
    """Return the check of scored rows."""
    from rgld._drift.verdict import check_table
    from rgld._explain.relations import relation_checks

    model = scored.detector.model_
    table = _sampled(scored)
    relations = relation_checks(model, table)
    return check_table(model.encoding, model.profiles, model.calibration, table, scored.scores, alpha, watch, relations)


def warning(scored: Scored) -> str:
    """Return one line about what has changed, by the cheap part of the check (the columns); "" if nothing has."""
    from rgld._drift.columns import check_columns

    model = scored.detector.model_
    columns, _ = check_columns(model.encoding, model.profiles, _sampled(scored))
    changed = sorted(
        (column for column in columns if column.p_value <= WARNING_ALPHA), key=lambda column: column.p_value
    )
    if not changed:
        return ""
    said = [text for column in changed for text in column.said(WARNING_ALPHA)]
    more = f"; and {len(said) - MAX_WARNED} more" if len(said) > MAX_WARNED else ""
    return f"not like the training table: {'; '.join(said[:MAX_WARNED])}{more} (`rgld check` tells more)"
