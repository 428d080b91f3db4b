"""Data frames: the columns of a pandas, polars or Arrow table or of a DuckDB relation.

In: a data frame. Out: a `RawColumn` for each column. This is the only module that knows data frames. An error says in
one sentence what is wrong, and names the column.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from .._arrays import Float64s
from ..exceptions import TableError
from .cells import read_numbers, seconds_in
from .columns import RawColumn, at_places, column_of_strings, nested_column, string_column
from .objects import MAX_EXACT_INTEGER, digits_of, read_objects


def as_frame(X: Any) -> Any:
    """Return the table as a narwhals frame, or None if it is not a data frame."""
    if type(X) is np.ndarray:
        return None
    try:
        frame = nw.from_native(collected(X), pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = getattr(X, "column_names", None) or X.columns  # in Arrow, X.columns are the values
        raise _repeated_names(list(names)) from error
    if isinstance(frame, nw.LazyFrame):
        if not hasattr(X, "arrow"):  # a DuckDB relation is lazy too, and has this method
            raise TableError("Expected a table, got a lazy frame: collect it first.")
        frame = frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def collected(X: Any) -> Any:
    """Return a record batch or a reader of Arrow, which can be read only once, as an Arrow table (a polars frame, if
    pyarrow is not installed). Other tables stay as they are."""
    if not is_stream(X):
        return X
    try:
        import pyarrow
    except ImportError:
        import polars

        return polars.DataFrame(X)
    return pyarrow.table(X)


def is_stream(X: Any) -> bool:
    """Return whether X gives batches of Arrow and is no data frame itself: a record batch, a reader."""
    if not hasattr(X, "__arrow_c_stream__") or not hasattr(X, "schema"):
        return False
    return not nw.dependencies.is_into_dataframe(X)


class Origin(NamedTuple):
    """Where a table came from, so that answers can come back in the same form."""

    library: str = ""
    """"pandas" or "polars"; "" for others."""
    index: Any = None
    """The index of a pandas frame."""


def origin_of(X: Any) -> Origin:
    """Return the library of a data frame, and the index of a pandas frame."""
    if nw.dependencies.is_pandas_dataframe(X):
        return Origin("pandas", X.index)
    return Origin("polars") if nw.dependencies.is_polars_dataframe(X) else Origin()


def make_frame(columns: Mapping[str, Any], origin: Origin) -> Any:
    """Return columns as a frame of the same library as a table, with its index; else of pandas or polars, whichever is
    installed."""
    for library in [origin.library] if origin.library else ["pandas", "polars"]:
        if find_spec(library) is None:
            continue
        if library == "pandas":
            import pandas

            return pandas.DataFrame(dict(columns), index=origin.index)
        import polars

        return polars.DataFrame(dict(columns))
    raise ImportError("A frame needs pandas or polars, neither is installed: pip install pandas")


def with_columns(X: Any, columns: Mapping[str, Any]) -> Any:
    """Return a data frame with more columns, of the same library and with the same index; of a list of dictionaries,
    dictionaries with more keys."""
    if isinstance(X, (list, tuple)) and X and isinstance(X[0], dict):
        taken, frame = set().union(*X), None
    else:
        frame = as_frame(X)
        taken = set() if frame is None else set(frame.columns)
        if frame is None or not all(isinstance(name, str) for name in frame.columns):
            raise TableError(
                f"Expected a data frame with column names, or a list of dictionaries, got {type(X).__name__}: there is "
                "nothing to add a column to."
            )
    for name in taken.intersection(columns):
        raise TableError(f"The table already has a column {name!r}: rename or drop it first.")
    if frame is None:
        added = zip(*(values.tolist() for values in columns.values()), strict=True)
        return [{**row, **dict(zip(columns, more, strict=True))} for row, more in zip(X, added, strict=True)]
    series = (nw.new_series(name, values, backend=frame.implementation) for name, values in columns.items())
    return frame.with_columns(*series).to_native()


def _repeated_names(names: list[Any]) -> TableError:
    repeated = sorted(str(name) for name, count in Counter(names).items() if count > 1)
    shown = f"{repeated[:3]} and {len(repeated) - 3} more" if len(repeated) > 3 else f"{repeated}"
    return TableError(f"Column names must be unique, got {shown} more than once: rename or drop them.")


def has_names(frame: Any, min_rows: int) -> bool:
    """Return whether a data frame has column names; False if they are the numbers 0, 1, ..., as of an array in a frame.

    Raises
    ------
    TableError
        If names are repeated or not text, or the table has too few rows or no column.
    """
    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names):
        if names != list(range(len(names))):
            odd = next(name for name in names if not isinstance(name, str))
            raise TableError(
                f"Column names must be text (string names), or the numbers 0, 1, ... in order, got {odd!r}: "
                "rename the columns."
            )
        if all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
            return False
        raise TableError("A table with text or dates needs column names that are text: rename the columns.")
    if len(set(names)) < len(names):
        raise _repeated_names(names)
    require_size(len(frame), len(names), min_rows)
    return True


def require_size(n_rows: int, n_columns: int, min_rows: int) -> None:
    """Raise if a table with column names has too few rows or no column."""
    if n_rows < min_rows or not n_columns:
        raise TableError(f"Expected a table of at least {min_rows} rows and a column, got {n_rows} x {n_columns}.")


def read_columns(frame: Any, unused: Collection[str], shown: Collection[str]) -> tuple[RawColumn, ...]:
    """Return the columns of a data frame. The values of columns in `unused` are not read: they come back as missing.
    A column in `shown` that cannot be read comes back as missing too; elsewhere it is an error."""
    columns = []
    for name in frame.columns:
        values = None if name in unused else _arrow_floats(frame, name)
        if values is None:
            columns.append(_read_column_if(name not in unused, name in shown, name, frame[name]))
        else:
            columns.append(RawColumn(name, "number", values))
    return tuple(columns)


ARROW_FLOATS = ("double", "float", "halffloat")
ARROW_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _arrow_floats(frame: Any, name: str) -> Float64s | None:
    """Return the numbers of an Arrow table's column, NaN where missing; None for columns that are not as simple.

    `_read_column` gives the same. But it goes through the frame library, which takes longer than the scoring of the two
    thousand rows that DuckDB hands over at a time.
    """
    if not frame.implementation.is_pyarrow():
        return None
    column = frame.to_native().column(name)
    if str(column.type) in ARROW_FLOATS:
        return np.asarray(column.to_numpy(), dtype=np.float64)
    if str(column.type) not in ARROW_INTEGERS or column.null_count:
        return None
    values = np.asarray(column.to_numpy(), dtype=np.float64)
    return values if np.abs(values).max(initial=0.0) < MAX_EXACT_INTEGER else None


def _read_column_if(used: bool, leniently: bool, name: str, series: Any) -> RawColumn:
    """Return a column; all its values are missing if it is not `used`, or if it cannot be read and that is allowed."""
    if used:
        try:
            return _read_column(name, series)
        except TableError:
            if not leniently:
                raise
    return RawColumn(name, "number", np.broadcast_to(np.nan, len(series)))


def _read_column(name: str, series: Any) -> RawColumn:
    dtype = series.dtype
    if dtype == nw.Boolean:
        return RawColumn(name, "boolean", _floats(series))
    if dtype == nw.Decimal:
        # Frame libraries convert a decimal by multiplying with a power of ten, which rounds. Its string does not.
        strings = _read_strings(name, series.cast(nw.String), "text")
        return RawColumn(name, "number", at_places(read_numbers(strings.strings), strings.values.astype(np.int64)))
    if dtype.is_numeric():
        values = _floats(series)
        return RawColumn(name, "number", values, exact=digits_of(values, series) if dtype.is_integer() else None)
    if dtype == nw.Date or dtype == nw.Datetime:
        stamps = series.cast(nw.Datetime("us")) if dtype == nw.Date else series
        return RawColumn(name, "time", _seconds(stamps.dt.timestamp("us")))
    if dtype == nw.Duration:
        return RawColumn(name, "duration", _seconds(series.dt.total_microseconds()))
    if dtype == nw.String:
        return _read_strings(name, series, "text")
    if dtype in (nw.Categorical, nw.Enum):
        return _read_strings(name, series.cast(nw.String), "category")
    if dtype in (nw.Object, nw.Time, nw.Unknown):
        return read_objects(name, series.to_list())
    return nested_column(name, len(series), str(dtype))


def _floats(series: Any) -> Float64s:
    """Return the numbers of a series, NaN where missing."""
    if series.is_null().any():
        present = ~np.asarray(series.is_null().to_numpy(), dtype=bool)
        values = np.full(len(series), np.nan)
        values[present] = _whole_floats(series.drop_nulls())
        return values
    return _whole_floats(series)


def _seconds(microseconds: Any) -> Float64s:
    values = np.full(len(microseconds), np.nan)
    present = ~np.asarray(microseconds.is_null().to_numpy(), dtype=bool)
    values[present] = seconds_in(np.asarray(microseconds.drop_nulls().to_numpy(), dtype=np.int64))
    return values


def _whole_floats(series: Any) -> Float64s:
    # Arrow refuses to convert an integer that a float would round, so NumPy does it.
    numbers = series if series.dtype in (nw.Int64, nw.UInt64) else series.cast(nw.Float64)
    return np.asarray(numbers.to_numpy(), dtype=np.float64)


MAX_LOOKUP_STRINGS = 10_000
"""For at most this many different strings, the frame library's lookup is faster than a loop over the rows."""


def _read_strings(name: str, series: Any, kind: str) -> RawColumn:
    """Return a column of strings, as places in a list of different strings."""
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    present = series.drop_nulls()
    try:
        different = present.unique()
        if 0 < len(different) <= MAX_LOOKUP_STRINGS:
            strings = sorted(different.to_list())
            codes = np.full(len(series), -1, dtype=np.int64)
            places = list(range(len(strings)))
            codes[~missing] = present.replace_strict(strings, places, return_dtype=nw.Int64).to_numpy()
            return string_column(name, codes, strings, kind)
    except UnicodeEncodeError:  # half a character (a lone surrogate), which only Python's strings may hold
        return column_of_strings(name, present.to_list(), missing, kind)
    if len(different) == len(present):  # all are different, as ids are: nothing to look up
        return string_column(name, np.where(missing, -1, np.cumsum(~missing) - 1), present.to_list(), kind)
    return column_of_strings(name, present.to_list(), missing, kind)
