"""Two samples: could they come from the same source?

In: counts. Out: p-values that are valid for samples of any size, with ties or without, whatever the distribution: under
exchangeability, P(p <= t) <= t.
"""

from functools import lru_cache
from math import e
from typing import Any

import numpy as np

from .._arrays import Float64s, Int64s

MAX_LATTICE = 400_000
"""The distribution of the largest distance is computed exactly for samples of sizes m and n with m n up to this.
Beyond, the bound of Dvoretzky, Kiefer and Wolfowitz is close."""
ROUNDING = 1e-9
"""Distances that differ by less are equal."""


def largest_distance(counts: Int64s, n: int, other_counts: Int64s, other_n: int) -> tuple[float, int]:
    """Return the largest distance of two cumulative distributions, given as counts at the same knots, and the knot."""
    differences = np.abs(counts / n - other_counts / other_n)
    place = int(np.argmax(differences))
    return float(differences[place]), place


def distance_p_value(distance: float, m: int, n: int) -> float:
    """Return the p-value of the largest distance between the distributions of two samples (Kolmogorov and Smirnov).

    A distance that was taken at some knots only is at most the largest one, and ties make distances smaller: the
    p-value is then too large, and still valid.
    """
    if distance <= 0.0 or not m or not n:
        return 1.0
    bound = min(1.0, e * np.exp(-2.0 * distance**2 * (m * n / (m + n))))
    if m * n > MAX_LATTICE:
        return float(bound)
    return min(float(bound), _lattice_p_value(round(distance, 12), min(m, n), max(m, n)))


@lru_cache(maxsize=1024)
def _lattice_p_value(distance: float, m: int, n: int) -> float:
    """Return the probability that two samples without ties have a distance of at least this.

    The pooled samples in order are a path from (0, 0) to (m, n), and all paths are equally likely. Of the paths to
    (i, j), `left[i]` is the fraction that were somewhere where |i / m - j / n| >= distance. A path to (i, j) comes over
    (i - 1, j) with probability i / (i + j), else over (i, j - 1). These are
    sums of numbers in [0, 1], so that tiny p-values are right too.
    """
    i = np.arange(m + 1)
    left = np.zeros(m + 1)
    for length in range(1, m + n + 1):
        j = length - i
        over_i = np.concatenate(([0.0], left[:-1]))
        left = (over_i * i + left * j) / length
        left[np.abs(i / m - j / n) >= distance - ROUNDING] = 1.0
        left[(j < 0) | (j > n)] = 0.0  # no such point
    return float(left[m])


def shares_p_value(k: int, n: int, other_k: int, other_n: int) -> float:
    """Return the two-sided p-value of Fisher's exact test: k of n rows have a property, and other_k of other_n rows."""
    if not n or not other_n or not 0 < k + other_k < n + other_n:
        return 1.0
    total, having = n + other_n, k + other_k
    lowest, highest = max(0, having - other_n), min(n, having)
    is_low = k < n * (having / total)
    tail = np.arange(lowest, k + 1) if is_low else np.arange(k, highest + 1)
    log_terms = _log_choose(n, tail) + _log_choose(other_n, having - tail) - _log_choose(total, having)
    return float(np.clip(2.0 * np.exp(log_terms).sum(), 0.0, 1.0))


def _log_choose(n: int, k: Int64s | int) -> Float64s:
    """Return the logarithm of the number of ways to choose k of n."""
    logarithm: Float64s = _log_gamma(n + 1) - _log_gamma(np.add(k, 1)) - _log_gamma(np.subtract(n, k) + 1)
    return logarithm


def beyond_p_value(k: int, n: int, other_n: int) -> float:
    """Return the p-value for k of n rows above the highest of other_n rows: all k highest rows are of the first
    kind."""
    if not k or not other_n:
        return 1.0
    return float(np.exp(_log_falling(n, k) - _log_falling(n + other_n, k)))


def _log_falling(n: int, k: int) -> Float64s:
    """Return log n (n - 1) ... (n - k + 1)."""
    logarithm: Float64s = _log_gamma(n + 1) - _log_gamma(n - k + 1)
    return logarithm


def smallest(p_values: list[float]) -> float:
    """Return the p-value of the smallest of several, corrected for their number (Bonferroni)."""
    return min(1.0, len(p_values) * min(p_values, default=1.0))


def corrected(p_values: Float64s) -> Float64s:
    """Return p-values corrected for their number by Holm's procedure: those at or below t are all right, except with
    probability t."""
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")
    stepped = np.maximum.accumulate(p_values[order] * (n - np.arange(n)))
    result = np.empty(n)
    result[order] = np.minimum(stepped, 1.0)
    return result


def _log_gamma(x: Any) -> Any:
    from scipy.special import gammaln  # imported here: it takes long, and only a comparison of tables needs it

    return gammaln(x)
