"""Views: which features a view looks at, and through which projection.

In: a seed, the number of columns. Out: `Views`. Paper, section "Randomized views": a feature
subset S_t without replacement, a Gaussian projection R_t with entries N(0, 1/r), z_t(x) = x[S_t] R_t.
"""

from collections.abc import Sequence
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
    """T views: up to m features each, projected to r dimensions."""

    features: NDArray[np.int32]
    """S_t, numbers of scaled columns, shape (T, m)."""
    projection: NDArray[np.float32]
    """R_t, shape (T, m, r); a view of fewer than m features has zeros at the end."""


class ViewShape(NamedTuple):
    """What the views of a fit have in common."""

    n_columns: int
    """d"""
    n_features: tuple[int, ...]
    """m, for the views to take in turn"""
    projection_dim: int
    """r"""
    n_scalings: int = 1
    """S, for the views to take in turn"""
    projection: str = "gaussian"
    """The law of R_t."""
    weights: NDArray[np.float64] | None = None
    """What each column counts, shape (d,); None is 1 for all."""


def view_shape(
    n_columns: int,
    feature_fraction: float | Sequence[float],
    min_features: int,
    projection_dim: int | str,
    n_scalings: int = 1,
    projection: str = "gaussian",
    weights: NDArray[np.float64] | None = None,
) -> ViewShape:
    """Return m = min(d, max(min_features, round(feature_fraction d))), and r.

    "auto" is the paper's table; for an orthogonal projection twice that, up to the table's last. Orthogonal directions
    are at most m.
    """
    fractions = feature_fraction if isinstance(feature_fraction, Sequence) else (feature_fraction,)
    n_features = tuple(min(n_columns, max(int(min_features), round(float(f) * n_columns))) for f in fractions)
    orthogonal = projection == "orthogonal"
    dim = _paper_dim(n_columns) if projection_dim == "auto" else int(projection_dim)
    if orthogonal:
        dim = min(2 * dim, LARGEST_PROJECTION_DIM) if projection_dim == "auto" else dim
        dim = min(dim, max(n_features))
    return ViewShape(n_columns, n_features, dim, n_scalings, projection, weights)


def _paper_dim(n_columns: int) -> int:
    for most_columns, dim in PROJECTION_DIMS:
        if n_columns <= most_columns:
            return dim
    return LARGEST_PROJECTION_DIM


def draw_views(seed: int, branch: int, n_views: int, shape: ViewShape) -> Views:
    """Draw S_t, in the order of the columns, and R_t of one branch's views.

    View t takes scaling t modulo S; when all scalings have had their turn, the next number of features is taken.
    """
    n_columns, sizes, projection_dim, n_scalings, law, weights = shape
    views = np.arange(n_views)
    n_features = np.array(sizes)[views // n_scalings % len(sizes)]
    most = max(sizes)
    keys = _random.child(seed, branch, _random.FEATURES).random((n_views, n_columns))
    normals = _random.child(seed, branch, _random.PROJECTION).standard_normal(
        (n_views, most, projection_dim), dtype=np.float32
    )
    features = np.zeros((n_views, most), dtype=np.int32)
    projection = np.zeros_like(normals)
    for size in set(sizes):
        here = n_features == size
        features[here, :size] = np.sort(keys[here].argpartition(size - 1, axis=1)[:, :size], axis=1)
        if law == "orthogonal":
            dim = min(size, projection_dim)
            projection[here, :size, :dim] = _orthogonal(normals[here, :size, :dim])
        else:
            projection[here, :size] = normals[here, :size] * np.float32(projection_dim**-0.5)
    if weights is not None:
        projection *= weights[features].astype(np.float32)[:, :, None]
    features += (views % n_scalings * n_columns).astype(np.int32)[:, None]
    return Views(features, projection)


def _orthogonal(normals: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return orthogonal directions in the span of the normals' columns, shape (T, m, r), of length sqrt(m / r): squared
    distances keep their mean, as under N(0, 1/r), and are kept as they are where r = m.

    With A^T A = L L^T, the columns of A L^-T are orthonormal.
    """
    columns = normals.astype(np.float64)
    triangle = np.linalg.cholesky(columns.swapaxes(1, 2) @ columns)
    orthonormal = columns @ np.linalg.inv(triangle).swapaxes(1, 2)
    directions: NDArray[np.float64] = orthonormal * np.sqrt(columns.shape[1] / columns.shape[2])
    return directions
