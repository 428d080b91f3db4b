"""Classification of random affine transformations."""

from typing import Any

from ._deepod import NEEDS as NEEDS

NAME = "GOAD"
GROUP = "deep"


def make(seed: int, **settings: Any) -> Any:
    """Return DeepOD's detector with its defaults."""
    from ._deepod import DeepOD

    return DeepOD("goad", "GOAD", seed, settings)
