"""The average rank of five detectors of different kinds: an ensemble that a careful user can write in a few lines."""

from typing import Any

import numpy as np
from scipy.stats import rankdata

from ._pyod import NEEDS as NEEDS

NAME = "RankAverage"
GROUP = "anchor"
PARTS = ("IForest", "KNN", "PCA", "HBOS", "MCD")


class _RankAverage:
    """The mean rank of a row among the scored rows, over five detectors."""

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
