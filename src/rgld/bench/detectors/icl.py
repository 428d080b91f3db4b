"""Contrastive learning between a few columns and the other columns of a row."""

from typing import Any

from ._deepod import NEEDS as NEEDS

NAME = "ICL"
GROUP = "deep"


def make(seed: int, **settings: Any) -> Any:
    """Return DeepOD's detector with its defaults."""
    from ._deepod import DeepOD

    return DeepOD("icl", "ICL", seed, settings)
