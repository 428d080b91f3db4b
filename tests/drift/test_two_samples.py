"""The p-values of two samples: SciPy's where it has them, and bounds where bounds are promised."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import fisher_exact, ks_2samp

from rgld._drift import two_samples
from rgld._drift.two_samples import (
    beyond_p_value,
    corrected,
    distance_p_value,
    largest_distance,
    shares_p_value,
    smallest,
)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 2), (5, 7), (40, 40), (100, 80), (300, 700)])
def test_distances_are_as_likely_as_scipy_says(m, n):
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.3, 1.0, 10.0):
        first, second = rng.normal(size=m), rng.normal(size=n) + shift
        expected = ks_2samp(first, second, method="exact")
        bound = min(1.0, np.e * np.exp(-2.0 * expected.statistic**2 * m * n / (m + n)))
        assert distance_p_value(expected.statistic, m, n) == pytest.approx(min(expected.pvalue, bound), rel=1e-6)


def test_the_bound_is_one():
    """e exp(-2 d^2 m n / (m + n)) is never below the exact probability: proven for m = n, tried here for others."""
    for m, n in product((1, 2, 3, 5, 8, 13, 30, 77, 200), (1, 2, 4, 9, 17, 31, 100, 333)):
        steps = np.unique([abs(i / m - j / n) for i in range(m + 1) for j in range(n + 1)])
        for d in steps[1 :: max(1, len(steps) // 15)]:
            bound = np.e * np.exp(-2.0 * d**2 * m * n / (m + n))
            assert two_samples._lattice_p_value(float(d), min(m, n), max(m, n)) <= min(1.0, bound) + 1e-12


def test_large_samples_have_the_bound():
    assert distance_p_value(0.05, 10_000, 10_000) == pytest.approx(np.e * np.exp(-25.0))


def test_ties_and_few_knots_make_p_values_larger():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 5, 200), rng.integers(0, 6, 150)
    knots = np.unique(first)
    counts = [np.searchsorted(np.sort(part), knots, side="right") for part in (first, second)]
    distance, place = largest_distance(counts[1], 150, counts[0], 200)
    assert distance == pytest.approx(ks_2samp(first, second).statistic)
    assert knots[place] == 4
    distances = []
    for _ in range(1000):
        pooled = rng.permutation(np.append(first, second))
        counts = [np.searchsorted(np.sort(part), knots, side="right") for part in (pooled[:150], pooled[150:])]
        distances.append(largest_distance(counts[0], 150, counts[1], 200)[0])
    for limit in (0.08, 0.1, 0.12):
        assert distance_p_value(limit, 150, 200) > 1.5 * np.mean(np.array(distances) >= limit) > 0.0


@pytest.mark.parametrize("figures", [(3, 10, 20, 25), (0, 50, 10, 50), (7, 7, 0, 9), (500, 1000, 4000, 9000)])
def test_shares_are_doubled_tails_of_fisher_s_test(figures):
    k, n, other_k, other_n = figures
    table = [[k, n - k], [other_k, other_n - other_k]]
    one_sided = min(fisher_exact(table, alternative=side).pvalue for side in ("less", "greater"))
    assert shares_p_value(*figures) == pytest.approx(min(1.0, 2.0 * one_sided), rel=1e-7)


def test_shares_that_cannot_differ():
    assert shares_p_value(0, 10, 0, 20) == shares_p_value(10, 10, 20, 20) == shares_p_value(0, 0, 3, 20) == 1.0


def test_values_beyond_the_range():
    assert beyond_p_value(1, 1, 99) == pytest.approx(0.01)  # the new value is the highest of a hundred
    assert beyond_p_value(2, 10, 10) == pytest.approx(10 / 20 * 9 / 19)
    assert beyond_p_value(0, 10, 10) == 1.0


def test_corrections():
    assert smallest([0.01, 0.5, 0.2]) == pytest.approx(0.03)
    assert corrected(np.array([0.04, 0.01, 0.03])).tolist() == pytest.approx([0.06, 0.03, 0.06])
    assert len(corrected(np.empty(0))) == 0


def test_a_large_distance_has_a_tiny_p_value_and_no_warning():
    """Two samples that do not overlap: 2 of all orders."""
    from math import comb

    assert two_samples._lattice_p_value(1.0, 300, 400) == pytest.approx(2 / comb(700, 300), rel=1e-9)
    assert 0.0 < distance_p_value(1.0, 500, 800) < 1e-99
