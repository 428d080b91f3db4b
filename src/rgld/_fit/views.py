"""Views: which features each view looks at, and how it projects them.

In: a seed, the number of columns. Out: `Views`. Paper, section "Randomized views": a feature subset S_t without
replacement, a Gaussian projection R_t with entries N(0, 1/r), z_t(x) = x[S_t] R_t.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .. import _kernels
from .._arrays import Float32s, Float64s, Int64s
from .._model.views import Views
from .._params import Parameters
from .._table.encoding import Encoding
from . import randomness

PROJECTION_DIMS = ((3, 2), (20, 5), (40, 8), (100, 12))
"""The paper's rule for r: (largest number of columns, r); `LARGEST_PROJECTION_DIM` for more columns."""
LARGEST_PROJECTION_DIM = 16


class ViewShape(NamedTuple):
    """What the views of a fit have in common."""

    n_columns: int
    """d"""
    n_features: tuple[int, ...]
    """m; of several, the views take turns"""
    projection_dim: int
    """r"""
    n_scalings: int = 1
    """S; the views take turns"""
    projection: str = "gaussian"
    """The distribution of R_t: one of `PROJECTIONS`."""
    weights: Float64s | None = None
    """Weights of the columns, shape (d,); None means 1 for all."""
    ridges: tuple[float, ...] = (0.0,)
    """Ridges of whitening, 0 for none; the views take turns as with `n_features`."""

    def turns(self, n_views: int) -> Int64s:
        """Return for each view which turn it is: the same for S views, one in each scaling."""
        return np.arange(n_views) // self.n_scalings


def view_shape(encoding: Encoding, parameters: Parameters, n_scalings: int) -> ViewShape:
    """Return what the views of a fit have in common: the number of columns, m, r and the weights of the columns."""
    n_columns = len(encoding.fill)
    fractions = parameters.feature_fraction
    fractions = fractions if isinstance(fractions, Sequence) else (fractions,)
    limits = int(parameters.min_features), parameters.max_features
    sizes = tuple(n_view_features(n_columns, float(fraction), *limits) for fraction in fractions)
    dim = projection_dim(n_columns, max(sizes), parameters.projection_dim, parameters.projection)
    weights = None if encoding.is_plain else encoding.weights
    ridges = parameters.whitening if isinstance(parameters.whitening, Sequence) else (parameters.whitening,)
    return ViewShape(n_columns, sizes, dim, n_scalings, parameters.projection, weights, tuple(map(float, ridges)))


def n_view_features(n_columns: int, fraction: float, min_features: int, max_features: int | None) -> int:
    """Return m = min(d, max_features, max(min_features, round(fraction d)))."""
    most = n_columns if max_features is None else min(n_columns, max_features)
    return min(most, max(min_features, round(fraction * n_columns)))


def projection_dim(n_columns: int, n_features: int, asked: int | str, kind: str) -> int:
    """Return r. "auto" is the paper's rule; for an orthogonal projection twice that, at most `LARGEST_PROJECTION_DIM`.
    There cannot be more orthogonal directions than features."""
    dim = _paper_dim(n_columns) if isinstance(asked, str) else int(asked)
    if kind != "orthogonal":
        return dim
    if asked == "auto":
        dim = min(2 * dim, LARGEST_PROJECTION_DIM)
    return min(dim, n_features)


def _paper_dim(n_columns: int) -> int:
    for max_columns, dim in PROJECTION_DIMS:
        if n_columns <= max_columns:
            return dim
    return LARGEST_PROJECTION_DIM


def draw_views(seed: int, branch: int, n_views: int, shape: ViewShape) -> Views:
    """Return random views of one branch: S_t, in the order of the columns, and R_t.

    View t uses scaling t modulo S. After every S views, the next number of features is used.
    """
    n_columns, sizes, projection_dim, n_scalings, kind, weights, _ = shape
    n_features = np.array(sizes)[shape.turns(n_views) % len(sizes)]
    max_size = max(sizes)
    keys = np.empty((n_views, 0))
    if min(sizes) < n_columns:
        keys = randomness.child(seed, branch, randomness.FEATURES).random((n_views, n_columns))
    normals = randomness.child(seed, branch, randomness.PROJECTION).standard_normal(
        (n_views, max_size, projection_dim), dtype=np.float32
    )
    # Views of fewer features are padded with zeros, which no score depends on: the padding may change, scores may not.
    features = np.zeros((n_views, max_size), dtype=np.int32)
    projection = np.zeros_like(normals)
    for size in set(sizes):
        here = n_features == size if len(set(sizes)) > 1 else slice(None)  # a slice copies nothing
        if size == n_columns:
            features[here, :size] = np.arange(size)
        else:
            features[here, :size] = np.sort(keys[here].argpartition(size - 1, axis=1)[:, :size], axis=1)
        if kind == "orthogonal":
            dim = min(size, projection_dim)
            projection[here, :size, :dim] = _orthogonal(normals[here, :size, :dim])
        else:
            projection[here, :size] = normals[here, :size] * np.float32(projection_dim**-0.5)
    if weights is not None:
        projection *= weights[features].astype(np.float32)[:, :, None]
    features += (np.arange(n_views) % n_scalings * n_columns).astype(np.int32)[:, None]
    return Views(features, projection)


def _orthogonal(normals: Float32s) -> Float64s:
    """Return orthogonal directions in the span of the normals' columns, shape (T, m, r), each of length sqrt(m / r).

    Projected squared distances then have the same mean as under N(0, 1/r); if r = m, distances do not change.

    With A^T A = L L^T, the columns of A L^-T are orthonormal.
    """
    columns = normals.astype(np.float64)
    triangles = np.linalg.cholesky(columns.swapaxes(1, 2) @ columns)
    orthonormal = columns @ _kernels.inverse_triangles(triangles).swapaxes(1, 2)
    directions: Float64s = orthonormal * np.sqrt(columns.shape[1] / columns.shape[2])
    return directions
