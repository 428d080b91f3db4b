"""Principal components: distance in the space of the eigenvectors. Scores can be infinite if an eigenvalue is 0."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "PCA"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.pca import PCA

    return PCA(**{"random_state": seed, **settings})
