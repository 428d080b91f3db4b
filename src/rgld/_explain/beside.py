"""Beside what: the value of another column that makes a value unusual which is not unusual by itself.

In: the kept rows, a row, a column. Out: half a sentence that names one partner and what is usual beside it, or "" if
no single column explains it. The partner is the column among whose similar rows such values are rarest, compared with
all rows.
"""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .._arrays import Bools, Float64s, Indices
from .._model.model import Model
from .._table.encoding import Encoding
from .._table.shown import percent, short
from .._table.table import Table
from . import words

SIMILAR_FRACTION, MIN_SIMILAR = 0.1, 30
"""Rows that are similar in a number: the nearest `SIMILAR_FRACTION` of the kept rows by rank, at least `MIN_SIMILAR`
rows. Rows that are similar in a category have the same value; there must be at least `MIN_SIMILAR` of them too."""
MAX_BESIDE_FRACTION, MAX_BESIDE_RATIO = 0.4, 0.7
"""A value of a category is unusual beside another value if at most `MAX_BESIDE_FRACTION` of the similar rows have it,
and if this is at most `MAX_BESIDE_RATIO` times the fraction of all rows that have it."""
MAX_EXTREME = 0.05
"""A number is unusual beside another value if at most this fraction of the similar rows has a number as extreme."""
MAX_PARTNERS_TRIED = 16
"""Partners that are tried: the columns that contributed most."""


class _KeptColumn(NamedTuple):
    """A column of the kept rows."""

    values: Float64s
    """Numbers; for columns of values, the place in `different`, so that equal values are equal numbers."""
    different: Float64s | None
    """The encoded values of a category or a flag, shape (v, parts); None for numbers."""
    missing: Bools
    order: Indices
    """Rows that have a value, in the order of their values."""


class Beside:
    """Finds beside what a value is unusual, among the kept rows of a model."""

    def __init__(self, model: Model) -> None:
        self.encoding: Encoding = model.encoding
        self._rows = model.kept_rows.rows
        self._n_rows = len(self._rows)
        self._columns: dict[int, _KeptColumn] = {}

    def reason(self, table: Table, encoded: Float64s, row: int, j: int, contributed: Float64s) -> str:
        """Return what is unusual about the value of column j of a row, which is also given encoded."""
        own = self._place(j, encoded)
        overall = self._fraction(j, own, np.arange(self._n_rows))
        is_number = self._column(j).different is None and not np.isnan(own)
        most = min(MAX_EXTREME if is_number else MAX_BESIDE_FRACTION, MAX_BESIDE_RATIO * overall)
        best: tuple[float, int, Indices] | None = None
        tried = [int(k) for k in np.argsort(-contributed, kind="stable") if k != j and self.encoding.columns[k].parts]
        for k in tried[:MAX_PARTNERS_TRIED]:
            similar = self._similar(k, self._place(k, encoded))
            if len(similar) >= MIN_SIMILAR:
                fraction = self._fraction(j, own, similar)
                if fraction <= most and (best is None or fraction < best[0]):
                    best = fraction, k, similar
        if best is None:
            return ""
        value, other = words.values_of(self.encoding, table, np.array([row]), [j, best[1]])[0]
        return self._sentence(j, value, best, other)

    def _column(self, j: int) -> _KeptColumn:
        if j not in self._columns:
            column, start = self.encoding.columns[j], int(self.encoding.starts[j])
            parts = self._rows[:, start : start + len(column.parts)]
            missing = parts[:, -1] > 0 if column.has_gaps else np.zeros(len(parts), bool)
            values, different = np.ascontiguousarray(parts[:, 0]), None
            is_flag = column.kind == "number" and len(np.unique(values)) <= 2
            if column.kind in ("category", "boolean") or is_flag:
                different, places = np.unique(parts, axis=0, return_inverse=True)
                values = places.ravel().astype(np.float64)
            present = np.flatnonzero(~missing)
            self._columns[j] = _KeptColumn(
                values, different, missing, present[np.argsort(values[present], kind="stable")]
            )
        return self._columns[j]

    def _place(self, j: int, encoded: Float64s) -> float:
        """Return the value of a row in the column: NaN if it is missing, -1 for a category that no kept row has."""
        column, start = self.encoding.columns[j], int(self.encoding.starts[j])
        parts, kept = encoded[start : start + len(column.parts)], self._column(j)
        if column.has_gaps and parts[-1] > 0:
            return float("nan")
        if kept.different is None:
            return float(parts[0])
        same = np.flatnonzero((kept.different == parts).all(axis=1))
        return float(same[0]) if len(same) else -1.0

    def _similar(self, k: int, value: float) -> Indices:
        """Return the kept rows that are like the row in column k."""
        kept = self._column(k)
        if np.isnan(value):
            return np.flatnonzero(kept.missing)
        if kept.different is not None:
            return np.flatnonzero((kept.values == value) & ~kept.missing)
        n = max(MIN_SIMILAR, round(SIMILAR_FRACTION * self._n_rows))
        if len(kept.order) < 2 * n:
            return kept.order[:0]
        sorted_values = kept.values[kept.order]
        low, high = (int(np.searchsorted(sorted_values, value, side)) for side in ("left", "right"))
        if high - low < n:  # as many on either side
            low = max(0, min((low + high - n) // 2, len(sorted_values) - n))
            high = low + n
        return kept.order[low:high]

    def _fraction(self, j: int, value: float, rows: Indices) -> float:
        """Return the fraction of rows whose value of column j is as extreme, or the same."""
        kept = self._column(j)
        if np.isnan(value):
            return float(kept.missing[rows].mean())
        if kept.different is not None:
            return float(((kept.values[rows] == value) & ~kept.missing[rows]).mean())
        values = kept.values[rows][~kept.missing[rows]]
        return float(min(1.0, 2.0 * min((values >= value).mean(), (values <= value).mean()))) if len(values) else 1.0

    def _sentence(self, j: int, own: words.Value, best: tuple[float, int, Indices], other: words.Value) -> str:
        fraction, k, similar = best
        column, partner, kept = self.encoding.columns[j], self.encoding.columns[k], self._column(j)
        name = short(column.name)
        beside_value = f"{short(partner.name)} {_quoted(partner.kind, other)}"
        if kept.different is not None or np.isnan(own.number):
            often = f"{percent(fraction)} of the rows" if fraction else "none of the rows"
            return f"{name} {_quoted(column.kind, own)} is unusual beside {beside_value} ({often} there)"
        values = kept.values[similar][~kept.missing[similar]]
        low, high = map(float, np.quantile(values, words.USUAL_QUANTILES, method="nearest"))
        text, usual = words.with_usual(column, own, low, high)
        said = f"{name}{' = ' if name[-1:].isdigit() else ' '}{text}"
        return f"{said} is unusual beside {beside_value} ({usual} there)"


_FINDERS: WeakKeyDictionary[Model, Beside] = WeakKeyDictionary()
"""Of the models in use: sorting the columns of the kept rows takes longer than explaining a row."""


def beside_finder(model: Model) -> Beside:
    """Return the finder of a model, the same in every call."""
    finder = _FINDERS.get(model)
    if finder is None:
        finder = _FINDERS[model] = Beside(model)
    return finder


def _quoted(kind: str, value: words.Value) -> str:
    if not value.text:
        return "missing"
    return f"'{short(value.text)}'" if kind == "category" else short(value.text)
