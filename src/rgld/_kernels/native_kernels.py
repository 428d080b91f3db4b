"""The compiled core: the functions of `numpy_kernels`, with the arrays of the model prepared for `_core`.

The C++ is in `core/`. The phases of the random features become weights of cosine and sine. Bandwidths stand from the
widest to the narrowest: where a multiplier is half the one before, the core doubles the angle instead of computing
another cosine and sine.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from .._arrays import Bools, Float32s, Float64s, Floats, Indices, Int32s, Int64s, Integers, UInt8s
from .._model.model import SMALLEST_BANDWIDTH, Branch, GlobalBranch, LeverageBranch, LocalBranch, Model
from .._model.ranks import (
    EXACT_CDF_SIZE,
    SMALLEST_RANGE,
    SMALLEST_SCALE,
    STANDARD_BOUNDS,
    BranchRanks,
    Cdf,
    grid_ranks,
)
from .._model.scaling import ARCSINH_KINDS, LARGEST_RAW_VALUE, LARGEST_VALUE, Scaling
from .._model.statistics import DISTINCT_ROWS, ColumnStatistics
from .._model.views import Views
from . import _core
from .numpy_kernels import ColumnKnots, Distances, Moments, Sums, Team

Native = TypeVar("Native")
Part = Scaling | Branch | BranchRanks

_PREPARED: WeakKeyDictionary[Part, Any] = WeakKeyDictionary()
"""The core's own objects for the parts of models in use. They are kept outside the models, which copy and pickle."""

NUMPY_SORTS_FAST = _core.instruction_set() in ("avx2", "avx512")
"""Whether NumPy sorts with vectors. For 4,096 normal numbers it then takes 0.3 (AVX-512) or 0.6 (AVX2) of the core's
time, else 4 times as long."""


def _prepared(part: Part, prepare: Callable[[], Native]) -> Native:
    """Return the core's object for a part of a model, made when it is first needed."""
    native: Native | None = _PREPARED.get(part)
    if native is None:
        native = _PREPARED[part] = prepare()
    return native


def team(n_threads: int) -> AbstractContextManager[Team | None]:
    """Return a context in which all calls share their threads, instead of starting some in each call. It gives a
    `Team`, None with one thread."""
    return _core.Team(n_threads) if n_threads > 1 else nullcontext()


class Rows:
    """A raw matrix (n, d) with its scaling."""

    def __init__(self, X: Floats, scaling: Scaling, n_threads: int, keep: bool = False, features: Int32s | None = None):
        """With `keep`, scale all rows now, if they fit a budget: all columns, or only these features of some views."""
        self.n_rows = len(X)
        self.n_threads = n_threads
        self.native = _core.Rows(_plain(X), _native_scaling(scaling), keep, features, n_threads)

    def take(self, indices: Integers) -> Float32s:
        """Return the rows with these indices as scaled columns, shape (d, len(indices))."""
        return self.native.take(np.ascontiguousarray(indices, dtype=np.int64))


def _plain(X: Floats) -> Floats:
    """Return the matrix in native byte order, with strides that are whole numbers of elements; a copy if need be."""
    is_plain = X.dtype.isnative and X.flags.aligned and all(step % X.itemsize == 0 for step in X.strides)
    return X if is_plain else np.ascontiguousarray(X, dtype=X.dtype.newbyteorder("="))


def _native_scaling(scaling: Scaling) -> _core.Scaling:
    kinds = ["arcsinh" if kind in ARCSINH_KINDS else kind for kind in scaling.kinds]
    arrays = (scaling.center, scaling.scale, scaling.shift, scaling.unit, scaling.quantiles)
    return _prepared(scaling, lambda: _core.Scaling(kinds, *arrays, LARGEST_VALUE))


NO_PLACES = np.empty(0, np.intp)


def column_statistics(X: Floats, n_threads: int, n_quantiles: int) -> ColumnStatistics:
    """Return the statistics of every column."""
    return statistics_and_knots(X, NO_PLACES, n_threads, n_quantiles)[0]


def statistics_and_knots(
    X: Floats, places: Indices, n_threads: int, n_quantiles: int
) -> tuple[ColumnStatistics, ColumnKnots]:
    """Return `column_statistics` and `column_knots`, each column sorted once."""
    n_rows = len(X)
    statistics, quantiles, knots = _core.column_statistics(
        _plain(X), n_quantiles, LARGEST_RAW_VALUE, places.astype(np.int64), n_threads
    )
    mean, std, median, iqr, value_range, skewness, tail_weight, n_distinct, n_most_frequent = statistics.T
    found = ColumnStatistics(
        mean=mean,
        std=std,
        median=median,
        iqr=iqr,
        value_range=value_range,
        skewness=skewness,
        tail_weight=tail_weight.clip(max=LARGEST_VALUE),
        distinct_fraction=n_distinct / min(n_rows, DISTINCT_ROWS),
        mode_fraction=n_most_frequent / n_rows,
        quantiles=quantiles,
    )
    return found, ColumnKnots(*knots)


def column_knots(X: Floats, places: Indices, n_threads: int) -> ColumnKnots:
    """Return of each column the values at some places of its sorted values, and for each the number of values that are
    not larger. The places increase. A NaN becomes -inf."""
    return ColumnKnots(*_core.column_knots(_plain(X), places.astype(np.int64), n_threads))


def column_moments(rows: Rows, columns: Bools | None = None) -> Moments:
    """Return mean and standard deviation of every scaled column, or of some of them and 0 for the others."""
    return Moments(*rows.native.moments(columns, rows.n_threads))


def pair_distances(rows: Rows, views: Views, indices: Int64s, n_pairs: int) -> Distances:
    """Return typical distances between pairs of the rows with these indices, in each view."""
    arrays = (views.features, views.projection, indices)
    return Distances(*_core.pair_distances(rows.native, *arrays, n_pairs, SMALLEST_BANDWIDTH, rows.n_threads))


def project_rows(rows: Rows, views: Views, indices: Int64s) -> Float32s:
    """Return the rows of each view, whose indices have the shape (T, C), projected by that view, shape (T, r, C)."""
    return _core.project_rows(rows.native, views.features, views.projection, indices, rows.n_threads)


def projected_covariances(rows: Rows, views: Views, indices: Int64s) -> Float64s:
    """Return the covariances of the rows with these indices, projected by each view, shape (T, r, r)."""
    return _core.projected_covariances(rows.native, views.features, views.projection, indices, rows.n_threads)


def embedding_sums(rows: Rows, branch: GlobalBranch) -> Sums:
    """Return the sums of phi and phi phi^T over all rows."""
    n_views, n_random_features = branch.phases.shape
    n_bandwidths = len(branch.multipliers)
    amplitude = np.full((n_views, n_bandwidths, n_random_features), np.sqrt(2.0 / n_random_features))
    order = _widest_first(branch)
    native = _global_branch(branch, rows.native.n_columns, amplitude, np.zeros(n_views))
    phi, phi_phi = native.embedding_sums(rows.native, rows.n_threads)
    back = np.argsort(order)
    return Sums(phi[:, back], phi_phi[:, back])


def _widest_first(branch: GlobalBranch) -> Indices:
    return np.argsort(-branch.multipliers, kind="stable")


def _global_branch(branch: GlobalBranch, n_columns: int, weights: Float64s, constants: Float64s) -> _core.Branch:
    """Return a branch whose scores are constants - sum over bandwidths and features of weights * cos(angle + phase).

    The weights have the shape (T, M, D). cos(a + b) = cos(a) cos(b) - sin(a) sin(b): the phases become weights of
    cosine and sine.
    """
    order = _widest_first(branch)
    phases = branch.phases.astype(np.float64)[:, None, :]
    return _core.Branch.of_global(
        n_columns,
        branch.views.features,
        branch.directions,
        np.ascontiguousarray(branch.multipliers[order]),
        np.ascontiguousarray((weights * np.cos(phases))[:, order], dtype=np.float32),
        np.ascontiguousarray((weights * -np.sin(phases))[:, order], dtype=np.float32),
        constants.astype(np.float32),
    )


def leverage_sums(rows: Rows, branch: LeverageBranch, indices: Int64s) -> Sums:
    """Return the sums of phi and phi phi^T over the rows with these indices."""
    return Sums(*_prepared_branch(branch, rows.native.n_columns).leverage_sums(rows.native, indices, rows.n_threads))


def _native_branch(branch: Branch, n_columns: int) -> _core.Branch:
    return _prepared(branch, lambda: _prepared_branch(branch, n_columns))


def _prepared_branch(branch: Branch, n_columns: int) -> _core.Branch:
    if isinstance(branch, LocalBranch):
        views = branch.views
        return _core.Branch.of_local(n_columns, views.features, views.projection, branch.references, branch.n_neighbors)
    if isinstance(branch, LeverageBranch):
        arrays = (branch.linear, branch.angular_frequencies, branch.phases, branch.mean, branch.root)
        return _core.Branch.of_leverage(n_columns, branch.views.features, branch.projection, *arrays)
    std = branch.support_std.astype(np.float64)
    weight = np.divide(1.0, std, out=np.zeros_like(std), where=std > 0.0) / len(branch.multipliers)
    amplitude = np.sqrt(2.0 / branch.phases.shape[1])
    weights = amplitude * weight[:, :, None] * branch.mean_embedding
    return _global_branch(branch, n_columns, weights, (weight * branch.support_mean).sum(axis=1))


def view_scores(rows: Rows, branch: Branch) -> Float32s:
    """Return the score of each row in each view, shape (T, n)."""
    return _native_branch(branch, rows.native.n_columns).view_scores(rows.native, rows.n_threads)


def fit_ranks(rows: Rows, branch: Branch, aggregation: str) -> tuple[BranchRanks, Float64s]:
    """Return the distributions of the training rows' scores, and their branch scores."""
    grid = grid_ranks(rows.n_rows) if rows.n_rows > EXACT_CDF_SIZE else np.empty(0)
    smallest = branch.smallest_scores if aggregation == "standard" else np.empty(0, np.float32)
    cdf_rules, standard_rules = (EXACT_CDF_SIZE, grid, SMALLEST_RANGE), (smallest, SMALLEST_SCALE, STANDARD_BOUNDS)
    native, scores = _native_branch(branch, rows.native.n_columns).fit_ranks(
        rows.native, *cdf_rules, *standard_rules, rows.n_threads
    )
    return NativeRanks(native, rows.n_rows), scores


class NativeRanks(BranchRanks):
    """Distributions stored in the C++ core. Reading `views` or `branch` copies them to NumPy, once."""

    def __init__(self, native: _core.Ranks, n_rows: int) -> None:
        self._n_rows = n_rows
        self.standards = native.standards()
        _PREPARED[self] = native

    @cached_property
    def views(self) -> tuple[Cdf, ...]:  # type: ignore[override]
        """One distribution for each view that is ranked."""
        native: _core.Ranks = _PREPARED[self]
        return tuple(Cdf(*knots, self._n_rows) for knots in native.view_knots())

    @cached_property
    def branch(self) -> Cdf:  # type: ignore[override]
        """The distribution of the mean over the views."""
        native: _core.Ranks = _PREPARED[self]
        return Cdf(*native.branch_knots(), self._n_rows)

    def __reduce__(self) -> tuple[type[BranchRanks], tuple[tuple[Cdf, ...], Float32s, Cdf]]:
        return BranchRanks, (self.views, self.standards, self.branch)


def _native_ranks(ranks: BranchRanks) -> _core.Ranks:
    def prepare() -> _core.Ranks:
        views = [(cdf.values, cdf.ranks) for cdf in ranks.views]
        branch = None if ranks.branch is None else (ranks.branch.values, ranks.branch.ranks)
        # Standards without a distribution of the branch: no rank is asked for, and the number of rows does not matter.
        n_rows = ranks.cdfs[0].n_rows if ranks.cdfs else 1
        return _core.Ranks(views, ranks.standards, branch, STANDARD_BOUNDS, n_rows, SMALLEST_RANGE)

    return _prepared(ranks, prepare)


def branch_scores(rows: Rows, model: Model) -> tuple[Float64s | None, Float64s | None]:
    """Return the global and the local score of each row; None for a branch without views."""
    branches: list[tuple[Branch | None, BranchRanks | None]] = [
        (model.global_branch, model.global_ranks),
        (model.local_branch, model.local_ranks),
    ]
    present = [(branch, ranks) for branch, ranks in branches if branch is not None and ranks is not None]
    scores = iter(_scores(rows, present, is_ranked=True))
    global_score, local_score = (None if branch is None else next(scores) for branch, _ in branches)
    return global_score, local_score


def branch_means(rows: Rows, branch: Branch, ranks: BranchRanks) -> Float64s:
    """Return the mean over the views of each row's ranked or standardized scores: what the branch's CDF ranks."""
    return _scores(rows, [(branch, ranks)], is_ranked=False)[0]


def _scores(rows: Rows, branches: Sequence[tuple[Branch, BranchRanks]], is_ranked: bool) -> list[Float64s]:
    native = [(_native_branch(branch, rows.native.n_columns), _native_ranks(ranks)) for branch, ranks in branches]
    return _core.score(rows.native, native, is_ranked, rows.n_threads)


def count_scores(scores: Floats, knots: Float64s, n_threads: int) -> Int64s:
    """Return how many scores of each view (T, n) lie before, at, and between its knots (T, J), shape (T, 2J + 1)."""
    if scores.dtype == np.float32:
        return _core.count_floats(np.ascontiguousarray(scores), knots, n_threads)
    return _core.count_doubles(np.ascontiguousarray(scores), knots, n_threads)


def count_pairs(codes: UInt8s, sizes: Sequence[int]) -> Int32s:
    """Return in how many rows each value of one column meets each value of another, shape (W, W)."""
    return _core.count_pairs(np.ascontiguousarray(codes), list(sizes), 1)


def draw_without_replacement(rng: np.random.Generator, n: int, size: int, count: int) -> Int64s:
    """Return `count` draws of `size` different numbers below n, shape (count, size): those of `rng.choice`."""
    return _core.draw_without_replacement(rng.bit_generator.capsule, n, size, count)


def values_at(values: Floats, places: Sequence[int]) -> list[float]:
    """Return the values at some places of their order. NaN comes last."""
    return _core.values_at(np.ascontiguousarray(values, dtype=np.float64), list(places))


def distances_at(values: Floats, center: float, places: Sequence[int]) -> list[float]:
    """Return the distances of the values from the center, at some places of their order. NaN comes last."""
    return _core.distances_at(np.ascontiguousarray(values, dtype=np.float64), center, list(places))


def inverse_triangles(triangles: Floats) -> Float64s:
    """Return the inverses of lower triangular matrices, shape (T, n, n)."""
    return _core.inverse_triangles(np.ascontiguousarray(triangles, dtype=np.float64))


def find_partners(
    covariance: Float64s, targets: Indices, columns: Indices, max_partners: int, min_gain: float
) -> tuple[Int64s, Float64s]:
    """Return the partners of some features, shape (targets, max_partners), -1 where there are fewer, and the fraction
    of the standard deviation that they leave open."""
    return _core.find_partners(
        np.ascontiguousarray(covariance),
        np.ascontiguousarray(targets, dtype=np.int64),
        np.ascontiguousarray(columns, dtype=np.int64),
        max_partners,
        min_gain,
    )


def sorted_rows(rows: Float64s) -> Float64s:
    """Return the rows, each sorted. NaN comes last."""
    if NUMPY_SORTS_FAST:
        return np.sort(rows, axis=1)
    return _core.sorted_rows(np.ascontiguousarray(rows), 1)
