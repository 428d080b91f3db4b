"""RGLD.plus: several scalings, more and cheaper views, standardized scores."""

from typing import Any

NAME = "RGLD-plus"
GROUP = "rgld"


def make(seed: int, **settings: Any) -> Any:
    """Return our detector in the study's sign."""
    from ._ours import Ours

    return Ours("plus", seed, settings)
