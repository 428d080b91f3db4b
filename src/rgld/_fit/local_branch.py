"""The local branch: is a row far from its nearest references?

In: scaled rows. Out: a fitted `LocalBranch`. The score of a view is the root mean squared distance to the k nearest
references. Paper, "Local neighbor branch".
"""

from typing import NamedTuple

import numpy as np

from .. import _kernels
from .._arrays import Floats, Int64s
from .._model.model import KeptRows, LocalBranch
from .._model.views import Views
from . import randomness
from .views import ViewShape, draw_views

N_KEPT_ROWS = 1000
"""Number of rows kept for explanations if there is no local branch."""
MAX_KEPT_CELLS = 2**22
"""The kept rows have at most this many cells, 32 MiB: of a table of thousands of columns, only the references of the
first views are kept."""


class DrawnLocal(NamedTuple):
    """The random choices of the local branch. They depend only on the seed and the numbers of columns and rows."""

    views: Views
    rows: Int64s
    """Row indices of C_t, shape (T, C)."""


def draw_local(
    seed: int, n_views: int, shape: ViewShape, indices: Int64s, n_references: int, branch: int = randomness.LOCAL
) -> DrawnLocal:
    """Return random views and their reference rows, drawn from the rows with these indices without replacement:
    `n_references` in each view, or all rows if there are fewer."""
    views = draw_views(seed, branch, n_views, shape)
    rng = randomness.child(seed, branch, randomness.REFERENCES)
    size = min(n_references, len(indices))
    drawn = _kernels.draw_without_replacement(rng, len(indices), size, n_views)
    return DrawnLocal(views, indices[drawn])


def fit_local(rows: _kernels.Rows, drawn: DrawnLocal, n_neighbors: int) -> LocalBranch:
    """Return the branch: the projected reference rows. If there are few, k is lowered, so that one exact match can be
    left out."""
    references = _kernels.project_rows(rows, drawn.views, drawn.rows)
    return LocalBranch(drawn.views, references, min(int(n_neighbors), drawn.rows.shape[1] - 1))


def draw_kept_rows(seed: int, matrix: Floats, inner: Int64s, drawn: DrawnLocal | None) -> KeptRows:
    """Return the rows that explanations compare with: the reference rows or, without a local branch, random rows.

    References are inner rows. Random other rows are added in proportion, so that the kept rows show what is usual in
    the whole table.
    """
    max_rows = max(2, MAX_KEPT_CELLS // matrix.shape[1])
    if drawn is None:
        rng = randomness.child(seed, randomness.LOCAL, randomness.REFERENCES)
        rows = np.sort(rng.choice(len(matrix), min(N_KEPT_ROWS, max_rows, len(matrix)), replace=False))
        places = np.empty((0, 0), np.int32)
    else:
        n_others = len(matrix) - len(inner)
        max_references = max(2, max_rows * len(inner) // len(matrix))
        n_views = max(1, min(len(drawn.rows), max_references // drawn.rows.shape[1]))
        # Marks and running counts take 0.05 ms where sorting and searching take 1.5 ms, of 30 for a whole fit.
        is_kept = np.zeros(len(matrix), np.bool_)
        is_kept[drawn.rows[:n_views]] = True
        if n_others:
            is_other = np.ones(len(matrix), np.bool_)
            is_other[inner] = False
            size = min(n_others, round(np.count_nonzero(is_kept) * n_others / len(inner)))
            rng = randomness.child(seed, randomness.FIRST_PASS, randomness.KEPT_ROWS)
            is_kept[rng.choice(np.flatnonzero(is_other), size, replace=False)] = True
        rows = np.flatnonzero(is_kept)
        places = (np.cumsum(is_kept, dtype=np.int32) - 1)[drawn.rows[:n_views]]
    return KeptRows(np.ascontiguousarray(matrix[rows], dtype=np.float64), places)
