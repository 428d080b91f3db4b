"""The global branch: is a row in a sparse region?

In: scaled rows. Out: a fitted `GlobalBranch`. The score of a view is the mean over bandwidths of the standardized
negative support of the row, by a random-feature density estimate. Paper, "Global density branch".
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from .. import _kernels
from .._arrays import Float32s, Float64s, Int64s
from .._model.model import SMALLEST_BANDWIDTH, SMALLEST_STD, GlobalBranch
from .._model.views import Views
from . import randomness
from .states import Mergeable
from .views import ViewShape, draw_views

MAX_PAIR_ROWS = 512
"""Pairs are made of at most this many rows of the sample. Each row is then projected once, and the median distance of
8192 pairs varies hardly more than if new rows were drawn for every pair."""


@dataclass(frozen=True)
class EmbeddingSums(Mergeable):
    """Sums over rows, from which the global branch is fitted. They merge."""

    n_rows: int
    phi: Float64s
    """Sum of phi, shape (T, M, D)."""
    phi_phi: Float64s
    """Sum of phi phi^T, shape (T, M, D, D)."""

    @classmethod
    def of(cls, rows: _kernels.Rows, branch: GlobalBranch) -> "EmbeddingSums":
        """Return the sums over some rows."""
        return cls(rows.n_rows, *_kernels.embedding_sums(rows, branch))

    def merge(self, other: "EmbeddingSums") -> "EmbeddingSums":
        """Return the sums over the rows of both."""
        return EmbeddingSums(self.n_rows + other.n_rows, self.phi + other.phi, self.phi_phi + other.phi_phi)


class DrawnGlobal(NamedTuple):
    """The random arrays of the global branch. They depend only on the seed and the number of columns."""

    views: Views
    frequencies: Float32s
    """W_t, shape (T, D, r)."""
    phases: Float32s
    """b_t, shape (T, D)."""


class RowPairs(NamedTuple):
    """Random pairs of rows: first every row with the next one, then every row with the one after that, and so on; the
    row after the last is the first. The rows are in random order, so that these are random pairs."""

    rows: Int64s
    """Indices of the pair rows, all different."""
    n_pairs: int


def draw_global(seed: int, n_views: int, shape: ViewShape, n_random_features: int) -> DrawnGlobal:
    """Return random views, their frequencies (normals from shifted quasi-Monte Carlo points) and uniform phases."""
    views = draw_views(seed, randomness.GLOBAL, n_views, shape)
    generator = partial(randomness.child, seed, randomness.GLOBAL)
    points = randomness.sobol_points(generator(randomness.POINTS), n_random_features, shape.projection_dim)
    shifts = generator(randomness.SHIFTS).random((n_views, shape.projection_dim))
    phases = generator(randomness.PHASES).uniform(0.0, 2.0 * np.pi, size=(n_views, n_random_features))
    return DrawnGlobal(views, randomness.shifted_normals(points, shifts).astype(np.float32), phases.astype(np.float32))


def draw_pairs(seed: int, indices: Int64s, n_pairs: int) -> RowPairs:
    """Return random pairs of the rows with these indices, the same for all views. They are of at most `MAX_PAIR_ROWS`
    rows; fewer than `n_pairs` if these rows do not have so many pairs."""
    rng = randomness.child(seed, randomness.GLOBAL, randomness.PAIRS)
    rows = indices[rng.choice(len(indices), min(len(indices), MAX_PAIR_ROWS), replace=False)]
    return RowPairs(rows, min(n_pairs, len(rows) * (len(rows) // 2)))


def base_bandwidths(typical: _kernels.Distances) -> Float64s:
    """Return each view's median pair distance. If that is 0, return the mean of the positive distances; if there is no
    positive distance, return 1."""
    fallback = np.where(typical.mean_positive > SMALLEST_BANDWIDTH, typical.mean_positive, 1.0)
    return np.where(typical.median > SMALLEST_BANDWIDTH, typical.median, fallback)


def unfinished_global(
    sample: _kernels.Rows, drawn: DrawnGlobal, pairs: RowPairs, multipliers: Sequence[float]
) -> GlobalBranch:
    """Return the branch with bandwidths from row pairs of the sample. What is learned from all rows is still 0: see
    `finish_global`."""
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
    """Return the branch with its mean embeddings, and with the mean and standard deviation of the support.

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
    finished = replace(
        branch,
        mean_embedding=mean_embedding,
        support_mean=support_mean.astype(np.float32),
        support_std=std.astype(np.float32),
    )
    vars(finished)["directions"] = branch.directions  # computed already, and the same
    return finished
