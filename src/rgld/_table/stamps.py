"""Stamps: numbers that stand for moments and times of day.

In: the name and the numbers of a column. Out: the format in which they are dates (20240619, 202406, seconds since
1970) or times of day (1830), or ""; seconds for the numbers of a format.
"""

from datetime import date

import numpy as np

from .._arrays import Float64s
from .cells import TIME_FORMATS, seconds_in
from .names import says_month, says_time, words_of

DATE_DIGITS = "YYYYMMDD"
MONTH_DIGITS = "YYYYMM"
CLOCK_DIGITS = "HHMM"
EPOCHS = {"seconds since 1970": 1.0, "milliseconds since 1970": 1e3, "microseconds since 1970": 1e6}
"""Formats of moments as numbers, with their units in a second."""
STAMP_FORMATS = (DATE_DIGITS, MONTH_DIGITS, CLOCK_DIGITS, *EPOCHS)
ALL_TIME_FORMATS = (*TIME_FORMATS, *STAMP_FORMATS)
"""What the `time_format` of a column may be, beside ""."""

EARLIEST_YEAR, LATEST_YEAR = 1900, 2099
"""Numbers of eight digits are dates if they are days of these years."""
EARLIEST_MOMENT, LATEST_MOMENT = 631_152_000.0, 4_102_444_800.0
"""Numbers under a name that says time are seconds since 1970 if they lie in the years 1990 to 2099."""
MIN_DATES = 3
"""Different numbers that must all be days before a column is read as dates without being asked."""
MIN_PLAIN_MONTHS = 12
"""Different numbers that must all be months, such as 202406, if the name of the column says nothing of time: of other
numbers of this size, one in eight is a month."""
MIN_CLOCK_VALUES = 24
"""Different numbers that must all be times of day. Of other numbers up to 2400, 40 % are none: their last two digits
are above 59."""
NOON_DIGITS = 1200.0


def find_stamp_format(name: str, values: Float64s, *, asked: bool = False) -> str:
    """Return the format in which all finite numbers of a column are dates or times of day, or "" if there is none.

    Digits of dates need no name: hardly any other numbers look like them. Seconds and times of day need a name that
    says time, unless the user `asked` for times.
    """
    finite = values[np.isfinite(values)]
    if not len(finite) or not _may_be_stamps(float(finite.min()), float(finite.max()), asked or says_time(name)):
        return ""
    present = np.unique(finite)
    whole = not np.any(present % 1.0)
    enough = len(present) >= (1 if asked else MIN_DATES)
    if enough and whole and present[0] > 1e7 and not np.isnan(_days(present)).any():
        return DATE_DIGITS
    enough = len(present) >= (1 if asked else MIN_DATES if says_month(name) else MIN_PLAIN_MONTHS)
    if enough and whole and present[-1] < 1e7 and not np.isnan(_days(100.0 * present + 1.0)).any():
        return MONTH_DIGITS
    if not (asked or says_time(name)):
        return ""
    for time_format, per_second in EPOCHS.items():
        if present[0] >= EARLIEST_MOMENT * per_second and present[-1] <= LATEST_MOMENT * per_second:
            return time_format
    is_clock = whole and "time" in words_of(name) and present[-1] >= NOON_DIGITS and len(present) >= MIN_CLOCK_VALUES
    return CLOCK_DIGITS if is_clock and not np.isnan(_clocks(present)).any() else ""


def _may_be_stamps(low: float, high: float, is_time: bool) -> bool:
    """Return whether the range of numbers fits a format. Most columns end here, before their values are sorted."""
    for digits in (1e2, 1e4):  # of months and of days
        if low >= EARLIEST_YEAR * digits and high < (LATEST_YEAR + 1) * digits:
            return True
    return is_time and ((low >= 0.0 and NOON_DIGITS <= high <= 2400.0) or low >= EARLIEST_MOMENT)


def seconds_of_stamps(values: Float64s, time_format: str) -> Float64s:
    """Return the seconds that numbers stand for in a format of `STAMP_FORMATS`; NaN for numbers that stand for none."""
    if time_format == CLOCK_DIGITS:
        return _clocks(values)
    if time_format == MONTH_DIGITS:
        return seconds_of_stamps(100.0 * values + 1.0, DATE_DIGITS)
    if time_format == DATE_DIGITS:
        different, places = np.unique(values, return_inverse=True)
        return _days(different)[places]
    per_second = EPOCHS[time_format]
    inside = np.isfinite(values) & (np.abs(values) <= 10.0 * LATEST_MOMENT * per_second)
    microseconds = np.rint(np.where(inside, values, 0.0) * (1e6 / per_second)).astype(np.int64)
    seconds: Float64s = np.where(inside, seconds_in(microseconds), np.nan)
    return seconds


def _clocks(values: Float64s) -> Float64s:
    """Return the seconds of times of day as digits: 1830 is half past six in the evening, 5 is five past midnight."""
    hours, minutes = np.divmod(values, 100.0)
    valid = (values >= 0.0) & (values <= 2400.0) & (minutes < 60.0) & (values % 1.0 == 0.0)
    seconds: Float64s = np.where(valid, 3600.0 * hours + 60.0 * minutes, np.nan)
    return seconds


def _days(values: Float64s) -> Float64s:
    """Return the seconds since 1970 of days as digits, such as 20240619; NaN for numbers that are no day."""
    return np.array([_day(value) for value in values.tolist()])


def _day(value: float) -> float:
    if not EARLIEST_YEAR * 1e4 <= value < (LATEST_YEAR + 1) * 1e4 or value % 1.0:
        return np.nan
    digits = int(value)
    try:
        return 86_400.0 * (date(digits // 10_000, digits // 100 % 100, digits % 100).toordinal() - _EPOCH_DAY)
    except ValueError:
        return np.nan


_EPOCH_DAY = date(1970, 1, 1).toordinal()
