"""Relations for people: what they say, and which of them a row breaks.

In: a model with relations, rows. Out: `Relation` and `BrokenRelation` objects: columns and numbers as data, and the
same in words (`relation_words.py`).
"""

from dataclasses import dataclass

from .._drift.relations import RelationCheck
from .._kernels.relations import (
    Cells,
    broken_rows,
    cells_of,
    curve_residual,
    expected_codes,
    n_broken_rows,
    residual,
)
from .._model.model import Model
from .._model.relations import UNLISTED, Relations
from .._table.table import Table
from ..exceptions import ModelFileError
from . import relation_words
from .relation_words import Names

FIELDS_OF_KINDS = {
    "number": "numbers",
    "curve": "curves",
    "order": "orders",
    "pair": "pairs",
    "determined": "determined",
}
"""The field of `Relations` that holds a kind."""


@dataclass(frozen=True)
class Relation:
    """What the values of a row have in common; one of `RGLD.relations_`."""

    kind: str
    """"number" (it follows from others), "curve" (it keeps near what is usual beside another number), "order", "pair"
    (two values never meet) or "determined" (a value follows from another)."""
    columns: tuple[str, ...]
    """Names of the columns; the first is the one that follows from the others, if one does."""
    words: str
    """The relation in words."""
    strength: float
    """log10(E / (n_broken + 1)): E rows would break it if the columns were independent."""
    n_rows: int
    """Training rows that it speaks of (of a long table, those of the sample) ..."""
    n_broken: int
    """... and how many of them break it."""

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class BrokenRelation:
    """A relation that a row breaks."""

    relation: Relation
    column: str
    """The column whose value is named first."""
    partners: tuple[str, ...]
    """The columns that it does not fit."""
    value: str
    """What the row has in the column ..."""
    expected: str
    """... and what its partners suggest; for an order, the value of the other column. "" if nothing is suggested."""
    words: str
    """The same in a sentence."""
    evidence: float
    """How surprising this is, at most the strength of the relation."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The column and its partners."""
        return (self.column, *self.partners)

    def __str__(self) -> str:
        return self.words


def relations_of(model: Model) -> tuple[Relation, ...]:
    """Return the relations of a model, the strongest first."""
    return tuple(relation for _, _, relation in strongest(model))


def strongest(model: Model) -> list[tuple[str, int, Relation]]:
    """Return the relations of a model with their kinds and places, the strongest first."""
    if model.relations is None:
        return []
    names = Names(model.encoding, model.relations)
    found = [
        (kind, i, describe(names, kind, i))
        for kind, part in FIELDS_OF_KINDS.items()
        for i in range(len(getattr(model.relations, part).n_rows))
    ]
    return sorted(found, key=lambda entry: -entry[2].strength)


def describe(names: Names, kind: str, i: int) -> Relation:
    """Return the i-th relation of a kind."""
    part = getattr(names.relations, FIELDS_OF_KINDS[kind])
    numbers = float(part.strength[i]), int(part.n_rows[i]), int(part.n_broken[i])
    columns = tuple(dict.fromkeys(names.of(j) for j in _columns(names.relations, kind, i)))
    return Relation(kind, columns, getattr(relation_words, f"{kind}_words")(names, i), *numbers)


def _columns(relations: Relations, kind: str, i: int) -> list[int]:
    if kind == "order":
        return [int(relations.orders.high[i]), int(relations.orders.low[i])]
    if kind == "pair":
        return [int(relations.pairs.first[i]), int(relations.pairs.second[i])]
    if kind == "determined":
        return [int(relations.determined.column[i]), int(relations.determined.by[i])]
    if kind == "curve":
        return [int(relations.curves.target[i]), int(relations.curves.partner[i])]
    numbers = relations.numbers
    used = [numbers.target[i], *numbers.partner[i], numbers.when[i]]
    return [int(j) for j in used if j >= 0]


def relation_checks(model: Model, table: Table) -> tuple[RelationCheck, ...]:
    """Return how many rows of a table break each relation of a model."""
    relations = model.relations
    if relations is None or not len(table):
        return ()
    names = Names(model.encoding, relations)
    counts = n_broken_rows(relations, cells_of(relations, model.encoding, table, None)).tolist()
    held_out = relations.held_out.n_broken.tolist()
    places = [(kind, i) for kind, part in FIELDS_OF_KINDS.items() for i in range(len(getattr(relations, part).n_rows))]
    found = []
    for n, (kind, i) in enumerate(places):
        one = describe(names, kind, i)
        before = (held_out[n], len(model.calibration)) if held_out else None
        training = one.n_broken, one.n_rows
        found.append(RelationCheck.of(one.columns, one.words, (counts[n], len(table)), training, before))
    return tuple(found)


@dataclass(frozen=True, eq=False)
class BrokenByRow:
    """Which relations each of some rows breaks."""

    model: Model
    cells: Cells | None
    found: tuple[tuple[tuple[str, int, float], ...], ...]
    """For each row the kind, the place and the evidence of each relation, the largest evidence first."""

    @classmethod
    def of(cls, model: Model, table: Table) -> "BrokenByRow":
        """Return what the rows of a table break."""
        found: list[list[tuple[str, int, float]]] = [[] for _ in range(len(table))]
        if model.relations is None:
            return cls(model, None, tuple(tuple(own) for own in found))
        cells = cells_of(model.relations, model.encoding, table, None)
        for broken in broken_rows(model.relations, cells, slice(0, len(table))):
            for row, evidence in zip(broken.rows.tolist(), broken.evidence.tolist(), strict=True):
                found[row].append((broken.kind, broken.place, evidence))
        strengths = {kind: getattr(model.relations, part).strength for kind, part in FIELDS_OF_KINDS.items()}
        for own in found:
            # Of relations with about the same evidence, the strongest comes first.
            own.sort(key=lambda one: (-round(one[2], 2), -strengths[one[0]][one[1]]))
        return cls(model, cells, tuple(map(tuple, found)))

    def of_row(self, row: int) -> list[BrokenRelation]:
        """Return the relations that a row breaks, the most surprising first; of several with the same columns one."""
        if not self.found[row]:
            return []
        relations = self.model.relations
        if relations is None or self.cells is None:
            raise ModelFileError("A row breaks relations, but the model has none.")
        names = Names(self.model.encoding, relations)
        known: set[frozenset[str]] = set()
        broken = []
        for kind, i, evidence in self.found[row]:
            one = _broken(names, self.cells, row, kind, i, evidence)
            columns = frozenset(one.columns)
            if not any(columns <= other or columns >= other for other in known):
                known.add(columns)
                broken.append(one)
        return broken


def _broken(names: Names, cells: Cells, row: int, kind: str, i: int, evidence: float) -> BrokenRelation:
    relations, at = names.relations, slice(row, row + 1)
    relation = describe(names, kind, i)
    if kind == "number":
        numbers = relations.numbers
        value = float(cells.numbers(int(numbers.target[i]))[row])
        rest = float(residual(relations, i, cells, at)[0])
        found = relation_words.number_broken(names, i, value, rest)
    elif kind == "curve":
        curves = relations.curves
        own, beside = (float(cells.numbers(int(j))[row]) for j in (curves.target[i], curves.partner[i]))
        expected_number = float(curve_residual(relations, i, cells, at, is_expected=True)[0])
        found = relation_words.curve_broken(names, i, own, beside, expected_number)
    elif kind == "order":
        low, high = (float(cells.numbers(int(j))[row]) for j in (relations.orders.low[i], relations.orders.high[i]))
        found = relation_words.order_broken(names, i, low, high)
    elif kind == "pair":
        found = relation_words.pair_broken(names, i)
    else:
        determined = relations.determined
        by, code = (cells.codes(int(j))[at] for j in (determined.by[i], determined.column[i]))
        expected = int(expected_codes(relations, i, by)[0])
        own = int(code[0])
        text = (
            names.value(int(determined.column[i]), own)
            if own != UNLISTED
            else cells.text(int(determined.column[i]), row)
        )
        found = relation_words.determined_broken(names, i, int(by[0]), text, expected)
    column, partners = found.columns[0], found.columns[1:]
    return BrokenRelation(relation, column, partners, found.value, found.expected, found.words, round(evidence, 6))


def rows_by_relation(broken: BrokenByRow) -> dict[tuple[str, int], list[int]]:
    """Return which rows break each relation that is broken."""
    rows: dict[tuple[str, int], list[int]] = {}
    for row, own in enumerate(broken.found):
        for kind, i, _ in own:
            rows.setdefault((kind, i), []).append(row)
    return rows
