"""The local branch: is a row far from its nearest sampled neighbours?

In: scaled rows. Out: a fitted `LocalBranch`, and view scores: the root mean squared distance to the k
nearest references. Paper, "Local neighbor branch".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _kernels, _random
from ._model import LocalBranch, Sample
from ._views import Views, ViewShape, draw_views

SAMPLE_ROWS = 1000
"""Rows kept to compare with if there is no local branch."""
LARGEST_SAMPLE = 2**22
"""Numbers in the rows kept to compare with, 32 MiB: in tables of thousands of columns, those of fewer views."""


class DrawnLocal(NamedTuple):
    """What depends on the seed, the number of columns and the number of rows only."""

    views: Views
    rows: NDArray[np.int64]
    """Row numbers of C_t, shape (T, C)."""


def draw_local(seed: int, n_views: int, shape: ViewShape, n_rows: int, n_references: int) -> DrawnLocal:
    """Draw the views and, without replacement, their reference rows: as many as asked for, or all rows."""
    views = draw_views(seed, _random.LOCAL, n_views, shape)
    rng = _random.child(seed, _random.LOCAL, _random.REFERENCES)
    size = min(n_references, n_rows)
    return DrawnLocal(views, np.array([rng.choice(n_rows, size, replace=False) for _ in range(n_views)]))


def fit_local(rows: _kernels.Rows, drawn: DrawnLocal, n_neighbors: int) -> LocalBranch:
    """Project the reference rows. Where there are few, k is lowered so that one exact match can be left out."""
    references = _kernels.project_rows(rows, drawn.views, drawn.rows)
    return LocalBranch(drawn.views, references, min(int(n_neighbors), drawn.rows.shape[1] - 1))


def draw_sample(seed: int, matrix: NDArray[np.floating], drawn: DrawnLocal | None) -> Sample:
    """Return the encoded rows behind the references, or some rows if there are none."""
    most_rows = max(2, LARGEST_SAMPLE // matrix.shape[1])
    if drawn is None:
        rng = _random.child(seed, _random.LOCAL, _random.REFERENCES)
        rows = np.sort(rng.choice(len(matrix), min(SAMPLE_ROWS, most_rows, len(matrix)), replace=False))
        places = np.empty((0, 0), np.int32)
    else:
        n_views = max(1, min(len(drawn.rows), most_rows // drawn.rows.shape[1]))
        rows, inverse = np.unique(drawn.rows[:n_views], return_inverse=True)
        places = inverse.reshape(n_views, -1).astype(np.int32)
    return Sample(np.ascontiguousarray(matrix[rows], dtype=np.float64), places)
