"""The rows that decide which columns of numbers are related, and each column sorted, once for all that ask.

In: the cells of a sample. Out: `Deciding`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from .. import _kernels
from .._arrays import Bools, Float64s, Indices
from .._kernels.relations import Cells
from .candidates import evenly_spaced

MAX_DECIDING_ROWS = 4096
"""Rows that decide which columns are related, and how: evenly spaced ones of a longer table."""


class Deciding(NamedTuple):
    """The columns of numbers over the rows that decide, shape (columns, rows)."""

    columns: Indices
    rows: Indices
    numbers: Float64s
    """NaN where missing."""
    ordered: Float64s
    """Each column sorted; NaN comes last."""
    n_known: Indices
    """How many numbers of each column are not missing."""


def deciding(cells: Cells, columns: Sequence[int]) -> Deciding:
    """Return these columns over the rows that decide."""
    rows = evenly_spaced(len(cells), MAX_DECIDING_ROWS)
    numbers = np.array([cells.numbers(j) for j in columns]).reshape(len(columns), len(cells))
    numbers = numbers if len(rows) == len(cells) else numbers[:, rows]
    ordered = _kernels.sorted_rows(numbers)
    n_known = len(rows) - n_true(np.isnan, ordered, ordered[:, -1])
    return Deciding(np.array(columns, dtype=np.intp), rows, numbers, ordered, n_known)


def n_true(test: Callable[[Float64s], Bools], rows: Float64s, likeliest: Float64s) -> Indices:
    """Return how many numbers of each row pass the test. In most rows none does: their likeliest one tells."""
    count = np.zeros(len(rows), np.intp)
    passing = np.flatnonzero(test(likeliest))
    count[passing] = test(rows[passing]).sum(axis=1)
    return count
