"""Survey: what the first pass over a table finds, part by part.

In: parts of a table. Out: a `Survey`: the number of rows, a sample of them, and a summary of each column. The survey
looks at all rows, so it also finds what a sample can miss: whether a column varies, whether values are missing, and how
often each string comes. How a column is read depends on these.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from .._table.summary import ColumnSummary
from .._table.table import Table
from .sampling import RowSample, sample_part
from .states import Mergeable


@dataclass(frozen=True)
class Survey(Mergeable):
    """What the first pass finds."""

    n_rows: int
    sample: RowSample
    summaries: tuple[ColumnSummary, ...]
    """One for each column."""

    def merge(self, other: "Survey") -> "Survey":
        """Return the survey of both parts."""
        summaries = tuple(a.merge(b) for a, b in zip(self.summaries, other.summaries, strict=True))
        return Survey(self.n_rows + other.n_rows, self.sample.merge(other.sample), summaries)

    def summaries_without(self, table: Table) -> list[ColumnSummary]:
        """Return the summaries without the rows of a table."""
        return [summary.without(table.column(j)) for j, summary in enumerate(self.summaries)]


def survey_part(
    table: Table, first_row: int, seed: int, size: int, key_limit: float = np.inf, categories: Collection[str] = ()
) -> Survey:
    """Return the survey of one part; see `sample_part` for the sample. Columns in `categories` become categories."""
    table = table.with_categories(categories)
    return Survey(len(table), sample_part(table, first_row, seed, size, key_limit=key_limit), table.summaries())
