"""Profiles: what a model remembers of each column's values, to tell later whether a table still looks like the training
table.

In: the training rows, or a uniform sample of them. Out: `Profiles`, a few arrays whose size does not depend on the
number of rows. What a category's values were is in its `Column`. A profile holds what is known of numbers: how many
values were missing or could not be read, and how many lay at or below each of some knots.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from .._arrays import Array, Float64s, Floats, Indices, Int32s, Int64s
from .columns import RawColumn
from .encoding import Column, Encoding, read_values
from .table import MatrixTable, Table

MAX_PROFILED_ROWS, MIN_PROFILED_ROWS = 4096, 1024
"""If sorting columns takes time of its own, a profile is made of at most this many rows, chosen at random; of fewer in
wide tables. A distribution is then known to about 2 %, in the widest tables 4 %. A test of some hundred new rows cannot
tell more, and the fit takes hardly longer. A fit of up to 32,768 rows of numbers without gaps has sorted its columns
for their statistics: their profiles are made of all rows."""
MAX_CELLS = 2**17
"""These rows have at most this many cells, unless they would be fewer than the second."""
MAX_KNOTS = 129
"""Knots of a column: values at even steps in rank, the smallest and the largest among them ..."""
MIN_KNOTS = 17
"""... and fewer in wide tables ..."""
MAX_ALL_KNOTS = 2**18
"""... so that all columns have at most this many, unless the table is wider still."""


class Profile(NamedTuple):
    """What is known of one column of numbers, times, durations or bools."""

    n_present: int
    n_missing: int
    """Rows without a value, not counting those whose value could not be read."""
    n_unread: int
    knots: Float64s
    """Values of the column, increasing."""
    counts: Int64s
    """For each knot, the number of rows with this value or a smaller one."""

    @property
    def n_rows(self) -> int:
        """Rows that the profile was made of."""
        return self.n_present + self.n_missing + self.n_unread

    def quantile(self, rank: float) -> float:
        """Return the value with this rank, in (0, 1); NaN if the column had no value."""
        if not len(self.knots):
            return np.nan
        place = int(np.searchsorted(self.counts, rank * self.n_present))
        return float(self.knots[min(place, len(self.knots) - 1)])


@dataclass(frozen=True, eq=False)
class Profiles:
    """The profiles of all columns; without any, in a model file of a version that did not keep them."""

    totals: Annotated[Int64s, Array("profiled_columns 3", 0, 2**40, is_optional=True, since=4)]
    """Rows with a value, without one, and with one that could not be read. Zeros for a category and a dropped
    column."""
    n_knots: Annotated[Int32s, Array("profiled_columns", 0, MAX_KNOTS, is_optional=True, since=4)]
    """Knots of each column."""
    knots: Annotated[Float64s, Array("profile_knots", is_optional=True, since=4)]
    """The knots of all columns, back to back."""
    counts: Annotated[Int64s, Array("profile_knots", 1, 2**40, is_optional=True, since=4)]
    """For each knot, the number of rows with this value or a smaller one."""

    @classmethod
    def none(cls) -> "Profiles":
        """Return what a model without profiles has."""
        return cls(np.zeros((0, 3), np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int64))

    @property
    def are_known(self) -> bool:
        """Whether there are any."""
        return len(self.totals) > 0

    @cached_property
    def _ends(self) -> Int64s:
        return np.cumsum(self.n_knots, dtype=np.int64)

    def __getitem__(self, j: int) -> Profile:
        """Return the profile of column j of the table."""
        own = slice(int(self._ends[j] - self.n_knots[j]), int(self._ends[j]))
        n_present, n_missing, n_unread = self.totals[j].tolist()
        return Profile(n_present, n_missing, n_unread, self.knots[own], self.counts[own])


ColumnKnots = Callable[[Floats, Indices], tuple[Float64s, Int64s]]
"""Returns of each column of a matrix the values at some places of its sorted values, and for each the number of values
that are not larger, shape (d, k); NaN counts as -inf."""


def profile_table(table: Table, encoding: Encoding, column_knots: ColumnKnots) -> Profiles:
    """Return the profiles of the columns of a table, read as the encoding says."""
    n_rows = int(np.clip(MAX_CELLS // table.n_columns, MIN_PROFILED_ROWS, MAX_PROFILED_ROWS))
    if len(table) > n_rows:
        table = table.take(np.sort(np.random.default_rng(len(table)).choice(len(table), n_rows, replace=False)))
    whole: dict[int, tuple[Float64s, Int64s]] = {}
    if isinstance(table, MatrixTable):
        found = column_knots(table.matrix, knot_places(len(table), table.n_columns))
        if encoding.is_plain:
            return whole_profiles(len(table), *found)
        whole = {j: _distinct(*own) for j, own in enumerate(zip(*found, strict=True)) if own[0][0] > -np.inf}
    totals = np.zeros((table.n_columns, 3), np.int64)
    n_knots = np.zeros(table.n_columns, np.int32)
    all_knots, all_counts = [np.empty(0)], [np.empty(0, np.int64)]
    for j, column in enumerate(encoding.columns):
        if column.kind in ("category", "dropped"):
            continue
        if j in whole:
            totals[j, 0] = len(table)
            knots, counts = whole[j]
        else:
            totals[j], knots, counts = _profile(table.column(j), column, max_knots(table.n_columns))
        n_knots[j] = len(knots)
        all_knots.append(knots)
        all_counts.append(counts)
    return Profiles(totals, n_knots, np.concatenate(all_knots), np.concatenate(all_counts))


def _profile(raw: RawColumn, column: Column, most: int) -> tuple[tuple[int, int, int], Float64s, Int64s]:
    """Return the profile of one column: its totals, knots and counts."""
    values = np.sort(read_values(column, raw))  # NaN comes last
    n_present = int(np.searchsorted(values, np.nan))
    n_missing = int(raw.missing.sum()) if n_present < len(values) else 0
    totals = n_present, n_missing, len(values) - n_present - n_missing
    return totals, *knots_of(values[:n_present], most)


def whole_profiles(n_rows: int, knots: Float64s, counts: Int64s) -> Profiles:
    """Return the profiles of columns of numbers without gaps, given the values at `knot_places` and their counts,
    shape (d, k)."""
    is_new = np.ones(knots.shape, np.bool_)
    is_new[:, 1:] = knots[:, :-1] < knots[:, 1:]
    totals = np.zeros((len(knots), 3), np.int64)
    totals[:, 0] = n_rows
    return Profiles(totals, is_new.sum(axis=1, dtype=np.int32), knots[is_new], counts[is_new])


def _distinct(knots: Float64s, counts: Int64s) -> tuple[Float64s, Int64s]:
    """Return the distinct ones of sorted knots, and their counts."""
    is_new = np.append(True, knots[1:] > knots[:-1])
    return knots[is_new], counts[is_new]


def max_knots(n_columns: int) -> int:
    """Return the largest number of knots of one column."""
    return int(np.clip(MAX_ALL_KNOTS // n_columns, MIN_KNOTS, MAX_KNOTS))


def knot_places(n_rows: int, n_columns: int) -> Indices:
    """Return the places of the knots among the sorted values of a column without gaps."""
    return _places(n_rows, max_knots(n_columns))


def _places(n: int, most: int) -> Indices:
    """Return the places of at most so many of n sorted values, evenly spread; the first and the last are among them."""
    places: Indices = np.linspace(0, n - 1, min(most, n)).round().astype(np.intp)
    return places


def knots_of(values: Float64s, most: int) -> tuple[Float64s, Int64s]:
    """Return knots of sorted values, and how many values each has at or below it."""
    if not len(values):
        return values, np.empty(0, np.int64)
    knots = values[_places(len(values), most)]
    knots = knots[np.append(True, knots[1:] > knots[:-1])]
    return knots, np.searchsorted(values, knots, side="right").astype(np.int64)
