"""Distance to the k-th nearest neighbour."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "KNN"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.knn import KNN

    return KNN(**{**settings})
