"""Relations: which of them are learned, from a sample of the training rows.

In: the sample as it was read, and its encoding. Out: `Relations`, or None if there are none. The sample of a table of
up to 32,768 rows is the table itself; of a longer table it is the same wherever the table is fitted, and so are the
relations.

A relation is kept if it is strong, and if few rows break it. They are taken in the order of their strength, until more
than the fraction `MAX_BROKEN` of the rows break one. For this order, the strength of a relation is taken without one of
the rows that break it: as it would be for a new row. So a list of broken relations is short, on the training table and
on new rows, however many columns there are.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .._arrays import Float64s, Floats
from .._kernels.relations import Cells
from .._model.relations import (
    MAX_RELATIONS,
    MAX_SPANS,
    NUMBER_KINDS,
    CurveRelations,
    DeterminedRelations,
    Levels,
    NumberRelations,
    OrderRelations,
    PairRelations,
    Relations,
    Spans,
    TrainingEvidence,
    filled,
)
from .._table.encoding import Encoding
from .._table.table import Table
from . import category_relations, number_relations, order_relations
from .candidates import Candidate
from .category_relations import MAX_LEVELS
from .deciding import deciding

MIN_RELATED_ROWS = 50
"""Fewer rows teach no relation: any two columns fit each other."""
MAX_BROKEN = 0.01
"""At most this fraction of the rows may break any relation ..."""
MAX_BROKEN_EACH = 0.003
"""... and at most this fraction any single one."""
FEW_BROKEN_ROWS = 5
"""In short tables, this many rows may break relations, even if they are a larger fraction."""
MAX_RELATED_NUMBERS, MAX_RELATED_VALUES = 48, 24
"""Columns of numbers, and columns of values, that enter: bounds the time for wide tables."""
CHOOSING_ROWS, CHOOSING_COLUMNS = 256, 1024
"""Of a wide table, the columns of numbers that enter are those with the strongest correlation to another column,
computed on `CHOOSING_ROWS` rows, evenly spaced. Only the first `CHOOSING_COLUMNS` columns are considered."""
FIRST_ROWS = 256
"""Rows that tell first whether a column has few different numbers."""


class Columns(NamedTuple):
    """The columns that enter."""

    numbers: Sequence[int]
    """Numbers, dates and durations that vary."""
    values: Sequence[int]
    """Categories, numbers with levels, and columns in which values are missing."""


class FittedRelations(NamedTuple):
    """The relations of a sample, and its cells, which were read already."""

    relations: Relations
    cells: Cells


Kind = TypeVar("Kind", NumberRelations, CurveRelations, OrderRelations, PairRelations, DeterminedRelations)


def fit_relations(table: Table, encoding: Encoding, matrix: Floats | None = None) -> FittedRelations | None:
    """Return the relations of a sample; None if there are none. `matrix` holds the encoded rows, if they are known."""
    if len(table) < MIN_RELATED_ROWS:
        return None
    cells = Cells(table, encoding, {}, matrix=matrix)
    cells.read_numbers(CHOOSING_COLUMNS)
    cells.spans = _spans(cells)
    columns = _entering(cells)
    levels = cells.levels
    decide = deciding(cells, columns.numbers)
    numbers, curves = number_relations.candidates(cells, decide, columns.values)
    orders = order_relations.candidates(cells, decide)
    determined, pairs = category_relations.candidates(cells, columns.values)
    kinds = (NumberRelations, OrderRelations, DeterminedRelations, PairRelations, CurveRelations)
    kept, evidence = _kept(list(zip(kinds, (numbers, orders, determined, pairs, curves), strict=True)), len(table))
    if not any(kept.values()):
        return None
    used = _used_levels(levels, *kept.values())
    relations = Relations(
        _joined(NumberRelations, kept),
        _joined(CurveRelations, kept),
        _joined(OrderRelations, kept),
        _joined(PairRelations, kept),
        _joined(DeterminedRelations, kept),
        Levels(
            np.repeat(np.array(list(used), dtype=np.int32), [len(own) for own in used.values()]),
            np.concatenate([*used.values(), np.empty(0)]),
        ),
        filled(Spans, {"begin": [begin for begin, _ in cells.spans], "end": [end for _, end in cells.spans]}),
        TrainingEvidence(evidence),
        len(table),
    )
    return FittedRelations(relations, cells)


def _spans(cells: Cells) -> list[tuple[int, int]]:
    """Return the pairs of dates of which one is hardly ever before the other, as (begin, end)."""
    times = [j for j, column in enumerate(cells.encoding.columns[:CHOOSING_COLUMNS]) if column.kind == "time"]
    found: list[tuple[int, int]] = []
    for place, a in enumerate(times):
        for b in times[place + 1 :]:
            apart = cells.numbers(b) - cells.numbers(a)
            n = max(1, int(np.sum(~np.isnan(apart))))
            for begin, end, is_before in ((a, b, apart < 0), (b, a, apart > 0)):
                if len(found) < MAX_SPANS and is_before.sum() <= MAX_BROKEN_EACH * n and (apart != 0).any():
                    found.append((begin, end))
    return found


def _entering(cells: Cells) -> Columns:
    """Return the columns that enter, of a wide table not all, and note their levels."""
    described = list(enumerate(cells.encoding.columns[:CHOOSING_COLUMNS]))
    numbers = [j for j, column in described if column.kind in NUMBER_KINDS]
    numbers += [len(cells.encoding.columns) + k for k in range(len(cells.spans))]
    numbers = number_relations.varying(cells, numbers)
    if len(numbers) > MAX_RELATED_NUMBERS:
        numbers = number_relations.most_correlated(cells, numbers, MAX_RELATED_NUMBERS, CHOOSING_ROWS)
    may_have_levels, entering = _may_have_levels(cells), set(numbers)
    values: list[int] = []
    levels = {}
    for j, column in described:
        is_open = len(values) < MAX_RELATED_VALUES
        own = _levels(cells, j) if j in may_have_levels and (is_open or j in entering) else None
        if own is not None:
            levels[j] = own
        if is_open and (
            column.kind == "category" or j in levels or (column.kind in NUMBER_KINDS and bool(column.has_gaps))
        ):
            values.append(j)
    cells.levels = levels
    return Columns(numbers, values)


def _may_have_levels(cells: Cells) -> set[int]:
    """Return the columns of numbers that seem to have few different ones: most columns are told by their first rows."""
    columns = [
        j for j, own in enumerate(cells.encoding.columns[:CHOOSING_COLUMNS]) if own.kind in ("number", "boolean")
    ]
    if not columns:
        return set()
    first = np.sort([cells.numbers(j)[:FIRST_ROWS] for j in columns], axis=1)
    n_missing = np.isnan(first).sum(axis=1)
    n_different = 1 + (first[:, 1:] != first[:, :-1]).sum(axis=1) - np.maximum(n_missing - 1, 0)  # NaN counts once
    return {columns[place] for place in np.flatnonzero(n_different <= MAX_LEVELS + 1).tolist()}


def _levels(cells: Cells, j: int) -> Float64s | None:
    """Return the different numbers of a column, if they are few, but more than one (or one, and missing ones)."""
    numbers = cells.numbers(j)
    some = np.unique(numbers[::8])
    if len(some) > MAX_LEVELS + 1:
        return None
    is_flag = len(some) == 2 and bool(((numbers == some[0]) | (numbers == some[1])).all())
    own = some if is_flag else np.unique(numbers[~np.isnan(numbers)])
    enough = len(own) + bool(cells.encoding.columns[j].has_gaps) >= 2 and 1 <= len(own) <= MAX_LEVELS
    return own if enough else None


def _kept(kinds: list[tuple[type, Iterable[Candidate]]], n_rows: int) -> tuple[dict[type, list[Candidate]], Float64s]:
    """Return the strongest relations of each kind, and the evidence of the rows that break one, as if each were new."""
    evidence = np.zeros(n_rows)
    kept: dict[type, list[Candidate]] = {cls: [] for cls, _ in kinds}
    ranked = [
        (-candidate.strength_without, place, candidate) for place, (_, own) in enumerate(kinds) for candidate in own
    ]
    n_broken = 0
    for _, place, candidate in sorted(ranked, key=lambda entry: entry[:2]):
        cls = kinds[place][0]
        if len(candidate.broken) > max(MAX_BROKEN_EACH * n_rows, FEW_BROKEN_ROWS) or len(kept[cls]) == MAX_RELATIONS:
            continue
        n_broken += int(np.sum(evidence[candidate.broken] == 0.0))
        if n_broken > max(MAX_BROKEN * n_rows, FEW_BROKEN_ROWS):
            break
        evidence[candidate.broken] = np.maximum(evidence[candidate.broken], candidate.evidence_without())
        if candidate.is_strong:
            kept[cls].append(candidate)
    return kept, np.sort(evidence[evidence > 0])


def _used_levels(levels: dict[int, Float64s], *kinds: list[Candidate]) -> dict[int, Float64s]:
    """Return the levels of the columns whose values a relation names."""
    names = ("when", "partner", "first", "second", "by", "column")
    found = {
        int(j)
        for kind in kinds
        for candidate in kind
        for name in names
        if name in candidate.relation
        for j in np.ravel(candidate.relation[name])
    }
    return {j: levels[j] for j in sorted(found & set(levels))}


def _joined(cls: type[Kind], kept: dict[type, list[Candidate]]) -> Kind:
    """Return the arrays of all relations of a kind."""
    lists: dict[str, list[Any]] = {}
    for candidate in kept[cls]:
        measured = {"strength": candidate.strength, "n_broken": len(candidate.broken)}
        for name, element in {**candidate.relation, **measured}.items():
            lists.setdefault(name, []).append(element)
    flat = {"by_code", "expected_code"}
    joined: Kind = filled(cls, {n: np.concatenate(own) if n in flat else own for n, own in lists.items()})
    return joined
