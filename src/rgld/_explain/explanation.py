"""Explanations: why rows stand out, for people.

In: contributions, scores, the model, the table. Out: an `Explanation`, which ranks columns and gives reasons in words.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Bools, Float64s, Floats, Indices
from .._kernels.threads import threads_for
from .._model.model import Model
from .._model.scores import BranchScores, anomaly_score
from .._table.far_dates import far_dates
from .._table.frames import Origin, make_frame
from .._table.gaps import new_gaps
from .._table.table import Table
from ..exceptions import ModelFileError
from . import words
from .beside import beside_reason
from .contributions import contributions
from .groups import Group, group_rows, joined_by_reasons
from .kept_columns import KeptColumns, kept_columns
from .notebook import as_html
from .plots import plot_contributions, plot_scores
from .relations import BrokenByRow, BrokenRelation
from .summary import Summary, summary_of

MIN_REASON_FRACTION = 0.05
"""A column is a reason only if it contributes at least this fraction of what the row's first column contributes."""
MIN_STANDOUT_SCORE = 0.95
"""A row stands out in a branch if its branch score is above this."""
MAX_SHOWN_ROWS = 5
"""Number of rows in a printed explanation."""
NO_ORIGIN = Origin()


@dataclass(frozen=True)
class RowExplanation:
    """Why one row stands out."""

    row: int
    """Its index in the table that was explained."""
    anomaly_score: float
    kind: str
    """How it stands out, see `Explanation.kind`."""
    reasons: list[str]
    contributions: dict[str, float]
    """For each column, what it contributed, the largest first."""
    broken_relations: list[BrokenRelation]
    """The relations that it breaks, the most surprising first."""


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why rows stand out; made by `RGLD.explain`. `explanation[i]` is that of row i; iteration goes over all rows."""

    columns: tuple[str, ...]
    """Names of the d columns of the table."""
    contributions: Float64s
    """Shape (n, d), never negative: what each column adds to the evidence, see docs/explanations.md. The sum of a row
    is its mean evidence over all views. A column with a new gap, or with a date of another age, comes first: it gets 1
    more, and the row's largest contribution."""
    anomaly_score: Float64s
    """Shape (n,), as the next three."""
    global_score: Float64s | None
    """None for a detector without a global branch."""
    local_score: Float64s | None
    """None for a detector without a local branch."""
    distance_ratio: Float64s | None
    """Distance to the nearest references, divided by that of a typical training row; None without a local branch."""
    _model: Model
    _table: Table
    _matrix: Floats
    _broken: BrokenByRow
    threshold: float | None = None
    """Rows with a higher score are called outliers; None if it is not known."""
    _origin: Origin = NO_ORIGIN
    _has_new_gap: Bools | None = None
    """Shape (n,); None if no row can have one."""
    _has_far_date: Bools | None = None
    """Shape (n,); None if no row can have one."""

    def __len__(self) -> int:
        return len(self.contributions)

    def __getitem__(self, row: int) -> "RowExplanation":
        """Return the explanation of one row."""
        row = range(len(self))[row]
        contributed = self.contributions[row]
        order = np.argsort(-contributed, kind="stable")
        return RowExplanation(
            row,
            float(self.anomaly_score[row]),
            self.kind(row),
            self.reasons(row),
            {self.columns[j]: float(contributed[j]) for j in order},
            self.broken_relations(row),
        )

    def __iter__(self) -> Iterator["RowExplanation"]:
        """Yield the explanation of each row, in the order of the table."""
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        """Return the numbers of rows and columns, and the reasons of the rows with the highest scores."""
        size = (
            f"{len(self):,} row{'s' * (len(self) != 1)}, {len(self.columns):,} column{'s' * (len(self.columns) != 1)}"
        )
        lines = []
        for row in self._highest(MAX_SHOWN_ROWS):
            reasons = "; ".join(self.reasons(row)) or "nothing unusual"
            lines.append(f"  row {row:,}, score {self.anomaly_score[row]:.4f}: {reasons}")
        return "\n".join([f"Explanation of {size}" + (", highest scores first" * (len(self) > 1)), *lines])

    def _repr_html_(self) -> str:
        """Return the same for a notebook; all text of the table is escaped."""
        return as_html(self, self._highest(MAX_SHOWN_ROWS))

    def _highest(self, n_rows: int) -> list[int]:
        """Return the rows with the highest scores."""
        return [int(row) for row in np.argsort(-self.anomaly_score, kind="stable")[:n_rows]]

    def to_frame(self, n_columns: int = 3) -> Any:
        """Return a frame with a line for each row: score, branch scores, kind, reasons (of at most `n_columns` columns)
        and the contribution of each column.

        It is of the library of the table that was explained, with the index of a pandas frame; else of pandas or
        polars, whichever is installed.
        """
        branches = {"global_score": self.global_score, "local_score": self.local_score}
        contributed = zip(self.columns, self.contributions.T, strict=True)
        return make_frame(
            {
                "anomaly_score": self.anomaly_score,
                **{name: scores for name, scores in branches.items() if scores is not None},
                "kind": [self.kind(row) for row in range(len(self))],
                "reasons": ["; ".join(self.reasons(row, n_columns)) for row in range(len(self))],
                **self._broken_column(),
                **{f"contribution of {name}": values for name, values in contributed},
            },
            self._origin,
        )

    def _broken_column(self) -> dict[str, list[str]]:
        """Return the most surprising relation that each row breaks, in words, as a column; none without relations."""
        if self._model.relations is None:
            return {}
        broken = [self.broken_relations(row)[:1] for row in range(len(self))]
        return {"broken_relation": [own[0].words if own else "" for own in broken]}

    def summary(self, rows: Iterable[int] | None = None) -> Summary:
        """Return which columns and relations make rows stand out: the part of each column in the evidence, over several
        rows, and how many rows break each relation.

        `rows` are the rows to sum up; None: those above the threshold, or all if there are none. See `Summary`.
        """
        if rows is None:
            above = self.anomaly_score > (np.inf if self.threshold is None else self.threshold)
            chosen = np.flatnonzero(above) if above.any() else np.arange(len(self))
        else:
            chosen = np.array([range(len(self))[row] for row in rows], dtype=np.intp)
        broken = Counter(one.relation.words for row in chosen for one in self.broken_relations(int(row))[:1])
        return summary_of(self.columns, self.shares()[chosen], broken)

    def plot(self, row: int | None = None, *, ax: Any = None) -> Any:
        """Draw why a row stands out, or all scores; return the axes. Needs matplotlib.

        Parameters
        ----------
        row : int or None, default=None
            The row: its contributions, from the largest to the mean evidence that they sum up to. None: the scores of
            all rows in order, with the threshold.
        ax : matplotlib axes or None
            Where to draw; None: a new figure.
        """
        if row is None:
            return plot_scores(self.anomaly_score, self.threshold, ax)
        row = range(len(self))[row]
        values = words.values_of(self._model.encoding, self._table, np.array([row]))[0]
        title = f"row {row}: score {self.anomaly_score[row]:.4f}"
        return plot_contributions(self.columns, self.contributions[row], [value.text for value in values], title, ax)

    def top(self, n_columns: int = 3) -> Indices:
        """Return the indices of the columns that contribute most to each row, largest first, shape (n, n_columns)."""
        return np.argsort(-self.contributions, axis=1, kind="stable")[:, :n_columns]

    def shares(self) -> Float64s:
        """Return the contributions of each row divided by their sum, shape (n, d); all 0 in a row without evidence."""
        whole = self.contributions.sum(axis=1, keepdims=True)
        shares: Float64s = np.divide(self.contributions, whole, out=np.zeros_like(self.contributions), where=whole > 0)
        return shares

    def reasons(self, row: int, n_columns: int = 3) -> list[str]:
        """Return what is unusual about a row, column by column, the most important first.

        The list is empty for a row that no view finds unusual. Columns that contribute less than a twentieth of the
        first column are left out. So are, in a row that does not stand out, values that are unusual only beside the
        row's other values.
        """
        row = range(len(self))[row]
        broken = self.broken_relations(row)[:n_columns]
        contributed = self.contributions[row]
        order = np.argsort(-contributed, kind="stable")[:n_columns]
        chosen = [
            int(j) for j in order if contributed[j] > 0 and contributed[j] >= MIN_REASON_FRACTION * contributed.max()
        ]
        if not chosen:
            return [one.words for one in broken]
        kept = kept_columns(self._model)
        (values,) = words.values_of(kept.encoding, self._table, np.array([row]), chosen)
        said = [one.words for one in broken]
        for j, value in zip(chosen, values, strict=True):
            reason = words.reason(kept, j, value)
            if words.BESIDE not in reason:
                said.append(reason)
            elif self._stands_out(row):
                said += filter(None, [self._beside(kept, row, j) or words.uncommon(kept, j, value)])
        return said[:n_columns]

    def groups(self, rows: Iterable[int] | None = None) -> list[Group]:
        """Return rows that share their reasons as groups, the group of the most anomalous row first.

        Each `Group` has `rows`, row indices, the most anomalous first, and `reasons`, which say what the rows share:
        the relation that they break or, of rows that break none, what is unusual about them. `rows` are the rows to
        group; None: all of them. Take those above the threshold: ordinary rows share nothing.
        """
        chosen = np.arange(len(self)) if rows is None else np.array([range(len(self))[row] for row in rows], np.intp)
        ordered = chosen[np.argsort(-self.anomaly_score[chosen], kind="stable")]
        breaking: dict[str, list[int]] = {}
        firsts: dict[str, str] = {}
        breaks = np.array([bool(self._broken.found[row]) for row in ordered], np.bool_)
        for row in ordered[breaks]:
            broken = self.broken_relations(row)[0]
            firsts.setdefault(broken.relation.words, broken.words)
            breaking.setdefault(broken.relation.words, []).append(int(row))
        found = [
            Group(
                tuple(members),
                (f"break: {relation}", f"the first: {firsts[relation]}") if len(members) > 1 else (),
            )
            for relation, members in breaking.items()
        ]
        others = ordered[~breaks]
        found += group_rows(self._model, self._table, self.contributions, others, MIN_REASON_FRACTION)
        order = {int(row): place for place, row in enumerate(ordered)}
        said = [self._with_reasons(group) for group in sorted(found, key=lambda group: order[group.rows[0]])]
        return [
            Group(tuple(sorted(group.rows, key=order.__getitem__)), group.reasons) for group in joined_by_reasons(said)
        ]

    def _with_reasons(self, group: Group) -> Group:
        """Return the group; of one row with the reasons of the row, or how it stands out."""
        return Group(group.rows, group.reasons or tuple(self.reasons(group.rows[0])) or (self.kind(group.rows[0]),))

    def _stands_out(self, row: int) -> bool:
        """Return whether a row stands out in a branch, so that its values may be unusual only beside one another."""
        n_used = sum(column.kind != "dropped" for column in self._model.encoding.columns)
        return n_used > 1 and any(
            scores is not None and bool(scores[row] > MIN_STANDOUT_SCORE)
            for scores in (self.global_score, self.local_score)
        )

    def broken_relations(self, row: int) -> list[BrokenRelation]:
        """Return the relations that a row breaks, the most surprising first, with their columns, the row's value and
        what was expected."""
        return self._broken.of_row(range(len(self))[row])

    def _beside(self, kept: KeptColumns, row: int, j: int) -> str:
        """Return beside which other value the value of column j is unusual; "" if beside no single one."""
        encoded = self._matrix[row].astype(np.float64)
        return beside_reason(kept, self._table, encoded, row, j, self.contributions[row])

    def kind(self, row: int) -> str:
        """Return how a row stands out: it breaks a relation, has a new gap (a missing value where none was in
        training), has a date of another age (2042 in a table of 2024), is in a sparse region, is far from its nearest
        rows, several of these, or none."""
        broad = self.global_score is not None and self.global_score[row] > MIN_STANDOUT_SCORE
        apart = self.local_score is not None and self.local_score[row] > MIN_STANDOUT_SCORE
        found_as = {(True, True): "broadly rare and locally isolated", (True, False): "broadly rare"}
        found = found_as.get((broad, apart), "locally isolated" if apart else "")
        ways = [
            "breaks a relation" if self._broken.found[row] else "",
            "has a new gap" if self._has_new_gap is not None and self._has_new_gap[row] else "",
            "has a date of another age" if self._has_far_date is not None and self._has_far_date[row] else "",
        ]
        found = ", ".join(filter(None, [*ways, found])) or "not clearly unusual"
        if self.distance_ratio is None:
            return found
        return f"{found}; {words.isolation(float(self.distance_ratio[row]))}"


def explain_rows(
    model: Model,
    table: Table,
    matrix: Floats,
    scores: BranchScores,
    n_jobs: int | None,
    threshold: float | None = None,
    origin: Origin = NO_ORIGIN,
) -> Explanation:
    """Return the explanation of rows that were read, encoded (n, e) and scored."""
    if not len(model.kept_rows.rows):
        raise ModelFileError(
            "This model file was written by an older release, which did not save what explanations need: fit and save "
            "the detector again."
        )
    found = contributions(model, matrix, threads_for(len(matrix), n_jobs))
    for j, rows in new_gaps(model.encoding, table, matrix):
        found.by_column[rows, j] += 1.0 + found.by_column[rows].max(axis=1)
    for j, rows, least in far_dates(model.encoding, table, matrix):
        rows = rows[least > MIN_STANDOUT_SCORE]
        found.by_column[rows, j] += 1.0 + found.by_column[rows].max(axis=1)
    return Explanation(
        tuple(column.name for column in model.encoding.columns),
        found.by_column,
        anomaly_score(scores, model),
        scores.global_score,
        scores.local_score,
        found.distance_ratio,
        model,
        table,
        matrix,
        BrokenByRow.of(model, table),
        threshold,
        origin,
        None if scores.gap_score is None else scores.gap_score > 0.0,
        None if scores.date_score is None else scores.date_score > MIN_STANDOUT_SCORE,
    )
