"""The local branch: is a row far from its nearest sampled neighbours?

In: scaled rows. Out: a fitted `LocalBranch`, and view scores: the root mean squared distance to the k
nearest references. Paper, "Local neighbor branch".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _kernels, _random
from ._blocks import Blocks
from ._model import LocalBranch
from ._views import Views, ViewShape, draw_views


class DrawnLocal(NamedTuple):
    """What depends on the seed, the number of columns and the number of rows only."""

    views: Views
    rows: NDArray[np.int64]
    """Row numbers of C_t, shape (T, C)."""


def draw_local(seed: int, n_views: int, shape: ViewShape, n_rows: int, n_references: int) -> DrawnLocal:
    """Draw the views and, without replacement, their reference rows: as many as asked for, or all rows."""
    rngs = list(_random.children(seed, _random.LOCAL, n_views))
    views = draw_views(rngs, shape)
    size = min(n_references, n_rows)
    return DrawnLocal(views, np.array([rng.choice(n_rows, size, replace=False) for rng in rngs]))


def fit_local(blocks: Blocks, drawn: DrawnLocal, n_neighbors: int) -> LocalBranch:
    """Project the reference rows. Where there are few, k is lowered so that one exact match can be left out."""
    views, rows = drawn
    references = [
        _kernels.project(blocks.take(rows_t), views.features[t : t + 1], views.projection[t : t + 1])[0]
        for t, rows_t in enumerate(rows)
    ]
    return LocalBranch(views, np.array(references), min(int(n_neighbors), rows.shape[1] - 1))


def local_view_scores(branch: LocalBranch, columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the neighbour distance of each row in each view, shape (T, b)."""
    z = _kernels.project(columns, branch.views.features, branch.views.projection)
    distances = [
        _kernels.neighbor_distance(z_t, references_t, branch.n_neighbors)
        for z_t, references_t in zip(z, branch.references, strict=True)
    ]
    return np.array(distances)
