"""ADERH as in its authors' script, from which the published numbers come.

It differs from the paper's text (see `aderh`). Partners are drawn by position in the subset but looked up in the whole
table, so they are always among its first rows. Squared radii are half the squared distance. Radii are in another order
than centres. Densities are counted on the rows being scored, so that a score depends on them. It is kept only to
compare with published figures.
"""

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from ..._arrays import Floats

NAME = "ADERH-script"
GROUP = "reference"
MAX_SEED = np.iinfo(np.int32).max


class _ScriptADERH:
    def __init__(self, seed: int, n_subsets: int = 256, subset_size: int = 18) -> None:
        self._seed, self._n_subsets, self._size = seed, n_subsets, subset_size

    def fit(self, X: Floats) -> "_ScriptADERH":
        seeds = np.random.RandomState(self._seed).randint(MAX_SEED, size=self._n_subsets)
        self._members = [self._member(X, np.random.RandomState(seed)) for seed in seeds]
        return self

    def _member(self, X: Floats, rng: np.random.RandomState) -> tuple[Any, Any]:
        size = self._size
        subset = X[rng.choice(len(X), size, replace=False)]
        partner = rng.choice(size, size, replace=False)
        for j in range(size):  # no point is its own partner
            if partner[j] == j:
                other = (j + 1) % size
                partner[[j, other]] = partner[[other, j]]
        squared_radii = ((subset - X[partner]) ** 2).sum(axis=1) / 2.0
        squared_radii[squared_radii == 0.0] = 1.0
        return np.concatenate((subset, subset[partner])), np.repeat(squared_radii, 2)

    def decision_function(self, X: Floats) -> Any:
        total = np.zeros(len(X))
        for centers, squared_radii in self._members:
            squared = euclidean_distances(X, centers, squared=True)
            squared[squared > squared_radii] = np.inf
            nearest = squared.argmin(axis=1)
            covered = np.isfinite(squared[np.arange(len(X)), nearest])
            score = np.ones(len(X))
            if covered.any():
                center = nearest[covered]
                pitch = squared[covered, center] / squared_radii[center]
                density = np.bincount(center, minlength=len(centers))[center] / squared_radii[center]
                score[covered] = (1.0 - density / density.max()) * pitch
            total += score
        return total / len(self._members)


def make(seed: int, **settings: Any) -> Any:
    """Return the script's ADERH."""
    return _ScriptADERH(seed, **settings)
