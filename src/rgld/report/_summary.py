"""Words of the page: a summary in a few sentences, the figures at its head, how to get the report again.

In: counts, the rows shown, the detector. Out: sentences.
"""

import inspect
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Float64s
from .._detector import Detector, given_parameters
from .._table.encoding import Encoding
from .._table.shown import fine_percent
from .._threshold import select_by_fdr
from ._text import LONGEST_LABEL, count_of, isolated, visible

FDR = 0.05
"""The false-discovery rate at which rows are selected by their p-values."""
FDR_TEXT = fine_percent(FDR)
MAX_NAMED_COLUMNS = 3
"""Columns named in the summary."""
LONGEST_SETTING = 120
"""Characters shown of a setting."""


class Counts(NamedTuple):
    """How many rows there are, and how many are above the threshold."""

    n_rows: int
    n_flagged: int
    threshold: float
    by_definition: tuple[float, float]
    """About how small and how large a fraction of the training rows is above the threshold, anomalies or not."""
    n_breaking: int = 0
    """How many rows break a relation."""


def summary(
    source: str,
    row_name: str,
    counts: Counts,
    shown: list[dict[str, Any]],
    encoding: Encoding,
    shares: Float64s,
    p_values: Float64s | None,
) -> list[str]:
    """Return three paragraphs: how many rows stand out and how many break a relation, which row stands out most,
    because of which columns."""
    n, n_flagged, threshold, (low, high), n_breaking = counts
    some = f"None of {n:,} rows"
    if n_flagged:
        some = f"{n_flagged:,} of {count_of(n, 'row')} ({fine_percent(n_flagged / n)})"
    score = "score" if n_flagged > 1 else "scores"
    how_many = f"{some} of {isolated(visible(source))} {score} above the threshold of {threshold:.4g}"
    anyway = " to ".join(dict.fromkeys((fine_percent(low), fine_percent(high))))
    how_many += f". In any table that the detector learns from, about {anyway} do, even without anomalies"
    if p_values is not None:
        k = int(select_by_fdr(p_values, FDR).sum())
        how_many += f". At a false-discovery rate of {FDR_TEXT}, {f'{k:,} can' if k else 'none can'} be called "
        how_many += "anomalies" if k != 1 else "an anomaly"
    first = shown[0]
    reasons = "; ".join(first["reasons"]) or "no column in particular"
    if n_breaking:
        how_many += f". {count_of(n_breaking, 'row')} break{'s' if n_breaking == 1 else ''} a relation between columns"
    return [
        f"{how_many}.",
        f"The most unusual is {isolated(row_name)} {isolated(first['id'])}: {reasons}.",
        f"{_main_columns(encoding, shares, max(1, sum(row['flagged'] for row in shown)))}.",
    ]


def _main_columns(encoding: Encoding, shares: Float64s, n_rows: int) -> str:
    order = np.argsort(-shares, kind="stable")[:MAX_NAMED_COLUMNS]
    named = [
        f"{isolated(visible(encoding.columns[j].name, LONGEST_LABEL))} ({fine_percent(float(shares[j]))})"
        for j in order
        if shares[j] > 0
    ]
    words = " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:]))) or "no column"
    rows = f"the {n_rows:,} highest rows" if n_rows > 1 else "the highest row"
    return f"In {rows}, the evidence comes mostly from {words}"


def facts(counts: Counts, encoding: Encoding, p_values: Float64s | None) -> list[dict[str, str]]:
    """Return the figures at the head of the page: value, label and note."""
    n_used = sum(column.kind != "dropped" for column in encoding.columns)
    n_dropped = len(encoding.columns) - n_used
    found = [
        {"value": f"{counts.n_rows:,}", "label": "rows scored", "note": f"fitted on {encoding.n_rows:,}"},
        {
            "value": f"{n_used:,}",
            "label": "columns used" if n_used != 1 else "column used",
            "note": f"{n_dropped:,} not used" if n_dropped else "all there are",
        },
        {
            "value": f"{counts.n_flagged:,}",
            "label": "above the threshold",
            "note": f"score above {counts.threshold:.4g}",
        },
    ]
    if p_values is not None:
        k = int(select_by_fdr(p_values, FDR).sum())
        found.append({"value": f"{k:,}", "label": "anomalies by p-value", "note": f"false-discovery rate {FDR_TEXT}"})
    return found


def reproduction(detector: Detector, command: str) -> dict[str, Any]:
    """Return how to get the same report again: the command, and the settings that differ from the defaults."""
    defaults = inspect.signature(Detector.__init__).parameters
    settings = [
        [name, visible(repr(value), LONGEST_SETTING)]
        for name, value in given_parameters(detector).items()
        if repr(value) != repr(defaults[name].default) and name != "n_jobs"
    ]
    seeded = isinstance(detector.random_state, (int, np.integer))
    note = (
        "The same settings and the same table give the same scores, on the same machine to the bit."
        if seeded
        else "No seed was set (random_state), so another fit gives slightly different scores."
    )
    return {"command": visible(command, 2000), "settings": settings, "note": note}
