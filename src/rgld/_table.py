"""Tables in: whatever holds rows and columns becomes columns that were read, or a float matrix.

In: a NumPy array, a list of rows, a pandas, polars or Arrow table, a DuckDB relation. Out: a list of `RawColumn` for a
table with names, a float matrix for one without. This is the only module that knows frames. What is wrong with a table
is said in one sentence that names the column.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ._cells import RawColumn, at_places, number_texts, read_numbers, seconds_in, text_column
from ._objects import digits_of, read_objects
from .exceptions import TableError

SMALLEST_TABLE = 2
"""Rows needed to learn from: a density and a neighbour need another row."""

Table = list[RawColumn] | NDArray[np.floating]


def require_rows(n_rows: int) -> None:
    """Raise if there are too few rows to learn from."""
    if n_rows < SMALLEST_TABLE:
        raise TableError(f"Expected a table of at least {SMALLEST_TABLE} rows, got {n_rows}.")


def read_names(estimator: BaseEstimator, X: Any) -> None:
    """Set column names and count on the estimator, by one part of a table."""
    frame = _as_frame(X)
    if frame is not None and _has_names(estimator, frame, fitting=True, least=0):
        return
    if frame is None:
        _check_array(X)
    validate_data(estimator, X if frame is None else frame.to_numpy(), ensure_all_finite=False, ensure_min_samples=0)


def read_like(estimator: BaseEstimator, X: Any, unused: Collection[str]) -> Table:
    """Return a part of a table, of which another part set the names: all must have names, or none."""
    frame = _as_frame(X)
    has_names = frame is not None and any(isinstance(name, str) for name in frame.columns)
    if has_names != hasattr(estimator, "feature_names_in_"):
        raise TableError("Expected parts of one kind, got arrays and tables with column names: convert the former.")
    return read_table(estimator, X, fitting=False, unused=unused)


def read_table(
    estimator: BaseEstimator, X: Any, *, fitting: bool, unused: Collection[str] = (), shown: Collection[str] = ()
) -> Table:
    """Return the columns of a table with names, or the matrix of one without; gaps are NaN.

    When fitting, column names and count are set on the estimator; otherwise the table must have the same names in the
    same order. Columns in `unused` must be there, but their values are not read; those in `shown` are
    read as far as they can be.
    """
    if not fitting and _is_plain(estimator, X):
        return X  # type: ignore[no-any-return]
    frame = _as_frame(X)
    if frame is not None and _has_names(estimator, frame, fitting):
        return [_read_column_if(name not in unused, name in shown, name, frame[name]) for name in frame.columns]
    X = X if frame is None else frame.to_numpy()
    if frame is None:
        _check_array(X)
    matrix: NDArray[np.floating] = validate_data(
        estimator,
        X,
        reset=fitting,
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
        ensure_min_samples=SMALLEST_TABLE if fitting else 1,
    )
    return matrix


def _is_plain(estimator: BaseEstimator, X: Any) -> bool:
    """Tell whether X is a matrix that nothing could refuse but its values: a row must not wait for the rest."""
    return (
        type(X) is np.ndarray
        and X.dtype in (np.float64, np.float32)
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def _as_frame(X: Any) -> Any:
    """Return the table as a narwhals frame, or None if it is not a frame."""
    if type(X) is np.ndarray:
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = getattr(X, "column_names", None) or X.columns  # Arrow's columns are the values
        raise _repeated_names(list(names)) from error
    if isinstance(frame, nw.LazyFrame):
        if not hasattr(X, "arrow"):  # a DuckDB relation is one
            raise TableError("Expected a table, got a lazy frame: collect it first.")
        frame = frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def _repeated_names(names: list[Any]) -> TableError:
    repeated = sorted(str(name) for name, count in Counter(names).items() if count > 1)
    shown = f"{repeated[:3]} and {len(repeated) - 3} more" if len(repeated) > 3 else f"{repeated}"
    return TableError(f"Column names must be unique, got {shown} more than once: rename or drop them.")


def _has_names(estimator: BaseEstimator, frame: Any, fitting: bool, least: int | None = None) -> bool:
    """Check the frame's names; False if it is an array in a frame: numbers whose columns are numbered."""
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
        raise TableError("A table with texts or dates needs column names that are text: rename the columns.")
    if len(set(names)) < len(names):
        raise _repeated_names(names)
    least = (SMALLEST_TABLE if fitting else 1) if least is None else least
    if len(frame) < least or not names:
        raise TableError(f"Expected a table of at least {least} rows and a column, got {len(frame)} x {len(names)}.")
    validate_data(estimator, frame.to_native(), reset=fitting, skip_check_array=True)
    return True


def _read_column_if(used: bool, leniently: bool, name: str, series: Any) -> RawColumn:
    """Return the column, without values if it is not used, or if it cannot be read and need not be."""
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
        # Frame libraries multiply by powers of ten, which rounds; a decimal's text is the number it is.
        texts = _read_texts(name, series.cast(nw.String), "text")
        return RawColumn(name, "number", at_places(read_numbers(texts.texts), texts.values.astype(np.int64)))
    if dtype.is_numeric():
        values = _floats(series)
        return RawColumn(name, "number", values, exact=digits_of(values, series) if dtype.is_integer() else None)
    if dtype == nw.Date or dtype == nw.Datetime:
        stamps = series.cast(nw.Datetime("us")) if dtype == nw.Date else series
        return RawColumn(name, "time", _seconds(stamps.dt.timestamp("us")))
    if dtype == nw.Duration:
        return RawColumn(name, "duration", _seconds(series.dt.total_microseconds()))
    if dtype == nw.String:
        return _read_texts(name, series, "text")
    if dtype in (nw.Categorical, nw.Enum):
        return _read_texts(name, series.cast(nw.String), "category")
    if dtype in (nw.Object, nw.Time, nw.Unknown):
        return read_objects(name, series.to_list())
    raise TableError(f"Column {name!r} holds {dtype}, expected numbers, texts or dates: drop it or convert it first.")


def _floats(series: Any) -> NDArray[np.float64]:
    """Return the numbers of a series, NaN where there is none."""
    if series.is_null().any():
        present = ~np.asarray(series.is_null().to_numpy(), dtype=bool)
        values = np.full(len(series), np.nan)
        values[present] = _whole_floats(series.drop_nulls())
        return values
    return _whole_floats(series)


def _seconds(microseconds: Any) -> NDArray[np.float64]:
    values = np.full(len(microseconds), np.nan)
    present = ~np.asarray(microseconds.is_null().to_numpy(), dtype=bool)
    values[present] = seconds_in(np.asarray(microseconds.drop_nulls().to_numpy(), dtype=np.int64))
    return values


def _whole_floats(series: Any) -> NDArray[np.float64]:
    # Arrow refuses to round an integer.
    numbers = series if series.dtype in (nw.Int64, nw.UInt64) else series.cast(nw.Float64)
    return np.asarray(numbers.to_numpy(), dtype=np.float64)


MANY_TO_LOOK_UP = 10_000
"""Up to so many different texts the frame library looks up faster than a loop over rows."""


def _read_texts(name: str, series: Any, kind: str) -> RawColumn:
    """Number the different texts."""
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    present = series.drop_nulls()
    try:
        different = present.unique()
        if 0 < len(different) <= MANY_TO_LOOK_UP:
            texts = sorted(different.to_list())
            filled = series.fill_null(texts[0]) if missing.any() else series
            codes = filled.replace_strict(texts, list(range(len(texts))), return_dtype=nw.Int64).to_numpy()
            return text_column(name, np.where(missing, -1, codes), texts, kind)
    except UnicodeEncodeError:  # half a character, which Python's strings may hold and Arrow's may not
        return number_texts(name, present.to_list(), missing, kind)
    if len(different) == len(present):  # ids: nothing to look up
        return text_column(name, np.where(missing, -1, np.cumsum(~missing) - 1), present.to_list(), kind)
    return number_texts(name, present.to_list(), missing, kind)


def _check_array(X: Any) -> None:
    """Raise for what is not an array of numbers."""
    if type(X) is dict or isinstance(X, Iterator):  # some sparse matrices are dictionaries too
        raise TableError(f"Expected a table with rows and columns, got {type(X).__name__}: pass an array or a frame.")
    if np.ma.is_masked(X):
        raise TableError("Expected numbers, got an array with masked cells: fill or drop them first.")
    dtype = getattr(X, "dtype", None)
    if dtype is None and isinstance(X, (list, tuple)):
        with contextlib.suppress(ValueError):  # rows of different lengths: scikit-learn says so
            dtype = np.asarray(X).dtype
    if not isinstance(dtype, np.dtype):
        return
    if dtype.kind == "O":
        _check_cells(np.asarray(X))
    elif dtype.kind not in "biufc":  # scikit-learn refuses complex numbers in its own words
        kind = "dates or durations" if dtype.kind in "mM" else "text" if dtype.kind in "UST" else "records or raw bytes"
        raise TableError(f"Expected numbers, got an array of {kind} ({dtype}): pass a numeric array or a typed table.")


def _check_cells(cells: NDArray[np.object_]) -> None:
    """An object array may hold Python numbers; anything else is an error, even a text that reads like a number."""
    for index in np.ndindex(cells.shape):
        value: Any = cells[index]
        if isinstance(value, (Real, np.number, np.bool_)):
            continue
        place = f"Column {index[-1]} holds {type(value).__name__} in row {index[0]}"
        if isinstance(value, (str, bytes)):
            raise TableError(f"{place} ({str(value)[:40]!r}), expected numbers: drop it or encode it first.")
        raise TypeError(f"{place}: every argument must be a number, not a string or an object without a number.")
