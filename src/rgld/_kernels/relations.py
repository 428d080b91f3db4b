"""Relation scores: how clearly a row breaks a relation.

In: the cells of rows, the frozen relations. Out: the evidence of each row, and the relation score made of it. Every
operation is elementwise along the rows, so a row gets the same bits in any block of rows.

The evidence of a broken relation is its strength. A relation of numbers, r = x - constant - sum of weight * partner, is
broken if |r| > limit; a row that is little beyond has less evidence, (|r| - limit) / decade.

A row's evidence is the largest over its relations. Its p-value is the fraction of the training rows with at least that
evidence. The relation score is 1 - p, and 0 for a row that breaks no relation.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Float64s, Floats, Indices, Int32s, Int64s
from .._model.relations import (
    GIVEN,
    LARGEST_CELL,
    MAX_TERMS,
    MISSING,
    PRODUCT,
    SUM,
    UNLISTED,
    Relations,
)
from .._table.columns import as_strings, without_values
from .._table.encoding import Encoding, read_values
from .._table.table import Table

MAX_LOG_FACTOR = 240.0
"""Of a factor between a number and a product: beyond, one is as far off as the other."""
RELATED_ROWS = 2**14
"""Rows that are related together: their cells of some columns fit into the cache."""


class Cells:
    """The cells of a table as relations see them: numbers, and codes of values; each column is read when first asked
    for, so that columns without relations cost nothing."""

    def __init__(
        self,
        table: Table,
        encoding: Encoding,
        levels: dict[int, Float64s],
        spans: Sequence[tuple[int, int]] = (),
        matrix: Floats | None = None,
    ) -> None:
        """Take the rows as they were read and, if they were encoded already, the encoded matrix."""
        self.encoding = encoding
        self.levels = levels
        self.spans = list(spans)
        self._table = table
        self._matrix = matrix
        self._numbers: dict[int, Float64s] = {}
        self._codes: dict[int, Int32s] = {}
        self._ranges: dict[int, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._table)

    def read_numbers(self, n_columns: int) -> None:
        """Read the first columns at once if all are numbers without names: faster than one by one."""
        numbers = self._table.plain_numbers(n_columns)
        if numbers is not None:
            lows, highs = numbers.min(axis=1, initial=LARGEST_CELL), numbers.max(axis=1, initial=-LARGEST_CELL)
            if not (lows.min(initial=0.0) >= -LARGEST_CELL and highs.max(initial=0.0) <= LARGEST_CELL):  # also for NaN
                np.clip(numbers, -LARGEST_CELL, LARGEST_CELL, out=numbers)
            else:
                self._ranges = dict(enumerate(zip(lows.tolist(), highs.tolist(), strict=True)))
            self._numbers |= enumerate(numbers)

    def range_of(self, j: int) -> tuple[float, float]:
        """Return the lowest and the highest number of a column; NaN if one is missing."""
        if j not in self._ranges:
            self._ranges[j] = float(self.numbers(j).min()), float(self.numbers(j).max())
        return self._ranges[j]

    def numbers(self, j: int) -> Float64s:
        """Return the numbers of a column, dates and durations in seconds, NaN where missing."""
        if j not in self._numbers:
            values = np.ascontiguousarray(self._read(j), dtype=np.float64)
            self._numbers[j] = np.clip(values, -LARGEST_CELL, LARGEST_CELL)
        return self._numbers[j]

    def kind(self, j: int) -> str:
        """Return the kind of a column; the time between two dates is a duration."""
        columns = self.encoding.columns
        return columns[j].kind if j < len(columns) else "duration"

    def _read(self, j: int) -> Floats:
        if j >= len(self.encoding.columns):
            begin, end = self.spans[j - len(self.encoding.columns)]
            return self.numbers(end) - self.numbers(begin)
        column, raw = self.encoding.columns[j], self._table.column(j)
        if self._matrix is None or not (raw.is_string and column.has_gaps) or column.date_knots:
            return read_values(column, raw)
        # Reading strings is slow, and was done: the last encoded column of this one tells which values are missing.
        start = self.encoding.starts[j]
        missing = self._matrix[:, start + len(column.parts) - 1] > 0.0
        return np.where(missing, np.nan, self._matrix[:, start])

    def codes(self, j: int) -> Int32s:
        """Return the codes of a column of categories, or of numbers that have levels. Other numbers are `GIVEN` or
        missing."""
        if j not in self._codes:
            if j in self.levels:
                self._codes[j] = codes_of_levels(self.numbers(j), self.levels[j])
            elif self.kind(j) == "category":
                self._codes[j] = self._places(j)
            else:
                self._codes[j] = np.where(np.isnan(self.numbers(j)), MISSING, GIVEN).astype(np.int32)
        return self._codes[j]

    def text(self, j: int, row: int) -> str:
        """Return a cell of a column of categories as it was read."""
        own, strings = as_strings(
            without_values(self._table.column(j, np.array([row])), self.encoding.columns[j].na_values)
        )
        return strings[own[0]] if own[0] >= 0 else ""

    def _places(self, j: int) -> Int32s:
        column = self.encoding.columns[j]
        own, strings = as_strings(without_values(self._table.column(j), column.na_values))
        places = np.array([*(column.place(string) for string in strings), column.place("")], dtype=np.int32)
        codes: Int32s = np.where(places < 0, np.int32(UNLISTED), places)[own]
        return codes


def cells_of(relations: Relations, encoding: Encoding, table: Table, matrix: Floats | None) -> Cells:
    """Return the cells of rows as they were read and, if they were, encoded."""
    spans = zip(relations.spans.begin.tolist(), relations.spans.end.tolist(), strict=True)
    return Cells(table, encoding, relations.levels.by_column, tuple(spans), matrix)


def codes_of_levels(numbers: Float64s, levels: Float64s) -> Int32s:
    """Return the place of each number among the levels, `UNLISTED` if it is none of them, `MISSING` for NaN."""
    if len(levels) == 2:  # a quarter of the time of `searchsorted`
        place = (numbers > levels[0]).astype(np.intp)
    else:
        place = np.searchsorted(levels, numbers).clip(max=len(levels) - 1)
    codes = np.where(levels[place] == numbers, place, UNLISTED)
    return np.where(np.isnan(numbers), MISSING, codes).astype(np.int32)


class BrokenRows(NamedTuple):
    """Which of some rows break one relation."""

    kind: str
    """"number", "curve", "order", "pair" or "determined"."""
    place: int
    """The relation's place among those of its kind."""
    rows: Indices
    evidence: Float64s
    """Of these rows."""


def broken_rows(relations: Relations, cells: Cells, rows: slice) -> Iterator[BrokenRows]:
    """Yield, for each relation that some of the rows break, which rows they are, counted from the first of `rows`."""
    numbers = relations.numbers
    for i in range(len(numbers.target)):
        found, evidence = number_evidence(relations, i, cells, rows)
        if len(found):
            yield BrokenRows("number", i, found, evidence)
    curves = relations.curves
    for i in range(len(curves.target)):
        size = np.abs(curve_residual(relations, i, cells, rows))
        found, evidence = _beyond(size, curves.limit[i], curves.decade[i], curves.strength[i])
        if len(found):
            yield BrokenRows("curve", i, found, evidence)
    orders = relations.orders
    for i in range(len(orders.low)):
        low, high = (cells.numbers(int(j))[rows] for j in (orders.low[i], orders.high[i]))
        yield from _broken("order", i, low > high, orders.strength)
    pairs = relations.pairs
    for i in range(len(pairs.first)):
        meets = cells.codes(int(pairs.first[i]))[rows] == pairs.first_code[i]
        meets &= cells.codes(int(pairs.second[i]))[rows] == pairs.second_code[i]
        yield from _broken("pair", i, meets, pairs.strength)
    determined = relations.determined
    for i in range(len(determined.by)):
        expected = expected_codes(relations, i, cells.codes(int(determined.by[i]))[rows])
        differs = (expected != UNLISTED) & (cells.codes(int(determined.column[i]))[rows] != expected)
        yield from _broken("determined", i, differs, determined.strength)


def _broken(kind: str, i: int, breaks: Bools, strength: Float64s) -> Iterator[BrokenRows]:
    rows = np.flatnonzero(breaks)
    if len(rows):
        yield BrokenRows(kind, i, rows, np.full(len(rows), strength[i]))


def number_evidence(relations: Relations, i: int, cells: Cells, rows: slice) -> tuple[Indices, Float64s]:
    """Return which rows break a relation of numbers, and their evidence."""
    numbers = relations.numbers
    size = np.abs(residual(relations, i, cells, rows))
    return _beyond(size, numbers.limit[i], numbers.decade[i], numbers.strength[i])


def _beyond(size: Float64s, limit: float, decade: float, strength: float) -> tuple[Indices, Float64s]:
    found = np.flatnonzero(size > limit)  # false for NaN: a row with a missing cell breaks nothing
    if not len(found):
        return found, np.empty(0)
    with np.errstate(over="ignore"):  # infinitely far is as far as the strength
        evidence = (size[found] - limit) / decade
    return found, np.minimum(evidence, strength)


def curve_residual(relations: Relations, i: int, cells: Cells, rows: slice, is_expected: bool = False) -> Float64s:
    """Return how far each row is from a curve, in the curve's units, or the value that is expected."""
    curves = relations.curves
    values, beside = (cells.numbers(int(j))[rows] for j in (curves.target[i], curves.partner[i]))
    at = beside_curve(beside, curves.knot[i], curves.center[i], curves.below[i], curves.above[i])
    return at.center if is_expected else at.rest(values)


class BesideCurve(NamedTuple):
    """What a curve says beside each of some numbers."""

    center: Float64s
    below: Float64s
    above: Float64s

    def rest(self, values: Float64s) -> Float64s:
        """Return (x - center) / above, of values below the center / below."""
        apart = values - self.center
        rest: Float64s = apart / np.where(apart < 0.0, self.below, self.above)
        return rest


def beside_curve(beside: Float64s, knot: Float64s, center: Float64s, below: Float64s, above: Float64s) -> BesideCurve:
    """Return center, below and above of a curve, interpolated at these numbers."""
    place = np.zeros(len(beside), np.int8)
    for own in knot[1:-1]:  # a quarter of the time of `searchsorted`
        place += (beside > own).view(np.int8)
    share = ((beside - knot.take(place)) / np.diff(knot).take(place)).clip(0.0, 1.0)
    return BesideCurve(*(own.take(place) + share * np.diff(own).take(place) for own in (center, below, above)))


def residual(relations: Relations, i: int, cells: Cells, rows: slice) -> Float64s:
    """Return x - constant - sum of weight * partner; NaN where a cell is missing or the condition does not hold."""
    numbers = relations.numbers
    form = int(numbers.form[i])
    is_log = form != SUM
    values = cells.numbers(int(numbers.target[i]))[rows]
    rest: Float64s = in_unit(values, is_log) - numbers.constant[i]
    for t in range(MAX_TERMS):
        j, code = int(numbers.partner[i, t]), int(numbers.partner_code[i, t])
        if j < 0:
            break
        if code == UNLISTED:
            rest -= numbers.weight[i, t] * in_unit(cells.numbers(j)[rows], is_log)
        else:
            rest[cells.codes(j)[rows] == code] -= numbers.weight[i, t]
    if numbers.when[i] >= 0:
        rest[cells.codes(int(numbers.when[i]))[rows] != numbers.when_code[i]] = np.nan
    return beside_product(values, rest) if form == PRODUCT else rest


def beside_product(values: Float64s, logarithm_rest: Float64s) -> Float64s:
    """Return how far values are from a product, given the difference of their logarithms."""
    difference: Float64s = values * -np.expm1(np.clip(-logarithm_rest, -MAX_LOG_FACTOR, MAX_LOG_FACTOR))
    return difference


def in_unit(values: Float64s, is_log: bool) -> Float64s:
    """Return the values as they are, or their logarithms: NaN for numbers that have none."""
    if not is_log:
        return values
    logarithms = np.full(values.shape, np.nan)
    np.log(values, out=logarithms, where=values > 0.0)
    return logarithms


def expected_codes(relations: Relations, i: int, codes: Int32s) -> Int32s:
    """Return what is expected beside each code of the determining column; `UNLISTED` where nothing is."""
    determined = relations.determined
    stop = int(determined.n_values[: i + 1].sum())
    own = slice(stop - int(determined.n_values[i]), stop)
    known = determined.by_code[own]
    place = np.searchsorted(known, codes).clip(max=len(known) - 1)
    expected: Int32s = np.where(known[place] == codes, determined.expected_code[own][place], np.int32(UNLISTED))
    return expected


def n_broken_rows(relations: Relations, cells: Cells) -> Int64s:
    """Return how many rows break each relation: numbers first, then curves, orders, pairs, determined."""
    parts = (relations.numbers, relations.curves, relations.orders, relations.pairs)
    sizes = [0, *(len(part.n_rows) for part in parts)]
    first = dict(zip(("number", "curve", "order", "pair", "determined"), np.cumsum(sizes).tolist(), strict=True))
    counts = np.zeros(len(relations), np.int64)
    for start in range(0, len(cells), RELATED_ROWS):
        for broken in broken_rows(relations, cells, slice(start, start + RELATED_ROWS)):
            counts[first[broken.kind] + broken.place] += len(broken.rows)
    return counts


def evidence_of(relations: Relations, cells: Cells) -> Float64s:
    """Return each row's largest evidence, shape (n,); 0 where a row breaks no relation."""
    evidence = np.zeros(len(cells))
    for start in range(0, len(cells), RELATED_ROWS):
        for broken in broken_rows(relations, cells, slice(start, start + RELATED_ROWS)):
            rows = start + broken.rows
            evidence[rows] = np.maximum(evidence[rows], broken.evidence)
    return evidence


def relation_score(relations: Relations, cells: Cells) -> Float64s:
    """Return the relation score of each row, in [0, 1); 0 for a row that breaks no relation."""
    evidence = evidence_of(relations, cells)
    found = np.flatnonzero(evidence)
    score = np.zeros(len(cells))
    score[found] = 1.0 - p_value(relations.evidence.of_rows, evidence[found], relations.n_rows)
    return score


def p_value(training: Float64s, evidence: Float64s, n_rows: int) -> Float64s:
    """Return the fraction of the training rows with at least this evidence, the row itself counted among them. Beyond
    all of them it falls slowly: it keeps the order, and claims little that no row has shown."""
    n_above = len(training) - np.searchsorted(training, evidence, side="left")
    beyond = np.maximum(evidence - (training[-1] if len(training) else 0.0), 0.0)
    p_values: Float64s = (1.0 + n_above) / (n_rows + 1.0) / (1.0 + beyond)
    return p_values
