"""Cells: strings that stand for numbers, bools, dates, durations or a missing value.

In: strings. Out: numbers, seconds, missing. Knows no frames and no model. The rules look at one cell at a time, so that
a value reads the same in any table. They are the rules that a careful person would apply to a messy file.
"""

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from .._arrays import Float64s, Integers

MISSING_WORDS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null", "-", "--", "?", "\\N"}
)
"""Strings that stand for a missing value: those that pandas reads as missing in a CSV file, so that a table reads the
same whichever library read the file, those that people type where they have no value, and that of Postgres."""

MAX_STRING_LENGTH = 200
"""Characters of a string that are kept; the rest is cut. A model file lists values, not documents."""

BOOLS = {"true": 1.0, "false": 0.0}

_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}((,\d{3})+|('\d{3})+|(’\d{3})+|([ \u00a0\u202f]\d{3})+)(\.\d*)?", re.ASCII)
_BRACKETED = re.compile(r"\(([^()+-][^()]*)\)")
_UNITS = "$€£¥% "
_LONG_INTEGER = re.compile(r"([+-]?)0*([1-9]\d{15,})(\.0*)?", re.ASCII)

ISO = "ISO 8601"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(:(?P<second>\d{2}(\.\d+)?))?( ?(?P<half>[AaPp])[Mm])?"
_DAYS = {
    "MM/DD/YYYY": r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})",
    "DD/MM/YYYY": r"(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>\d{4})",
    "DD.MM.YYYY": r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})",
    "YYYY/MM/DD": r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})",
    "DD-MM-YYYY": r"(?P<day>\d{1,2})-(?P<month>\d{1,2})-(?P<year>\d{4})",
    "DD Mon YYYY": r"(?P<day>\d{1,2}) (?P<month>[A-Za-z]{3}) (?P<year>\d{4})",
    "DD Month YYYY": r"(?P<day>\d{1,2})\.? (?P<month>[A-Za-z]{3,9}) (?P<year>\d{4})",
    "DD-Mon-YYYY": r"(?P<day>\d{1,2})-(?P<month>[A-Za-z]{3,9})-(?P<year>\d{4})",
    "DD-Mon-YY": r"(?P<day>\d{1,2})-(?P<month>[A-Za-z]{3,9})-(?P<year>\d{2})",
    "Mon DD, YYYY": r"(?P<month>[A-Za-z]{3,9})\.? (?P<day>\d{1,2}),? (?P<year>\d{4}),?",
    "YYYY-MM": r"(?P<year>\d{4})-(?P<month>\d{2})(?P<day>)",
    "MM/DD/YY": r"(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{2})",
    "DD/MM/YY": r"(?P<day>\d{1,2})/(?P<month>\d{1,2})/(?P<year>\d{2})",
    "DD.MM.YY": r"(?P<day>\d{2})\.(?P<month>\d{2})\.(?P<year>\d{2})",
}
_TIMES = {name: re.compile(f"{day}( {_CLOCK})?", re.ASCII) for name, day in _DAYS.items()}
LAST_YEAR_OF_THIS_CENTURY = 68
"""A year of two digits up to this one is of the years 2000 to 2068, a later one of 1969 to 1999, as in POSIX."""
TIME_FORMATS = (ISO, *_TIMES)
"""The formats of dates. If two formats read equally many values, the first in this list is taken: a column that holds
03/04/2024 alone holds the fourth of March."""
_MONTH_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTHS = {name[:length]: i for i, name in enumerate(_MONTH_NAMES, 1) for length in (3, 4, len(name))}
_DURATION = re.compile(r"((-?\d+) days?,? \+?)?(\d{1,3}):(\d{2})(:(\d{2}(\.\d+)?))?", re.ASCII)
_DOTTED_CLOCK = re.compile(r"([01]?\d|2[0-3])\.([0-5]\d)\.([0-5]\d)", re.ASCII)

MIN_READABLE_FRACTION = 0.9
"""A text column becomes a column of numbers (or dates) if at least this fraction of its values reads as numbers (or
dates). The other values count as missing."""
MAX_WITHOUT_EXPONENT = 1e22
"""Whole numbers from here on are written with an exponent. Below, the digits of a float are those of the integer."""
MAX_READ_WITHOUT_TRIAL = 10_000
"""If a column has more different strings than this, `N_TRIAL_STRINGS` of them are read first, to see whether reading
all of them is worth the time."""
N_TRIAL_STRINGS = 100


def read_numbers(strings: Sequence[str]) -> Float64s:
    """Return the numbers that strings stand for: 12, 1e-3, 1,234.50, 1'234, -$9.99, 45 %. Other strings give NaN."""
    return np.array([_number(string) for string in strings], dtype=np.float64)


def _number(string: str) -> float:
    stripped = string.strip().strip(_UNITS)
    if bracketed := _BRACKETED.fullmatch(stripped):  # accountants write a loss of 5 as (5)
        return -_number(bracketed[1])
    if stripped[:1] in ("-", "+"):
        stripped = stripped[0] + stripped[1:].lstrip(_UNITS)
    if _PLAIN_NUMBER.fullmatch(stripped):
        return float(stripped)
    if _GROUPED_NUMBER.fullmatch(stripped):
        return float(re.sub("[,'’ \u00a0\u202f]", "", stripped))
    return math.nan


def read_bools(strings: Sequence[str]) -> Float64s:
    """Return 1 for true and 0 for false (upper or lower case), the number for a number, and NaN for other strings."""
    return np.array([BOOLS.get(string.strip().lower(), _number(string)) for string in strings], dtype=np.float64)


def read_durations(strings: Sequence[str]) -> Float64s:
    """Return the seconds of times of day and durations: 08:30, 8:30:15.5, 18.00.00, 2 days 00:10:00. Other strings give
    NaN."""
    return np.array([_duration(string.strip()) for string in strings], dtype=np.float64)


def _duration(string: str) -> float:
    found = _DURATION.fullmatch(string)
    if not found:
        if clock := _DOTTED_CLOCK.fullmatch(string):  # 18.00.00
            return _whole_microseconds(0, int(clock[1]), int(clock[2]), int(clock[3]))
        return math.nan
    _, days, hours, minutes, _, seconds, _ = found.groups()
    if int(minutes) > 59 or float(seconds or 0) >= 60.0:
        return math.nan
    return _whole_microseconds(int(days or 0), int(hours), int(minutes), float(seconds or 0))


def read_times(strings: Sequence[str], time_format: str) -> Float64s:
    """Return the seconds since 1970 that the strings stand for, NaN for strings that are not dates of this format."""
    read = _iso_seconds if time_format == ISO else lambda string: _seconds(_TIMES[time_format].fullmatch(string))
    return np.array([read(string.strip()) for string in strings], dtype=np.float64)


def _iso_seconds(string: str) -> float:
    try:
        return seconds_of(datetime.fromisoformat(string))
    except ValueError:
        return math.nan


def _seconds(found: re.Match[str] | None) -> float:
    """Return the seconds since 1970 of a date that a pattern of `_TIMES` found; NaN if it found none."""
    if not found:
        return math.nan
    month, hour, half = (found[name] or "" for name in ("month", "hour", "half"))
    try:
        year = int(found["year"])
        if len(found["year"]) == 2:
            year += 2000 if year <= LAST_YEAR_OF_THIS_CENTURY else 1900
        day = date(year, int(_MONTHS.get(month.lower(), month)), int(found["day"] or 1))
    except ValueError:
        return math.nan
    hours, minutes, seconds = int(hour or 0), int(found["minute"] or 0), float(found["second"] or 0)
    if half:
        hours = hours % 12 + 12 * (half in "Pp") if 1 <= hours <= 12 else 24
    if hours > 23 or minutes > 59 or seconds >= 60.0:
        return math.nan
    return _whole_microseconds(day.toordinal() - _FIRST_DAY, hours, minutes, seconds)


def _whole_microseconds(days: int, hours: int, minutes: int, seconds: float) -> float:
    """Return seconds, rounded to microseconds as the times of a typed column are."""
    return float(seconds_in((days * 24 + hours) * 3_600_000_000 + minutes * 60_000_000 + round(seconds * 1e6)))


def seconds_in(microseconds: Any) -> Any:
    """Return microseconds, an integer or an array of integers, as seconds.

    All times go through this one formula, so that the same time always gives the same float. Dividing the whole integer
    by a million would lose digits: from the year 2255 on, microseconds since 1970 do not fit into a float.
    """
    seconds, rest = divmod(microseconds, 1_000_000)
    return seconds + rest / 1e6


_FIRST_DAY = date(1970, 1, 1).toordinal()
_EPOCH, _EPOCH_UTC = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def seconds_of(time: datetime) -> float:
    """Return seconds since 1970, in whole microseconds; a time without a zone counts as UTC."""
    return seconds_of_span(time - (_EPOCH_UTC if time.tzinfo else _EPOCH))


def seconds_of_span(span: timedelta) -> float:
    """Return a duration in seconds, in whole microseconds."""
    return float(seconds_in(span // _MICROSECOND))


def find_time_format(strings: Sequence[str], counts: Integers, min_fraction: float = MIN_READABLE_FRACTION) -> str:
    """Return the format that reads most of the values, or "" if no format reads at least this fraction of them."""
    few = strings[:: max(1, len(strings) // N_TRIAL_STRINGS)]
    best, most = "", 0
    for time_format in TIME_FORMATS:
        if np.isnan(read_times(few, time_format)).all():
            continue
        readable = int(counts[~np.isnan(read_times(strings, time_format))].sum())
        if readable > most and readable >= min_fraction * counts.sum():
            best, most = time_format, readable
    return best


def some_are_numbers(strings: Sequence[str], counts: Integers) -> bool:
    """Return whether reading all strings as numbers is worth the time. If there are many, only some of them and the
    most frequent ones are tried."""
    if len(strings) <= MAX_READ_WITHOUT_TRIAL:
        return True
    most = np.argpartition(counts, -N_TRIAL_STRINGS)[-N_TRIAL_STRINGS:]
    few = [*strings[:: len(strings) // N_TRIAL_STRINGS], *(strings[i] for i in most)]
    return not np.isnan(read_numbers(few)).all()


def quoted(string: str) -> str:
    """Return a string as it appears in a message: in quotes, and cut short."""
    shown = repr(string[:40])
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def canonical(string: str) -> str:
    """Return the one name of a category's value, however it was typed: true for True, 3 for 3.0 and 03."""
    stripped = string.strip()
    if stripped.lower() in BOOLS:
        return stripped.lower()
    if long := _LONG_INTEGER.fullmatch(stripped):  # an id: as a float it would lose its last digits
        return long[1].strip("+") + long[2]
    return number_to_string(float(stripped)) if _PLAIN_NUMBER.fullmatch(stripped) else string


def number_to_string(value: float) -> str:
    """Return a number as a category's value: the same string for 3 and 3.0."""
    return str(int(value)) if abs(value) < MAX_WITHOUT_EXPONENT and value == int(value) else repr(float(value))


def bool_to_string(value: object) -> str:
    """Return a bool as a category's value."""
    return "true" if value else "false"


def time_to_string(seconds: float) -> str:
    """Return a time in ISO 8601, which reads back as the same float. At midnight the time of day is left out."""
    try:
        # Not fromtimestamp: on some machines it refuses times before 1970.
        time = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:  # beyond the years 1 to 9999
        return f"{seconds:g} s"
    # Not strftime: on some machines it writes years before 1000 with fewer than four digits.
    return time.isoformat(" ").removesuffix(" 00:00:00")
