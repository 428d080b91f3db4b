"""Collaborative autoencoders that set suspicious rows aside."""

from typing import Any

from ._deepod import NEEDS as NEEDS

NAME = "RCA"
GROUP = "deep"


def make(seed: int, **settings: Any) -> Any:
    """Return DeepOD's detector with its defaults."""
    from ._deepod import DeepOD

    return DeepOD("rca", "RCA", seed, settings)
