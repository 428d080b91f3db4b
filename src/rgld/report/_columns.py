"""Columns on the page: how each was read, how its values are distributed, where a row's value lies among them.

In: the encoding, the training sample, the cells of the rows shown. Out: plain data. Distributions are those of the
training rows, which the reasons speak of too: of all of them for categories, of the model's sample for the rest.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._encoding import Column, Encoding
from .._model import Model
from .._words import USUAL, Value, shown
from ._axes import duration_ticks, linear_ticks, log_ticks, time_ticks
from ._text import LONGEST_LABEL, count_of, percent, short

Floats = NDArray[np.float64]

N_BINS = 48
MOST_WHOLE_NUMBERS = 60
"""Whole numbers within such a range have a bin each."""
MOST_BARS = 8
MOST_DISTRIBUTIONS = 300
"""Columns whose distribution is on the page, those that matter most: a page has a size."""
MOST_LISTED = 500
"""Columns listed under "how the columns were read"."""
MIDDLE = (0.005, 0.995)
"""The part of the sample that an axis always shows."""
MOST_EXTENSION = 1.0
"""An axis reaches at most so many widths of that part further, to show the values of rows; others are drawn at its
end."""
SKEWED = 20.0
"""A positive column whose upper end is so many times its median is drawn on a logarithmic axis."""
LARGEST = 1e300
"""Values beyond are drawn here, so that the width of an axis is finite."""

KIND_WORDS = {
    "number": "number",
    "boolean": "yes or no",
    "time": "date or time",
    "duration": "duration",
    "category": "category",
    "dropped": "not used",
}


def column_list(encoding: Encoding, shares: Floats) -> list[dict[str, Any]]:
    """Return how each column was read, in the table's order; `shares` are the columns' parts in what was found."""
    return [
        {
            "name": short(column.name),
            "kind": KIND_WORDS[column.kind],
            "used": column.kind != "dropped",
            "how": _how(column),
            "share": round(float(share), 4),
        }
        for column, share in zip(encoding.columns[:MOST_LISTED], shares, strict=False)
    ]


def _how(column: Column) -> str:
    """Return what a reader should know of how a column became numbers."""
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
        said.append("gaps filled with the median and marked")
    return short("; ".join(said), 200)


def distributions(model: Model, columns: Iterable[int], cells: list[list[Value]]) -> dict[int, dict[str, Any]]:
    """Return the distribution of each of these columns; `cells` are the rows shown, shape (rows, d)."""
    return {j: _distribution(model, j, [row[j] for row in cells]) for j in columns}


def _distribution(model: Model, j: int, cells: list[Value]) -> dict[str, Any]:
    encoding = model.encoding
    column = encoding.columns[j]
    if column.kind == "category":
        return _category_bars(column, encoding.n_rows)
    start = int(encoding.starts[j])
    values = model.sample.rows[:, start]
    n_sample = len(values)
    note = f"a sample of {count_of(n_sample, 'training row')}"
    if column.has_gaps:
        gap = model.sample.rows[:, start + len(column.parts) - 1] > 0
        note += f", {percent(float(gap.mean()))} without a value"
        values = values[~gap]
    if column.kind == "boolean":
        yes = float((values == 1.0).mean()) if len(values) else 0.0
        return {"type": "bars", "bars": [["true", yes], ["false", 1.0 - yes]], "note": note}
    if not len(values):
        return {"type": "none", "note": note}
    shown_values = np.array([cell.number for cell in cells])
    return {"type": "histogram", "note": note, **_histogram(column.kind, values, shown_values, column.name)}


def _category_bars(column: Column, n_rows: int) -> dict[str, Any]:
    bars = [
        [short(value, LONGEST_LABEL) if value else "(missing)", count / n_rows]
        for value, count in zip(column.values[:MOST_BARS], column.counts, strict=False)
    ]
    others = len(column.values) - MOST_BARS
    note = f"all {count_of(n_rows, 'training row')}"
    if others > 0:
        more = "at least " if column.rest else ""
        rest = 1.0 - sum(column.counts[:MOST_BARS]) / n_rows
        note += f"; {more}{count_of(others, 'other value')} in {percent(rest)} of them"
    return {"type": "bars", "bars": bars, "note": note}


def _histogram(kind: str, values: Floats, rows: Floats, name: str = "") -> dict[str, Any]:
    """Return counts over an axis that shows the middle of the values and, where they are not too far, the rows'."""
    values, rows = values.clip(-LARGEST, LARGEST), rows.clip(-LARGEST, LARGEST)
    middle = np.quantile(values, MIDDLE)
    logarithmic = kind == "number" and values.min() > 0 and middle[1] > SKEWED * np.median(values)
    if logarithmic:
        values, middle = np.log10(values), np.log10(middle)
        rows = np.log10(np.where(rows > 0, rows, np.nan))
    low, high = _range(values, middle, rows[~np.isnan(rows)])
    edges = np.linspace(low, high, N_BINS + 1)
    whole = not logarithmic and kind != "time" and np.all(values == np.round(values))
    if whole and high - low <= MOST_WHOLE_NUMBERS:
        edges = np.arange(np.floor(low) - 0.5, np.ceil(high) + 1.0)
    counts = np.histogram(values, edges)[0]
    usual = np.quantile(values, USUAL, method="nearest")  # as in the reasons: values that the column has
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


def _range(values: Floats, middle: Floats, rows: Floats) -> tuple[float, float]:
    width = max(float(middle[1] - middle[0]), 1e-12 * max(1.0, float(np.abs(middle).max())))
    low, high = float(values.min()), float(values.max())
    if len(rows):
        low, high = min(low, float(rows.min())), max(high, float(rows.max()))
    low = max(low, float(middle[0]) - MOST_EXTENSION * width)
    high = min(high, float(middle[1]) + MOST_EXTENSION * width)
    return (low, high) if high > low else (low - 0.5 * width, high + 0.5 * width)


def position(value: Value, distribution: dict[str, Any]) -> float | None:
    """Return where a value lies on its column's axis, None if it has no place there."""
    if distribution["type"] != "histogram" or np.isnan(value.number):
        return None
    if not distribution["logarithmic"]:
        return value.number
    return float(np.log10(value.number)) if value.number > 0 else float(distribution["low"]) - 1.0


def bar_of(column: Column, value: Value, n_rows: int) -> tuple[int, float] | None:
    """Return the number of a value's bar, or -1 and the share of training rows with it; None without bars."""
    if column.kind == "boolean" and not np.isnan(value.number):
        return (0 if value.number else 1), 0.0
    if column.kind != "category":
        return None
    place = column.place(value.text)
    if place < 0:
        return -1, column.rest / n_rows
    return (place, 0.0) if place < MOST_BARS else (-1, column.counts[place] / n_rows)
