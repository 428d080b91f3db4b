"""Scale learning: a network predicts the size of a subspace from its content."""

from typing import Any

from ._deepod import NEEDS as NEEDS

NAME = "SLAD"
GROUP = "deep"


def make(seed: int, **settings: Any) -> Any:
    """Return DeepOD's detector with its defaults."""
    from ._deepod import DeepOD

    return DeepOD("slad", "SLAD", seed, settings)
