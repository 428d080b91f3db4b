"""Preprocessing: column statistics, the choice of a scaling, the fitted scaling.

In: the raw training matrix (n, d). Out: a `Scaling`, which turns blocks of raw rows into float32 columns.
Only training rows are looked at, and no labels. The paper names the choice (standard, robust, quantile) and
the statistics it rests on, without thresholds; ours are the constants below.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

CHUNK_BYTES = 32 * 2**20
"""Columns are sorted in groups of at most about this many bytes."""

LARGEST_VALUE = 1e9
"""Scaled values are clipped here: no float32 sum, square or angle made of thousands of such values overflows."""

LARGEST_RAW_VALUE = np.finfo(np.float64).max / 2
"""Statistics are taken of values clipped here, so that the range of a column is a finite number."""

N_QUANTILES = 1000
"""Knots of the quantile transformation per column (scikit-learn's default for `QuantileTransformer`)."""

ARCSINH_KINDS = ("arcsinh", "arcsinh-standard")
"""Linear in the middle of a column, logarithmic in its tails: an outlier stays one without ruling its column."""
LARGEST_ARCSINH = 1e18
"""Robust z-scores are clipped here: beyond, their arcsinh hardly grows."""
UNIT_KINDS = ("arcsinh-standard",)
"""Brought to mean 0 and standard deviation 1 after the transformation."""
IQR_OF_A_NORMAL = 1.349
"""Of a normal column with standard deviation 1: interquartile ranges in this unit are comparable with the latter."""
SMALLEST_SPREAD = 1e-12
"""A standard deviation below this is rounding: the column is constant."""

STRONG_SKEWNESS = 4.0
"""Twice the skewness of an exponential distribution: beyond it a linear scaling leaves most of a column in a
sliver of its range."""

CONTINUOUS_DISTINCT_SHARE = 0.1
"""A column counts as continuous if it has at least this share of distinct values ..."""
DISTINCT_ROWS = 10_000
"""... among at most this many rows: a thousand distinct values are a continuum in a table of any length."""

SPARSE_MODE_SHARE = 0.5
"""A column with more than this share of rows at one value is sparse: its quantiles would blow up the rest."""

HEAVY_TAIL = 5.0
"""Interquartile ranges from the median to the farthest value (6.7 standard deviations of a normal column):
below this there is no outlier that could distort a mean and a standard deviation."""
OUTLIER_FREE_COLUMNS = 0.9
"""Share of the columns that must be without such values for "standard"."""


@dataclass(frozen=True)
class ColumnStatistics:
    """What the choice of a scaling looks at, one number per column, and the quantiles the scalings need."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    median: NDArray[np.float64]
    iqr: NDArray[np.float64]
    value_range: NDArray[np.float64]
    skewness: NDArray[np.float64]
    """Third standardized moment; 0 for a constant column."""
    tail_weight: NDArray[np.float64]
    """Largest distance from the median, in interquartile ranges (in standard deviations where that is 0)."""
    distinct_share: NDArray[np.float64]
    """Distinct values divided by rows, at most `DISTINCT_ROWS` of them."""
    mode_share: NDArray[np.float64]
    """Share of rows that hold the column's most frequent value: sparsity, whatever the value is."""
    quantiles: NDArray[np.float64]
    """Evenly spaced quantiles, minimum to maximum, shape (d, q); (d, 0) unless asked for."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """A fitted column-wise transformation: one or several scalings of the d columns side by side, S * d columns.

    Scaled column s * d + j is column j of the table in scaling s; a view looks at columns of one scaling.
    """

    kinds: tuple[str, ...]
    """Of `PREPROCESSINGS`, S of them."""
    center: NDArray[np.float64]
    """Shape (S * d,), as the next three. Scaled values are (x - center) / scale, for the arcsinh kinds
    (arcsinh((x - center) / scale) - shift) / unit."""
    scale: NDArray[np.float64]
    shift: NDArray[np.float64]
    unit: NDArray[np.float64]
    quantiles: NDArray[np.float64]
    """Of the raw columns, shape (d, q), if a kind is "quantile"; (d, 0) otherwise."""

    @property
    def n_inputs(self) -> int:
        """d"""
        return len(self.center) // len(self.kinds)


def quantiles_for(kinds: Iterable[str], n_rows: int) -> int:
    """Return the number of quantiles per column that the scalings need."""
    return min(N_QUANTILES, n_rows) if "quantile" in kinds else 0


def column_statistics(X: NDArray[np.floating], n_quantiles: int = 0) -> ColumnStatistics:
    """Return the statistics of every column of X, shape (n, d), and so many quantiles."""
    parts = [_sorted_statistics(columns, n_quantiles) for columns in _sorted_columns(X)]
    return ColumnStatistics(*(np.concatenate(part) for part in zip(*parts, strict=True)))


LARGEST_SUMMED = 1e90
"""Deviations, in standard deviations, are clipped here: sums of their cubes are finite."""


@dataclass(frozen=True)
class ColumnUnits:
    """What columns that are not held are measured in: taken from a sample, shape (d,) each."""

    center: NDArray[np.float64]
    unit: NDArray[np.float64]
    knots: NDArray[np.float64]
    """Where values are counted, shape (d, J), increasing and padded with infinities."""


@dataclass(frozen=True)
class ColumnSums:
    """What can be summed of columns that are not held, and their range."""

    n_rows: int
    powers: NDArray[np.float64]
    """Sums of first, second and third powers of (x - center) / unit, shape (3, d)."""
    counts: NDArray[np.int64]
    """Values before, at, and between the knots, shape (d, 2J + 1)."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray[np.floating], units: ColumnUnits, counts: NDArray[np.int64]) -> "ColumnSums":
        """Sum up rows, shape (b, d), whose values were counted."""
        with np.errstate(over="ignore"):
            z = np.clip((X - units.center) / units.unit, -LARGEST_SUMMED, LARGEST_SUMMED)
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

    def quantiles(self, units: ColumnUnits, n_steps: int) -> NDArray[np.float64]:
        """Return the n_steps + 1 evenly spaced quantiles of each column, as `_quantiles` does of columns that are held:
        exact at the knots, straight lines between them."""
        shares = np.arange(n_steps + 1) / n_steps
        parts = zip(units.knots, self.counts, self.low, self.high, strict=True)
        return np.array([counted_quantiles(*part, shares) for part in parts])


def counted_quantiles(
    knots: NDArray[np.float64], counts: NDArray[np.int64], low: float, high: float, shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the values that these shares of the rows are below, of values counted before, at and between knots."""
    knots = knots[np.isfinite(knots)]
    last = int(counts.sum()) - 1
    ends = np.cumsum(counts)[: 2 * len(knots)].reshape(-1, 2)  # rows before a knot, and before or at it
    seen = ends[:, 1] > ends[:, 0]
    points = np.concatenate(([0], (ends - [0, 1])[seen].ravel(), [last]))
    values = np.concatenate(([low], np.repeat(knots[seen], 2), [high]))
    found: NDArray[np.float64] = np.interp(shares * last, points, values)
    return found


def with_sums(sampled: ColumnStatistics, sums: ColumnSums, units: ColumnUnits) -> ColumnStatistics:
    """Return the statistics of all rows, of which some were sampled: what is told apart by distinct values stays the
    sample's."""
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


def _sorted_columns(X: NDArray[np.floating]) -> Iterator[NDArray[np.float64]]:
    """Yield groups of columns as sorted float64 rows, shape (columns, n)."""
    n_rows, n_columns = X.shape
    step = max(1, CHUNK_BYTES // (8 * n_rows))
    for start in range(0, n_columns, step):
        columns = np.array(X[:, start : start + step].T, dtype=np.float64, order="C")
        columns.clip(-LARGEST_RAW_VALUE, LARGEST_RAW_VALUE, out=columns)
        columns.sort(axis=1)
        yield columns


def _sorted_statistics(columns: NDArray[np.float64], n_quantiles: int) -> tuple[NDArray[np.float64], ...]:
    """Return the fields of `ColumnStatistics` for sorted columns, in their order."""
    n_columns, n_rows = columns.shape
    quantiles = _quantiles(columns, n_quantiles - 1) if n_quantiles else columns[:, :0]
    q25, median, q75 = _quantiles(columns, 4)[:, 1:4].T
    lowest, highest = columns[:, 0], columns[:, -1]
    iqr = q75 - q25

    # Squares and cubes near the ends of the float range overflow or vanish: the largest magnitude is the unit.
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


def _quantiles(columns: NDArray[np.float64], n_steps: int) -> NDArray[np.float64]:
    """Return the n_steps + 1 evenly spaced quantiles of sorted columns, interpolated linearly, shape
    (columns, n_steps + 1).

    The places are whole numbers of steps, so that a quantile that falls on a value is that value to the bit.
    """
    n_gaps = columns.shape[1] - 1
    low, rest = np.divmod(np.arange(n_steps + 1) * n_gaps, n_steps)
    high = np.minimum(low + 1, n_gaps)
    quantiles: NDArray[np.float64] = columns[:, low] + rest / n_steps * (columns[:, high] - columns[:, low])
    return quantiles


def choose_preprocessing(statistics: ColumnStatistics, scaled: NDArray[np.bool_] | None = None) -> str:
    """Return the scaling for a table with these columns, one word for the whole table.

    "quantile" where most columns are strongly skewed and continuous, "standard" where hardly a column has
    outliers, and "robust", the safe default, everywhere else. Constant columns have no say, nor do those not `scaled`.
    """
    varying = statistics.std > 0
    if scaled is not None:
        varying &= scaled
    if not varying.any():
        return "standard"
    skewed = np.median(np.abs(statistics.skewness[varying])) > STRONG_SKEWNESS
    continuous = np.median(statistics.distinct_share[varying]) >= CONTINUOUS_DISTINCT_SHARE
    sparse = np.median(statistics.mode_share[varying]) > SPARSE_MODE_SHARE
    if skewed and continuous and not sparse:
        return "quantile"
    if np.quantile(statistics.tail_weight[varying], OUTLIER_FREE_COLUMNS) <= HEAVY_TAIL:
        return "standard"
    return "robust"


def fit_scaling(kinds: Sequence[str], statistics: ColumnStatistics) -> Scaling:
    """Return the scalings fitted to the statistics. A column without spread is centred and left at 0.

    A kind of `UNIT_KINDS` needs the moments of its own values, which come later: see `with_moments`.
    """
    parts = [_center_and_scale(kind, statistics) for kind in kinds]
    center, scale = (np.concatenate(part) for part in zip(*parts, strict=True))
    quantiles = statistics.quantiles if "quantile" in kinds else statistics.quantiles[:, :0]
    zeros, ones = np.zeros_like(center), np.ones_like(center)
    return Scaling(tuple(kinds), center, np.where(scale > 0, scale, 1.0), zeros, ones, quantiles)


def _center_and_scale(kind: str, statistics: ColumnStatistics) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if kind == "standard":
        return statistics.mean, statistics.std
    if kind in ARCSINH_KINDS:
        normal_std = statistics.iqr / IQR_OF_A_NORMAL
        return statistics.median, np.where(statistics.iqr > 0, normal_std, statistics.std)
    return statistics.median, np.where(statistics.iqr > 0, statistics.iqr, statistics.value_range)


def unit_part(scaling: Scaling) -> Scaling:
    """Return the scalings of `UNIT_KINDS` alone."""
    chosen = [kind in UNIT_KINDS for kind in scaling.kinds]
    columns = np.repeat(chosen, scaling.n_inputs)
    kinds = tuple(kind for kind in scaling.kinds if kind in UNIT_KINDS)
    center, scale, shift, unit = (
        array[columns] for array in (scaling.center, scaling.scale, scaling.shift, scaling.unit)
    )
    return Scaling(kinds, center, scale, shift, unit, scaling.quantiles[:, :0])


def with_moments(scaling: Scaling, mean: NDArray[np.float64], std: NDArray[np.float64]) -> Scaling:
    """Return the scaling with the columns of `UNIT_KINDS` brought to mean 0 and standard deviation 1, given the moments
    of the columns of `unit_part`."""
    columns = np.repeat([kind in UNIT_KINDS for kind in scaling.kinds], scaling.n_inputs)
    shift, unit = scaling.shift.copy(), scaling.unit.copy()
    shift[columns], unit[columns] = mean, np.where(std > SMALLEST_SPREAD, std, 1.0)
    return replace(scaling, shift=shift, unit=unit)


def leave_as_they_are(scaling: Scaling, columns: NDArray[np.bool_]) -> Scaling:
    """Return the scaling with some columns, shape (d,), left as they are (by an arcsinh kind: their arcsinh).

    The quantile scaling has its own curve for every column; of normal scores it is nearly a straight line.
    """
    fixed = np.tile(columns, len(scaling.kinds))
    center, scale, shift, unit = (
        np.where(fixed, value, array)
        for value, array in ((0.0, scaling.center), (1.0, scaling.scale), (0.0, scaling.shift), (1.0, scaling.unit))
    )
    return replace(scaling, center=center, scale=scale, shift=shift, unit=unit)


def scaled_columns(scaling: Scaling, rows: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return raw rows (b, d) as scaled float32 columns (S * d, b), contiguous.

    Every value depends on its own cell alone.
    """
    d = scaling.n_inputs
    columns = np.empty((len(scaling.center), len(rows)), dtype=np.float32)
    for s, kind in enumerate(scaling.kinds):
        part = slice(s * d, (s + 1) * d)
        if kind == "quantile":
            for column, values, quantiles in zip(columns[part], rows.T, scaling.quantiles, strict=True):
                column[:] = normal_score(values, quantiles)
            continue
        center, scale, shift, unit = (
            array[part, None] for array in (scaling.center, scaling.scale, scaling.shift, scaling.unit)
        )
        with np.errstate(over="ignore"):  # what overflows is clipped with the rest
            values = np.subtract(rows.T, center, order="C", dtype=np.float64)
            values /= scale
        if kind in ARCSINH_KINDS:
            values = (np.arcsinh(values.clip(-LARGEST_ARCSINH, LARGEST_ARCSINH)) - shift) / unit
        columns[part] = values.clip(-LARGEST_VALUE, LARGEST_VALUE)
    return columns


def normal_score(values: NDArray[np.floating], quantiles: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the normal score of each value: straight lines between the quantiles and the normal quantiles of their
    levels, the middle of a run for equal ones, the ends beyond them.

    Of q quantiles, the lowest and the highest stand for half a step each: levels stay within 0.5 / q and its
    complement, or every column's smallest and largest value would be an outlier.
    """
    knots, first, count = np.unique(quantiles, return_index=True, return_counts=True)
    levels = (first + 0.5 * (count - 1)) / max(1, len(quantiles) - 1)
    end = 0.5 / len(quantiles)
    normal = ndtri(np.clip(levels, end, 1.0 - end))
    if len(knots) == 1:
        return np.full(len(values), normal[0])
    x = np.clip(np.asarray(values, dtype=np.float64), knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    # The share of the gap, not its slope: a slope overflows where two quantiles are a denormal apart.
    share = (x - knots[left]) / (knots[left + 1] - knots[left])
    scores: NDArray[np.float64] = normal[left] + share * (normal[left + 1] - normal[left])
    return scores
