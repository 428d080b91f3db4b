"""RGLD.novelty: for training rows without anomalies."""

from typing import Any

NAME = "RGLD-novelty"
GROUP = "rgld"


def make(seed: int, **settings: Any) -> Any:
    """Return our detector; a higher value is more anomalous."""
    from ._ours import Ours

    return Ours("novelty", seed, settings)
