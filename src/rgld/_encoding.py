"""Encoding: how each column of a table becomes numbers.

In: columns as they were read. Out: an `Encoding`, which is part of the frozen model, and matrices (n, e) of finite
numbers. A row is encoded by what was learned of the training rows (`_reading`) and by its own cells, by nothing else.
Every rule is in docs/tables.md.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from . import _cells
from ._cells import RawColumn, at_places
from .exceptions import TableError

ONE_HOT_VALUES = 8
"""A category of up to so many values has a column for each; more would outweigh the other columns."""
LISTED_VALUES = 1000
"""Values of a category whose counts are kept, the most frequent ones; the others share one count."""

DAY, WEEK, YEAR = 86_400.0, 7 * 86_400.0, 365.2425 * 86_400.0
CYCLES = {"day": DAY, "week": WEEK, "year": YEAR}
MONDAY = 4 * DAY
"""1970 began on a Thursday."""

KINDS = ("number", "boolean", "time", "duration", "category", "dropped")


VALUE_ALONE = ("value",)


@dataclass(frozen=True)
class Column:
    """How one column is read."""

    name: str
    kind: str
    """Of `KINDS`."""
    note: str = ""
    """Why it was dropped, or what of it was not read."""
    gap_share: float = 0.0
    """Share of the training rows without a value here: if there are any, a column of its own says which. (A gap in a
    category is a value.)"""
    time_format: str = ""
    """How texts are read as dates."""
    cycles: tuple[str, ...] = ()
    """Of `CYCLES`: each is a sine and a cosine."""
    values: tuple[str, ...] = ()
    """A category's values, the most frequent first; "" stands for missing."""
    counts: tuple[int, ...] = ()
    """Training rows with each value."""
    rest: float = 0.0
    """Rows with each value not listed, on average; 0 if all are listed."""

    @property
    def has_gaps(self) -> bool:
        """Some training rows have no value."""
        return self.gap_share > 0.0

    @property
    def one_hot(self) -> tuple[str, ...]:
        """The values that have a column of their own; of two values one is enough."""
        if self.kind != "category" or len(self.values) > ONE_HOT_VALUES:
            return ()
        return self.values[1:] if len(self.values) == 2 else self.values

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of its encoded columns."""
        if self.kind == "number" and not self.gap_share:  # most columns, and thousands of them in wide tables
            return VALUE_ALONE
        if self.kind == "dropped":
            return ()
        if self.kind == "category":
            shown = tuple(f"is {value!r}" if value else "is missing" for value in self.one_hot)
            return (*shown, "rarity")
        waves = tuple(f"{wave} of the {cycle}" for cycle in self.cycles for wave in ("sine", "cosine"))
        return ("value", *waves, *(("is missing",) if self.has_gaps else ()))

    def place(self, text: str) -> int:
        """Return a value's place in `values`, -1 if it is not listed.

        A value that is not listed as it is written is the one that means the same, 3.0 for 3: a column may arrive as
        text in one file and as numbers in another.
        """
        return self._places.get(text, self._places_of_meanings.get(_cells.canonical(text), -1))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {value: place for place, value in enumerate(self.values)}

    @cached_property
    def _places_of_meanings(self) -> dict[str, int]:
        """The most frequent value of each meaning."""
        return {_cells.canonical(value): place for place, value in reversed(list(enumerate(self.values)))}


@dataclass(frozen=True, eq=False)
class Encoding:
    """All columns of a table, and what fills their gaps."""

    columns: tuple[Column, ...]
    fill: NDArray[np.float64]
    """Shape (e,): the training median of a value; 0 for what has no gaps."""
    n_rows: int
    """Training rows that the counts are of."""

    @cached_property
    def owner(self) -> NDArray[np.intp]:
        """The table's column each encoded column belongs to, shape (e,)."""
        return np.repeat(np.arange(len(self.columns)), [len(column.parts) for column in self.columns])

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """The first encoded column of each column, shape (d,)."""
        if self.is_plain:
            return np.arange(len(self.columns))
        return np.cumsum([0, *(len(column.parts) for column in self.columns)])[:-1]

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Shape (e,): what views multiply the encoded columns by. A value, a rarity and a gap count as a column each;
        the values of a category share one, as do the sine and cosine of a cycle; a date itself, which every table is
        at the end of, counts half."""
        return np.array([weight for column in self.columns for weight in _weights(column)])

    @cached_property
    def is_indicator(self) -> NDArray[np.bool_]:
        """Shape (e,): encoded columns of two values, which are normal scores already and are not scaled again."""
        if self.is_plain:
            return np.zeros(len(self.columns), bool)
        flags = [part.startswith("is ") for column in self.columns for part in column.parts]
        return np.array(flags, dtype=bool)

    @cached_property
    def is_plain(self) -> bool:
        """The encoded matrix of an array without gaps is the array itself."""
        return all(column.parts == VALUE_ALONE and column.kind != "time" for column in self.columns)

    @cached_property
    def dropped(self) -> frozenset[str]:
        """Names of the columns that no score depends on."""
        return frozenset(column.name for column in self.columns if column.kind == "dropped")


def _weights(column: Column) -> Iterator[float]:
    for part in column.parts:
        if column.kind == "category":
            yield 1.0 if part == "rarity" else len(column.one_hot) ** -0.5
        elif "of the" in part:
            yield 0.5**0.5
        else:
            yield 0.5 if column.kind == "time" and part == "value" else 1.0


def as_texts(raw: RawColumn) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return a column as places in a list of different texts, -1 where missing."""
    if raw.is_text:
        return raw.values.astype(np.int64), raw.texts
    show = {"boolean": _cells.truth_text, "time": _cells.time_text}.get(raw.kind, _cells.number_text)
    if raw.exact is None:
        different, codes = np.unique(raw.values, return_inverse=True)
        shown = ["" if np.isnan(value) else show(float(value)) for value in different]
    else:
        cells = zip(raw.exact, raw.values.tolist(), strict=True)
        shown = ["" if np.isnan(value) else show(value) if digits is None else str(digits) for digits, value in cells]
        codes = np.arange(len(shown))
    # Times beyond the calendar may have the same text.
    texts = tuple(dict.fromkeys(shown))
    places = {text: place for place, text in enumerate(texts)}
    codes = np.array([places[text] for text in shown], dtype=np.int64)[codes]
    return np.where(raw.missing, -1, codes), texts


def is_mixed(column: Column, raw: RawColumn) -> bool:
    """Tell whether a column must be read text by text: it is of texts, or of Python objects of another kind than in
    training, which beside a text would be texts."""
    return raw.is_text or (raw.is_loose and (column.kind == "time") != (raw.kind == "time"))


def read_values(column: Column, raw: RawColumn) -> NDArray[np.float64]:
    """Return a column's numbers or seconds, NaN where missing or where a text stands for none."""
    if is_mixed(column, raw):
        codes, texts = as_texts(raw)
        return at_places(read_texts(column, texts), codes)
    if (column.kind == "time") != (raw.kind == "time") and not raw.missing.all():
        found, expected = ("times" if kind == "time" else "numbers" for kind in (raw.kind, column.kind))
        raise TableError(
            f"Column {column.name!r} holds {found}, expected {expected} as in the training table: convert it first."
        )
    return raw.values.astype(np.float64, copy=False)


def read_texts(column: Column, texts: Sequence[str]) -> NDArray[np.float64]:
    """Return what texts stand for in a column of numbers, truth values, durations or times; NaN is nothing.

    Never an error: a row with a text that cannot be read has a gap, alone or among rows that can.
    """
    if column.kind == "time":
        times = _cells.read_times(texts, _cells.ISO)
        if column.time_format not in ("", _cells.ISO):
            # No text is a date of both formats. Objects among texts are written in ISO 8601.
            times = np.fmax(times, _cells.read_times(texts, column.time_format))
        return times
    numbers = _cells.read_truths(texts)
    return np.fmax(numbers, _cells.read_durations(texts)) if column.kind == "duration" else numbers


def encode(encoding: Encoding, columns: Sequence[RawColumn]) -> NDArray[np.float64]:
    """Return the table as finite numbers, shape (n, e), a column of memory per column."""
    n = len(columns[0])
    matrix = np.empty((len(encoding.fill), n)).T
    for column, raw, start in zip(encoding.columns, columns, encoding.starts, strict=True):
        if column.kind == "category":
            _encode_category(column, raw, encoding.n_rows, matrix[:, start:])
        elif column.kind != "dropped":
            values = read_values(column, raw)
            check_infinity(values, column.name)
            _encode_values(column, values, encoding.fill[start], matrix[:, start:])
    return matrix


def encode_plain(encoding: Encoding, matrix: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return an array as finite numbers: itself, if nothing is missing and nothing was dropped."""
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.isfinite(matrix.sum(dtype=np.float64))
    if whole and encoding.is_plain:
        return matrix
    if not all(column.kind in ("number", "dropped") for column in encoding.columns):  # a frame was learned from
        names = (column.name for column in encoding.columns)
        return encode(encoding, [RawColumn(name, "number", matrix[:, j].astype(float)) for j, name in enumerate(names)])
    result = np.empty((len(encoding.fill), len(matrix)), dtype=matrix.dtype).T
    for j, (column, start) in enumerate(zip(encoding.columns, encoding.starts, strict=True)):
        if column.kind != "dropped":
            check_infinity(matrix[:, j], column.name)
            _encode_values(column, matrix[:, j], encoding.fill[start], result[:, start:])
    return result


def check_infinity(values: NDArray[np.floating], name: str) -> None:
    """Raise for an infinity."""
    bad = np.flatnonzero(np.isinf(values))
    if len(bad):
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        label = name.capitalize() if name.startswith("column ") else f"Column {name!r}"
        raise TableError(
            f"{label} holds infinity (inf) in row {bad[0]}{more}, expected finite numbers: "
            "replace or drop these rows first."
        )


def _encode_values(column: Column, values: NDArray[np.floating], fill: float, out: NDArray[np.floating]) -> None:
    missing = np.isnan(values)
    out[:, 0] = values
    out[missing, 0] = fill
    for i, cycle in enumerate(column.cycles):
        phase = 2.0 * np.pi * np.mod(values - MONDAY, CYCLES[cycle]) / CYCLES[cycle]
        out[:, 1 + 2 * i] = np.where(missing, 0.0, np.sin(phase))
        out[:, 2 + 2 * i] = np.where(missing, 0.0, np.cos(phase))
    if column.has_gaps:
        out[:, 1 + 2 * len(column.cycles)] = indicator(missing, column.gap_share)


def _encode_category(column: Column, raw: RawColumn, n_rows: int, out: NDArray[np.float64]) -> None:
    codes, texts = as_texts(raw)
    # The last place is that of a gap, which a code of -1 leads to.
    places = np.array([*(column.place(text) for text in texts), column.place("")])
    shares = _shares(np.append(column.counts, column.rest), n_rows)
    for i, value in enumerate(column.one_hot):
        own = column.place(value)
        scores = indicator(places == own, shares[own])
        if i == len(column.one_hot) - 1:
            # A value never seen stands beyond the rarest one seen: without a part of its own it would be near the rest.
            scores = np.where(places < 0, indicator(places < 0, shares[-1]), scores)
        out[:, i] = scores[codes]
    out[:, len(column.one_hot)] = -np.log(shares[places])[codes]


def _shares(counts: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Return the share of training rows that have a value, inside (0, 1); a value never seen counts as half a row."""
    shares: NDArray[np.float64] = (counts + 0.5) / (n_rows + 1.0)
    return shares


def indicator(holds: NDArray[np.bool_], share: float) -> NDArray[np.float64]:
    """Return the normal score of being among a share of the rows, or not: ndtri of the middle of either part.

    The rarer something is, the farther its rows are from the others, as far as a number of the same rarity would be. A
    standardized 0 and 1 would put a value of 4 % of the rows five standard deviations away.
    """
    yes, no = ndtri(1.0 - 0.5 * share), ndtri(0.5 * (1.0 - share))
    scores: NDArray[np.float64] = np.where(holds, yes, no)
    return scores
