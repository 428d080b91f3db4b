"""How sure: conformal p-values, the selection at a false-discovery rate, and what is held out for them.

Tests over repeated draws use fixed seeds; their tolerances are about three standard errors.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest

from rgld import RGLD, CalibrationError, ParameterError, TableError, _detector, load
from rgld._fit import sampling
from rgld._fit.sampling import split_rows
from rgld._params import check_parameters
from rgld._threshold import MAX_CALIBRATION_ROWS, conformal_p_values, fit_offset, fraction_above, select_by_fdr

SMALL = {"n_global_views": 4, "n_local_views": 4, "n_references": 20, "n_bandwidth_pairs": 100, "n_neighbors": 3}
MAKERS = {
    "paper": lambda **more: RGLD(**SMALL, **more),
    "plus": lambda **more: RGLD.plus(n_local_views=8, n_references=20, n_neighbors=3, **more),
    "novelty": lambda **more: RGLD.novelty(n_local_views=8, n_references=20, **more),
}
D = 5


def ordinary(rng, n):
    """Correlated normal rows."""
    return rng.normal(size=(n, D)) @ np.linspace(-1.0, 1.0, D * D).reshape(D, D) + rng.normal(size=(n, D))


def anomalous(rng, n):
    """Rows far away in two columns."""
    X = ordinary(rng, n)
    X[:, :2] += 12.0
    return X


# The formulas, by hand.


class Fixed:
    """A generator whose uniform numbers are known."""

    def __init__(self, *numbers):
        self.numbers = numbers

    def random(self, n):
        return np.array(self.numbers[:n])


def test_p_values_by_hand():
    """One plus the number of calibration scores at least as high, of four and one."""
    calibration = np.array([1.0, 2.0, 2.0, 3.0])
    scores = np.array([0.0, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
    np.testing.assert_array_equal(conformal_p_values(calibration, scores), np.array([5, 5, 4, 4, 2, 2, 1]) / 5)


def test_randomized_p_values_by_hand():
    """2 is below one score and ties with two and itself: anything in (1/5, 4/5], by a uniform number."""
    calibration = np.array([1.0, 2.0, 2.0, 3.0])
    p = conformal_p_values(calibration, np.array([2.0, 2.0, 4.0, 0.0]), Fixed(0.0, 0.5, 0.75, 0.5))
    np.testing.assert_allclose(p, [4 / 5, (1 + 1.5) / 5, 0.25 / 5, 4.5 / 5])


def test_selection_by_hand():
    """Levels 0.0125, 0.025, 0.0375, 0.05: the third smallest is the last below its own."""
    assert select_by_fdr(np.array([0.5, 0.01, 0.03, 0.02]), 0.05).tolist() == [False, True, True, True]
    # The smaller one is above its own level, 0.025, and is selected for the sake of the larger one.
    assert select_by_fdr(np.array([0.05, 0.03]), 0.05).tolist() == [True, True]
    assert select_by_fdr(np.array([0.06, 0.03]), 0.05).tolist() == [False, False]
    assert select_by_fdr(np.empty(0), 0.05).tolist() == []


few_numbers = st.integers(-5, 5).map(float)  # few, so that they tie
several_scores = st.lists(few_numbers, min_size=1, max_size=30).map(np.array)


@given(several_scores, several_scores, st.integers(0, 2**32))
def test_p_values_fall_with_the_score_and_stay_in_range(calibration, scores, seed):
    calibration, scores = np.sort(calibration), np.sort(scores)
    p = conformal_p_values(calibration, scores)
    assert (np.diff(p) <= 0).all()
    assert p.min() >= 1 / (len(calibration) + 1) and p.max() <= 1
    randomized = conformal_p_values(calibration, scores, np.random.default_rng(seed))
    assert randomized.min() > 0 and (randomized <= p).all()


def naive_selection(p_values, fdr):
    """Benjamini and Hochberg's words in a loop."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    last = 0
    for k in range(1, len(order) + 1):
        if p_values[order[k - 1]] <= fdr * k / len(order):
            last = k
    return sorted(order[:last])


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.sampled_from([49, 99, 999]), st.floats(0.001, 0.999))
def test_selection_equals_a_naive_one(counts, h, fdr):
    p = np.minimum(1.0, np.array(counts) / (h + 1))
    assert np.flatnonzero(select_by_fdr(p, fdr)).tolist() == naive_selection(p.tolist(), fdr)


# What the p-values promise.


@pytest.mark.parametrize("preset", MAKERS)
def test_p_values_of_ordinary_rows_are_uniform(preset):
    """One fresh row from each of 500 draws of everything: independent p-values. 30 of 60 rows are held out, too few to
    learn from well; the promise holds all the same."""
    p, randomized = [], []
    for seed in range(500):
        rng = np.random.default_rng(seed)
        detector = MAKERS[preset](calibration_fraction=0.5, random_state=seed, n_jobs=1).fit(ordinary(rng, 60))
        row = ordinary(rng, 1)
        p.append(detector.p_values(row)[0])
        randomized.append(detector.p_values(row, random_state=seed)[0])
    assert kstest(randomized, "uniform").pvalue > 0.01
    for t in (0.05, 0.1, 0.2, 0.5):
        assert np.mean(np.array(p) <= t) <= t + 3 * np.sqrt(t * (1 - t) / len(p))


def test_rows_from_elsewhere_are_noticed():
    """The same draws, but the fresh row is a quarter wider: the test above is able to fail."""
    p = []
    for seed in range(500):
        rng = np.random.default_rng(seed)
        detector = MAKERS["plus"](calibration_fraction=0.5, random_state=seed, n_jobs=1).fit(ordinary(rng, 60))
        p.append(detector.p_values(1.25 * ordinary(rng, 1), random_state=seed)[0])
    assert kstest(p, "uniform").pvalue < 0.01


def test_false_positive_rate_of_one_calibration_is_a_beta_variable():
    """For h = 99 and t = 0.05 it is Beta(5, 95). Scores are uniform, so the rate of a calibration is known exactly."""
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(500):
        calibration = np.sort(rng.random(99))
        fifth = calibration[-5]
        assert conformal_p_values(calibration, np.array([fifth, np.nextafter(fifth, 2)])).tolist() == [0.06, 0.05]
        rates.append(1 - fifth)
    assert kstest(rates, beta(5, 95).cdf).pvalue > 0.01


@pytest.mark.parametrize(("preset", "least_power"), [("paper", 0.5), ("plus", 0.9)])
def test_realized_false_discovery_rate_and_power(preset, least_power):
    """80 draws, 199 calibration rows, 200 new rows of which 20 are anomalies, fdr = 0.2: 18 % of the selected
    are expected to be false. Few views and references find half of the anomalies, or nearly all."""
    false_shares, powers = [], []
    is_anomaly = np.arange(200) >= 180
    for seed in range(80):
        rng = np.random.default_rng(seed)
        detector = MAKERS[preset](calibration_fraction=0.5, random_state=seed).fit(ordinary(rng, 398))
        X = np.vstack([ordinary(rng, 180), anomalous(rng, 20)])
        selected = detector.select(X, fdr=0.2)
        false_shares.append((selected & ~is_anomaly).sum() / max(1, selected.sum()))
        powers.append(selected[is_anomaly].mean())
    assert np.mean(false_shares) <= 0.2 + 3 * np.std(false_shares) / np.sqrt(80)
    assert np.mean(false_shares) > 0.05  # it spends what it may
    assert np.mean(powers) > least_power


def test_without_anomalies_selections_are_as_rare_as_promised():
    """Every selection is false then, so that draws with any are a share of at most fdr."""
    any_selected = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        detector = MAKERS["plus"](calibration_fraction=0.5, random_state=seed, n_jobs=1).fit(ordinary(rng, 198))
        any_selected.append(detector.select(ordinary(rng, 20), fdr=0.2).any())
    assert 0.05 < np.mean(any_selected) <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 200)


def test_a_contaminated_table_makes_p_values_larger():
    rng = np.random.default_rng(0)
    clean = ordinary(rng, 1000)
    dirty = np.vstack([clean[:950], anomalous(rng, 50)])
    new = np.vstack([ordinary(rng, 100), anomalous(rng, 100)])
    p_clean, p_dirty = (
        RGLD.plus(calibration_fraction=0.4, random_state=0).fit(table).p_values(new) for table in (clean, dirty)
    )
    assert np.median(p_clean[100:]) == 1 / 401
    assert 0.01 < np.median(p_dirty[100:]) < 0.1
    assert np.mean(p_dirty[:100] <= 0.05) <= 0.05


# What is held out, and what of it gets into the model: nothing.


def held_out_rows(detector, n):
    """Which rows the fit holds out: they depend on the seed and the number of rows alone."""
    return split_rows(n, 1, check_parameters(detector.get_params()), detector.random_state).held_out


def table_of_all_kinds(rng, n):
    return pd.DataFrame(
        {
            "amount": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(size=n)),
            "city": rng.choice(["Bonn", "Lyon", "Oslo"], n),
            "paid": rng.choice(["yes", "no"], n),
            "number as text": [f"{value:.2f}" for value in rng.normal(size=n)],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )


@pytest.mark.parametrize("preset", MAKERS)
@pytest.mark.parametrize("make_table", [ordinary, table_of_all_kinds])
@pytest.mark.filterwarnings("ignore::rgld.exceptions.TableWarning")  # held-out rows are read by the others' rules
def test_the_model_is_that_of_the_other_rows(preset, make_table):
    rng = np.random.default_rng(0)
    X, new = make_table(rng, 150), make_table(rng, 40)
    detector = MAKERS[preset](calibration_fraction=0.3, random_state=7)
    held_out = held_out_rows(detector, 150)
    take = (lambda rows: X[rows]) if isinstance(X, np.ndarray) else (lambda rows: X.iloc[rows])
    if not isinstance(X, np.ndarray):
        # What only held-out rows hold: a city, a text that is no number, and rows that read as texts.
        X.loc[held_out[:2], "city"] = "Rome"
        X.loc[held_out[:2], "number as text"] = "unknown"
    detector.fit(X)
    alone = MAKERS[preset](random_state=7).fit(take(np.setdiff1d(np.arange(150), held_out)))
    assert len(held_out) == 45
    assert detector.columns_ == alone.columns_
    assert (detector.anomaly_score(new) == alone.anomaly_score(new)).all()
    assert (detector.model_.calibration == np.sort(alone.anomaly_score(take(held_out)))).all()
    assert detector.offset_ == alone.offset_


def test_a_gap_that_only_held_out_rows_have_is_filled_with_the_training_median():
    X = ordinary(np.random.default_rng(0), 100)
    detector = RGLD(calibration_fraction=0.3, random_state=0, contamination=0.1)
    held_out = held_out_rows(detector, 100)
    X[held_out[0], 2] = np.nan
    detector.fit(X)
    expected = detector.anomaly_score(X[held_out])
    assert (detector.model_.calibration == np.sort(expected)).all()
    filled = X[held_out[:1]].copy()
    filled[0, 2] = np.median(np.delete(X, held_out, axis=0)[:, 2])
    np.testing.assert_allclose(expected[0], detector.anomaly_score(filled)[0])


def test_errors_name_the_row_of_the_table():
    detector = RGLD(calibration_fraction=0.5, random_state=0)
    held_out = held_out_rows(detector, 100)
    for row in (held_out[-1], np.setdiff1d(np.arange(100), held_out)[-1]):
        X = ordinary(np.random.default_rng(0), 100)
        X[row, 1] = np.inf
        for table in (X, pd.DataFrame(X, columns=list("abcde"))):
            with pytest.raises(TableError, match=rf"in row {row}\b"):
                detector.fit(table)


@pytest.mark.parametrize(
    ("n", "fraction", "n_held_out"), [(3, 0.9, 1), (4, 0.25, 1), (10, 0.9, 8), (100, 0.9, 90), (101, 0.2, 20)]
)
def test_how_many_rows_are_held_out(n, fraction, n_held_out):
    """At least two rows are left to learn from."""
    X = ordinary(np.random.default_rng(0), n)
    detector = RGLD(calibration_fraction=fraction, random_state=0).fit(X)
    assert len(detector.model_.calibration) == n_held_out
    p = detector.p_values(X)
    np.testing.assert_allclose(p * (n_held_out + 1), np.round(p * (n_held_out + 1)))
    assert 1 / (n_held_out + 1) <= p.min() and p.max() <= 1


def test_no_more_rows_are_held_out_than_the_limit(monkeypatch):
    monkeypatch.setattr(sampling, "MAX_CALIBRATION_ROWS", 10)
    detector = RGLD(calibration_fraction=0.9, random_state=0).fit(ordinary(np.random.default_rng(0), 100))
    assert len(detector.model_.calibration) == 10


@pytest.mark.parametrize(("n", "fraction"), [(50, 0.0), (2, 0.9), (50, 0.001)])
def test_without_calibration_rows_one_sentence_says_what_to_do(n, fraction):
    X = ordinary(np.random.default_rng(0), n)
    detector = RGLD(calibration_fraction=fraction, random_state=0).fit(X)
    for ask in (detector.p_values, detector.select):
        with pytest.raises(
            CalibrationError, match=r"held out no rows: fit it again, for example with calibration_fraction=0\.2"
        ):
            ask(X)


@pytest.mark.parametrize("fraction", [-0.1, 0.95, 1, float("nan"), "0.2", None, True])
def test_fractions_that_are_none(fraction):
    with pytest.raises(ParameterError, match=r"calibration_fraction must be a number in \[0, 0.9\]"):
        RGLD(calibration_fraction=fraction).fit(np.eye(5))


@pytest.mark.parametrize("fdr", [0, 1, -0.1, 2.0, float("nan"), "0.1", None, True])
def test_rates_that_are_none(fdr):
    detector = RGLD(calibration_fraction=0.5, random_state=0).fit(ordinary(np.random.default_rng(0), 50))
    with pytest.raises(ParameterError, match=r"fdr must be a number in \(0, 1\)"):
        detector.select(np.zeros((1, D)), fdr=fdr)
    assert detector.select(np.zeros((1, D)), fdr=np.float32(0.1)).tolist() == [False]


# The rest of the detector with rows held out.


def test_scores_come_in_the_order_of_the_table():
    X = ordinary(np.random.default_rng(0), 120)
    detector = RGLD(calibration_fraction=0.4, contamination=0.1, random_state=0)
    assert (detector.fit_predict(X) == detector.predict(X)).all()
    assert (_detector.fit_and_score(detector, X) == detector.anomaly_score(X)).all()
    held_out = held_out_rows(detector, 120)
    # The threshold is that of the rows learned from: a tenth of these 72.
    assert (np.delete(detector.predict(X), held_out) == -1).sum() == pytest.approx(7.2, abs=1)


def test_calibration_is_in_the_file(tmp_path):
    rng = np.random.default_rng(0)
    detector = RGLD.plus(calibration_fraction=0.3, random_state=0).fit(table_of_all_kinds(rng, 200))
    new = table_of_all_kinds(rng, 50)
    detector.save(tmp_path / "model.rgld")
    loaded = load(tmp_path / "model.rgld")
    assert (loaded.p_values(new) == detector.p_values(new)).all()
    assert (loaded.select(new, fdr=0.3) == detector.select(new, fdr=0.3)).all()
    RGLD(random_state=0).fit(ordinary(rng, 50)).save(tmp_path / "none.rgld")
    with pytest.raises(CalibrationError):
        load(tmp_path / "none.rgld").p_values(ordinary(rng, 5))


def test_texts_and_dates_have_p_values_too():
    rng = np.random.default_rng(0)
    detector = RGLD.plus(calibration_fraction=0.4, random_state=0).fit(table_of_all_kinds(rng, 500))
    new = table_of_all_kinds(rng, 30)
    new.loc[0, ["amount", "city", "paid", "number as text"]] = [1e6, "Atlantis", "never", "1e6"]
    p = detector.p_values(new)
    assert p[0] == 1 / 201 and p[1:].min() > p[0]
    assert (detector.p_values(pl.from_pandas(new)) == p).all()
    assert (detector.p_values(new[:1]) == p[0]).all()


def test_random_ties_are_repeatable_and_asked_for():
    X = np.random.default_rng(0).integers(0, 2, (200, 2)).astype(float)  # four different rows
    detector = RGLD(calibration_fraction=0.5, random_state=0).fit(X)
    p = detector.p_values(X)
    assert (detector.p_values(X) == p).all() and len(np.unique(p)) <= 4
    randomized = detector.p_values(X, random_state=5)
    assert (detector.p_values(X, random_state=5) == randomized).all()
    assert (detector.p_values(X, random_state=np.random.default_rng(5)) == randomized).all()
    assert (randomized <= p).all() and len(np.unique(randomized)) == 200


@settings(max_examples=10)
@given(st.integers(0, 1000), st.permutations(range(20)))
def test_a_p_value_does_not_depend_on_the_other_rows(seed, order):
    rng = np.random.default_rng(seed)
    detector = MAKERS["plus"](calibration_fraction=0.5, random_state=seed).fit(ordinary(rng, 60))
    new = ordinary(rng, 20)
    p = detector.p_values(new)
    assert (detector.p_values(new[list(order)]) == p[list(order)]).all()
    assert detector.p_values(new[:1])[0] == p[0]


def test_offset():
    scores = np.arange(100) / 100
    assert (-scores < fit_offset(0.05, scores)).sum() == 5
    assert fit_offset("auto", scores) == -0.95


def test_the_automatic_threshold_is_a_share_of_the_training_rows_where_there_is_one_branch():
    X = ordinary(np.random.default_rng(0), 400)
    assert (RGLD.plus(n_global_views=0, random_state=0).fit_predict(X) == -1).sum() == 20
    both = (RGLD(random_state=0).fit_predict(X) == -1).mean()
    assert 0.005 < both < 0.05


def test_the_smallest_p_value_that_the_page_states():
    """docs/certainty.md: p-values down to 0.00002."""
    assert f"{1 / (MAX_CALIBRATION_ROWS + 1):.0e}" == "2e-05"


def test_the_fraction_above_the_threshold_by_definition():
    """With "auto", 5 % if both branches rank the rows alike; if their ranks are independent, the area of a triangle."""
    assert fraction_above(0.1, 0.5, 2) == (0.1, 0.1)
    assert fraction_above("auto", 0.5, 1) == pytest.approx((0.05, 0.05))
    assert fraction_above("auto", 0.5, 2) == pytest.approx((0.005, 0.05))
    u, v = np.random.default_rng(0).random((2, 1_000_000))
    smallest, _ = fraction_above("auto", 0.67, 2)
    assert (0.67 * u + 0.33 * v > 0.95).mean() == pytest.approx(smallest, rel=0.05)
