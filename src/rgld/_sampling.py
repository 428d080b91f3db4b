"""Sampling: a uniform sample of the rows of a table that is seen part by part.

In: parts of a table and the number of their first row. Out: a `RowSample`. Every row has a key that depends on the
seed and on the row's number alone, and the rows with the smallest keys are the sample: it is the same however the table
is split, in whatever order the parts come, and for tables in memory, on disk, on a cluster and in a stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from . import _random
from ._cells import RawColumn
from ._encoding import as_texts
from ._table import Table

SAMPLE_ROWS = 2**15
"""Rows of a sample. A table of no more rows is its own sample, and learned from as a whole."""
LEAST_SAMPLE = 2**14
SAMPLE_CELLS = 2**22
"""Of wide tables fewer rows are sampled, so that a sample has at most about so many cells, 32 MiB; never fewer rows
than `LEAST_SAMPLE`."""
KEYS_AT_ONCE = 2**20


def sample_size(n_columns: int, n_references: int) -> int:
    """Return the rows of a sample of a table, in which a view must find its references."""
    return max(min(SAMPLE_ROWS, SAMPLE_CELLS // n_columns), LEAST_SAMPLE, n_references)


def n_rows_of(table: Table) -> int:
    """Return the number of rows."""
    return len(table) if isinstance(table, np.ndarray) else len(table[0])


def take_rows(table: Table, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Table:
    """Return some rows of a table, by place or by mask."""
    if isinstance(table, np.ndarray):
        return table[rows]
    places = np.flatnonzero(rows) if rows.dtype == bool else rows
    return [column.take(places) for column in table]  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows with the smallest keys, in the order of the table."""

    numbers: NDArray[np.int64]
    """Their numbers in the table, increasing."""
    keys: NDArray[np.float64]
    table: Table
    size: int
    """Rows of the sample of a long table."""

    def merge(self, other: "RowSample") -> "RowSample":
        """Return the sample of both parts."""
        numbers = np.concatenate((self.numbers, other.numbers))
        keys = np.concatenate((self.keys, other.keys))
        kept = _smallest(keys, numbers, self.size) if len(keys) > self.size else np.arange(len(keys))
        kept = kept[np.argsort(numbers[kept])]
        table = read_alone(take_rows(join_tables([self.table, other.table]), kept))
        return RowSample(numbers[kept], keys[kept], table, self.size)

    @property
    def below(self) -> float:
        """Rows with keys of at least this will not be in the sample."""
        return float(np.nextafter(self.keys.max(), np.inf)) if len(self.keys) >= self.size else np.inf

    def split(self, n_first: int, n_next: int) -> tuple["RowSample", "RowSample"]:
        """Return two samples: the rows with the smallest keys, and those with the next smallest."""
        order = _smallest(self.keys, self.numbers, n_first + n_next)
        first, second = np.sort(order[:n_first]), np.sort(order[n_first:])
        return self._take(first), self._take(second)

    def _take(self, places: NDArray[np.intp]) -> "RowSample":
        table = read_alone(take_rows(self.table, places))
        return RowSample(self.numbers[places], self.keys[places], table, len(places))


def _smallest(keys: NDArray[np.float64], numbers: NDArray[np.int64], size: int) -> NDArray[np.intp]:
    """Return the places of the smallest keys, the smallest first; of equal keys the earlier row."""
    return np.lexsort((numbers, keys))[:size]


def sample_part(
    table: Table, first_row: int, seed: int, size: int, half_life: float | None = None, below: float = np.inf
) -> RowSample:
    """Return the sample of one part of a table: of the rows with keys below a bound, at most so many."""
    numbers = first_row + np.arange(n_rows_of(table))
    keys = _random.row_keys(seed, numbers, half_life)
    places = np.flatnonzero(keys < below)
    if len(places) > size:
        places = np.sort(places[_smallest(keys[places], numbers[places], size)])
    return RowSample(numbers[places], keys[places], read_alone(take_rows(table, places)), size)


def sampled_rows(seed: int, n_rows: int, n_held_out: int, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the rows held out and of the rows sampled from the others, as `RowSample.split` would."""
    total = n_held_out + size
    numbers, keys = np.empty(0, np.int64), np.empty(0)
    for start in range(0, n_rows, KEYS_AT_ONCE):
        new = np.arange(start, min(start + KEYS_AT_ONCE, n_rows))
        new_keys = _random.row_keys(seed, new, None)
        if len(keys) == total:
            places = np.flatnonzero(new_keys <= keys[-1])
            new, new_keys = new[places], new_keys[places]
        numbers, keys = np.concatenate((numbers, new)), np.concatenate((keys, new_keys))
        order = _smallest(keys, numbers, total)
        numbers, keys = numbers[order], keys[order]
    return np.sort(numbers[:n_held_out]), np.sort(numbers[n_held_out:])


def key_bound(n_rows: int, size: int) -> float:
    """Return a bound that at least `size` of the keys of so many rows are below, but for a chance of 1e-15."""
    expected = size + 8.0 * np.sqrt(size) + 64.0
    return float(expected / n_rows) if expected < n_rows else np.inf


def join_tables(parts: Sequence[Table]) -> Table:
    """Return the parts of a table as one."""
    matrices = [part for part in parts if isinstance(part, np.ndarray)]
    if matrices:
        return np.concatenate(matrices)
    lists = [part for part in parts if not isinstance(part, np.ndarray)]
    return [join_columns(columns) for columns in zip(*lists, strict=True)]


def join_columns(parts: Sequence[RawColumn]) -> RawColumn:
    """Return parts of a column as one. A part without a value is of any kind; of parts of different kinds, each was
    read by what it holds, and all are texts."""
    first = parts[0]
    told = [part for part in parts if not part.missing.all()]
    kinds = {part.kind for part in told}
    if kinds == {"number", "boolean"}:  # 0 and 1 in one part, false and true in another
        parts = [replace(part, kind="number") if part.kind == "boolean" else part for part in parts]
        told, kinds = [part for part in parts if not part.missing.all()], {"number"}
    if not told:
        return RawColumn(first.name, "number", np.full(sum(map(len, parts)), np.nan))
    if kinds <= {"text", "category"} or len(kinds) > 1:
        return _join_texts(parts, "category" if kinds == {"category"} else "text")
    values = [part.values if part.kind in kinds else np.full(len(part), np.nan) for part in parts]
    exact = None
    if any(part.exact is not None for part in told):
        exact = np.concatenate([_digits(part) for part in parts])
    loose = any(part.is_loose for part in told)
    return RawColumn(first.name, told[0].kind, np.concatenate(values), exact=exact, is_loose=loose)


def _digits(part: RawColumn) -> NDArray[np.object_]:
    if part.exact is not None:
        return part.exact
    whole = [None if np.isnan(value) else int(value) for value in part.values]
    return np.array([*whole, None], dtype=object)[:-1]


def _join_texts(parts: Sequence[RawColumn], kind: str) -> RawColumn:
    places: dict[str, int] = {}
    codes = []
    for part in parts:
        own, texts = as_texts(part)
        moved = np.array([*(places.setdefault(text, len(places)) for text in texts), -1], dtype=np.int64)
        codes.append(moved[own])
    return RawColumn(parts[0].name, kind, np.concatenate(codes), tuple(places))


def read_alone(table: Table) -> Table:
    """Return rows taken from a table as if they had been the table: without the texts of the other rows."""
    if isinstance(table, np.ndarray):
        return table
    return [_used_texts(column) if column.texts else column for column in table]


def _used_texts(column: RawColumn) -> RawColumn:
    used = np.unique(column.values[column.values >= 0])
    places = np.full(len(column.texts) + 1, -1)  # the last is that of a gap, whose code is -1
    places[used] = np.arange(len(used))
    return replace(column, values=places[column.values], texts=tuple(column.texts[place] for place in used))
