"""Encoding: how each column of a table becomes numbers.

In: columns as they were read. Out: an `Encoding`, which is part of the frozen model, and matrices (n, e) of finite
numbers. What is learned of a column (its kind, its values and how often each came, whether it has gaps) is learned from
the training rows; a new row is encoded by that alone. Every rule is in docs/tables.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
ID_SHARE = 0.9
"""A text column with a larger share of different values is an id or free text: no value says anything about another."""
LEAST_IDS = 20
"""Different whole numbers count as ids from this many on."""
ID_ENDINGS = ("id", "uuid", "guid", "key")

DAY, WEEK, YEAR = 86_400.0, 7 * 86_400.0, 365.2425 * 86_400.0
CYCLES = {"day": DAY, "week": WEEK, "year": YEAR}
WEEK_SPAN, YEAR_SPAN = 4 * WEEK, 2 * YEAR
"""Shorter tables know no weekly habits and no seasons."""
MONDAY = 4 * DAY
"""1970 began on a Thursday."""

KINDS = ("number", "boolean", "time", "duration", "category", "dropped")


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
        if self.kind == "dropped":
            return ()
        if self.kind == "category":
            shown = tuple(f"is {value!r}" if value else "is missing" for value in self.one_hot)
            return (*shown, "rarity")
        waves = tuple(f"{wave} of the {cycle}" for cycle in self.cycles for wave in ("sine", "cosine"))
        return ("value", *waves, *(("is missing",) if self.has_gaps else ()))


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
        return np.cumsum([0, *(len(column.parts) for column in self.columns)])[:-1]

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Shape (e,): what views multiply the encoded columns by. A value, a rarity and a gap count as a column each;
        the values of a category share one, as do the sine and cosine of a cycle."""
        return np.array([weight for column in self.columns for weight in _weights(column)])

    @cached_property
    def is_indicator(self) -> NDArray[np.bool_]:
        """Shape (e,): encoded columns of two values, which are normal scores already and are not scaled again."""
        flags = [part.startswith("is ") for column in self.columns for part in column.parts]
        return np.array(flags, dtype=bool)

    @property
    def is_plain(self) -> bool:
        """The encoded matrix of a table without gaps is the table itself."""
        return all(column.parts == ("value",) for column in self.columns)


def _weights(column: Column) -> Iterator[float]:
    for part in column.parts:
        if column.kind == "category":
            yield 1.0 if part == "rarity" else len(column.one_hot) ** -0.5
        else:
            yield 0.5**0.5 if "of the" in part else 1.0


def fit_encoding(columns: Sequence[RawColumn], readings: Mapping[str, str] | None = None) -> Encoding:
    """Decide how each column is read.

    Raises
    ------
    TableError
        If no column is left, or `readings` asks for what a column cannot be.
    """
    readings = readings or {}
    for name in readings:
        if name not in {column.name for column in columns}:
            raise TableError(f"There is no column {name!r} to be read as {readings[name]!r}: check its name.")
    learned = tuple(_learn(column, readings.get(column.name)) for column in columns)
    _require_some(learned)
    fills: list[float] = []
    for column, raw in zip(learned, columns, strict=True):
        fills += [_median(column, raw), *([0.0] * (len(column.parts) - 1))][: len(column.parts)]
    return Encoding(learned, np.array(fills), len(columns[0]))


def fit_plain_encoding(matrix: NDArray[np.floating]) -> Encoding:
    """Return the encoding of an array: numbers, with gaps where there are some."""
    d = matrix.shape[1]
    gaps = np.zeros(d)
    empty = np.zeros(d, bool)
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = not np.isfinite(matrix.sum(dtype=np.float64))
    if suspect:
        for j in range(d):
            missing = np.isnan(matrix[:, j])
            gaps[j], empty[j] = missing.mean(), missing.all()
    columns = tuple(
        Column(f"column {j}", "dropped", NO_VALUE)
        if empty[j]
        else Column(f"column {j}", "number", gap_share=float(gaps[j]))
        for j in range(d)
    )
    _require_some(columns)
    fills: list[float] = []
    for j, column in enumerate(columns):
        fills += [float(np.nanmedian(matrix[:, j])) if column.has_gaps else 0.0, 0.0][: len(column.parts)]
    return Encoding(columns, np.array(fills), len(matrix))


def with_medians(encoding: Encoding, medians: NDArray[np.float64]) -> Encoding:
    """Return the encoding with the medians of the encoded columns as fill where the training rows had no gaps."""
    fill = encoding.fill.copy()
    for column, start in zip(encoding.columns, encoding.starts, strict=True):
        if column.kind not in ("dropped", "category") and not column.has_gaps:
            fill[start] = medians[start]
    return replace(encoding, fill=fill)


NO_VALUE = "it has no value"


def _require_some(columns: Sequence[Column]) -> None:
    if any(column.kind != "dropped" for column in columns):
        return
    few = "; ".join(f"{column.name!r}: {column.note}" for column in columns[:3])
    more = f"; and {len(columns) - 3} more" if len(columns) > 3 else ""
    raise TableError(f"No column of the table can be used ({few}{more}): at least one must vary from row to row.")


def _learn(raw: RawColumn, asked: str | None) -> Column:
    """Return how a column is read. What a user asked for is done, unless there is no value at all."""
    name = raw.name
    if asked == "drop":
        return Column(name, "dropped", "you asked for it")
    missing = raw.values < 0 if raw.kind == "text" else np.isnan(raw.values)
    if missing.all():
        return Column(name, "dropped", NO_VALUE)
    if asked == "category":
        return _category(raw, asked=True)
    if raw.kind == "text":
        return _learn_text(raw, asked)
    if asked == "time" and raw.kind != "time":
        raise TableError(
            f"Column {name!r} holds numbers, which cannot be read as times: leave it as it is, or 'drop' it."
        )
    column = Column(name, raw.kind, gap_share=float(missing.mean()))
    return _finish_numbers(column, raw.values[~missing].astype(np.float64), asked)


def _learn_text(raw: RawColumn, asked: str | None) -> Column:
    counts = np.bincount(raw.values[raw.values >= 0].astype(np.int64), minlength=len(raw.texts))
    numbers = _cells.read_numbers(raw.texts)
    readable = ~np.isnan(numbers)
    if asked == "number" or (asked is None and counts[readable].sum() >= _cells.READABLE_SHARE * counts.sum()):
        kind = "boolean" if all(text in _cells.TRUTH for text in raw.texts) else "number"
        return _from_texts(Column(raw.name, kind), raw, numbers, counts, asked)
    time_format = _cells.find_time_format(raw.texts, counts)
    if time_format:
        column = Column(raw.name, "time", time_format=time_format)
        return _from_texts(column, raw, _cells.read_times(raw.texts, time_format), counts, asked)
    if asked == "time":
        raise TableError(
            f"Column {raw.name!r} holds texts that are no dates, such as {raw.texts[0][:40]!r}: 'drop' it."
        )
    return _category(raw, asked=False)


def _from_texts(
    column: Column, raw: RawColumn, values: NDArray[np.float64], counts: NDArray[np.intp], asked: str | None
) -> Column:
    """Return a column of numbers or times that came as texts."""
    unread = np.flatnonzero(np.isnan(values))
    if len(unread) == len(values):
        raise TableError(
            f"Column {column.name!r} holds no numbers, but texts such as {raw.texts[0][:40]!r}: 'drop' it."
        )
    if len(unread):
        words = {"number": "numbers", "time": "dates"}[column.kind]
        first = raw.texts[unread[0]][:40]
        note = f"{counts[unread].sum():,} values are no {words} and count as missing, such as {first!r}"
        column = replace(column, note=note)
    each = at_places(values, raw.values.astype(np.int64))
    missing = np.isnan(each)
    return _finish_numbers(replace(column, gap_share=float(missing.mean())), each[~missing], asked)


def _finish_numbers(column: Column, values: NDArray[np.float64], asked: str | None) -> Column:
    """Drop what says nothing; give times their cycles."""
    low, high = values.min(), values.max()
    if asked is None and not column.has_gaps:
        if low == high:
            return replace(column, kind="dropped", note="it is constant")
        if column.kind == "number" and (note := _id_note(column.name, values, low, high)):
            return replace(column, kind="dropped", note=note)
    if column.kind != "time":
        return column
    cycles = []
    if np.ptp(np.mod(values, DAY)) > 0:
        cycles.append("day")
    if high - low >= WEEK_SPAN and np.ptp(np.mod(values - MONDAY, WEEK) // DAY) > 0:
        cycles.append("week")
    if high - low >= YEAR_SPAN:
        cycles.append("year")
    return replace(column, cycles=tuple(cycles))


def _id_note(name: str, values: NDArray[np.float64], low: float, high: float) -> str:
    """Return why whole numbers are ids, or "": all different, and either close together or under such a name."""
    n = len(values)
    if n < LEAST_IDS or not np.isfinite(high - low) or high - low < n - 1 or np.any(values != np.floor(values)):
        return ""
    dense = high - low < 2 * n
    named = name.lower().endswith(ID_ENDINGS)
    if not (dense or named) or len(np.unique(values)) < n:
        return ""
    return "it numbers the rows" if dense else "it is an id: all its values are different"


def _category(raw: RawColumn, *, asked: bool) -> Column:
    codes, texts = as_texts(raw)
    present = codes >= 0
    n_present = int(present.sum())
    counts = np.bincount(codes[present], minlength=len(texts))
    n_values = int((counts > 0).sum())
    if not asked:
        if n_values == 1 and n_present == len(codes):
            return Column(raw.name, "dropped", "it is constant")
        if n_values > ID_SHARE * n_present:
            return Column(raw.name, "dropped", f"it is an id or free text: {n_values:,} values in {n_present:,} rows")
    if n_present < len(codes):
        texts, counts = (*texts, ""), np.append(counts, len(codes) - n_present)
    order = sorted(np.flatnonzero(counts), key=lambda i: (-counts[i], texts[i]))
    listed, others = order[:LISTED_VALUES], order[LISTED_VALUES:]
    return Column(
        raw.name,
        "category",
        values=tuple(texts[i] for i in listed),
        counts=tuple(int(counts[i]) for i in listed),
        rest=float(counts[others].mean()) if others else 0.0,
    )


def as_texts(raw: RawColumn) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return a column as places in a list of texts."""
    if raw.kind == "text":
        return raw.values.astype(np.int64), raw.texts
    missing = np.isnan(raw.values)
    different, codes = np.unique(raw.values, return_inverse=True)
    show = _cells.time_text if raw.kind == "time" else _cells.number_text
    if raw.kind == "boolean":
        texts = tuple("true" if value else "false" for value in different)
    else:
        texts = tuple("" if np.isnan(value) else show(float(value)) for value in different)
    return np.where(missing, -1, codes).astype(np.int64), texts


def _median(column: Column, raw: RawColumn) -> float:
    if column.kind in ("dropped", "category") or not column.has_gaps:
        return 0.0
    return float(np.nanmedian(read_values(column, raw)))


def read_values(column: Column, raw: RawColumn) -> NDArray[np.float64]:
    """Return a column's numbers or seconds, NaN where missing or where a text stands for none."""
    if raw.kind == "text":
        is_time = column.kind == "time"
        texts = _cells.read_times(raw.texts, column.time_format or _cells.ISO) if is_time else _numbers_of(column, raw)
        return at_places(texts, raw.values.astype(np.int64))
    empty = bool(np.isnan(raw.values).all())
    if (column.kind == "time") != (raw.kind == "time") and not empty:
        found, expected = ("times" if kind == "time" else "numbers" for kind in (raw.kind, column.kind))
        raise TableError(
            f"Column {column.name!r} holds {found}, expected {expected} as in the training table: convert it first."
        )
    return raw.values.astype(np.float64)


def _numbers_of(column: Column, raw: RawColumn) -> NDArray[np.float64]:
    numbers = _cells.read_numbers(raw.texts)
    if len(numbers) and np.isnan(numbers).all() and column.kind != "dropped":
        raise TableError(
            f"Column {column.name!r} holds texts such as {raw.texts[0][:40]!r}, expected numbers as in the training "
            "table: check the column."
        )
    return numbers


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
    out[:, 0] = np.where(missing, fill, values)
    for i, cycle in enumerate(column.cycles):
        phase = 2.0 * np.pi * np.mod(values - MONDAY, CYCLES[cycle]) / CYCLES[cycle]
        out[:, 1 + 2 * i] = np.where(missing, 0.0, np.sin(phase))
        out[:, 2 + 2 * i] = np.where(missing, 0.0, np.cos(phase))
    if column.has_gaps:
        out[:, 1 + 2 * len(column.cycles)] = indicator(missing, column.gap_share)


def _encode_category(column: Column, raw: RawColumn, n_rows: int, out: NDArray[np.float64]) -> None:
    codes, texts = as_texts(raw)
    codes = np.where(codes < 0, len(texts), codes)  # the last place is that of a gap
    texts = (*texts, "")
    places = {value: place for place, value in enumerate(column.values)}
    at = np.array([places.get(text, -1) for text in texts])
    for i, value in enumerate(column.one_hot):
        out[:, i] = indicator((at == places[value])[codes], column.counts[places[value]] / n_rows)
    out[:, len(column.one_hot)] = rarity(np.append(column.counts, column.rest)[at], n_rows)[codes]


def indicator(holds: NDArray[np.bool_], share: float) -> NDArray[np.float64]:
    """Return the normal score of being among a share of the rows, or not: ndtri of the middle of either part.

    The rarer something is, the farther its rows are from the others, as far as a number of the same rarity would be. A
    standardized 0 and 1 would put a value of 4 % of the rows five standard deviations away.
    """
    yes, no = ndtri(1.0 - 0.5 * share), ndtri(0.5 * (1.0 - share))
    return np.where(holds, yes, no)


def rarity(counts: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
    """Return -log of the share of training rows that have a value; a value never seen counts as half a row."""
    share: NDArray[np.float64] = (counts + 0.5) / (n_rows + 1.0)
    return -np.log(share)
