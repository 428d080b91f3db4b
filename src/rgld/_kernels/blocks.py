"""Rows in blocks: how a table of any length goes through the kernels in bounded memory.

In: the raw matrix, a scaling. Out: the results of a function on consecutive blocks of scaled columns, in order, on one
thread or several. The size of a block depends only on the model's shape, not on the table or the number of threads.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._arrays import Float32s, Floats, Integers
from .._model.scaling import Scaling, scaled_columns

Result = TypeVar("Result")

BLOCK_BYTES = 4 * 2**20
"""Size of the working arrays of a block, for each thread: about what one core has of the cache."""

SMALLEST_BLOCK, LARGEST_BLOCK = 256, 1024
"""Bounds of the rows per block: enough rows to outweigh the cost of a NumPy call, few enough for several threads."""


def rows_per_block(floats_per_row: int) -> int:
    """Return how many rows fit into `BLOCK_BYTES`, given how many float32 values the kernels hold for each row."""
    return min(LARGEST_BLOCK, max(SMALLEST_BLOCK, BLOCK_BYTES // (4 * floats_per_row)))


@dataclass(frozen=True)
class Blocks:
    """A raw matrix (n, d) with its scaling."""

    X: Floats
    scaling: Scaling
    n_threads: int

    def map(self, function: Callable[[Float32s], Result], floats_per_row: int) -> Iterator[Result]:
        """Yield function(columns) for consecutive blocks of rows, in order; columns has shape (d, b)."""
        step = rows_per_block(floats_per_row)

        def call(start: int) -> Result:
            return function(scaled_columns(self.scaling, self.X[start : start + step]))

        starts = range(0, len(self.X), step)
        if min(self.n_threads, len(starts)) == 1:
            yield from map(call, starts)
        else:
            from joblib import Parallel, delayed  # imported here: it takes long, and the native kernels do not need it

            parallel = Parallel(n_jobs=self.n_threads, require="sharedmem", return_as="generator")
            yield from parallel(delayed(call)(start) for start in starts)

    def collect(self, function: Callable[[Float32s], Floats], floats_per_row: int) -> NDArray[Any]:
        """Return the arrays of all blocks joined along the last axis, which is that of the rows."""
        parts = self.map(function, floats_per_row)
        first = next(parts)
        results = np.empty((*first.shape[:-1], len(self.X)), dtype=first.dtype)
        stop = first.shape[-1]
        results[..., :stop] = first
        for part in parts:
            start, stop = stop, stop + part.shape[-1]
            results[..., start:stop] = part
        return results

    def take(self, indices: Integers) -> Float32s:
        """Return the rows with these indices as scaled columns, shape (d, len(indices))."""
        return scaled_columns(self.scaling, self.X[indices])
