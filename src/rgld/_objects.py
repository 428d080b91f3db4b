"""Objects: columns whose cells are Python objects, of one kind or of several.

In: cells. Out: a `RawColumn`. A cell reads the same alone and beside any others. Knows no frames.
"""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._cells import RawColumn, number_text, number_texts, seconds_of, seconds_of_span, time_text, truth_text
from .exceptions import TableError

LARGEST_EXACT = 2.0**53
"""From here on, some whole numbers are no floats."""
MOST_BITS = 128
"""An integer of more is written as a number: no column of a file has it."""


def digits_of(values: NDArray[np.float64], cells: Any) -> NDArray[np.object_] | None:
    """Return whole numbers as Python's integers, if some are too large to be told apart as floats; None for others."""
    with np.errstate(invalid="ignore"):
        if not np.any(np.abs(values) >= LARGEST_EXACT):
            return None
    exact = np.full(len(values), None, dtype=object)
    exact[:] = [int(cell) if _is_integer(cell) else None for cell in cells]
    return exact


def _is_integer(cell: Any) -> bool:
    return isinstance(cell, Integral) and int(cell).bit_length() <= MOST_BITS


def _seconds(value: Any) -> float:
    """Return the seconds of a date, with or without a time of day, a time of day or a duration."""
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
    except OverflowError:  # an integer beyond all floats
        return np.inf if value > 0 else -np.inf


OBJECTS: tuple[tuple[str, Any, Any], ...] = (
    ("boolean", (bool, np.bool_), float),
    ("number", (Real, np.number, Decimal), _number),
    ("time", date, _seconds),  # a datetime is one too
    ("duration", (timedelta, time), _seconds),
)
"""What Python objects may be: the kind of column, the types, the way to a number."""


def read_objects(name: str, values: list[Any]) -> RawColumn:
    """Read a column of Python objects: all of one kind, or else their texts.

    A cell must read the same alone and beside cells of other kinds: its text is that of its number in a column of one
    kind (`as_texts`), and reads back as that number.
    """
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    present = [value for value, gone in zip(values, missing, strict=True) if not gone]
    types = set(map(type, present))
    odd = next((cls for cls in types if issubclass(cls, UNREADABLE)), None)
    if odd is not None:
        raise TableError(f"Column {name!r} holds {odd.__name__}, expected numbers, texts or dates: drop it first.")
    kinds = {_kind_of(cls) for cls in types}
    if len(kinds) != 1 or kinds == {"text"}:
        return number_texts(name, [_text_of(value) for value in present], missing, "text")
    kind = kinds.pop()
    convert = _WAYS[kind]
    numbers = np.full(len(values), np.nan)
    numbers[~missing] = [convert(value) for value in present]
    return RawColumn(name, kind, numbers, exact=digits_of(numbers, values) if kind == "number" else None, is_loose=True)


def _kind_of(cls: type) -> str:
    """Return what objects of a type are; what is nothing else is a text."""
    return next((kind for kind, types, _ in OBJECTS if issubclass(cls, types)), "text")


_WAYS = {kind: convert for kind, _, convert in OBJECTS}


def _text_of(value: Any) -> str:
    """Return an object among others as it would stand in a file."""
    kind = _kind_of(type(value))
    if kind == "text":
        return str(value)
    if kind == "boolean":
        return truth_text(value)
    if kind == "number" and _is_integer(value):
        return str(int(value))
    return (time_text if kind == "time" else number_text)(_WAYS[kind](value))


UNREADABLE = (dict, list, tuple, set, frozenset, bytes, bytearray, complex, np.ndarray)


def _is_missing(value: Any) -> bool:
    """A missing value is None, or one that does not equal itself (NaN, NaT), or one that cannot say (pandas.NA)."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        return type(value).__name__ == "NAType"
