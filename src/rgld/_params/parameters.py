"""Parameters: what each must be, and the error if it is not.

In: a mapping of names to values. Out: `Parameters`, or a `ParameterError`. `fit` calls this, `__init__` never does, as
scikit-learn asks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import numpy as np

from ..exceptions import ParameterError
from .constraints import (
    AGGREGATIONS,
    GLOBAL_SCORES,
    MAX_NA_VALUES,
    MAX_TURNS,
    PREPROCESSINGS,
    PROJECTIONS,
    READINGS,
    Constraint,
    are_multipliers,
    are_na_values,
    are_readings,
    auto_or,
    fraction,
    integer,
    is_n_jobs,
    is_preprocessing,
    is_random_state,
    is_real,
    none_or,
    one_of,
    one_or_several,
)


@dataclass(frozen=True)
class Parameters:
    """The parameters of a detector, each with its constraint. The docstring of `RGLD` says what each means."""

    n_global_views: Annotated[int, integer(0)]
    n_local_views: Annotated[int, integer(0)]
    n_random_features: Annotated[int, integer(1)]
    bandwidth_multipliers: Annotated[
        Sequence[float], Constraint(are_multipliers, "a non-empty tuple of numbers in [0.001, 1000]")
    ]
    n_bandwidth_pairs: Annotated[int, integer(1)]
    n_references: Annotated[int, integer(2)]
    n_neighbors: Annotated[int, integer(1)]
    feature_fraction: Annotated[float | Sequence[float], one_or_several(fraction(1.0))]
    min_features: Annotated[int, integer(1)]
    max_features: Annotated[int | None, none_or(integer(1))]
    projection_dim: Annotated[int | str, auto_or(integer(1, 1024))]
    projection: Annotated[str, one_of(PROJECTIONS)]
    preprocessing: Annotated[
        str | Sequence[str],
        Constraint(is_preprocessing, f"'auto', one of {PREPROCESSINGS} or a tuple of up to {MAX_TURNS} of these"),
    ]
    aggregation: Annotated[str, one_of(AGGREGATIONS)]
    global_score: Annotated[str, one_of(GLOBAL_SCORES)]
    ridge: Annotated[float, Constraint(lambda v: is_real(v) and 1e-6 <= v <= 1e3, "a number in [1e-06, 1000]")]
    whitening: Annotated[
        float | Sequence[float],
        one_or_several(Constraint(lambda v: is_real(v) and 0 <= v <= 1, "a number in [0, 1]")),
    ]
    trim: Annotated[float, Constraint(lambda v: is_real(v) and 0 <= v <= 0.9, "a number in [0, 0.9]")]
    max_training_rows: Annotated[int | None, none_or(integer(2))]
    relations: Annotated[bool, Constraint(lambda v: isinstance(v, (bool, np.bool_)), "True or False")]
    local_weight: Annotated[float, Constraint(lambda v: is_real(v) and 0 < v < 1, "a number in (0, 1)")]
    columns: Annotated[
        Mapping[str, str] | None,
        Constraint(are_readings, f"None or a dictionary from column names to one of {READINGS}"),
    ]
    na_values: Annotated[
        Mapping[str, Sequence[str | float]] | Sequence[str | float] | None,
        Constraint(are_na_values, f"None, a list of up to {MAX_NA_VALUES} values, or a dictionary of such by column"),
    ]
    calibration_fraction: Annotated[float, Constraint(lambda v: is_real(v) and 0 <= v <= 0.9, "a number in [0, 0.9]")]
    contamination: Annotated[float | str, auto_or(fraction(0.5))]
    random_state: Annotated[
        Any, Constraint(is_random_state, "None, a non-negative integer, a RandomState or a Generator")
    ]
    n_jobs: Annotated[int | None, Constraint(is_n_jobs, "None or an integer other than 0 from -4096 to 4096")]

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
