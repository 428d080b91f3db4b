"""Ranks: where a score lies among the scores of the training rows.

In: scores. Out: normalized ranks, strictly inside (0, 1). Paper, "rank aggregation": every view score becomes a
normalized rank, a branch score is the mean rank over its views. Here a rank is always a rank among the training rows,
whose distribution is frozen in the fit. So a row's rank does not depend on the rows that are scored with it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._arrays import Float32s, Float64s, Floats, Indices, Int64s
from .fields import Array

EXACT_CDF_SIZE = 8192
"""A CDF keeps all distinct training scores if there are at most this many. If there are more, it keeps the grid below,
which has no more knots than this."""

GRID_SIZE = 2048
"""The grid has this many even steps in rank, and as many geometric steps in the upper tail, where anomalies are.

The rank of a score between two knots is interpolated, so it is off by at most 1 / GRID_SIZE. In the top 1 / GRID_SIZE
of the rows, the distance to rank 1 is off by less than a factor (n / GRID_SIZE) ** (1 / GRID_SIZE): 0.4 % for ten
million rows."""

MEAN_RANK_DECIMALS = 12
"""Mean ranks are rounded to this many decimals. Ranks are multiples of 0.5 / n, so that their means often tie; a
rounding error of 1e-16 must not break such a tie."""

SMALLEST_RANGE = 1e-100
"""The unit of the tails is at least this, so that an excess in this unit is finite (scores are below 1e39)."""


SMALLEST_RANK = 2.0**-32
"""The core keeps ranks as 32-bit whole numbers: a rank nearer to 0 or 1 would become 0 or 1. Ranks among up to 2^31
training rows are never nearer."""

STANDARD_BOUNDS = (-4.0, 8.0)
"""Standardized view scores are clipped here: a row may be far out in a view, but one view must not decide alone."""

SMALLEST_SCALE = 1e-3
"""A smaller standard deviation of view scores, or of their logarithms, counts as this."""


@dataclass(frozen=True)
class Cdf:
    """A frozen distribution of scores: knots (score, rank) with straight lines between them, and a slow tail on both
    sides."""

    values: Float64s
    """Distinct training scores, strictly increasing."""
    ranks: Float64s
    """Their normalized average ranks, strictly increasing, within [0.5 / n, 1 - 0.5 / n]."""
    n_rows: int
    """n, the number of training rows behind the knots."""


def fit_cdf(scores: Floats) -> Cdf:
    """Return the distribution of the training scores; tied scores have their average rank."""
    n_rows = len(scores)
    ordered = np.sort(scores)
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] > ordered[:-1])))
    last = np.append(first[1:], n_rows)
    values = ordered[first].astype(np.float64)
    ranks = (first + last) / (2.0 * n_rows)
    if len(values) > EXACT_CDF_SIZE:
        kept = _grid(ranks, n_rows)
        values, ranks = values[kept], ranks[kept]
    return Cdf(values, ranks, n_rows)


def grid_ranks(n_rows: int) -> Float64s:
    """Return the ranks at which the distribution of many rows keeps knots."""
    even = np.linspace(0.0, 1.0, GRID_SIZE + 1)
    upper_tail = 1.0 - np.geomspace(1.0 / GRID_SIZE, 0.5 / n_rows, GRID_SIZE - 1)
    return np.concatenate((even, upper_tail))


def _grid(ranks: Float64s, n_rows: int) -> Indices:
    """Return the indices of the knots to keep: those on both sides of every grid rank, so that no line is longer than
    one step."""
    right = np.searchsorted(ranks, grid_ranks(n_rows)).clip(0, len(ranks) - 1)
    return np.unique(np.concatenate((right, (right - 1).clip(0))))


def normalized_rank(cdf: Cdf, scores: Floats) -> Float64s:
    """Return the rank of each score among the training scores: higher for a higher score, strictly inside (0, 1).

    Training scores have the ranks 0.5 / n to 1 - 0.5 / n. Beyond them, the distance to 0 or 1 shrinks as
    1 / (1 + log(1 + excess)), with the excess in units of the training range. This is so slow that extreme rows keep
    their order.
    """
    values = cdf.values
    ranks: Float64s = np.interp(scores, values, cdf.ranks)
    # Rounding on a long line can give a rank slightly above that of the next knot.
    np.minimum(ranks, cdf.ranks.take(values.searchsorted(scores), mode="clip"), out=ranks)
    edge = 0.5 / cdf.n_rows
    unit = max(values[-1] - values[0], SMALLEST_RANGE) if len(values) > 1 else max(abs(values[0]), 1.0)
    above = scores > values[-1]
    if np.count_nonzero(above):
        ranks[above] = 1.0 - edge / (1.0 + np.log1p((scores[above] - values[-1]) / unit))
    below = scores < values[0]
    if np.count_nonzero(below):
        ranks[below] = edge / (1.0 + np.log1p((values[0] - scores[below]) / unit))
    return ranks


class BranchRanks:
    """The frozen distributions of one branch: of its view scores, which are ranked or standardized, and of their mean.

    A fit in passes learns the distributions of the views first. Until `branch` is known, only `branch_mean` can be
    computed.
    """

    views: tuple[Cdf, ...]
    """One distribution for each view; empty if view scores are standardized."""
    standards: Annotated[Float32s, Array("standardized 3", -1e18, 1e18, is_optional=True)]
    """`smallest`, `center` and `scale` of each view; empty if view scores are ranked."""

    branch: Cdf | None
    """The distribution of the mean over the views; None if it is not known yet."""

    def __init__(self, views: Iterable[Cdf], standards: Float32s | None = None, branch: Cdf | None = None) -> None:
        self.views = tuple(views)
        self.standards = np.empty((0, 3), np.float32) if standards is None else standards
        self.branch = branch

    @property
    def cdfs(self) -> tuple[Cdf, ...]:
        """All distributions: the views', then the branch's."""
        return self.views if self.branch is None else (*self.views, self.branch)


@dataclass(frozen=True, eq=False)
class CdfKnots:
    """The distributions of a branch as a model file holds them: the knots of all, one distribution after the other."""

    cdf_sizes: Annotated[Int64s, Array("distributions", 1, EXACT_CDF_SIZE)]
    """Knots of each distribution."""
    cdf_values: Annotated[Float64s, Array("knots", -1e30, 1e30)]
    cdf_ranks: Annotated[Float64s, Array("knots", 1e-18, 1.0 - 1e-16)]

    @classmethod
    def of(cls, cdfs: Sequence[Cdf]) -> "CdfKnots":
        """Return the knots of several distributions."""
        sizes = np.array([len(cdf.values) for cdf in cdfs], dtype=np.int64)
        return cls(sizes, np.concatenate([cdf.values for cdf in cdfs]), np.concatenate([cdf.ranks for cdf in cdfs]))

    def cdfs(self, n_rows: int) -> list[Cdf]:
        """Return the distributions; `n_rows` is the number of training rows behind them."""
        starts = np.cumsum(self.cdf_sizes)[:-1]
        all_ranks = self.cdf_ranks.clip(SMALLEST_RANK, 1.0 - SMALLEST_RANK)
        parts = zip(np.split(self.cdf_values, starts), np.split(all_ranks, starts), strict=True)
        return [Cdf(values, ranks, n_rows) for values, ranks in parts]


def fit_standards(view_scores: Float32s, smallest: Float32s) -> Float32s:
    """Return `smallest`, `center` and `scale` of each view, shape (T, 3): `center` and `scale` are the mean and the
    standard deviation of `logarithms(view_scores, smallest)` over the training rows."""
    scores = logarithms(view_scores, smallest).astype(np.float64)
    scale = np.maximum(scores.std(axis=1), SMALLEST_SCALE)
    return np.column_stack((smallest, scores.mean(axis=1), scale)).astype(np.float32)


def logarithms(view_scores: Float32s, smallest: Float32s) -> Float32s:
    """Return view scores (T, b); in views where `smallest` (T,) is above 0, their logarithms. Scores below `smallest`
    count as `smallest` there."""
    scores = view_scores.copy()
    taken = smallest > 0
    scores[taken] = np.log(np.maximum(scores[taken], smallest[taken, None]))
    return scores


def standard_agg(standards: Float32s, view_scores: Float32s) -> Float64s:
    """Return the mean standardized score over views, each clipped to `STANDARD_BOUNDS`; rounded as in `rank_agg`."""
    smallest, center, scale = standards.T
    scores = (logarithms(view_scores, smallest) - center[:, None]) / scale[:, None]
    total: Float64s | float = 0.0
    for of_view in scores.clip(*STANDARD_BOUNDS):
        total = total + of_view.astype(np.float64)
    return np.round(np.asarray(total) / len(standards), MEAN_RANK_DECIMALS)


def rank_agg(cdfs: Sequence[Cdf], view_scores: Iterable[Floats]) -> Float64s:
    """Return the mean normalized rank over views: one CDF and one array of scores per view.

    It is rounded to `MEAN_RANK_DECIMALS`, so that means that should be equal are equal, whatever the order of the sum.
    """
    total: Float64s | float = 0.0
    for cdf, scores in zip(cdfs, view_scores, strict=True):
        total = total + normalized_rank(cdf, scores)
    return np.round(np.asarray(total) / len(cdfs), MEAN_RANK_DECIMALS)


def fit_branch_ranks(view_scores: Float32s, smallest: Float32s) -> tuple[BranchRanks, Float64s]:
    """Return the distributions of the training view scores, shape (T, n), and the training rows' branch scores.

    The view scores are ranked or, given the `smallest` score of each view, standardized.
    """
    views: tuple[Cdf, ...] = ()
    standards = None
    if len(smallest):
        standards = fit_standards(view_scores, smallest)
        means = standard_agg(standards, view_scores)
    else:
        views = tuple(fit_cdf(scores) for scores in view_scores)
        means = rank_agg(views, view_scores)
    branch = fit_cdf(means)
    return BranchRanks(views, standards, branch), normalized_rank(branch, means)


def branch_mean(ranks: BranchRanks, view_scores: Float32s) -> Float64s:
    """Return the mean over views of the ranked or standardized view scores, shape (T, b)."""
    if len(ranks.standards):
        return standard_agg(ranks.standards, view_scores)
    return rank_agg(ranks.views, view_scores)


def branch_score(ranks: BranchRanks, view_scores: Float32s) -> Float64s:
    """Return the normalized rank of the mean over views, for view scores of shape (T, b)."""
    assert ranks.branch is not None, "the distribution of the branch is known after the last pass"
    return normalized_rank(ranks.branch, branch_mean(ranks, view_scores))
