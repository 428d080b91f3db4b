"""Constraints: what a parameter can be asked to be, as a function and in words.

In: a value. Out: whether it is allowed. `parameters.py` says which parameter must be what.
"""

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

PREPROCESSINGS = ("standard", "robust", "quantile", "arcsinh", "arcsinh-standard")
"""The scalings of a table's columns; "auto" chooses one of the first three, from the training columns."""

MAX_TURNS = 64
"""The views can take turns among at most this many scalings, or fractions of the columns."""

PROJECTIONS = ("gaussian", "orthogonal")
"""The kinds of a view's random projection."""

READINGS = ("number", "category", "time", "drop")
"""How a user may ask a column to be read."""

GLOBAL_SCORES = ("support", "leverage")
"""What a global view asks: the paper's support, or the leverage of a row's features."""

AGGREGATIONS = ("rank", "standard")
"""How view scores are made comparable before they are averaged: by their rank, or standardized."""

MAX_NA_VALUES = 100
"""`na_values` may list at most this many values, for one column or for all."""


class Constraint(NamedTuple):
    """What a parameter must be, as a function and in words."""

    holds: Callable[[Any], bool]
    must_be: str


def integer(low: int, high: int | None = None) -> Constraint:
    def holds(value: Any) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and int(value) >= low and (high is None or int(value) <= high)

    return Constraint(holds, f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}")


def is_real(value: Any) -> bool:
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer larger than any float
        return False


def fraction(high: float) -> Constraint:
    return Constraint(lambda value: is_real(value) and 0 < value <= high, f"a number in (0, {high:g}]")


def one_of(words: Sequence[str]) -> Constraint:
    return Constraint(lambda value: isinstance(value, str) and value in words, f"one of {words}")


def auto_or(other: Constraint) -> Constraint:
    return Constraint(lambda v: (isinstance(v, str) and v == "auto") or other.holds(v), f"'auto' or {other.must_be}")


def none_or(other: Constraint) -> Constraint:
    return Constraint(lambda v: v is None or other.holds(v), f"None or {other.must_be}")


def are_multipliers(value: Any) -> bool:
    if not isinstance(value, (tuple, list, np.ndarray)) or getattr(value, "ndim", 1) != 1 or len(value) == 0:
        return False
    return all(is_real(v) and 1e-3 <= v <= 1e3 for v in value)


def is_preprocessing(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return 0 < len(value) <= MAX_TURNS and all(isinstance(v, str) and v in PREPROCESSINGS for v in value)
    return isinstance(value, str) and value in ("auto", *PREPROCESSINGS)


def one_or_several(one: Constraint) -> Constraint:
    def holds(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return 0 < len(value) <= MAX_TURNS and all(one.holds(v) for v in value)
        return one.holds(value)

    return Constraint(holds, f"{one.must_be}, or a tuple of up to {MAX_TURNS} such numbers")


def are_readings(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(isinstance(name, str) and isinstance(kind, str) and kind in READINGS for name, kind in value.items())
    )


def are_na_values(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(
            isinstance(own, (tuple, list)) and are_na_values(own) for own in value.values()
        )
    if value is None:
        return True
    return (
        isinstance(value, (tuple, list))
        and len(value) <= MAX_NA_VALUES
        and all(isinstance(item, str) or is_real(item) for item in value)
    )


def is_random_state(value: Any) -> bool:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value) >= 0
    return value is None or isinstance(value, (np.random.RandomState, np.random.Generator))


def is_n_jobs(value: Any) -> bool:
    return value is None or (
        isinstance(value, Integral) and not isinstance(value, bool) and 1 <= abs(int(value)) <= 4096
    )
