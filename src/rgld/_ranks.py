"""Ranks: from a score to its place among the training scores.

In: scores. Out: normalized ranks, strictly inside (0, 1). Paper, "rank aggregation": every view score
becomes a normalized rank, a branch score is the mean rank over its views. Here the rank is taken against the
training rows, frozen at fit, so that a row's rank does not depend on the rows scored with it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EXACT_CDF_SIZE = 8192
"""Up to this many distinct training scores a CDF keeps them all; beyond, it keeps the grid below (at most as
many knots)."""

GRID_SIZE = 2048
"""Beyond the exact size: this many even steps in rank, and as many geometric steps in the upper tail (where
anomalies are).

A score between two kept knots is interpolated, so its rank is off by at most 1 / GRID_SIZE; in the top 1 /
GRID_SIZE of the rows the distance to rank 1 is off by less than a factor (n / GRID_SIZE) ** (1 / GRID_SIZE),
0.4 % for ten million rows."""

MEAN_RANK_DECIMALS = 12
"""Ranks are multiples of 0.5 / n and their sums often tie; a rounding error of 1e-16 must not break such a tie."""

SMALLEST_RANGE = 1e-100
"""The unit of the tails is at least this, so that an excess in that unit is a finite number (scores are
below 1e39)."""


STANDARD_BOUNDS = (-4.0, 8.0)
"""A standardized view score stays within these: a row may be far out in a view, but one view must not decide alone."""

SMALLEST_SCALE = 1e-3
"""A smaller standard deviation of view scores, or of their logarithms, counts as this."""


@dataclass(frozen=True)
class Cdf:
    """A frozen empirical distribution: knots (score, rank), straight lines between them, a slow tail on
    either side."""

    values: NDArray[np.float64]
    """Distinct training scores, strictly increasing."""
    ranks: NDArray[np.float64]
    """Their normalized average ranks, strictly increasing, within [0.5 / n, 1 - 0.5 / n]."""
    n_rows: int
    """n, the training rows behind the knots."""


def fit_cdf(scores: NDArray[np.floating]) -> Cdf:
    """Return the empirical CDF of the training scores; tied scores share their average rank."""
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


def grid_ranks(n_rows: int) -> NDArray[np.float64]:
    """Return the ranks at which the CDF of many rows keeps knots."""
    even = np.linspace(0.0, 1.0, GRID_SIZE + 1)
    upper_tail = 1.0 - np.geomspace(1.0 / GRID_SIZE, 0.5 / n_rows, GRID_SIZE - 1)
    return np.concatenate((even, upper_tail))


def _grid(ranks: NDArray[np.float64], n_rows: int) -> NDArray[np.intp]:
    """Return which knots to keep: those on either side of every grid rank, so that no line spans more than
    one step."""
    right = np.searchsorted(ranks, grid_ranks(n_rows)).clip(0, len(ranks) - 1)
    return np.unique(np.concatenate((right, (right - 1).clip(0))))


def normalized_rank(cdf: Cdf, scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the rank of each score among the training scores: strictly increasing in the score, strictly
    inside (0, 1).

    Training scores fill [0.5 / n, 1 - 0.5 / n]. Beyond them the distance to 0 or 1 shrinks as 1 / (1 + log(1
    + excess)), with the excess in units of the training range: slowly enough that extreme rows keep their
    order.
    """
    values = cdf.values
    ranks: NDArray[np.float64] = np.interp(scores, values, cdf.ranks)
    # Not above the next knot's, which the slope of a long line may miss by a rounding.
    np.minimum(ranks, cdf.ranks[np.searchsorted(values, scores).clip(max=len(values) - 1)], out=ranks)
    edge = 0.5 / cdf.n_rows
    unit = max(values[-1] - values[0], SMALLEST_RANGE) if len(values) > 1 else max(abs(values[0]), 1.0)
    above = scores > values[-1]
    if above.any():
        ranks[above] = 1.0 - edge / (1.0 + np.log1p((scores[above] - values[-1]) / unit))
    below = scores < values[0]
    if below.any():
        ranks[below] = edge / (1.0 + np.log1p((values[0] - scores[below]) / unit))
    return ranks


class BranchRanks:
    """The frozen distributions of one branch: a CDF per view and, last, one of the branch score. Where the view scores
    are standardized instead of ranked, the branch's CDF alone, and the views' standards."""

    def __init__(self, cdfs: Iterable[Cdf], standards: NDArray[np.float32] | None = None) -> None:
        self.cdfs = tuple(cdfs)
        self.standards = np.empty((0, 3), np.float32) if standards is None else standards
        """`smallest`, `center` and `scale` of each view, shape (T, 3); (0, 3) where view scores are ranked."""

    @property
    def views(self) -> tuple[Cdf, ...]:
        """One per view, if they are ranked."""
        return self.cdfs[:-1]

    @property
    def branch(self) -> Cdf:
        """Of the mean over the views."""
        return self.cdfs[-1]


def fit_standards(view_scores: NDArray[np.float32], smallest: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return `smallest`, `center` and `scale` of each view, shape (T, 3): mean and standard deviation of the training
    scores, or of their logarithms where `smallest` (T,), the least score to take one of, is above 0."""
    scores = logarithms(view_scores, smallest).astype(np.float64)
    scale = np.maximum(scores.std(axis=1), SMALLEST_SCALE)
    return np.column_stack((smallest, scores.mean(axis=1), scale)).astype(np.float32)


def logarithms(view_scores: NDArray[np.float32], smallest: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return view scores (T, b), as logarithms where `smallest`, the least score to take one of, is above 0."""
    scores = view_scores.copy()
    taken = smallest > 0
    scores[taken] = np.log(np.maximum(scores[taken], smallest[taken, None]))
    return scores


def standard_agg(standards: NDArray[np.float32], view_scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the mean standardized score over views, each within `STANDARD_BOUNDS`; rounded as in `rank_agg`."""
    smallest, center, scale = standards.T
    scores = (logarithms(view_scores, smallest) - center[:, None]) / scale[:, None]
    total: NDArray[np.float64] | float = 0.0
    for of_view in scores.clip(*STANDARD_BOUNDS):
        total = total + of_view.astype(np.float64)
    return np.round(np.asarray(total) / len(standards), MEAN_RANK_DECIMALS)


def rank_agg(cdfs: Sequence[Cdf], view_scores: Iterable[NDArray[np.floating]]) -> NDArray[np.float64]:
    """Return the mean normalized rank over views: one CDF and one array of scores per view.

    Rounded to `MEAN_RANK_DECIMALS`: means that are equal on paper stay equal, whatever the order of the sum.
    """
    total: NDArray[np.float64] | float = 0.0
    for cdf, scores in zip(cdfs, view_scores, strict=True):
        total = total + normalized_rank(cdf, scores)
    return np.round(np.asarray(total) / len(cdfs), MEAN_RANK_DECIMALS)


def fit_branch_ranks(
    view_scores: NDArray[np.float32], smallest: NDArray[np.float32]
) -> tuple[BranchRanks, NDArray[np.float64]]:
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
    ranks = BranchRanks((*views, fit_cdf(means)), standards)
    return ranks, normalized_rank(ranks.branch, means)


def branch_mean(ranks: BranchRanks, view_scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the mean over views of the ranked or standardized view scores, shape (T, b)."""
    if len(ranks.standards):
        return standard_agg(ranks.standards, view_scores)
    return rank_agg(ranks.views, view_scores)


def branch_score(ranks: BranchRanks, view_scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the normalized rank of the mean over views, for view scores of shape (T, b)."""
    return normalized_rank(ranks.branch, branch_mean(ranks, view_scores))
