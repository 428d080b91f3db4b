"""Schema: which columns a table must have.

In: a table of any kind. Out: its `Schema`; a schema then reads other tables into `Table` objects and checks their
columns. Every table that is scored must have the schema of the training table, and all parts of a table that is larger
than memory must have one schema.
"""

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..exceptions import TableError
from .arrays import read_matrix
from .cells import quoted
from .frames import as_frame, collected, has_names, is_stream, read_columns, require_size
from .rows import ObjectCells, cells_of_dicts, cells_of_few_rows
from .table import MIN_ROWS, ColumnTable, MatrixTable, Table

DETECTOR = "RGLD"
"""The name of the estimator in scikit-learn's messages about columns."""
MAX_LISTED_NAMES = 5


@dataclass(frozen=True)
class Schema:
    """The columns of a table: their names, or only their number."""

    n_columns: int
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, X: Any) -> "Schema":
        """Return the schema of a table, which may have no rows. No value of a named column is read."""
        dicts = cells_of_dicts(X)
        if dicts is not None:
            return cls(len(dicts.names), dicts.names)
        frame = as_frame(X)
        if frame is not None and has_names(frame, 0):
            return cls(len(frame.columns), tuple(frame.columns))
        return cls(read_matrix(X if frame is None else frame.to_numpy(), 0).shape[1], None)

    @classmethod
    def of_fitted(cls, estimator: Any) -> "Schema":
        """Return the schema of the table that an estimator was fitted on, from scikit-learn's attributes."""
        names = getattr(estimator, "feature_names_in_", None)
        return cls(estimator.n_features_in_, None if names is None else tuple(names))

    def read(self, X: Any, *, unused: Collection[str] = (), shown: Collection[str] = (), first_row: int = 0) -> Table:
        """Return a table of at least one row. It must have the columns of this schema, in the same order.

        Columns in `unused` must be there, but their values are not read. Columns in `shown` are read if they can be,
        and are missing otherwise. The columns of a table without names are taken by position; if this schema has names,
        scikit-learn's warning is given. Errors name a row by its index; that of the first row is `first_row`.
        """
        if self.names is None and _is_plain(X, 1) and X.shape[1] == self.n_columns:
            return MatrixTable(X)  # only its values could be wrong: skip all checks, so that one row is scored fast
        return _read(X, self, min_rows=1, unused=unused, shown=shown, first_row=first_row)[1]

    def read_part(self, X: Any, first_row: int, *, unused: Collection[str] = ()) -> Table:
        """Return a part of a table. Either all parts have column names, or no part has."""
        if is_stream(X):
            X = _in_order(collected(X), self)
        frame = as_frame(X)
        part_has_names = cells_of_dicts(X) is not None or (
            frame is not None and any(isinstance(name, str) for name in frame.columns)
        )
        if part_has_names != (self.names is not None):
            raise TableError(
                "Expected parts of one kind, got both arrays and tables with column names: convert the arrays to "
                "tables with these names."
            )
        return self.read(X, unused=unused, first_row=first_row)

    def check(self, found: "Schema") -> None:
        """Raise if a table with column names has other columns; warn if only one of the two tables has names."""
        self.warn_of_names(found.names)
        self.check_names(found.names)
        self.check_count(found.n_columns)

    def check_names(self, names: tuple[str, ...] | None) -> None:
        """Raise if a table has other column names: one sentence with the cure, then the words that scikit-learn's
        estimator checks ask for."""
        if self.names is None or names is None or names == self.names:
            return
        unseen, missing = sorted(set(names) - set(self.names)), sorted(set(self.names) - set(names))
        message = f"{_fault(unseen, missing)}\nThe feature names should match those that were passed during fit.\n"
        if unseen:
            message += f"Feature names unseen at fit time:\n{_listed(unseen)}"
        if missing:
            message += f"Feature names seen at fit time, yet now missing:\n{_listed(missing)}"
        if not unseen and not missing:
            message += "Feature names must be in the same order as they were in fit.\n"
        raise TableError(message)

    def check_count(self, n_columns: int) -> None:
        """Raise if a table has another number of columns, in scikit-learn's words."""
        if n_columns != self.n_columns:
            raise TableError(
                f"X has {n_columns} features, but {DETECTOR} is expecting {self.n_columns} features as input."
            )

    def warn_of_names(self, names: tuple[str, ...] | None) -> None:
        """Warn, in scikit-learn's words, if only one of the two tables has column names."""
        if names is None and self.names is not None:
            message = f"X does not have valid feature names, but {DETECTOR} was fitted with feature names"
            warnings.warn(message, UserWarning, stacklevel=2)
        elif names is not None and self.names is None:
            message = f"X has feature names, but {DETECTOR} was fitted without feature names"
            warnings.warn(message, UserWarning, stacklevel=2)


def read_training_table(X: Any, *, unused: Collection[str] = ()) -> tuple[Schema, Table]:
    """Return the schema of a training table, and the table. The values of columns in `unused` are not read."""
    if _is_plain(X, MIN_ROWS):
        return Schema(X.shape[1], None), MatrixTable(X)
    return _read(X, None, min_rows=MIN_ROWS, unused=unused)


def _read(
    X: Any,
    schema: Schema | None,
    *,
    min_rows: int,
    unused: Collection[str],
    shown: Collection[str] = (),
    first_row: int = 0,
) -> tuple[Schema, Table]:
    """Return the schema of a table, and the table. If a schema is given, the table must have it."""
    cells = _read_cells(X, schema)
    if cells is not None:
        require_size(len(cells.columns[0]), len(cells.names), min_rows)
        found = Schema(len(cells.names), cells.names)
        if schema is not None:
            schema.check(found)
        return found, ColumnTable(cells.read(unused, shown))
    frame = as_frame(_in_order(collected(X), schema) if is_stream(X) else X)
    if frame is not None and has_names(frame, min_rows):
        found = Schema(len(frame.columns), tuple(frame.columns))
        if schema is not None:
            schema.check(found)
        return found, ColumnTable(read_columns(frame, unused, shown))
    if schema is not None:
        schema.warn_of_names(None)
    matrix = read_matrix(X if frame is None else frame.to_numpy(), min_rows, first_row)
    found = Schema(matrix.shape[1], None)
    if schema is not None:
        schema.check_count(found.n_columns)
    return found, MatrixTable(matrix)


def _in_order(table: Any, schema: Schema | None) -> Any:
    """Return an Arrow table with its columns in the order of a schema, if it has just these columns."""
    names = getattr(table, "column_names", None) or table.columns
    if schema is None or schema.names is None or sorted(names) != sorted(schema.names):
        return table
    return table.select(schema.names)


def _read_cells(X: Any, schema: Schema | None) -> ObjectCells | None:
    """Return the cells of a list of dictionaries, or of a frame of a few rows that has the schema; None for others."""
    dicts = cells_of_dicts(X)
    if dicts is None:
        few = None if schema is None or schema.names is None else cells_of_few_rows(X)
        return few if few is not None and schema is not None and few.names == schema.names else None
    if schema is None or schema.names is None:
        return dicts
    unknown = [name for name in dicts.names if name not in schema.names]
    if unknown:
        raise TableError(
            f"The rows have the key {unknown[0]!r}, which is no column of the training table: leave it out, or rename "
            "it."
        )
    return dicts.in_order(schema.names)


def _is_plain(X: Any, min_rows: int) -> bool:
    """Return whether X is a matrix of floats with enough rows: only its values could be wrong."""
    is_matrix = type(X) is np.ndarray and X.ndim == 2 and X.dtype in (np.float64, np.float32)
    return is_matrix and len(X) >= min_rows and X.shape[1] > 0


CURE = "pass table[detector.feature_names_in_]"


def _fault(unseen: list[str], missing: list[str]) -> str:
    """Return what is wrong with the columns of a table, and what to do."""
    if missing:
        what = f"The table lacks {_quoted(missing)}, which the training table has"
        also = f", and has {_quoted(unseen)}, which it has not" if unseen else ""
        return f"{what}{also}: add or rename the columns, then {CURE}."
    if unseen:
        return f"The table has {_quoted(unseen)}, which the training table has not: {CURE}."
    return f"The table has the columns of the training table in another order: {CURE}."


def _quoted(names: list[str]) -> str:
    shown = ", ".join(quoted(name) for name in names[:MAX_LISTED_NAMES])
    more = f" and {len(names) - MAX_LISTED_NAMES:,} more" if len(names) > MAX_LISTED_NAMES else ""
    return f"the column{'s' * (len(names) > 1)} {shown}{more}"


def _listed(names: list[str]) -> str:
    more = "- ...\n" if len(names) > MAX_LISTED_NAMES else ""
    return "".join(f"- {name}\n" for name in names[:MAX_LISTED_NAMES]) + more
