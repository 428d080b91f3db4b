"""Columns on the page: how each was read, how its values are distributed, and where the value of a row is among them.

In: the encoding, the kept rows of the model, the cells of the rows shown. Out: plain data. Distributions are of the
training rows, as in the reasons: of all of them for categories, of the kept rows for other columns.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._arrays import Float64s
from .._explain.kept_columns import USUAL_QUANTILES, kept_columns
from .._explain.words import Value
from .._model.model import Model
from .._table.encoding import Column, Encoding
from .._table.shown import fine_percent, shown
from ._axes import bin_edges, duration_ticks, linear_ticks, log_ticks, time_ticks
from ._text import LONGEST_LABEL, count_of, visible

N_BINS = 48
MAX_WHOLE_NUMBERS = 60
"""Whole numbers have a bin each if their range is at most this."""
MAX_WITH_HALVES = 2.0**51
"""Floating point has no halves between larger whole numbers, so there is no place for the edges of such bins."""
MAX_VALUE_BARS = 8
"""Values of a category with a bar of their own."""
MAX_DISTRIBUTIONS = 300
"""Columns whose distribution is on the page, the most important ones: the page should stay small."""
MAX_LISTED = 500
"""Columns listed under "how the columns were read"."""
MIDDLE = (0.005, 0.995)
"""The *middle* of a column lies between these quantiles of the kept rows. Its axis always shows the whole middle."""
MAX_EXTENSION_IN_MIDDLES = 1.0
"""To show the values of rows outside the middle, an axis extends by at most this many widths of the middle. Values
farther out are drawn at its end."""
SKEWED_IN_MEDIANS = 20.0
"""The axis of a positive column is logarithmic if its middle reaches beyond this many times the median."""
LARGEST = 1e300
"""Larger values are drawn at this one, so that the width of an axis is finite."""

KIND_NAMES = {
    "number": "number",
    "boolean": "yes or no",
    "time": "date or time",
    "duration": "duration",
    "category": "category",
    "dropped": "not used",
}


def column_list(encoding: Encoding, shares: Float64s) -> list[dict[str, Any]]:
    """Return how each column was read, in the table's order; `shares` are the columns' fractions of the evidence."""
    return [
        {
            "name": visible(column.name),
            "kind": KIND_NAMES[column.kind],
            "used": column.kind != "dropped",
            "how": _how(column),
            "share": round(float(share), 4),
        }
        for column, share in zip(encoding.columns[:MAX_LISTED], shares, strict=False)
    ]


def _how(column: Column) -> str:
    """Return how a column was turned into numbers, in words."""
    said = [column.note] if column.note else []
    if column.kind == "category":
        n = len(column.values)
        more = "more than " if column.rest else ""
        said.append(f"{more}{count_of(n, 'value')}, {'each with' if column.one_hot else 'by'} how rare it is")
    if column.time_format:
        said.append(f"read as {column.time_format}")
    if column.cycles:
        said.append(f"with the time of the {' and '.join(column.cycles)}")
    if column.has_gaps:
        said.append("missing values filled with the median and marked")
    if column.hint:
        said.append(f"hint: {column.hint}")
    return visible("; ".join(said), 200)


def distributions(model: Model, columns: Iterable[int], cells: list[list[Value]]) -> dict[int, dict[str, Any]]:
    """Return the distribution of each of these columns; `cells` are of the rows shown, shape (rows, d)."""
    return {j: _distribution(model, j, [row[j] for row in cells]) for j in columns}


def _distribution(model: Model, j: int, cells: list[Value]) -> dict[str, Any]:
    encoding = model.encoding
    column = encoding.columns[j]
    if column.kind == "category":
        return _category_bars(column, encoding.n_rows)
    kept = kept_columns(model)
    values = kept[j].present
    note = f"a sample of {count_of(kept.n_rows, 'training row')}"
    if column.has_gaps:
        note += f", {fine_percent(1.0 - len(values) / kept.n_rows)} without a value"
    if column.kind == "boolean":
        yes = float((values == 1.0).mean()) if len(values) else 0.0
        return {"type": "bars", "bars": [["true", yes], ["false", 1.0 - yes]], "note": note}
    if not len(values):
        return {"type": "none", "note": note}
    shown_values = np.array([cell.number for cell in cells])
    return {"type": "histogram", "note": note, **_histogram(column.kind, values, shown_values, column.name)}


def _category_bars(column: Column, n_rows: int) -> dict[str, Any]:
    bars = [
        [visible(value, LONGEST_LABEL) if value else "(missing)", count / n_rows]
        for value, count in zip(column.values[:MAX_VALUE_BARS], column.counts, strict=False)
    ]
    others = len(column.values) - MAX_VALUE_BARS
    note = f"all {count_of(n_rows, 'training row')}"
    if others > 0:
        more = "at least " if column.rest else ""
        rest = 1.0 - sum(column.counts[:MAX_VALUE_BARS]) / n_rows
        note += f"; {more}{count_of(others, 'other value')} in {fine_percent(rest)} of them"
    return {"type": "bars", "bars": bars, "note": note}


def _histogram(kind: str, values: Float64s, rows: Float64s, name: str = "") -> dict[str, Any]:
    """Return a histogram. Its axis shows the middle, and the values of the rows that are shown if they are not too far
    outside."""
    values, rows = values.clip(-LARGEST, LARGEST), rows.clip(-LARGEST, LARGEST)
    middle = np.quantile(values, MIDDLE)
    logarithmic = kind == "number" and values.min() > 0 and middle[1] > SKEWED_IN_MEDIANS * np.median(values)
    if logarithmic:
        values, middle = np.log10(values), np.log10(middle)
        rows = np.log10(np.where(rows > 0, rows, np.nan))
    low, high = _range(values, middle, rows[~np.isnan(rows)])
    edges = bin_edges(low, high, N_BINS)
    whole = not logarithmic and kind != "time" and np.all(values == np.round(values))
    if whole and high - low <= MAX_WHOLE_NUMBERS and max(abs(low), abs(high)) < MAX_WITH_HALVES:
        edges = np.arange(np.floor(low) - 0.5, np.ceil(high) + 1.0)
    counts = np.histogram(values, edges)[0]
    usual = np.quantile(values, USUAL_QUANTILES, method="nearest")  # as in the reasons: values that occur in the column
    low, high = float(edges[0]), float(edges[-1])
    ticks = log_ticks if logarithmic else {"time": time_ticks, "duration": duration_ticks}.get(kind, linear_ticks)
    return {
        "low": low,
        "high": high,
        "counts": counts.tolist(),
        "usual": usual.tolist(),
        "usual_text": " to ".join(shown(kind, float(u), name) for u in (10.0**usual if logarithmic else usual)),
        "ticks": ticks(low, high),
        "logarithmic": bool(logarithmic),
    }


def _range(values: Float64s, middle: Float64s, rows: Float64s) -> tuple[float, float]:
    width = max(float(middle[1] - middle[0]), 1e-12 * max(1.0, float(np.abs(middle).max())))
    low, high = float(values.min()), float(values.max())
    if len(rows):
        low, high = min(low, float(rows.min())), max(high, float(rows.max()))
    low = max(low, float(middle[0]) - MAX_EXTENSION_IN_MIDDLES * width)
    high = min(high, float(middle[1]) + MAX_EXTENSION_IN_MIDDLES * width)
    return (low, high) if high > low else (low - 0.5 * width, high + 0.5 * width)


def position(value: Value, distribution: dict[str, Any]) -> float | None:
    """Return the position of a value on its column's axis; None if it has none there."""
    if distribution["type"] != "histogram" or np.isnan(value.number):
        return None
    if not distribution["logarithmic"]:
        return value.number
    return float(np.log10(value.number)) if value.number > 0 else float(distribution["low"]) - 1.0


def bar_of(column: Column, value: Value, n_rows: int) -> tuple[int, float] | None:
    """Return the index of a value's bar; or -1, and the fraction of training rows with it; None without bars."""
    if column.kind == "boolean" and not np.isnan(value.number):
        return (0 if value.number else 1), 0.0
    if column.kind != "category":
        return None
    place = column.place(value.text)
    if place < 0:
        return -1, column.rest / n_rows
    return (place, 0.0) if place < MAX_VALUE_BARS else (-1, column.counts[place] / n_rows)
