"""Residuals: how near the training rows keep to a relation of numbers, and how far off breaks it.

In: what a relation leaves open of each row. Out: a `Candidate`. The farthest hundredth of the rows may be errors, so it
does not count. The distances u and w that 90 % and 99 % of the rows keep give the tail, which is taken to fall to a
tenth over w - u. By it, the limit is where hardly any row is expected, over all rows and all relations of numbers.

If more rows than `MAX_BEYOND` are beyond this limit, the tail is heavier: it is then taken to fall to a tenth whenever
the distance grows by the factor w / u.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import _kernels
from .._arrays import Float64s, Floats, Indices
from .._model.relations import LOGARITHMS
from .candidates import MIN_LIFT, Candidate, may_be_kept

NEAR_FRACTION, FAR_FRACTION = 0.9, 0.99
"""The fractions of rows between whose distances the tail is measured."""
MAX_SPREAD = 0.5
"""A relation is kept if what it leaves open is at most this fraction of the column's own spread. Both are the distance
from the middle that 90 % of the rows keep."""
MIN_DECADE = 1.5
"""The tail falls to a tenth over no less than w / (this times the decimal logarithm of the number of rows): few rows
show little of it. Of 2,000 rows of a normal distribution, w - u is 0.36 w and this is 0.2 w."""
MAX_EXPECTED = 0.002
"""Rows of the sample that are expected beyond their limit, over all relations of numbers: a break is to be clear."""
CURVE_LIFT, CURVE_CAUTION = 50.0, 10.0
"""What is asked of a curve, whose units are themselves measured: a higher lift, and so many times fewer expected rows
beyond the limit."""
MIN_NOISY_ROWS = 1000
"""Rows that teach a relation without a condition that leaves something open: fewer do not show its tail."""
MAX_BEYOND = 0.003
"""Fraction of the rows beyond the first limit."""
MAX_LOG_WITHIN = 0.2
"""A product is kept if 99 % of the rows keep within this fraction of the column's spread: logarithms stretch small
numbers, and a looser product says little."""
SMALLEST_SPREAD, SMALLEST_DIGIT = 1e-6, 1e-9
"""Of the column's own spread, and of its typical size: what is nearer counts as equal."""
PROBED_EVERY, PROBE_SLACK = 11, 1.2
"""One of so many rows that decide tells first whether they keep near a relation at all, with some slack: most do not.
(A prime number: rows may come in turns, such as hours.)"""
USUAL = (0.005, 0.995)
"""Quantiles between which values are usual."""


class Measured(NamedTuple):
    """A relation of numbers whose limit is not yet known: it depends on how many there are."""

    precision: float
    """How much nearer the rows are than the column's own spread, as a decimal logarithm; a little less for each
    partner."""
    relation: dict[str, Any]
    rows: Indices
    """The rows that the relation speaks of ..."""
    rest: Float64s
    """... and what it leaves open of each."""
    unrelated: Float64s
    """The same if the column were independent of its partners."""
    near: float
    """The distance that 90 % of the rows keep, ..."""
    far: float
    """... and 99 %; both not smaller than what counts as equal."""
    reach: float
    """How far apart usual values of the column are."""


def at_place(values: Floats, place: int) -> float:
    """Return the value at this place in the order of the values."""
    return _kernels.values_at(values, [place])[0]


def in_order(values: Float64s) -> Indices:
    """Return the indices of the values in their order, along the last axis; equal ones stay in the order of the rows.
    (NumPy's stable sort takes several times as long.)"""
    order = np.argsort(values, axis=-1)
    ordered = np.take_along_axis(values, order, axis=-1)
    if np.isnan(ordered[..., -1:]).any():
        return np.argsort(values, axis=-1, kind="stable")
    is_next = ordered[..., 1:] != ordered[..., :-1]
    if is_next.all():
        return order
    n = values.shape[-1]
    first = np.zeros(values.shape, np.intp)
    np.cumsum(is_next, axis=-1, out=first[..., 1:])
    first *= n
    first += order
    first.sort(axis=-1)  # by value, then by row
    first %= n
    return first


def middle(values: Float64s) -> float:
    """Return the median, of two middle values the lower. (NumPy's takes several times as long.)"""
    return at_place(values, (len(values) - 1) // 2)


def distance(values: Floats, fraction: float, center: float = 0.0) -> float:
    """Return the distance from the center that this fraction of the rows keeps."""
    return _kernels.distances_at(values, center, [_place(len(values), fraction)])[0] if len(values) else 0.0


def _place(n: int, fraction: float) -> int:
    return min(n - 1, int(np.ceil(fraction * n)) - 1)


@lru_cache(maxsize=4)
def shuffled(n: int) -> Indices:
    """Return the indices of n rows in an order that has nothing to do with them, always the same."""
    return np.random.default_rng(0).permutation(n)


def distances(differences: Float64s) -> tuple[float, float]:
    """Return the distances from 0 that 90 % and 99 % of the rows keep."""
    n = len(differences)
    places = [_place(n, fraction) for fraction in (NEAR_FRACTION, FAR_FRACTION)]
    near, far = _kernels.distances_at(differences, 0.0, places) if n else (0.0, 0.0)
    return near, far


def distances_in_order(ordered: Float64s, columns: Sequence[int], is_log: bool) -> tuple[Float64s, Float64s, Float64s]:
    """Return the middle of some columns, and the distances from it that 90 % and 99 % of the rows keep. `ordered` are
    the sorted columns, shape (columns, rows). The k nearest stand side by side: of all such stretches, it is the one
    that reaches least far. So only both ends, and logarithms of these, are needed."""
    n = ordered.shape[1]
    n_near, n_far = (n - _place(n, fraction) for fraction in (NEAR_FRACTION, FAR_FRACTION))
    parts = ordered[columns, (n - 1) // 2, None], ordered[columns, :n_near], ordered[columns, n - n_near :]
    center, first, last = (np.log(part) for part in parts) if is_log else parts
    near, far = (
        np.maximum(center - first[:, :size], last[:, n_near - size :] - center).min(axis=1) for size in (n_near, n_far)
    )
    return center[:, 0], near, far


class Sizes(NamedTuple):
    """How large the values of a column are."""

    typical: float
    """The median of their sizes."""
    reach: float
    """How far apart usual values are."""


def sizes(values: Float64s) -> Sizes:
    """Return how large the values of a column are."""
    typical = _kernels.distances_at(values, 0.0, [(len(values) - 1) // 2])[0]
    low, high = _kernels.values_at(values, [int(fraction * (len(values) - 1)) for fraction in USUAL])
    return Sizes(typical, high - low)


def measured(
    relation: dict[str, Any], column: Sizes, rest: Float64s, unrelated: Float64s, rows: Indices, spread: float
) -> Measured | None:
    """Return the relation with how near the rows are, if they are near. `spread` is the column's own."""
    near, exact = distances(rest)
    if near > MAX_SPREAD * spread:
        return None
    smallest = max(SMALLEST_SPREAD * spread, SMALLEST_DIGIT * column.typical)
    near, within = max(near, smallest), max(exact, smallest)
    if not spread > 0.0 or near > MAX_SPREAD * spread or not 1e-190 < within < 1e190:
        return None
    if within > smallest and relation["when"] < 0 and len(rows) < MIN_NOISY_ROWS:
        return None
    if relation["form"] == LOGARITHMS and within > MAX_LOG_WITHIN * spread:
        return None
    precision = -float(np.log10(near / spread)) - 0.05 * sum(j >= 0 for j in relation["partner"])
    known = {**relation, "within": exact, "n_rows": len(rows)}
    return Measured(round(precision, 6), known, rows, rest, unrelated, near, within, column.reach)


def with_limits(found: list[Measured], n_rows: int) -> list[Candidate]:
    """Return the relations with their limits, without those that no usual value breaks: they say nothing."""
    found = [one for one in found if _limit(one, n_rows)[0] <= one.reach]  # fewer relations have narrower limits
    kept = []
    for one in found:
        lift, caution = (CURVE_LIFT, CURVE_CAUTION) if "knot" in one.relation else (MIN_LIFT, 1.0)
        limit, decade = _limit(one, int(caution * len(found) * n_rows))
        if limit > one.reach:
            continue
        beyond = np.flatnonzero(np.abs(one.rest) > limit)
        expected = len(one.rows) * (np.count_nonzero(np.abs(one.unrelated) > limit) / len(one.unrelated))
        if may_be_kept(expected, len(beyond), lift):
            relation = {**one.relation, "limit": limit, "decade": decade}
            decades = (np.abs(one.rest[beyond]) - limit) / decade
            kept.append(Candidate(expected, relation, one.rows[beyond], decades, lift))
    return kept


def _limit(one: Measured, n_tests: int) -> tuple[float, float]:
    """Return the distance beyond which hardly one of `n_tests` rows is expected, and over which distance the tail falls
    to a tenth there."""
    near, within, n_rows = one.near, one.far, len(one.rows)
    n_decades = max(0.0, float(np.log10(n_tests * (1.0 - FAR_FRACTION) / MAX_EXPECTED)))
    decade = max(within - near, within / (MIN_DECADE * float(np.log10(n_rows))))
    limit = within + decade * n_decades
    if np.count_nonzero(np.abs(one.rest) > limit) > max(1.0, MAX_BEYOND * n_rows):
        factor = 1.0 + decade / near
        limit = within * min(factor**n_decades, 1e50)
        decade = limit * (factor - 1.0)
    return limit, decade
