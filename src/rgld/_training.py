"""Training: what a fit asks of the training rows, in memory or in passes over parts of them.

In: an encoded matrix, or something that runs a `Step` over all parts of a table. Out: column statistics, sums of random
features, distributions of scores. `fit` is written once, over these; docs/scale.md lists the passes.

A pass runs a step over all parts: `step.partial(part)` gives a state, `a.merge(b)` one of two, and what is learned is
made of the last one. States merge in any order, and none grows with the number of rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from . import _kernels
from ._counts import Knots, ScoreCounts, ScoreMoments, draw_knots
from ._encoding import Encoding, encode, encode_plain
from ._global import EmbeddingSums
from ._model import GlobalBranch, LocalBranch, Model
from ._preprocess import ColumnStatistics, ColumnSums, ColumnUnits, Scaling, counted_quantiles, with_sums
from ._random import row_keys
from ._ranks import BranchRanks, Cdf, logarithms
from ._sampling import n_rows_of, take_rows
from ._survey import Survey, survey_part
from ._table import Table, read_like
from ._threads import n_threads
from .exceptions import TableError

SHORT_TABLE = 768
"""Up to this many rows are not worth a second thread, nor the question how many there may be."""

ROWS_AT_ONCE = 2**17
"""Rows whose view scores are held at once in a pass."""

MOST_COUNTED = 2**21
"""Rows whose scores are counted, of a longer table a uniform sample: ranks are then off by 0.035 % (one standard error,
at the median; less in the tails)."""

COLUMN_STEPS = 1024
"""Steps in rank at which the values of a column are counted."""

Scores = NDArray[np.float64]
Branch = GlobalBranch | LocalBranch


def threads_for(n_rows: int, n_jobs: int | None) -> int:
    """Return the threads that so many rows are worth."""
    return n_threads(n_jobs) if n_rows > SHORT_TABLE else 1


def encoded(encoding: Encoding, table: Table) -> NDArray[np.floating]:
    """Return a table as a matrix of finite numbers."""
    return encode_plain(encoding, table) if isinstance(table, np.ndarray) else encode(encoding, table)


class Training(Protocol):
    """The training rows, encoded, as a fit sees them."""

    sample: NDArray[np.floating]
    """A uniform sample of the rows, or all: bandwidths and references come from it."""

    def column_statistics(self, n_quantiles: int) -> ColumnStatistics:
        """Return the statistics of every column."""

    def moments(self, scaling: Scaling) -> tuple[Scores, Scores]:
        """Return mean and standard deviation of every scaled column."""

    def scale(self, scaling: Scaling) -> _kernels.Rows:
        """Set the scaling of what follows; return the sample, scaled."""

    def embedding_sums(self, branch: GlobalBranch) -> EmbeddingSums:
        """Return the sums of phi and phi phi^T."""

    def fit_ranks(self, branches: Sequence[Branch | None], aggregation: str) -> list[BranchRanks | None]:
        """Return the distributions of each branch's scores."""


class InMemory:
    """Training rows that are held: distributions are exact."""

    def __init__(self, matrix: NDArray[np.floating], sample: NDArray[np.floating] | None, n_jobs: int | None) -> None:
        """Take all rows, and a sample of them if they are many."""
        self.matrix = matrix
        self.sample = matrix if sample is None else sample
        self.threads = threads_for(len(matrix), n_jobs)
        self.branch_scores: list[Scores | None] = []
        """Of the training rows, when the ranks are fitted."""

    def column_statistics(self, n_quantiles: int) -> ColumnStatistics:
        """Return the statistics of every column."""
        return _kernels.column_statistics(self.matrix, self.threads, n_quantiles)

    def moments(self, scaling: Scaling) -> tuple[Scores, Scores]:
        """Return mean and standard deviation of every scaled column."""
        return _kernels.column_moments(_kernels.Rows(self.matrix, scaling, self.threads))

    def scale(self, scaling: Scaling) -> _kernels.Rows:
        """Set the scaling of what follows; return the sample, scaled."""
        self.rows = _kernels.Rows(self.matrix, scaling, self.threads, keep=True)
        return self.rows if self.sample is self.matrix else _kernels.Rows(self.sample, scaling, self.threads)

    def embedding_sums(self, branch: GlobalBranch) -> EmbeddingSums:
        """Return the sums of phi and phi phi^T."""
        return EmbeddingSums(self.rows.n_rows, *_kernels.embedding_sums(self.rows, branch))

    def fit_ranks(self, branches: Sequence[Branch | None], aggregation: str) -> list[BranchRanks | None]:
        """Return the distributions of each branch's scores."""
        ranks: list[BranchRanks | None] = []
        for branch in branches:
            found = (None, None) if branch is None else _kernels.fit_ranks(self.rows, branch, aggregation)
            ranks.append(found[0])
            self.branch_scores.append(found[1])
        return ranks


# ---- passes


class Mergeable(Protocol):
    """What a pass learns of some rows."""

    def merge(self, other: Self) -> Self:
        """Return the same of the rows of both."""


State = TypeVar("State", bound=Mergeable)


def merged(a: State | None, b: State | None) -> State | None:
    """Return what two parts contribute together, either of which may be nothing."""
    return b if a is None else a if b is None else a.merge(b)


@dataclass(frozen=True)
class Step(ABC, Generic[State]):
    """What a pass does with every part of a table. Steps travel to workers: they hold no rows but a sample."""

    reader: BaseEstimator
    """Knows the names of the columns."""

    @abstractmethod
    def partial(self, part: Any, first_row: int) -> State | None:
        """Return what a part of the table, of at least one row, contributes; None if no row is to be learned from."""

    def fold(self, state: State | None, part: Any, first_row: int) -> State | None:
        """Return the state with one part more, which may be empty."""
        return merged(state, self.partial(part, first_row)) if len(part) else state


class Passes(Protocol):
    """A table on disk or on a cluster."""

    def run(self, step: Step[State]) -> State:
        """Go through the table once."""


@dataclass(frozen=True)
class SurveyStep(Step[Survey]):
    """The first pass: how many rows, a sample of them, what the reading of columns depends on."""

    seed: int
    size: int
    unused: frozenset[str]
    as_categories: frozenset[str]
    below: float = np.inf
    """No row with a key of this or more is in the sample."""

    def partial(self, part: Any, first_row: int) -> Survey:
        """Survey a part."""
        table = read_like(self.reader, part, self.unused)
        return survey_part(table, first_row, self.seed, self.size, self.below, self.as_categories)

    def fold(self, state: Survey | None, part: Any, first_row: int) -> Survey | None:
        """Add a part: of its rows only those that can still be among the sample."""
        below = self.below if state is None else min(self.below, state.sample.below)
        return super(SurveyStep, replace(self, below=below)).fold(state, part, first_row)


@dataclass(frozen=True)
class EncodedStep(Step[State]):
    """A step that knows how columns are read."""

    encoding: Encoding
    held_out: NDArray[np.int64]
    """Numbers of the rows not to learn from, increasing."""
    n_jobs: int | None

    def matrix(self, part: Any, first_row: int) -> NDArray[np.floating]:
        """Return the training rows of a part, encoded."""
        table = read_like(self.reader, part, self.encoding.dropped)
        numbers = first_row + np.arange(n_rows_of(table))
        kept = self.is_learned_from(numbers)
        if not kept.all():
            table = take_rows(table, kept)
        try:
            return encoded(self.encoding, table)
        except TableError as error:
            raise TableError(f"In the part of the table that begins with row {first_row:,}: {error}") from error

    def is_learned_from(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which of the consecutive rows contribute."""
        kept = np.ones(len(numbers), bool)
        low, high = np.searchsorted(self.held_out, [numbers[0], numbers[-1] + 1])
        kept[self.held_out[low:high] - numbers[0]] = False
        return kept

    def in_slices(
        self, matrix: NDArray[np.floating], function: Callable[[NDArray[np.floating]], State]
    ) -> State | None:
        """Return what all rows contribute, not too many at once."""
        state: State | None = None
        for start in range(0, len(matrix), ROWS_AT_ONCE):
            state = merged(state, function(matrix[start : start + ROWS_AT_ONCE]))
        return state


@dataclass(frozen=True)
class ColumnSumsStep(EncodedStep[ColumnSums]):
    """Moments, range and quantiles of every column."""

    units: ColumnUnits

    def partial(self, part: Any, first_row: int) -> ColumnSums | None:
        """Sum up a part."""
        return self.in_slices(self.matrix(part, first_row), self._of_rows)

    def _of_rows(self, rows: NDArray[np.floating]) -> ColumnSums:
        counts = _kernels.count_scores(rows.T, self.units.knots, threads_for(len(rows), self.n_jobs))
        return ColumnSums.of(rows, self.units, counts)


@dataclass(frozen=True)
class ScaledStep(EncodedStep[State]):
    """A step over scaled rows, not too many at once."""

    scaling: Scaling

    def partial(self, part: Any, first_row: int) -> State | None:
        """Return what a part contributes."""
        matrix = self.matrix(part, first_row)
        threads = threads_for(len(matrix), self.n_jobs)
        return self.in_slices(matrix, lambda rows: self.of_rows(_kernels.Rows(rows, self.scaling, threads)))

    @abstractmethod
    def of_rows(self, rows: _kernels.Rows) -> State:
        """Return what some rows contribute."""


@dataclass(frozen=True)
class EmbeddingStep(ScaledStep[EmbeddingSums]):
    """Sums of phi and phi phi^T."""

    branch: GlobalBranch

    def of_rows(self, rows: _kernels.Rows) -> EmbeddingSums:
        """Sum up some rows."""
        return EmbeddingSums(rows.n_rows, *_kernels.embedding_sums(rows, self.branch))


def _counted(threads: int, scores: NDArray[np.floating], knots: Knots) -> ScoreCounts:
    return ScoreCounts.of(scores, _kernels.count_scores(scores, knots.values, threads), knots)


Part = TypeVar("Part", bound=Mergeable)


@dataclass(frozen=True)
class PerBranch(Generic[Part]):
    """One state for each branch."""

    states: tuple[Part, ...]

    def merge(self, other: Self) -> Self:
        """Return the same of the rows of both."""
        return replace(self, states=tuple(a.merge(b) for a, b in zip(self.states, other.states, strict=True)))


@dataclass(frozen=True)
class CountingStep(ScaledStep[State]):
    """A step over the scores of all rows or, of a long table, of a uniform sample."""

    seed: int
    below: float
    """Rows with smaller keys contribute."""

    def is_learned_from(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which of the consecutive rows contribute."""
        kept = super().is_learned_from(numbers)
        return kept & (row_keys(self.seed, numbers, None) < self.below) if self.below < 1.0 else kept


@dataclass(frozen=True)
class ViewScoresStep(CountingStep[PerBranch[ScoreCounts]]):
    """Counts of the view scores of each branch."""

    branches: tuple[Branch, ...]
    knots: tuple[Knots, ...]

    def of_rows(self, rows: _kernels.Rows) -> PerBranch[ScoreCounts]:
        """Count some rows."""
        scores = (_kernels.view_scores(rows, branch) for branch in self.branches)
        return PerBranch(tuple(map(partial(_counted, rows.n_threads), scores, self.knots)))


@dataclass(frozen=True)
class ViewMomentsStep(CountingStep[PerBranch[ScoreMoments]]):
    """Mean and spread of the view scores of each branch, where they are standardized instead of ranked."""

    branches: tuple[Branch, ...]

    def of_rows(self, rows: _kernels.Rows) -> PerBranch[ScoreMoments]:
        """Sum up some rows."""
        return PerBranch(
            tuple(
                ScoreMoments.of(logarithms(_kernels.view_scores(rows, branch), branch.smallest_scores))
                for branch in self.branches
            )
        )


@dataclass(frozen=True)
class BranchMeansStep(CountingStep[PerBranch[ScoreCounts]]):
    """Counts of each branch's mean over its views."""

    branches: tuple[Branch, ...]
    ranks: tuple[BranchRanks, ...]
    """With any distribution in the place of the branch's."""
    knots: tuple[Knots, ...]

    def of_rows(self, rows: _kernels.Rows) -> PerBranch[ScoreCounts]:
        """Count some rows."""
        pairs = zip(self.branches, self.ranks, strict=True)
        means = (_kernels.branch_means(rows, branch, ranks)[None] for branch, ranks in pairs)
        return PerBranch(tuple(map(partial(_counted, rows.n_threads), means, self.knots)))


@dataclass(frozen=True)
class AnomalyScoresStep(CountingStep[ScoreCounts]):
    """Counts of the anomaly scores, where a share of the rows is to be called outliers."""

    model: Model
    knots: Knots

    def of_rows(self, rows: _kernels.Rows) -> ScoreCounts:
        """Count some rows."""
        scores = mean_of_branches(*_kernels.branch_scores(rows, self.model), self.model.local_weight)[None]
        return _counted(rows.n_threads, scores, self.knots)


class InPasses:
    """Training rows that are gone through, once for each thing that is asked of them."""

    def __init__(
        self,
        passes: Passes,
        sample: NDArray[np.floating],
        n_rows: int,
        reader: BaseEstimator,
        encoding: Encoding,
        held_out: NDArray[np.int64],
        seed: int,
        n_jobs: int | None,
    ) -> None:
        """Take what runs a step over all rows, the encoded sample, and how many rows there are to learn from."""
        self.passes = passes
        self.sample = sample
        self.n_rows, self.n_counted = n_rows, min(n_rows, MOST_COUNTED)
        self.seed = seed
        self.threads = threads_for(len(sample), n_jobs)
        self.encoded_step = (reader, encoding, held_out, n_jobs)
        self.sums: ColumnSums | None = None

    def column_statistics(self, n_quantiles: int) -> ColumnStatistics:
        """Return the statistics of every column, of all rows; what is told by distinct values is the sample's."""
        sampled = _kernels.column_statistics(self.sample, self.threads, n_quantiles)
        unit = np.where(sampled.std > 0, sampled.std, 1.0)
        units = ColumnUnits(sampled.mean, unit, draw_knots(self.sample.T, self.n_rows, COLUMN_STEPS).values)
        if self.sums is None:
            self.sums = self.passes.run(ColumnSumsStep(*self.encoded_step, units))
        return with_sums(sampled, self.sums, units)

    def moments(self, scaling: Scaling) -> tuple[Scores, Scores]:
        """Return mean and standard deviation of every scaled column of the sample."""
        return _kernels.column_moments(_kernels.Rows(self.sample, scaling, self.threads))

    def scale(self, scaling: Scaling) -> _kernels.Rows:
        """Set the scaling of what follows; return the sample, scaled."""
        self.scaled_step = (*self.encoded_step, scaling)
        self.counting_step = (*self.scaled_step, self.seed, MOST_COUNTED / self.n_rows)
        self.rows = _kernels.Rows(self.sample, scaling, self.threads, keep=True)
        return self.rows

    def embedding_sums(self, branch: GlobalBranch) -> EmbeddingSums:
        """Return the sums of phi and phi phi^T."""
        return self.passes.run(EmbeddingStep(*self.scaled_step, branch))

    def fit_ranks(self, branches: Sequence[Branch | None], aggregation: str) -> list[BranchRanks | None]:
        """Return the distributions of each branch's scores, in two passes: of the views, then of their mean."""
        present = tuple(branch for branch in branches if branch is not None)
        ranks = tuple(self._view_standards(present) if aggregation == "standard" else self._view_ranks(present))
        means = [_kernels.branch_means(self.rows, *pair) for pair in zip(present, ranks, strict=True)]
        knots = tuple(draw_knots(mean[None], self.n_counted) for mean in means)
        counted = self.passes.run(BranchMeansStep(*self.counting_step, present, ranks, knots))
        whole = iter(
            BranchRanks((*own.views, *counts.finish(k, self.n_rows)), own.standards)
            for own, counts, k in zip(ranks, counted.states, knots, strict=True)
        )
        return [None if branch is None else next(whole) for branch in branches]

    def _view_ranks(self, branches: tuple[Branch, ...]) -> list[BranchRanks]:
        knots = tuple(draw_knots(_kernels.view_scores(self.rows, branch), self.n_counted) for branch in branches)
        counted = self.passes.run(ViewScoresStep(*self.counting_step, branches, knots))
        return [
            BranchRanks((*counts.finish(own, self.n_rows), _any_cdf(self.n_rows)))
            for counts, own in zip(counted.states, knots, strict=True)
        ]

    def _view_standards(self, branches: tuple[Branch, ...]) -> list[BranchRanks]:
        moments = self.passes.run(ViewMomentsStep(*self.counting_step, branches))
        return [
            BranchRanks([_any_cdf(self.n_rows)], own.finish(branch.smallest_scores))
            for own, branch in zip(moments.states, branches, strict=True)
        ]

    def score_at(self, model: Model, rank: float) -> float:
        """Return the anomaly score that has this rank among the training rows."""
        sampled = mean_of_branches(*_kernels.branch_scores(self.rows, model), model.local_weight)
        knots = draw_knots(sampled[None], self.n_counted)
        counted = self.passes.run(AnomalyScoresStep(*self.counting_step, model, knots))
        low, high = float(counted.lowest[0]), max(float(counted.highest[0, -1]), float(sampled.max()))
        return float(counted_quantiles(knots.values[0], counted.counts[0], low, high, np.array([rank]))[0])


def _any_cdf(n_rows: int) -> Cdf:
    """Stand in for a branch's distribution until it is known; ranks are counted in units of its rows."""
    return Cdf(np.zeros(1), np.full(1, 0.5), n_rows)


def mean_of_branches(global_score: Scores | None, local_score: Scores | None, local_weight: float) -> Scores:
    """Return the anomaly score: the weighted mean of the branch scores there are."""
    if global_score is None:
        assert local_score is not None, "check_parameters lets no detector without a branch through"
        return local_score
    if local_score is None:
        return global_score
    return (1.0 - local_weight) * global_score + local_weight * local_score
