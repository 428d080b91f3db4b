"""Sampling: a uniform sample of the rows of a table that is seen part by part.

In: parts of a table and the index of their first row. Out: a `RowSample`. Every row has a random key that depends only
on the seed and the row's index. The rows with the smallest keys are the sample. So the sample is the same however the
table is split, in whatever order the parts come, and whether the table is in memory, on disk, on a cluster or a stream.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._arrays import Float64s, Indices, Int64s
from .._params import Parameters
from .._table.table import Table
from .._threshold import MAX_CALIBRATION_ROWS
from . import randomness

MAX_SAMPLE_ROWS = 2**15
"""Rows of a sample. A table with no more rows is its own sample."""
MIN_SAMPLE_ROWS = 2**14
"""Rows of a sample of the widest tables."""
MAX_SAMPLE_CELLS = 2**22
"""Of wide tables fewer rows are sampled, so that a sample has at most this many cells (32 MiB), but never fewer rows
than `MIN_SAMPLE_ROWS`."""
KEY_BLOCK_ROWS = 2**20
"""Rows whose keys are drawn at once."""


def sample_size(n_columns: int, n_references: int) -> int:
    """Return how many rows are sampled: at least as many as a view has references."""
    return max(min(MAX_SAMPLE_ROWS, MAX_SAMPLE_CELLS // n_columns), MIN_SAMPLE_ROWS, n_references)


def n_held_out(n_rows: int, parameters: Parameters) -> int:
    """Return how many rows are held out of the fit to calibrate p-values. At least two rows are left to learn from."""
    return max(0, min(round(parameters.calibration_fraction * n_rows), MAX_CALIBRATION_ROWS, n_rows - 2))


@dataclass(frozen=True, eq=False)
class RowSample:
    """The rows with the smallest keys, in the order of the table."""

    indices: Int64s
    """Their indices in the table, increasing."""
    keys: Float64s
    table: Table
    size: int
    """Rows of the sample of a long table; the sample of a short table has fewer."""

    def merge(self, other: "RowSample") -> "RowSample":
        """Return the sample of both parts."""
        indices = np.concatenate((self.indices, other.indices))
        keys = np.concatenate((self.keys, other.keys))
        kept = _smallest(keys, indices, self.size) if len(keys) > self.size else np.arange(len(keys))
        kept = kept[np.argsort(indices[kept])]
        return RowSample(indices[kept], keys[kept], self.table.join(other.table).take(kept), self.size)

    @property
    def key_limit(self) -> float:
        """Rows with this key or a larger one cannot be in the sample."""
        return float(np.nextafter(self.keys.max(), np.inf)) if len(self.keys) >= self.size else np.inf

    def split(self, n_first: int, n_next: int) -> tuple["RowSample", "RowSample"]:
        """Return two samples: the `n_first` rows with the smallest keys, and the `n_next` rows with the next keys."""
        order = _smallest(self.keys, self.indices, n_first + n_next)
        return self._take(np.sort(order[:n_first])), self._take(np.sort(order[n_first:]))

    def _take(self, places: Indices) -> "RowSample":
        return RowSample(self.indices[places], self.keys[places], self.table.take(places), len(places))


def _smallest(keys: Float64s, indices: Int64s, size: int) -> Indices:
    """Return the places of the smallest keys, the smallest first. Of equal keys, the earlier row's is first."""
    return np.lexsort((indices, keys))[:size]


def sample_part(
    table: Table, first_row: int, seed: int, size: int, half_life: float | None = None, key_limit: float = np.inf
) -> RowSample:
    """Return the sample of one part of a table: of the rows with keys below `key_limit`, at most `size`."""
    indices = first_row + np.arange(len(table))
    keys = randomness.row_keys(seed, indices, half_life)
    places = np.flatnonzero(keys < key_limit)
    if len(places) > size:
        places = np.sort(places[_smallest(keys[places], indices[places], size)])
    return RowSample(indices[places], keys[places], table.take(places), size)


class RowSplit(NamedTuple):
    """The row indices of a table in memory, by use."""

    learned: Indices
    """Rows to learn from."""
    held_out: Indices | None
    """Rows to calibrate p-values with; None if no rows are held out."""
    sampled: Indices | None
    """The sample of a long table; None for a short table, which is its own sample."""


def split_rows(n_rows: int, n_columns: int, parameters: Parameters, seed: int) -> RowSplit:
    """Return which rows are learned from, which are held out, and which are sampled."""
    size, n_out = sample_size(n_columns, parameters.n_references), n_held_out(n_rows, parameters)
    held_out = sampled = None
    if n_rows > size:
        held_out, sampled = sampled_rows(seed, n_rows, n_out, size)
    elif n_out:
        rng = randomness.child(seed, randomness.LOCAL, randomness.HELD_OUT)
        held_out = np.sort(rng.choice(n_rows, n_out, replace=False))
    if held_out is None or not n_out:
        return RowSplit(np.arange(n_rows), None, sampled)
    return RowSplit(np.setdiff1d(np.arange(n_rows), held_out), held_out, sampled)


def viewed_rows(n_rows: int, parameters: Parameters, seed: int) -> Indices | None:
    """Return which rows of a sample the views learn from, increasing; None: all."""
    most = parameters.max_training_rows
    if most is None or n_rows <= most:
        return None
    rng = randomness.child(seed, randomness.LOCAL, randomness.VIEWED)
    return np.sort(rng.choice(n_rows, int(most), replace=False))


def sampled_rows(seed: int, n_rows: int, n_out: int, size: int) -> tuple[Int64s, Int64s]:
    """Return the indices of the held-out rows and of the sampled rows, the same that `RowSample.split` returns."""
    total = n_out + size
    indices, keys = np.empty(0, np.int64), np.empty(0)
    for start in range(0, n_rows, KEY_BLOCK_ROWS):
        new = np.arange(start, min(start + KEY_BLOCK_ROWS, n_rows))
        new_keys = randomness.row_keys(seed, new, None)
        if len(keys) == total:
            places = np.flatnonzero(new_keys <= keys[-1])
            new, new_keys = new[places], new_keys[places]
        indices, keys = np.concatenate((indices, new)), np.concatenate((keys, new_keys))
        order = _smallest(keys, indices, total)
        indices, keys = indices[order], keys[order]
    return np.sort(indices[:n_out]), np.sort(indices[n_out:])


def key_limit_for(n_rows: int, size: int) -> float:
    """Return a limit for the keys of `n_rows` rows: at least `size` of them are below it, except with probability
    1e-15. Rows with larger keys need not be sampled."""
    expected = size + 8.0 * np.sqrt(size) + 64.0
    return float(expected / n_rows) if expected < n_rows else np.inf
