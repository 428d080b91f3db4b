"""Numbers that keep near a constant where another column has a certain value: no tip where payment is cash.

In: the cells of a sample. Out: relations of numbers without partners, under a condition.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Float64s, Indices
from .._kernels.relations import Cells
from .._model.relations import MAX_TERMS, SUM, UNLISTED
from .residuals import NEAR_FRACTION, Measured, Sizes, distance, measured, middle, sizes

MIN_CONDITION_ROWS, MIN_CONDITION_FRACTION, MAX_CONDITION_FRACTION = 50, 0.01, 0.95
"""A value can be a condition if at least `MIN_CONDITION_ROWS` rows have it, and if these are between the two fractions
of all rows."""
MAX_VARIANCE = 0.1
"""Under a condition, the variance of a number must be below this fraction of its variance over all rows, both with
outliers cut."""
CUT_IN_SPREADS = 8.0
"""Numbers farther than this many spreads from the middle are outliers, and are moved to that distance."""
MAX_CONDITIONS_TRIED, MAX_CONDITIONS = 128, 32
"""How many conditions are measured, and how many are kept: those under which a number varies least."""


class Scaled(NamedTuple):
    """A column of numbers, centered and scaled by its own spread."""

    numbers: Float64s
    """0 where missing."""
    spread: float


def under_conditions(
    cells: Cells, numbers: Sequence[int], values: Sequence[int], some: Indices, known: dict[int, Scaled]
) -> list[Measured]:
    """Return the numbers that keep near a constant where another column has a certain value. `known` are columns that
    were scaled already, over the rows `some`."""
    if not values:
        return []
    spread, scaled = {}, []
    for j in numbers:
        if j in cells.levels or cells.kind(j) == "time":
            continue
        own = known[j] if j in known else _scaled(cells.numbers(j)[some])
        if own is not None:
            spread[j] = own.spread
            scaled.append(own.numbers.clip(-CUT_IN_SPREADS, CUT_IN_SPREADS))
    if not spread:
        return []
    tried = sorted(_narrow(cells, list(spread), np.array(scaled), values, some))[:MAX_CONDITIONS_TRIED]
    found: dict[tuple[int, ...], Measured] = {}
    columns = {j: _column(cells.numbers(j), spread[j]) for j in {j for _, j, _, _ in tried}}
    for _, j, when, code in tried:
        rows = np.flatnonzero((cells.codes(when) == code) & ~np.isnan(cells.numbers(j)))
        if len(rows) < MIN_CONDITION_ROWS:
            continue
        # Another column may have a value in the same rows: one of them is enough.
        same = (j, len(rows), int(rows[0]), int(rows[-1]))
        if same not in found:
            one = _near_constant(cells, j, when, code, rows, columns[j])
            if one is not None:
                found[same] = one
    return sorted(found.values(), key=lambda one: -one.precision)[:MAX_CONDITIONS]


def _scaled(own: Float64s) -> Scaled | None:
    """Return a column, centered and scaled; None if it does not vary."""
    there = own[~np.isnan(own)]
    if not len(there):
        return None
    center = middle(there)
    spread = distance(there, NEAR_FRACTION, center) or float(there.std())  # most rows may have one value
    return Scaled(np.where(np.isnan(own), 0.0, (own - center) / spread), spread) if spread > 0.0 else None


def _narrow(
    cells: Cells, numbers: list[int], scaled: Float64s, values: Sequence[int], some: Indices
) -> Iterator[tuple[float, int, int, int]]:
    """Yield which number varies little under which condition, with its variance as a fraction of the whole."""
    variance = np.maximum(scaled.var(axis=1), 1e-300)
    for when in values:
        codes = cells.codes(when)[some]
        count = np.bincount(codes[codes >= 0])
        least = max(MIN_CONDITION_ROWS * len(some) / len(cells), MIN_CONDITION_FRACTION * len(codes), 2)
        tried = np.flatnonzero((count >= least) & (count <= MAX_CONDITION_FRACTION * len(codes)))
        if not len(tried):
            continue
        has = (codes == tried[:, None]).astype(np.float64)
        means, squares = (has @ part / count[tried][:, None] for part in (scaled.T, np.square(scaled).T))
        fractions = np.maximum(squares - np.square(means), 0.0) / variance
        for at, place in zip(*np.nonzero(fractions < MAX_VARIANCE), strict=True):
            if numbers[place] != when:
                yield round(float(fractions[at, place]), 9), numbers[place], when, int(tried[at])


class _Column(NamedTuple):
    """A column that may have several conditions."""

    known: Float64s
    """Its numbers that are not missing."""
    spread: float
    sizes: Sizes


def _column(numbers: Float64s, spread: float) -> _Column:
    known = numbers[~np.isnan(numbers)]
    return _Column(known, spread, sizes(known))


def _near_constant(cells: Cells, j: int, when: int, code: int, rows: Indices, column: _Column) -> Measured | None:
    own = cells.numbers(j)[rows]
    constant = middle(own)
    relation = {
        "target": j,
        "form": SUM,
        "when": when,
        "when_code": code,
        "partner": [-1] * MAX_TERMS,
        "partner_code": [UNLISTED] * MAX_TERMS,
        "weight": [0.0] * MAX_TERMS,
        "constant": constant,
    }
    return measured(relation, column.sizes, own - constant, column.known - constant, rows, column.spread)
