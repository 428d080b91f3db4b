"""Parameter constraints, and the one sentence said when one is broken.

In: a mapping of names to values. Out: nothing, or a `ParameterError`. Called by `fit`, never by `__init__`,
as scikit-learn asks.
"""

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from .exceptions import ParameterError

PREPROCESSINGS = ("standard", "robust", "quantile", "arcsinh", "arcsinh-standard")
"""The scalings a table can get; "auto" chooses one of the first three from the training columns."""

MOST_TURNS = 64
"""Scalings, or shares of the columns, for views to take turns in."""

PROJECTIONS = ("gaussian", "orthogonal")
"""The laws of a view's projection."""

READINGS = ("number", "category", "time", "drop")
"""What a user may ask a column to be read as."""

AGGREGATIONS = ("rank", "standard")
"""What view scores are made comparable by before they are averaged."""


class Constraint(NamedTuple):
    """What a parameter must be, as a predicate and in words."""

    holds: Callable[[Any], bool]
    must_be: str


def _integer(low: int, high: int | None = None) -> Constraint:
    def holds(value: Any) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and int(value) >= low and (high is None or int(value) <= high)

    return Constraint(holds, f"an integer of at least {low}" if high is None else f"an integer from {low} to {high}")


def _is_real(value: Any) -> bool:
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer beyond any float
        return False


def _share(high: float, closed: bool) -> Constraint:
    def holds(value: Any) -> bool:
        return _is_real(value) and (0 < value < high or (closed and value == high))

    return Constraint(holds, f"a number in (0, {high:g}{']' if closed else ')'}")


def _auto_or(other: Constraint) -> Constraint:
    return Constraint(lambda v: (isinstance(v, str) and v == "auto") or other.holds(v), f"'auto' or {other.must_be}")


def _are_multipliers(value: Any) -> bool:
    if not isinstance(value, (tuple, list, np.ndarray)) or getattr(value, "ndim", 1) != 1 or len(value) == 0:
        return False
    return all(_is_real(v) and 1e-3 <= v <= 1e3 for v in value)


def _is_preprocessing(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return 0 < len(value) <= MOST_TURNS and all(isinstance(v, str) and v in PREPROCESSINGS for v in value)
    return isinstance(value, str) and value in ("auto", *PREPROCESSINGS)


def _one_or_several(one: Constraint) -> Constraint:
    def holds(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return 0 < len(value) <= MOST_TURNS and all(one.holds(v) for v in value)
        return one.holds(value)

    return Constraint(holds, f"{one.must_be}, or a tuple of up to {MOST_TURNS} such numbers")


def _are_readings(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(isinstance(name, str) and isinstance(kind, str) and kind in READINGS for name, kind in value.items())
    )


def _is_random_state(value: Any) -> bool:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value) >= 0
    return value is None or isinstance(value, (np.random.RandomState, np.random.Generator))


def _is_n_jobs(value: Any) -> bool:
    return value is None or (
        isinstance(value, Integral) and not isinstance(value, bool) and 1 <= abs(int(value)) <= 4096
    )


CONSTRAINTS: Mapping[str, Constraint] = {
    "n_global_views": _integer(0),
    "n_local_views": _integer(0),
    "n_random_features": _integer(1),
    "bandwidth_multipliers": Constraint(_are_multipliers, "a non-empty tuple of numbers in [0.001, 1000]"),
    "n_bandwidth_pairs": _integer(1),
    "n_references": _integer(2),
    "n_neighbors": _integer(1),
    "feature_fraction": _one_or_several(_share(1.0, closed=True)),
    "min_features": _integer(1),
    "projection_dim": _auto_or(_integer(1, 1024)),
    "projection": Constraint(lambda v: isinstance(v, str) and v in PROJECTIONS, f"one of {PROJECTIONS}"),
    "preprocessing": Constraint(
        _is_preprocessing, f"'auto', one of {PREPROCESSINGS} or a tuple of up to {MOST_TURNS} of these"
    ),
    "aggregation": Constraint(lambda v: isinstance(v, str) and v in AGGREGATIONS, f"one of {AGGREGATIONS}"),
    "local_weight": Constraint(lambda v: _is_real(v) and 0 < v < 1, "a number in (0, 1)"),
    "columns": Constraint(_are_readings, f"None or a dictionary from column names to one of {READINGS}"),
    "calibration_fraction": Constraint(lambda v: _is_real(v) and 0 <= v <= 0.9, "a number in [0, 0.9]"),
    "contamination": _auto_or(_share(0.5, closed=True)),
    "random_state": Constraint(_is_random_state, "None, a non-negative integer, a RandomState or a Generator"),
    "n_jobs": Constraint(_is_n_jobs, "None or an integer other than 0 from -4096 to 4096"),
}


def _shown(value: Any) -> str:
    """Return the value as it would be typed, cut short: it may come from a file."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise `ParameterError` for the first parameter that breaks its constraint."""
    for name, constraint in CONSTRAINTS.items():
        if not constraint.holds(parameters[name]):
            raise ParameterError(f"{name} must be {constraint.must_be}, got {_shown(parameters[name])} instead.")
    if parameters["n_global_views"] == 0 and parameters["n_local_views"] == 0:
        raise ParameterError("n_global_views and n_local_views are both 0: at least one branch must have a view.")
    if parameters["n_local_views"] > 0 and parameters["n_neighbors"] >= parameters["n_references"]:
        raise ParameterError(
            f"n_neighbors must be below n_references, got n_neighbors={parameters['n_neighbors']} with "
            f"n_references={parameters['n_references']}: lower the first or raise the second."
        )
