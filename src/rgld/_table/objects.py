"""Objects: columns whose cells are Python objects, of one kind or of several.

In: cells. Out: a `RawColumn`. A cell reads the same whatever the other cells of its column are. Knows no frames.
"""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._arrays import Float64s, Objects
from .cells import bool_to_string, number_to_string, seconds_of, seconds_of_span, time_to_string
from .columns import RawColumn, column_of_strings, nested_column, string_column

MAX_EXACT_INTEGER = 2.0**53
"""Above this, a float cannot hold every whole number."""
MAX_INTEGER_BITS = 128
"""An integer of more bits is read as a float: no column of a file holds such integers."""


def digits_of(values: Float64s, cells: Any) -> Objects | None:
    """Return the whole numbers of a column as Python integers with all their digits, None in cells that hold something
    else; or None alone, if all numbers fit into floats."""
    with np.errstate(invalid="ignore"):
        if not np.any(np.abs(values) >= MAX_EXACT_INTEGER):
            return None
    exact = np.full(len(values), None, dtype=object)
    exact[:] = [int(cell) if _is_integer(cell) else None for cell in cells]
    return exact


def _is_integer(cell: Any) -> bool:
    return isinstance(cell, Integral) and int(cell).bit_length() <= MAX_INTEGER_BITS


def _seconds(value: Any) -> float:
    """Return the seconds since 1970 of a date (with or without a time of day), or the seconds of a time of day or a
    duration."""
    if isinstance(value, datetime):
        return seconds_of(value)
    if isinstance(value, date):
        return seconds_of(datetime(value.year, value.month, value.day))
    if isinstance(value, time):
        return value.hour * 3600.0 + value.minute * 60.0 + value.second + value.microsecond / 1e6
    return seconds_of_span(value)


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer larger than any float
        return np.inf if value > 0 else -np.inf


OBJECT_KINDS: tuple[tuple[str, Any, Any], ...] = (
    ("boolean", (bool, np.bool_), float),
    ("number", (Real, np.number, Decimal), _number),
    ("time", date, _seconds),  # a datetime is a date too
    ("duration", (timedelta, time), _seconds),
)
"""What Python objects may be: the kind of column, the types, the function that makes them a number."""


def read_objects(name: str, values: list[Any]) -> RawColumn:
    """Return a column of Python objects: numbers if all are of one kind, else strings.

    A cell must read the same alone and beside cells of other kinds. Therefore its string is the one that `as_strings`
    gives its number in a column of one kind, and it reads back as that number.
    """
    if len(values) == 1:  # The number or string of a single row, a short way: what follows gives the same column.
        if type(values[0]) in (float, int) and abs(values[0]) < MAX_EXACT_INTEGER:
            return RawColumn(name, "number", np.array(values, dtype=np.float64), is_of_objects=True)
        if type(values[0]) is str:
            return string_column(name, np.zeros(1, np.int64), values)
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    present = [value for value, gone in zip(values, missing, strict=True) if not gone]
    types = set(map(type, present))
    odd = next((cls for cls in types if issubclass(cls, UNREADABLE_TYPES)), None)
    if odd is not None:
        return nested_column(name, len(values), odd.__name__)
    kinds = {_kind_of(cls) for cls in types}
    if len(kinds) != 1 or kinds == {"text"}:
        return column_of_strings(name, [_string_of(value) for value in present], missing, "text")
    kind = kinds.pop()
    converted = list(map(_CONVERTERS[kind], present))
    numbers = np.full(len(values), np.nan)
    numbers[~missing] = converted
    is_long = kind == "number" and any(abs(number) >= MAX_EXACT_INTEGER for number in converted)
    return RawColumn(name, kind, numbers, exact=digits_of(numbers, values) if is_long else None, is_of_objects=True)


def _kind_of(cls: type) -> str:
    """Return the kind of column that objects of a type make: "text" for all types that are not in `OBJECT_KINDS`."""
    if cls not in _KNOWN_KINDS:
        found = next((kind for kind, types, _ in OBJECT_KINDS if issubclass(cls, types)), "text")
        if cls.__module__ != "builtins":
            return found
        _KNOWN_KINDS[cls] = found
    return _KNOWN_KINDS[cls]


_KNOWN_KINDS: dict[type, str] = {}
"""Kinds of the types that Python has built in: asking abstract classes takes long, compared with one row."""
_CONVERTERS = {kind: convert for kind, _, convert in OBJECT_KINDS}


def _string_of(value: Any) -> str:
    """Return an object as the string that would stand in a file."""
    kind = _kind_of(type(value))
    if kind == "text":
        return str(value)
    if kind == "boolean":
        return bool_to_string(value)
    if kind == "number" and _is_integer(value):
        return str(int(value))
    return (time_to_string if kind == "time" else number_to_string)(_CONVERTERS[kind](value))


UNREADABLE_TYPES = (dict, list, tuple, set, frozenset, bytes, bytearray, complex, np.ndarray)


def _is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, a value that differs from itself (NaN, NaT), or one for which the
    comparison fails: pandas.NA and a signaling NaN."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        return type(value).__name__ == "NAType" or (isinstance(value, Decimal) and value.is_snan())
