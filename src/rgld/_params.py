"""Parameters: what each must be, and the error if it is not.

In: a mapping of names to values. Out: `Parameters`, or a `ParameterError`. `fit` calls this, `__init__` never does, as
scikit-learn asks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from .exceptions import ParameterError

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


class Constraint(NamedTuple):
    """What a parameter must be, as a function and in words."""

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
    except OverflowError:  # an integer larger than any float
        return False


def _fraction(high: float) -> Constraint:
    return Constraint(lambda value: _is_real(value) and 0 < value <= high, f"a number in (0, {high:g}]")


def _one_of(words: Sequence[str]) -> Constraint:
    return Constraint(lambda value: isinstance(value, str) and value in words, f"one of {words}")


def _auto_or(other: Constraint) -> Constraint:
    return Constraint(lambda v: (isinstance(v, str) and v == "auto") or other.holds(v), f"'auto' or {other.must_be}")


def _none_or(other: Constraint) -> Constraint:
    return Constraint(lambda v: v is None or other.holds(v), f"None or {other.must_be}")


def _are_multipliers(value: Any) -> bool:
    if not isinstance(value, (tuple, list, np.ndarray)) or getattr(value, "ndim", 1) != 1 or len(value) == 0:
        return False
    return all(_is_real(v) and 1e-3 <= v <= 1e3 for v in value)


def _is_preprocessing(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return 0 < len(value) <= MAX_TURNS and all(isinstance(v, str) and v in PREPROCESSINGS for v in value)
    return isinstance(value, str) and value in ("auto", *PREPROCESSINGS)


def _one_or_several(one: Constraint) -> Constraint:
    def holds(value: Any) -> bool:
        if isinstance(value, (tuple, list)):
            return 0 < len(value) <= MAX_TURNS and all(one.holds(v) for v in value)
        return one.holds(value)

    return Constraint(holds, f"{one.must_be}, or a tuple of up to {MAX_TURNS} such numbers")


def _are_readings(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and all(isinstance(name, str) and isinstance(kind, str) and kind in READINGS for name, kind in value.items())
    )


MAX_NA_VALUES = 100
"""`na_values` may list at most this many values, for one column or for all."""


def _are_na_values(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) for name in value) and all(
            isinstance(own, (tuple, list)) and _are_na_values(own) for own in value.values()
        )
    if value is None:
        return True
    return (
        isinstance(value, (tuple, list))
        and len(value) <= MAX_NA_VALUES
        and all(isinstance(item, str) or _is_real(item) for item in value)
    )


def _is_random_state(value: Any) -> bool:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value) >= 0
    return value is None or isinstance(value, (np.random.RandomState, np.random.Generator))


def _is_n_jobs(value: Any) -> bool:
    return value is None or (
        isinstance(value, Integral) and not isinstance(value, bool) and 1 <= abs(int(value)) <= 4096
    )


@dataclass(frozen=True)
class Parameters:
    """The parameters of a detector, each with its constraint. The docstring of `RGLD` says what each means."""

    n_global_views: Annotated[int, _integer(0)]
    n_local_views: Annotated[int, _integer(0)]
    n_random_features: Annotated[int, _integer(1)]
    bandwidth_multipliers: Annotated[
        Sequence[float], Constraint(_are_multipliers, "a non-empty tuple of numbers in [0.001, 1000]")
    ]
    n_bandwidth_pairs: Annotated[int, _integer(1)]
    n_references: Annotated[int, _integer(2)]
    n_neighbors: Annotated[int, _integer(1)]
    feature_fraction: Annotated[float | Sequence[float], _one_or_several(_fraction(1.0))]
    min_features: Annotated[int, _integer(1)]
    max_features: Annotated[int | None, _none_or(_integer(1))]
    projection_dim: Annotated[int | str, _auto_or(_integer(1, 1024))]
    projection: Annotated[str, _one_of(PROJECTIONS)]
    preprocessing: Annotated[
        str | Sequence[str],
        Constraint(_is_preprocessing, f"'auto', one of {PREPROCESSINGS} or a tuple of up to {MAX_TURNS} of these"),
    ]
    aggregation: Annotated[str, _one_of(AGGREGATIONS)]
    global_score: Annotated[str, _one_of(GLOBAL_SCORES)]
    ridge: Annotated[float, Constraint(lambda v: _is_real(v) and 1e-6 <= v <= 1e3, "a number in [1e-06, 1000]")]
    whitening: Annotated[
        float | Sequence[float],
        _one_or_several(Constraint(lambda v: _is_real(v) and 0 <= v <= 1, "a number in [0, 1]")),
    ]
    trim: Annotated[float, Constraint(lambda v: _is_real(v) and 0 <= v <= 0.9, "a number in [0, 0.9]")]
    relations: Annotated[bool, Constraint(lambda v: isinstance(v, (bool, np.bool_)), "True or False")]
    local_weight: Annotated[float, Constraint(lambda v: _is_real(v) and 0 < v < 1, "a number in (0, 1)")]
    columns: Annotated[
        Mapping[str, str] | None,
        Constraint(_are_readings, f"None or a dictionary from column names to one of {READINGS}"),
    ]
    na_values: Annotated[
        Mapping[str, Sequence[str | float]] | Sequence[str | float] | None,
        Constraint(_are_na_values, f"None, a list of up to {MAX_NA_VALUES} values, or a dictionary of such by column"),
    ]
    calibration_fraction: Annotated[float, Constraint(lambda v: _is_real(v) and 0 <= v <= 0.9, "a number in [0, 0.9]")]
    contamination: Annotated[float | str, _auto_or(_fraction(0.5))]
    random_state: Annotated[
        Any, Constraint(_is_random_state, "None, a non-negative integer, a RandomState or a Generator")
    ]
    n_jobs: Annotated[int | None, Constraint(_is_n_jobs, "None or an integer other than 0 from -4096 to 4096")]

    @classmethod
    def of(cls, estimator: Any) -> "Parameters":
        """Return the parameters of an estimator, checked. (`get_params` looks at the signature each time: 1 ms.)"""
        return check_parameters({name: getattr(estimator, name) for name in CONSTRAINTS})

    @property
    def scalings(self) -> tuple[str, ...]:
        """The scalings among which the views take turns; empty if the training rows decide ("auto")."""
        if isinstance(self.preprocessing, str):
            return () if self.preprocessing == "auto" else (self.preprocessing,)
        return tuple(self.preprocessing)

    @property
    def dropped_columns(self) -> frozenset[str]:
        """Columns that the user wants to drop: they may hold anything."""
        return self._columns_read_as("drop")

    @property
    def category_columns(self) -> frozenset[str]:
        """Columns that the user wants to read as categories."""
        return self._columns_read_as("category")

    def _columns_read_as(self, kind: str) -> frozenset[str]:
        return frozenset(name for name, reading in (self.columns or {}).items() if reading == kind)


CONSTRAINTS: Mapping[str, Constraint] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Parameters, include_extras=True).items()
}


def _shown(value: Any) -> str:
    """Return the value as it would be typed, cut short, because it may come from a file."""
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def check_parameters(parameters: Mapping[str, Any]) -> Parameters:
    """Return the parameters; raise `ParameterError` if one is not what it must be."""
    for name, constraint in CONSTRAINTS.items():
        if not constraint.holds(parameters[name]):
            raise ParameterError(f"{name} must be {constraint.must_be}, got {_shown(parameters[name])} instead.")
    most = parameters["max_features"]
    if most is not None and most < parameters["min_features"]:
        raise ParameterError(
            f"max_features must be at least min_features, got max_features={most} with "
            f"min_features={parameters['min_features']}: raise the first or lower the second."
        )
    if parameters["n_global_views"] == 0 and parameters["n_local_views"] == 0:
        raise ParameterError("n_global_views and n_local_views are both 0: at least one branch must have a view.")
    if parameters["n_local_views"] > 0 and parameters["n_neighbors"] >= parameters["n_references"]:
        raise ParameterError(
            f"n_neighbors must be below n_references, got n_neighbors={parameters['n_neighbors']} with "
            f"n_references={parameters['n_references']}: lower the first or raise the second."
        )
    return Parameters(**parameters)


PRESETS: Mapping[str, Mapping[str, Any]] = {
    "paper": {},
    "fast": {"n_global_views": 20, "n_local_views": 5, "n_random_features": 5, "n_references": 200},
    "plus": {
        "n_global_views": 6,
        "n_local_views": 72,
        "n_random_features": 20,
        "bandwidth_multipliers": (1.0, 2.0),
        "n_references": 50,
        "n_neighbors": 5,
        "feature_fraction": (1.0, 0.3, 1.0, 1.0),
        "max_features": 64,
        "projection": "orthogonal",
        "preprocessing": ("arcsinh", "arcsinh-standard", "quantile"),
        "aggregation": "standard",
        "global_score": "leverage",
        "ridge": 0.02,
        "whitening": (0.0, 0.0, 0.0, 0.1),
        "trim": 0.4,
        "relations": True,
        "local_weight": 0.67,
    },
    "novelty": {
        "n_global_views": 6,
        "n_local_views": 18,
        "n_random_features": 30,
        "bandwidth_multipliers": (0.5, 1.0),
        "n_references": 1000,
        "n_neighbors": 1,
        "feature_fraction": (1.0, 0.3),
        "max_features": 64,
        "projection": "orthogonal",
        "preprocessing": ("arcsinh", "arcsinh-standard", "quantile"),
        "aggregation": "standard",
        "global_score": "leverage",
        "ridge": 0.001,
        "whitening": 0.01,
        "relations": True,
        "local_weight": 0.75,
    },
}
"""For each named configuration, the parameters that differ from the paper's."""
