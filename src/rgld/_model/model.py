"""The frozen model: every array that a score depends on.

`fit` makes a `Model`, and nothing changes it afterwards. A row's score is a pure function of the row and of these
arrays. The size of the model does not grow with the number of training rows.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np

from .._arrays import Float32s, Float64s, Int32s
from .._table.encoding import Encoding
from .._table.profiles import Profiles
from .fields import Array
from .ranks import BranchRanks
from .relations import Relations
from .scaling import Scaling
from .views import Views

SMALLEST_STD = 1e-6
"""A support is a float32 number of about 1: a standard deviation below this comes from rounding and counts as 0."""

SMALLEST_BANDWIDTH = 1e-15
"""Distances below this count as 0: with smaller bandwidths the float32 angles of far rows would overflow."""


@dataclass(frozen=True, eq=False)
class GlobalBranch:
    """T random-feature density estimates, each at M bandwidths."""

    views: Views
    frequencies: Annotated[Float32s, Array("T D r", -10.0, 10.0)]
    """W_t."""
    phases: Annotated[Float32s, Array("T D", 0.0, 6.2832)]
    """b_t, in [0, 2 pi]."""
    base_bandwidth: Annotated[Float64s, Array("T", SMALLEST_BANDWIDTH, 1e15)]
    """Median pair distance in the view."""
    multipliers: Annotated[Float64s, Array("M", 1e-3, 1e3)]
    """alpha_m: the bandwidths are multipliers * base_bandwidth."""
    mean_embedding: Annotated[Float32s, Array("T M D", -1.5, 1.5)]
    """mu."""
    support_mean: Annotated[Float32s, Array("T M", -3.0, 3.0)]
    """Mean support of the training rows."""
    support_std: Annotated[Float32s, Array("T M", 0.0, 3.0)]
    """Standard deviation of the support; 0 if all training rows have the same."""

    @property
    def floats_per_row(self) -> int:
        """How many floats the kernels hold per row: the angles, the random features of one bandwidth, a temporary
        array, the gathered columns."""
        return 3 * self.phases.size + 2 * self.views.features.size

    @property
    def smallest_scores(self) -> Float32s:
        """Zeros, shape (T,): no logarithm is taken of the view scores."""
        return np.zeros(len(self.phases), np.float32)

    @cached_property
    def directions(self) -> Float32s:
        """R_t W_t^T / base bandwidth, shape (T, m, D): scaled features times this are the angles of the random
        features."""
        projection, frequencies = self.views.projection.astype(np.float64), self.frequencies.astype(np.float64)
        directions = np.einsum("tmr,tdr->tmd", projection, frequencies) / self.base_bandwidth[:, None, None]
        rounded: Float32s = directions.astype(np.float32)
        return rounded


LINEAR_WEIGHT = 0.3
"""Weight of the projected coordinates among the features of a leverage view; the cosines have weight 1."""

SMALLEST_LEVERAGE, LARGEST_LEVERAGE = 1e-12, 1e37
"""Leverages outside this range count as its ends."""


@dataclass(frozen=True, eq=False)
class LeverageBranch:
    """T leverage views: how unusual are a row's features phi, given their mean and covariance C over the inner rows?

    The features of a view are the projected coordinates z and F cosines:

        phi = [linear z ; cos(angular_frequencies z + phases)],   score = |A (phi - mean)|^2,   A^T A = (C + ridge)^-1

    The name is from regression: this is the leverage of a row in a regression on phi.
    """

    scalings: Annotated[Int32s, Array("T", index_of="scalings", since=3)]
    """The scaling that each view looks at, with all its columns."""
    projection: Annotated[Float32s, Array("T columns q", -100.0, 100.0, since=3)]
    """R_t."""
    base_bandwidth: Annotated[Float64s, Array("T", SMALLEST_BANDWIDTH, 1e15, since=3)]
    """h_t, the median pair distance in the view."""
    frequencies: Annotated[Float32s, Array("T F q", -1e4, 1e4, since=3)]
    """W_t, already divided by the bandwidth multipliers."""
    phases: Annotated[Float32s, Array("T F", 0.0, 6.2832, since=3)]
    """b_t, in [0, 2 pi]."""
    mean: Annotated[Float32s, Array("T P", -1e30, 1e30, since=3)]
    """Mean of phi over the inner rows."""
    root: Annotated[Float32s, Array("T P P", -1e4, 1e4, since=3)]
    """A, lower triangular."""

    @property
    def floats_per_row(self) -> int:
        """How many floats the kernels hold per row: features, their products with A, a temporary array, the gathered
        columns."""
        return 3 * self.mean.size + 2 * self.views.features.size

    @property
    def smallest_scores(self) -> Float32s:
        """For each view the leverage that smaller ones count as before their logarithm is taken, shape (T,)."""
        return np.full(len(self.phases), SMALLEST_LEVERAGE, np.float32)

    @cached_property
    def views(self) -> Views:
        """The views as feature subsets and projections: each has all columns of one scaling."""
        n_columns = self.projection.shape[1]
        features = self.scalings[:, None] * n_columns + np.arange(n_columns, dtype=np.int32)
        return Views(features.astype(np.int32), self.projection)

    @cached_property
    def linear(self) -> Float32s:
        """Factor of the projected coordinates, shape (T,). sqrt(2 r) / h_t would bring them to about unit variance."""
        n_dims = self.projection.shape[2]
        factor: Float32s = (LINEAR_WEIGHT * np.sqrt(2.0 * n_dims) / self.base_bandwidth).astype(np.float32)
        return factor

    @cached_property
    def angular_frequencies(self) -> Float32s:
        """W_t / h_t, shape (T, F, q)."""
        frequencies: Float32s = (self.frequencies / self.base_bandwidth[:, None, None]).astype(np.float32)
        return frequencies


SMALLEST_DISTANCE = 1e-4
"""Smaller distances, in units of the spread of the references, count as this before their logarithm is taken."""


@dataclass(frozen=True, eq=False)
class LocalBranch:
    """T sets of reference rows, projected."""

    views: Views
    references: Annotated[Float32s, Array("T r C", -1e17, 1e17)]
    """z_t of the training rows C_t."""
    n_neighbors: int
    """k. It is below C, so that one exact match can be left out."""

    @property
    def smallest_scores(self) -> Float32s:
        """For each view the distance that smaller distances count as before their logarithm is taken, shape (T,)."""
        spread = np.sqrt(self.references.astype(np.float64).var(axis=2).sum(axis=1))
        smallest: Float32s = np.maximum(SMALLEST_DISTANCE * spread, SMALLEST_BANDWIDTH).astype(np.float32)
        return smallest

    @property
    def floats_per_row(self) -> int:
        """How many floats the kernels hold per row: two arrays of distances, the projected row, a temporary array, the
        gathered columns."""
        n_views, n_dims, n_references = self.references.shape
        return int(2 * n_references + 2 * n_views * n_dims + 2 * self.views.features.size)


Branch = GlobalBranch | LeverageBranch | LocalBranch


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Training rows that explanations compare with: the references of the local branch, before their projection."""

    rows: Annotated[Float64s, Array("kept_rows columns", since=2)]
    """The rows, encoded."""
    places: Annotated[Int32s, Array("kept_views kept_references", index_of="kept_rows", since=2)]
    """For each local view, or for the first ones only, the indices of its references in `rows`."""


@dataclass(frozen=True, eq=False)
class Model:
    """Everything a score, an explanation, a p-value or a check depends on. A branch without views is None, as are its
    ranks."""

    encoding: Encoding
    scaling: Scaling
    global_branch: GlobalBranch | LeverageBranch | None
    global_ranks: BranchRanks | None
    local_branch: LocalBranch | None
    local_ranks: BranchRanks | None
    local_weight: float
    """The weight of the local score; the weight of the global score is 1 minus this."""
    kept_rows: KeptRows
    calibration: Annotated[Float64s, Array("held_out", 1e-18, 1.0, is_sorted=True, since=2)]
    """Anomaly scores of the rows held out of the fit; empty unless `calibration_fraction` is set."""
    relations: Relations | None = None
    """None if none were asked for, or the table has none."""
    profiles: Profiles = field(default_factory=Profiles.none)
    """What is remembered of the columns, to tell whether a later table is still like the training table."""

    @property
    def n_branches(self) -> int:
        """Number of branches with views: one or two."""
        return (self.global_branch is not None) + (self.local_branch is not None)
