"""Summaries: what is known about a column over all rows of a table.

In: the column of one part of the table. Out: a `ColumnSummary`; summaries of parts merge into that of the table.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import RawColumn, join_columns
from .hashing import string_hashes

MAX_COUNTED_STRINGS = 100_000
"""At most this many different strings of a column are counted. If there are more, those with the smallest hashes are
counted: a random choice of the strings, each counted over all rows, and the same choice however the table is split."""


@dataclass(frozen=True)
class ColumnSummary:
    """What is known about a column over all rows."""

    n_rows: int
    n_missing: int
    low: float
    high: float
    """The smallest and the largest finite number; infinity and -infinity if there is no finite number."""
    counts: Counter[str]
    """For each string, the number of rows that have it. Numbers and times are not counted."""
    hash_limit: float = 1.0
    """Strings with smaller hashes are counted; 1 if all are."""

    @classmethod
    def of(cls, column: RawColumn) -> "ColumnSummary":
        """Return the summary of a part of a column."""
        if column.is_string:
            present = column.values[column.values >= 0].astype(np.int64)
            counts = np.bincount(present, minlength=len(column.strings))
            counter = Counter({column.strings[i]: int(counts[i]) for i in np.flatnonzero(counts)})
            return _bounded(cls(len(column), len(column) - len(present), np.inf, -np.inf, counter))
        n_missing = int(np.isnan(column.values).sum())
        return cls(len(column), n_missing, *_range(column.values), Counter())

    @property
    def is_whole(self) -> bool:
        """Whether all strings are counted."""
        return self.hash_limit == 1.0

    @property
    def n_distinct(self) -> float:
        """The number of different strings; an estimate from the hashes if not all are counted."""
        return len(self.counts) / self.hash_limit

    def merge(self, other: "ColumnSummary") -> "ColumnSummary":
        """Return the summary of both parts together."""
        merged = ColumnSummary(
            self.n_rows + other.n_rows,
            self.n_missing + other.n_missing,
            min(self.low, other.low),
            max(self.high, other.high),
            self.counts + other.counts,
            min(self.hash_limit, other.hash_limit),
        )
        return _bounded(merged)

    def without(self, column: RawColumn) -> "ColumnSummary":
        """Return the summary without some rows, given their column. `low` and `high` stay those of all rows."""
        other = ColumnSummary.of(column)
        n_rows, n_missing = self.n_rows - other.n_rows, self.n_missing - other.n_missing
        return replace(self, n_rows=n_rows, n_missing=n_missing, counts=self.counts - other.counts)

    def completed(self, sample: RawColumn) -> RawColumn:
        """Return a sample of the column with a few more cells: the lowest and the highest number, a missing value, a
        second string, if the column has them and the sample does not. The rules that decide how the column is read then
        see that it varies or has missing values."""
        cells: list[float] = []
        if not sample.is_string:
            low, high = _range(sample.values)
            cells = [value for value, new in ((self.low, self.low < low), (self.high, self.high > high)) if new]
            cells = [value for value in cells if np.isfinite(value)]
        if self.n_missing and not sample.missing.any():
            cells.append(np.nan)
        parts = [sample]
        if cells:
            kind = "number" if sample.is_string else sample.kind
            parts.append(RawColumn(sample.name, kind, np.array(cells), is_of_objects=sample.is_of_objects))
        if self.counts and len(sample.strings) <= 1:
            others = [string for string, _ in self.counts.most_common(2) if string not in sample.strings]
            kind = sample.kind if sample.is_string else "text"
            parts.append(RawColumn(sample.name, kind, np.arange(len(others)), tuple(others)))
        return join_columns(parts) if len(parts) > 1 else sample


def _bounded(summary: ColumnSummary) -> ColumnSummary:
    if summary.is_whole and len(summary.counts) <= MAX_COUNTED_STRINGS:
        return summary
    strings = list(summary.counts)
    hashes = string_hashes(strings)
    hash_limit = summary.hash_limit
    if np.count_nonzero(hashes < hash_limit) > MAX_COUNTED_STRINGS:
        hash_limit = float(np.partition(hashes, MAX_COUNTED_STRINGS)[MAX_COUNTED_STRINGS])
    kept = Counter({strings[i]: summary.counts[strings[i]] for i in np.flatnonzero(hashes < hash_limit)})
    return replace(summary, counts=kept, hash_limit=hash_limit)


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
