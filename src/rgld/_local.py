"""The local branch: is a row far from its nearest sampled neighbours?

In: scaled rows. Out: a fitted `LocalBranch`, and view scores: the root mean squared distance to the k
nearest references. Paper, "Local neighbor branch".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _kernels, _random
from ._model import LocalBranch
from ._views import Views, ViewShape, draw_views


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
