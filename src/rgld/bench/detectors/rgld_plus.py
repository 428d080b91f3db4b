"""RGLD.plus: trimmed training rows, several scalings, many cheap local views, leverage views."""

from typing import Any

NAME = "RGLD-plus"
GROUP = "rgld"


def make(seed: int, **settings: Any) -> Any:
    """Return our detector; a higher value is more anomalous."""
    from ._ours import Ours

    return Ours("plus", seed, settings)
