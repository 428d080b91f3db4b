"""Rows in blocks: how a table of any length goes through the kernels in bounded memory.

In: the raw matrix, a scaling. Out: the results of a function on consecutive blocks of scaled columns, in
order, on one thread or several. The size of a block depends on the model's shape alone, never on the table
or on the number of threads.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from .._preprocess import Scaling, scaled_columns

Result = TypeVar("Result")

BLOCK_BYTES = 4 * 2**20
"""What a block's working arrays may take, per thread: about a core's share of the cache."""

SMALLEST_BLOCK, LARGEST_BLOCK = 256, 1024
"""Rows per block, whatever the budget: enough to hide the cost of a NumPy call, few enough to share among threads."""


def rows_per_block(floats_per_row: int) -> int:
    """Return how many rows fit into `BLOCK_BYTES`, given the float32 numbers the kernels hold per row."""
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, BLOCK_BYTES // (4 * floats_per_row)))


@dataclass(frozen=True)
class Blocks:
    """A raw matrix (n, d), read as scaled columns."""

    X: NDArray[np.floating]
    scaling: Scaling
    n_threads: int

    def map(self, function: Callable[[NDArray[np.float32]], Result], floats_per_row: int) -> Iterator[Result]:
        """Yield function(columns) for consecutive blocks of rows, in order; columns has shape (d, b)."""
        step = rows_per_block(floats_per_row)

        def call(start: int) -> Result:
            return function(scaled_columns(self.scaling, self.X[start : start + step]))

        starts = range(0, len(self.X), step)
        if min(self.n_threads, len(starts)) == 1:
            yield from map(call, starts)
        else:
            parallel = Parallel(n_jobs=self.n_threads, require="sharedmem", return_as="generator")
            yield from parallel(delayed(call)(start) for start in starts)

    def collect(
        self, function: Callable[[NDArray[np.float32]], NDArray[np.floating]], floats_per_row: int
    ) -> NDArray[Any]:
        """Return function's arrays of all blocks side by side: rows along the last axis, as in each of them."""
        parts = self.map(function, floats_per_row)
        first = next(parts)
        results = np.empty((*first.shape[:-1], len(self.X)), dtype=first.dtype)
        stop = first.shape[-1]
        results[..., :stop] = first
        for part in parts:
            start, stop = stop, stop + part.shape[-1]
            results[..., start:stop] = part
        return results

    def take(self, rows: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return the chosen rows as scaled columns, shape (d, len(rows))."""
        return scaled_columns(self.scaling, self.X[rows])
