"""Deep one-class: distance to a centre in a learned space."""

from typing import Any

from ._deepod import NEEDS as NEEDS

NAME = "DeepSVDD"
GROUP = "deep"


def make(seed: int, **settings: Any) -> Any:
    """Return DeepOD's detector with its defaults."""
    from ._deepod import DeepOD

    return DeepOD("dsvdd", "DeepSVDD", seed, settings)
