"""Isolation by nearest-neighbour ensembles."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "INNE"
GROUP = "anchor"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.inne import INNE

    return INNE(**{"random_state": seed, **settings})
