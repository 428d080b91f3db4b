"""A rank average of five detectors of different kinds: what a careful user could put together in a few lines."""

from typing import Any

import numpy as np
from scipy.stats import rankdata

from ._pyod import NEEDS as NEEDS

NAME = "RankAverage"
GROUP = "anchor"
PARTS = ("IForest", "KNN", "PCA", "HBOS", "MCD")


class _RankAverage:
    """Ranks within the scored rows, averaged."""

    def __init__(self, seed: int) -> None:
        from . import make_detector

        self._parts = [make_detector(name, seed) for name in PARTS]

    def fit(self, X: Any) -> "_RankAverage":
        for part in self._parts:
            part.fit(X)
        return self

    def decision_function(self, X: Any) -> Any:
        return np.mean([rankdata(part.decision_function(X)) for part in self._parts], axis=0) / len(X)


def make(seed: int) -> Any:
    """Return the ensemble."""
    return _RankAverage(seed)
