"""Training rows: what the fit asks of them, whether they are in memory or in parts.

`TrainingRows` are encoded rows (n, e); `ScaledRows` are the same rows after the scaling is fitted. Both exist twice:
`in_memory.py` holds all rows, `in_passes.py` makes one pass over all parts for each question. `SomeRows` shows either
with a smaller sample.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .. import _kernels
from .._arrays import Bools, Float64s, Floats
from .._model.model import Branch, GlobalBranch
from .._model.ranks import BranchRanks
from .._model.scaling import Scaling
from .._model.statistics import ColumnStatistics
from .global_branch import EmbeddingSums


class FittedRanks(NamedTuple):
    """The distributions of one branch, and its scores."""

    ranks: BranchRanks
    scores: Float64s | None
    """Branch scores of the ranked rows, shape (n,); None if they are in parts."""


class TrainingRows(Protocol):
    """The training rows, encoded."""

    sample: Floats
    """A uniform sample of the rows, or all rows of a short table. Bandwidths and references come from it."""
    is_whole: bool
    """Whether the sample has all rows."""
    n_threads: int
    """Number of threads of the fit."""

    def column_statistics(self, n_quantiles: int) -> ColumnStatistics:
        """Return the statistics of every column, and `n_quantiles` quantiles of each."""

    def column_moments(self, scaling: Scaling, columns: Bools | None = None) -> tuple[Float64s, Float64s]:
        """Return mean and standard deviation of every scaled column, or of some of them and 0 for the others."""

    def scaled(self, scaling: Scaling) -> "ScaledRows":
        """Return the scaled rows."""


class ScaledRows(Protocol):
    """The training rows, encoded and scaled."""

    sample: _kernels.Rows
    """The scaled sample."""

    def embedding_sums(self, branch: GlobalBranch) -> EmbeddingSums:
        """Return the sums of phi and phi phi^T over all rows."""

    def fit_ranks(self, branches: Sequence[Branch], aggregation: str) -> list[FittedRanks]:
        """Return the distributions of each branch's scores over all rows."""
