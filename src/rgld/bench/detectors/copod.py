"""Copula-based outlier detection; its scores depend on the other rows scored."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "COPOD"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.copod import COPOD

    return COPOD(**{**settings})
