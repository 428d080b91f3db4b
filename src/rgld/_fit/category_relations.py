"""Which value goes with which: values that determine others, and frequent values that never meet.

In: codes of the columns of values. Out: candidates of both kinds, from the counts of pairs of values.
"""

from collections.abc import Sequence

import numpy as np

from .._arrays import Int64s
from .._kernels.relations import Cells
from .._model.relations import MISSING, UNLISTED
from .candidates import Candidate, may_be_kept
from .value_counts import (
    MAX_PAIR_FRACTION,
    MIN_AGREEMENT,
    MIN_PAIR_LIFT,
    MIN_SUPPORT,
    PairCounts,
    ValueColumn,
    worth_a_look,
)

MAX_LEVELS = 32
"""A column of numbers with at most this many different values is also treated as a category."""
MAX_FLAG_LEVELS = 2
"""Numbers with more levels are amounts: that two of them never meet says little."""


def candidates(cells: Cells, columns: Sequence[int]) -> tuple[list[Candidate], list[Candidate]]:
    """Return the columns that determine others, and the pairs of values that never meet."""
    codes = {j: cells.codes(j).astype(np.int64) - MISSING for j in columns}  # unlisted values have -1
    totals = {j: np.bincount(own[own >= 0], minlength=1) for j, own in codes.items()}
    described = [
        ValueColumn(j, codes[j], totals[j], _are_values(cells, j))
        for j in columns
        if (totals[j] > 0).sum() >= 2 and totals[j].max() >= MIN_SUPPORT
    ]
    determined, pairs = [], []
    same: set[int] = set()
    for first, second, counts in worth_a_look(described):
        a, b = first.column, second.column
        found = [*_determined(a, b, counts, codes), *_determined(b, a, _swapped(counts), codes)]
        determined += found
        if len(found) == 2:
            same.add(b)  # each determines the other: what is said of a need not be said of b
        if not found and not {a, b} & same and first.is_value and second.is_value:
            pairs += _never_meeting(a, b, counts, totals, codes)
    return determined, pairs


def _are_values(cells: Cells, j: int) -> bool:
    """Tell whether a column holds values, not amounts: it is a category or a flag."""
    return len(cells.levels.get(j, ())) <= MAX_FLAG_LEVELS


def _swapped(counts: PairCounts) -> PairCounts:
    order = np.lexsort((counts.a, counts.b))
    return PairCounts(counts.b[order], counts.a[order], counts.n_rows[order])


def _determined(by: int, column: int, counts: PairCounts, codes: dict[int, Int64s]) -> list[Candidate]:
    """Return the relation if the values of `by` determine those of `column`."""
    starts = np.concatenate(([0], np.flatnonzero(counts.a[1:] != counts.a[:-1]) + 1))
    if len(starts) < 2:
        return []
    n_rows = np.add.reduceat(counts.n_rows, starts)
    n_agree = np.maximum.reduceat(counts.n_rows, starts)
    says = (n_rows >= MIN_SUPPORT) & (n_agree >= MIN_AGREEMENT * n_rows)
    covered, n_broken = int(n_rows[says].sum()), int((n_rows - n_agree)[says].sum())
    if 2 * covered < n_rows.sum() or says.sum() < 2 or not may_be_kept(covered, n_broken):
        return []
    is_said = np.repeat(says, np.diff(starts, append=len(counts.a)))
    most_frequent = np.bincount(counts.b[is_said], counts.n_rows[is_said]).max()
    expected = covered - most_frequent  # rows that differ from the most frequent value
    if not may_be_kept(expected, n_broken):
        return []
    by_code, said = counts.a[starts][says], _modes(counts, starts)[says]
    table = np.full(int(counts.a.max()) + 2, UNLISTED)  # the last place is that of unlisted values
    table[by_code] = said
    wanted = table[np.where(codes[by] < 0, len(table) - 1, np.minimum(codes[by], len(table) - 1))]
    broken = np.flatnonzero((wanted != UNLISTED) & (codes[column] != wanted))
    if not may_be_kept(expected, len(broken)):
        return []
    relation = {
        "by": by,
        "column": column,
        "n_rows": covered,
        "n_values": len(by_code),
        "by_code": by_code + MISSING,
        "expected_code": said + MISSING,
    }
    return [Candidate(float(expected), relation, broken)]


def _modes(counts: PairCounts, starts: Int64s) -> Int64s:
    """Return the most frequent b of each a; of several the first."""
    order = np.lexsort((counts.b, -counts.n_rows, counts.a))
    modes: Int64s = counts.b[order[starts]]
    return modes


def _never_meeting(
    a: int, b: int, counts: PairCounts, totals: dict[int, Int64s], codes: dict[int, Int64s]
) -> list[Candidate]:
    """Return the pairs of frequent values that hardly ever meet."""
    n = len(codes[a])
    least = MIN_PAIR_LIFT * n  # a rarer value meets no value often enough
    own = np.flatnonzero(totals[a] * totals[b].max() >= least)
    other = np.flatnonzero(totals[b] * totals[a].max() >= least)
    if not len(own) or not len(other):
        return []
    found = np.zeros((int(own.max()) + 1, int(other.max()) + 1), np.int64)
    inside = (counts.a <= own.max()) & (counts.b <= other.max())
    found[counts.a[inside], counts.b[inside]] = counts.n_rows[inside]
    expected = np.outer(totals[a][own], totals[b][other]) / n
    met = found[np.ix_(own, other)]
    is_rule = (expected >= MIN_PAIR_LIFT * np.maximum(met, 1)) & (met <= MAX_PAIR_FRACTION * n)
    relations = []
    for i, k in zip(*np.nonzero(is_rule), strict=True):
        mine = np.flatnonzero(counts.a == own[i])
        usual = mine[counts.n_rows[mine].argmax()]
        relation = {
            "first": a,
            "first_code": own[i] + MISSING,
            "second": b,
            "second_code": other[k] + MISSING,
            "usual_code": counts.b[usual] + MISSING,
            "usual_rows": counts.n_rows[usual],
            "n_rows": totals[a][own[i]],
        }
        broken = np.flatnonzero((codes[a] == own[i]) & (codes[b] == other[k]))
        relations.append(Candidate(float(expected[i, k]), relation, broken, lift=MIN_PAIR_LIFT))
    return relations
