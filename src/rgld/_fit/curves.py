"""Curves: a number beside another, where no sum or product keeps near: a short trip with the fare of a long one.

In: the cells of a sample, and how columns correlate. Out: relations of curves. The rows that decide are divided, in the
order of the partner, into groups of equal size. The median of each group is what is expected there, and the distances
of its 10 % and 90 % quantiles from the median are how far values usually are below and above it. Between groups all
three are interpolated. What a row leaves open is its distance from the expected value in these units, so that all
groups have the same tail, which is measured as that of other relations of numbers.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Float64s, Indices
from .._kernels.relations import Cells, beside_curve
from .._model.relations import N_KNOTS
from .candidates import evenly_spaced
from .residuals import (
    FAR_FRACTION,
    MAX_SPREAD,
    NEAR_FRACTION,
    PROBE_SLACK,
    PROBED_EVERY,
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
MAX_CURVES = 6
"""Curves that are looked at, the strongest correlations first."""
MIN_CURVE_ROWS, MAX_CURVE_ROWS = 200 * N_KNOTS, 4096
"""Rows that decide: fewer in a group say little about its units, more take time."""
LOW_FRACTION, HIGH_FRACTION = 0.1, 0.9
"""Quantiles of a group between which values are usual."""
MIN_UNIT = 0.02
"""A unit is at least this fraction of the column's own spread: a group may have one value only."""


class Correlations(NamedTuple):
    """How columns of numbers correlate: the larger of the correlations of the numbers and of their logarithms."""

    columns: Indices
    """Increasing."""
    sizes: Float64s
    """Without signs; 0 for columns that can have no curve."""

    def note(self, columns: Sequence[int], covariance: Float64s) -> None:
        """Add the correlations of some of the columns."""
        places = np.ix_(*[np.searchsorted(self.columns, columns)] * 2)
        spread = np.sqrt(np.diag(covariance))
        sizes = np.abs(covariance) / np.maximum(np.outer(spread, spread), 1e-300)
        np.fill_diagonal(sizes, 0.0)
        self.sizes[places] = np.fmax(self.sizes[places], sizes)

    def leave_out(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Leave out these pairs of columns."""
        for pair in pairs:
            a, b = np.searchsorted(self.columns, pair)
            if pair[1] in self.columns:
                self.sizes[a, b] = self.sizes[b, a] = 0.0

    def strongest(self) -> list[tuple[int, int]]:
        """Return the pairs (column, partner) that correlate most, of each column at most `MAX_PARTNERS`."""
        rounded = np.where(self.sizes >= MIN_CORRELATION, self.sizes.round(6), 0.0)
        partners = np.argsort(-rounded, axis=1, kind="stable")[:, :MAX_PARTNERS]
        own = np.repeat(np.arange(len(rounded)), partners.shape[1])
        sizes = rounded[own, partners.ravel()]
        order = np.lexsort((partners.ravel(), own, -sizes))[: np.count_nonzero(sizes)][:MAX_CURVES]
        return [(int(self.columns[own[i]]), int(self.columns[partners.ravel()[i]])) for i in order]


def curves(cells: Cells, correlations: Correlations) -> list[Measured]:
    """Return the curves of pairs of columns that correlate."""
    some = evenly_spaced(len(cells), MAX_CURVE_ROWS)
    orders: dict[int, Indices] = {}
    found = (_curve(cells, j, partner, some, orders) for j, partner in correlations.strongest())
    return [one for one in found if one is not None]


def _curve(cells: Cells, j: int, partner: int, some: Indices, orders: dict[int, Indices]) -> Measured | None:
    """Return the curve, if it is a strong one. `orders` keeps the order of partners, of which each may have several
    curves, where no cell is missing."""
    values, beside = cells.numbers(j), cells.numbers(partner)
    known = ~np.isnan(values + beside)
    decide = some[known[some]]
    if len(decide) < MIN_CURVE_ROWS:
        return None
    y, x = values[decide], beside[decide]
    if not _differ_enough(x):
        return None
    order = orders.get(partner) if len(decide) == len(some) else None
    if order is None:
        order = in_order(x)
        if len(decide) == len(some):
            orders[partner] = order
    spread = distance(y, NEAR_FRACTION, middle(y))
    if not 1e-150 < spread < 1e150:
        return None
    shape = _shape(y, x, order, MIN_UNIT * spread)
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


def _groups(n_rows: int) -> tuple[Indices, Indices]:
    """Return the size of each group of rows, and the place of its middle, of two the lower."""
    sizes = np.full(N_KNOTS, n_rows // N_KNOTS)
    sizes[: n_rows % N_KNOTS] += 1
    return sizes, np.cumsum(sizes) - sizes + (sizes - 1) // 2


def _differ_enough(beside: Float64s) -> bool:
    """Tell whether the middles of all groups differ."""
    knots = np.sort(beside)[_groups(len(beside))[1]]
    return bool((knots[1:] > knots[:-1]).all())


def _shape(y: Float64s, beside: Float64s, order: Indices, unit: float) -> tuple[Float64s, Float64s, Float64s, Float64s]:
    """Return knots, medians and units of the groups."""
    sizes, middles = _groups(len(y))
    groups = np.full((N_KNOTS, sizes[0]), np.inf)
    groups[np.arange(sizes[0]) < sizes[:, None]] = y[order]
    groups.sort(axis=1)
    places = [(fraction * (sizes - 1)).astype(np.intp) for fraction in (LOW_FRACTION, 0.5, HIGH_FRACTION)]
    low, center, high = (groups[np.arange(N_KNOTS), place] for place in places)
    return beside[order[middles]], center, np.maximum(center - low, unit), np.maximum(high - center, unit)
