"""Isolation forest, 100 trees."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "IForest"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.iforest import IForest

    return IForest(**{"random_state": seed, **settings})
