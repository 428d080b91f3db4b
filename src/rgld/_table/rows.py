"""Rows: tables that come cell by cell, read without the column operations of a data frame library.

In: a list of dictionaries, one for each row, or a data frame of a few rows. Out: `ObjectCells`. The column operations
of a data frame library take milliseconds even for one row; its cells, as Python objects, are read in less than one.
Both ways give the same columns, to the bit.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from ..exceptions import TableError
from .columns import RawColumn
from .objects import read_objects

FIRST_MICROSECOND, LAST_MICROSECOND = -62_135_500_000_000_000, 253_402_200_000_000_000
"""Since 1970: the second day of year 1 and the last but one of year 9999, whatever the time zone."""
MAX_FEW_ROWS = 16
"""Data frames of at most this many rows are read cell by cell."""
POLARS_TYPES = frozenset(("Boolean", "String", "Date", "Float32", "Float64", "Int8", "Int16", "Int32", "Int64")) | {
    *("UInt8", "UInt16", "UInt32", "UInt64", "Categorical", "Enum")
}
"""Types of polars whose Python objects hold all that the column holds. (A Datetime does if it is in microseconds.)"""

PANDAS_TYPES = frozenset(("StringDtype", "BooleanDtype", "DatetimeTZDtype", "Float32Dtype", "Float64Dtype")) | {
    *("Int8Dtype", "Int16Dtype", "Int32Dtype", "Int64Dtype", "UInt8Dtype", "UInt16Dtype", "UInt32Dtype", "UInt64Dtype")
}
"""Types of pandas, beside those of NumPy, of which the same is true."""


class ObjectCells(NamedTuple):
    """A table as Python objects."""

    names: tuple[str, ...]
    columns: tuple[list[Any], ...]
    """The cells of each column."""
    is_typed: tuple[bool, ...]
    """Whether the column of a data frame had a type: its cells are then of one kind in all rows of the table."""

    def read(self, unused: Collection[str], shown: Collection[str]) -> tuple[RawColumn, ...]:
        """Return the columns, as `frames.read_columns` does."""
        return tuple(
            _read_column(name, values, typed, name not in unused, name in shown)
            for name, values, typed in zip(self.names, self.columns, self.is_typed, strict=True)
        )

    def in_order(self, names: tuple[str, ...]) -> "ObjectCells":
        """Return the columns of these names, in this order. Columns that are not there are missing in all rows."""
        known = dict(zip(self.names, self.columns, strict=True))
        gap: list[Any] = [None] * len(self.columns[0]) if self.columns else []
        return ObjectCells(names, tuple(known.get(name, gap) for name in names), (False,) * len(names))


def _read_column(name: str, values: list[Any], typed: bool, used: bool, leniently: bool) -> RawColumn:
    if used:
        try:
            column = read_objects(name, values)
            return replace(column, is_of_objects=False) if typed and column.is_of_objects else column
        except TableError:
            if not leniently:
                raise
    return RawColumn(name, "number", np.full(len(values), np.nan))


def cells_of_dicts(X: Any) -> ObjectCells | None:
    """Return the cells of a list of dictionaries, None for anything else.

    The columns are the keys, in the order in which they first occur. A key that a row does not have is a missing value.
    """
    if not isinstance(X, (list, tuple)) or not X or not isinstance(X[0], dict):
        return None
    odd = next((i for i, row in enumerate(X) if not isinstance(row, dict)), None)
    if odd is not None:
        raise TableError(f"Expected a list of dictionaries, got {type(X[odd]).__name__} in row {odd}: convert it.")
    names = tuple(X[0]) if len(X) == 1 else tuple(dict.fromkeys(name for row in X for name in row))
    odd_name = next((name for name in names if not isinstance(name, str)), None)
    if odd_name is not None or not names:
        found = "no keys" if not names else f"the key {odd_name!r}"
        raise TableError(f"Expected dictionaries with column names as keys, got {found}: name the columns by strings.")
    return ObjectCells(names, tuple([row.get(name) for row in X] for name in names), (False,) * len(names))


def cells_of_few_rows(X: Any) -> ObjectCells | None:
    """Return the cells of a pandas or polars frame of a few rows; None for any other table, and for a frame that holds
    something for which the frame library must be asked."""
    if not hasattr(X, "columns") or not 0 < len(X) <= MAX_FEW_ROWS:
        return None
    if nw.dependencies.is_polars_dataframe(X):
        return _polars_cells(X)
    return _pandas_cells(X) if nw.dependencies.is_pandas_dataframe(X) else None


def _polars_cells(frame: Any) -> ObjectCells | None:
    for place, dtype in enumerate(frame.dtypes):
        name = type(dtype).__name__ if not isinstance(dtype, type) else dtype.__name__
        if name not in POLARS_TYPES and not (name in ("Datetime", "Duration") and dtype.time_unit == "us"):
            return None
        if name == "Datetime" and not _are_python_dates(frame.to_series(place).to_physical()):
            return None
    try:
        rows = frame.rows()
    except (ValueError, OverflowError):  # a date beyond the years that Python knows
        return None
    names = tuple(frame.columns)
    return ObjectCells(names, tuple(map(list, zip(*rows, strict=True))), (True,) * len(names))


def _are_python_dates(microseconds: Any) -> bool:
    """Return whether dates are in the years that Python knows. (Of others, polars makes a panic, not an error.)"""
    low, high = microseconds.min(), microseconds.max()
    return low is None or bool(low >= FIRST_MICROSECOND and high <= LAST_MICROSECOND)


def _pandas_cells(frame: Any) -> ObjectCells | None:
    dtypes = frame.dtypes.tolist()
    for dtype in dtypes:
        is_known = dtype.kind in "biufMO" if isinstance(dtype, np.dtype) else type(dtype).__name__ in PANDAS_TYPES
        if not is_known:  # a duration may have nanoseconds, which its Python object rounds in another way
            return None
    names = tuple(frame.columns.tolist())
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        return None
    cells = frame.to_numpy(dtype=object)
    typed = tuple(dtype is not np.dtype(object) for dtype in dtypes)
    return ObjectCells(names, tuple(map(list, cells.T)), typed)
