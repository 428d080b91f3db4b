"""Column statistics, from which a scaling is chosen and fitted.

In: the encoded training matrix (n, d). Out: `ColumnStatistics`, one number per column and statistic. This is the NumPy
version; the compiled core has its own (`core/columns.cpp`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._arrays import Float64s, Floats
from .scaling import LARGEST_RAW_VALUE, LARGEST_VALUE

GROUP_BYTES = 32 * 2**20
"""Columns are sorted in groups of at most about this many bytes."""

DISTINCT_ROWS = 10_000
"""`distinct_fraction` divides by at most this many rows: a column of a thousand distinct values counts as continuous in
a table of any length."""


@dataclass(frozen=True)
class ColumnStatistics:
    """Statistics of columns, one number per column, and the quantiles that the scalings need."""

    mean: Float64s
    std: Float64s
    median: Float64s
    iqr: Float64s
    value_range: Float64s
    skewness: Float64s
    """Third standardized moment; 0 for a constant column."""
    tail_weight: Float64s
    """Largest distance from the median, in interquartile ranges (if that range is 0, in standard deviations)."""
    distinct_fraction: Float64s
    """Number of distinct values divided by the number of rows, or by `DISTINCT_ROWS` if there are more rows."""
    mode_fraction: Float64s
    """Fraction of the rows that have the column's most frequent value."""
    quantiles: Float64s
    """Evenly spaced quantiles from minimum to maximum, shape (d, q); (d, 0) if no quantiles are asked for."""


def column_statistics(X: Floats, n_quantiles: int = 0) -> ColumnStatistics:
    """Return the statistics of every column of X, shape (n, d), and `n_quantiles` quantiles of each."""
    parts = [_sorted_statistics(columns, n_quantiles) for columns in _sorted_columns(X)]
    return ColumnStatistics(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _sorted_columns(X: Floats) -> Iterator[Float64s]:
    """Yield groups of columns as sorted float64 rows, shape (columns, n)."""
    n_rows, n_columns = X.shape
    step = max(1, GROUP_BYTES // (8 * n_rows))
    for start in range(0, n_columns, step):
        columns = np.array(X[:, start : start + step].T, dtype=np.float64, order="C")
        columns.clip(-LARGEST_RAW_VALUE, LARGEST_RAW_VALUE, out=columns)
        columns.sort(axis=1)
        yield columns


def _sorted_statistics(columns: Float64s, n_quantiles: int) -> tuple[Float64s, ...]:
    """Return the fields of `ColumnStatistics` for sorted columns, in their order."""
    n_columns, n_rows = columns.shape
    quantiles = _quantiles(columns, n_quantiles - 1) if n_quantiles else columns[:, :0]
    q25, median, q75 = _quantiles(columns, 4)[:, 1:4].T
    lowest, highest = columns[:, 0], columns[:, -1]
    iqr = q75 - q25

    # Squares and cubes of very large or small numbers overflow or vanish, so the largest magnitude is the unit.
    unit = np.maximum(np.abs(lowest), np.abs(highest))
    unit[unit == 0] = 1.0
    scaled = columns / unit[:, None]
    mean = scaled.mean(axis=1)
    deviation = scaled - mean[:, None]
    variance = (deviation**2).mean(axis=1)
    cubed_std = variance**1.5
    skewness = np.divide((deviation**3).mean(axis=1), cubed_std, out=np.zeros(n_columns), where=cubed_std > 0)
    std = np.sqrt(variance) * unit

    spread = np.where(iqr > 0, iqr, np.where(std > 0, std, 1.0))
    with np.errstate(over="ignore"):
        tail_weight = (np.maximum(highest - median, median - lowest) / spread).clip(max=LARGEST_VALUE)
    starts = np.concatenate((np.ones((n_columns, 1), bool), columns[:, 1:] > columns[:, :-1]), axis=1)
    distinct = starts.sum(axis=1)
    most_frequent = np.array([np.diff(np.append(np.flatnonzero(row), n_rows)).max() for row in starts])
    return (
        mean * unit,
        std,
        median,
        iqr,
        highest - lowest,
        skewness,
        tail_weight,
        distinct / min(n_rows, DISTINCT_ROWS),
        most_frequent / n_rows,
        quantiles,
    )


def _quantiles(columns: Float64s, n_steps: int) -> Float64s:
    """Return n_steps + 1 evenly spaced quantiles of sorted columns, shape (columns, n_steps + 1). They are interpolated
    linearly.

    Positions are computed with integers, so that a quantile that falls on a value is exactly that value.
    """
    n_gaps = columns.shape[1] - 1
    low, rest = np.divmod(np.arange(n_steps + 1) * n_gaps, n_steps)
    high = np.minimum(low + 1, n_gaps)
    quantiles: Float64s = columns[:, low] + rest / n_steps * (columns[:, high] - columns[:, low])
    return quantiles
