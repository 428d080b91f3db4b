"""Whitening: in a whitened view, projected coordinates that vary together count as one.

In: views and scaled inner rows. Out: the views with other projections. A row that breaks a dependency between columns
is then far from its neighbours, though each of its values is usual.
"""

from dataclasses import replace

import numpy as np

from .. import _kernels
from .._arrays import Int64s
from .._model.views import Views
from . import randomness
from .views import ViewShape

MAX_COVARIANCE_ROWS = 2000
"""The covariance of a view is that of at most this many rows."""


def whitened(views: Views, rows: _kernels.Rows, inner: Int64s, shape: ViewShape, seed: int) -> Views:
    """Return the views, those with a ridge above 0 whitened by the rows with the indices `inner`. The ridge is a
    fraction of the mean variance.

    With C the covariance of the projected rows, divided by the mean variance of the r coordinates, and C = U diag(e)
    U^T, the projection becomes R U diag((ridge / (e + ridge))^1/2). (The factor ridge^1/2 changes no score: it keeps
    the projection from growing.)
    """
    ridges = np.array(shape.ridges)[shape.turns(len(views.features)) % len(shape.ridges)]
    chosen = np.flatnonzero(ridges > 0)
    if not len(chosen):
        return views
    indices = inner
    if len(inner) > MAX_COVARIANCE_ROWS:
        rng = randomness.child(seed, randomness.LOCAL, randomness.WHITENING)
        indices = rng.choice(inner, MAX_COVARIANCE_ROWS, replace=False)
    own = Views(views.features[chosen], views.projection[chosen])
    covariance = _kernels.projected_covariances(rows, own, indices)
    n_dims = own.projection.any(axis=1).sum(axis=1)  # narrow views are padded with zeros
    variance = np.trace(covariance, axis1=1, axis2=2) / np.maximum(n_dims, 1)
    varying = variance > 0
    eigenvalues, U = np.linalg.eigh(covariance[varying] / variance[varying, None, None])
    ridge = ridges[chosen][varying, None]
    factors = np.sqrt(ridge / (np.maximum(eigenvalues, 0.0) + ridge))
    projection = views.projection.copy()
    projection[chosen[varying]] = own.projection[varying] @ (U * factors[:, None, :])
    return replace(views, projection=projection)
