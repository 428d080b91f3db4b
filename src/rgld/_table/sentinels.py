"""Sentinels: numbers and dates that may stand for a missing value, such as -200, -999, 9999 and 1900-01-01.

In: the numbers of a column. Out: the value that looks like a sentinel, if there is one. It is only suggested: that
it means missing is for the user to say.
"""

import numpy as np

from .._arrays import Float64s, Indices

MIN_TIMES = 3
MIN_FRACTION = 0.001
"""A sentinel comes at least this often ..."""
MAX_SENTINEL_FRACTION = 0.5
"""... and, unless it is a typical one, in at most this fraction of the rows: what most rows have is a usual value."""
MIN_OTHER_VALUES = 20
"""A column of fewer different values is a scale or a list of steps, whose ends may repeat."""
FAR_IN_QUARTILES = 3.0
"""A sentinel is this many times the distance between the quartiles of the other values away from the nearest one ..."""
FAR_FOR_TYPICAL = 0.5
"""... or this many times, if it is a typical one."""
MAX_SCREENED = 10_000
"""Values that decide whether a column is looked at more closely."""
MIN_TIMES_AS_OFTEN = 3.0
"""It comes this many times as often as the other values do on average."""
TYPICAL_NUMBERS = frozenset({-1e3, -32768.0, 32767.0, 65535.0, -2147483648.0, 2147483647.0})
TYPICAL_DATES = frozenset({-62135596800.0, -2208988800.0, 0.0, 253402214400.0, 253370764800.0, 4102358400.0})
"""The first day of the years 1, 1900 and 1970, the last and the first day of 9999, the last day of 2099."""


def suspect(values: Float64s, *, are_dates: bool) -> tuple[float, int] | None:
    """Return the value that may stand for a missing one and the number of rows that have it, or None."""
    with np.errstate(over="ignore"):  # the largest floats may lie farther apart than a float can say
        return _suspect(values[np.isfinite(values)], are_dates=are_dates)


def _suspect(present: Float64s, *, are_dates: bool) -> tuple[float, int] | None:
    if not any(_may_stand_apart(end, present) for end in (present.min(), present.max())):
        return None
    different, times = np.unique(present, return_counts=True)
    counts: Indices = times.astype(np.intp)
    if len(different) <= MIN_OTHER_VALUES:
        return None
    for at, rest in ((0, slice(1, None)), (-1, slice(None, -1))):
        value, count = float(different[at]), int(counts[at])
        if _stands_apart(value, count, different[rest], counts[rest], are_dates=are_dates):
            return value, count
    return None


def _may_stand_apart(end: float, present: Float64s) -> bool:
    """Return whether the smallest or largest value comes often enough, and far enough from the others. Most columns end
    here: sorting all their values would take longer than the rest of their reading."""
    is_end = present == end
    count = np.count_nonzero(is_end)
    if count < max(MIN_TIMES, MIN_FRACTION * len(present)) or count == len(present):
        return False
    few = present[:: max(1, len(present) // MAX_SCREENED)]
    others = few[few != end]
    if len(others) < MIN_OTHER_VALUES:
        return True
    low, high = np.quantile(others, (0.25, 0.75))
    return float(np.min(np.abs(others - end))) >= 0.5 * FAR_FOR_TYPICAL * float(high - low)


def _stands_apart(value: float, count: int, others: Float64s, counts: Indices, *, are_dates: bool) -> bool:
    n = count + int(counts.sum())
    typical = value in TYPICAL_DATES if are_dates else _is_typical(value, others)
    if count < max(MIN_TIMES, MIN_FRACTION * n) or (count > MAX_SENTINEL_FRACTION * n and not typical):
        return False
    is_zero = value == 0.0 and not are_dates  # 0 is a usual quantity: none of something
    if is_zero or count < MIN_TIMES_AS_OFTEN * counts.mean():
        return False
    ranks = np.cumsum(counts)
    low, high = (others[np.searchsorted(ranks, q * ranks[-1])] for q in (0.25, 0.75))
    gap = float(np.min(np.abs(others[[0, -1]] - value)))
    return gap > 0.0 and gap >= (FAR_FOR_TYPICAL if typical else FAR_IN_QUARTILES) * float(high - low)


def _is_typical(value: float, others: Float64s) -> bool:
    """Return whether a number is written as people write sentinels: only nines, a limit of the machine, or a round
    negative number where all others are positive."""
    digits = str(int(abs(value))) if value == round(value) and abs(value) < 1e15 else ""
    if len(digits) > 1 and set(digits) == {"9"}:
        return True
    return value in TYPICAL_NUMBERS or (value < 0.0 <= float(others[0]) and bool(digits) and value % 100 == 0)
