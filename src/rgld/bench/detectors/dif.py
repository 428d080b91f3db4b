"""Deep isolation forest: isolation in random neural representations."""

from typing import Any

from ._deepod import NEEDS as NEEDS

NAME = "DIF"
GROUP = "deep"


def make(seed: int, **settings: Any) -> Any:
    """Return DeepOD's detector with its defaults."""
    from ._deepod import DeepOD

    return DeepOD("dif", "DeepIsolationForest", seed, settings)
