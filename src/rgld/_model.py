"""The frozen model: every array a score depends on, and nothing else.

A `Model` is made by `fit` and never changed. A row's score is a pure function of the row and of these
arrays; none of them grows with the number of training rows.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ._encoding import Encoding
from ._preprocess import Scaling
from ._ranks import BranchRanks
from ._views import Views

SMALLEST_STD = 1e-6
"""A support is a float32 number of order 1: a standard deviation below this is rounding, and counts as 0."""

SMALLEST_BANDWIDTH = 1e-15
"""Distances below this count as 0: smaller bandwidths would overflow the float32 angles of far rows."""


@dataclass(frozen=True, eq=False)
class GlobalBranch:
    """T random-feature density estimates, each at M bandwidths."""

    views: Views
    frequencies: NDArray[np.float32]
    """W_t, shape (T, D, r)."""
    phases: NDArray[np.float32]
    """b_t, shape (T, D), in [0, 2 pi]."""
    base_bandwidth: NDArray[np.float64]
    """Median pair distance in the view, shape (T,)."""
    multipliers: NDArray[np.float64]
    """alpha_m, shape (M,): the bandwidths are multipliers * base_bandwidth."""
    mean_embedding: NDArray[np.float32]
    """mu, shape (T, M, D)."""
    support_mean: NDArray[np.float32]
    """Mean support of the training rows, shape (T, M)."""
    support_std: NDArray[np.float32]
    """Its standard deviation, shape (T, M); 0 where all rows have the same support."""

    @property
    def floats_per_row(self) -> int:
        """Numbers the kernels hold per row: the angles, the features of one bandwidth, one temporary, the
        gathered columns."""
        return 3 * self.phases.size + 2 * self.views.features.size

    @property
    def smallest_scores(self) -> NDArray[np.float32]:
        """Zeros, shape (T,): view scores are standardized as they are."""
        return np.zeros(len(self.phases), np.float32)

    @cached_property
    def directions(self) -> NDArray[np.float32]:
        """R_t W_t^T / base bandwidth, shape (T, m, D): from scaled features straight to the angles of the
        random features."""
        projection, frequencies = self.views.projection.astype(np.float64), self.frequencies.astype(np.float64)
        directions = np.einsum("tmr,tdr->tmd", projection, frequencies) / self.base_bandwidth[:, None, None]
        rounded: NDArray[np.float32] = directions.astype(np.float32)
        return rounded


SMALLEST_DISTANCE = 1e-4
"""The least distance a logarithm is taken of, in units of the spread of the references."""


@dataclass(frozen=True, eq=False)
class LocalBranch:
    """T sets of reference rows, projected."""

    views: Views
    references: NDArray[np.float32]
    """z_t of the sampled training rows C_t, shape (T, r, C)."""
    n_neighbors: int
    """k, below C, so that one exact match can be left out."""

    @property
    def smallest_scores(self) -> NDArray[np.float32]:
        """The least distance of each view that a logarithm is taken of, shape (T,)."""
        spread = np.sqrt(self.references.astype(np.float64).var(axis=2).sum(axis=1))
        smallest: NDArray[np.float32] = np.maximum(SMALLEST_DISTANCE * spread, SMALLEST_BANDWIDTH).astype(np.float32)
        return smallest

    @property
    def floats_per_row(self) -> int:
        """Numbers the kernels hold per row: two arrays of distances, the projected row and one temporary,
        the gathered columns."""
        n_views, n_dims, n_references = self.references.shape
        return int(2 * n_references + 2 * n_views * n_dims + 2 * self.views.features.size)


@dataclass(frozen=True, eq=False)
class Sample:
    """Training rows that explanations compare with: the references of the local branch before their projection."""

    rows: NDArray[np.float64]
    """Encoded rows, shape (u, e)."""
    places: NDArray[np.int32]
    """Which of them are the references of each local view, shape (T', C): of all views, or of the first T'."""


@dataclass(frozen=True, eq=False)
class Model:
    """Everything a score, an explanation or a p-value depends on. A branch without views is None, as are its ranks."""

    encoding: Encoding
    scaling: Scaling
    global_branch: GlobalBranch | None
    global_ranks: BranchRanks | None
    local_branch: LocalBranch | None
    local_ranks: BranchRanks | None
    local_weight: float
    """The weight of the local score; the global one has the rest."""
    sample: Sample
    calibration: NDArray[np.float64]
    """Anomaly scores of the rows held out of the fit, increasing, shape (h,); none unless asked for."""
