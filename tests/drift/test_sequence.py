"""Bets against rows: exact where the theorem is exact, and the same however the rows are split."""

import numpy as np
import pytest
from scipy.stats import kstest, pearsonr

from rgld._drift import sequence
from rgld._drift.sequence import EXPONENT, SLOPES, Watch, _bets, _rank


def ranks_of(pool, scores, rng):
    pool = sorted(pool)
    return [_rank(pool, score, 1.0 - rng.random(), 1.0 - rng.random()) for score in scores]


@pytest.mark.parametrize("max_pool", [10, 10_000])
def test_ranks_are_independent_and_uniform(monkeypatch, max_pool):
    """Also in a pool that random scores leave, and with ties. With 5 x 1000 ranks a p-value below 1e-4 would be no
    accident."""
    monkeypatch.setattr(sequence, "MAX_POOL", max_pool)
    rng = np.random.default_rng(0)
    runs = np.array([ranks_of(scores[:10], scores[10:], rng) for scores in rng.integers(0, 8, (1000, 15)).tolist()])
    assert all(kstest(column, "uniform").pvalue > 1e-4 for column in runs.T)
    assert all(pearsonr(runs[:, i], runs[:, i + 1]).pvalue > 1e-4 for i in range(4))
    assert all(pearsonr(abs(runs[:, 0] - 0.5), abs(runs[:, i] - 0.5)).pvalue > 1e-4 for i in range(1, 5))


def test_every_bet_is_fair():
    """The mean of the factor over all ranks is 1: the bets multiply money by nothing, on average."""
    ranks = (np.arange(200_000) + 0.5) / 200_000
    for slope in SLOPES:
        assert np.mean(1.0 + slope * (ranks - 0.5)) == pytest.approx(1.0)
    assert np.mean(EXPONENT * ranks ** (EXPONENT - 1.0)) == pytest.approx(1.0, abs=2e-3)


def test_money_is_moved_and_not_made():
    steps, shares = _bets([0.5] * 50, 0, list(Watch(()).shares))
    fair = EXPONENT * 0.5 ** (EXPONENT - 1.0)  # the only bet that does not pay 1 for a middle rank
    assert sum(shares) == pytest.approx(1.0)
    assert all(fair <= step <= 1.0 for step in steps)


def test_split_rows_give_the_same_bets():
    rng = np.random.default_rng(2)
    scores = rng.random(2500)
    begun = Watch.begin(np.sort(rng.random(200)))
    whole, path = begun.followed(scores)
    parts, paths = begun, []
    for part in np.array_split(scores, [1, 700, 1024, 2048, 2048]):
        parts, own = parts.followed(part)
        paths.append(own)
    assert parts == whole
    assert np.array_equal(np.concatenate(paths), path)
    assert whole.highest == max(path.max(), 0.0)


def test_a_change_is_found_and_an_ordinary_sequence_is_not():
    rng = np.random.default_rng(3)
    begun = Watch.begin(rng.normal(size=500))
    quiet, _ = begun.followed(rng.normal(size=2000))
    assert quiet.p_value > 0.01
    for change in (2.0, -2.0):
        loud, _ = quiet.followed(rng.normal(size=60) + change)
        assert loud.p_value < 1e-4
        assert 2000 < loud.highest_at <= 2060


def test_false_alarms_are_as_rare_as_promised():
    """400 sequences of 200 rows: at most 5 % may reach 20. 36 alarms would be 4 standard deviations above."""
    rng = np.random.default_rng(4)
    highest = [Watch.begin(rng.random(100)).followed(rng.random(200))[0].highest for _ in range(400)]
    assert sum(np.exp(highest) >= 20.0) <= 36


def test_a_large_calibration_is_sampled():
    watch = Watch.begin(np.arange(50_000.0))
    assert len(watch.pool) == sequence.MAX_POOL
    assert len(watch.followed(np.arange(10.0))[0].pool) == sequence.MAX_POOL


def test_no_rows_and_no_pool():
    watch = Watch.begin(np.arange(3.0))
    assert watch.followed(np.empty(0))[0] is watch
    assert Watch.begin(np.empty(0)).followed(np.ones(3))[0].n_rows == 0
