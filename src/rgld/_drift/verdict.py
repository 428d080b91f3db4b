"""The verdict: a table beside the training table, rows and columns together.

In: scores and columns. Out: a `Check`. If the new rows are like the training rows, the probability of an alarm is at
most `alpha`: a third of it for each of three parts: the sequence of the rows; the rows as a batch; and the columns with
the relations between them.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from .._arrays import Float64s
from .._table.encoding import Encoding, read_values
from .._table.profiles import Profiles
from .._table.table import Table
from ..exceptions import ParameterError
from . import words
from .columns import ColumnCheck, check_columns
from .relations import RelationCheck
from .sequence import ORDER_SEED, SEED, Watch
from .two_samples import distance_p_value, largest_distance

N_PARTS = 3
"""Parts of a check that can give an alarm: each has a third of `alpha`."""
MAX_CHECKED_ROWS = 2**17
"""The columns of at most this many rows are looked at; of a longer table, rows chosen at random."""
MIN_SORTED_ROWS, MIN_SORTED_CORRELATION = 30, 0.5
"""Rows are in the order of a column if so many have a value, and its ranks are so correlated with their places."""
MAX_SAID_RELATIONS = 5
"""Relations that the reasons name; `broken_relations` has all."""
SCHEMA, SCHEMA_VERSION = "rgld-check", 1
"""What `as_dict` returns; the version changes when a field changes its meaning or is gone."""

NO_CALIBRATION = (
    "rows: not checked, because the model held no rows out of its fit: fit it again with calibration_fraction=0.2 "
    "(`rgld fit` does so)"
)
NO_PROFILES = (
    "columns: of numbers only gaps are checked, because the model file is of a version that did not keep their "
    "distributions: fit again to check these too"
)


@dataclass(frozen=True)
class RowsCheck:
    """The scores of new rows beside those of held-out rows."""

    n_calibration: int
    wealth: float
    """What the bets have made of 1, after the last row."""
    highest: float
    """Logarithm of the highest wealth so far, in this table and earlier ones."""
    sequence_p_value: float
    """1 / the highest wealth so far: holds at any time."""
    alarm_row: int | None
    """Index of the row of this table after which the sequence gives an alarm; None if it gave none here, or if the rows
    were taken in random order."""
    distance: float
    """Largest distance of the two distributions of scores, 0 to 1."""
    is_higher: bool
    """Whether the new scores are the higher ones, where they differ most."""
    batch_p_value: float
    sorted_by: str | None = None
    """The column of dates that the rows are in the order of. Then they are taken in random order for the bets."""


@dataclass(frozen=True)
class Check:
    """Whether a table is still like the training table, and what has changed."""

    n_rows: int
    alpha: float
    """If the rows are like the training rows, the probability that `drifted` is True is at most this."""
    rows: RowsCheck | None
    """None if the model held no rows out of its fit."""
    columns: tuple[ColumnCheck, ...]
    notes: tuple[str, ...]
    """What could not be checked."""
    watch: Watch | None
    """To be passed to the check of the next table, so that the bets go on."""
    relations: tuple[RelationCheck, ...] = ()
    """The relations between columns, and how many rows break each."""

    @property
    def level(self) -> float:
        """The level of each part."""
        return self.alpha / N_PARTS

    @property
    def drifted_columns(self) -> tuple[ColumnCheck, ...]:
        """The columns that have changed, the surest first."""
        changed = [column for column in self.columns if column.p_value <= self.level]
        return tuple(sorted(changed, key=lambda column: column.p_value))

    @property
    def drifted_relations(self) -> tuple[RelationCheck, ...]:
        """The relations that more rows break than held-out rows did, the most broken first."""
        changed = [relation for relation in self.relations if relation.p_value <= self.level]
        return tuple(sorted(changed, key=lambda relation: -relation.n_broken))

    @property
    def broken_relations(self) -> tuple[str, ...]:
        """The relations that are broken more often than before, in words, the most broken first. Without held-out rows
        they cannot be tested: then they tell what has changed, and give no alarm."""
        return tuple(one.words for one in self._often_broken())

    def _often_broken(self) -> list[RelationCheck]:
        often = [one for one in self.relations if one.p_value <= self.level or (one.held_out is None and one.is_often)]
        return sorted(often, key=lambda one: -one.n_broken)

    def _said_of_relations(self) -> list[str]:
        """Return what the reasons say of relations. Those of columns that have changed themselves are one
        sentence: they follow from that."""
        changed = {column.name for column in self.drifted_columns}
        broken = self._often_broken()
        own = [one for one in broken if not changed & set(one.columns)]
        rest = [one for one in broken if changed & set(one.columns)]
        said = [one.words for one in own[:MAX_SAID_RELATIONS]]
        if len(own) > MAX_SAID_RELATIONS:
            said.append(f"and {len(own) - MAX_SAID_RELATIONS} more relations between columns that many rows break")
        if len(rest) == 1:
            said.append(rest[0].words)
        elif rest:
            shortest = min(rest, key=lambda one: len(one.relation))
            said.append(f"{len(rest)} relations of these columns with others are broken, such as: {shortest.words}")
        return said

    @property
    def sequence_alarm(self) -> bool:
        """Whether the bets against the rows have won, in this table or in an earlier one."""
        return self.rows is not None and self.rows.sequence_p_value <= self.level

    @property
    def batch_alarm(self) -> bool:
        """Whether the scores of this table as a whole are unlike those of held-out rows."""
        return self.rows is not None and self.rows.batch_p_value <= self.level

    @property
    def drifted(self) -> bool:
        """Whether any part gives an alarm."""
        return self.sequence_alarm or self.batch_alarm or bool(self.drifted_columns or self.drifted_relations)

    @property
    def reasons(self) -> list[str]:
        """What has changed, in words: columns first, then relations, then rows."""
        said = [text for column in self.drifted_columns for text in column.said(self.level)]
        said += self._said_of_relations() if self.drifted else []
        found = self.rows
        if found is not None and self.batch_alarm:
            said.append(words.higher_scores(found.distance, found.is_higher, found.n_calibration, found.batch_p_value))
        if found is not None and self.sequence_alarm:
            said.append(words.sequence(found.alarm_row, found.highest, 1.0 / self.level, found.sorted_by))
        return said

    def as_dict(self) -> dict[str, Any]:
        """Return the check as plain data, in a form that docs/drift.md describes."""
        return {
            "schema": SCHEMA,
            "version": SCHEMA_VERSION,
            "verdict": "drift" if self.drifted else "fine",
            "rows": self.n_rows,
            "alpha": self.alpha,
            "level": self.level,
            "reasons": self.reasons,
            "notes": list(self.notes),
            "broken_relations": list(self.broken_relations),
            "relations": [_relation_as_dict(one, self.level) for one in self.relations],
            "sequence": self._sequence_as_dict(),
            "batch": self._batch_as_dict(),
            "columns": [_column_as_dict(column, self.level) for column in self.columns],
        }

    def _sequence_as_dict(self) -> dict[str, Any] | None:
        if self.rows is None or self.watch is None:
            return None
        return {
            "alarm": self.sequence_alarm,
            "p_value": self.rows.sequence_p_value,
            "log10_wealth": self.watch.log_wealth / np.log(10.0),
            "log10_highest": self.rows.highest / np.log(10.0),
            "rows_seen": self.watch.n_rows,
            "alarm_row": self.rows.alarm_row,
            "sorted_by": self.rows.sorted_by,
        }

    def _batch_as_dict(self) -> dict[str, Any] | None:
        if self.rows is None:
            return None
        return {
            "alarm": self.batch_alarm,
            "p_value": self.rows.batch_p_value,
            "distance": self.rows.distance,
            "direction": "higher" if self.rows.is_higher else "lower",
            "held_out": self.rows.n_calibration,
        }


def _column_as_dict(column: ColumnCheck, level: float) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind,
        "drifted": column.p_value <= level,
        "p_value": column.p_value,
        "gaps": column.gaps,
        "gaps_in_training": column.gaps_in_training,
        "unread": column.unread,
        "unseen": column.unseen,
        "distance": column.distance,
        "findings": [
            {"what": finding.what, "p_value": finding.p_value, "words": finding.words}
            for finding in column.findings
            if finding.p_value <= level
        ],
    }


def _relation_as_dict(one: RelationCheck, level: float) -> dict[str, Any]:
    return {
        "columns": list(one.columns),
        "relation": one.relation,
        "drifted": one.p_value <= level,
        "p_value": one.p_value,
        "broken": one.n_broken / one.n_rows,
        "broken_in_training": one.in_training[0] / max(1, one.in_training[1]),
        "broken_held_out": None if one.held_out is None else one.held_out[0] / one.held_out[1],
    }


def check_alpha(alpha: float) -> None:
    """Raise if a probability of false alarm is not one."""
    if not (isinstance(alpha, Real) and 0.0 < float(alpha) < 1.0):
        raise ParameterError(f"alpha must be a number in (0, 1), got {alpha!r} instead.")


def check_table(
    encoding: Encoding,
    profiles: Profiles,
    calibration: Float64s,
    table: Table,
    scores: Float64s,
    alpha: float,
    watch: Watch | None = None,
    relations: tuple[RelationCheck, ...] = (),
) -> Check:
    """Return the check of a table, or of a sample of its rows, with the scores of all its rows in their order, and how
    many rows break each relation."""
    check_alpha(alpha)
    if len(table) > MAX_CHECKED_ROWS:
        chosen = np.random.default_rng(SEED).choice(len(table), MAX_CHECKED_ROWS, replace=False)
        table = table.take(np.sort(chosen))
    columns, relations = check_columns(encoding, profiles, table, relations)
    notes = () if profiles.are_known else (NO_PROFILES,)
    if not len(calibration):
        return Check(len(scores), float(alpha), None, columns, (NO_CALIBRATION, *notes), None, relations)
    order = sorted_by(encoding, table)
    rows, watch = check_rows(calibration, scores, float(alpha), watch or Watch.begin(calibration), order)
    return Check(len(scores), float(alpha), rows, columns, notes, watch, relations)


def sorted_by(encoding: Encoding, table: Table) -> str | None:
    """Return the name of a column of dates that rise or fall with the rows; None if there is none.

    Scores depend on dates, if only a little: the first and the last days of the training rows are rarer. So the rows of
    such a table are not exchangeable one after the other, though the table may be as ordinary as any.
    """
    for j, column in enumerate(encoding.columns):
        if column.kind != "time" and not column.date_knots:
            continue
        values = read_values(column, table.column(j))
        _, ranks = np.unique(values[~np.isnan(values)], return_inverse=True)
        if len(ranks) >= MIN_SORTED_ROWS and ranks.any():
            correlation = np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]
            if abs(correlation) >= MIN_SORTED_CORRELATION:
                return column.name
    return None


def check_rows(
    calibration: Float64s, scores: Float64s, alpha: float, watch: Watch, order: str | None = None
) -> tuple[RowsCheck, Watch]:
    """Return what the scores say, and the state of the bets after them. If the rows are in the order of a column, they
    are taken in random order."""
    if order is not None:
        scores = scores[np.random.default_rng([ORDER_SEED, watch.n_rows]).permutation(len(scores))]
    after, path = watch.followed(scores)
    limit = float(np.log(N_PARTS / alpha))
    reached = np.flatnonzero((path >= limit) & (watch.highest < limit))
    distance, is_higher = score_distance(calibration, scores)
    p_value = distance_p_value(distance, len(calibration), len(scores))
    wealth = float(np.exp(min(after.log_wealth, 700.0)))
    found = RowsCheck(
        len(calibration),
        wealth,
        after.highest,
        after.p_value,
        int(reached[0]) if len(reached) and order is None else None,
        distance,
        is_higher,
        p_value,
        order,
    )
    return found, after


def score_distance(calibration: Float64s, scores: Float64s) -> tuple[float, bool]:
    """Return the largest distance of two distributions of scores, and whether the new scores are the higher ones
    there."""
    knots = np.concatenate((calibration, scores))
    own, new = (np.searchsorted(np.sort(part), knots, side="right") for part in (calibration, scores))
    distance, place = largest_distance(new, len(scores), own, len(calibration))
    return distance, bool(new[place] / len(scores) < own[place] / len(calibration))
