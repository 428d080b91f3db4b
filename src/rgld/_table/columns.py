"""Raw columns: values as they were read, before it is decided what they mean.

In: the values of one column. Out: a `RawColumn`: numbers, or strings as places in a list of different strings. The
columns of two parts of a table can be joined, and some rows of a column can be taken.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._arrays import Bools, Float64s, Floats, Indices, Int64s, Integers, Objects
from . import cells
from .cells import MAX_STRING_LENGTH, MISSING_WORDS


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column of a table as it was read."""

    name: str
    kind: str
    """"number", "boolean", "time" (seconds since 1970, UTC), "duration" (seconds), "text", "category" (strings whose
    type in the data frame says that they are categories), or "nested" (lists, records, bytes, which are not read)."""
    values: Float64s | Int64s
    """Shape (n,): numbers, NaN where missing; or, in a column of strings, places in `strings`, -1 where missing."""
    strings: tuple[str, ...] = ()
    """The different strings of the column."""
    exact: Objects | None = None
    """Shape (n,): the whole numbers as Python integers with all their digits; None unless some do not fit a float."""
    is_of_objects: bool = False
    """The cells were Python objects. They are of one kind in these rows; in other rows they may be of another."""
    holds: str = ""
    """What a "nested" column holds, such as List(String). Its values count as missing."""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Indices) -> "RawColumn":
        """Return the column of some rows, without the strings that only other rows have."""
        values, exact = self.values[rows], None if self.exact is None else self.exact[rows]
        if not self.strings:
            return replace(self, values=values, exact=exact)
        used, codes = np.unique(values, return_inverse=True)
        n_below = int(np.sum(used < 0))  # 1 if a value is missing (its code is -1), else 0
        strings = tuple(self.strings[int(place)] for place in used[n_below:])
        return replace(self, values=(codes - n_below).astype(np.int64), strings=strings)

    @property
    def is_string(self) -> bool:
        """Whether the values are places in `strings`."""
        return self.kind in ("text", "category")

    @property
    def missing(self) -> Bools:
        """Which values are missing, shape (n,)."""
        missing: Bools = self.values < 0 if self.is_string else np.isnan(self.values)
        return missing


def string_column(name: str, codes: Int64s, strings: Sequence[str], kind: str = "text") -> RawColumn:
    """Return a column of strings, given as places in a list of different strings. `MISSING_WORDS` become missing, and
    long strings are cut."""
    if max(map(len, strings), default=0) <= MAX_STRING_LENGTH and MISSING_WORDS.isdisjoint(map(str.strip, strings)):
        return RawColumn(name, kind, codes, tuple(strings))
    cut = [string[:MAX_STRING_LENGTH] for string in strings]
    kept = tuple(dict.fromkeys(string for string in cut if string.strip() not in MISSING_WORDS))
    places = {string: place for place, string in enumerate(kept)}
    moved = np.array([places.get(string, -1) for string in cut] + [-1], dtype=np.int64)
    return RawColumn(name, kind, moved[codes], kept)


def nested_column(name: str, n_rows: int, holds: str) -> RawColumn:
    """Return a column of lists, records or bytes: it cannot be used, but the other columns of its table can."""
    return RawColumn(name, "nested", np.broadcast_to(np.nan, n_rows), holds=holds)


def column_of_strings(name: str, present: list[str], missing: Bools, kind: str) -> RawColumn:
    """Return a column of strings, given those that are present, row by row. The places of the different strings are in
    the order in which they come."""
    places = {string: place for place, string in enumerate(dict.fromkeys(present))}
    codes = np.full(len(missing), -1)
    codes[~missing] = np.fromiter(map(places.__getitem__, present), np.int64, len(present))
    return string_column(name, codes, list(places), kind)


def without_values(column: RawColumn, words: Sequence[str]) -> RawColumn:
    """Return the column with these values as missing ones. A number is meant by any string that stands for it: -200 and
    -200.0 are the same."""
    if not words:
        return column
    meant = {cells.canonical(word) for word in words}
    if column.is_string:
        gone = np.array([*(cells.canonical(string) in meant for string in column.strings), False], dtype=bool)
        return replace(column, values=np.where(gone[column.values.astype(np.int64)], -1, column.values))
    numbers = cells.read_times(words, cells.ISO) if column.kind == "time" else cells.read_numbers(words)
    return replace(column, values=np.where(np.isin(column.values, numbers), np.nan, column.values))


def at_places(values: Float64s, codes: Integers) -> Float64s:
    """Return values[codes], NaN where a code is -1."""
    chosen: Float64s = np.append(values, np.nan)[codes]
    return chosen


def as_strings(raw: RawColumn) -> tuple[Int64s, tuple[str, ...]]:
    """Return a column as places in a list of different strings, -1 where missing."""
    if raw.is_string:
        return raw.values.astype(np.int64), raw.strings
    show = {"boolean": cells.bool_to_string, "time": cells.time_to_string}.get(raw.kind, cells.number_to_string)
    if raw.exact is None:
        different, codes = np.unique(raw.values, return_inverse=True)
        shown = ["" if np.isnan(value) else show(float(value)) for value in different]
    else:
        both = zip(raw.exact, raw.values.tolist(), strict=True)
        shown = ["" if np.isnan(value) else show(value) if digits is None else str(digits) for digits, value in both]
        codes = np.arange(len(shown))
    # Two times outside the years 1 to 9999 may be written as the same string.
    strings = tuple(dict.fromkeys(shown))
    places = {string: place for place, string in enumerate(strings)}
    codes = np.array([places[string] for string in shown], dtype=np.int64)[codes]
    return np.where(raw.missing, -1, codes), strings


def join_columns(parts: Sequence[RawColumn]) -> RawColumn:
    """Return the parts of a column as one column.

    A part in which all values are missing fits any kind. If the other parts differ in kind, the result is a column of
    strings: each part was read by its own values, so that their kind is not the column's.
    """
    first = parts[0]
    if nested := next((part for part in parts if part.kind == "nested"), None):
        return nested_column(first.name, sum(map(len, parts)), nested.holds)
    filled = [part for part in parts if not part.missing.all()]
    kinds = {part.kind for part in filled}
    if kinds == {"number", "boolean"}:  # 0 and 1 in one part, false and true in another
        parts = [replace(part, kind="number") if part.kind == "boolean" else part for part in parts]
        filled, kinds = [part for part in parts if not part.missing.all()], {"number"}
    if not filled:
        return RawColumn(first.name, "number", np.full(sum(map(len, parts)), np.nan))
    if kinds <= {"text", "category"} or len(kinds) > 1:
        return _join_strings(parts, "category" if kinds == {"category"} else "text")
    values = [part.values if part.kind in kinds else np.full(len(part), np.nan) for part in parts]
    exact = None
    if any(part.exact is not None for part in filled):
        numbers = (own.astype(np.float64) for own in values)
        exact = np.concatenate(list(map(_digits, parts, numbers)))
    is_of_objects = any(part.is_of_objects for part in filled)
    return RawColumn(first.name, filled[0].kind, np.concatenate(values), exact=exact, is_of_objects=is_of_objects)


def _digits(part: RawColumn, numbers: Floats) -> Objects:
    """Return the whole numbers of a part as Python's integers, None for others."""
    if part.exact is not None:
        return part.exact
    whole = [int(number) if number.is_integer() else None for number in numbers.tolist()]
    return np.array([*whole, None], dtype=object)[:-1]


def _join_strings(parts: Sequence[RawColumn], kind: str) -> RawColumn:
    places: dict[str, int] = {}
    codes = []
    for part in parts:
        own, strings = as_strings(part)
        moved = np.array([*(places.setdefault(string, len(places)) for string in strings), -1], dtype=np.int64)
        codes.append(moved[own])
    return RawColumn(parts[0].name, kind, np.concatenate(codes), tuple(places))
