"""Words: what is unusual about a value, as a person would say it.

In: a column's encoding, its training sample, a value. Out: half a sentence. Values of the table appear as text; whoever
puts them on a page must escape them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _cells
from ._cells import RawColumn
from ._encoding import Column, Encoding, as_texts, read_values

USUAL = (0.025, 0.975)
"""The usual range of a column holds 95 % of the training rows."""
FAR = 1.0
"""Farther than so many widths of the usual range beyond it is far."""
COMMON = 0.05
"""A category of a larger share of the rows is not rare by itself."""
LONGEST_VALUE = 60


@dataclass(frozen=True)
class Value:
    """A cell: what it is read as, and how it is shown."""

    number: float
    """NaN for a missing value and for a category."""
    text: str
    """"" for a missing value."""


def values_of(
    encoding: Encoding, table: list[RawColumn] | NDArray[np.floating], rows: NDArray[np.intp]
) -> list[list[Value]]:
    """Return the cells of some rows, shape (rows, d)."""
    columns = []
    for j, column in enumerate(encoding.columns):
        raw = _taken(table, j, column.name, rows)
        if column.kind == "category" or (raw.kind == "text" and column.kind == "dropped"):
            codes, texts = as_texts(raw)
            columns.append([Value(np.nan, texts[code] if code >= 0 else "") for code in codes])
            continue
        numbers = raw.values.astype(np.float64) if column.kind == "dropped" else read_values(column, raw)
        kind = raw.kind if column.kind == "dropped" else column.kind
        columns.append([Value(float(number), shown(kind, float(number))) for number in numbers])
    return [list(cells) for cells in zip(*columns, strict=True)]


def _taken(table: list[RawColumn] | NDArray[np.floating], j: int, name: str, rows: NDArray[np.intp]) -> RawColumn:
    if isinstance(table, np.ndarray):
        return RawColumn(name, "number", table[rows, j].astype(np.float64))
    return RawColumn(name, table[j].kind, table[j].values[rows], table[j].texts)


def shown(kind: str, number: float) -> str:
    """Return a value as text: 9,940; 0.0123; 2024-02-29 08:00:00; true. Missing is ""."""
    if np.isnan(number):
        return ""
    if kind == "boolean":
        return "true" if number else "false"
    if kind == "time":
        return _cells.time_text(number) if abs(number) < 2e11 else f"{number:g} s"
    whole = number == round(number) if abs(number) < 1e15 else False
    text = f"{number:,.0f}" if whole or 1e4 <= abs(number) < 1e15 else f"{number:.4g}"
    return f"{text} s" if kind == "duration" else text


def reason(encoding: Encoding, j: int, value: Value, sample: NDArray[np.float64]) -> str:
    """Return what is unusual about a value of column j, given the sample's encoded rows."""
    column = encoding.columns[j]
    name = column.name
    if column.kind == "category":
        return _category_reason(column, value, encoding.n_rows)
    start = encoding.starts[j]
    if not value.text:
        if not column.has_gaps:
            return f"{name} is missing, which it never was in training"
        return f"{name} is missing ({_share(column.gap_share)} of the rows)"
    seen = sample[:, start]
    if column.kind == "boolean":
        return f"{name} is {value.text} ({_share(float((seen == value.number).mean()))} of the rows)"
    low, high = np.quantile(seen, USUAL)
    usual = f"usually {shown(column.kind, _rounded(low, seen))} to {shown(column.kind, _rounded(high, seen))}"
    if column.kind == "time":
        if value.number > seen.max():
            return f"{name} {value.text} is later than usual ({usual})"
        if value.number < seen.min():
            return f"{name} {value.text} is earlier than usual ({usual})"
        cycles = " or ".join(column.cycles)
        return f"{name} {value.text} is an unusual time" + (f" of the {cycles}" if cycles else "")
    width = max(high - low, 0.0)
    excess = max(value.number - high, low - value.number)
    if excess > 0:
        far = "far " if excess > FAR * width else ""
        return f"{name} {value.text} is {far}{'above' if value.number > high else 'below'} usual ({usual})"
    return f"{name} {value.text} is unusual beside the other values ({usual})"


def _rounded(bound: float, seen: NDArray[np.float64]) -> float:
    """Return a bound as a whole number where the column has only such."""
    return float(round(bound)) if np.all(seen == np.round(seen)) else float(bound)


def _category_reason(column: Column, value: Value, n_rows: int) -> str:
    text = value.text or ""
    shown_text = f"{column.name} {_short(text)!r}" if text else f"{column.name} is missing,"
    count = dict(zip(column.values, column.counts, strict=True)).get(text[: _cells.LONGEST_TEXT])
    if count is None:
        if column.rest:
            return f"{shown_text} is rare (seen at most {column.counts[-1]:,} times in {n_rows:,})"
        return f"{shown_text} never seen in {n_rows:,} rows"
    if count > COMMON * n_rows:
        return f"{shown_text} is unusual beside the other values ({_share(count / n_rows)} of the rows)"
    return f"{shown_text} seen {'once' if count == 1 else f'{count:,} times'} in {n_rows:,}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _share(share: float) -> str:
    percent = 100.0 * share
    if percent == 0:
        return "none"
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1g} %"


def isolation(distance_ratio: float) -> str:
    """Return how far a row is from its nearest references, in words."""
    if distance_ratio < 1.15:
        return "its nearest reference rows are as near as those of a typical row"
    return f"its nearest reference rows are {distance_ratio:.1f} times as far away as those of a typical row"
