"""Local outlier factor."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "LOF"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.lof import LOF

    return LOF(**{**settings})
