"""The global branch: is a row in a broadly thin region?

In: scaled rows. Out: a fitted `GlobalBranch`, and view scores: the mean over bandwidths of the standardized
negative support under a random-feature density estimate. Paper, "Global density branch".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _kernels, _random
from ._model import SMALLEST_BANDWIDTH, SMALLEST_STD, GlobalBranch
from ._views import Views, ViewShape, draw_views

PAIR_ROWS = 512
"""Pairs are made of so many sampled rows: each is projected once, and the median distance of 8192 pairs varies hardly
more than with rows drawn anew for every pair."""


@dataclass(frozen=True)
class EmbeddingSums:
    """What the global branch learns from rows."""

    n_rows: int
    phi: NDArray[np.float64]
    """Sum of phi, shape (T, M, D)."""
    phi_phi: NDArray[np.float64]
    """Sum of phi phi^T, shape (T, M, D, D)."""

    def merge(self, other: "EmbeddingSums") -> "EmbeddingSums":
        """Return the sums over the rows of both."""
        return EmbeddingSums(self.n_rows + other.n_rows, self.phi + other.phi, self.phi_phi + other.phi_phi)


class DrawnGlobal(NamedTuple):
    """What depends on the seed and the number of columns only."""

    views: Views
    frequencies: NDArray[np.float32]
    """W_t, shape (T, D, r)."""
    phases: NDArray[np.float32]
    """b_t, shape (T, D)."""


class RowPairs(NamedTuple):
    """Random pairs of rows: every row with its neighbour, then with the one after that, and so on. The rows stand in
    random order, so that neighbours are random pairs; the last one's neighbour is the first."""

    rows: NDArray[np.int64]
    """Row numbers, all different."""
    n_pairs: int


def draw_global(seed: int, n_views: int, shape: ViewShape, n_random_features: int) -> DrawnGlobal:
    """Draw the views, their frequencies (normals from shifted quasi-Monte Carlo points) and uniform phases."""
    branch = _random.GLOBAL
    views = draw_views(seed, branch, n_views, shape)
    points = _random.sobol_points(_random.child(seed, branch, _random.POINTS), n_random_features, shape.projection_dim)
    shifts = _random.child(seed, branch, _random.SHIFTS).random((n_views, shape.projection_dim))
    phases = _random.child(seed, branch, _random.PHASES).uniform(0.0, 2.0 * np.pi, size=(n_views, n_random_features))
    return DrawnGlobal(views, _random.shifted_normals(points, shifts).astype(np.float32), phases.astype(np.float32))


def draw_pairs(seed: int, n_rows: int, n_pairs: int) -> RowPairs:
    """Draw row pairs, once for all views, of at most `PAIR_ROWS` rows; at most as many pairs as there are."""
    rng = _random.child(seed, _random.GLOBAL, _random.PAIRS)
    rows = rng.choice(n_rows, min(n_rows, PAIR_ROWS), replace=False)
    return RowPairs(rows, min(n_pairs, len(rows) * (len(rows) // 2)))


def base_bandwidths(typical: _kernels.Distances) -> NDArray[np.float64]:
    """Return each view's median pair distance; where that is 0, the mean of the positive distances; where there is
    none, 1."""
    fallback = np.where(typical.mean_positive > SMALLEST_BANDWIDTH, typical.mean_positive, 1.0)
    return np.where(typical.median > SMALLEST_BANDWIDTH, typical.median, fallback)


def unfinished_global(
    sample: _kernels.Rows, drawn: DrawnGlobal, pairs: RowPairs, multipliers: Sequence[float]
) -> GlobalBranch:
    """Learn bandwidths from row pairs of a sample; what is learned from all rows is still to come."""
    bandwidths = base_bandwidths(_kernels.pair_distances(sample, drawn.views, *pairs))
    n_views, n_random_features = drawn.phases.shape
    shape = (n_views, len(multipliers))
    return GlobalBranch(
        *drawn,
        base_bandwidth=bandwidths,
        multipliers=np.array(multipliers, dtype=np.float64),
        mean_embedding=np.zeros((*shape, n_random_features), np.float32),
        support_mean=np.zeros(shape, np.float32),
        support_std=np.zeros(shape, np.float32),
    )


def finish_global(branch: GlobalBranch, sums: EmbeddingSums) -> GlobalBranch:
    """Turn sums into mean embeddings and into the mean and standard deviation of the support.

    With m = mean of phi and C = mean of phi phi^T - m m^T, the support <phi, mu> has mean <m, mu> and
    variance mu^T C mu.
    """
    mean = sums.phi / sums.n_rows
    covariance = sums.phi_phi / sums.n_rows - mean[..., :, None] * mean[..., None, :]
    mean_embedding = mean.astype(np.float32)
    mu = mean_embedding.astype(np.float64)
    support_mean = np.einsum("tmd,tmd->tm", mean, mu)
    variance = np.einsum("tmd,tmde,tme->tm", mu, covariance, mu)
    std = np.sqrt(np.maximum(variance, 0.0))
    std[std < SMALLEST_STD] = 0.0
    return replace(
        branch,
        mean_embedding=mean_embedding,
        support_mean=support_mean.astype(np.float32),
        support_std=std.astype(np.float32),
    )
