"""Tables in: whatever holds rows and columns becomes a float matrix with checked columns.

In: a NumPy array, a list of rows, a pandas, polars or Arrow table. Out: a float32 or float64 matrix (n, d)
without NaN or infinity. This is the only module that knows frames. What is wrong with a table is said in one
sentence that names the column.
"""

import contextlib
from collections.abc import Iterator
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .exceptions import TableError

SMALLEST_TABLE = 2
"""Rows needed to learn from: a density and a neighbour need another row."""


def read_matrix(estimator: BaseEstimator, X: Any, *, fitting: bool) -> NDArray[np.floating]:
    """Return the table as a finite float matrix.

    When fitting, column names and count are set on the estimator; otherwise the table must have the same names in the
    same order.
    """
    if not fitting and _is_plain(estimator, X):
        _check_finite(X, None)
        return X  # type: ignore[no-any-return]
    frame = _as_frame(X)
    if frame is None:
        _check_array(X)
    else:
        X = _checked_frame(frame)
    matrix: NDArray[np.floating] = validate_data(
        estimator,
        X,
        reset=fitting,
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
        ensure_min_samples=SMALLEST_TABLE if fitting else 1,
    )
    _check_finite(matrix, getattr(estimator, "feature_names_in_", None))
    return matrix


def _is_plain(estimator: BaseEstimator, X: Any) -> bool:
    """Tell whether X is a matrix that only a check for finite values could refuse: a row must not wait for the rest."""
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
        raise TableError("Expected a table, got a lazy frame: collect it first.")
    return frame if isinstance(frame, nw.DataFrame) else None


def _checked_frame(frame: Any) -> Any:
    """Return the frame, or its plain array if its columns have no names but their numbers."""
    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise TableError(f"Column {name!r} holds {dtype}, expected numbers: drop it or encode it first.")
    names = frame.columns
    if all(isinstance(name, str) for name in names):
        return frame.to_native()
    if list(names) == list(range(len(names))):
        return frame.to_numpy()
    odd = next(name for name in names if not isinstance(name, str))
    raise TableError(
        f"Column names must be text (string names), or the numbers 0, 1, ... in order, got {odd!r}: rename the columns."
    )


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


def _check_finite(matrix: NDArray[np.floating], names: Any) -> None:
    # One pass without a mask the size of the table: a sum of finite values is finite, unless it overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(matrix.sum(dtype=np.float64)):
            return
    for column in range(matrix.shape[1]):
        bad = np.flatnonzero(~np.isfinite(matrix[:, column]))
        if len(bad):
            label = f"Column {column}" if names is None else f"Column {names[column]!r}"
            kind = "NaN" if np.isnan(matrix[bad[0], column]) else "infinity (inf)"
            more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
            raise TableError(
                f"{label} holds {kind} in row {bad[0]}{more}, expected finite numbers: fill or drop these rows first."
            )
