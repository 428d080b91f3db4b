"""Tables in: whatever holds rows and columns becomes a float matrix with checked columns.

In: a NumPy array, a list of rows, a pandas or polars frame. Out: a float32 or float64 matrix (n, d) without
NaN or infinity. This is the only module that knows frames. What is wrong with a table is said in one
sentence that names the column.
"""

import contextlib
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

    When fitting, column names and count are set on the estimator; otherwise the table must have the same
    names in the same order.
    """
    _reject_text(X)
    matrix: NDArray[np.floating] = validate_data(
        estimator,
        X,
        reset=fitting,
        dtype=(np.float64, np.float32),
        ensure_all_finite=False,
        ensure_min_samples=SMALLEST_TABLE if fitting else 1,
    )
    _reject_nonfinite(matrix, getattr(estimator, "feature_names_in_", None))
    return matrix


def _reject_text(X: Any) -> None:
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = list(X.columns)
        repeated = sorted({str(name) for name in names if names.count(name) > 1})
        raise TableError(f"Column names must be unique, got {repeated} more than once: rename or drop them.") from error
    if isinstance(frame, nw.DataFrame):
        _reject_text_columns(frame)
        return
    dtype = getattr(X, "dtype", None)
    if dtype is None and isinstance(X, (list, tuple)):
        with contextlib.suppress(ValueError):  # rows of different lengths: scikit-learn says so below
            dtype = np.asarray(X).dtype
    if dtype is None:
        return
    if dtype.kind in "US":
        raise TableError(f"Expected numbers, got an array of text ({dtype}): pass a numeric array.")
    if dtype.kind in "mM":
        raise TableError(
            f"Expected numbers, got an array of dates or durations ({dtype}): convert it to numbers first."
        )
    if dtype.kind == "O":
        _reject_text_cells(np.asarray(X))


def _reject_text_columns(frame: Any) -> None:
    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise TableError(f"Column {name!r} holds {dtype}, expected numbers: drop it or encode it first.")


def _reject_text_cells(cells: NDArray[np.object_]) -> None:
    """An object array may hold Python numbers; a text among them is an error even if it reads like a number."""
    for index in np.ndindex(cells.shape):
        value: Any = cells[index]
        if isinstance(value, (str, bytes)):
            row, column = index[0], index[-1]
            raise TableError(
                f"Column {column} holds text in row {row} ({str(value)[:40]!r}), expected numbers: "
                "drop it or encode it first."
            )


def _reject_nonfinite(matrix: NDArray[np.floating], names: Any) -> None:
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
