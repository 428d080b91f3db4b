"""Connectivity-based outlier factor."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "COF"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.cof import COF

    return COF(**{**settings})
