"""Prediction of random distances."""

from typing import Any

from ._deepod import NEEDS as NEEDS

NAME = "RDP"
GROUP = "deep"


def make(seed: int, **settings: Any) -> Any:
    """Return DeepOD's detector with its defaults."""
    from ._deepod import DeepOD

    return DeepOD("rdp", "RDP", seed, settings)
