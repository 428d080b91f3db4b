"""Lightweight on-line detector of anomalies. It draws from NumPy's global generator, which the protocol seeds."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "LODA"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.loda import LODA

    return LODA(**{**settings})
