"""Tables: rows and columns as they were read, before it is decided what the columns mean.

There are two kinds of `Table`: a `ColumnTable` has named columns of any kind, a `MatrixTable` is an array of numbers
without names. Other modules need not know which one they hold: both have methods to take rows, to join parts, to infer
how the columns are read (the `Encoding`) and to encode the rows.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from .._arrays import Bools, Float64s, Floats, Indices, Int64s
from ..exceptions import ParameterError, TableError
from .columns import RawColumn, as_strings, join_columns, without_values
from .encoding import Encoding, encode_columns, encode_matrix
from .infer import NaValues, infer_encoding, infer_matrix_encoding, na_values_of
from .summary import ColumnSummary

MIN_ROWS = 2
"""Rows that a fit needs: to estimate a density or to find a neighbour takes a second row."""
TRANSPOSED_ROWS = 256
"""Rows that are transposed at a time: those of a wide table fit the cache."""


class Table(ABC):
    """Rows and columns as they were read."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """The number of columns."""

    @abstractmethod
    def column(self, j: int, rows: Indices | None = None) -> RawColumn:
        """Return column j, of all rows or of some."""

    @abstractmethod
    def take(self, rows: Indices | Bools) -> Self:
        """Return a table of some rows, by index or by mask."""

    @abstractmethod
    def join(self, other: Self) -> Self:
        """Return a table of the rows of both parts."""

    @abstractmethod
    def with_categories(self, names: Collection[str]) -> Self:
        """Return the table with the columns of these names as categories."""

    @abstractmethod
    def without_values(self, na_values: NaValues) -> Self:
        """Return the table with these values as missing ones."""

    def plain_numbers(self, n_columns: int) -> Float64s | None:
        """Return the first columns as they are, shape (n_columns, n), if all columns are numbers without names."""
        return None

    @abstractmethod
    def summaries(self) -> tuple[ColumnSummary, ...]:
        """Return the summary of each column."""

    @abstractmethod
    def infer_encoding(
        self,
        readings: Mapping[str, str] | None,
        summaries: Sequence[ColumnSummary] | None = None,
        n_rows: int | None = None,
        na_values: NaValues = None,
    ) -> Encoding:
        """Return how each column is read, decided from these rows.

        The rows may be a sample of a long table: then `summaries` are those of all rows, or `n_rows` is the number of
        all rows. `readings` says how the user wants columns to be read, `na_values` which values count as missing.
        """

    @abstractmethod
    def encode(self, encoding: Encoding, row_indices: Int64s | None = None, unread: list[str] | None = None) -> Floats:
        """Return the rows as finite numbers, shape (n, e).

        Errors name a row by its index. If these rows are some of a longer table, `row_indices` are their indices in it,
        shape (n,). Sentences about values that cannot be read are added to `unread`.
        """


@dataclass(frozen=True, eq=False)
class ColumnTable(Table):
    """Named columns of any kind."""

    columns: tuple[RawColumn, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def column(self, j: int, rows: Indices | None = None) -> RawColumn:
        """Return column j, of all rows or of some."""
        return self.columns[j] if rows is None else self.columns[j].take(rows)

    def take(self, rows: Indices | Bools) -> Self:
        """Return a table of some rows, by index or by mask."""
        indices: Indices = np.arange(len(self))[rows]
        return type(self)(tuple(column.take(indices) for column in self.columns))

    def join(self, other: Self) -> Self:
        """Return a table of the rows of both parts."""
        return type(self)(tuple(join_columns(pair) for pair in zip(self.columns, other.columns, strict=True)))

    def with_categories(self, names: Collection[str]) -> Self:
        """Return the table with the columns of these names as categories."""
        return type(self)(tuple(_as_category(raw) if raw.name in names else raw for raw in self.columns))

    def without_values(self, na_values: NaValues) -> Self:
        """Return the table with these values as missing ones."""
        if not na_values:
            return self
        columns = (without_values(column, na_values_of(na_values, column.name)) for column in self.columns)
        return type(self)(tuple(columns))

    def summaries(self) -> tuple[ColumnSummary, ...]:
        """Return the summary of each column."""
        return tuple(ColumnSummary.of(column) for column in self.columns)

    def infer_encoding(
        self,
        readings: Mapping[str, str] | None,
        summaries: Sequence[ColumnSummary] | None = None,
        n_rows: int | None = None,
        na_values: NaValues = None,
    ) -> Encoding:
        """Return how each column is read, decided from these rows."""
        return infer_encoding(self.columns, readings, summaries, n_rows, na_values)

    def encode(self, encoding: Encoding, row_indices: Int64s | None = None, unread: list[str] | None = None) -> Floats:
        """Return the rows as finite numbers, shape (n, e)."""
        return encode_columns(encoding, self.columns, row_indices, unread)


def _as_category(column: RawColumn) -> RawColumn:
    return column if column.is_string else RawColumn(column.name, "category", *as_strings(column))


@dataclass(frozen=True, eq=False)
class MatrixTable(Table):
    """Numbers without names, NaN where missing."""

    matrix: Floats

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return int(self.matrix.shape[1])

    @cached_property
    def is_finite(self) -> bool:
        """Whether no value is missing or infinite. It may be False of finite numbers whose sum is too large for a
        float."""
        return bool(np.isfinite(np.einsum("ij->", self.matrix)))  # takes a quarter of the time of a sum in float64

    def column(self, j: int, rows: Indices | None = None) -> RawColumn:
        """Return column j, of all rows or of some. Its name is "column j"."""
        values = self.matrix[:, j] if rows is None else self.matrix[rows, j]
        return RawColumn(f"column {j}", "number", values.astype(np.float64))

    def plain_numbers(self, n_columns: int) -> Float64s | None:
        """Return the first columns as they are, shape (n_columns, n)."""
        numbers = np.empty((min(n_columns, self.n_columns), len(self)))
        for start in range(0, len(self), TRANSPOSED_ROWS):
            rows = slice(start, start + TRANSPOSED_ROWS)
            numbers[:, rows] = self.matrix[rows, : len(numbers)].T
        return numbers

    def take(self, rows: Indices | Bools) -> Self:
        """Return a table of some rows, by index or by mask."""
        return type(self)(self.matrix[rows])

    def join(self, other: Self) -> Self:
        """Return a table of the rows of both parts."""
        return type(self)(np.concatenate((self.matrix, other.matrix)))

    def with_categories(self, names: Collection[str]) -> Self:
        """Return the table unchanged: its columns have no names."""
        return self

    def without_values(self, na_values: NaValues) -> Self:
        """Return the table unchanged: `infer_encoding` refuses values for a table without names."""
        return self

    def summaries(self) -> tuple[ColumnSummary, ...]:
        """Return the summary of each column. The ranges of all columns are found at once, which is faster."""
        low, high = self.matrix.min(axis=0), self.matrix.max(axis=0)
        return tuple(
            ColumnSummary(len(self), 0, float(low[j]), float(high[j]), Counter())
            if np.isfinite(low[j]) and np.isfinite(high[j])
            else ColumnSummary.of(self.column(j))
            for j in range(self.n_columns)
        )

    def infer_encoding(
        self,
        readings: Mapping[str, str] | None,
        summaries: Sequence[ColumnSummary] | None = None,
        n_rows: int | None = None,
        na_values: NaValues = None,
    ) -> Encoding:
        """Return how each column is read. All columns are numbers; what is inferred is which have missing values."""
        if readings:
            raise ParameterError(
                "`columns` was given by name, but this table has no column names: pass a data frame, or leave it out."
            )
        if na_values:
            raise ParameterError(
                "`na_values` is for tables with column names, but this one has none: pass a data frame, or NaN where a "
                "value is missing."
            )
        return infer_matrix_encoding(self.matrix, self.is_finite, summaries)

    def encode(self, encoding: Encoding, row_indices: Int64s | None = None, unread: list[str] | None = None) -> Floats:
        """Return the rows as finite numbers, shape (n, e). All values of an array can be read."""
        return encode_matrix(encoding, self.matrix, self.is_finite, row_indices)


def require_rows(n_rows: int) -> None:
    """Raise if there are too few rows to learn from."""
    if n_rows < MIN_ROWS:
        raise TableError(f"Expected a table of at least {MIN_ROWS} rows, got {n_rows}.")
