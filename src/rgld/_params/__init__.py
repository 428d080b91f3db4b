"""What each parameter must be, its default, and the presets."""

from .constraints import AGGREGATIONS, MAX_TURNS, PREPROCESSINGS, READINGS
from .parameters import CONSTRAINTS, Parameters, check_parameters
from .presets import PRESETS, Configured

__all__ = [
    "AGGREGATIONS",
    "CONSTRAINTS",
    "MAX_TURNS",
    "PREPROCESSINGS",
    "PRESETS",
    "READINGS",
    "Configured",
    "Parameters",
    "check_parameters",
]
