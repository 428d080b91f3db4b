"""The choice and the fit of the scaling.

In: statistics of the training columns. Out: a `Scaling`. Only training rows are looked at, and no labels. The paper
lists the choices (standard, robust, quantile) and the statistics that decide, but no thresholds; the constants below
are ours.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from .. import _kernels
from .._arrays import Bools, Float64s, Int64s
from .._model.scaling import ARCSINH_KINDS, N_QUANTILES, Scaling
from .._model.statistics import ColumnStatistics
from .._params import Parameters
from .._table.encoding import Encoding
from .training_rows import TrainingRows

UNIT_KINDS = ("arcsinh-standard",)
"""Scalings whose columns are brought to mean 0 and standard deviation 1 after the transformation."""

NORMAL_IQR = 1.349
"""The interquartile range of a normal column with standard deviation 1. An interquartile range divided by this is
comparable with a standard deviation."""

MIN_SPREAD = 1e-12
"""A standard deviation below this comes from rounding: the column is constant."""

MAX_SKEWNESS = 4.0
"""A column with a larger skewness is strongly skewed: a linear scaling would squeeze most of its values together. It is
twice the skewness of an exponential distribution."""

MIN_DISTINCT_FRACTION = 0.1
"""A column counts as continuous if at least this fraction of its values is distinct."""

MAX_MODE_FRACTION = 0.5
"""A column is mostly one value if a larger fraction of its rows has that value: a quantile scaling would blow up the
differences among the other rows."""

MAX_TAIL_IN_IQRS = 5.0
"""A column has no outlier that could distort its mean and standard deviation if all its values lie within this many
interquartile ranges of the median (6.7 standard deviations, in a normal column)."""

MIN_OUTLIER_FREE_FRACTION = 0.9
"""The choice is "standard" only if at least this fraction of the columns has no such outlier."""


def fit_scaling(rows: TrainingRows, encoding: Encoding, parameters: Parameters) -> tuple[Scaling, Float64s]:
    """Return the scaling of the training rows, and the medians of their columns.

    The statistics are asked for a second time only if "auto" chooses the quantile scaling. Only this scaling needs a
    thousand quantiles of each column, and most tables do without them. With `trim` and a sample,
    `fit_inner_scaling` takes moments of scaled columns of the inner rows, so they are left out here.
    """
    kinds = parameters.scalings
    n_quantiles = quantiles_for(kinds, len(rows.sample))
    statistics = rows.column_statistics(n_quantiles)
    if not kinds:
        kinds = (choose_preprocessing(statistics, ~encoding.is_indicator),)
        if quantiles_for(kinds, len(rows.sample)) > n_quantiles:
            statistics = rows.column_statistics(quantiles_for(kinds, len(rows.sample)))
    scaling = scaling_of(kinds, statistics)
    if rows.is_whole or not parameters.trim:
        scaling = _with_moments_of(rows, scaling)
    if encoding.is_indicator.any():
        scaling = leave_as_they_are(scaling, encoding.is_indicator)
    return scaling, statistics.median


def _with_moments_of(rows: TrainingRows, scaling: Scaling, columns: Bools | None = None) -> Scaling:
    """Return the scaling with the columns of `UNIT_KINDS` brought to unit spread: all, or some, shape (d,)."""
    n_kinds = sum(kind in UNIT_KINDS for kind in scaling.kinds)
    if not n_kinds:
        return scaling
    asked = None if columns is None else np.tile(columns, n_kinds)
    return with_moments(scaling, *rows.column_moments(unit_part(scaling), asked))


def fit_inner_scaling(scaling: Scaling, rows: TrainingRows, inner: Int64s, encoding: Encoding) -> Scaling:
    """Return the scaling with centre and spread of the inner rows of the sample only, given the scaling of all rows.

    Quantiles stay those of all rows, and so does everything of a column that is constant among the inner rows.
    """
    own, n_threads = rows.sample[inner], rows.n_threads
    statistics = _kernels.column_statistics(own, n_threads, 0)
    fitted = replace(scaling_of(scaling.kinds, statistics), quantiles=scaling.quantiles)
    if not set(scaling.kinds).isdisjoint(UNIT_KINDS):
        fitted = with_moments(fitted, *_kernels.column_moments(_kernels.Rows(own, unit_part(fitted), n_threads)))
    is_constant = statistics.value_range <= 0
    if not rows.is_whole and np.any(is_constant & ~encoding.is_indicator):
        scaling = leave_as_they_are(_with_moments_of(rows, scaling, is_constant), encoding.is_indicator)
    kept = np.tile(is_constant | encoding.is_indicator, len(scaling.kinds))
    names = ("center", "scale", "shift", "unit")
    return replace(fitted, **{name: np.where(kept, getattr(scaling, name), getattr(fitted, name)) for name in names})


def quantiles_for(kinds: Iterable[str], n_rows: int) -> int:
    """Return the number of quantiles per column that the scalings need."""
    return min(N_QUANTILES, n_rows) if "quantile" in kinds else 0


def choose_preprocessing(statistics: ColumnStatistics, scaled: Bools | None = None) -> str:
    """Return the name of the scaling for a table with these columns; all columns get the same scaling.

    It is "quantile" if most columns are strongly skewed and continuous, "standard" if hardly a column has outliers, and
    otherwise "robust", the safe default. Constant columns and columns that are not `scaled` do not count.
    """
    varying = statistics.std > 0
    if scaled is not None:
        varying &= scaled
    if not varying.any():
        return "standard"
    skewed = _median(np.abs(statistics.skewness[varying])) > MAX_SKEWNESS
    continuous = _median(statistics.distinct_fraction[varying]) >= MIN_DISTINCT_FRACTION
    mostly_one_value = _median(statistics.mode_fraction[varying]) > MAX_MODE_FRACTION
    if skewed and continuous and not mostly_one_value:
        return "quantile"
    if _quantile(statistics.tail_weight[varying], MIN_OUTLIER_FREE_FRACTION) <= MAX_TAIL_IN_IQRS:
        return "standard"
    return "robust"


def _median(values: Float64s) -> float:
    """Return the median of finite numbers. (`np.median` takes 0.1 ms, and a whole fit takes 5 ms.)"""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    return float(ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2.0)


def _quantile(values: Float64s, rank: float) -> float:
    """Return a quantile of finite numbers: that of `np.quantile`, to the bit, without its checks of arrays."""
    ordered = np.sort(values)
    place = (len(ordered) - 1) * rank
    low = int(place)
    below, above, part = ordered[low], ordered[min(low + 1, len(ordered) - 1)], place - low
    step = above - below
    return float(below + step * part if part < 0.5 else above - step * (1.0 - part))


def scaling_of(kinds: Sequence[str], statistics: ColumnStatistics) -> Scaling:
    """Return the scalings fitted to the statistics. A column without spread is centred, which makes it 0.

    A kind of `UNIT_KINDS` also needs the moments of its transformed values, which come later: see `with_moments`.
    """
    parts = [_center_and_scale(kind, statistics) for kind in kinds]
    center, scale = (np.concatenate(part) for part in zip(*parts, strict=True))
    quantiles = statistics.quantiles if "quantile" in kinds else statistics.quantiles[:, :0]
    zeros, ones = np.zeros_like(center), np.ones_like(center)
    return Scaling(tuple(kinds), center, np.where(scale > 0, scale, 1.0), zeros, ones, quantiles)


def _center_and_scale(kind: str, statistics: ColumnStatistics) -> tuple[Float64s, Float64s]:
    if kind == "standard":
        return statistics.mean, statistics.std
    if kind in ARCSINH_KINDS:
        normal_std = statistics.iqr / NORMAL_IQR
        return statistics.median, np.where(statistics.iqr > 0, normal_std, statistics.std)
    return statistics.median, np.where(statistics.iqr > 0, statistics.iqr, statistics.value_range)


def unit_part(scaling: Scaling) -> Scaling:
    """Return only those scalings that are of `UNIT_KINDS`."""
    chosen = [kind in UNIT_KINDS for kind in scaling.kinds]
    columns = np.repeat(chosen, scaling.n_inputs)
    kinds = tuple(kind for kind in scaling.kinds if kind in UNIT_KINDS)
    center, scale, shift, unit = (
        array[columns] for array in (scaling.center, scaling.scale, scaling.shift, scaling.unit)
    )
    return Scaling(kinds, center, scale, shift, unit, scaling.quantiles[:, :0])


def with_moments(scaling: Scaling, mean: Float64s, std: Float64s) -> Scaling:
    """Return the scaling with the columns of `UNIT_KINDS` brought to mean 0 and standard deviation 1, given the moments
    of the columns of `unit_part`."""
    columns = np.repeat([kind in UNIT_KINDS for kind in scaling.kinds], scaling.n_inputs)
    shift, unit = scaling.shift.copy(), scaling.unit.copy()
    shift[columns], unit[columns] = mean, np.where(std > MIN_SPREAD, std, 1.0)
    return replace(scaling, shift=shift, unit=unit)


def leave_as_they_are(scaling: Scaling, columns: Bools) -> Scaling:
    """Return the scaling with some columns, shape (d,), left as they are (an arcsinh kind takes their arcsinh).

    The quantile scaling still transforms them, but the curve of normal scores is nearly a straight line.
    """
    fixed = np.tile(columns, len(scaling.kinds))
    center, scale, shift, unit = (
        np.where(fixed, value, array)
        for value, array in ((0.0, scaling.center), (1.0, scaling.scale), (0.0, scaling.shift), (1.0, scaling.unit))
    )
    return replace(scaling, center=center, scale=scale, shift=shift, unit=unit)
