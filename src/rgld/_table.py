"""Tables in: whatever holds rows and columns becomes columns that were read, or a float matrix.

In: a NumPy array, a list of rows, a pandas, polars or Arrow table, a DuckDB relation. Out: a list of `RawColumn` for a
table with names, a float matrix for one without. This is the only module that knows frames. What is wrong with a table
is said in one sentence that names the column.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ._cells import RawColumn, at_places, number_text, read_numbers, seconds_of, text_column
from .exceptions import TableError

SMALLEST_TABLE = 2
"""Rows needed to learn from: a density and a neighbour need another row."""

Table = list[RawColumn] | NDArray[np.floating]


def read_table(estimator: BaseEstimator, X: Any, *, fitting: bool, unused: Collection[str] = ()) -> Table:
    """Return the columns of a table with names, or the matrix of one without; gaps are NaN.

    When fitting, column names and count are set on the estimator; otherwise the table must have the same names in the
    same order. Columns in `unused` must be there, but their values are not read.
    """
    if not fitting and _is_plain(estimator, X):
        return X  # type: ignore[no-any-return]
    frame = _as_frame(X)
    if frame is not None and (columns := _read_frame(estimator, frame, fitting, unused)) is not None:
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


def _read_frame(estimator: BaseEstimator, frame: Any, fitting: bool, unused: Collection[str]) -> list[RawColumn] | None:
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
    if len(set(names)) < len(names):
        raise _repeated_names(names)
    least = SMALLEST_TABLE if fitting else 1
    if len(frame) < least or not names:
        raise TableError(f"Expected a table of at least {least} rows and a column, got {len(frame)} x {len(names)}.")
    validate_data(estimator, frame.to_native(), reset=fitting, skip_check_array=True)
    nothing = np.broadcast_to(np.nan, len(frame))
    return [RawColumn(n, "number", nothing) if n in unused else _read_column(n, frame[n]) for n in names]


def _read_column(name: str, series: Any) -> RawColumn:
    dtype = series.dtype
    if dtype == nw.Boolean:
        return RawColumn(name, "boolean", _floats(series))
    if dtype == nw.Decimal:
        # Frame libraries multiply by powers of ten, which rounds; a decimal's text is the number it is.
        texts = _read_texts(name, series.cast(nw.String), "text")
        return RawColumn(name, "number", at_places(read_numbers(texts.texts), texts.values.astype(np.int64)))
    if dtype.is_numeric():
        return RawColumn(name, "number", _floats(series))
    if dtype == nw.Date or dtype == nw.Datetime:
        stamps = series.cast(nw.Datetime("us")) if dtype == nw.Date else series
        return RawColumn(name, "time", _floats(stamps.dt.timestamp("us")) / 1e6)
    if dtype == nw.Duration:
        return RawColumn(name, "duration", _floats(series.dt.total_microseconds()) / 1e6)
    if dtype == nw.String:
        return _read_texts(name, series, "text")
    if dtype in (nw.Categorical, nw.Enum):
        return _read_texts(name, series.cast(nw.String), "category")
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


MANY_TEXTS = 10_000
"""Up to so many different texts the frame library looks up faster than a loop over rows."""


def _read_texts(name: str, series: Any, kind: str) -> RawColumn:
    """Number the different texts."""
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    present = series.drop_nulls()
    try:
        different = present.unique()
        if 0 < len(different) <= MANY_TEXTS:
            texts = sorted(different.to_list())
            filled = series.fill_null(texts[0]) if missing.any() else series
            codes = filled.replace_strict(texts, list(range(len(texts))), return_dtype=nw.Int64).to_numpy()
            return text_column(name, np.where(missing, -1, codes), texts, kind)
    except UnicodeEncodeError:  # half a character, which Python's strings may hold and Arrow's may not
        return _number_texts(name, present.to_list(), missing, kind)
    if len(different) == len(present):  # ids: nothing to look up
        return text_column(name, np.where(missing, -1, np.cumsum(~missing) - 1), present.to_list(), kind)
    return _number_texts(name, present.to_list(), missing, kind)


def _number_texts(name: str, present: list[str], missing: NDArray[np.bool_], kind: str) -> RawColumn:
    """Number the different texts in the order they come in."""
    places = {text: place for place, text in enumerate(dict.fromkeys(present))}
    codes = np.full(len(missing), -1)
    codes[~missing] = np.fromiter(map(places.__getitem__, present), np.int64, len(present))
    return text_column(name, codes, list(places), kind)


def _seconds(value: Any) -> float:
    """Return the seconds of a date, with or without a time of day, a time of day or a duration."""
    if isinstance(value, datetime):
        return seconds_of(value)
    if isinstance(value, date):
        return seconds_of(datetime(value.year, value.month, value.day))
    if isinstance(value, time):
        return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6
    return float(value.total_seconds())


OBJECTS: tuple[tuple[str, Any, Any], ...] = (
    ("boolean", (bool, np.bool_), float),
    ("number", (Real, np.number, np.bool_, Decimal), float),
    ("time", date, _seconds),  # a datetime is one too
    ("duration", (timedelta, time), _seconds),
)
"""What all Python objects of a column may be: the kind of column, the types, the way to a number."""


def _read_objects(name: str, values: list[Any]) -> RawColumn:
    """Read a column of Python objects: all numbers, all dates, or else their texts."""
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    present = [value for value, gone in zip(values, missing, strict=True) if not gone]
    for kind, types, convert in OBJECTS:
        if present and all(isinstance(value, types) for value in present):
            numbers = np.full(len(values), np.nan)
            numbers[~missing] = [convert(value) for value in present]
            return RawColumn(name, kind, numbers)
    odd = next((value for value in present if isinstance(value, UNREADABLE)), None)
    if odd is not None:
        raise TableError(
            f"Column {name!r} holds {type(odd).__name__}, expected numbers, texts or dates: drop it first."
        )
    return _number_texts(name, [_text_of(value) for value in present], missing, "text")


UNREADABLE = (dict, list, tuple, set, frozenset, bytes, bytearray, complex, np.ndarray)


def _text_of(value: Any) -> str:
    """Return an object among texts as it would stand in a file."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return number_text(float(value)) if is_number else str(value)


def _is_missing(value: Any) -> bool:
    """A missing value is None, or one that does not equal itself (NaN, NaT), or one that cannot say (pandas.NA)."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
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
