"""The global branch: is a row in a broadly thin region?

In: scaled rows. Out: a fitted `GlobalBranch`, and view scores: the mean over bandwidths of the standardized
negative support under a random-feature density estimate. Paper, "Global density branch".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _kernels, _random
from ._blocks import Blocks
from ._model import SMALLEST_BANDWIDTH, SMALLEST_STD, GlobalBranch
from ._views import Views, ViewShape, draw_views

PAIR_BLOCK = 1024
"""The rows of pairs are projected in blocks of this many."""


@dataclass(frozen=True)
class EmbeddingSums:
    """What the global branch learns from rows: sums, so that parts of a table can be added."""

    n_rows: int
    phi: NDArray[np.float64]
    """Sum of phi, shape (M, T, D)."""
    phi_phi: NDArray[np.float64]
    """Sum of phi phi^T, shape (M, T, D, D)."""

    def __add__(self, other: "EmbeddingSums") -> "EmbeddingSums":
        return EmbeddingSums(self.n_rows + other.n_rows, self.phi + other.phi, self.phi_phi + other.phi_phi)


class DrawnGlobal(NamedTuple):
    """What depends on the seed and the number of columns only."""

    views: Views
    frequencies: NDArray[np.float32]
    """W_t, shape (T, D, r)."""
    phases: NDArray[np.float32]
    """b_t, shape (T, D)."""


class RowPairs(NamedTuple):
    """Row numbers of random pairs, i != j."""

    i: NDArray[np.int64]
    j: NDArray[np.int64]


def draw_global(seed: int, n_views: int, shape: ViewShape, n_random_features: int) -> DrawnGlobal:
    """Draw the views, their frequencies (normals from shifted quasi-Monte Carlo points) and uniform phases."""
    rngs = list(_random.children(seed, _random.GLOBAL, n_views))
    views = draw_views(rngs, shape)
    points = _random.sobol_points(_random.child(seed, _random.FREQUENCIES), n_random_features, shape.projection_dim)
    frequencies = np.array([_random.shifted_normals(points, rng) for rng in rngs], dtype=np.float32)
    phases = np.array([rng.uniform(0.0, 2.0 * np.pi, size=n_random_features) for rng in rngs], dtype=np.float32)
    return DrawnGlobal(views, frequencies, phases)


def draw_pairs(seed: int, n_rows: int, n_pairs: int) -> RowPairs:
    """Draw row pairs, once for all views."""
    rng = _random.child(seed, _random.PAIRS)
    i = rng.integers(n_rows, size=n_pairs)
    j = rng.integers(n_rows - 1, size=n_pairs)
    return RowPairs(i, j + (j >= i))


def base_bandwidth(distances: NDArray[np.floating]) -> float:
    """Return the median pair distance; where that is 0, the mean of the positive distances; where there is
    none, 1."""
    median = float(np.median(distances))
    if median > SMALLEST_BANDWIDTH:
        return median
    positive = distances[distances > SMALLEST_BANDWIDTH]
    return float(positive.mean()) if len(positive) else 1.0


def pair_distances(blocks: Blocks, views: Views, pairs: RowPairs) -> NDArray[np.float64]:
    """Return the distance of each row pair in each view, shape (T, pairs). Rows that occur in several pairs
    are projected once."""
    rows, places = np.unique(np.concatenate(pairs), return_inverse=True)
    n_views, _, n_dims = views.projection.shape
    z = np.empty((n_views, n_dims, len(rows)))
    for start in range(0, len(rows), PAIR_BLOCK):
        chunk = slice(start, start + PAIR_BLOCK)
        columns = blocks.take(rows[chunk])
        for t, (features, projection) in enumerate(zip(views.features, views.projection, strict=True)):
            z[t, :, chunk] = projection.T.astype(np.float64) @ columns[features]
    i, j = np.split(places, 2)
    return np.array([np.linalg.norm(z_t[:, i] - z_t[:, j], axis=0) for z_t in z])


def embedding_sums(branch: GlobalBranch, columns: NDArray[np.float32]) -> EmbeddingSums:
    """Return the sums of phi and phi phi^T over a block of rows."""
    angles = _kernels.project(columns, branch.views.features, branch.directions)
    phi_sums, phi_phi_sums = [], []
    for multiplier in branch.multipliers:
        phi = _kernels.random_features(angles, branch.phases, multiplier).astype(np.float64)
        phi_sums.append(phi.sum(axis=2))
        phi_phi_sums.append(phi @ phi.swapaxes(1, 2))
    return EmbeddingSums(columns.shape[1], np.array(phi_sums), np.array(phi_phi_sums))


def fit_global(blocks: Blocks, drawn: DrawnGlobal, pairs: RowPairs, multipliers: Sequence[float]) -> GlobalBranch:
    """Learn bandwidths from row pairs, then mean embeddings and the distribution of the support in one pass
    over the rows."""
    bandwidths = [base_bandwidth(distances) for distances in pair_distances(blocks, drawn.views, pairs)]
    n_views, n_random_features = drawn.phases.shape
    shape = (n_views, len(multipliers))
    branch = GlobalBranch(
        *drawn,
        base_bandwidth=np.array(bandwidths),
        multipliers=np.array(multipliers, dtype=np.float64),
        mean_embedding=np.zeros((*shape, n_random_features), np.float32),
        support_mean=np.zeros(shape, np.float32),
        support_std=np.zeros(shape, np.float32),
    )
    sums = reduce(EmbeddingSums.__add__, blocks.map(partial(embedding_sums, branch), branch.floats_per_row))
    return finish_global(branch, sums)


def finish_global(branch: GlobalBranch, sums: EmbeddingSums) -> GlobalBranch:
    """Turn sums into mean embeddings and into the mean and standard deviation of the support.

    With m = mean of phi and C = mean of phi phi^T - m m^T, the support <phi, mu> has mean <m, mu> and
    variance mu^T C mu.
    """
    mean = sums.phi / sums.n_rows
    covariance = sums.phi_phi / sums.n_rows - mean[..., :, None] * mean[..., None, :]
    mean_embedding = mean.astype(np.float32)
    mu = mean_embedding.astype(np.float64)
    support_mean = np.einsum("mtd,mtd->tm", mean, mu)
    variance = np.einsum("mtd,mtde,mte->tm", mu, covariance, mu)
    std = np.sqrt(np.maximum(variance, 0.0))
    std[std < SMALLEST_STD] = 0.0
    return replace(
        branch,
        mean_embedding=np.ascontiguousarray(mean_embedding.swapaxes(0, 1)),
        support_mean=support_mean.astype(np.float32),
        support_std=std.astype(np.float32),
    )


def global_view_scores(branch: GlobalBranch, columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean over bandwidths of (mean support - support) / std, shape (T, b); a bandwidth with std
    0 contributes 0."""
    angles = _kernels.project(columns, branch.views.features, branch.directions)
    weights = np.divide(1.0, branch.support_std, out=np.zeros_like(branch.support_std), where=branch.support_std > 0.0)
    weights /= np.float32(len(branch.multipliers))
    scores = np.zeros((len(angles), columns.shape[1]), dtype=np.float32)
    for m, multiplier in enumerate(branch.multipliers):
        phi = _kernels.random_features(angles, branch.phases, multiplier)
        support = _kernels.support(phi, branch.mean_embedding[:, m])
        scores += (branch.support_mean[:, m, None] - support) * weights[:, m, None]
    return scores
