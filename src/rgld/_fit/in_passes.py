"""Training rows that do not fit into memory: each question is one pass over all parts of the table.

In: an `Executor`, which runs a step over all parts. Out: what the fit asks for (`training_rows.py`): column statistics,
sums of random features, distributions of scores. Scores are counted at and between knots that come from the sample:
counts merge to the same bits in any order. docs/scale.md lists the passes.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _kernels
from .._arrays import Bools, Float64s, Floats
from .._kernels.scoring import score_rows
from .._kernels.threads import threads_for
from .._model.model import Branch, GlobalBranch, Model
from .._model.ranks import BranchRanks
from .._model.scaling import Scaling
from .._model.scores import anomaly_score
from .._model.statistics import ColumnStatistics
from .._table.table import Table
from .column_sums import ColumnSums, ColumnUnits, counted_quantiles, with_sums
from .counts import draw_knots
from .global_branch import EmbeddingSums
from .steps import (
    AnomalyScoresStep,
    BranchMeansStep,
    ColumnSumsStep,
    EmbeddingStep,
    PassContext,
    State,
    Step,
    ViewMomentsStep,
    ViewScoresStep,
)
from .training_rows import FittedRanks

N_COLUMN_STEPS = 1024
"""Even steps in rank between the knots at which the values of a column are counted."""


class Executor(ABC):
    """Runs one pass over all parts of a table, batch by batch or on a cluster."""

    n_rows: int | None = None
    """Number of rows of all parts; None if it is not known before the first pass."""

    @abstractmethod
    def example(self) -> Any:
        """Return a part of the table, or other rows with the same columns and types."""

    @abstractmethod
    def run(self, step: Step[State]) -> State:
        """Return the state of a step after one pass over all parts."""


class RowsInPasses:
    """Training rows in parts. Each question is one pass over all parts."""

    is_whole = False

    def __init__(self, executor: Executor, context: PassContext, sample: Floats) -> None:
        """Take the executor, how parts become training rows, and the encoded sample."""
        self.executor = executor
        self.context = context
        self.sample = sample
        self.n_threads = threads_for(len(sample), context.n_jobs)
        self._column_sums: ColumnSums | None = None  # kept: if quantiles are asked for later, no second pass is needed

    def column_statistics(self, n_quantiles: int) -> ColumnStatistics:
        """Return the statistics of every column over all rows; those that need distinct values are the sample's."""
        sampled = _kernels.column_statistics(self.sample, self.n_threads, n_quantiles)
        unit = np.where(sampled.std > 0, sampled.std, 1.0)
        knots = draw_knots(self.sample.T, self.context.n_rows, N_COLUMN_STEPS)
        units = ColumnUnits(sampled.mean, unit, knots.values)
        if self._column_sums is None:
            self._column_sums = self.executor.run(ColumnSumsStep(self.context, units))
        return with_sums(sampled, self._column_sums, units)

    def column_moments(self, scaling: Scaling, columns: Bools | None = None) -> tuple[Float64s, Float64s]:
        """Return mean and standard deviation of every scaled column, or of some, over the sample."""
        return _kernels.column_moments(_kernels.Rows(self.sample, scaling, self.n_threads), columns)

    def scaled(self, scaling: Scaling) -> "ScaledRowsInPasses":
        """Return the scaled rows."""
        sample = _kernels.Rows(self.sample, scaling, self.n_threads, keep=True)
        return ScaledRowsInPasses(self.executor, replace(self.context, scaling=scaling), sample)


class ScaledRowsInPasses:
    """Scaled training rows in parts. Each question is one pass over all parts."""

    def __init__(self, executor: Executor, context: PassContext, sample: _kernels.Rows) -> None:
        self.executor = executor
        self.context = context
        self.sample = sample
        self.n_rows, self.n_counted = context.n_rows, context.n_counted

    def embedding_sums(self, branch: GlobalBranch) -> EmbeddingSums:
        """Return the sums of phi and phi phi^T over all rows."""
        return self.executor.run(EmbeddingStep(self.context, branch))

    def fit_ranks(self, branches: Sequence[Branch], aggregation: str) -> list[FittedRanks]:
        """Return the distributions of each branch's scores, in two passes: first of the views, then of their mean."""
        of_views = self._view_standards(branches) if aggregation == "standard" else self._view_ranks(branches)
        means = [_kernels.branch_means(self.sample, *pair) for pair in zip(branches, of_views, strict=True)]
        knots = [draw_knots(mean[None], self.n_counted) for mean in means]
        counted = self.executor.run(BranchMeansStep(self.context, branches, of_views, knots))
        return [
            FittedRanks(BranchRanks(ranks.views, ranks.standards, counts.finish(own, self.n_rows)[0]), None)
            for ranks, counts, own in zip(of_views, counted.states, knots, strict=True)
        ]

    def _view_ranks(self, branches: Sequence[Branch]) -> list[BranchRanks]:
        """Return the distributions of the view scores."""
        knots = [draw_knots(_kernels.view_scores(self.sample, branch), self.n_counted) for branch in branches]
        counted = self.executor.run(ViewScoresStep(self.context, branches, knots))
        return [BranchRanks(counts.finish(own, self.n_rows)) for counts, own in zip(counted.states, knots, strict=True)]

    def _view_standards(self, branches: Sequence[Branch]) -> list[BranchRanks]:
        """Return the mean and the standard deviation of the view scores."""
        moments = self.executor.run(ViewMomentsStep(self.context, branches))
        return [
            BranchRanks((), own.finish(branch.smallest_scores))
            for own, branch in zip(moments.states, branches, strict=True)
        ]

    def score_at_rank(self, model: Model, sample: Table, rank: float) -> float:
        """Return the anomaly score below which this fraction of the training rows lies, given the sample as read."""
        scores = score_rows(model, sample, sample.encode(model.encoding), self.context.n_jobs)
        sampled = anomaly_score(scores, model)
        knots = draw_knots(sampled[None], self.n_counted)
        counted = self.executor.run(AnomalyScoresStep(self.context, model, knots))
        low, high = float(counted.lowest[0]), max(float(counted.highest[0, -1]), float(sampled.max()))
        return float(counted_quantiles(knots.values[0], counted.counts[0], low, high, np.array([rank]))[0])
