"""Survey: what the first pass over a table learns of it, part by part.

In: parts of a table. Out: a `Survey`: the number of rows, a sample of them, and per column what a sample may miss and
the reading of the column depends on: whether it varies, whether there are gaps, how often each text comes.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._cells import RawColumn
from ._encoding import as_texts
from ._random import text_hashes
from ._sampling import RowSample, join_columns, n_rows_of, sample_part
from ._table import Table

MOST_COUNTED = 100_000
"""Different texts of a column that are counted: all of them, or of more those with the smallest hashes. The latter are
a uniform sample of the different texts, with all their rows counted, however the table was split."""


@dataclass(frozen=True)
class ColumnSummary:
    """What all rows say of a column."""

    n_rows: int
    n_missing: int
    low: float
    high: float
    """The smallest and the largest number, infinities left out; infinity and -infinity if there is none."""
    counts: Counter[str]
    """Rows with each text; numbers and times are not counted."""
    below: float = 1.0
    """Texts with smaller hashes are counted; 1 if all are."""

    @classmethod
    def of(cls, column: RawColumn) -> "ColumnSummary":
        """Summarize a part of a column."""
        if column.is_text:
            present = column.values[column.values >= 0].astype(np.int64)
            counts = np.bincount(present, minlength=len(column.texts))
            counter = Counter({column.texts[i]: int(counts[i]) for i in np.flatnonzero(counts)})
            return _bounded(cls(len(column), len(column) - len(present), np.inf, -np.inf, counter))
        n_missing = int(np.isnan(column.values).sum())
        return cls(len(column), n_missing, *_range(column.values), Counter())

    @property
    def is_whole(self) -> bool:
        """All texts are counted."""
        return self.below == 1.0

    @property
    def n_different(self) -> float:
        """Different texts, estimated from the hashes where not all are counted."""
        return len(self.counts) / self.below

    def merge(self, other: "ColumnSummary") -> "ColumnSummary":
        """Summarize both parts."""
        merged = ColumnSummary(
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            min(self.low, other.low),
            max(self.high, other.high),
            self.counts + other.counts,
            min(self.below, other.below),
        )
        return _bounded(merged)

    def without(self, column: RawColumn) -> "ColumnSummary":
        """Return the summary without some rows."""
        other = ColumnSummary.of(column)
        n_rows, n_missing = self.n_rows - other.n_rows, self.n_missing - other.n_missing
        return replace(self, n_rows=n_rows, n_missing=n_missing, counts=self.counts - other.counts)

    def witnessed(self, sample: RawColumn) -> RawColumn:
        """Return the sample of the column with cells that it lacks: the lowest and the highest number, a gap, another
        text. The rules of reading then see what is there."""
        cells: list[float] = []
        if not sample.is_text:
            low, high = _range(sample.values)
            cells = [value for value, new in ((self.low, self.low < low), (self.high, self.high > high)) if new]
            cells = [value for value in cells if np.isfinite(value)]
        if self.n_missing and not sample.missing.any():
            cells.append(np.nan)
        parts = [sample]
        if cells:
            kind = "number" if sample.is_text else sample.kind
            parts.append(RawColumn(sample.name, kind, np.array(cells), is_loose=sample.is_loose))
        if self.counts and len(sample.texts) <= 1:
            others = [text for text, _ in self.counts.most_common(2) if text not in sample.texts]
            kind = sample.kind if sample.is_text else "text"
            parts.append(RawColumn(sample.name, kind, np.arange(len(others)), tuple(others)))
        return join_columns(parts) if len(parts) > 1 else sample


def _bounded(summary: ColumnSummary) -> ColumnSummary:
    if summary.is_whole and len(summary.counts) <= MOST_COUNTED:
        return summary
    texts = list(summary.counts)
    hashes = text_hashes(texts)
    below = summary.below
    if np.count_nonzero(hashes < below) > MOST_COUNTED:
        below = float(np.partition(hashes, MOST_COUNTED)[MOST_COUNTED])
    kept = Counter({texts[i]: summary.counts[texts[i]] for i in np.flatnonzero(hashes < below)})
    return replace(summary, counts=kept, below=below)


def _range(values: NDArray[Any]) -> tuple[float, float]:
    """Return the smallest and the largest finite value."""
    if not len(values):
        return np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        low, high = float(np.min(values)), float(np.max(values))
    if np.isfinite(low) and np.isfinite(high):
        return low, high
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if len(finite) else (np.inf, -np.inf)


@dataclass(frozen=True)
class Survey:
    """What the first pass learns."""

    n_rows: int
    sample: RowSample
    columns: tuple[ColumnSummary, ...]

    def merge(self, other: "Survey") -> "Survey":
        """Survey both parts."""
        columns = tuple(a.merge(b) for a, b in zip(self.columns, other.columns, strict=True))
        return Survey(self.n_rows + other.n_rows, self.sample.merge(other.sample), columns)


def survey_part(
    table: Table, first_row: int, seed: int, size: int, below: float = np.inf, as_categories: Collection[str] = ()
) -> Survey:
    """Survey a part of a table; see `sample_part` for the sample. Columns that are to be categories are texts."""
    if not isinstance(table, np.ndarray):
        table = [_as_text(column) if column.name in as_categories else column for column in table]
    return Survey(n_rows_of(table), sample_part(table, first_row, seed, size, below=below), _summaries(table))


def _as_text(column: RawColumn) -> RawColumn:
    return column if column.is_text else RawColumn(column.name, "category", *as_texts(column))


def columns_of(table: Table) -> list[RawColumn]:
    """Return the columns of a table, also of an array."""
    if not isinstance(table, np.ndarray):
        return table
    return [RawColumn(f"column {j}", "number", table[:, j].astype(np.float64)) for j in range(table.shape[1])]


def _summaries(table: Table) -> tuple[ColumnSummary, ...]:
    if not isinstance(table, np.ndarray):
        return tuple(ColumnSummary.of(column) for column in table)
    low, high = table.min(axis=0), table.max(axis=0)
    return tuple(
        ColumnSummary(len(table), 0, float(low[j]), float(high[j]), Counter())
        if np.isfinite(low[j]) and np.isfinite(high[j])
        else ColumnSummary.of(RawColumn("", "number", table[:, j].astype(np.float64)))
        for j in range(table.shape[1])
    )
