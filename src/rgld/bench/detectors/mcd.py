"""Minimum covariance determinant."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "MCD"
GROUP = "anchor"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.mcd import MCD

    return MCD(**{"random_state": seed, **settings})
