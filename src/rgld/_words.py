"""Words: what is unusual about a value, as a person would say it.

In: a column's encoding, its training sample, a value. Out: half a sentence. Names and values of the table appear in it
as text, without control characters and not too long; whoever puts them on a page must escape them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _cells
from ._cells import RawColumn
from ._encoding import CYCLES, DAY, MONDAY, Column, Encoding, as_texts, is_mixed, read_texts, read_values

BESIDE = "unusual beside the other values"
"""Said of a value that is none by itself."""
USUAL = (0.025, 0.975)
"""The usual range of a column holds 95 % of the training rows."""
FAR = 1.0
"""Farther than so many widths of the usual range beyond it is far."""
COMMON = 0.05
"""A category of a larger share of the rows is not rare by itself."""
MOSTLY_MISSING = 0.5
"""Where more rows have no value, to have one is what is unusual about an ordinary value."""
NEAR_PHASE = 1 / 48
"""Times closer than this part of a cycle are at the same time of it: half an hour of a day ..."""
RARE_PHASE = 0.25
"""... and it is an unusual one if it has less than this part of what an even spread would give it."""
LONG_SPAN = 3 * DAY
"""Ranges of dates at least as long are said in days."""
BLUR = 0.25
"""Numbers are rounded by at most this part of the smallest difference between them."""
SMALLEST_IN_FULL, LARGEST_IN_FULL = 1e-3, 1e15
"""Other numbers are shown with an exponent."""
LONGEST_VALUE = 60
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TIMES_OF = {"day": "time of day", "week": "time of the week", "year": "time of the year"}
EXPECTED = {"number": "a number", "boolean": "true or false", "time": "a date", "duration": "a duration"}


@dataclass(frozen=True)
class Value:
    """A cell: what it is read as, and how it is shown."""

    number: float
    """NaN for a missing value, for a text that is no number, and for a category."""
    text: str
    """"" for a missing value."""


def values_of(
    encoding: Encoding,
    table: list[RawColumn] | NDArray[np.floating],
    rows: NDArray[np.intp],
    chosen: Sequence[int] | None = None,
) -> list[list[Value]]:
    """Return the cells of some rows in the chosen columns, or in all, shape (rows, columns)."""
    columns = []
    for j in range(len(encoding.columns)) if chosen is None else chosen:
        column = encoding.columns[j]
        raw = _taken(table, j, column.name, rows)
        if raw.is_text or column.kind == "category" or (column.kind != "dropped" and is_mixed(column, raw)):
            columns.append(_values_of_texts(column, raw))
            continue
        numbers = raw.values.astype(np.float64) if column.kind == "dropped" else read_values(column, raw)
        kind = raw.kind if column.kind == "dropped" else column.kind
        columns.append([Value(float(number), shown(kind, float(number), column.name)) for number in numbers])
    return [list(cells) for cells in zip(*columns, strict=True)]


def _taken(table: list[RawColumn] | NDArray[np.floating], j: int, name: str, rows: NDArray[np.intp]) -> RawColumn:
    if isinstance(table, np.ndarray):
        return RawColumn(name, "number", table[rows, j].astype(np.float64))
    column = table[j]
    if not column.is_text:
        return column.take(rows)
    different, codes = np.unique(column.values[rows], return_inverse=True)  # texts are read one by one: only these
    texts = tuple(column.texts[code] for code in different if code >= 0)
    return RawColumn(name, column.kind, (codes - np.sum(different < 0)).astype(np.int64), texts)


def _values_of_texts(column: Column, raw: RawColumn) -> list[Value]:
    codes, texts = as_texts(raw)
    has_numbers = column.kind not in ("category", "dropped")
    numbers = read_texts(column, texts) if has_numbers else np.full(len(texts), np.nan)
    cells = [
        Value(float(number), text if np.isnan(number) else shown(column.kind, float(number), column.name))
        for number, text in zip(numbers, texts, strict=True)
    ]
    return [cells[code] if code >= 0 else Value(np.nan, "") for code in codes]


def shown(kind: str, number: float, name: str = "") -> str:
    """Return a value as text: 9,940; 0.0123; 2024-02-29 08:00:00; 2 h 30 min; true. Missing is ""."""
    if np.isnan(number):
        return ""
    if kind == "boolean":
        return "true" if number else "false"
    if kind == "time":
        return _cells.time_text(round(number))
    if kind == "duration":
        return _duration_text(number)
    size = abs(number)
    if size >= 1e15:
        return f"{number:.4g}"
    number += 0.0  # a negative zero is zero
    if number == round(number) or size >= 1e4:
        return _grouped(number, 0, name)
    return _grouped(number, 1, name) if size >= 999.95 else f"{number:.4g}"


def _grouped(number: float, decimals: int, name: str) -> str:
    """Return a number in full, with thousands apart, but for a year's."""
    return f"{number:.{decimals}f}" if name.lower().endswith("year") else f"{number:,.{decimals}f}"


def _duration_text(seconds: float) -> str:
    """Return seconds in two units people use: 45.5 s; 12 min 30 s; 3 h; 2 d 4 h."""
    size, sign = abs(seconds), "-" if seconds < 0 else ""
    if size < 120:
        return f"{seconds:.4g} s"
    units = (("min", "s", 1, 60), ("h", "min", 60, 60), ("d", "h", 3600, 24))
    large, small, seconds_each, ratio = units[(size >= 2 * 3600) + (size >= 2 * DAY)]
    whole, rest = divmod(round(size / seconds_each), ratio)
    return f"{sign}{whole:,} {large}" + (f" {rest} {small}" if rest else "")


def reason(encoding: Encoding, j: int, value: Value, sample: NDArray[np.float64]) -> str:
    """Return what is unusual about a value of column j, given the sample's encoded rows."""
    column = encoding.columns[j]
    name = _short(column.name)
    if column.kind == "category":
        return _category_reason(name, column, value.text, encoding.n_rows)
    start = encoding.starts[j]
    if np.isnan(value.number):
        return _gap_reason(name, column, value.text)
    seen = sample[:, start]
    if column.has_gaps:
        seen = seen[sample[:, start + len(column.parts) - 1] <= 0]  # the indicator of a gap is above 0
    if column.kind == "boolean":
        return _truth_reason(name, value, seen)
    return _value_reason(name, column, value, seen)


def _gap_reason(name: str, column: Column, text: str) -> str:
    gaps = f"{_percent(column.gap_share)} of the rows"
    if text:
        often = f" ({gaps} have none)" if column.has_gaps else ", which never happened in training"
        return f"{name} '{_short(text)}' is not {EXPECTED[column.kind]}{often}"
    return f"{name} is missing" + (f" ({gaps})" if column.has_gaps else ", which it never was in training")


def _truth_reason(name: str, value: Value, seen: NDArray[np.float64]) -> str:
    share = float(np.mean(seen == value.number)) if len(seen) else 0.0
    # The sample may miss what is rarer than one of its rows.
    shown_share = _percent(share) if share else f"under {_percent(1.0 / max(len(seen), 1))}"
    beside = f", {BESIDE}" if share > COMMON else ""
    return f"{name} is {value.text}{beside} ({shown_share} of the rows)"


def _value_reason(name: str, column: Column, value: Value, seen: NDArray[np.float64]) -> str:
    """Return how a number, time or duration lies among the values of the sample."""
    # Quantiles that are values of the column: no half persons, and no time of day where there are dates alone.
    bounds = np.quantile(seen, USUAL, method="nearest") if len(seen) else np.full(2, value.number)
    low, high = map(float, bounds)
    inside = low <= value.number <= high
    cycle = _rare_cycle(column, value.number, seen)
    if not cycle and inside and column.gap_share > MOSTLY_MISSING:
        return f"{name} has a value, {value.text} ({_percent(column.gap_share)} of the rows have none)"
    text, usual = _with_usual(column, value, low, high)
    # "column 1 9" would read as one number.
    said = f"{name}{' = ' if name[-1:].isdigit() else ' '}{text}"
    if cycle:
        weekday = WEEKDAYS[int((value.number - MONDAY) // DAY) % 7]
        return f"{said} is at an unusual {TIMES_OF[cycle]}" + (f" (a {weekday})" if cycle == "week" else "")
    if inside:
        return f"{said} is {BESIDE} ({usual})"
    if column.kind == "time":
        return f"{said} is {'later' if value.number > high else 'earlier'} than usual ({usual})"
    width = high - low or float(seen.max()) - float(seen.min())
    far = "far " if max(value.number - high, low - value.number) > FAR * width else ""
    return f"{said} is {far}{'above' if value.number > high else 'below'} usual ({usual})"


def _rare_cycle(column: Column, number: float, seen: NDArray[np.float64]) -> str:
    """Return the cycle at whose time the fewest training rows are; "" if these are not few, or the time is new."""
    if not len(seen) or not seen.min() <= number <= seen.max():
        return ""
    shares = {}
    for cycle in column.cycles:
        apart = np.mod(seen - number, CYCLES[cycle]) / CYCLES[cycle]
        shares[cycle] = float(np.mean(np.minimum(apart, 1.0 - apart) < NEAR_PHASE))
    rarest = min(shares, key=lambda cycle: shares[cycle], default="")
    return rarest if rarest and shares[rarest] < RARE_PHASE * 2 * NEAR_PHASE else ""


def _with_usual(column: Column, value: Value, low: float, high: float) -> tuple[str, str]:
    """Return a value and the usual range as texts, with as many digits as tell them apart."""
    numbers = (value.number, low, high)
    texts = [shown(column.kind, number, column.name) for number in numbers]
    if column.kind == "number":
        texts = _apart(numbers, texts, column.name)
    text, *bounds = texts
    if column.kind == "time" and high - low >= LONG_SPAN and text[:10] not in (bound[:10] for bound in bounds):
        bounds = [bound[:10] for bound in bounds]
    return text, f"usually {bounds[0]}" if bounds[0] == bounds[1] else f"usually {bounds[0]} to {bounds[1]}"


def _apart(numbers: Sequence[float], texts: list[str], name: str) -> list[str]:
    """Return the texts of numbers, with more digits and in one style if the texts blur how the numbers differ."""
    gaps = np.diff(np.unique([0.5 * number for number in numbers]))  # halves, as a difference may overflow
    if not len(gaps):
        return texts
    gap = 2.0 * min(float(gaps.min()), np.finfo(float).max / 4)
    shift = [abs(float(text.replace(",", "")) - number) for text, number in zip(texts, numbers, strict=True)]
    if max(shift) <= BLUR * gap:
        return texts
    # A difference of 0.01 may come out as slightly less.
    largest, decimals = max(map(abs, numbers)), -math.floor(math.log10(gap * (1.0 + 1e-9)))
    if SMALLEST_IN_FULL <= largest < LARGEST_IN_FULL:
        return [_grouped(number, max(0, decimals), name) for number in numbers]
    return [f"{number:.{min(17, math.floor(math.log10(largest)) + decimals + 1)}g}" for number in numbers]


def _category_reason(name: str, column: Column, text: str, n_rows: int) -> str:
    place = column.place(text)
    count = column.counts[place] if place >= 0 else None
    value = f"{name} '{_short(text)}'" if text else f"{name} is missing"
    if count is None and column.rest:  # the counts of the rarest values are not kept
        return f"{value}, seen at most {_times(column.counts[-1])} in {n_rows:,} rows"
    if count is None:
        return f"{value} was never seen in {n_rows:,} rows" if text else f"{value}, which it never was in training"
    if count > COMMON * n_rows:
        share = f"{_percent(count / n_rows)} of the rows"
        return f"{value}{' is' if text else ','} {BESIDE} ({share})"
    return f"{value}{' seen' if text else ', seen'} {_times(count)} in {n_rows:,} rows"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _short(text: str) -> str:
    """Return a text of the table in one line of bounded length."""
    plain = "".join(character if character.isprintable() else " " for character in text[: LONGEST_VALUE + 1])
    return plain if len(plain) <= LONGEST_VALUE else plain[: LONGEST_VALUE - 1] + "…"


def _percent(share: float) -> str:
    percent = 100.0 * share
    if 99 < percent < 100:
        return "over 99 %"
    return f"{percent:.0f} %" if percent >= 9.5 else f"{percent:.1g} %"


def isolation(distance_ratio: float) -> str:
    """Return how far a row is from its nearest references, in words."""
    if distance_ratio < 1.15:
        return "its nearest reference rows are as near as those of a typical row"
    times = f"{distance_ratio:.1f}" if distance_ratio < 10 else f"{distance_ratio:,.0f}"
    if distance_ratio >= 1e6:
        times = "over a million"
    return f"its nearest reference rows are {times} times as far away as those of a typical row"
