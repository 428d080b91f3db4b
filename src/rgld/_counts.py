"""Counts: distributions of scores that are not held, from parts that can be merged.

In: the scores of a sample of the rows, which give the knots, then the scores of all rows, part by part. Out: the same
`Cdf` and standards that `_ranks` fits to scores that are held. Counts are whole numbers: however rows are split into
parts and in whatever order these are merged, the distribution is the same, to the bit.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ._ranks import SMALLEST_SCALE, Cdf

STEPS = 2048
"""Even steps in rank between knots, where the sample has more than twice as many distinct scores; else all of them are
knots. Ranks at the knots are exact; between two of them lies about 1 / STEPS of the rows, and a rank is off by less
than that."""
TOP_KNOTS = 64
"""The sample's highest scores are knots in any case: anomalies are there."""
HIGHEST = 1024
"""The highest scores of all rows are kept as they are: where the sample ends, ranks go on to be exact."""


@dataclass(frozen=True)
class Knots:
    """Where scores are counted, per view."""

    values: NDArray[np.float64]
    """Shape (T, J), increasing; shorter lists are padded with infinities."""
    cutoff: NDArray[np.float64]
    """Shape (T,): scores above this may be among the highest."""


def draw_knots(scores: NDArray[np.floating], n_rows: int, n_steps: int = STEPS) -> Knots:
    """Return the knots for the scores of `n_rows` rows, given those of a sample of them, shape (T, K)."""
    ordered = np.sort(scores.astype(np.float64), axis=1)
    size = ordered.shape[1]
    steps = np.unique(np.rint(np.linspace(0, size - 1, n_steps + 1)).astype(np.intp))
    kept = np.unique(np.append(steps, np.arange(max(0, size - TOP_KNOTS), size)))
    lists = []
    for of_view in ordered:
        distinct = np.unique(of_view)
        lists.append(distinct if len(distinct) <= 2 * n_steps else np.unique(of_view[kept]))
    values = np.full((len(lists), max(map(len, lists))), np.inf)
    for row, own in zip(values, lists, strict=True):
        row[: len(own)] = own
    # Half as many again as are kept, so that hardly ever fewer are found.
    share = min(1.0, 1.5 * HIGHEST / n_rows)
    return Knots(values, ordered[:, max(0, size - 1 - int(share * size))])


@dataclass(frozen=True)
class ScoreCounts:
    """How many scores lie at and between the knots, the lowest score and the highest ones."""

    counts: NDArray[np.int64]
    """Shape (T, 2J + 1): before the first knot, at it, between it and the second, and so on."""
    lowest: NDArray[np.float64]
    """Shape (T,)."""
    highest: NDArray[np.float64]
    """Shape (T, HIGHEST), increasing, padded with -infinity in front."""
    n_beyond: NDArray[np.int64]
    """Shape (T,): scores above the cutoff, of which `highest` are the highest."""

    @classmethod
    def of(cls, scores: NDArray[np.floating], counts: NDArray[np.int64], knots: Knots) -> "ScoreCounts":
        """Return what is kept of scores, shape (T, b), that were counted."""
        beyond = scores > knots.cutoff[:, None]
        highest = np.array([_highest(of_view[above]) for of_view, above in zip(scores, beyond, strict=True)])
        return cls(counts, scores.min(axis=1).astype(np.float64), highest, beyond.sum(axis=1))

    def merge(self, other: "ScoreCounts") -> "ScoreCounts":
        """Return the same of the rows of both."""
        both = np.concatenate((self.highest, other.highest), axis=1)
        return ScoreCounts(
            self.counts + other.counts,
            np.minimum(self.lowest, other.lowest),
            np.sort(both, axis=1)[:, -HIGHEST:],
            self.n_beyond + other.n_beyond,
        )

    def finish(self, knots: Knots, n_rows: int) -> tuple[Cdf, ...]:
        """Return the CDF of each view, for a table of so many rows, all of which or some were counted."""
        parts = zip(knots.values, self.counts, self.lowest, self.highest, self.n_beyond, strict=True)
        return tuple(replace(_cdf(*part), n_rows=n_rows) for part in parts)


def _highest(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    kept = np.sort(scores.astype(np.float64))[-HIGHEST:]
    return np.concatenate((np.full(HIGHEST - len(kept), -np.inf), kept))


def _cdf(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    lowest: float,
    highest: NDArray[np.float64],
    n_beyond: int,
) -> Cdf:
    n_rows = int(counts.sum())
    values = values[np.isfinite(values)]
    last = np.cumsum(counts)[1 : 2 * len(values) : 2]
    first = last - counts[1 : 2 * len(values) : 2]
    tail, tail_first, tail_last = _tail(highest, n_beyond, n_rows)
    below = values < tail[0] if len(tail) else np.ones(len(values), bool)
    knots = np.concatenate(([lowest], values[below], tail))
    ends = np.concatenate(([1], first[below] + last[below], tail_first + tail_last))  # in halves of a row
    # Where the sample has the lowest score, its own count comes second; and a knot must be above the one before.
    kept = np.append(knots[1:] > knots[:-1], True)
    knots, ends = knots[kept], ends[kept]
    rising = np.concatenate(([True], ends[1:] > np.maximum.accumulate(ends)[:-1]))
    return Cdf(knots[rising], np.clip(ends[rising], 1, 2 * n_rows - 1) / (2.0 * n_rows), n_rows)


def _tail(
    highest: NDArray[np.float64], n_beyond: int, n_rows: int
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct highest scores, and for each the number of rows below it, and below or at it."""
    kept = highest[np.isfinite(highest)]
    distinct, starts = np.unique(kept, return_index=True)
    first = n_rows - len(kept) + starts
    last = np.append(first[1:], n_rows)
    complete = slice(1 if n_beyond > len(kept) else 0, None)  # of the lowest of them, some may not have been kept
    return distinct[complete], first[complete], last[complete]


@dataclass(frozen=True)
class ScoreMoments:
    """Mean and spread of view scores (of their logarithms, in a local view): what standards are made of."""

    n_rows: int
    mean: NDArray[np.float64]
    """Shape (T,)."""
    squares: NDArray[np.float64]
    """Sum of squared deviations from the mean, shape (T,)."""

    @classmethod
    def of(cls, scores: NDArray[np.float32]) -> "ScoreMoments":
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

    def finish(self, smallest: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return `smallest`, `center` and `scale` of each view, as `_ranks.fit_standards` does."""
        scale = np.maximum(np.sqrt(self.squares / self.n_rows), SMALLEST_SCALE)
        return np.column_stack((smallest, self.mean, scale)).astype(np.float32)
