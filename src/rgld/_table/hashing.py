"""Hashes: uniform numbers made of integers and strings, the same on every machine."""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._arrays import Float64s


def string_hashes(strings: Sequence[str]) -> Float64s:
    """Return a number in [0, 1) for each string, the same on every machine."""
    sums = (zlib.crc32(string.encode("utf-8", "surrogatepass")) for string in strings)
    return integer_hashes(np.fromiter(sums, np.uint64, len(strings)), np.uint64(0))


def integer_hashes(integers: NDArray[np.uint64], start: np.uint64) -> Float64s:
    """Return a uniform number in [0, 1) for each integer n: the n-th number of the generator SplitMix64, which can be
    computed without the numbers before it."""
    mixed = start + (integers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
