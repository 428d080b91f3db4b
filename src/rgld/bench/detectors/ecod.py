"""Empirical cumulative distributions. The published numbers are older than a bug fix of April 2022."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "ECOD"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.ecod import ECOD

    return ECOD(**{**settings})
