"""Inference of numbers: how a column of numbers, dates or durations is read.

In: the name and the numbers of a column. Out: a `Column`, and what replaces its missing values. `infer.py` calls it for
typed columns, `infer_strings.py` for strings that stand for numbers.
"""

import re
import shlex
import sys
from dataclasses import replace

import numpy as np

from .._arrays import Float64s, Objects
from . import cells, codes
from .columns import RawColumn
from .encoding import DAY, MONDAY, WEEK, YEAR, Column
from .future import are_years, far_shares, natural_range
from .sentinels import suspect
from .stamps import CLOCK_DIGITS, MONTH_DIGITS, find_stamp_format
from .summary import ColumnSummary

MIN_IDS = 20
"""Fewer whole numbers than this are never taken for ids."""
SAMPLE_MARGIN_STEPS = 20.0
"""The range of all rows may be wider than that of a sample, by this many mean distances between sampled values."""
ID_NAMES = re.compile(r"(?i:(^|[^a-z])(id|uid|uuid|guid|key))$|[a-z](Id|ID|UID|UUID|GUID|Key)$")
"""Names of ids end in one of these words, as user_id and userId do. Letters within a word do not count, as in paid."""
WEEK_SPAN, YEAR_SPAN = 4 * WEEK, 2 * YEAR
"""A table that spans less time (in seconds) than these does not show weekly habits, or seasons."""
SPAN_QUANTILES = (0.01, 0.99)
"""A table spans the time between these quantiles, so that one mistyped year does not count as years of data."""
MONTH_FORMATS = ("YYYY-MM", MONTH_DIGITS)
"""Formats of dates without a day, and so without a weekday."""
MAX_SHOWN_NAME = 60
"""Characters of a column's name in a hint."""
SUSPECTED, CURED_BY = " comes in ", ": if it means missing, pass --na "
"""Words of the hint about a value that may stand for a missing one."""
NO_VALUE = "all its values are missing"

Learned = tuple[Column, float]
"""How a column is read, and what replaces its missing values."""


def learn_numbers(
    column: Column, values: Float64s, asked: str | None, summary: ColumnSummary | None, n_rows: int
) -> Learned:
    """Return how a column of numbers or times is read: dropped if it is constant or an id, times with their cycles. A
    column with infinities is kept, so that encoding it raises an error."""
    finite = np.isfinite(values)
    whole = bool(finite.all())
    present = values if whole else values[finite]
    if len(present):
        low, high = float(present.min()), float(present.max())
        if asked is None and whole:
            if low == high:
                return replace(column, kind="dropped", note="it is constant"), 0.0
            if column.kind == "number" and (note := _id_note(column.name, values, low, high, n_rows)):
                return replace(column, kind="dropped", note=note), 0.0
        if column.kind == "time":
            knots, until = natural_range(present)
            cycles = tuple(c for c in _cycles(present) if c != "week" or column.time_format not in MONTH_FORMATS)
            column = replace(column, cycles=cycles, date_knots=knots, natural_until=until)
            column = replace(column, far_shares=far_shares(present, knots))
        elif column.kind == "number" and are_years(column.name, present):
            knots, until = natural_range(present, max_far=0.0)  # training years stay where they are
            column = replace(column, date_knots=knots, natural_until=until)
            column = replace(column, far_shares=far_shares(present, knots))
        if column.kind in ("number", "time"):
            column = replace(column, hint=_sentinel_hint(column, present))
        if not np.isnan(values).any():
            column = replace(column, gap_value=_beyond(low, high))
    return (column, 0.0) if whole else with_gaps(column, values, summary)


def stamps_of(raw: RawColumn, asked: str | None) -> Column | None:
    """Return a column of numbers as dates or times of day, if they are such; else None."""
    if asked not in (None, "time"):
        return None
    time_format = find_stamp_format(raw.name, raw.values.astype(np.float64), asked=asked == "time")
    if not time_format:
        return None
    return Column(raw.name, "duration" if time_format == CLOCK_DIGITS else "time", time_format=time_format)


def boolean_if_binary(column: Column, values: Float64s) -> Column:
    """Return a column of numbers, as one of true/false values if all are 0 and 1."""
    return replace(column, kind="boolean") if codes.are_bools(values) else column


def _sentinel_hint(column: Column, present: Float64s) -> str:
    """Return which value may stand for a missing one, and the option that says so; "" if none may."""
    found = suspect(present, are_dates=column.kind == "time")
    if found is None:
        return ""
    value, n_rows = found
    shown = cells.time_to_string(value) if column.kind == "time" else cells.number_to_string(value)
    side = "below" if value == present.min() else "above"
    where = {"below": "before", "above": "after"}[side] if column.kind == "time" else side
    cure = shlex.quote(f"{column.name[:MAX_SHOWN_NAME]}={shown}")
    return f"{shown}{SUSPECTED}{n_rows:,} rows, far {where} the others{CURED_BY}{cure}"


def _beyond(low: float, high: float) -> float:
    """Return a number outside the training range: as far above it as the range is wide. It stands for a value that is
    missing where none was in training."""
    return min(high + (high - low), sys.float_info.max)


def with_gaps(column: Column, values: Float64s, summary: ColumnSummary | None = None) -> Learned:
    """Return the column with its fraction of missing values, and the median of the others, which replaces them."""
    missing = np.isnan(values)
    if missing.all():
        return replace(column, kind="dropped", note=NO_VALUE), 0.0
    present = values[np.isfinite(values)]
    if not missing.any() or not len(present):
        return column, 0.0
    fraction = float(missing.mean()) if summary is None else summary.n_missing / summary.n_rows
    return replace(column, gap_share=fraction), _median(present)


def _median(present: Float64s) -> float:
    middle = [(len(present) - 1) // 2, len(present) // 2]
    # Halves first: the sum of two large numbers would overflow.
    return float((0.5 * np.partition(present, middle)[middle]).sum())


def _cycles(values: Float64s) -> tuple[str, ...]:
    """Return the cycles in which times vary: the day, the week, the year."""
    low, high = np.quantile(values, SPAN_QUANTILES, method="nearest")
    span = high - low
    varies = {
        "day": np.ptp(np.mod(values, DAY)) > 0,
        "week": span >= WEEK_SPAN and np.ptp(np.mod(values - MONDAY, WEEK) // DAY) > 0,
        "year": span >= YEAR_SPAN,
    }
    return tuple(cycle for cycle, does in varies.items() if does)


def large_note(name: str, exact: Objects, n_rows: int) -> str:
    """Return why a column of integers that are too large for floats is dropped, or "" if it is not. The integers
    themselves are compared: as floats, different ids can be equal."""
    if not all(isinstance(digits, int) for digits in exact):
        return ""
    lowest = min(exact)
    if max(exact) - lowest > sys.float_info.max:
        return ""
    steps = np.array([digits - lowest for digits in exact], dtype=np.float64)
    highest = float(steps.max())
    if highest and float(lowest) == float(max(exact)):
        return _id_note(name, steps, 0.0, highest, n_rows) or "its values are equal as floats"
    return _id_note(name, steps, 0.0, highest, n_rows)


def _id_note(name: str, values: Float64s, low: float, high: float, n_rows: int) -> str:
    """Return why numbers are ids, or "" if they are not. Ids are whole numbers that are all different, and that are
    either close together or in a column with the name of an id. The values may be those of a sample, which can miss the
    smallest and the largest value of the column."""
    ends = 0.0 if n_rows == len(values) else (high - low) * SAMPLE_MARGIN_STEPS / len(values)
    if n_rows < MIN_IDS or high - low + ends < n_rows - 1 or np.any(values != np.floor(values)):
        return ""
    dense = high - low < 2 * n_rows
    if not (dense or ID_NAMES.search(name)) or len(np.unique(values)) < len(values):
        return ""
    return "it numbers the rows" if dense else "it is an id: all its values are different"
