"""The scores of a block of rows, in NumPy and float32.

Rows lie along the last axis and every operation is elementwise along it. There is no BLAS and no sum over a contiguous
axis: their rounding depends on the shape of the block. The result of a row is therefore the same to the bit in any
block and at any place of it.
"""

import numpy as np

from .._arrays import Float32s, Int32s
from .._model.model import LARGEST_LEVERAGE, GlobalBranch, LeverageBranch, LocalBranch


def project(columns: Float32s, features: Int32s, projection: Float32s) -> Float32s:
    """z[t, c, i] = sum over j of columns[features[t, j], i] * projection[t, j, c].

    Parameters
    ----------
    columns : (d, b) scaled values; features : (T, m) column indices; projection : (T, m, r).

    Returns
    -------
    z : (T, r, b)
    """
    n_views, n_features, n_dims = projection.shape
    z = np.zeros((n_views, n_dims, columns.shape[1]), dtype=np.float32)
    term = np.empty_like(z)
    for j in range(n_features):
        np.multiply(columns[features[:, j], None, :], projection[:, j, :, None], out=term)
        z += term
    return z


def random_features(angles: Float32s, phases: Float32s, multiplier: float) -> Float32s:
    """phi = sqrt(2 / D) cos(angles / multiplier + phases), with angles (T, D, b) at the base bandwidth and
    phases (T, D)."""
    phi = np.divide(angles, np.float32(multiplier))
    phi += phases[:, :, None]
    np.cos(phi, out=phi)
    phi *= np.float32(np.sqrt(2.0 / angles.shape[1]))
    return phi


def support(phi: Float32s, mean_embedding: Float32s) -> Float32s:
    """<phi, mean_embedding> per view and row: phi (T, D, b), mean_embedding (T, D), result (T, b)."""
    total = phi[:, 0] * mean_embedding[:, 0, None]
    for j in range(1, phi.shape[1]):
        total += phi[:, j] * mean_embedding[:, j, None]
    return total


def neighbor_distance(z: Float32s, references: Float32s, n_neighbors: int) -> Float32s:
    """Root mean squared distance to the n_neighbors nearest references, leaving out one exact match.

    Parameters
    ----------
    z : (r, b) projected rows; references : (r, C) projected training rows, C > n_neighbors.

    Returns
    -------
    distance : (b,)
    """
    squared = np.subtract(z[0, :, None], references[0])
    squared *= squared
    difference = np.empty_like(squared)
    for z_c, references_c in zip(z[1:], references[1:], strict=True):
        np.subtract(z_c[:, None], references_c, out=difference)
        difference *= difference
        squared += difference
    squared.partition(n_neighbors, axis=1)
    nearest = np.sort(squared[:, : n_neighbors + 1], axis=1).T
    total = np.where(nearest[0] == 0.0, nearest[n_neighbors], nearest[0])
    for squared_distance in nearest[1:n_neighbors]:
        total += squared_distance
    distance: Float32s = np.sqrt(total / np.float32(n_neighbors))
    return distance


def global_view_scores(branch: GlobalBranch, columns: Float32s) -> Float32s:
    """Return the mean over bandwidths of (mean support - support) / std, shape (T, b); a bandwidth with std
    0 contributes 0."""
    angles = project(columns, branch.views.features, branch.directions)
    weights = np.divide(1.0, branch.support_std, out=np.zeros_like(branch.support_std), where=branch.support_std > 0.0)
    weights /= np.float32(len(branch.multipliers))
    scores = np.zeros((len(angles), columns.shape[1]), dtype=np.float32)
    for m, multiplier in enumerate(branch.multipliers):
        phi = random_features(angles, branch.phases, multiplier)
        of_rows = support(phi, branch.mean_embedding[:, m])
        scores += (branch.support_mean[:, m, None] - of_rows) * weights[:, m, None]
    return scores


def leverage_features(branch: LeverageBranch, columns: Float32s) -> Float32s:
    """Return phi, shape (T, P, b): the projected coordinates times `linear`, then the cosines."""
    z = project(columns, branch.views.features, branch.projection)
    angles = np.repeat(branch.phases[:, :, None], columns.shape[1], axis=2)
    for c in range(z.shape[1]):
        angles += z[:, c, None, :] * branch.angular_frequencies[:, :, c, None]
    return np.concatenate((z * branch.linear[:, None, None], np.cos(angles)), axis=1)


def leverage_view_scores(branch: LeverageBranch, columns: Float32s) -> Float32s:
    """Return |A (phi - mean)|^2 of each row in each view, shape (T, b)."""
    deviation = leverage_features(branch, columns) - branch.mean[:, :, None]
    y = np.zeros_like(deviation)
    with np.errstate(over="ignore", invalid="ignore"):
        for j in range(deviation.shape[1]):  # A is lower triangular
            y[:, j:] += branch.root[:, j:, j, None] * deviation[:, j, None, :]
        scores = np.zeros_like(y[:, 0])
        for of_feature in y.swapaxes(0, 1):
            scores += of_feature * of_feature
    return np.where(scores < np.float32(LARGEST_LEVERAGE), scores, np.float32(LARGEST_LEVERAGE))


def local_view_scores(branch: LocalBranch, columns: Float32s) -> Float32s:
    """Return the neighbour distance of each row in each view, shape (T, b)."""
    z = project(columns, branch.views.features, branch.views.projection)
    distances = [
        neighbor_distance(z_t, references_t, branch.n_neighbors)
        for z_t, references_t in zip(z, branch.references, strict=True)
    ]
    return np.array(distances)
