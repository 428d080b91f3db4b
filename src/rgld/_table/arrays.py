"""Arrays: tables without column names, as a matrix of floats.

In: a NumPy array or a list of rows. Out: a float matrix, NaN where missing. An error says in one sentence what is wrong
with the array. For what scikit-learn itself refuses (sparse matrices, complex numbers, one dimension) the words are
scikit-learn's.
"""

import contextlib
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np

from .._arrays import Floats, Objects
from ..exceptions import TableError


def read_matrix(X: Any, min_rows: int, first_row: int = 0) -> Floats:
    """Return an array or a list of rows as a float matrix; raise if it is anything else.

    Of a part of a longer table, `first_row` is the index of its first row, by which errors name rows.
    """
    from sklearn.utils.validation import check_array  # imported here: it takes long, and frames do not need it

    _check_array(X, first_row)
    with np.errstate(over="ignore"):  # a longer float beyond float64 becomes infinite, and is refused as such
        matrix: Floats = check_array(
            X,
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
            ensure_min_samples=min_rows,
            estimator="RGLD",
            input_name="X",
        )
    return matrix


def _check_array(X: Any, first_row: int) -> None:
    """Raise if X is not an array of numbers."""
    if type(X) is dict or isinstance(X, Iterator):  # not isinstance: some sparse matrices are dictionaries
        raise TableError(f"Expected a table with rows and columns, got {type(X).__name__}: pass an array or a frame.")
    if np.ma.is_masked(X):
        raise TableError("Expected numbers, got an array with masked cells: fill or drop them first.")
    dtype = getattr(X, "dtype", None)
    if dtype is None and isinstance(X, (list, tuple)):
        with contextlib.suppress(ValueError):  # rows of different lengths: scikit-learn raises the error
            dtype = np.asarray(X).dtype
    if not isinstance(dtype, np.dtype):
        return
    if dtype.kind == "O":
        _check_cells(np.asarray(X), first_row)
    elif dtype.kind not in "biufc":  # complex numbers pass: scikit-learn raises the error
        kind = "dates or durations" if dtype.kind in "mM" else "text" if dtype.kind in "UST" else "records or raw bytes"
        raise TableError(f"Expected numbers, got an array of {kind} ({dtype}): pass a numeric array or a typed table.")


def _check_cells(cells: Objects, first_row: int) -> None:
    """Raise unless all cells of an object array are Python numbers. A string is an error even if it reads as one."""
    if cells.ndim != 2:
        return  # scikit-learn raises the error
    for i, column in np.ndindex(cells.shape):
        value: Any = cells[i, column]
        row = first_row + i
        if isinstance(value, (Real, np.number, np.bool_)):
            _check_size(value, row, column)
            continue
        place = f"Column {column} holds {type(value).__name__} in row {row}"
        if isinstance(value, (str, bytes)):
            raise TableError(f"{place} ({str(value)[:40]!r}), expected numbers: drop or encode this column.")
        # In words that scikit-learn's estimator checks ask for.
        raise TypeError(f"{place}: every argument must be a number, not a string or an object without a number.")


def _check_size(value: Any, row: int, column: int) -> None:
    """Raise if a number is too large for a float."""
    try:
        float(value)
    except OverflowError:
        raise TableError(
            f"Column {column} holds a number beyond {np.finfo(np.float64).max:.2g} in row {row}, expected "
            "numbers that fit a float: replace these values or drop their rows first."
        ) from None
