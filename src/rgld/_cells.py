"""Cells: columns as they were read, and text that means numbers, dates or nothing.

In: texts. Out: numbers, seconds, missing. Knows no frames and no model. The rules are those a careful person would
apply to a messy file; they look at one cell at a time, so that a value reads the same in any table.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

MISSING_WORDS = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)
"""What pandas reads as missing in a CSV file: the same table must read the same whoever read the file."""

LONGEST_TEXT = 200
"""Texts are told apart by so many characters: a model file lists values, not documents."""

TRUTH = {"true": 1.0, "false": 0.0}

_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.ASCII | re.IGNORECASE)
_GROUPED_NUMBER = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", re.ASCII)
_UNITS = "$€£¥%"

ISO = "ISO 8601"
TIME_FORMATS = (
    ISO,
    *(
        f"{day}{hour}"
        for day in ("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%d %b %Y")
        for hour in ("", " %H:%M", " %H:%M:%S")
    ),
)
"""Tried in this order: where 03/04/2024 could be both, it is the fourth of March."""

READABLE_SHARE = 0.9
"""A text column is one of numbers (dates) if this share of its values reads as such; the rest counts as missing."""


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column of a table as it was read."""

    name: str
    kind: str
    """"number", "boolean", "time" (seconds since 1970, UTC), "duration" (seconds) or "text"."""
    values: NDArray[np.float64] | NDArray[np.int64]
    """Shape (n,): numbers, NaN where missing; for text places in `texts`, -1 where missing."""
    texts: tuple[str, ...] = ()
    """The different texts of the column, sorted."""

    def __len__(self) -> int:
        return len(self.values)


def text_column(name: str, codes: NDArray[np.int64], texts: Sequence[str]) -> RawColumn:
    """Return a text column; missing words become missing, long texts are cut, texts of truth values become these."""
    cut = [text[:LONGEST_TEXT] for text in texts]
    kept = sorted({text for text in cut if text.strip() not in MISSING_WORDS})
    if kept and all(text.lower() in TRUTH for text in kept):
        return RawColumn(name, "boolean", at_places(np.array([TRUTH.get(t.lower(), np.nan) for t in cut]), codes))
    places = {text: place for place, text in enumerate(kept)}
    moved = np.array([places.get(text, -1) for text in cut] + [-1], dtype=np.int64)
    return RawColumn(name, "text", moved[codes], tuple(kept))


def at_places(values: NDArray[np.float64], codes: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return values[codes], NaN where a code is -1."""
    chosen: NDArray[np.float64] = np.append(values, np.nan)[codes]
    return chosen


def read_numbers(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return the numbers the texts stand for, NaN for a text that is none: 12, 1e-3, 1,234.50, $9.99, 45 %."""
    return np.array([_number(text) for text in texts], dtype=np.float64)


def _number(text: str) -> float:
    stripped = text.strip().strip(_UNITS).strip()
    if _PLAIN_NUMBER.fullmatch(stripped):
        return float(stripped)
    if _GROUPED_NUMBER.fullmatch(stripped):
        return float(stripped.replace(",", ""))
    return float("nan")


def read_times(texts: Sequence[str], time_format: str) -> NDArray[np.float64]:
    """Return the seconds since 1970 the texts stand for, NaN for a text that is no date of this format."""
    return np.array([_seconds(text.strip(), time_format) for text in texts], dtype=np.float64)


def _seconds(text: str, time_format: str) -> float:
    try:
        time = datetime.fromisoformat(text) if time_format == ISO else datetime.strptime(text, time_format)
    except ValueError:
        return float("nan")
    return seconds_of(time)


def seconds_of(time: datetime) -> float:
    """Return seconds since 1970, in whole microseconds; a time without a zone counts as UTC."""
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds) / 1e6


def find_time_format(texts: Sequence[str], counts: NDArray[np.integer]) -> str:
    """Return the first format that reads most of the values, or "" if none does."""
    few = texts[:: max(1, len(texts) // 50)]
    for time_format in TIME_FORMATS:
        if np.isnan(read_times(few, time_format)).mean() > 0.5:
            continue
        if counts[~np.isnan(read_times(texts, time_format))].sum() >= READABLE_SHARE * counts.sum():
            return time_format
    return ""


def number_text(value: float) -> str:
    """Return a number as a category is named: the same for 3 and 3.0."""
    return str(int(value)) if value == int(value) else repr(float(value))


def time_text(seconds: float) -> str:
    """Return a time as people write it, to the second, without a time of day at midnight."""
    time = datetime.fromtimestamp(round(seconds), UTC)
    return time.strftime("%Y-%m-%d %H:%M:%S" if time.hour or time.minute or time.second else "%Y-%m-%d")
