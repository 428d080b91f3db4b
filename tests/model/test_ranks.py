"""Frozen ranks: closed forms, order, the grid's error."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata

from rgld._model.ranks import (
    EXACT_CDF_SIZE,
    GRID_SIZE,
    STANDARD_BOUNDS,
    fit_branch_ranks,
    fit_cdf,
    fit_standards,
    normalized_rank,
    rank_agg,
    standard_agg,
)

from ..reference import paper

scores_1d = hnp.arrays(np.float32, st.integers(1, 60), elements=st.floats(-1e6, 1e6, width=32))


def test_closed_form():
    cdf = fit_cdf(np.array([1.0, 2.0, 2.0, 5.0]))
    # 1 is the first of four: 0.5/4. The two 2s share places 2 and 3: (1.5/4 + 2.5/4)/2. 5 is last: 3.5/4.
    np.testing.assert_allclose(normalized_rank(cdf, np.array([1.0, 2.0, 5.0])), [0.125, 0.5, 0.875])
    # Half way between two knots, half way between their ranks.
    np.testing.assert_allclose(normalized_rank(cdf, np.array([3.5])), [(0.5 + 0.875) / 2])
    # One training range (4) beyond the largest: half of the last half step is left, times 1 / (1 + log 2).
    np.testing.assert_allclose(normalized_rank(cdf, np.array([9.0])), [1 - 0.125 / (1 + np.log(2))])


@given(scores_1d)
def test_training_ranks_are_average_ranks(scores):
    ranks = normalized_rank(fit_cdf(scores), scores)
    np.testing.assert_allclose(ranks, (rankdata(scores.astype(float)) - 0.5) / len(scores), rtol=0, atol=1e-12)
    assert ranks.min() >= 0.5 / len(scores) - 1e-15
    assert ranks.max() <= 1 - 0.5 / len(scores) + 1e-15


@given(scores_1d, scores_1d)
@example(  # the line's slope leads past its end by a rounding
    np.array([2.220446e-16, 1, 1, 1, 2.220446e-16] + 33 * [-23555.5], np.float32),
    np.array([0, 2.220446e-16], np.float32),
)
def test_ranks_equal_the_twins_and_never_decrease(train, new):
    ranks = normalized_rank(fit_cdf(train), new)
    expected = [paper.normalized_rank(train.astype(float).tolist(), float(s)) for s in new]
    np.testing.assert_allclose(ranks, expected, rtol=0, atol=1e-12)
    ordered = normalized_rank(fit_cdf(train), np.sort(new))
    assert np.all(np.diff(ordered) >= 0)
    assert np.all((ranks > 0) & (ranks < 1))


def test_extreme_rows_keep_their_order():
    cdf = fit_cdf(np.random.default_rng(0).normal(size=10_000))
    for sign in (1, -1):
        ranks = normalized_rank(cdf, sign * np.geomspace(10, 1e30, 200))
        assert np.all(sign * np.diff(ranks) > 0)
        assert np.all((ranks > 0) & (ranks < 1))


@pytest.mark.parametrize("value", [0.0, -3.0, 1e30])
def test_one_value_only(value):
    cdf = fit_cdf(np.full(50, value))
    ranks = normalized_rank(cdf, np.array([value - abs(value) - 1, value, value + abs(value) + 1]))
    assert ranks[0] < 0.01 and ranks[1] == 0.5 and ranks[2] > 0.99


@pytest.mark.parametrize("kind", ["normal", "heavy tail", "ties", "spikes"])
def test_grid_is_bounded_and_close(kind):
    rng = np.random.default_rng(0)
    n = 200_000
    scores = {
        "normal": rng.normal(size=n),
        "heavy tail": rng.standard_cauchy(size=n),
        "ties": rng.normal(size=n).round(4),
        "spikes": np.where(rng.random(n) < 0.3, 0.123, rng.random(n)),
    }[kind].astype(np.float32)
    cdf = fit_cdf(scores)
    assert len(cdf.values) <= EXACT_CDF_SIZE
    exact = (rankdata(scores) - 0.5) / n
    ranks = normalized_rank(cdf, scores)
    assert np.abs(ranks - exact).max() <= 1 / GRID_SIZE
    top = exact > 1 - 1 / GRID_SIZE
    assert np.abs(np.log((1 - ranks[top]) / (1 - exact[top]))).max() < 2 * np.log(n / GRID_SIZE) / GRID_SIZE + 1e-9
    assert np.all(np.diff(normalized_rank(cdf, np.sort(scores))) >= 0)


def test_the_upper_tail_has_a_finer_grid(monkeypatch):
    """With only 64 steps in rank, a rank in the top 1/64 is still right to some percent of its distance to 1."""
    monkeypatch.setattr("rgld._model.ranks.EXACT_CDF_SIZE", 256)
    monkeypatch.setattr("rgld._model.ranks.GRID_SIZE", 64)
    n = 200_000
    scores = np.random.default_rng(0).standard_cauchy(size=n)
    exact = (rankdata(scores) - 0.5) / n
    top = exact > 1 - 1 / 64
    step = (n / 32) ** (1 / 62)
    error = np.abs(np.log((1 - normalized_rank(fit_cdf(scores), scores[top])) / (1 - exact[top])))
    assert error.max() < np.log(step)


def test_exact_up_to_the_stated_size():
    scores = np.random.default_rng(1).permutation(EXACT_CDF_SIZE).astype(float)
    assert len(fit_cdf(scores).values) == EXACT_CDF_SIZE
    assert len(fit_cdf(np.append(scores, [-1.0, 1e9])).values) < EXACT_CDF_SIZE


def test_rank_agg_is_the_mean_rank():
    train = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 30.0, 20.0, 40.0]])
    cdfs = [fit_cdf(scores) for scores in train]
    np.testing.assert_allclose(rank_agg(cdfs, train), [0.125, (0.375 + 0.625) / 2, 0.5, 0.875])


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(2, 20)), elements=st.floats(-100, 100, width=32))
)
def test_branch_scores_equal_the_twins(view_scores):
    _, scores = fit_branch_ranks(view_scores, np.empty(0))
    expected, _ = paper.rank_agg([(view.astype(float).tolist(), []) for view in view_scores])
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


def test_equal_means_tie_whatever_the_order_of_the_sum():
    # Rows 0 and 1 have the same ranks in another order, and a floating-point sum depends on the order.
    view_scores = np.array([[1, 3, 2, 5, 4], [3, 5, 1, 2, 4], [5, 1, 3, 2, 4]], dtype=np.float32)
    _, scores = fit_branch_ranks(view_scores, np.empty(0))
    assert scores[0] == scores[1]


def test_standardized_scores_by_hand():
    scores = np.float32([[1.0, np.e, np.e**2, 0.0], [1.0, 2.0, 3.0, 2.0]])
    standards = fit_standards(scores, np.float32([np.e**-1, 0.0]))
    np.testing.assert_allclose(standards[0], [np.e**-1, 0.5, np.sqrt(1.25)], rtol=1e-6)  # of 0, 1, 2, -1
    np.testing.assert_allclose(standards[1], [0.0, 2.0, np.sqrt(0.5)], rtol=1e-6)
    expected = [(-0.5 / 1.25**0.5 - 2**0.5) / 2, 0.25 / 1.25**0.5]
    np.testing.assert_allclose(standard_agg(standards, scores)[:2], expected, rtol=1e-5)
    far = np.float32([[1e30], [-1e30]])
    np.testing.assert_allclose(standard_agg(standards, far), np.mean(STANDARD_BOUNDS))
    same = fit_standards(np.ones((1, 5), np.float32), np.zeros(1, np.float32))
    assert standard_agg(same, np.ones((1, 2), np.float32)).tolist() == [0.0, 0.0]
