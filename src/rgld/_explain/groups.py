"""Groups: rows that share their reasons, as one finding.

In: rows with the contributions of their columns and their values, the most anomalous first. Out: groups of rows. A
hundred rows that stand out for the same reason are one thing to look at, not a hundred.

Each row has weights for what is unusual about it: of a column, in a way (above or below the usual range; else the value
itself). Its weights are its contributions, divided by their sum. Two rows share as much as their weights overlap:

    overlap(a, b) = sum over columns and ways of min(weight_a, weight_b), from 0 to 1

Rows are taken in order. A row joins the group whose first row it overlaps most with, if the overlap is at least
`MIN_OVERLAP`; else it begins a group of its own. Then groups whose mean weights overlap as much are joined in the same
way: the first row of a group may be the only one with one more reason. Rows that share
nothing that can be said in words are no group.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .._arrays import Float64s, Indices
from .._model.model import Model
from .._table.encoding import Encoding
from .._table.table import Table
from . import words
from .kept_columns import KeptColumns, kept_columns
from .words import Value

MIN_OVERLAP = 0.5
"""Two rows share their reasons if at least this fraction of what is unusual about them is the same."""
MAX_GROUPED_COLUMNS = 8
"""Columns of a row that are compared: those that contribute most."""
MAX_GROUP_REASONS = 3
"""Reasons given for a group."""
MIN_SHARING_FRACTION = 2 / 3
"""A reason is given for a group if at least this fraction of its rows shares it."""
MAX_NAMED_FRACTION = 0.25
"""Two values of a category are named together, such as "'car' or 'van'", if at most this fraction of the training rows
has one of them: more say nothing."""

Weights = dict[tuple[int, str], float]
"""For columns and ways, weights that sum to 1."""


@dataclass(frozen=True)
class Group:
    """Rows that share their reasons."""

    rows: tuple[int, ...]
    """Row indices in the explanation, the most anomalous first."""
    reasons: tuple[str, ...]
    """What the rows share, the most important first; of a group of one row, its reasons."""

    def __len__(self) -> int:
        return len(self.rows)


def group_rows(model: Model, table: Table, contributions: Float64s, rows: Indices, min_fraction: float) -> list[Group]:
    """Return the groups of some rows, which are in order of their scores; without reasons for groups of one row.

    Columns count that contribute at least `min_fraction` of what the row's first column contributes.
    """
    columns = _columns_of(contributions[rows], min_fraction)
    used = sorted({j for chosen in columns for j in chosen})
    kept = kept_columns(model)
    cells = words.values_of(kept.encoding, table, rows, used) if used else [[] for _ in rows]
    values = [dict(zip(used, row, strict=True)) for row in cells]
    weights: list[Weights] = []
    for i, chosen in enumerate(columns):
        whole = float(contributions[rows[i], chosen].sum())
        weights.append(
            {(j, words.way(kept, j, values[i][j])): float(contributions[rows[i], j]) / whole for j in chosen}
        )
    found = _said(_members(weights), weights, lambda members: _shared(kept, members, weights, values))
    return [Group(tuple(int(rows[i]) for i in members), reasons) for members, reasons in found]


def joined_by_reasons(groups: list[Group]) -> list[Group]:
    """Return the groups, with those of the same reasons as one, where the first of them was."""
    rows: dict[tuple[str, ...], list[int]] = {}
    for group in groups:
        rows.setdefault(group.reasons, []).extend(group.rows)
    return [Group(tuple(own), reasons) for reasons, own in rows.items()]


def _said(
    groups: list[list[int]], weights: list[Weights], shared: Callable[[list[int]], tuple[str, ...]]
) -> Iterator[tuple[list[int], tuple[str, ...]]]:
    """Yield joined groups with their reasons. Groups that share nothing that can be said stay apart, and rows that
    share nothing that can be said are groups of one."""
    for near in _members([_mean(weights, own) for own in groups]):
        together = sorted(i for g in near for i in groups[g])
        if reasons := shared(together):
            yield together, reasons
            continue
        for own in (groups[g] for g in near):
            if reasons := shared(own):
                yield own, reasons
            else:
                yield from (([i], ()) for i in own)


def _columns_of(contributions: Float64s, min_fraction: float) -> list[list[int]]:
    """Return the columns that are compared, for each row."""
    order = np.argsort(-contributions, axis=1, kind="stable")[:, :MAX_GROUPED_COLUMNS]
    limits = min_fraction * contributions.max(axis=1, initial=0.0)
    return [
        [j for j in chosen.tolist() if contributions[i, j] > 0 and contributions[i, j] >= limits[i]]
        for i, chosen in enumerate(order)
    ]


def _members(weights: list[Weights]) -> list[list[int]]:
    """Return the groups, as places of rows."""
    groups: list[list[int]] = []
    leaders: dict[tuple[int, str], list[tuple[int, float]]] = defaultdict(list)
    for i, own in enumerate(weights):
        overlap: dict[int, float] = defaultdict(float)
        for key, weight in own.items():
            for group, other in leaders[key]:
                overlap[group] += min(weight, other)
        best = max(overlap, key=lambda group: overlap[group], default=-1)
        if best >= 0 and overlap[best] >= MIN_OVERLAP:
            groups[best].append(i)
            continue
        for key, weight in own.items():
            leaders[key].append((len(groups), weight))
        groups.append([i])
    return groups


def _mean(weights: list[Weights], members: list[int]) -> Weights:
    """Return the mean weights of some rows."""
    total: Weights = defaultdict(float)
    for i in members:
        for key, weight in weights[i].items():
            total[key] += weight / len(members)
    return total


def _shared(
    kept: KeptColumns, members: list[int], weights: list[Weights], values: list[dict[int, Value]]
) -> tuple[str, ...]:
    """Return the reasons that most rows of a group share, the most important first. That a value is unusual beside the
    row's other values is none, because these differ from row to row: if few rows have the value, that is said."""
    if len(members) == 1:
        return ()
    having: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    total: dict[int, float] = defaultdict(float)
    for i in members:
        for (j, way), weight in weights[i].items():
            having[j][way].append(i)
            total[j] += weight
    reasons = []
    for j in sorted(total, key=lambda j: -total[j]):
        rows = _rows_sharing(kept.encoding, j, having[j], len(members))
        if rows:
            shown = [values[i][j] for i in rows]
            reasons.append(_shared_reason(kept, j, shown))
    return tuple(filter(None, reasons))[:MAX_GROUP_REASONS]


def _shared_reason(kept: KeptColumns, j: int, values: list[Value]) -> str:
    reason = words.shared_reason(kept, j, values)
    return reason if words.BESIDE not in reason else words.uncommon(kept, j, values[0])


def _rows_sharing(encoding: Encoding, j: int, by_way: dict[str, list[int]], n_members: int) -> list[int]:
    """Return the rows in which column j is unusual in the same way; none if they are too few of a group. Two rare
    values of a category count as one way."""
    at_least = max(2.0, MIN_SHARING_FRACTION * n_members)
    first, *others = sorted(by_way, key=lambda way: -len(by_way[way]))[:2]
    one, both = by_way[first], sorted(by_way[first] + (by_way[others[0]] if others else []))
    if others and len(both) >= at_least and _are_rare(encoding, j, (first, *others)) and len(by_way[others[0]]) > 1:
        return both
    return one if len(one) >= at_least else []


def _are_rare(encoding: Encoding, j: int, values: tuple[str, ...]) -> bool:
    """Return whether few training rows have one of these values of a category."""
    column = encoding.columns[j]
    if column.kind != "category":
        return False
    counts = [column.counts[place] for place in map(column.place, values) if place >= 0]
    return sum(counts) <= MAX_NAMED_FRACTION * encoding.n_rows
