"""Gathering: what a report says, as plain data.

In: a fitted detector, a table, what the caller knows about it. Out: a dictionary of texts, numbers and lists, which the
page shows. The whole table is scored; reasons are found for the rows that are shown and for those that are drawn.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import __version__
from .._arrays import Bools, Float64s, Floats, Indices
from .._detector import Detector, require_fitted
from .._drift.verdict import Check
from .._explain.explanation import Explanation, explain_rows
from .._explain.words import Value, values_of
from .._kernels.scoring import score_rows
from .._model.model import Model
from .._model.scores import BranchScores, anomaly_score
from .._table.encoding import Encoding
from .._table.schema import Schema
from .._table.table import Table
from .._threshold import fraction_above
from ..exceptions import ParameterError
from ._charts import draw_rows, map_chart, scatter_chart, score_chart
from ._columns import MAX_DISTRIBUTIONS, bar_of, column_list, distributions, position
from ._drift import drift_section
from ._relations import relation_list
from ._summary import Counts, facts, reproduction, summary
from ._text import LONGEST_REASON, visible

MAX_TOP_ROWS = 200
"""Rows in the table of the page, at most ..."""
MIN_TOP_ROWS = 50
"""... and at least, even if fewer rows are above the threshold. (A shorter table is shown whole.)"""
MAX_SHOWN_COLUMNS = 10
"""Columns whose contribution and value a row is shown with."""
SCORE_DECIMALS = 6


class ScoredTable(NamedTuple):
    """The table of a report, with the scores of its n rows."""

    table: Table
    matrix: Floats
    """The rows, encoded."""
    branches: BranchScores
    scores: Float64s
    threshold: float
    is_flagged: Bools
    """Which rows score above the threshold, shape (n,)."""
    p_values: Float64s | None


class TopRows(NamedTuple):
    """The rows of the page's table, the highest score first, m of them."""

    indices: Indices
    """Their indices in the table, shape (m,)."""
    names: list[str]
    p_values: Float64s | None
    is_flagged: Bools
    values: list[list[Value]]
    """Shape (m, d)."""


def report_data(
    detector: Detector,
    table: ArrayLike | Table,
    *,
    source: str = "table.csv",
    ids: Sequence[str] | None = None,
    id_name: str | None = None,
    p_values: ArrayLike | None = None,
    command: str = "",
    check: Check | None = None,
) -> dict[str, Any]:
    """Return what the report of `write_report`, which has the same parameters, shows; ready for JSON."""
    require_fitted(detector)
    model: Model = detector.model_
    encoding = model.encoding
    scored = _score(detector, table, ids, p_values)
    top = _top_rows(model, scored, ids)
    drawn = draw_rows(top.indices, scored.is_flagged)
    found = _explained(detector, scored, drawn.rows)
    shares = found.shares()[: max(1, int(top.is_flagged.sum()))].mean(axis=0)
    shown, columns = _shown_rows(model, found, top)
    row_name = visible(id_name or "row")
    n, n_flagged = len(scored.scores), int(scored.is_flagged.sum())
    by_definition = fraction_above(detector.contamination, model.local_weight, model.n_branches)
    relation_score = scored.branches.relation_score
    n_breaking = 0 if relation_score is None else int(np.count_nonzero(relation_score))
    counts = Counts(n, n_flagged, scored.threshold, by_definition, n_breaking)
    return {
        "source": visible(source),
        "drift": None if check is None else drift_section(check),
        "version": __version__,
        "summary": summary(source, row_name, counts, shown, encoding, shares, scored.p_values),
        "facts": facts(counts, encoding, scored.p_values),
        "row_name": row_name,
        "counted": ids is None,
        "has_p_values": scored.p_values is not None,
        "n_rows": n,
        "n_flagged": n_flagged,
        "scores": score_chart(model, scored.scores, scored.threshold),
        "scatter": scatter_chart(found, drawn),
        "map": map_chart(model, scored.matrix, drawn),
        "drawn": drawn.note,
        "rows": shown,
        **relation_list(model, scored.table, relation_score, top.indices),
        "groups": _groups(found, top),
        "n_columns": len(encoding.columns),
        "names": {j: visible(encoding.columns[j].name) for j in _named(shown)},
        "distributions": columns,
        "columns": column_list(encoding, shares),
        "reproduce": reproduction(detector, command),
    }


def _score(
    detector: Detector, table: ArrayLike | Table, ids: Sequence[str] | None, p_values: ArrayLike | None
) -> ScoredTable:
    """Return the table with its scores. Raise if ids or p-values do not fit its rows."""
    model: Model = detector.model_
    read = table
    if not isinstance(read, Table):
        read = Schema.of_fitted(detector).read(table, shown=model.encoding.dropped)
    matrix = read.encode(model.encoding)
    _check_length("ids", ids, len(matrix))
    p = None if p_values is None else np.asarray(p_values, dtype=np.float64)
    _check_length("p_values", p, len(matrix))
    if p is not None and not np.all((p >= 0.0) & (p <= 1.0)):
        raise ParameterError("p_values must be numbers from 0 to 1, one for each row.")
    branches = score_rows(model, read, matrix, detector.n_jobs)
    scores = anomaly_score(branches, model)
    threshold = -float(detector.offset_)
    return ScoredTable(read, matrix, branches, scores, threshold, scores > threshold, p)


def _top_rows(model: Model, scored: ScoredTable, ids: Sequence[str] | None) -> TopRows:
    """Return the rows above the threshold, but not too few and not too many of them."""
    n_top = min(MAX_TOP_ROWS, max(MIN_TOP_ROWS, int(scored.is_flagged.sum())))
    top = np.argsort(-scored.scores, kind="stable")[:n_top]
    return TopRows(
        top,
        [f"{i}" if ids is None else visible(str(ids[i])) for i in top.tolist()],
        None if scored.p_values is None else scored.p_values[top],
        scored.is_flagged[top],
        values_of(model.encoding, scored.table, top),
    )


def _check_length(name: str, given: Sequence[Any] | Float64s | None, n: int) -> None:
    if given is not None and len(given) != n:
        raise ParameterError(f"{name} must have one entry for each of the {n:,} rows, got {len(given):,} instead.")


def _explained(detector: Detector, scored: ScoredTable, rows: Indices) -> Explanation:
    """Return what `RGLD.explain` says of some rows, without reading and scoring them again."""
    scores = BranchScores(*(None if branch is None else branch[rows] for branch in scored.branches))
    matrix = np.ascontiguousarray(scored.matrix[rows])
    return explain_rows(detector.model_, scored.table.take(rows), matrix, scores, detector.n_jobs)


def _shown_rows(
    model: Model, found: Explanation, top: TopRows
) -> tuple[list[dict[str, Any]], dict[int, dict[str, Any]]]:
    """Return the rows of the table, and the distributions of the columns they are shown with."""
    encoding = model.encoding
    shares = found.shares()[: len(top.indices)]
    order = np.argsort(-shares, axis=1, kind="stable")[:, :MAX_SHOWN_COLUMNS]
    order_of_columns = np.argsort(-np.take_along_axis(shares, order, 1).ravel(), kind="stable")
    wanted = list(dict.fromkeys(order.ravel()[order_of_columns].tolist()))[:MAX_DISTRIBUTIONS]
    used = [j for j in wanted if encoding.columns[j].kind != "dropped"]
    drawn = distributions(model, used, top.values)
    shown = []
    for i in range(len(top.indices)):
        row = {
            "rank": i + 1,
            "id": top.names[i],
            "score": round(float(found.anomaly_score[i]), SCORE_DECIMALS),
            "flagged": bool(top.is_flagged[i]),
            "kind": found.kind(i),
            "reasons": [visible(reason, LONGEST_REASON) for reason in found.reasons(i) or [found.kind(i)]],
            "columns": [
                _cell(encoding, j, float(shares[i, j]), top.values[i][j], drawn.get(j))
                for j in order[i].tolist()
                if encoding.columns[j].kind != "dropped"
            ],
        }
        if top.p_values is not None:
            row["p"] = float(f"{top.p_values[i]:.4g}")
        shown.append(row)
    return shown, drawn


def _groups(found: Explanation, top: TopRows) -> list[dict[str, Any]]:
    """Return the rows above the threshold (all that are shown, if there are none) as findings: rows that share their
    reasons, by their places in the page's table. Rows that break a relation come first: they are mostly errors."""
    n_flagged = int(top.is_flagged.sum())
    groups = found.groups(range(n_flagged or len(top.indices)))
    return [
        {"rows": list(group.rows), "reasons": [visible(reason, LONGEST_REASON) for reason in group.reasons]}
        for group in sorted(groups, key=lambda group: not found.broken_relations(group.rows[0]))
    ]


def _cell(
    encoding: Encoding, j: int, share: float, value: Value, distribution: dict[str, Any] | None
) -> dict[str, Any]:
    """Return a column's part in a row: its share, its value and the place of the value in the distribution."""
    cell: dict[str, Any] = {"column": j, "share": round(share, 4), "text": visible(value.text)}
    if distribution is None:
        return cell
    column = encoding.columns[j]
    if (at := position(value, distribution)) is not None:
        cell["at"] = at
    if (bar := bar_of(column, value, encoding.n_rows)) is not None:
        cell["bar"] = bar
    return cell


def _named(shown: list[dict[str, Any]]) -> list[int]:
    return sorted({cell["column"] for row in shown for cell in row["columns"]})
