"""Copula-based outlier detection; a score depends on the rows scored with it."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "COPOD"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.copod import COPOD

    return COPOD(**{**settings})
