"""ADERH, anomaly detection by an ensemble of random pairs of hyperspheres (Durani et al., NeurIPS 2025), as
its paper describes it.

Many small random subsets of the rows are drawn, and the rows of each subset are paired at random. The two rows of a
pair become the centres of two spheres whose radius is half their distance. In each subset, a row belongs to the nearest
centre whose sphere covers it. Its score is (1 - density) * pitch: pitch is its distance from the centre divided by the
radius, density is the number of rows in the sphere per radius, divided by that of the densest sphere. A row that no
sphere covers scores 1. Scores are averaged over the subsets. Here density is counted on the training rows, so that a
score does not depend on the rows scored with it.
"""

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from ..._arrays import Floats

NAME = "ADERH"
GROUP = "statistical"


class _ADERH:
    def __init__(self, seed: int, n_subsets: int = 256, subset_size: int = 18) -> None:
        self._seed, self._n_subsets, self._subset_size = seed, n_subsets, subset_size

    def fit(self, X: Floats) -> "_ADERH":
        rng = np.random.default_rng(self._seed)
        size = min(self._subset_size, len(X)) // 2 * 2
        self._members = []
        for _ in range(self._n_subsets):
            rows = rng.choice(len(X), size, replace=False)  # consecutive rows are a random pair
            centers = X[rows]
            radii = np.repeat(0.5 * np.linalg.norm(centers[::2] - centers[1::2], axis=1), 2)
            radii[radii == 0.0] = 1.0
            nearest, _, covered = self._assign(X, centers, radii)
            density = np.bincount(nearest[covered], minlength=size) / radii
            self._members.append((centers, radii, density / max(density.max(), np.finfo(float).tiny)))
        return self

    @staticmethod
    def _assign(X: Any, centers: Any, radii: Any) -> tuple[Any, Any, Any]:
        """Return for each row the nearest centre whose sphere covers it, its distance from it in radii, and whether
        there is such a centre."""
        distances = euclidean_distances(X, centers)
        distances[distances > radii] = np.inf
        nearest = distances.argmin(axis=1)
        distance = distances[np.arange(len(X)), nearest]
        covered = np.isfinite(distance)
        return nearest, np.where(covered, distance, 0.0) / radii[nearest], covered

    def decision_function(self, X: Floats) -> Any:
        total = np.zeros(len(X))
        for centers, radii, density in self._members:
            nearest, pitch, covered = self._assign(X, centers, radii)
            total += np.where(covered, (1.0 - density[nearest]) * pitch, 1.0)
        return total / len(self._members)


def make(seed: int, **settings: Any) -> Any:
    """Return ADERH with its paper's 256 subsets of 18 rows."""
    return _ADERH(seed, **settings)
