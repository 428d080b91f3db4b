"""Counts: distributions of scores that do not fit into memory, from counts that merge.

In: the scores of a sample of the rows, which give the knots; then the scores of all rows, part by part. Out: a `Cdf` or
standards, as `_model/ranks.py` fits them to scores in memory. Counts are whole numbers: however the rows are split into
parts, and in whatever order these are merged, the distribution is the same to the bit.
"""

from dataclasses import dataclass, replace

import numpy as np

from .. import _kernels
from .._arrays import Float32s, Float64s, Floats, Indices, Int64s
from .._model.ranks import SMALLEST_SCALE, Cdf
from .states import Mergeable

N_RANK_STEPS = 2048
"""Even steps in rank between knots. If the sample has at most twice as many distinct scores, all of them are knots.
Ranks at the knots are exact. Between two knots lies about 1 / N_RANK_STEPS of the rows, so a rank is off by less."""
N_TOP_KNOTS = 64
"""The sample's highest scores that are always knots: anomalies are among them."""
N_HIGHEST = 1024
"""The highest scores of all rows that are kept one by one: ranks above the sample's scores are exact too."""


@dataclass(frozen=True)
class Knots:
    """The scores at and between which all scores are counted, per view."""

    values: Float64s
    """Shape (T, J), increasing; views with fewer knots are padded with infinities."""
    cutoff: Float64s
    """Shape (T,): only scores above this can be among the `N_HIGHEST` highest."""


def draw_knots(scores: Floats, n_rows: int, n_steps: int = N_RANK_STEPS) -> Knots:
    """Return the knots for the scores of `n_rows` rows, given the scores of a sample of these rows, shape (T, K)."""
    ordered = np.sort(scores.astype(np.float64), axis=1)
    size = ordered.shape[1]
    steps = np.unique(np.rint(np.linspace(0, size - 1, n_steps + 1)).astype(np.intp))
    kept = np.unique(np.append(steps, np.arange(max(0, size - N_TOP_KNOTS), size)))
    lists = []
    for of_view in ordered:
        distinct = np.unique(of_view)
        lists.append(distinct if len(distinct) <= 2 * n_steps else np.unique(of_view[kept]))
    values = np.full((len(lists), max(map(len, lists))), np.inf)
    for row, own in zip(values, lists, strict=True):
        row[: len(own)] = own
    # The cutoff lets through half as many again as are kept, so that hardly ever fewer are found.
    fraction = min(1.0, 1.5 * N_HIGHEST / n_rows)
    return Knots(values, ordered[:, max(0, size - 1 - int(fraction * size))])


@dataclass(frozen=True)
class ScoreCounts(Mergeable):
    """How many scores lie at and between the knots, the lowest score and the highest ones."""

    counts: Int64s
    """Shape (T, 2J + 1): scores before the first knot, at it, between it and the second, and so on."""
    lowest: Float64s
    """The lowest score, shape (T,)."""
    highest: Float64s
    """The highest scores, shape (T, N_HIGHEST), increasing, padded with -infinity in front."""
    n_beyond: Int64s
    """Number of scores above the cutoff, shape (T,); `highest` holds the highest of them."""

    @classmethod
    def of(cls, scores: Floats, knots: Knots, n_threads: int) -> "ScoreCounts":
        """Return the counts of scores, shape (T, b)."""
        counts = _kernels.count_scores(scores, knots.values, n_threads)
        beyond = scores > knots.cutoff[:, None]
        highest = np.array([_highest(of_view[above]) for of_view, above in zip(scores, beyond, strict=True)])
        return cls(counts, scores.min(axis=1).astype(np.float64), highest, beyond.sum(axis=1))

    def merge(self, other: "ScoreCounts") -> "ScoreCounts":
        """Return the counts over the rows of both."""
        both = np.concatenate((self.highest, other.highest), axis=1)
        return ScoreCounts(
            self.counts + other.counts,
            np.minimum(self.lowest, other.lowest),
            np.sort(both, axis=1)[:, -N_HIGHEST:],
            self.n_beyond + other.n_beyond,
        )

    def finish(self, knots: Knots, n_rows: int) -> tuple[Cdf, ...]:
        """Return the distribution of each view, for a table of `n_rows` rows; all of them were counted, or a sample."""
        parts = zip(knots.values, self.counts, self.lowest, self.highest, self.n_beyond, strict=True)
        return tuple(replace(_cdf(*part), n_rows=n_rows) for part in parts)


def _highest(scores: Floats) -> Float64s:
    kept = np.sort(scores.astype(np.float64))[-N_HIGHEST:]
    return np.concatenate((np.full(N_HIGHEST - len(kept), -np.inf), kept))


def _cdf(
    values: Float64s,
    counts: Int64s,
    lowest: float,
    highest: Float64s,
    n_beyond: int,
) -> Cdf:
    n_rows = int(counts.sum())
    values = values[np.isfinite(values)]
    last = np.cumsum(counts)[1 : 2 * len(values) : 2]
    first = last - counts[1 : 2 * len(values) : 2]
    tail, tail_first, tail_last = _tail(highest, n_beyond, n_rows)
    below = values < tail[0] if len(tail) else np.ones(len(values), bool)
    knots = np.concatenate(([lowest], values[below], tail))
    ends = np.concatenate(([1], first[below] + last[below], tail_first + tail_last))  # twice the average rank
    # If the lowest score is a knot of the sample too, it is there twice: keep the second, which has the full count.
    # Scores and ranks of a distribution must both increase from knot to knot.
    kept = np.append(knots[1:] > knots[:-1], True)
    knots, ends = knots[kept], ends[kept]
    rising = np.concatenate(([True], ends[1:] > np.maximum.accumulate(ends)[:-1]))
    return Cdf(knots[rising], np.clip(ends[rising], 1, 2 * n_rows - 1) / (2.0 * n_rows), n_rows)


def _tail(highest: Float64s, n_beyond: int, n_rows: int) -> tuple[Float64s, Indices, Indices]:
    """Return the distinct highest scores, and for each the number of rows below it and the number below or at it."""
    kept = highest[np.isfinite(highest)]
    distinct, starts = np.unique(kept, return_index=True)
    first = n_rows - len(kept) + starts
    last = np.append(first[1:], n_rows)
    # Of the rows that share the lowest of these scores, not all may have been kept: that score is left out.
    complete = slice(1 if n_beyond > len(kept) else 0, None)
    return distinct[complete], first[complete], last[complete]


@dataclass(frozen=True)
class ScoreMoments(Mergeable):
    """Mean and spread of view scores (of their logarithms in local views), from which standards are made."""

    n_rows: int
    mean: Float64s
    """Shape (T,)."""
    squares: Float64s
    """Sum of squared deviations from the mean, shape (T,)."""

    @classmethod
    def of(cls, scores: Float32s) -> "ScoreMoments":
        """Return the moments of scores, shape (T, b)."""
        mean = scores.mean(axis=1, dtype=np.float64)
        squares = np.array([np.square(of_view - m).sum() for of_view, m in zip(scores, mean, strict=True)])
        return cls(scores.shape[1], mean, squares)

    def merge(self, other: "ScoreMoments") -> "ScoreMoments":
        """Return the moments of the rows of both (Chan, Golub and LeVeque)."""
        n_rows = self.n_rows + other.n_rows
        gap = other.mean - self.mean
        return ScoreMoments(
            n_rows,
            self.mean + gap * (other.n_rows / n_rows),
            self.squares + other.squares + gap * gap * (self.n_rows * other.n_rows / n_rows),
        )

    def finish(self, smallest: Float32s) -> Float32s:
        """Return `smallest`, `center` and `scale` of each view, as `fit_standards` of `_model/ranks.py` does."""
        scale = np.maximum(np.sqrt(self.squares / self.n_rows), SMALLEST_SCALE)
        return np.column_stack((smallest, self.mean, scale)).astype(np.float32)
