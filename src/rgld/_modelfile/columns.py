"""Columns in a model file: how each column of a table is read.

In: what a header says of the columns. Out: a list of `Column`, or a `ModelFileError` for what no fit can have learned.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from itertools import pairwise
from typing import Any

from .._table.cells import MAX_STRING_LENGTH
from .._table.encoding import COLUMN_KINDS, CYCLES, MAX_LISTED_VALUES, Column
from .._table.future import N_DATE_KNOTS
from .._table.stamps import ALL_TIME_FORMATS
from .._table.styles import MAX_UNIT_LENGTH
from ..exceptions import ModelFileError
from .sizes import MAX_COLUMNS, MAX_ROWS, Sizes

MAX_NOTE_LENGTH = 400
"""Characters in the note of a column."""


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _are_different_strings(values: Any, max_length: int) -> bool:
    if not _is_list(values) or len(values) > max_length or not all(isinstance(v, str) for v in values):
        return False
    return len(set(values)) == len(values)


CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "name": lambda v: isinstance(v, str),
    "kind": lambda v: isinstance(v, str) and v in COLUMN_KINDS,
    "note": lambda v: isinstance(v, str) and len(v) <= MAX_NOTE_LENGTH,
    "gap_share": lambda v: type(v) is float and (v == 0.0 or 1.0 / MAX_ROWS <= v < 1.0),
    "time_format": lambda v: v == "" or v in ALL_TIME_FORMATS,
    "cycles": lambda v: _are_different_strings(v, len(CYCLES)) and all(cycle in CYCLES for cycle in v),
    "values": lambda v: (
        _are_different_strings(v, MAX_LISTED_VALUES) and all(len(value) <= MAX_STRING_LENGTH for value in v)
    ),
    "counts": lambda v: _is_list(v) and all(type(n) is int and 0 < n <= MAX_ROWS for n in v),
    "rest": lambda v: type(v) is float and 0.0 <= v <= MAX_ROWS,
}
"""What each field of a `Column` must be. A hint is of use only when the model is fitted: no file holds it."""

MAX_SAVED_NA_VALUES = 100
"""Values of a column that the user may say mean missing."""
LARGEST_MOMENT = 1e15
"""Seconds. No date that can be read lies farther from 1970."""


def _is_finite(value: Any, largest: float = sys.float_info.max) -> bool:
    return type(value) is float and -largest <= value <= largest


OPTIONAL_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "hint": lambda v: isinstance(v, str) and len(v) <= MAX_NOTE_LENGTH,
    "na_values": lambda v: (
        _are_different_strings(v, MAX_SAVED_NA_VALUES) and all(len(value) <= MAX_STRING_LENGTH for value in v)
    ),
    "n_unread": lambda v: type(v) is int and 0 <= v <= MAX_ROWS,
    "decimal_comma": lambda v: type(v) is bool,
    "unit": lambda v: isinstance(v, str) and len(v) <= MAX_UNIT_LENGTH,
    "date_knots": lambda v: (
        _is_list(v)
        and len(v) <= N_DATE_KNOTS
        and all(_is_finite(date, LARGEST_MOMENT) for date in v)
        and all(early <= late for early, late in pairwise(v))
    ),
    "natural_until": lambda v: _is_finite(v, LARGEST_MOMENT),
    "far_shares": lambda v: _is_list(v) and len(v) in (0, 2) and all(type(f) is float and 0.0 <= f < 1.0 for f in v),
    "gap_value": lambda v: v is None or _is_finite(v),
}
"""The same for fields that are written only if they are not the default; older files do not have them."""


def describe_column(column: Column) -> dict[str, Any]:
    """Return what a header says of a column."""
    optional = {field.name: field.default for field in fields(Column) if field.name in OPTIONAL_CHECKS}
    described = asdict(column)
    return {name: value for name, value in described.items() if name not in optional or value != optional[name]}


def parse_columns(content: Any, sizes: Sizes) -> list[Column]:
    """Return how the columns are read."""
    if not isinstance(content, list) or not 0 < len(content) <= MAX_COLUMNS:
        raise ModelFileError("The model file does not say how columns are read.")
    columns = [_parse_column(described, sizes.n_rows) for described in content]
    if sum(len(column.parts) for column in columns) != sizes.n_columns:
        raise ModelFileError("The model file's columns do not fit its sizes.")
    return columns


def _parse_column(content: Any, n_rows: int) -> Column:
    if not isinstance(content, dict) or not set(CHECKS) <= set(content) <= {*CHECKS, *OPTIONAL_CHECKS}:
        raise ModelFileError("The model file does not say how a column is read.")
    for name, value in content.items():
        if not (CHECKS.get(name) or OPTIONAL_CHECKS[name])(value):
            raise ModelFileError(f"The model file describes a column with a {name} that no fit gives it.")
    lists = {name: tuple(value) for name, value in content.items() if isinstance(value, list)}
    column = Column(**{**content, **lists})
    is_category = column.kind == "category"
    if len(column.values) != len(column.counts) or is_category != bool(column.values):
        raise ModelFileError("The model file's values of a category do not fit their counts.")
    if column.date_knots and not (
        column.kind in ("time", "number") and column.date_knots[0] < column.date_knots[-1] < column.natural_until
    ):
        raise ModelFileError("The model file's training dates do not fit each other.")
    if column.far_shares and not column.date_knots:
        raise ModelFileError("The model file's training dates do not fit each other.")
    if sum(column.counts) > n_rows or column.rest > n_rows:
        raise ModelFileError("The model file counts more rows of a category than the training table had.")
    return column


def numeric_columns(names: Any, sizes: Sizes) -> list[Column]:
    """Return the columns of a file of version 1, which knew only numbers: by name, or by index if it gives no names."""
    if names is None:
        names = column_names(sizes.n_columns)
    if not isinstance(names, list) or len(names) != sizes.n_columns or not all(isinstance(n, str) for n in names):
        raise ModelFileError("The model file's feature_names is not what a detector has.")
    return [Column(name, "number") for name in names]


def column_names(n_columns: int) -> list[str]:
    """Return the names of the columns of a table without names."""
    return [f"column {j}" for j in range(n_columns)]


def are_names_of(names: Any, columns: list[Column]) -> bool:
    """Tell whether a detector with these columns can have these names. None stands for an array: all are numbers."""
    own = [column.name for column in columns]
    if names is None:
        return all(column.kind in ("number", "dropped") for column in columns) and own == column_names(len(columns))
    return isinstance(names, list) and names == own
