"""Curves: a number beside another, where no sum or product keeps near: a short trip with the fare of a long one.

In: the cells of a sample, and how columns correlate. Out: relations of curves. The rows that decide are divided, in the
order of the partner, into groups of equal size. The median of each group is what is expected there, and the distances
of its 10 % and 90 % quantiles from the median are how far values usually are below and above it. Between groups all
three are interpolated. What a row leaves open is its distance from the expected value in these units, so that all
groups have the same tail, which is measured as that of other relations of numbers.
"""

from collections import Counter
from typing import Any

import numpy as np

from .._arrays import Float64s, Indices
from .._kernels.relations import Cells, beside_curve
from .._model.relations import N_KNOTS
from .candidates import evenly_spaced
from .residuals import (
    FAR_FRACTION,
    MAX_SPREAD,
    NEAR_FRACTION,
    Measured,
    distance,
    distances,
    in_order,
    middle,
    shuffled,
)

MIN_CORRELATION = 0.65
"""Of the column and its partner, or of their logarithms, over the inner rows."""
MAX_PARTNERS = 2
"""Of each column: those that correlate most."""
MAX_CURVES = 12
"""Curves that are looked at, the strongest correlations first."""
MIN_CURVE_ROWS, MAX_CURVE_ROWS = 200 * N_KNOTS, 4096
"""Rows that decide: fewer in a group say little about its units, more take time."""
PROBED_EVERY, PROBE_SLACK = 8, 1.2
"""One of so many rows that decide tells first whether they keep near the curve at all, with some slack: most do not."""
LOW_FRACTION, HIGH_FRACTION = 0.1, 0.9
"""Quantiles of a group between which values are usual."""
MIN_UNIT = 0.02
"""A unit is at least this fraction of the column's own spread: a group may have one value only."""


def curves(cells: Cells, correlations: dict[tuple[int, int], float]) -> list[Measured]:
    """Return the curves of pairs of columns that correlate, each pair given as (column, partner)."""
    best = sorted(correlations, key=lambda pair: (-round(correlations[pair], 6), pair))
    n_partners: Counter[int] = Counter()
    chosen: list[tuple[int, int]] = []
    for pair in best:
        if correlations[pair] >= MIN_CORRELATION and n_partners[pair[0]] < MAX_PARTNERS:
            n_partners[pair[0]] += 1
            chosen.append(pair)
    some = evenly_spaced(len(cells), MAX_CURVE_ROWS)
    found = (_curve(cells, j, partner, some) for j, partner in chosen[:MAX_CURVES])
    return [one for one in found if one is not None]


def _curve(cells: Cells, j: int, partner: int, some: Indices) -> Measured | None:
    values, beside = cells.numbers(j), cells.numbers(partner)
    known = ~np.isnan(values + beside)
    decide = some[known[some]]
    if len(decide) < MIN_CURVE_ROWS:
        return None
    y = values[decide]
    spread = distance(y - middle(y), NEAR_FRACTION)
    shape = _shape(y, beside[decide], MIN_UNIT * spread)
    if not 1e-150 < spread < 1e150 or shape is None:
        return None
    probe = decide[::PROBED_EVERY]
    apart = values[probe] - beside_curve(beside[probe], *shape).center
    if distance(apart, NEAR_FRACTION) > PROBE_SLACK * MAX_SPREAD * spread:
        return None
    rows = np.flatnonzero(known)
    own, at = values[rows], beside_curve(beside[rows], *shape)
    near_raw = distance(own - at.center, NEAR_FRACTION)
    if near_raw > MAX_SPREAD * spread:
        return None
    rest, unrelated = at.rest(own), at.rest(own[shuffled(len(own))])
    near, far = distances(rest)
    if not far > 0.0:
        return None
    relation: dict[str, Any] = {"target": j, "partner": partner, "n_rows": len(rows)}
    relation |= dict(zip(("knot", "center", "below", "above"), (part.tolist() for part in shape), strict=True))
    precision = -float(np.log10(max(near_raw, 1e-9 * spread) / spread))
    return Measured(round(precision, 6), relation, rows, rest, unrelated, near, far, distance(unrelated, FAR_FRACTION))


def _shape(y: Float64s, beside: Float64s, unit: float) -> tuple[Float64s, Float64s, Float64s, Float64s] | None:
    """Return knots, medians and units of the groups; None if too few values of the partner differ."""
    order = in_order(beside)
    stops = np.cumsum([len(group) for group in np.array_split(order, N_KNOTS)])
    starts = np.array([0, *stops[:-1]])
    knots = beside[order[(starts + stops - 1) // 2]]  # the middle of each group, of two the lower
    if (np.diff(knots) <= 0.0).any():
        return None
    low, center, high = np.array([_usual(np.sort(y[order[a:b]])) for a, b in zip(starts, stops, strict=True)]).T.copy()
    return knots, center, np.maximum(center - low, unit), np.maximum(high - center, unit)


def _usual(ordered: Float64s) -> Float64s:
    """Return the lowest usual value, the middle and the highest usual value."""
    return ordered[[int(f * (len(ordered) - 1)) for f in (LOW_FRACTION, 0.5, HIGH_FRACTION)]]
