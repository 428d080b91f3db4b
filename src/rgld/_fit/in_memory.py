"""Training rows in memory: every distribution is exact."""

from collections.abc import Sequence

from .. import _kernels
from .._arrays import Bools, Float64s, Floats, Indices
from .._kernels.threads import SHORT_FIT_ROWS, threads_for
from .._model.model import Branch, GlobalBranch
from .._model.scaling import Scaling
from .._model.statistics import ColumnStatistics
from .global_branch import EmbeddingSums
from .training_rows import FittedRanks, TrainingRows


class RowsInMemory:
    """Training rows that are all in memory."""

    knots: _kernels.ColumnKnots | None = None
    """Of each column the values at some places of its order, if these were asked for: known with the statistics."""

    def __init__(
        self, matrix: Floats, sample: Floats | None, n_jobs: int | None, places: Indices | None = None
    ) -> None:
        """Take all rows, a sample of them if the table is long, and the places of the `knots`."""
        self.matrix = matrix
        self.places = places
        self.sample = matrix if sample is None else sample
        self.is_whole = sample is None
        self.n_threads = threads_for(len(matrix), n_jobs, SHORT_FIT_ROWS)

    def column_statistics(self, n_quantiles: int) -> ColumnStatistics:
        """Return the statistics of every column, and `n_quantiles` quantiles of each."""
        if self.places is None:
            return _kernels.column_statistics(self.matrix, self.n_threads, n_quantiles)
        statistics, self.knots = _kernels.statistics_and_knots(self.matrix, self.places, self.n_threads, n_quantiles)
        return statistics

    def column_moments(self, scaling: Scaling, columns: Bools | None = None) -> tuple[Float64s, Float64s]:
        """Return mean and standard deviation of every scaled column, or of some, over the sample, as in passes."""
        return _kernels.column_moments(_kernels.Rows(self.sample, scaling, self.n_threads), columns)

    def scaled(self, scaling: Scaling) -> "ScaledRowsInMemory":
        """Return the scaled rows."""
        rows = _kernels.Rows(self.matrix, scaling, self.n_threads, keep=True)
        return ScaledRowsInMemory(rows, rows if self.is_whole else _kernels.Rows(self.sample, scaling, self.n_threads))


class SomeRows:
    """The training rows with a smaller sample, from which everything but the statistics of columns is learned: a rare
    value that the sample misses still counts as one that occurs."""

    is_whole = False

    def __init__(self, rows: TrainingRows, viewed: Indices) -> None:
        """Take the rows, and which rows of their sample are learned from."""
        self.rows = rows
        self.sample = rows.sample[viewed]
        self.n_threads = rows.n_threads

    def column_statistics(self, n_quantiles: int) -> ColumnStatistics:
        """Return the statistics of every column over all rows, and `n_quantiles` quantiles of each."""
        return self.rows.column_statistics(n_quantiles)

    def column_moments(self, scaling: Scaling, columns: Bools | None = None) -> tuple[Float64s, Float64s]:
        """Return mean and standard deviation of every scaled column, or of some, over the larger sample."""
        return self.rows.column_moments(scaling, columns)

    def scaled(self, scaling: Scaling) -> "ScaledRowsInMemory":
        """Return the scaled rows of the smaller sample."""
        rows = _kernels.Rows(self.sample, scaling, self.n_threads, keep=True)
        return ScaledRowsInMemory(rows, rows)


class ScaledRowsInMemory:
    """Scaled training rows that are all in memory."""

    def __init__(self, rows: _kernels.Rows, sample: _kernels.Rows) -> None:
        self.rows = rows
        self.sample = sample

    def embedding_sums(self, branch: GlobalBranch) -> EmbeddingSums:
        """Return the sums of phi and phi phi^T over all rows."""
        return EmbeddingSums.of(self.rows, branch)

    def fit_ranks(self, branches: Sequence[Branch], aggregation: str) -> list[FittedRanks]:
        """Return the distributions of each branch's scores, and the branch scores of all rows."""
        return [FittedRanks(*_kernels.fit_ranks(self.rows, branch, aggregation)) for branch in branches]
