"""Words: what is unusual about a value, as a person would say it.

In: a column of the kept rows, a value. Out: half a sentence. It contains names and values of the table,
cut to a bounded length and without control characters. Code that puts it on a page must escape it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._arrays import Indices
from .._table.columns import RawColumn, as_strings
from .._table.encoding import (
    CYCLES,
    DAY,
    KIND_SINGULARS,
    MONDAY,
    Column,
    Encoding,
    must_read_strings,
    numbers_of_strings,
    read_values,
)
from .._table.shown import grouped, percent, short, shown
from .._table.table import Table
from .kept_columns import KeptColumn, KeptColumns

BESIDE = "unusual beside the other values"
"""Said of a value that is not unusual by itself."""
FAR_IN_RANGES = 1.0
"""A value is called *far* above or below the usual range if it lies more than this many usual ranges outside."""
MAX_RARE_FRACTION = 0.05
"""A value of a category is called rare if at most this fraction of the rows has it."""
MAX_UNCOMMON_FRACTION = 0.25
"""A value that at most this fraction of the rows has is worth saying, if nothing else can be said of its column."""
MIN_MOSTLY_MISSING = 0.5
"""If a larger fraction of the training rows has no value in a column, then having a value is what is unusual."""
NEAR_PHASE = 1 / 48
"""Two times are at the same time of a cycle if they are closer than this fraction of it: half an hour of a day ..."""
RARE_PHASE = 0.25
"""... and a time of the cycle is unusual if it has less than this fraction of the rows that an even spread gives it."""
LONG_SPAN = 3 * DAY
"""Ranges of dates of at least this many seconds are shown without times of day."""
MAX_ROUNDING = 0.25
"""Numbers are rounded by at most this fraction of the smallest difference between them."""
SMALLEST_IN_FULL, LARGEST_IN_FULL = 1e-3, 1e15
"""Numbers outside this range are shown with an exponent."""
MAX_SHARED_VALUES = 50
"""A sentence about several rows is made from at most this many of them, the most anomalous ones."""
MAX_NAMED_VALUES = 2
"""Values of a category that such a sentence names."""
MIN_FREQUENT_FACTOR = 3
"""A value of a category comes unusually often if it comes at least this many times as often as the median of the
category's values, and if only few rows have a value that comes as often."""
ONCE, NEVER, PRESENT = "\0seen once", "\0never seen", "\0has a value"
"""Ways to be unusual that different values can share. They begin with a character that no value of a table has."""
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TIMES_OF = {"day": "time of day", "week": "time of the week", "year": "time of the year"}


@dataclass(frozen=True)
class Value:
    """A cell: what it is read as, and how it is shown."""

    number: float
    """NaN for a missing value, for text that is not a number, and in a category."""
    text: str
    """"" for a missing value."""


def values_of(
    encoding: Encoding,
    table: Table,
    rows: Indices,
    chosen: Sequence[int] | None = None,
) -> list[list[Value]]:
    """Return the cells of some rows, in the chosen columns or in all, one list per row."""
    columns = []
    for j in range(len(encoding.columns)) if chosen is None else chosen:
        column = encoding.columns[j]
        raw = table.column(j, rows)  # only these rows: reading strings is slow
        if raw.is_string or column.kind == "category" or (column.kind != "dropped" and must_read_strings(column, raw)):
            columns.append(_values_of_strings(column, raw))
            continue
        numbers = raw.values.astype(np.float64) if column.kind == "dropped" else read_values(column, raw)
        kind = raw.kind if column.kind == "dropped" else column.kind
        columns.append([Value(float(number), shown(kind, float(number), column.name)) for number in numbers])
    return [list(row) for row in zip(*columns, strict=True)]


def _values_of_strings(column: Column, raw: RawColumn) -> list[Value]:
    codes, strings = as_strings(raw)
    has_numbers = column.kind not in ("category", "dropped")
    numbers = numbers_of_strings(column, strings) if has_numbers else np.full(len(strings), np.nan)
    values = [
        Value(float(number), string if np.isnan(number) else shown(column.kind, float(number), column.name))
        for number, string in zip(numbers, strings, strict=True)
    ]
    return [values[code] if code >= 0 else Value(np.nan, "") for code in codes]


def reason(kept: KeptColumns, j: int, value: Value) -> str:
    """Return what is unusual about a value of column j, compared with the kept rows."""
    column = kept.encoding.columns[j]
    name = short(column.name)
    if column.kind == "category":
        return _category_reason(name, column, value.text, kept.encoding.n_rows)
    if math.isnan(value.number):
        return _missing_reason(name, column, value.text)
    if column.kind == "boolean":
        return _bool_reason(name, value, kept[j])
    return _value_reason(name, value, kept[j])


def way(kept: KeptColumns, j: int, value: Value) -> str:
    """Return in which way a value of column j is unusual, the same for rows that share the finding: how a number or a
    time lies outside its usual range, that there is a value at all, or that it was seen once or never; else the value
    itself, "" if it is missing."""
    column = kept.encoding.columns[j]
    if column.kind == "category" and value.text and not column.rest:
        place = column.place(value.text)
        return (ONCE if column.counts[place] == 1 else value.text) if place >= 0 else NEVER
    if column.kind in ("category", "boolean") or math.isnan(value.number):
        return value.text
    low, high = kept[j].usual
    if low <= value.number <= high:
        return PRESENT if column.gap_share > MIN_MOSTLY_MISSING else value.text
    far = "far " if max(value.number - high, low - value.number) > FAR_IN_RANGES * (high - low) else ""
    return f"{far}{'above' if value.number > high else 'below'} usual"


def shared_reason(kept: KeptColumns, j: int, values: Sequence[Value]) -> str:
    """Return what is unusual about column j in several rows, whose values are unusual in the same way: what `reason`
    says if it is the same for all, else their range or, of a category, the two values that they have."""
    texts = list(dict.fromkeys(reason(kept, j, value) for value in values[:MAX_SHARED_VALUES]))
    if len(texts) == 1:
        return texts[0]
    column = kept.encoding.columns[j]
    name = short(column.name)
    if column.kind in ("category", "boolean"):
        different = list(dict.fromkeys(value.text for value in values))
        if len(different) > MAX_NAMED_VALUES:
            seen = "seen once" if column.place(different[0]) >= 0 else "never seen"
            return f"{name}: {len(different):,} values that were {seen} in {kept.encoding.n_rows:,} rows"
        named = [f"'{short(text)}'" if text else "missing" for text in different]
        return f"{name} {' or '.join(named)}"
    if column.gap_share > MIN_MOSTLY_MISSING and all(text.startswith(f"{name} has a value") for text in texts):
        return f"{name} has a value ({percent(column.gap_share)} of the rows have none)"
    numbers = [value.number for value in values]
    low, high = (shown(column.kind, bound, column.name) for bound in (min(numbers), max(numbers)))
    endings = [text.rpartition(" is ")[2] for text in texts]
    are_far = all(ending.startswith("far ") for ending in endings)
    ending = endings[0] if are_far else endings[0].removeprefix("far ")
    return f"{name} from {low} to {high}, {ending}"


def _missing_reason(name: str, column: Column, text: str) -> str:
    gaps = f"{percent(column.gap_share)} of the rows"
    if text:
        often = f" ({gaps} have none)" if column.has_gaps else ", which never happened in training"
        return f"{name} '{short(text)}' is not {KIND_SINGULARS[column.kind]}{often}"
    return f"{name} is missing" + (f" ({gaps})" if column.has_gaps else ", which it never was in training")


def _bool_reason(name: str, value: Value, kept: KeptColumn) -> str:
    fraction = kept.fraction_with(value.number)
    # If no kept row has the value, it is rarer than one kept row.
    often = percent(fraction) if fraction else f"under {percent(1.0 / max(len(kept.present), 1))}"
    beside = f", {BESIDE}" if fraction > MAX_RARE_FRACTION else ""
    return f"{name} is {value.text}{beside} ({often} of the rows)"


def _value_reason(name: str, value: Value, kept: KeptColumn) -> str:
    """Return how a number, time or duration lies among the values of the kept rows."""
    column = kept.column
    low, high = kept.usual if len(kept.present) else (value.number, value.number)
    inside = low <= value.number <= high or column.is_natural(value.number)
    cycle = _rare_cycle(value.number, kept)
    if not cycle and inside and column.gap_share > MIN_MOSTLY_MISSING:
        return f"{name} has a value, {value.text} ({percent(column.gap_share)} of the rows have none)"
    text, usual = with_usual(column, value, low, high)
    # "column 1 9" would read as one number.
    said = f"{name}{' = ' if name[-1:].isdigit() else ' '}{text}"
    if cycle:
        weekday = WEEKDAYS[int((value.number - MONDAY) // DAY) % 7]
        return f"{said} is at an unusual {TIMES_OF[cycle]}" + (f" (a {weekday})" if cycle == "week" else "")
    if inside:
        return f"{said} is {BESIDE} ({usual})"
    if column.kind == "time":
        return f"{said} is {'later' if value.number > high else 'earlier'} than usual ({usual})"
    smallest, largest = kept.span
    width = high - low or largest - smallest
    far = "far " if max(value.number - high, low - value.number) > FAR_IN_RANGES * width else ""
    return f"{said} is {far}{'above' if value.number > high else 'below'} usual ({usual})"


def _rare_cycle(number: float, kept: KeptColumn) -> str:
    """Return the cycle in which the time is rarest: fewest kept rows are at the same time of day, week or year. Return
    "" if it is not rare in any, or if the time is outside the range of the kept rows."""
    cycles = kept.column.cycles
    if not cycles or not len(kept.present):
        return ""
    smallest, largest = kept.span
    if not (smallest <= number <= largest or kept.column.is_natural(number)):
        return ""
    fractions = {}
    for cycle in cycles:
        apart = np.mod(kept.present - number, CYCLES[cycle]) / CYCLES[cycle]
        fractions[cycle] = float(np.mean(np.minimum(apart, 1.0 - apart) < NEAR_PHASE))
    rarest = min(fractions, key=lambda cycle: fractions[cycle])
    return rarest if fractions[rarest] < RARE_PHASE * 2 * NEAR_PHASE else ""


def with_usual(column: Column, value: Value, low: float, high: float) -> tuple[str, str]:
    """Return a value and the usual range as texts, with enough digits to see how they differ."""
    numbers = (value.number, low, high)
    texts = [shown(column.kind, number, column.name) for number in numbers]
    if column.kind == "number":
        texts = apart(numbers, texts, column.name)
    text, *bounds = texts
    if column.kind == "time" and high - low >= LONG_SPAN and text[:10] not in (bound[:10] for bound in bounds):
        bounds = [bound[:10] for bound in bounds]
    return text, f"usually {bounds[0]}" if bounds[0] == bounds[1] else f"usually {bounds[0]} to {bounds[1]}"


def apart(numbers: Sequence[float], texts: list[str], name: str) -> list[str]:
    """Return the texts of numbers. If rounding hides how the numbers differ, they get more digits, all in one style."""
    gaps = np.diff(np.unique([0.5 * number for number in numbers]))  # halves, because a difference may overflow
    if not len(gaps):
        return texts
    gap = 2.0 * min(float(gaps.min()), np.finfo(float).max / 4)
    shift = [abs(float(text.replace(",", "")) - number) for text, number in zip(texts, numbers, strict=True)]
    if max(shift) <= MAX_ROUNDING * gap:
        return texts
    # The computed difference of 0.02 and 0.01 may be slightly less than 0.01.
    largest, decimals = max(map(abs, numbers)), -math.floor(math.log10(gap * (1.0 + 1e-9)))
    if SMALLEST_IN_FULL <= largest < LARGEST_IN_FULL:
        return [grouped(number, max(0, decimals), name) for number in numbers]
    return [f"{number:.{min(17, math.floor(math.log10(largest)) + decimals + 1)}g}" for number in numbers]


def _category_reason(name: str, column: Column, text: str, n_rows: int) -> str:
    place = column.place(text)
    count = column.counts[place] if place >= 0 else None
    value = f"{name} '{short(text)}'" if text else f"{name} is missing"
    if (
        count is None and column.rest and (text or column.gap_value is None)
    ):  # the counts of the rarest values are not kept
        return f"{value}, seen at most {_times(column.counts[-1])} in {n_rows:,} rows"
    if count is None:
        return f"{value} was never seen in {n_rows:,} rows" if text else f"{value}, which it never was in training"
    if _is_frequent(column, count, n_rows):
        return f"{value} comes unusually often, {_times(count)} in {n_rows:,} rows"
    if count > MAX_RARE_FRACTION * n_rows:
        often = f"{percent(count / n_rows)} of the rows"
        return f"{value}{' is' if text else ','} {BESIDE} ({often})"
    return f"{value}{' seen' if text else ', seen'} {_times(count)} in {n_rows:,} rows"


def uncommon(kept: KeptColumns, j: int, value: Value) -> str:
    """Return how many rows have a value of a category or a bool, if these are not many; else ""."""
    column, fraction = kept.encoding.columns[j], math.nan
    name = short(column.name)
    if column.kind == "category" and (place := column.place(value.text)) >= 0:
        fraction = column.counts[place] / kept.encoding.n_rows
        name = f"{name} '{short(value.text)}'" if value.text else f"{name} is missing"
    elif column.kind == "boolean" and not math.isnan(value.number):
        fraction = kept[j].fraction_with(value.number)
        name = f"{name} is {value.text}"
    return f"{name} ({percent(fraction)} of the rows)" if fraction <= MAX_UNCOMMON_FRACTION else ""


def _is_frequent(column: Column, count: int, n_rows: int) -> bool:
    """Return whether a value is unusual because other values come so much less often than it does."""
    middle = column.counts[len(column.counts) // 2]  # the most frequent come first
    as_often = sum(other for other in column.counts if other >= count)
    return count >= MIN_FREQUENT_FACTOR * middle and as_often <= MAX_RARE_FRACTION * n_rows


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def isolation(distance_ratio: float) -> str:
    """Return in words how far a row is from its nearest references."""
    if distance_ratio < 1.15:
        return "its nearest reference rows are as near as those of a typical row"
    times = f"{distance_ratio:.1f}" if distance_ratio < 10 else f"{distance_ratio:,.0f}"
    if distance_ratio >= 1e6:
        times = "over a million"
    return f"its nearest reference rows are {times} times as far away as those of a typical row"
