"""DuckDB: scores and reasons as functions of SQL.

In: a connection and a fitted detector. Out: two functions of that connection, which score rows where they are. A row is
scored by the detector's own rules, so a score has the same bits as `RGLD.anomaly_score` gives. DuckDB hands rows over
as Arrow, about two thousand at a time. This is the only module that imports DuckDB.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

try:
    import duckdb
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError as error:
    raise ImportError("rgld.duckdb needs DuckDB and PyArrow: pip install 'rgld[duckdb]'.") from error
import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._arrays import Float64s
from ._estimator import RGLD
from .exceptions import ParameterError, TableError

__all__ = ["register"]

SQL_REASONS = "_reasons"
"""What the name of the function for reasons ends in."""
MAX_SQL_NAMES = 8


def register(connection: Any, detector: RGLD, name: str) -> None:
    """Make a fitted detector a function of SQL: `name` gives scores, `name_reasons` gives reasons in words.

    Both take a whole row, by the name of its table or of a subquery (`score(payments)`, or a struct): columns are found
    by their names, and others are ignored. Or they take all columns that the detector was fitted on, in its order
    (`score(amount, city, "when")`). A missing value is NULL. The score of a row that is NULL itself is NULL.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
        The connection that gets the functions; its cursors have them too. Functions of an earlier call with this name
        are replaced.
    detector : RGLD
        A fitted detector, such as `rgld.load` returns.
    name : str
        The name of the function for scores (DOUBLE). The function for reasons (VARCHAR[]) is much slower: ask it about
        the rows that matter.

    Examples
    --------
    >>> import duckdb, rgld.duckdb
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE t AS SELECT i, sin(i) AS a, cos(i) AS b FROM range(500) s(i)")
    >>> _ = connection.execute("UPDATE t SET b = 3 WHERE i = 42")
    >>> detector = RGLD(random_state=0).fit(connection.sql("SELECT a, b FROM t"))
    >>> rgld.duckdb.register(connection, detector, "score")
    >>> connection.execute("SELECT i, score_reasons(t)[1] FROM t ORDER BY score(a, b) DESC LIMIT 1").fetchall()
    [(42, 'b 3 is far above usual (usually -0.9968 to 0.9975)')]
    >>> connection.close()
    """
    if not hasattr(connection, "create_function"):  # that of a dbt model is a wrapper of DuckDB's
        raise ParameterError(
            f"Expected a DuckDB connection, got {type(connection).__name__}: pass what duckdb.connect() returns."
        )
    if not isinstance(detector, RGLD):
        raise ParameterError(f"Expected an RGLD detector, got {type(detector).__name__}: fit or load one first.")
    check_is_fitted(detector)
    if not isinstance(name, str) or not name.isidentifier():
        raise ParameterError(f"`name` must be a word such as 'score_payments', got {name!r}.")

    def scores(rows: Any) -> Float64s:
        return detector.anomaly_score(rows)

    def reasons(rows: Any) -> list[list[str]]:
        explanation = detector.explain(rows)
        return [explanation.reasons(i) for i in range(len(explanation))]

    _create(connection, name, "DOUBLE", pa.float64(), detector, scores)
    _create(connection, name + SQL_REASONS, "VARCHAR[]", pa.list_(pa.string()), detector, reasons)


def _create(
    connection: Any,
    name: str,
    sql_type: str,
    arrow_type: Any,
    detector: RGLD,
    answer: Callable[[Any], Sequence[Any] | Float64s],
) -> None:
    """Create a function that takes any number of columns of any types; an earlier one of this name is replaced."""

    def function(*columns: Any) -> Any:
        rows, present = _rows(detector, columns)
        if present.all():
            return pa.array(answer(rows), arrow_type)
        found = iter(answer(rows.filter(pa.array(present))) if present.any() else ())
        return pa.array([next(found) if there else None for there in present], arrow_type)

    with suppress(duckdb.InvalidInputException):  # there is none yet
        connection.remove_function(name)
    try:
        connection.create_function(name, function, None, sql_type, type="arrow", null_handling="special")
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(f"DuckDB cannot create the function {name!r} ({reason}): take another name.") from error


def _rows(detector: RGLD, columns: Sequence[Any]) -> tuple[Any, Any]:
    """Return rows as the detector takes them, and which of them are there: a row may be NULL itself."""
    encoding = detector.model_.encoding
    names = getattr(detector, "feature_names_in_", None)
    present = np.ones(len(columns[0]), dtype=bool)
    if len(columns) == 1 and pa.types.is_struct(columns[0].type):
        if names is None:
            raise TableError(
                f"The model was fitted without column names: pass its {detector.n_features_in_} columns as arguments."
            )
        present = np.asarray(columns[0].is_valid())
        columns = _fields(columns[0].combine_chunks(), encoding)
    if len(columns) != detector.n_features_in_:
        raise TableError(_wrong_number(len(columns), detector.n_features_in_, names))
    for column, values in zip(encoding.columns, columns, strict=True):
        if column.kind != "dropped":
            _check(column, values)
    if names is not None:
        return pa.table(list(columns), names=[str(name) for name in names]), present
    return np.column_stack([_floats(values) for values in columns]), present


def _fields(rows: Any, encoding: Any) -> list[Any]:
    """Return the columns of the model from rows of any columns; those that the model dropped may be missing."""
    found = [field.name for field in rows.type]
    missing = [column.name for column in encoding.columns if column.name not in found and column.kind != "dropped"]
    if missing:
        raise TableError(
            f"The row has no column {missing[0]!r}, which the model needs: it has {_listed(found)}. Pass a row with "
            "the columns that the model was fitted on."
        )
    nothing = pa.nulls(len(rows))
    # `field` of Arrow would show the values of a row that is NULL as they lie in memory.
    flat = dict(zip(found, rows.flatten(), strict=True))
    return [flat.get(column.name, nothing) for column in encoding.columns]


def _wrong_number(found: int, expected: int, names: Any) -> str:
    listed = "" if names is None else f" ({_listed(names)})"
    return (
        f"Expected the {expected} columns that the model was fitted on{listed} as arguments, or the row as one "
        f"argument, got {found} {'argument' if found == 1 else 'arguments'}."
    )


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(str(name) for name in names[:MAX_SQL_NAMES])
    return f"{shown}, ..." if len(names) > MAX_SQL_NAMES else shown


IS_NUMBER = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
IS_TIME = (pa.types.is_timestamp, pa.types.is_date)
IS_STRING = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
FITS: dict[str, tuple[str, tuple[Callable[[Any], bool], ...]]] = {
    "number": ("numbers", IS_NUMBER),
    "boolean": ("BOOLEAN", IS_NUMBER),
    "time": ("DATE or TIMESTAMP", IS_TIME),
    "duration": ("TIME, or seconds as a number", (pa.types.is_time, pa.types.is_duration, *IS_NUMBER)),
    "category": ("VARCHAR or another simple type", (*IS_STRING, *IS_NUMBER, *IS_TIME, pa.types.is_time)),
}
"""For each kind of column: what SQL calls the types that fit, and the Arrow types. Strings do not fit numbers and times
here, though the detector can read them: columns that are given in a wrong order must not get scores."""


def _check(column: Any, values: Any) -> None:
    """Raise if a column has a type that does not fit, or infinite values."""
    if pa.types.is_null(values.type):
        return
    expected, tests = FITS[column.kind]
    if not any(test(values.type) for test in tests):
        raise TableError(
            f"Column {column.name!r} has the type {values.type}, expected {expected} as in the training table: cast "
            "it, and check the order of the columns."
        )
    if _is_infinite(values):
        raise TableError(
            f"Column {column.name!r} holds infinity, expected finite values: replace it, or leave these rows out with "
            "WHERE isfinite(...)."
        )


def _is_infinite(values: Any) -> bool:
    """Return whether some value is infinite. DuckDB's infinite dates are the largest and smallest integers."""
    kind = values.type
    if pa.types.is_floating(kind):
        return bool(pc.any(pc.is_inf(values)).as_py())
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return False
    width = pa.int64() if kind.bit_width == 64 else pa.int32()
    largest = 2 ** (kind.bit_width - 1) - 1
    return bool(pc.any(pc.is_in(values.cast(width), pa.array([largest, -largest], width))).as_py())


def _floats(values: Any) -> Float64s:
    """Return a column of numbers as floats, NaN where NULL."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return np.asarray(values.cast(pa.float64(), safe=False).fill_null(np.nan), dtype=np.float64)
