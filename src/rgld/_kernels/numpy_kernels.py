"""The NumPy twin of the compiled core: the same functions, written to be read.

In: `Rows`, a raw matrix with its scaling. Out: what `fit` learns from rows, and the scores of rows. Rows are computed
in blocks (`blocks.py`); the formulas of a block are in `elementary.py`.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial, reduce
from typing import NamedTuple, Protocol

import numpy as np

from .._arrays import Bools, Float32s, Float64s, Floats, Indices, Int32s, Int64s, UInt8s
from .._model.model import SMALLEST_BANDWIDTH, Branch, GlobalBranch, LeverageBranch, Model
from .._model.ranks import BranchRanks, branch_mean, branch_score, fit_branch_ranks
from .._model.scaling import Scaling
from .._model.statistics import ColumnStatistics
from .._model.statistics import column_statistics as sorted_column_statistics
from .._model.views import Views
from .blocks import Blocks, rows_per_block
from .elementary import (
    global_view_scores,
    leverage_features,
    leverage_view_scores,
    local_view_scores,
    project,
    random_features,
)


class Sums(NamedTuple):
    """Sums over rows of phi, shape (T, M, D), and of phi phi^T, shape (T, M, D, D); of leverage views (T, P) and
    (T, P, P)."""

    phi: Float64s
    phi_phi: Float64s


class ColumnKnots(NamedTuple):
    """Values at some places of each sorted column, shape (d, k)."""

    values: Float64s
    counts: Int64s
    """For each of them, the number of rows with this value or a smaller one."""


class Moments(NamedTuple):
    """Mean and standard deviation of the scaled columns, shape (S * d,)."""

    mean: Float64s
    std: Float64s


class Distances(NamedTuple):
    """Typical distances between pairs of rows in each view, shape (T,): their median and, where that is not above
    `SMALLEST_BANDWIDTH`, the mean of the distances above it (0 if there is none)."""

    median: Float64s
    mean_positive: Float64s


class Team(Protocol):
    """The threads of a fit."""

    def lend(self) -> None:
        """Use a thread less: other work needs its core."""

    def borrow(self) -> None:
        """Move the calling thread, which does the other work, to another core than the one that lent."""

    def take_back(self) -> None:
        """Use it again."""


def team(n_threads: int) -> AbstractContextManager[Team | None]:
    """Return a context in which all calls share their threads. NumPy needs none."""
    return nullcontext()


class Rows(Blocks):
    """A raw matrix (n, d) with its scaling."""

    def __init__(self, X: Floats, scaling: Scaling, n_threads: int, keep: bool = False, features: Int32s | None = None):
        """Ignore `keep` and `features`, which are for the compiled core."""
        super().__init__(X, scaling, n_threads)

    @property
    def n_rows(self) -> int:
        """n"""
        return len(self.X)


def column_statistics(X: Floats, n_threads: int, n_quantiles: int) -> ColumnStatistics:
    """Return the statistics of every column."""
    return sorted_column_statistics(X, n_quantiles)


def statistics_and_knots(
    X: Floats, places: Indices, n_threads: int, n_quantiles: int
) -> tuple[ColumnStatistics, ColumnKnots]:
    """Return `column_statistics` and `column_knots`."""
    return column_statistics(X, n_threads, n_quantiles), column_knots(X, places, n_threads)


def column_knots(X: Floats, places: Indices, n_threads: int) -> ColumnKnots:
    """Return of each column the values at some places of its sorted values, and for each the number of values that are
    not larger. The places increase. A NaN becomes -inf."""
    columns = X.T.astype(np.float64)
    columns[np.isnan(columns)] = -np.inf
    columns.sort(axis=1)
    knots = columns[:, places]
    counts = [column.searchsorted(own, side="right") for column, own in zip(columns, knots, strict=True)]
    return ColumnKnots(knots, np.array(counts, np.int64))


def column_moments(rows: Rows, columns: Bools | None = None) -> Moments:
    """Return mean and standard deviation of every scaled column, or of some of them and 0 for the others."""

    def of_block(columns: Float32s) -> Float64s:
        values = columns.astype(np.float64)
        return np.array([values.sum(axis=1), (values * values).sum(axis=1)])

    mean, mean_square = reduce(np.add, rows.map(of_block, 4 * len(rows.scaling.center))) / rows.n_rows
    std = np.sqrt(np.maximum(mean_square - mean * mean, 0.0))
    return Moments(mean, std) if columns is None else Moments(mean * columns, std * columns)


def pair_places(n_rows: int, n_pairs: int) -> tuple[Int64s, Int64s]:
    """Return the places i and j of each pair: each place with the next, then each with the second next, and so on; the
    first place follows the last."""
    pairs = np.arange(n_pairs)
    i = pairs % n_rows
    return i, (i + 1 + pairs // n_rows) % n_rows


def pair_distances(rows: Rows, views: Views, indices: Int64s, n_pairs: int) -> Distances:
    """Return typical distances between pairs of the rows with these indices, in each view."""
    i, j = pair_places(len(indices), n_pairs)
    columns = rows.take(indices).astype(np.float64)
    median, mean_positive = [], []
    for features, projection in zip(views.features, views.projection, strict=True):
        z = projection.T.astype(np.float64) @ columns[features]
        distances = np.linalg.norm(z[:, i] - z[:, j], axis=0)
        median.append(np.median(distances))
        positive = distances[distances > SMALLEST_BANDWIDTH] if median[-1] <= SMALLEST_BANDWIDTH else ()
        mean_positive.append(np.mean(positive) if len(positive) else 0.0)
    return Distances(np.array(median), np.array(mean_positive))


def project_rows(rows: Rows, views: Views, indices: Int64s) -> Float32s:
    """Return the rows of each view, whose indices have the shape (T, C), projected by that view, shape (T, r, C)."""
    projected = [
        project(rows.take(indices_t), views.features[t : t + 1], views.projection[t : t + 1])[0]
        for t, indices_t in enumerate(indices)
    ]
    return np.array(projected)


def projected_covariances(rows: Rows, views: Views, indices: Int64s) -> Float64s:
    """Return the covariances of the rows with these indices, projected by each view, shape (T, r, r)."""
    z = project_rows(rows, views, np.tile(indices, (len(views.features), 1))).astype(np.float64)
    z -= z.mean(axis=2, keepdims=True)
    covariances: Float64s = z @ z.swapaxes(1, 2) / z.shape[2]
    return covariances


def embedding_sums(rows: Rows, branch: GlobalBranch) -> Sums:
    """Return the sums of phi and phi phi^T over all rows."""

    def of_block(columns: Float32s) -> Sums:
        angles = project(columns, branch.views.features, branch.directions)
        phi_sums, phi_phi_sums = [], []
        for multiplier in branch.multipliers:
            phi = random_features(angles, branch.phases, multiplier).astype(np.float64)
            phi_sums.append(phi.sum(axis=2))
            phi_phi_sums.append(phi @ phi.swapaxes(1, 2))
        return Sums(np.stack(phi_sums, axis=1), np.stack(phi_phi_sums, axis=1))

    return reduce(lambda a, b: Sums(a.phi + b.phi, a.phi_phi + b.phi_phi), rows.map(of_block, branch.floats_per_row))


def leverage_sums(rows: Rows, branch: LeverageBranch, indices: Int64s) -> Sums:
    """Return the sums of phi and phi phi^T over the rows with these indices."""
    step = rows_per_block(branch.floats_per_row)
    sums = []
    for start in range(0, len(indices), step):
        phi = leverage_features(branch, rows.take(indices[start : start + step])).astype(np.float64)
        sums.append(Sums(phi.sum(axis=2), phi @ phi.swapaxes(1, 2)))
    return reduce(lambda a, b: Sums(a.phi + b.phi, a.phi_phi + b.phi_phi), sums)


def _block_scores(branch: Branch, columns: Float32s) -> Float32s:
    if isinstance(branch, GlobalBranch):
        return global_view_scores(branch, columns)
    if isinstance(branch, LeverageBranch):
        return leverage_view_scores(branch, columns)
    return local_view_scores(branch, columns)


def view_scores(rows: Rows, branch: Branch) -> Float32s:
    """Return the score of each row in each view, shape (T, n)."""
    return rows.collect(partial(_block_scores, branch), branch.floats_per_row)


def fit_ranks(rows: Rows, branch: Branch, aggregation: str) -> tuple[BranchRanks, Float64s]:
    """Return the distributions of the training rows' scores, and their branch scores."""
    smallest = branch.smallest_scores if aggregation == "standard" else np.empty(0, np.float32)
    return fit_branch_ranks(view_scores(rows, branch), smallest)


def branch_means(rows: Rows, branch: Branch, ranks: BranchRanks) -> Float64s:
    """Return the mean over the views of each row's ranked or standardized scores: what the branch's CDF ranks."""
    return rows.collect(lambda columns: branch_mean(ranks, _block_scores(branch, columns)), branch.floats_per_row)


def count_scores(scores: Floats, knots: Float64s, n_threads: int) -> Int64s:
    """Return how many scores of each view (T, n) lie before, at, and between its knots (T, J), shape (T, 2J + 1)."""
    counts = []
    for of_view, own in zip(scores, knots, strict=True):
        place = np.searchsorted(own, of_view)
        at_knot = own[np.minimum(place, len(own) - 1)] == of_view
        counts.append(np.bincount(2 * place + at_knot, minlength=2 * len(own) + 1))
    return np.array(counts)


def branch_scores(rows: Rows, model: Model) -> tuple[Float64s | None, Float64s | None]:
    """Return the global and the local score of each row; None for a branch without views."""

    def of_branch(branch: Branch | None, ranks: BranchRanks | None) -> Float64s | None:
        if branch is None or ranks is None:
            return None
        return rows.collect(lambda columns: branch_score(ranks, _block_scores(branch, columns)), branch.floats_per_row)

    return of_branch(model.global_branch, model.global_ranks), of_branch(model.local_branch, model.local_ranks)


def count_pairs(codes: UInt8s, sizes: Sequence[int]) -> Int32s:
    """Return in how many rows each value of one column meets each value of another, shape (W, W).

    Codes have the shape (C, n); those of column c are below sizes[c]. W is the sum of the sizes: the values of a column
    stand side by side. Where a column meets itself, the counts stay 0.
    """
    starts = np.cumsum([0, *sizes])
    counts = np.zeros((starts[-1], starts[-1]), np.int32)
    for a, size in enumerate(sizes):
        for b in range(a + 1, len(sizes)):
            joint = np.bincount(codes[a].astype(np.intp) * sizes[b] + codes[b], minlength=size * sizes[b])
            of_a, of_b = slice(starts[a], starts[a + 1]), slice(starts[b], starts[b + 1])
            counts[of_a, of_b] = joint.reshape(size, sizes[b])
            counts[of_b, of_a] = counts[of_a, of_b].T
    return counts


def draw_without_replacement(rng: np.random.Generator, n: int, size: int, count: int) -> Int64s:
    """Return `count` draws of `size` different numbers below n, shape (count, size)."""
    return np.array([rng.choice(n, size, replace=False) for _ in range(count)]).reshape(count, size)


def values_at(values: Floats, places: Sequence[int]) -> list[float]:
    """Return the values at some places of their order. NaN comes last."""
    found: list[float] = np.sort(values)[list(places)].tolist()
    return found


def distances_at(values: Floats, center: float, places: Sequence[int]) -> list[float]:
    """Return the distances of the values from the center, at some places of their order. NaN comes last."""
    return values_at(np.abs(np.asarray(values, dtype=np.float64) - center), places)


def inverse_triangles(triangles: Floats) -> Float64s:
    """Return the inverses of lower triangular matrices, shape (T, n, n)."""
    inverses: Float64s = np.tril(np.linalg.inv(np.tril(triangles)))
    return inverses


def find_partners(
    covariance: Float64s, targets: Indices, columns: Indices, max_partners: int, min_gain: float
) -> tuple[Int64s, Float64s]:
    """Return the partners of some features, one by one those that explain most of what is left open, and the fraction
    of the standard deviation that they leave open.

    A partner is a feature of another column. It explains at least the fraction `min_gain` of the variance that those
    before it leave open. Shape (targets, max_partners), -1 where there are fewer. All targets are taken side by side.
    """
    whole, at = np.diag(covariance), np.arange(len(targets))
    partners = np.full((len(targets), max_partners), -1)
    left_open = np.ones(len(targets))
    # Of what is left open: variances, and covariances with the target. Each row is a target.
    variance, left = np.tile(whole, (len(targets), 1)), covariance[targets]
    is_free = columns != columns[targets][:, None]
    steps = np.empty((0, *left.shape))
    while len(targets):
        rows = np.arange(len(targets))
        own = left[rows, targets]
        left_open[at] = np.sqrt(np.maximum(own, 0.0) / whole[targets])
        may = is_free & (variance > 1e-8 * whole)
        explained = np.where(may, left**2 / np.maximum(variance, 1e-300), 0.0)
        best = explained.round(12).argmax(axis=1)
        goes_on = (explained[rows, best] >= min_gain * own) & (own > 1e-12 * whole[targets])
        goes_on &= len(steps) < max_partners
        targets, best, is_free, at = targets[goes_on], best[goes_on], is_free[goes_on], at[goes_on]
        variance, left, steps = variance[goes_on], left[goes_on], steps[:, goes_on]
        rows = rows[: len(targets)]
        partners[at, len(steps) : len(steps) + 1] = best[:, None]
        is_free[rows, best] = False
        # One step of a Cholesky factorization: only the row of the new partner is needed of what is left.
        step = covariance[best] - (steps[:, rows, best, None] * steps).sum(axis=0)
        step /= np.sqrt(step[rows, best])[:, None]
        variance -= step**2
        left -= step[rows, targets][:, None] * step
        steps = np.concatenate((steps, step[None]))
    return partners, left_open


def sorted_rows(rows: Float64s) -> Float64s:
    """Return the rows, each sorted. NaN comes last."""
    return np.sort(rows, axis=1)
