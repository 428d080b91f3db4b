"""Tables in: whatever holds rows and columns becomes columns that were read, or a float matrix.

In: a NumPy array, a list of rows, a pandas, polars or Arrow table, a DuckDB relation. Out: a list of `RawColumn` for a
table with names, a float matrix for one without. This is the only module that knows frames. What is wrong with a table
is said in one sentence that names the column.
"""

import contextlib
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ._cells import RawColumn, seconds_of, text_column
from .exceptions import TableError

SMALLEST_TABLE = 2
"""Rows needed to learn from: a density and a neighbour need another row."""

Table = list[RawColumn] | NDArray[np.floating]


def read_table(estimator: BaseEstimator, X: Any, *, fitting: bool) -> Table:
    """Return the columns of a table with names, or the matrix of one without; gaps are NaN.

    When fitting, column names and count are set on the estimator; otherwise the table must have the same names in the
    same order.
    """
    if not fitting and _is_plain(estimator, X):
        return X  # type: ignore[no-any-return]
    frame = _as_frame(X)
    if frame is not None and (columns := _read_frame(estimator, frame, fitting=fitting)) is not None:
        return columns
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
        names = list(X.columns)
        repeated = sorted({str(name) for name in names if names.count(name) > 1})
        raise TableError(f"Column names must be unique, got {repeated} more than once: rename or drop them.") from error
    if isinstance(frame, nw.LazyFrame):
        if not hasattr(X, "arrow"):  # a DuckDB relation is one
            raise TableError("Expected a table, got a lazy frame: collect it first.")
        frame = frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def _read_frame(estimator: BaseEstimator, frame: Any, *, fitting: bool) -> list[RawColumn] | None:
    """Return the frame's columns, or None if it is an array in a frame: numbers whose columns are numbered."""
    names = list(frame.columns)
    if not all(isinstance(name, str) for name in names):
        if names != list(range(len(names))):
            odd = next(name for name in names if not isinstance(name, str))
            raise TableError(
                f"Column names must be text (string names), or the numbers 0, 1, ... in order, got {odd!r}: "
                "rename the columns."
            )
        if all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
            return None
        raise TableError("A table with texts or dates needs column names that are text: rename the columns.")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableError(f"Column names must be unique, got {repeated} more than once: rename or drop them.")
    least = SMALLEST_TABLE if fitting else 1
    if len(frame) < least or not names:
        raise TableError(f"Expected a table of at least {least} rows and a column, got {len(frame)} x {len(names)}.")
    validate_data(estimator, frame.to_native(), reset=fitting, skip_check_array=True)
    return [_read_column(name, frame[name]) for name in names]


def _read_column(name: str, series: Any) -> RawColumn:
    dtype = series.dtype
    if dtype == nw.Boolean:
        return RawColumn(name, "boolean", _floats(series))
    if dtype.is_numeric():
        return RawColumn(name, "number", _floats(series))
    if dtype == nw.Date or dtype == nw.Datetime:
        stamps = series.cast(nw.Datetime("us")) if dtype == nw.Date else series
        return RawColumn(name, "time", _floats(stamps.dt.timestamp("us")) / 1e6)
    if dtype == nw.Duration:
        return RawColumn(name, "duration", _floats(series.dt.total_microseconds()) / 1e6)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return _read_texts(name, series.cast(nw.String))
    if dtype in (nw.Object, nw.Time, nw.Unknown):
        return _read_objects(name, series.to_list())
    raise TableError(f"Column {name!r} holds {dtype}, expected numbers, texts or dates: drop it or convert it first.")


def _floats(series: Any) -> NDArray[np.float64]:
    """Return the numbers of a series, NaN where there is none."""
    if series.is_null().any():
        present = ~np.asarray(series.is_null().to_numpy(), dtype=bool)
        values = np.full(len(series), np.nan)
        values[present] = np.asarray(series.drop_nulls().cast(nw.Float64).to_numpy(), dtype=np.float64)
        return values
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def _read_texts(name: str, series: Any) -> RawColumn:
    """Number the different texts where the frame library can: it is faster than a loop over rows."""
    texts = sorted(series.drop_nulls().unique().to_list())
    if not texts:
        return RawColumn(name, "text", np.full(len(series), -1))
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    filled = series.fill_null(texts[0]) if missing.any() else series
    codes = filled.replace_strict(texts, list(range(len(texts))), return_dtype=nw.Int64).to_numpy()
    return text_column(name, np.where(missing, -1, codes), texts)


def _read_objects(name: str, values: list[Any]) -> RawColumn:
    """Read a column of Python objects: all numbers, all dates, or else their texts."""
    # A missing value is None, or one that does not equal itself (NaN, NaT), or one that cannot say (pandas.NA).
    present = [value for value in values if not _is_missing(value)]
    kinds: tuple[tuple[str, Any, Any], ...] = (
        ("boolean", (bool, np.bool_), float),
        ("number", (Real, np.number), float),
        ("time", datetime, seconds_of),
        ("time", date, lambda day: seconds_of(datetime(day.year, day.month, day.day))),
        ("duration", timedelta, timedelta.total_seconds),
        ("duration", time, lambda t: t.hour * 3600.0 + t.minute * 60.0 + t.second + t.microsecond / 1e6),
    )
    for kind, types, convert in kinds:
        if present and all(isinstance(value, types) for value in present):
            return RawColumn(
                name, kind, np.array([np.nan if _is_missing(v) else convert(v) for v in values], dtype=np.float64)
            )
    odd = next((value for value in present if isinstance(value, (dict, list, set, bytes, np.ndarray))), None)
    if odd is not None:
        raise TableError(
            f"Column {name!r} holds {type(odd).__name__}, expected numbers, texts or dates: drop it first."
        )
    texts = sorted({str(value) for value in present})
    places = {text: place for place, text in enumerate(texts)}
    codes = np.array([-1 if _is_missing(value) else places[str(value)] for value in values], dtype=np.int64)
    return text_column(name, codes, texts)


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


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
