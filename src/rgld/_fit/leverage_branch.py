"""Leverage views, the other kind of global view: are a row's random features unusual, given how they vary together?

In: scaled inner rows. Out: a fitted `LeverageBranch`. In a view, a row's features phi are its projected coordinates and
some random cosines; m and C are their mean and covariance over the inner rows. The score of a row is

    (phi - m)^T (C + ridge)^-1 (phi - m),

the inverse Christoffel function of the inner rows: small in the middle of the data, large where there is none. It is
not in the paper, see docs/plus.md.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from .. import _kernels
from .._arrays import Float32s, Float64s, Int32s, Int64s
from .._model.model import LeverageBranch
from .._model.scaling import Scaling
from .._params import Parameters
from .._table.encoding import Encoding
from . import randomness
from .global_branch import RowPairs, base_bandwidths
from .views import LARGEST_PROJECTION_DIM, ViewShape, draw_views

UNIT_SPREAD_SCALINGS = ("standard", "arcsinh-standard", "quantile")
"""Scalings whose columns have about unit variance. Leverage views take turns among those that the detector uses."""

JITTERS = (0.0, 1e-6, 1e-4, 1e-2, 1.0)
"""Added to the ridge in turn, in units of the mean variance of the features, until the covariance is positive definite.
The first is enough unless rounding makes it indefinite."""


def scalings_of(kinds: Sequence[str], n_views: int) -> Int32s:
    """Return the index of the scaling that each view looks at."""
    chosen = [s for s, kind in enumerate(kinds) if kind in UNIT_SPREAD_SCALINGS] or list(range(len(kinds)))
    return np.resize(np.array(chosen, np.int32), n_views)


def fit_leverage(
    rows: _kernels.Rows,
    inner: Int64s,
    pairs: RowPairs,
    scaling: Scaling,
    encoding: Encoding,
    parameters: Parameters,
    seed: int,
) -> LeverageBranch:
    """Return the branch, fitted to the rows with the indices `inner`. The pairs are of these rows, too."""
    branch = _drawn(seed, scaling, encoding, parameters)
    bandwidths = base_bandwidths(_kernels.pair_distances(rows, branch.views, *pairs))
    branch = replace(branch, base_bandwidth=bandwidths)
    sums = _kernels.leverage_sums(rows, branch, inner)
    mean = sums.phi / len(inner)
    covariance = sums.phi_phi / len(inner) - mean[:, :, None] * mean[:, None, :]
    return replace(branch, mean=mean.astype(np.float32), root=inverse_roots(covariance, parameters.ridge))


def _drawn(seed: int, scaling: Scaling, encoding: Encoding, parameters: Parameters) -> LeverageBranch:
    """Return the branch with its random arrays. What is learned from rows is still 0 or 1."""
    n_views, n_columns = parameters.n_global_views, len(encoding.fill)
    n_dims = min(n_columns, LARGEST_PROJECTION_DIM)
    weights = None if encoding.is_plain else encoding.weights
    shape = ViewShape(n_columns, (n_columns,), n_dims, projection="orthogonal", weights=weights)
    multipliers = np.repeat(np.array(parameters.bandwidth_multipliers, np.float64), parameters.n_random_features)
    generator = partial(randomness.child, seed, randomness.GLOBAL)
    normals = generator(randomness.POINTS).standard_normal((n_views, len(multipliers), n_dims))
    phases = generator(randomness.PHASES).uniform(0.0, 2.0 * np.pi, size=(n_views, len(multipliers)))
    n_features = n_dims + len(multipliers)
    return LeverageBranch(
        scalings_of(scaling.kinds, n_views),
        draw_views(seed, randomness.GLOBAL, n_views, shape).projection,
        base_bandwidth=np.ones(n_views),
        frequencies=(normals / multipliers[:, None]).astype(np.float32),
        phases=phases.astype(np.float32),
        mean=np.zeros((n_views, n_features), np.float32),
        root=np.zeros((n_views, n_features, n_features), np.float32),
    )


def inverse_roots(covariances: Float64s, ridge: float) -> Float32s:
    """Return A = L^-1 of each view, lower triangular, with C + ridge = L L^T: |A x|^2 = x^T (C + ridge)^-1 x."""
    try:
        triangles = np.linalg.cholesky(covariances + ridge * np.eye(covariances.shape[1]))
    except np.linalg.LinAlgError:  # of one view at least
        triangles = np.array([_triangle(of_view, ridge) for of_view in covariances])
    return _kernels.inverse_triangles(triangles).astype(np.float32)


def _triangle(covariance: Float64s, ridge: float) -> Float64s:
    """Return L."""
    identity = np.eye(len(covariance))
    for jitter in JITTERS:
        added = ridge + jitter * max(float(np.trace(covariance)) / len(covariance), 0.0)
        try:
            return np.linalg.cholesky(covariance + added * identity).astype(np.float64)
        except np.linalg.LinAlgError:
            continue
    raise AssertionError("a matrix of variances plus its mean variance is positive definite")
