"""Randomness: one child generator per branch and quantity, and quasi-Monte Carlo normals.

In: the user's `random_state`. Out: NumPy generators that depend on the root seed, the branch and the quantity drawn.
Each quantity is drawn view after view, so that a view gets the same numbers however many views there are. NumPy's
global generator is never used.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from .._arrays import Float32s, Float64s, Int64s, normal_quantiles
from .._table.hashing import integer_hashes

GLOBAL, LOCAL, FIRST_PASS = range(3)
"""The branches, and the local views that decide which rows are trimmed."""

FEATURES, PROJECTION, POINTS, SHIFTS, PHASES, PAIRS = range(6)
REFERENCES, HELD_OUT, ROW_KEYS, WHITENING, KEPT_ROWS, VIEWED = range(6, 12)
"""The quantities. Of both branches: feature subsets, projections. Of the global branch: base points of the frequencies
and their shift in each view, phases, row pairs for bandwidths. Of the local branch: reference rows, held-out rows, keys
of rows, rows for whitening, rows kept for explanations, rows that views learn from."""

SMALLEST_POINT = 2.0**-40
"""Quasi-Monte Carlo points are kept this far from 0 and 1, where the inverse normal CDF is infinite: |z| <= 7.1."""


SOBOL_BITS = 30
"""Bits of a coordinate of a Sobol point, as in SciPy."""
BELOW_DIAGONAL = np.tri(SOBOL_BITS, k=-1, dtype=np.uint32)
DIAGONAL = np.eye(SOBOL_BITS, dtype=np.uint32)
"""Ones below the diagonal of a matrix, and on it."""
MAX_FEW_POINTS = 256
"""For up to this many points, Sobol points are scrambled here."""


def root_seed(random_state: Any) -> int:
    """Return the integer from which everything random in a fit is derived."""
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


def sobol_points(rng: np.random.Generator, n_points: int, n_dims: int) -> Float64s:
    """Return `n_points` scrambled Sobol points in the unit cube, shape (n_points, n_dims).

    Sobol sequences are balanced at powers of two, so the next power of two is drawn and cut. The points are those of
    `scipy.stats.qmc.Sobol(n_dims, rng=rng)`, to the bit. Few points are scrambled here, in a third of the time: the
    bits of each coordinate, the most significant first, are multiplied modulo 2 with a random lower triangular matrix,
    then some are flipped.
    """
    size = int(n_points - 1).bit_length()
    if n_points > MAX_FEW_POINTS:
        points: Float64s = _engine(n_dims, rng=rng).random_base2(size)[:n_points]
        return points
    own = rng.spawn(1)[0]  # as the engine does
    flips = own.integers(2, size=(n_dims, SOBOL_BITS), dtype=np.uint32)[:, ::-1]
    matrices = own.integers(2, size=(n_dims, SOBOL_BITS, SOBOL_BITS), dtype=np.uint32) * BELOW_DIAGONAL + DIAGONAL
    bits = _plain_sobol_bits(n_dims, size) @ matrices.astype(np.float32).swapaxes(1, 2)  # whole numbers up to 30
    scrambled = (bits.astype(np.uint32) & 1) ^ flips[:, None, :]
    points = scrambled @ 0.5 ** np.arange(1, SOBOL_BITS + 1)
    return points.T[:n_points]


def _engine(n_dims: int, **options: Any) -> Any:
    from scipy.stats import qmc  # imported here: it takes long, and only a fit needs it

    return qmc.Sobol(n_dims, **options)


@lru_cache(maxsize=16)
def _plain_sobol_bits(n_dims: int, size: int) -> Float32s:
    """Return the bits of the first 2^size Sobol points before scrambling, shape (n_dims, 2^size, SOBOL_BITS)."""
    whole = _engine(n_dims, scramble=False).random_base2(size).T * 2.0**SOBOL_BITS
    places = np.arange(SOBOL_BITS, dtype=np.uint32)[::-1]
    bits: Float32s = (whole.astype(np.uint32)[..., None] >> places & 1).astype(np.float32)
    return bits


def shifted_normals(points: Float64s, shifts: Float64s) -> Float64s:
    """Return normals, shape (T, D, r): the points (D, r) shifted by each of the uniform vectors (T, r) modulo 1, then
    mapped by the inverse normal CDF.

    A shift makes every point uniform on the cube and keeps the even spread of the points (a Cranley-Patterson
    rotation), so that one set of points serves all views.
    """
    shifted = (points + shifts[:, None, :]) % 1.0
    normals: Float64s = normal_quantiles(np.clip(shifted, SMALLEST_POINT, 1.0 - SMALLEST_POINT))
    return normals


def row_keys(seed: int, indices: Int64s, half_life: float | None) -> Float64s:
    """Return a random key for each row index: uniform on [0, 1), or with a half-life smaller for later rows.

    With a half-life, a row is half as likely to have one of the smallest keys as a row `half_life` rows later. The keys
    are logarithms of exponential variables whose rate doubles every `half_life` rows (Efraimidis and Spirakis).
    """
    uniform = integer_hashes(indices.astype(np.uint64), child(seed, LOCAL, ROW_KEYS).integers(2**64, dtype=np.uint64))
    if half_life is None:
        return uniform
    exponential = np.maximum(-np.log1p(-uniform), np.finfo(np.float64).tiny)
    keys: Float64s = np.log(exponential) - indices * (np.log(2.0) / half_life)
    return keys
