"""Randomness: one child generator per (branch, view), and quasi-Monte Carlo normals.

In: the user's `random_state`. Out: NumPy generators that depend on the root seed and the (branch, view)
alone, so that a view draws the same numbers however many views there are and in whatever order they are
built. NumPy's global generator is never touched.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

GLOBAL, LOCAL, PAIRS, FREQUENCIES = range(4)
"""Streams: the views of each branch, the row pairs of the bandwidths, the base points of the frequencies."""

SMALLEST_POINT = 2.0**-40
"""QMC points are kept this far from 0 and 1, where the normal inverse CDF is infinite (|z| <= 7.1)."""


def root_seed(random_state: Any) -> int:
    """Return the one integer that everything random in a fit derives from."""
    if random_state is None:
        entropy = np.random.SeedSequence().entropy
        return int(entropy)  # type: ignore[arg-type]  # a fresh SeedSequence always has integer entropy
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return int(random_state)


def child(seed: int, stream: int, view: int = 0) -> np.random.Generator:
    """Return the generator of one view of one stream."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, view)))


def children(seed: int, stream: int, n_views: int) -> Iterator[np.random.Generator]:
    """Yield the generators of views 0 .. n_views - 1 of one stream."""
    return (child(seed, stream, view) for view in range(n_views))


def sobol_points(rng: np.random.Generator, n_points: int, n_dims: int) -> NDArray[np.float64]:
    """Return `n_points` scrambled Sobol points in the unit cube, shape (n_points, n_dims).

    Sobol sequences are balanced at powers of two: the next power is drawn and cut.
    """
    points: NDArray[np.float64] = qmc.Sobol(n_dims, rng=rng).random_base2(int(n_points - 1).bit_length())[:n_points]
    return points


def shifted_normals(points: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Shift the points by one uniform vector modulo 1, then map them through the normal inverse CDF.

    The shift makes every point uniform on the cube and keeps the points' even spread (a Cranley-Patterson
    rotation), so that one set of points serves all views.
    """
    shifted = (points + rng.random(points.shape[1])) % 1.0
    normals: NDArray[np.float64] = ndtri(np.clip(shifted, SMALLEST_POINT, 1.0 - SMALLEST_POINT))
    return normals
