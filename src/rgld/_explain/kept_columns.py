"""The columns of the kept rows: what explanations compare a value with.

In: a model. Out: for each column of the table the values that the kept rows have, sorted once and kept for the next
explanation, because sorting takes longer than explaining a row.
"""

from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from .._arrays import Bools, Float64s, Indices
from .._model.model import Model
from .._table.encoding import Column, Encoding

USUAL_QUANTILES = (0.025, 0.975)
"""The usual range of a column lies between these quantiles: it holds 95 % of the training rows."""


class KeptColumn:
    """A column of the kept rows."""

    def __init__(self, column: Column, parts: Float64s) -> None:
        self.column = column
        self._parts = parts
        """The encoded columns of the column, shape (kept rows, parts)."""

    @cached_property
    def _missing(self) -> Bools:
        """The indicator of missing values is above 0 where a value is missing."""
        return self._parts[:, -1] > 0 if self.column.has_gaps else np.zeros(len(self._parts), bool)

    @cached_property
    def present(self) -> Float64s:
        """The numbers, times or truth values of the rows that have one."""
        present: Float64s = self._parts[~self._missing, 0]
        return present

    @cached_property
    def usual(self) -> tuple[float, float]:
        """The usual range. Its bounds are values of the column: no half persons, and no time of day in a column of
        dates. NaN for a category and if no row has a value."""
        if self.column.kind in ("category", "dropped") or not len(self.present):
            return float("nan"), float("nan")
        low, high = np.quantile(self.present, USUAL_QUANTILES, method="nearest")
        return float(low), float(high)

    @cached_property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        return float(self.present.min()), float(self.present.max())

    def fraction_with(self, number: float) -> float:
        """Return the fraction of the rows that have a value which have this one; 0 if no row has a value."""
        return np.count_nonzero(self.present == number) / max(len(self.present), 1)

    @cached_property
    def has_values(self) -> bool:
        """Whether rows have the same value or another one, as in a category or a flag; numbers are more or less."""
        is_number = self.column.kind == "number"
        return self.column.kind in ("category", "boolean") or (is_number and len(np.unique(self._parts[:, 0])) <= 2)

    @cached_property
    def _values(self) -> tuple[Float64s, dict[bytes, float]]:
        """A number for each row, NaN if the value is missing; and of a column of values the number of each value, by
        its encoded columns."""
        if not self.has_values:
            return np.where(self._missing, np.nan, self._parts[:, 0]), {}
        different, places = np.unique(self._parts + 0.0, axis=0, return_inverse=True)  # -0 + 0 is 0
        numbers = {value.tobytes(): float(place) for place, value in enumerate(different)}
        return np.where(self._missing, np.nan, places.ravel()), numbers

    @cached_property
    def _order(self) -> tuple[Indices, Float64s]:
        """The rows that have a value, in the order of their values, and these values."""
        values = self._values[0]
        present = np.flatnonzero(~self._missing)
        order = present[np.argsort(values[present], kind="stable")]
        return order, values[order]

    @cached_property
    def without_value(self) -> Indices:
        """The rows whose value is missing."""
        return np.flatnonzero(self._missing)

    def number_of(self, parts: Float64s) -> float:
        """Return the number of an encoded value: NaN if it is missing, -1 for a category that no kept row has."""
        if self.column.has_gaps and parts[-1] > 0:
            return float("nan")
        return self._values[1].get((parts + 0.0).tobytes(), -1.0) if self.has_values else float(parts[0])

    def rows_near(self, number: float, n_rows: int) -> Indices:
        """Return the rows that have the value or, in a column of numbers, the nearest `n_rows` by rank, with all that
        are as near; no row if fewer than twice as many have a value."""
        if np.isnan(number):
            return self.without_value
        order, values = self._order
        low, high = int(values.searchsorted(number, "left")), int(values.searchsorted(number, "right"))
        if self.has_values:
            return order[low:high]
        if len(order) < 2 * n_rows:
            return order[:0]
        if high - low < n_rows:  # as many on either side
            low = max(0, min((low + high - n_rows) // 2, len(order) - n_rows))
            high = low + n_rows
        return order[low:high]

    def fraction(self, number: float, rows: Indices | slice = slice(None)) -> float:
        """Return the fraction of rows whose value is as extreme or, in a column of values, the same."""
        if np.isnan(number):
            return _mean(self._missing[rows])
        values = self._values[0][rows]
        if self.has_values:
            return _mean(values == number)
        n_present = len(values) - np.count_nonzero(self._missing[rows])
        tail = min(np.count_nonzero(values >= number), np.count_nonzero(values <= number))
        return min(1.0, 2.0 * tail / n_present) if n_present else 1.0

    def usual_among(self, rows: Indices) -> tuple[float, float]:
        """Return the usual range of the values that some rows have."""
        values = self._values[0][rows]
        low, high = np.quantile(values[~self._missing[rows]], USUAL_QUANTILES, method="nearest")
        return float(low), float(high)


class KeptColumns:
    """The columns of the kept rows of a model."""

    def __init__(self, encoding: Encoding, rows: Float64s) -> None:
        self.encoding = encoding
        self.n_rows = len(rows)
        self._rows = rows
        self._slices = [
            slice(int(start), int(start) + len(column.parts))
            for start, column in zip(encoding.starts, encoding.columns, strict=True)
        ]
        self._columns: dict[int, KeptColumn] = {}

    def __getitem__(self, j: int) -> KeptColumn:
        """Return column j of the table."""
        kept = self._columns.get(j)
        if kept is None:
            parts = np.ascontiguousarray(self._rows[:, self._slices[j]])
            kept = self._columns[j] = KeptColumn(self.encoding.columns[j], parts)
        return kept

    def number_of(self, j: int, encoded: Float64s) -> float:
        """Return the number of column j of an encoded row."""
        return self[j].number_of(encoded[self._slices[j]])


_KEPT: WeakKeyDictionary[Model, KeptColumns] = WeakKeyDictionary()
"""Of the models in use."""


def kept_columns(model: Model) -> KeptColumns:
    """Return the columns of a model's kept rows, the same in every call."""
    kept = _KEPT.get(model)
    if kept is None:
        kept = _KEPT[model] = KeptColumns(model.encoding, model.kept_rows.rows)
    return kept


def _mean(flags: Bools) -> float:
    return np.count_nonzero(flags) / len(flags)
