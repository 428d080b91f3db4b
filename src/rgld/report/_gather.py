"""Gathering: what a report says, as plain data.

In: a fitted detector, a table, what the caller knows about it. Out: a dictionary of texts, numbers and lists, which the
page shows. The whole table is scored; reasons are found for the rows shown and for the sample that is drawn.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .. import __version__
from .._cells import RawColumn
from .._contributions import contributions
from .._detector import RGLD, BranchScores
from .._encoding import Encoding
from .._explain import Explanation
from .._model import Model
from .._table import Table, read_table
from .._threads import n_threads
from .._training import mean_of_branches
from .._words import Value, values_of
from ..exceptions import ModelFileError, ParameterError
from ._charts import draw_rows, map_chart, scatter_chart, score_chart
from ._columns import MOST_DISTRIBUTIONS, bar_of, column_list, distributions, position
from ._summary import Counts, facts, reproduction, summary
from ._text import LONGEST_REASON, short

TOP_ROWS = 200
"""Rows in the table of the page, at most ..."""
FEWEST_ROWS = 50
"""... and at least, if there are so many, even where fewer are above the threshold."""
SHOWN_COLUMNS = 10
"""Columns whose contribution and value a row is shown with."""
SCORE_DECIMALS = 6

Floats = NDArray[np.float64]


class Rows(NamedTuple):
    """The rows of the page's table, the highest score first, m of them."""

    numbers: NDArray[np.intp]
    """Places in the table, shape (m,)."""
    names: list[str]
    p_values: Floats | None
    is_flagged: NDArray[np.bool_]
    cells: list[list[Value]]
    """Shape (m, d)."""


def report_data(
    detector: RGLD,
    table: ArrayLike,
    *,
    source: str = "table.csv",
    ids: Sequence[str] | None = None,
    id_name: str | None = None,
    p_values: ArrayLike | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Return what the report of `write_report`, which has the same parameters, shows; ready for JSON."""
    check_is_fitted(detector)
    model: Model = detector.model_
    if not len(model.sample.rows):
        raise ModelFileError(
            "The model file was written by a release whose models cannot be explained: fit again and save."
        )
    read = read_table(detector, table, fitting=False, shown=model.encoding.dropped)
    matrix = detector._encode(read)
    n = len(matrix)
    _check_length("ids", ids, n)
    p = None if p_values is None else np.asarray(p_values, dtype=np.float64)
    _check_length("p_values", p, n)
    if p is not None and not np.all((p >= 0.0) & (p <= 1.0)):
        raise ParameterError("p_values must be numbers from 0 to 1, one for each row.")
    branches = detector._branch_scores(matrix)
    scores = mean_of_branches(*branches, model.local_weight)
    threshold = -float(detector.offset_)
    is_flagged = scores > threshold
    top = np.argsort(-scores, kind="stable")[: min(TOP_ROWS, max(FEWEST_ROWS, int(is_flagged.sum())))]
    drawn = draw_rows(top, is_flagged)
    found = _explained(detector, read, matrix, branches, drawn.rows)
    rows = Rows(
        top,
        [f"{i}" if ids is None else short(str(ids[i])) for i in top.tolist()],
        None if p is None else p[top],
        is_flagged[top],
        values_of(model.encoding, read, top),
    )
    shares = found.shares()[: max(1, int(rows.is_flagged.sum()))].mean(axis=0)
    shown, columns = _shown_rows(model, found, rows)
    row_name = short(id_name or "row")
    counts = Counts(n, int(is_flagged.sum()), threshold, is_rank=any(branch is None for branch in branches))
    return {
        "source": short(source),
        "version": __version__,
        "summary": summary(source, row_name, counts, shown, model.encoding, shares, p),
        "facts": facts(counts, model.encoding, p),
        "row_name": row_name,
        "counted": ids is None,
        "has_p_values": p is not None,
        "n_rows": n,
        "n_flagged": counts.n_flagged,
        "scores": score_chart(model, scores, threshold),
        "scatter": scatter_chart(found, drawn),
        "map": map_chart(model, matrix, drawn),
        "drawn": drawn.note,
        "rows": shown,
        "n_columns": len(model.encoding.columns),
        "names": {j: short(model.encoding.columns[j].name) for j in _named(shown)},
        "distributions": columns,
        "columns": column_list(model.encoding, shares),
        "reproduce": reproduction(detector, command),
    }


def _check_length(name: str, given: Sequence[Any] | Floats | None, n: int) -> None:
    if given is not None and len(given) != n:
        raise ParameterError(f"{name} must have one entry for each of the {n:,} rows, got {len(given):,} instead.")


def _explained(
    detector: RGLD, table: Table, matrix: NDArray[np.floating], branches: BranchScores, rows: NDArray[np.intp]
) -> Explanation:
    """Return what `RGLD.explain` says of some rows, without reading and scoring them again."""
    model: Model = detector.model_
    found = contributions(model, np.ascontiguousarray(matrix[rows]), n_threads(detector.n_jobs))
    part = BranchScores(*(None if scores is None else scores[rows] for scores in branches))
    taken: Table
    if isinstance(table, np.ndarray):
        taken = table[rows]
    else:
        taken = [RawColumn(raw.name, raw.kind, raw.values[rows], raw.texts) for raw in table]
    names = tuple(column.name for column in model.encoding.columns)
    score = mean_of_branches(*part, model.local_weight)
    return Explanation(names, found.by_column, score, *part, found.distance_ratio, model, taken)


def _shown_rows(model: Model, found: Explanation, rows: Rows) -> tuple[list[dict[str, Any]], dict[int, dict[str, Any]]]:
    """Return the rows of the table, and the distributions of the columns they are shown with."""
    encoding = model.encoding
    shares = found.shares()[: len(rows.numbers)]
    order = np.argsort(-shares, axis=1, kind="stable")[:, :SHOWN_COLUMNS]
    order_of_columns = np.argsort(-np.take_along_axis(shares, order, 1).ravel(), kind="stable")
    wanted = list(dict.fromkeys(order.ravel()[order_of_columns].tolist()))[:MOST_DISTRIBUTIONS]
    used = [j for j in wanted if encoding.columns[j].kind != "dropped"]
    drawn = distributions(model, used, rows.cells)
    shown = []
    for i in range(len(rows.numbers)):
        row = {
            "rank": i + 1,
            "id": rows.names[i],
            "score": round(float(found.anomaly_score[i]), SCORE_DECIMALS),
            "flagged": bool(rows.is_flagged[i]),
            "kind": found.kind(i),
            "reasons": [short(reason, LONGEST_REASON) for reason in found.reasons(i)],
            "columns": [
                _cell(encoding, j, float(shares[i, j]), rows.cells[i][j], drawn.get(j))
                for j in order[i].tolist()
                if encoding.columns[j].kind != "dropped"
            ],
        }
        if rows.p_values is not None:
            row["p"] = float(f"{rows.p_values[i]:.4g}")
        shown.append(row)
    return shown, drawn


def _cell(
    encoding: Encoding, j: int, share: float, value: Value, distribution: dict[str, Any] | None
) -> dict[str, Any]:
    """Return a column's part in a row: its share, its value and the place of the value in the distribution."""
    cell: dict[str, Any] = {"column": j, "share": round(share, 4), "text": short(value.text)}
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
