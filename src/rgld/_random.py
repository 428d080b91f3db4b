"""Randomness: one child generator per branch and quantity, and quasi-Monte Carlo normals.

In: the user's `random_state`. Out: NumPy generators that depend on the root seed, the branch and the quantity drawn.
Each quantity is drawn view after view, so that a view gets the same numbers however many views follow it. NumPy's
global generator is never touched.
"""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

GLOBAL, LOCAL = range(2)
"""The branches."""

FEATURES, PROJECTION, POINTS, SHIFTS, PHASES, PAIRS, REFERENCES, HELD_OUT, ROW_KEYS = range(9)
"""The quantities: feature subsets, projections; the base points of the frequencies and their shift in each view,
phases, row pairs of the bandwidths (global); reference rows, rows held out, keys of rows (local)."""

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


def child(seed: int, branch: int, quantity: int) -> np.random.Generator:
    """Return the generator of one quantity of one branch."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(branch, quantity)))


def sobol_points(rng: np.random.Generator, n_points: int, n_dims: int) -> NDArray[np.float64]:
    """Return `n_points` scrambled Sobol points in the unit cube, shape (n_points, n_dims).

    Sobol sequences are balanced at powers of two: the next power is drawn and cut.
    """
    points: NDArray[np.float64] = qmc.Sobol(n_dims, rng=rng).random_base2(int(n_points - 1).bit_length())[:n_points]
    return points


def shifted_normals(points: NDArray[np.float64], shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shift the points (D, r) by each of the uniform vectors (T, r) modulo 1, then map them through the normal inverse
    CDF, shape (T, D, r).

    A shift makes every point uniform on the cube and keeps the points' even spread (a Cranley-Patterson
    rotation), so that one set of points serves all views.
    """
    shifted = (points + shifts[:, None, :]) % 1.0
    normals: NDArray[np.float64] = ndtri(np.clip(shifted, SMALLEST_POINT, 1.0 - SMALLEST_POINT))
    return normals


def row_keys(seed: int, numbers: NDArray[np.int64], half_life: float | None) -> NDArray[np.float64]:
    """Return a random key for each row number: uniform on [0, 1), or smaller the later a row is.

    With a half-life, a row so many rows before another is half as likely to be among the smallest keys: they are
    exponential variables whose rate doubles every `half_life` rows (Efraimidis and Spirakis), as logarithms.
    """
    uniform = _mixed(numbers.astype(np.uint64), child(seed, LOCAL, ROW_KEYS).integers(2**64, dtype=np.uint64))
    if half_life is None:
        return uniform
    exponential = np.maximum(-np.log1p(-uniform), np.finfo(np.float64).tiny)
    keys: NDArray[np.float64] = np.log(exponential) - numbers * (np.log(2.0) / half_life)
    return keys


def text_hashes(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each text, the same on every machine."""
    sums = (zlib.crc32(text.encode("utf-8", "surrogatepass")) for text in texts)
    return _mixed(np.fromiter(sums, np.uint64, len(texts)), np.uint64(0))


def _mixed(numbers: NDArray[np.uint64], start: np.uint64) -> NDArray[np.float64]:
    """Return uniform numbers in [0, 1): the mixing of SplitMix64, a generator whose n-th number can be had without the
    ones before it."""
    mixed = start + (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
