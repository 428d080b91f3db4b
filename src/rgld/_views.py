"""Views: which features a view looks at, and through which projection.

In: a seed, the number of columns. Out: `Views`. Paper, section "Randomized views": a feature
subset S_t without replacement, a Gaussian projection R_t with entries N(0, 1/r), z_t(x) = x[S_t] R_t.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _random

PROJECTION_DIMS = ((3, 2), (20, 5), (40, 8), (100, 12))
"""The paper's rule for r: (largest number of columns, r); beyond the last row, 16."""
LARGEST_PROJECTION_DIM = 16


@dataclass(frozen=True)
class Views:
    """T views of equal shape: m features each, projected to r dimensions."""

    features: NDArray[np.int32]
    """S_t, column numbers, shape (T, m)."""
    projection: NDArray[np.float32]
    """R_t, shape (T, m, r)."""


class ViewShape(NamedTuple):
    """What every view of a fit has in common."""

    n_columns: int
    """d"""
    n_features: int
    """m"""
    projection_dim: int
    """r"""


def view_shape(n_columns: int, feature_fraction: float, min_features: int, projection_dim: int | str) -> ViewShape:
    """Return m = min(d, max(min_features, round(feature_fraction d))) and r, by the paper's table if "auto"."""
    n_features = min(n_columns, max(int(min_features), round(float(feature_fraction) * n_columns)))
    return ViewShape(n_columns, n_features, _paper_dim(n_columns) if projection_dim == "auto" else int(projection_dim))


def _paper_dim(n_columns: int) -> int:
    for most_columns, dim in PROJECTION_DIMS:
        if n_columns <= most_columns:
            return dim
    return LARGEST_PROJECTION_DIM


def draw_views(seed: int, branch: int, n_views: int, shape: ViewShape) -> Views:
    """Draw S_t, in the order of the columns, and R_t of one branch's views."""
    n_columns, n_features, projection_dim = shape
    keys = _random.child(seed, branch, _random.FEATURES).random((n_views, n_columns))
    features = np.sort(keys.argpartition(n_features - 1, axis=1)[:, :n_features], axis=1)
    normals = _random.child(seed, branch, _random.PROJECTION).standard_normal(
        (n_views, n_features, projection_dim), dtype=np.float32
    )
    return Views(features.astype(np.int32), normals * np.float32(projection_dim**-0.5))
