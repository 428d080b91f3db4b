"""Scaling: columns in any unit become comparable float32 numbers.

In: encoded rows. Out: scaled columns. A `Scaling` is part of the frozen model; `_fit/scaling.py` fits it.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from .._arrays import Float32s, Float64s, Floats, normal_quantiles
from .fields import Array

LARGEST_VALUE = 1e9
"""Scaled values are clipped here, so that no float32 sum, square or angle of thousands of such values overflows."""

LARGEST_RAW_VALUE = np.finfo(np.float64).max / 2
"""Values are clipped here before statistics are computed, so that the range of a column is finite."""

SMALLEST_FLOAT = float(np.finfo(np.float64).smallest_subnormal)
"""The smallest positive float."""

N_QUANTILES = 1000
"""Knots of the quantile transformation per column (scikit-learn's default for `QuantileTransformer`)."""

ARCSINH_KINDS = ("arcsinh", "arcsinh-standard")
"""Scalings that are linear in the middle of a column and logarithmic in its tails: an outlier stays one, but does not
dominate its column."""
LARGEST_ARCSINH = 1e18
"""Robust z-scores are clipped here; from here on their arcsinh hardly grows."""


@dataclass(frozen=True, eq=False)
class Scaling:
    """A fitted transformation of the columns: S scalings of the d encoded columns side by side, S * d scaled columns.

    Scaled column s * d + j is encoded column j in scaling s. A view looks at columns of one scaling.
    """

    kinds: tuple[str, ...]
    """S names of `PREPROCESSINGS`."""
    center: Annotated[Float64s, Array("scaled_columns")]
    """Scaled values are (x - center) / scale; for the arcsinh kinds, (arcsinh((x - center) / scale) - shift) / unit."""
    scale: Annotated[Float64s, Array("scaled_columns", SMALLEST_FLOAT)]
    shift: Annotated[Float64s, Array("scaled_columns", -1e3, 1e3, since=2, before=0.0)]
    unit: Annotated[Float64s, Array("scaled_columns", 1e-12, 1e3, since=2, before=1.0)]
    quantiles: Annotated[Float64s, Array("columns quantiles", -LARGEST_RAW_VALUE, LARGEST_RAW_VALUE, is_sorted=True)]
    """Quantiles of the encoded columns, if one of the kinds is "quantile"."""

    @property
    def n_inputs(self) -> int:
        """d, the number of encoded columns."""
        return len(self.center) // len(self.kinds)


def scaled_columns(scaling: Scaling, rows: Floats) -> Float32s:
    """Return encoded rows (b, d) as scaled float32 columns (S * d, b), contiguous.

    A scaled value depends on its own cell only.
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
        with np.errstate(over="ignore"):  # overflows become infinite, and are clipped below
            values = np.subtract(rows.T, center, order="C", dtype=np.float64)
            values /= scale
        if kind in ARCSINH_KINDS:
            values = (np.arcsinh(values.clip(-LARGEST_ARCSINH, LARGEST_ARCSINH)) - shift) / unit
        columns[part] = values.clip(-LARGEST_VALUE, LARGEST_VALUE)
    return columns


def normal_score(values: Floats, quantiles: Float64s) -> Float64s:
    """Return the normal score of each value: each quantile of the column is mapped to the normal quantile of the same
    level, with straight lines between them.

    Equal quantiles have the level of their middle. Values outside the quantiles count as the nearest one. With q
    quantiles, levels are clipped to 0.5 / q and 1 - 0.5 / q: otherwise the smallest and the largest value of every
    column would be outliers.
    """
    knots, first, count = np.unique(quantiles, return_index=True, return_counts=True)
    levels = (first + 0.5 * (count - 1)) / max(1, len(quantiles) - 1)
    end = 0.5 / len(quantiles)
    normal = normal_quantiles(np.clip(levels, end, 1.0 - end))
    if len(knots) == 1:
        return np.full(len(values), normal[0])
    x = np.clip(np.asarray(values, dtype=np.float64), knots[0], knots[-1])
    left = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    # A fraction of the distance between two quantiles, not a slope: if they are a denormal apart, a slope overflows.
    fraction = (x - knots[left]) / (knots[left + 1] - knots[left])
    scores: Float64s = normal[left] + fraction * (normal[left + 1] - normal[left])
    return scores
