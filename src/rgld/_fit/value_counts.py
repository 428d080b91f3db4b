"""Counts of pairs of values: which pairs of columns are worth a closer look.

In: codes of columns of values. Out: pairs of columns with their counts. All columns of few values are counted in one
call of the core, and most of their pairs are told by the counts alone: this asks for no more than
`category_relations.py` asks for itself, so it changes nothing but the time. Pairs with a column of many values are
counted one by one.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .. import _kernels
from .._arrays import Bools, Int64s
from .candidates import MIN_LIFT

MAX_FEW_VALUES = 64
"""Columns with at most this many codes are counted together."""
MAX_PAIR_FRACTION = 0.002
"""Two values that occur together in a larger fraction of the rows are no relation: they are not kept apart."""
MIN_PAIR_LIFT = 50.0
"""Two values are kept apart if independent columns would have them together in this many times as many rows."""
MIN_SUPPORT, MIN_AGREEMENT = 3, 0.8
"""A value determines the value of another column if at least `MIN_SUPPORT` rows have it, and if at least
`MIN_AGREEMENT` of them have the same value in the other column."""


class ValueColumn(NamedTuple):
    """A column of values."""

    column: int
    codes: Int64s
    """0 is a missing number, -1 an unlisted value."""
    totals: Int64s
    """The rows of each code, from 0 on."""
    is_value: bool
    """Whether it holds values, not amounts: only values are kept apart."""


class PairCounts(NamedTuple):
    """The rows of each pair of values that occurs, of two columns, in the order of a, then b."""

    a: Int64s
    b: Int64s
    n_rows: Int64s


def worth_a_look(columns: Sequence[ValueColumn]) -> Iterator[tuple[ValueColumn, ValueColumn, PairCounts]]:
    """Yield the pairs of columns that may be related, in their order, with their counts."""
    few = {own.column: place for place, own in enumerate(c for c in columns if len(c.totals) < MAX_FEW_VALUES)}
    together = _Together([own for own in columns if own.column in few]) if len(few) > 1 else None
    for place, a in enumerate(columns):
        for b in columns[place + 1 :]:
            if together is None or a.column not in few or b.column not in few:
                yield a, b, count_pair(a.codes, b.codes, len(b.totals))
            elif together.is_worth_it[few[a.column], few[b.column]]:
                yield a, b, together.counts_of(few[a.column], few[b.column])


class _Together:
    """The counts of columns of few values."""

    def __init__(self, columns: Sequence[ValueColumn]) -> None:
        sizes = [len(own.totals) + 1 for own in columns]  # the first is for unlisted values
        codes = np.array([own.codes + 1 for own in columns], dtype=np.uint8)
        self.starts = np.cumsum([0, *sizes])
        self.counts = _kernels.count_pairs(codes, sizes)
        self.counts[self.starts[:-1]] = 0
        self.counts[:, self.starts[:-1]] = 0
        determines = self._may_determine()
        self.is_worth_it = determines | determines.T | self._may_never_meet(columns)

    def counts_of(self, a: int, b: int) -> PairCounts:
        """Return the counts of two columns."""
        starts = self.starts
        own = self.counts[starts[a] + 1 : starts[a + 1], starts[b] + 1 : starts[b + 1]]
        of_a, of_b = np.nonzero(own)
        return PairCounts(of_a, of_b, own[of_a, of_b].astype(np.int64))

    def _may_determine(self) -> Bools:
        """Return which columns (first index) may determine which."""
        starts, counts = self.starts[:-1], self.counts
        n_rows, n_agree = np.add.reduceat(counts, starts, axis=1), np.maximum.reduceat(counts, starts, axis=1)
        says = (n_rows >= MIN_SUPPORT) & (n_agree >= MIN_AGREEMENT * n_rows)
        covered = np.add.reduceat(np.where(says, n_rows, 0), starts, axis=0)
        n_broken = np.add.reduceat(np.where(says, n_rows - n_agree, 0), starts, axis=0)
        said = np.add.reduceat(counts * np.repeat(says, np.diff(self.starts), axis=1), starts, axis=0)
        most_frequent = np.maximum.reduceat(said, starts, axis=1)
        is_covered = 2 * covered >= np.add.reduceat(n_rows, starts, axis=0)
        may: Bools = is_covered & (covered - most_frequent >= MIN_LIFT * np.maximum(n_broken, 1))
        return may

    def _may_never_meet(self, columns: Sequence[ValueColumn]) -> Bools:
        """Return which pairs of columns may have values that never meet."""
        may = np.zeros((len(columns), len(columns)), bool)
        places = [place for place, own in enumerate(columns) if own.is_value]
        if len(places) > 1:
            n = len(columns[0].codes)
            of_values = np.concatenate([np.arange(self.starts[p], self.starts[p + 1]) for p in places])
            totals = np.concatenate([[0, *columns[p].totals] for p in places])
            met = self.counts[np.ix_(of_values, of_values)]
            is_rule = np.outer(totals, totals / n) >= 0.999 * MIN_PAIR_LIFT * np.maximum(met, 1)
            is_rule &= met <= MAX_PAIR_FRACTION * n
            starts = np.cumsum([0, *(len(columns[p].totals) + 1 for p in places)])[:-1]
            found = np.logical_or.reduceat(np.logical_or.reduceat(is_rule, starts, axis=0), starts, axis=1)
            may[np.ix_(places, places)] = found
        return may


def count_pair(a: Int64s, b: Int64s, n_b: int) -> PairCounts:
    """Return the counts of pairs of listed values. Unlisted values have -1."""
    joint = (a + 1) * (n_b + 1) + (b + 1)
    size = int(joint.max(initial=0)) + 1
    if size <= 8 * len(a) + 1024:
        every = np.bincount(joint, minlength=size)
        found = np.flatnonzero(every)
        count = every[found]
    else:
        found, count = np.unique(joint, return_counts=True)
    own_a, own_b = found // (n_b + 1) - 1, found % (n_b + 1) - 1
    listed = (own_a >= 0) & (own_b >= 0)
    return PairCounts(own_a[listed], own_b[listed], count[listed])
