"""The NumPy twin of the compiled core: the same functions, to be read.

In: `Rows`, a raw matrix with its scaling. Out: what `fit` learns and what scores need. Rows go through in blocks
(`blocks.py`); what a block gets is in `elementary.py`.
"""

from functools import partial, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._model import SMALLEST_BANDWIDTH, GlobalBranch, LocalBranch, Model
from .._preprocess import ColumnStatistics, Scaling
from .._preprocess import column_statistics as sorted_column_statistics
from .._ranks import BranchRanks, branch_mean, branch_score, fit_branch_ranks
from .._views import Views
from .blocks import Blocks
from .elementary import global_view_scores, local_view_scores, project, random_features

Scores = NDArray[np.float64]


class Sums(NamedTuple):
    """Sums over rows of phi, shape (T, M, D), and of phi phi^T, shape (T, M, D, D)."""

    phi: NDArray[np.float64]
    phi_phi: NDArray[np.float64]


class Moments(NamedTuple):
    """Of the scaled columns, shape (S * d,)."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]


class Distances(NamedTuple):
    """Of row pairs, per view, shape (T,): the median and, where that is not above `SMALLEST_BANDWIDTH`, the mean of
    those that are (0 if there is none)."""

    median: NDArray[np.float64]
    mean_positive: NDArray[np.float64]


class Rows(Blocks):
    """A raw matrix (n, d), read as scaled columns."""

    def __init__(self, X: NDArray[np.floating], scaling: Scaling, n_threads: int, keep: bool = False):
        """`keep` is a hint for the compiled core."""
        super().__init__(X, scaling, n_threads)

    @property
    def n_rows(self) -> int:
        """n"""
        return len(self.X)


def column_statistics(X: NDArray[np.floating], n_threads: int, n_quantiles: int) -> ColumnStatistics:
    """Return the statistics of every column."""
    return sorted_column_statistics(X, n_quantiles)


def column_moments(rows: Rows) -> Moments:
    """Return mean and standard deviation of every scaled column."""

    def of_block(columns: NDArray[np.float32]) -> NDArray[np.float64]:
        values = columns.astype(np.float64)
        return np.array([values.sum(axis=1), (values * values).sum(axis=1)])

    mean, mean_square = reduce(np.add, rows.map(of_block, 4 * len(rows.scaling.center))) / rows.n_rows
    return Moments(mean, np.sqrt(np.maximum(mean_square - mean * mean, 0.0)))


def pair_places(n_rows: int, n_pairs: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places i and j of each pair: of all places with the next, then with the second next, and so on,
    around the end."""
    pairs = np.arange(n_pairs)
    i = pairs % n_rows
    return i, (i + 1 + pairs // n_rows) % n_rows


def pair_distances(rows: Rows, views: Views, numbers: NDArray[np.int64], n_pairs: int) -> Distances:
    """Return what is typical of the distances between pairs of the numbered rows in each view."""
    i, j = pair_places(len(numbers), n_pairs)
    columns = rows.take(numbers).astype(np.float64)
    median, mean_positive = [], []
    for features, projection in zip(views.features, views.projection, strict=True):
        z = projection.T.astype(np.float64) @ columns[features]
        distances = np.linalg.norm(z[:, i] - z[:, j], axis=0)
        median.append(np.median(distances))
        positive = distances[distances > SMALLEST_BANDWIDTH] if median[-1] <= SMALLEST_BANDWIDTH else ()
        mean_positive.append(np.mean(positive) if len(positive) else 0.0)
    return Distances(np.array(median), np.array(mean_positive))


def project_rows(rows: Rows, views: Views, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the numbered rows, shape (T, C), each view's projected by that view, shape (T, r, C)."""
    projected = [
        project(rows.take(numbers_t), views.features[t : t + 1], views.projection[t : t + 1])[0]
        for t, numbers_t in enumerate(numbers)
    ]
    return np.array(projected)


def embedding_sums(rows: Rows, branch: GlobalBranch) -> Sums:
    """Return the sums of phi and phi phi^T over all rows."""

    def of_block(columns: NDArray[np.float32]) -> Sums:
        angles = project(columns, branch.views.features, branch.directions)
        phi_sums, phi_phi_sums = [], []
        for multiplier in branch.multipliers:
            phi = random_features(angles, branch.phases, multiplier).astype(np.float64)
            phi_sums.append(phi.sum(axis=2))
            phi_phi_sums.append(phi @ phi.swapaxes(1, 2))
        return Sums(np.stack(phi_sums, axis=1), np.stack(phi_phi_sums, axis=1))

    return reduce(lambda a, b: Sums(a.phi + b.phi, a.phi_phi + b.phi_phi), rows.map(of_block, branch.floats_per_row))


def _block_scores(branch: GlobalBranch | LocalBranch, columns: NDArray[np.float32]) -> NDArray[np.float32]:
    if isinstance(branch, GlobalBranch):
        return global_view_scores(branch, columns)
    return local_view_scores(branch, columns)


def view_scores(rows: Rows, branch: GlobalBranch | LocalBranch) -> NDArray[np.float32]:
    """Return the score of each row in each view, shape (T, n)."""
    return rows.collect(partial(_block_scores, branch), branch.floats_per_row)


def fit_ranks(rows: Rows, branch: GlobalBranch | LocalBranch, aggregation: str) -> tuple[BranchRanks, Scores]:
    """Return the distributions of the training rows' scores, and their branch scores."""
    smallest = branch.smallest_scores if aggregation == "standard" else np.empty(0, np.float32)
    return fit_branch_ranks(view_scores(rows, branch), smallest)


def branch_means(rows: Rows, branch: GlobalBranch | LocalBranch, ranks: BranchRanks) -> Scores:
    """Return the mean over the views of each row's ranked or standardized scores: what the branch's CDF ranks."""
    return rows.collect(lambda columns: branch_mean(ranks, _block_scores(branch, columns)), branch.floats_per_row)


def count_scores(scores: NDArray[np.floating], knots: NDArray[np.float64], n_threads: int) -> NDArray[np.int64]:
    """Return how many scores of each view (T, n) lie before, at, and between its knots (T, J), shape (T, 2J + 1)."""
    counts = []
    for of_view, own in zip(scores, knots, strict=True):
        place = np.searchsorted(own, of_view)
        at_knot = own[np.minimum(place, len(own) - 1)] == of_view
        counts.append(np.bincount(2 * place + at_knot, minlength=2 * len(own) + 1))
    return np.array(counts)


def branch_scores(rows: Rows, model: Model) -> tuple[Scores | None, Scores | None]:
    """Return the global and the local score of each row; None for a branch without views."""

    def of_branch(branch: GlobalBranch | LocalBranch | None, ranks: BranchRanks | None) -> Scores | None:
        if branch is None or ranks is None:
            return None
        return rows.collect(lambda columns: branch_score(ranks, _block_scores(branch, columns)), branch.floats_per_row)

    return of_branch(model.global_branch, model.global_ranks), of_branch(model.local_branch, model.local_ranks)
