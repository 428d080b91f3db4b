"""RGLD with the paper's settings; every parameter can be set."""

from typing import Any

NAME = "RGLD"
GROUP = "rgld"


def make(seed: int, **settings: Any) -> Any:
    """Return our detector; a higher value is more anomalous."""
    from ._ours import Ours

    return Ours("RGLD", seed, settings)
