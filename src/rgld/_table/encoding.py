"""Encoding: how each column of a table becomes numbers.

In: columns as they were read. Out: an `Encoding`, which is part of the frozen model, and matrices (n, e) of finite
numbers. How a row is encoded depends on its own cells and on what was learned from the training rows (`infer.py`), and
on nothing else. docs/tables.md lists every rule.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Annotated

import numpy as np

from .._arrays import Array, Bools, Float64s, Floats, Indices, Int64s, normal_quantiles
from ..exceptions import TableError
from . import cells
from .columns import RawColumn, as_strings, at_places, without_values
from .future import STEP, DateRange, are_late, beyond, natural_limits, put_back, spread
from .hashing import integer_hashes
from .stamps import STAMP_FORMATS, seconds_of_stamps
from .styles import NumberStyle, read_in_style

MAX_ONE_HOT_VALUES = 8
"""A category of at most this many values has an encoded column for each; more would outweigh the other columns."""
MAX_LISTED_VALUES = 1000
"""The counts of a category's most frequent values are kept, of at most this many; the other values share one count."""

DAY, WEEK, YEAR = 86_400.0, 7 * 86_400.0, 365.2425 * 86_400.0
CYCLES = {"day": DAY, "week": WEEK, "year": YEAR}
PERIODS = {"day": DAY, "week": WEEK, "year": 52 * WEEK}
"""Whole times by which a date can be moved without leaving its hour, its weekday, its season."""
MONDAY = 4 * DAY
"""Seconds from the beginning of 1970, a Thursday, to the first Monday."""

COLUMN_KINDS = ("number", "boolean", "time", "duration", "category", "dropped")
KIND_SINGULARS = {"number": "a number", "boolean": "true or false", "time": "a date", "duration": "a duration"}
KIND_PLURALS = {"number": "numbers", "boolean": "true/false values", "time": "dates", "duration": "durations"}
ONLY_VALUE = ("value",)
"""The parts of a column that is encoded as one number."""


@dataclass(frozen=True)
class Column:
    """How one column is read."""

    name: str
    kind: str
    """One of `COLUMN_KINDS`."""
    note: str = ""
    """Why the column was dropped, why it is a code, or which of its values were not read."""
    gap_share: float = 0.0
    """Fraction of the training rows whose value is missing; always 0 for a category, where missing is a value. Above 0,
    an encoded column of its own tells the missing values from the others."""
    time_format: str = ""
    """How strings or numbers are read as dates or times of day: one of `stamps.ALL_TIME_FORMATS`, or ""."""
    cycles: tuple[str, ...] = ()
    """Names of `CYCLES`; each is encoded as a sine and a cosine."""
    values: tuple[str, ...] = ()
    """A category's values, the most frequent first; "" stands for missing."""
    counts: tuple[int, ...] = ()
    """For each value, the number of training rows that have it."""
    rest: float = 0.0
    """Mean number of training rows of the values that are not listed; 0 if all are listed."""
    hint: str = field(default="", compare=False)
    """What may be wrong with how the column is read, with the option of the command line that cures it; or ""."""
    na_values: tuple[str, ...] = ()
    """Values that count as missing because the user said so."""
    n_unread: int = 0
    """Number of training rows whose string could not be read and counts as missing."""
    decimal_comma: bool = False
    """Strings have decimal commas: 1.297,38 is 1297.38."""
    unit: str = ""
    """A word beside each number, as kg in 12 kg."""
    date_knots: tuple[float, ...] = ()
    """Quantiles of the training dates (in seconds since 1970) or years, without those far out; empty if no later date
    is natural (`future.py`)."""
    natural_until: float = 0.0
    """Dates after the last quantile and up to this one are natural."""
    far_shares: tuple[float, ...] = ()
    """Fractions of the training dates that are of an earlier and of a later age (`far_dates.py`); () without
    `date_knots`. Models of older releases have none either: they move each late date by itself."""
    gap_value: float | None = None
    """If no training value was missing: the number that encodes a missing value, outside the training range. For a
    category it is only a mark, 0, because a category has a code for values never seen. None if training values were
    missing, in arrays, and in models of older releases."""

    @property
    def has_gaps(self) -> bool:
        """Whether the value is missing in some training rows."""
        return self.gap_share > 0.0

    @property
    def one_hot(self) -> tuple[str, ...]:
        """The values that have an encoded column of their own. A category of two values needs only one such column."""
        if self.kind != "category" or len(self.values) > MAX_ONE_HOT_VALUES:
            return ()
        return self.values[1:] if len(self.values) == 2 else self.values

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the column's encoded columns."""
        if self.kind == "number" and not self.gap_share:  # a shortcut for the thousands of columns of wide tables
            return ONLY_VALUE
        if self.kind == "dropped":
            return ()
        if self.kind == "category":
            shown = tuple(f"is {value!r}" if value else "is missing" for value in self.one_hot)
            return (*shown, "rarity")
        waves = tuple(f"{wave} of the {cycle}" for cycle in self.cycles for wave in ("sine", "cosine"))
        return ("value", *waves, *(("is missing",) if self.has_gaps else ()))

    def is_natural(self, date: float) -> bool:
        """Return whether a date is later than the training rows by no more than is natural."""
        return bool(self.date_knots) and self.date_knots[-1] < date <= self.natural_until

    @property
    def is_as_it_is(self) -> bool:
        """Whether a number of the table is its own encoded value, unless it is missing."""
        is_number = self.kind in ("number", "boolean", "duration")
        return is_number and not self.time_format and not self.na_values and not self.date_knots

    @cached_property
    def is_plain(self) -> bool:
        """Whether the column is encoded as it is, unless a value is missing. Computed once: wide tables have thousands
        of columns, and arrays share theirs."""
        return self.is_as_it_is and self.parts == ONLY_VALUE

    @property
    def style(self) -> NumberStyle:
        """How strings are written as numbers."""
        return NumberStyle(self.decimal_comma, self.unit)

    def place(self, string: str) -> int:
        """Return the place of a value in `values`, -1 if it is not listed.

        If the string itself is not listed, the value with the same meaning is taken, such as 3 for 3.0: a column may
        come as strings in one file and as numbers in another.
        """
        return self._places.get(string, self._places_of_meanings.get(cells.canonical(string), -1))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def _places_of_meanings(self) -> dict[str, int]:
        """The place of the most frequent value of each meaning."""
        return {cells.canonical(value): place for place, value in reversed(list(enumerate(self.values)))}


@dataclass(frozen=True, eq=False)
class Encoding:
    """How all columns of a table are read, and what replaces missing values."""

    columns: tuple[Column, ...]
    fill: Annotated[Float64s, Array("columns", since=2)]
    """What replaces a missing value: the training median in a column's value, 0 in its other parts."""
    n_rows: int
    """Training rows, over which the values of categories were counted."""

    @cached_property
    def owner(self) -> Indices:
        """For each encoded column the index of its column in the table, shape (e,)."""
        return np.repeat(np.arange(len(self.columns)), [len(column.parts) for column in self.columns])

    @cached_property
    def starts(self) -> Indices:
        """For each column of the table the index of its first encoded column, shape (d,)."""
        if self.is_plain:
            return np.arange(len(self.columns))
        return np.cumsum([0, *(len(column.parts) for column in self.columns)])[:-1]

    @cached_property
    def weights(self) -> Float64s:
        """What views multiply the encoded columns by, shape (e,).

        A value, a rarity and the indicator of missing values have weight 1. The values of a category share the weight
        of one column, and so do the sine and the cosine of a cycle. A date counts half: new rows are always later than
        the training rows.
        """
        return np.array([weight for column in self.columns for weight in _weights(column)])

    @cached_property
    def is_indicator(self) -> Bools:
        """Which encoded columns hold two values only, shape (e,). They are normal scores already and are not scaled."""
        if self.is_plain:
            return np.zeros(len(self.columns), bool)
        flags = [part.startswith("is ") for column in self.columns for part in column.parts]
        return np.array(flags, dtype=bool)

    @cached_property
    def is_plain(self) -> bool:
        """Whether all columns are encoded as they are: a matrix without missing values is its own encoded matrix."""
        return all(column.is_plain for column in self.columns)

    @cached_property
    def category_codes(self) -> dict[str, Float64s]:
        """For each category by name, its values as encoded numbers, one value a row; the last row is a value that is
        not listed. Computed once, so that a single row is encoded fast."""
        return {
            column.name: _category_codes(column, self.n_rows) for column in self.columns if column.kind == "category"
        }

    @cached_property
    def gap_codes(self) -> tuple[Indices, Indices, Float64s]:
        """The columns in which no training value was missing, the index of an encoded column of each, and what a
        missing value is encoded as there."""
        found = [(j, column) for j, column in enumerate(self.columns) if column.gap_value is not None]
        places = [self.starts[j] + (len(c.parts) - 1 if c.kind == "category" else 0) for j, c in found]
        values = [self.category_codes[c.name][-1, -1] if c.kind == "category" else c.gap_value for _, c in found]
        return np.array([j for j, _ in found], np.intp), np.array(places, np.intp), np.array(values, np.float64)

    @cached_property
    def date_ranges(self) -> tuple[Indices, tuple[DateRange, ...]]:
        """The columns whose late dates are put back together, and the training dates of each."""
        found = [(j, column) for j, column in enumerate(self.columns) if column.far_shares]
        return np.array([j for j, _ in found], np.intp), tuple(
            DateRange(
                np.array(column.date_knots),
                column.natural_until,
                tuple(PERIODS[cycle] for cycle in column.cycles),
                column.kind == "number",
            )
            for _, column in found
        )

    @cached_property
    def date_limits(self) -> tuple[Indices, Indices, Float64s, Float64s]:
        """The columns whose dates can be of another age, the encoded column of each, and the earliest and the latest
        date that are not."""
        found = [(j, natural_limits(column.date_knots)) for j, column in enumerate(self.columns) if column.far_shares]
        columns = np.array([j for j, _ in found], np.intp)
        limits = np.array([limits for _, limits in found], np.float64).reshape(-1, 2)
        return columns, self.starts[columns], limits[:, 0], limits[:, 1]

    @cached_property
    def is_undated(self) -> Bools:
        """Which encoded columns are not those of a date that can be put back, shape (e,)."""
        return np.array([not self.columns[j].far_shares for j in self.owner], bool)

    @cached_property
    def dropped(self) -> frozenset[str]:
        """Names of the columns that were dropped: no score depends on them."""
        return frozenset(column.name for column in self.columns if column.kind == "dropped")


def _weights(column: Column) -> Iterator[float]:
    for part in column.parts:
        if column.kind == "category":
            yield 1.0 if part == "rarity" else len(column.one_hot) ** -0.5
        elif "of the" in part:
            yield 0.5**0.5
        else:
            yield 0.5 if column.kind == "time" and part == "value" else 1.0


def must_read_strings(column: Column, raw: RawColumn) -> bool:
    """Return whether a column must be read string by string: it holds strings, or Python objects of another kind than
    in training. (Beside a string, such objects would have been read as strings.)"""
    return raw.is_string or (raw.is_of_objects and (column.kind == "time") != (raw.kind == "time"))


def read_values(column: Column, raw: RawColumn, row_indices: Int64s | None = None) -> Float64s:
    """Return a column's numbers or seconds, NaN where a value is missing or a string cannot be read."""
    raw = without_values(raw, column.na_values)
    if must_read_strings(column, raw):
        codes, strings = as_strings(raw)
        return at_places(numbers_of_strings(column, strings), codes)
    if column.time_format in STAMP_FORMATS and raw.kind == "number":
        return seconds_of_stamps(raw.values.astype(np.float64), column.time_format)
    if (column.kind == "time") != (raw.kind == "time") and not raw.missing.all():
        found, expected = ("times" if kind == "time" else "numbers" for kind in (raw.kind, column.kind))
        where = "" if row_indices is None else f" from row {row_indices[raw.missing.argmin()]} on"
        raise TableError(
            f"Column {column.name!r} holds {found}{where}, expected {expected} as in the training table: convert it "
            "first."
        )
    return raw.values.astype(np.float64, copy=False)


def numbers_of_strings(column: Column, strings: Sequence[str]) -> Float64s:
    """Return what strings stand for in a column of numbers, bools, durations or times; NaN if they stand for nothing.

    A string that cannot be read is never an error, whatever the other rows hold: it counts as missing.
    """
    if column.time_format in STAMP_FORMATS:
        stamps = seconds_of_stamps(cells.read_numbers(strings), column.time_format)
        others = cells.read_times(strings, cells.ISO) if column.kind == "time" else cells.read_durations(strings)
        return np.where(np.isnan(stamps), others, stamps)
    if column.kind == "time":
        times = cells.read_times(strings, cells.ISO)
        if column.time_format not in ("", cells.ISO):
            # Date objects among strings were written in ISO 8601. No string is a date in both formats.
            times = np.fmax(times, cells.read_times(strings, column.time_format))
        return times
    numbers = read_in_style(strings, column.style) if column.style != NumberStyle() else cells.read_bools(strings)
    return np.fmax(numbers, cells.read_durations(strings)) if column.kind == "duration" else numbers


def encode_columns(
    encoding: Encoding,
    columns: Sequence[RawColumn],
    row_indices: Int64s | None = None,
    unread: list[str] | None = None,
) -> Float64s:
    """Return the table as finite numbers, shape (n, e), in Fortran order: each column is contiguous in memory.

    If a list `unread` is given, a sentence is added to it for each column with values that cannot be read, if all
    values of the training rows could be.
    """
    n = len(columns[0])
    matrix = np.empty((len(encoding.fill), n)).T
    dates = []
    for column, raw, start in zip(encoding.columns, columns, encoding.starts, strict=True):
        if raw.kind == "nested" and column.kind != "dropped":
            raise TableError(
                f"Column {column.name!r} holds {raw.holds}, expected numbers, text or dates as in the training table: "
                "convert it first."
            )
        if column.kind == "category":
            _encode_category(column, raw, encoding.category_codes[column.name], matrix[:, start:])
        elif column.kind != "dropped":
            values = read_values(column, raw, row_indices)
            if unread is not None and raw.is_string and not column.n_unread:
                unread += _unread(column, raw, values)
            check_infinity(values, column.name, row_indices)
            _encode_values(column, values, encoding.fill[start], matrix[:, start:])
            if column.far_shares:
                dates.append(values)
    if dates:
        _put_late_rows_back(encoding, np.column_stack(dates), matrix)
    return matrix


def _put_late_rows_back(encoding: Encoding, dates: Float64s, matrix: Float64s) -> None:
    """Put rows with late dates, shape (n, c), among the training rows (`future.py`).

    Where each row arrives is drawn by a hash of its other columns and by its dates: rows of a single new day spread
    over all training days, and the same row always arrives at the same place.
    """
    columns, ranges = encoding.date_ranges
    late = are_late(dates, ranges)
    rows = np.flatnonzero(late.any(axis=1))
    if not len(rows):
        return
    latest = np.array([own.knots[-1] for own in ranges])
    steps = np.where(late[rows], np.floor(dates[rows] - latest), 0.0).max(axis=1)
    draws = np.mod(_row_hashes(matrix[np.ix_(rows, encoding.is_undated)]) + steps * STEP, 1.0)
    moved = put_back(dates[rows], ranges, draws)
    for j, before, after in zip(columns, dates[rows].T, moved.T, strict=True):
        changed = before != after
        changed &= ~np.isnan(before)
        matrix[rows[changed], encoding.starts[j]] = after[changed]


def _row_hashes(matrix: Float64s) -> Float64s:
    """Return a number in [0, 1) for each row, shape (n,). Numbers that are equal in float32 count as equal."""
    bits = (matrix.astype(np.float32) + np.float32(0.0)).view(np.uint32).astype(np.uint64)  # -0 becomes 0
    sums = np.zeros(len(bits), np.uint64)
    for column in bits.T:
        sums = (integer_hashes(sums ^ column, np.uint64(0)) * 2.0**53).astype(np.uint64)
    return integer_hashes(sums, np.uint64(0))


def _unread(column: Column, raw: RawColumn, values: Float64s) -> list[str]:
    """Return a sentence about the strings that cannot be read, if there are any."""
    bad = np.flatnonzero(np.isnan(values) & ~without_values(raw, column.na_values).missing)
    if not len(bad):
        return []
    example = cells.quoted(raw.strings[int(raw.values[bad[0]])])
    many = f"{len(bad):,} values cannot be read as {KIND_PLURALS[column.kind]} and count"
    one = f"1 value cannot be read as {KIND_PLURALS[column.kind]} and counts"
    return [f"Column {column.name!r}: {many if len(bad) > 1 else one} as missing, such as {example}."]


def encode_matrix(encoding: Encoding, matrix: Floats, is_finite: bool, row_indices: Int64s | None = None) -> Floats:
    """Return a matrix as finite numbers: the same array, if it `is_finite` and no column was dropped."""
    if is_finite and encoding.is_plain:
        return matrix
    if any(c.kind not in ("number", "dropped") or c.na_values or c.far_shares for c in encoding.columns):  # of a frame
        names = (column.name for column in encoding.columns)
        columns = [RawColumn(name, "number", matrix[:, j].astype(float)) for j, name in enumerate(names)]
        return encode_columns(encoding, columns, row_indices)
    result = np.empty((len(encoding.fill), len(matrix)), dtype=matrix.dtype).T
    for j, (column, start) in enumerate(zip(encoding.columns, encoding.starts, strict=True)):
        if column.kind != "dropped":
            check_infinity(matrix[:, j], column.name, row_indices)
            _encode_values(column, matrix[:, j], encoding.fill[start], result[:, start:])
    return result


def check_infinity(values: Floats, name: str, row_indices: Int64s | None = None) -> None:
    """Raise if a value is infinite."""
    infinite = np.isinf(values)
    if np.count_nonzero(infinite):
        bad = np.flatnonzero(infinite)
        row = bad[0] if row_indices is None else row_indices[bad[0]]
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        label = name.capitalize() if name.startswith("column ") else f"Column {name!r}"
        raise TableError(
            f"{label} holds infinity (inf) in row {row}{more}, expected finite numbers: "
            "replace these values or drop their rows first."
        )


def _encode_values(column: Column, values: Floats, fill: float, out: Floats) -> None:
    missing = np.isnan(values)
    out[:, 0] = values
    if column.far_shares:
        out[:, 0] = beyond(values, column.date_knots, column.natural_until)
    elif column.date_knots:
        are_years = column.kind == "number"
        out[:, 0] = spread(values, column.date_knots, column.natural_until, are_years=are_years)
    if np.count_nonzero(missing):
        out[missing, 0] = fill if column.gap_value is None else column.gap_value
    for i, cycle in enumerate(column.cycles):
        phase = 2.0 * np.pi * np.mod(values - MONDAY, CYCLES[cycle]) / CYCLES[cycle]
        out[:, 1 + 2 * i] = np.where(missing, 0.0, np.sin(phase))
        out[:, 2 + 2 * i] = np.where(missing, 0.0, np.cos(phase))
    if column.has_gaps:
        out[:, 1 + 2 * len(column.cycles)] = indicator(missing, column.gap_share)


def _encode_category(column: Column, raw: RawColumn, codes_of_values: Float64s, out: Float64s) -> None:
    codes, strings = as_strings(without_values(raw, column.na_values))
    # The last place is that of a missing value: its code is -1.
    places = np.array([*map(column.place, strings), column.place("")])
    out[:, : codes_of_values.shape[1]] = codes_of_values[places[codes]]


def _category_codes(column: Column, n_rows: int) -> Float64s:
    """Return the encoded numbers of a category's values, shape (number of values + 1, parts); those of a value that is
    not listed (its place is -1) come last."""
    places = np.array([*range(len(column.values)), -1])
    fractions = _fractions(np.append(column.counts, column.rest), n_rows)
    found = np.empty((len(places), len(column.one_hot) + 1))
    for i, value in enumerate(column.one_hot):
        own = column.place(value)
        found[:, i] = indicator(places == own, fractions[own])
        if i == len(column.one_hot) - 1:
            # A value never seen has no encoded column of its own. It is put beyond the rarest value, or else it would
            # be close to all others.
            found[-1, i] = indicator(np.ones(1, bool), fractions[-1])[0]
    found[:, -1] = -np.log(fractions[places])
    return found


def _fractions(counts: Float64s, n_rows: int) -> Float64s:
    """Return the fraction of training rows that have a value, in (0, 1); a value never seen counts as half a row."""
    fractions: Float64s = (counts + 0.5) / (n_rows + 1.0)
    return fractions


def indicator(holds: Bools, fraction: float) -> Float64s:
    """Return one of two numbers for each row: one where a property holds, one where it does not.

    `fraction` is the fraction of the training rows that have the property, such as a certain value. The two numbers are
    normal scores. A row with the property counts as the middle one of the highest `fraction` of the rows; a row without
    it as the middle one of the others. So the rarer the property is, the farther its rows lie from the others: as far
    as a number of the same rarity would lie. (With 0 and 1, standardized, the rows of a value that 4 % of the rows have
    would lie five standard deviations away from the others.)
    """
    scores: Float64s = np.where(holds, *_indicator_scores(fraction))
    return scores


@lru_cache(maxsize=1024)
def _indicator_scores(fraction: float) -> tuple[Float64s, Float64s]:
    """Return the numbers of rows with the property and of rows without it. Kept: single rows ask for the same again."""
    return normal_quantiles(1.0 - 0.5 * fraction), normal_quantiles(0.5 * (1.0 - fraction))
