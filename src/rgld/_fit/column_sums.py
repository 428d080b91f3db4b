"""Column sums: statistics of columns that do not fit into memory, from sums that merge.

In: rows, part by part. Out: `ColumnSums`, which merge; from the merged sums, the `ColumnStatistics` of all rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from .. import _kernels
from .._arrays import Float64s, Floats, Int64s
from .._model.scaling import LARGEST_RAW_VALUE, LARGEST_VALUE
from .._model.statistics import ColumnStatistics
from .states import Mergeable

MAX_SUMMED_DEVIATION = 1e90
"""Deviations from the mean, in standard deviations, are clipped here, so that the sum of their cubes is finite."""


@dataclass(frozen=True)
class ColumnUnits:
    """Units for the values of each column, and the knots at which values are counted. Both come from the sample."""

    center: Float64s
    """Shape (d,), as `unit`: values are measured as (x - center) / unit."""
    unit: Float64s
    knots: Float64s
    """Shape (d, J), increasing, padded with infinities: values at and between them are counted."""


@dataclass(frozen=True)
class ColumnSums(Mergeable):
    """Sums, counts and ranges of columns."""

    n_rows: int
    powers: Float64s
    """Sums of the first, second and third powers of (x - center) / unit, shape (3, d)."""
    counts: Int64s
    """Numbers of values before, at, and between the knots, shape (d, 2J + 1)."""
    low: Float64s
    """Smallest and largest value, shape (d,) each."""
    high: Float64s

    @classmethod
    def of(cls, X: Floats, units: ColumnUnits, n_threads: int) -> "ColumnSums":
        """Return the sums over rows, shape (b, d)."""
        counts = _kernels.count_scores(X.T, units.knots, n_threads)
        with np.errstate(over="ignore"):
            z = np.clip((X - units.center) / units.unit, -MAX_SUMMED_DEVIATION, MAX_SUMMED_DEVIATION)
        squares = z * z
        powers = np.array([z.sum(axis=0), squares.sum(axis=0), np.einsum("ij,ij->j", squares, z)])
        low, high = (np.clip(end, -LARGEST_RAW_VALUE, LARGEST_RAW_VALUE) for end in (X.min(axis=0), X.max(axis=0)))
        return cls(len(X), powers, counts, low.astype(np.float64), high.astype(np.float64))

    def merge(self, other: "ColumnSums") -> "ColumnSums":
        """Return the sums over the rows of both."""
        return ColumnSums(
            self.n_rows + other.n_rows,
            self.powers + other.powers,
            self.counts + other.counts,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def quantiles(self, units: ColumnUnits, n_steps: int) -> Float64s:
        """Return n_steps + 1 evenly spaced quantiles of each column. They are exact at the knots, and lie on straight
        lines between them."""
        fractions = np.arange(n_steps + 1) / n_steps
        columns = zip(units.knots, self.counts, self.low, self.high, strict=True)
        return np.array([counted_quantiles(*column, fractions) for column in columns])


def counted_quantiles(knots: Float64s, counts: Int64s, low: float, high: float, fractions: Float64s) -> Float64s:
    """Return the value below which each of these fractions of the rows lies, given counts before, at and between the
    knots."""
    knots = knots[np.isfinite(knots)]
    last = int(counts.sum()) - 1
    ends = np.cumsum(counts)[: 2 * len(knots)].reshape(-1, 2)  # numbers of rows before a knot, and before or at it
    seen = ends[:, 1] > ends[:, 0]
    points = np.concatenate(([0], (ends - [0, 1])[seen].ravel(), [last]))
    values = np.concatenate(([low], np.repeat(knots[seen], 2), [high]))
    found: Float64s = np.interp(fractions * last, points, values)
    return found


def with_sums(sampled: ColumnStatistics, sums: ColumnSums, units: ColumnUnits) -> ColumnStatistics:
    """Return the column statistics of all rows. Those that need distinct values (`distinct_fraction`,
    `mode_fraction`) stay the sample's."""
    first, second, third = sums.powers / sums.n_rows
    relative_std = np.where(sums.high > sums.low, np.sqrt(np.maximum(second - first * first, 0.0)), 0.0)
    cubed = third - 3.0 * first * second + 2.0 * first**3
    skewness = np.divide(cubed, relative_std**3, out=np.zeros_like(cubed), where=relative_std > 0)
    n_quantiles = sampled.quantiles.shape[1]
    q25, median, q75 = sums.quantiles(units, 4)[:, 1:4].T
    iqr, std = q75 - q25, relative_std * units.unit
    spread = np.where(iqr > 0, iqr, np.where(std > 0, std, 1.0))
    with np.errstate(over="ignore"):
        tail_weight = (np.maximum(sums.high - median, median - sums.low) / spread).clip(max=LARGEST_VALUE)
    return replace(
        sampled,
        mean=units.center + first * units.unit,
        std=std,
        median=median,
        iqr=iqr,
        value_range=sums.high - sums.low,
        skewness=skewness,
        tail_weight=tail_weight,
        quantiles=sums.quantiles(units, n_quantiles - 1) if n_quantiles else sampled.quantiles,
    )
