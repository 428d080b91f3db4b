"""RGLD-Fast: half the views, random features and references."""

from typing import Any

NAME = "RGLD-Fast"
GROUP = "rgld"


def make(seed: int, **settings: Any) -> Any:
    """Return our detector; a higher value is more anomalous."""
    from ._ours import Ours

    return Ours("fast", seed, settings)
