"""Cells: columns as they were read, and text that means numbers, dates or nothing.

In: texts. Out: numbers, seconds, missing. Knows no frames and no model. The rules are those a careful person would
apply to a messy file; they look at one cell at a time, so that a value reads the same in any table.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING_WORDS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null", "-", "--", "?"}
)
"""What pandas reads as missing in a CSV file, so that a table reads the same whoever read the file; and what people
type where they have no value."""

LONGEST_TEXT = 200
"""Texts are told apart by so many characters: a model file lists values, not documents."""

TRUTH = {"true": 1.0, "false": 0.0}

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
}
_TIMES = {name: re.compile(f"{day}( {_CLOCK})?", re.ASCII) for name, day in _DAYS.items()}
TIME_FORMATS = (ISO, *_TIMES)
"""Where two read the same number of values, the first is taken: 03/04/2024 alone is the fourth of March."""
_MONTHS = dict(jan=1, feb=2, mar=3, apr=4, may=5, jun=6, jul=7, aug=8, sep=9, oct=10, nov=11, dec=12)
_DURATION = re.compile(r"((-?\d+) days?,? \+?)?(\d{1,3}):(\d{2})(:(\d{2}(\.\d+)?))?", re.ASCII)

READABLE_SHARE = 0.9
"""A text column is one of numbers (dates) if this share of its values reads as such; the rest counts as missing."""
LARGEST_DIGITS = 1e22
"""Larger whole numbers are named with an exponent: up to it, the digits of a float are those of the integer."""
MANY_TO_READ = 10_000
"""Of more different texts than this, some are looked at before all are read."""
A_FEW = 100


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column of a table as it was read."""

    name: str
    kind: str
    """"number", "boolean", "time" (seconds since 1970, UTC), "duration" (seconds), "text", or "category": texts that
    their type says are one."""
    values: NDArray[np.float64] | NDArray[np.int64]
    """Shape (n,): numbers, NaN where missing; for texts places in `texts`, -1 where missing."""
    texts: tuple[str, ...] = ()
    """The different texts of the column."""
    exact: NDArray[np.object_] | None = None
    """Shape (n,): whole numbers with all their digits, if some have more than a float."""
    is_loose: bool = False
    """The cells are Python objects, which happen to be of one kind in these rows."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[np.intp]) -> "RawColumn":
        """Return the column of some rows."""
        return replace(self, values=self.values[rows], exact=None if self.exact is None else self.exact[rows])

    @property
    def is_text(self) -> bool:
        """Values are places in `texts`."""
        return self.kind in ("text", "category")

    @property
    def missing(self) -> NDArray[np.bool_]:
        """Which rows have no value, shape (n,)."""
        missing: NDArray[np.bool_] = self.values < 0 if self.is_text else np.isnan(self.values)
        return missing


def text_column(name: str, codes: NDArray[np.int64], texts: Sequence[str], kind: str = "text") -> RawColumn:
    """Return a text column of different texts; missing words become missing, long texts are cut."""
    if max(map(len, texts), default=0) <= LONGEST_TEXT and MISSING_WORDS.isdisjoint(map(str.strip, texts)):
        return RawColumn(name, kind, codes, tuple(texts))
    cut = [text[:LONGEST_TEXT] for text in texts]
    kept = tuple(dict.fromkeys(text for text in cut if text.strip() not in MISSING_WORDS))
    places = {text: place for place, text in enumerate(kept)}
    moved = np.array([places.get(text, -1) for text in cut] + [-1], dtype=np.int64)
    return RawColumn(name, kind, moved[codes], kept)


def number_texts(name: str, present: list[str], missing: NDArray[np.bool_], kind: str) -> RawColumn:
    """Number the different texts in the order they come in."""
    places = {text: place for place, text in enumerate(dict.fromkeys(present))}
    codes = np.full(len(missing), -1)
    codes[~missing] = np.fromiter(map(places.__getitem__, present), np.int64, len(present))
    return text_column(name, codes, list(places), kind)


def at_places(values: NDArray[np.float64], codes: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return values[codes], NaN where a code is -1."""
    chosen: NDArray[np.float64] = np.append(values, np.nan)[codes]
    return chosen


def read_numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the numbers the texts stand for, NaN for a text that is none: 12, 1e-3, 1,234.50, 1'234, -$9.99, 45 %."""
    return np.array([_number(text) for text in texts], dtype=np.float64)


def _number(text: str) -> float:
    stripped = text.strip().strip(_UNITS)
    if bracketed := _BRACKETED.fullmatch(stripped):  # a loss, in accounts
        return -_number(bracketed[1])
    if stripped[:1] in ("-", "+"):
        stripped = stripped[0] + stripped[1:].lstrip(_UNITS)
    if _PLAIN_NUMBER.fullmatch(stripped):
        return float(stripped)
    if _GROUPED_NUMBER.fullmatch(stripped):
        return float(re.sub("[,'’ \u00a0\u202f]", "", stripped))
    return math.nan


def read_truths(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return 1 for true, 0 for false, in any case, the numbers of other texts, and NaN for the rest."""
    return np.array([TRUTH.get(text.strip().lower(), _number(text)) for text in texts], dtype=np.float64)


def read_durations(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return seconds, NaN for a text that is no time of day or duration: 08:30, 8:30:15.5, 2 days 00:10:00."""
    return np.array([_duration(text.strip()) for text in texts], dtype=np.float64)


def _duration(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if not found:
        return math.nan
    _, days, hours, minutes, _, seconds, _ = found.groups()
    if int(minutes) > 59 or float(seconds or 0) >= 60.0:
        return math.nan
    return _whole_microseconds(int(days or 0), int(hours), int(minutes), float(seconds or 0))


def read_times(texts: Sequence[str], time_format: str) -> NDArray[np.float64]:
    """Return the seconds since 1970 the texts stand for, NaN for a text that is no date of this format."""
    read = _iso_seconds if time_format == ISO else lambda text: _seconds(_TIMES[time_format].fullmatch(text))
    return np.array([read(text.strip()) for text in texts], dtype=np.float64)


def _iso_seconds(text: str) -> float:
    try:
        return seconds_of(datetime.fromisoformat(text))
    except ValueError:
        return math.nan


def _seconds(found: re.Match[str] | None) -> float:
    """Return the seconds of a date written as one of `_TIMES`."""
    if not found:
        return math.nan
    month, hour, half = (found[name] or "" for name in ("month", "hour", "half"))
    try:
        day = date(int(found["year"]), int(_MONTHS.get(month.lower(), month)), int(found["day"]))
    except ValueError:
        return math.nan
    hours, minutes, seconds = int(hour or 0), int(found["minute"] or 0), float(found["second"] or 0)
    if half:
        hours = hours % 12 + 12 * (half in "Pp") if 1 <= hours <= 12 else 24
    if hours > 23 or minutes > 59 or seconds >= 60.0:
        return math.nan
    return _whole_microseconds(day.toordinal() - _FIRST_DAY, hours, minutes, seconds)


def _whole_microseconds(days: int, hours: int, minutes: int, seconds: float) -> float:
    """Return seconds, rounded as a typed column's are."""
    return float(seconds_in((days * 24 + hours) * 3_600_000_000 + minutes * 60_000_000 + round(seconds * 1e6)))


def seconds_in(microseconds: Any) -> Any:
    """Return an integer, or an array of them, in seconds: by one formula, so that all ways to a time end in one float.

    Not divided by a million as a whole: beyond 2255, microseconds are no floats.
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


def find_time_format(texts: Sequence[str], counts: NDArray[np.integer], least_share: float = READABLE_SHARE) -> str:
    """Return the format that reads most of the values, or "" if none reads this share of them."""
    few = texts[:: max(1, len(texts) // A_FEW)]
    best, most = "", 0
    for time_format in TIME_FORMATS:
        if np.isnan(read_times(few, time_format)).all():
            continue
        readable = int(counts[~np.isnan(read_times(texts, time_format))].sum())
        if readable > most and readable >= least_share * counts.sum():
            best, most = time_format, readable
    return best


def some_are_numbers(texts: Sequence[str], counts: NDArray[np.integer]) -> bool:
    """Tell whether reading all texts as numbers is worth the time: of many, a few and the most frequent are tried."""
    if len(texts) <= MANY_TO_READ:
        return True
    most = np.argpartition(counts, -A_FEW)[-A_FEW:]
    few = [*texts[:: len(texts) // A_FEW], *(texts[i] for i in most)]
    return not np.isnan(read_numbers(few)).all()


def quoted(text: str) -> str:
    """Return a text as it is named in a message: in quotes, cut short."""
    shown = repr(text[:40])
    return shown if len(shown) <= 60 else f"{shown[:59]}…"


def canonical(text: str) -> str:
    """Return what a value of a category is called however it was typed: true for True, 3 for 3.0 and 03."""
    stripped = text.strip()
    if stripped.lower() in TRUTH:
        return stripped.lower()
    if long := _LONG_INTEGER.fullmatch(stripped):  # an id, of which a float would lose the last digits
        return long[1].strip("+") + long[2]
    return number_text(float(stripped)) if _PLAIN_NUMBER.fullmatch(stripped) else text


def number_text(value: float) -> str:
    """Return a number as a category is named: the same for 3 and 3.0."""
    return str(int(value)) if abs(value) < LARGEST_DIGITS and value == int(value) else repr(float(value))


def truth_text(value: object) -> str:
    """Return a truth value as a category is named."""
    return "true" if value else "false"


def time_text(seconds: float) -> str:
    """Return a time in ISO 8601, which reads back to the bit, without a time of day at midnight."""
    try:
        # Not fromtimestamp, which knows no time before 1970 on some machines.
        time = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:  # beyond the years 1 to 9999
        return f"{seconds:g} s"
    # Not strftime, which writes years before 1000 with fewer than four digits on some machines.
    return time.isoformat(" ").removesuffix(" 00:00:00")
