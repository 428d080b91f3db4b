"""Orders: of two dates, two durations or two numbers, the first is hardly ever above the second, although their ranges
overlap. If the columns were independent, the first would be above the second in a fraction of the rows that follows
from each column alone: this is what the rows that break the order are compared with."""

from collections.abc import Iterator, Sequence

import numpy as np

from .._arrays import Float64s
from .._kernels.relations import Cells
from .candidates import Candidate, may_be_kept
from .deciding import Deciding

MIN_EXPECTED_FRACTION = {"time": 0.02}
ELSE_EXPECTED_FRACTION = 0.05
"""Of independent columns, the first is above the second in at least this fraction of the rows: their ranges overlap."""
MIN_ORDER_LIFT = {"time": 10.0, "duration": 30.0, "number": 150.0}
"""So many times as many rows must break the order of independent columns. Dates have one unit, and mostly an order
that someone could name; of two numbers neither is known."""
MAX_BROKEN_FRACTION = 0.002
"""An order that a larger fraction of the rows breaks is none."""
N_ORDER_QUANTILES = 9
"""Quantiles of two columns that must be in order too: a cheap first look at a pair, ..."""
FIRST_PROBED_ROWS, PROBED_ROWS = 64, 512
"""... and looks at so many rows: if they break an order too often, all rows do."""


def candidates(cells: Cells, deciding: Deciding) -> Iterator[Candidate]:
    """Yield the orders of pairs of columns."""
    kinds = {j: _unit(cells, j) for j in deciding.columns.tolist()}
    known = zip(kinds, deciding.ordered, deciding.n_known.tolist(), strict=True)
    present = {j: ordered[:n] for j, ordered, n in known if kinds[j] and n}
    for a, b in _in_order(cells, list(present), kinds, present):
        least, lift = MIN_EXPECTED_FRACTION.get(kinds[a], ELSE_EXPECTED_FRACTION), MIN_ORDER_LIFT[kinds[a]]
        low, high = cells.numbers(a), cells.numbers(b)
        broken = np.flatnonzero(low > high)
        if len(broken) > MAX_BROKEN_FRACTION * len(low):
            continue
        n_rows = int(np.sum(~np.isnan(low) & ~np.isnan(high)))
        fraction = fraction_above(present[a], present[b])
        expected, is_rare = fraction * n_rows, len(broken) <= MAX_BROKEN_FRACTION * n_rows
        if fraction >= least and is_rare and may_be_kept(expected, len(broken), lift):
            yield Candidate(expected, {"low": a, "high": b, "n_rows": n_rows}, broken, lift=lift)


def _in_order(
    cells: Cells, columns: Sequence[int], kinds: dict[int, str], present: dict[int, Float64s]
) -> Iterator[tuple[int, int]]:
    """Yield the pairs of columns that may be in order, by a first look at all pairs: their ranges overlap, their
    quantiles are in order, and few of the first rows break the order. `present` are the sorted numbers of each."""
    if len(columns) < 2:
        return
    probabilities = np.linspace(0.02, 0.98, N_ORDER_QUANTILES)
    quantiles = np.array([present[j][(probabilities * (len(present[j]) - 1)).astype(int)] for j in columns]).T
    lowest, highest = (np.array([present[j][end] for j in columns]) for end in (0, -1))
    kind = np.array([kinds[j] for j in columns])
    may = (kind[:, None] == kind) & (highest[:, None] > lowest)
    for own in quantiles:
        may &= own[:, None] <= own
    np.fill_diagonal(may, False)
    first = np.array([cells.numbers(j)[:PROBED_ROWS] for j in columns])
    very_first = first[:, :FIRST_PROBED_ROWS]
    may &= (very_first[:, None] > very_first).sum(axis=2, dtype=np.uint8) <= MAX_BROKEN_FRACTION * len(cells)
    for place in np.flatnonzero(may.any(axis=1)).tolist():
        a, others = columns[place], np.flatnonzero(may[place])
        # No more values of a are above one of b than are above the lowest of b.
        most = 1.0 - np.searchsorted(present[a], lowest[others], side="right") / len(present[a])
        others = others[most >= MIN_EXPECTED_FRACTION.get(kinds[a], ELSE_EXPECTED_FRACTION)]
        n_broken = np.count_nonzero(first[place] > first[others], axis=1)
        for other in others[n_broken <= MAX_BROKEN_FRACTION * len(cells)].tolist():
            yield a, columns[other]


def _unit(cells: Cells, j: int) -> str:
    """Return what the column's values can be compared with: "" if with nothing."""
    is_span = j >= len(cells.encoding.columns)
    return "" if is_span or cells.kind(j) == "boolean" or len(cells.levels.get(j, range(9))) <= 3 else cells.kind(j)


def fraction_above(a: Float64s, b: Float64s) -> float:
    """Return how often a value of a is above one of b if they are drawn independently; both are sorted."""
    return float(np.searchsorted(b, a, side="left").sum() / (len(a) * len(b)))
