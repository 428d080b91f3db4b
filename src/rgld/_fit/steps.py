"""Steps: what a pass does with every part of a table.

A pass runs one step over all parts. `step.partial(part)` makes a state of one part, and `a.merge(b)` makes one state of
two. The last state holds what the pass has learned. States can be merged in any order, and their size does not depend
on the number of rows. Steps are sent to the workers of a cluster, so they are small: they hold what earlier passes have
learned (the last one, `AnomalyScoresStep`, holds the model with its kept rows), but no part of the table.

A new branch needs one more `TrainingStep` below, with its `of_rows`, and a state that merges.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from .. import _kernels
from .._arrays import Bools, Floats, Int64s
from .._kernels.scoring import score_rows
from .._kernels.threads import threads_for
from .._model.model import Branch, GlobalBranch, Model
from .._model.ranks import BranchRanks, logarithms
from .._model.scaling import Scaling
from .._model.scores import anomaly_score
from .._table.encoding import Encoding
from .._table.infer import NaValues
from .._table.schema import Schema
from .._table.table import Table
from .column_sums import ColumnSums, ColumnUnits
from .counts import Knots, ScoreCounts, ScoreMoments
from .global_branch import EmbeddingSums
from .randomness import row_keys
from .states import Mergeable
from .survey import Survey, survey_part

BLOCK_ROWS = 2**17
"""Rows whose view scores are in memory at once during a pass."""

MAX_COUNTED_ROWS = 2**21
"""Scores of at most this many rows are counted. In a longer table they are a uniform random choice of the rows, and
ranks are then off by 0.035 % (one standard error, at the median; less in the tails)."""


State = TypeVar("State", bound=Mergeable)


def merged(a: State | None, b: State | None) -> State | None:
    """Return the state of two parts together; None stands for the state of no rows."""
    return b if a is None else a if b is None else a.merge(b)


class Step(ABC, Generic[State]):
    """What a pass does with every part of a table."""

    @abstractmethod
    def partial(self, part: Any, first_row: int) -> State | None:
        """Return the state of a part with at least one row; None if the step uses no row of it."""

    def fold(self, state: State | None, part: Any, first_row: int) -> State | None:
        """Return the state with the rows of one more part, which may be empty."""
        return merged(state, self.partial(part, first_row)) if len(part) else state


@dataclass(frozen=True)
class SurveyStep(Step[Survey]):
    """The first pass: it counts the rows, samples them, and summarizes the columns, to decide how each is read."""

    schema: Schema
    seed: int
    size: int
    unused: frozenset[str]
    categories: frozenset[str]
    na_values: NaValues
    key_limit: float = np.inf
    """Rows with this key or a larger one are not in the sample."""

    def partial(self, part: Any, first_row: int) -> Survey:
        """Return the survey of a part."""
        return self._survey(part, first_row, self.key_limit)

    def fold(self, state: Survey | None, part: Any, first_row: int) -> Survey | None:
        """Return the survey with one more part. Of its rows, only those are taken that can still be in the sample."""
        if not len(part):
            return state
        key_limit = self.key_limit if state is None else min(self.key_limit, state.sample.key_limit)
        return merged(state, self._survey(part, first_row, key_limit))

    def _survey(self, part: Any, first_row: int, key_limit: float) -> Survey:
        table = self.schema.read_part(part, first_row, unused=self.unused).without_values(self.na_values)
        return survey_part(table, first_row, self.seed, self.size, key_limit, self.categories)


@dataclass(frozen=True)
class PassContext:
    """How a part of the table becomes training rows, the same for all steps of a fit."""

    schema: Schema
    encoding: Encoding
    held_out: Int64s
    """Indices of the held-out rows, which are not learned from; increasing."""
    seed: int
    n_rows: int
    """Number of rows to learn from, in all parts."""
    n_jobs: int | None
    scaling: Scaling | None = None
    """None before the scaling is fitted."""

    def training_matrix(self, part: Any, first_row: int, *, only_counted: bool) -> Floats:
        """Return the encoded training rows of a part; with `only_counted`, only those whose scores are counted."""
        table, indices = self.training_table(part, first_row, only_counted=only_counted)
        return table.encode(self.encoding, indices)

    def training_table(self, part: Any, first_row: int, *, only_counted: bool) -> tuple[Table, Int64s]:
        """Return the same rows as they were read, and their indices."""
        table = self.schema.read_part(part, first_row, unused=self.encoding.dropped)
        indices = first_row + np.arange(len(table))
        kept = self._is_learned_from(first_row, len(table))
        if only_counted and self.n_counted < self.n_rows:
            kept &= row_keys(self.seed, indices, None) < self.n_counted / self.n_rows
        if not kept.all():
            table, indices = table.take(kept), indices[kept]
        return table, indices

    def _is_learned_from(self, first_row: int, n_rows: int) -> Bools:
        kept = np.ones(n_rows, bool)
        low, high = np.searchsorted(self.held_out, [first_row, first_row + n_rows])
        kept[self.held_out[low:high] - first_row] = False
        return kept

    @property
    def n_counted(self) -> int:
        """Number of rows whose scores are counted."""
        return min(self.n_rows, MAX_COUNTED_ROWS)

    def n_threads(self, matrix: Floats) -> int:
        """Return the number of threads that pay off for these rows."""
        return threads_for(len(matrix), self.n_jobs)

    def scaled(self, matrix: Floats) -> _kernels.Rows:
        """Return the scaled training rows."""
        assert self.scaling is not None, "steps that score rows come after the fit of the scaling"
        return _kernels.Rows(matrix, self.scaling, self.n_threads(matrix))


@dataclass(frozen=True)
class TrainingStep(Step[State]):
    """A step over the encoded training rows."""

    context: PassContext
    only_counted: ClassVar[bool] = False
    """Whether at most `MAX_COUNTED_ROWS` rows are enough."""

    def partial(self, part: Any, first_row: int) -> State | None:
        """Return the state of a part, made of blocks of `BLOCK_ROWS` rows."""
        matrix = self.context.training_matrix(part, first_row, only_counted=self.only_counted)
        state: State | None = None
        for start in range(0, len(matrix), BLOCK_ROWS):
            state = merged(state, self.of_rows(matrix[start : start + BLOCK_ROWS]))
        return state

    @abstractmethod
    def of_rows(self, matrix: Floats) -> State:
        """Return the state of some encoded rows."""


@dataclass(frozen=True)
class ColumnSumsStep(TrainingStep[ColumnSums]):
    """Moments, range and quantiles of every column."""

    units: ColumnUnits

    def of_rows(self, matrix: Floats) -> ColumnSums:
        """Return the sums over some rows."""
        return ColumnSums.of(matrix, self.units, self.context.n_threads(matrix))


@dataclass(frozen=True)
class EmbeddingStep(TrainingStep[EmbeddingSums]):
    """Sums of phi and phi phi^T."""

    branch: GlobalBranch

    def of_rows(self, matrix: Floats) -> EmbeddingSums:
        """Return the sums over some rows."""
        return EmbeddingSums.of(self.context.scaled(matrix), self.branch)


BranchState = TypeVar("BranchState", bound=Mergeable)


@dataclass(frozen=True)
class PerBranch(Mergeable, Generic[BranchState]):
    """One state for each branch."""

    states: tuple[BranchState, ...]

    def merge(self, other: Self) -> Self:
        """Return the states for the rows of both."""
        return replace(self, states=tuple(a.merge(b) for a, b in zip(self.states, other.states, strict=True)))


@dataclass(frozen=True)
class ViewScoresStep(TrainingStep[PerBranch[ScoreCounts]]):
    """Counts of the view scores of each branch."""

    branches: Sequence[Branch]
    knots: Sequence[Knots]
    only_counted: ClassVar[bool] = True

    def of_rows(self, matrix: Floats) -> PerBranch[ScoreCounts]:
        """Return the counts of some rows."""
        rows = self.context.scaled(matrix)
        pairs = zip(self.branches, self.knots, strict=True)
        return PerBranch(
            tuple(ScoreCounts.of(_kernels.view_scores(rows, branch), knots, rows.n_threads) for branch, knots in pairs)
        )


@dataclass(frozen=True)
class ViewMomentsStep(TrainingStep[PerBranch[ScoreMoments]]):
    """Mean and spread of the view scores of each branch, used if they are standardized instead of ranked."""

    branches: Sequence[Branch]
    only_counted: ClassVar[bool] = True

    def of_rows(self, matrix: Floats) -> PerBranch[ScoreMoments]:
        """Return the moments of some rows."""
        rows = self.context.scaled(matrix)
        return PerBranch(
            tuple(
                ScoreMoments.of(logarithms(_kernels.view_scores(rows, branch), branch.smallest_scores))
                for branch in self.branches
            )
        )


@dataclass(frozen=True)
class BranchMeansStep(TrainingStep[PerBranch[ScoreCounts]]):
    """Counts of each branch's mean over its views."""

    branches: Sequence[Branch]
    ranks: Sequence[BranchRanks]
    """The distributions of the views. That of the branch is found by this step."""
    knots: Sequence[Knots]
    only_counted: ClassVar[bool] = True

    def of_rows(self, matrix: Floats) -> PerBranch[ScoreCounts]:
        """Return the counts of some rows."""
        rows = self.context.scaled(matrix)
        counts = []
        for branch, ranks, knots in zip(self.branches, self.ranks, self.knots, strict=True):
            means = _kernels.branch_means(rows, branch, ranks)[None]
            counts.append(ScoreCounts.of(means, knots, rows.n_threads))
        return PerBranch(tuple(counts))


@dataclass(frozen=True)
class AnomalyScoresStep(Step[ScoreCounts]):
    """Counts of the anomaly scores, used if `contamination` is a fraction of the rows."""

    context: PassContext
    model: Model
    knots: Knots

    def partial(self, part: Any, first_row: int) -> ScoreCounts | None:
        """Return the counts of a part. Relations look at rows as they were read, so there are no blocks."""
        table, indices = self.context.training_table(part, first_row, only_counted=True)
        if not len(table):
            return None
        matrix = table.encode(self.context.encoding, indices)
        scores = anomaly_score(score_rows(self.model, table, matrix, self.context.n_jobs), self.model)
        return ScoreCounts.of(scores[None], self.knots, self.context.n_threads(matrix))
