"""Column statistics, the choice of a scaling, and what it makes of cells."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.preprocessing import QuantileTransformer, RobustScaler, StandardScaler

from rgld._fit.scaling import _quantile, choose_preprocessing, leave_as_they_are, scaling_of, unit_part, with_moments
from rgld._model.scaling import normal_score, scaled_columns
from rgld._model.statistics import column_statistics


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return np.column_stack(
        (rng.normal(5, 3, size=400), rng.lognormal(size=400), rng.integers(0, 3, size=400), np.ones(400))
    )


def scaled(kind, X):
    return scaled_columns(scaling_of((kind,), column_statistics(X, 400 if kind == "quantile" else 0)), X).T


def test_standard_and_robust_are_scikit_learns(X):
    np.testing.assert_allclose(scaled("standard", X), StandardScaler().fit_transform(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scaled("robust", X), RobustScaler().fit_transform(X), rtol=1e-5, atol=1e-6)


def test_quantile_is_scikit_learns_where_it_varies(X):
    expected = QuantileTransformer(n_quantiles=400, output_distribution="normal").fit_transform(X)
    # Cells at the very ends are clipped at slightly different quantiles.
    inner = (np.abs(expected) < 5) & (X != 1.0)
    np.testing.assert_allclose(scaled("quantile", X)[inner], expected[inner], atol=1e-3)


def test_a_constant_column_becomes_zero(X):
    for kind in ("standard", "robust", "quantile"):
        np.testing.assert_array_equal(scaled(kind, X)[:, 3], 0)


def test_a_column_whose_quartiles_are_equal_is_scaled_by_its_range():
    X = np.zeros((100, 1))
    X[:10, 0] = np.arange(10) * 5.0
    np.testing.assert_allclose(scaled("robust", X)[:, 0].max(), 1.0)


def test_indicators_are_left_as_they_are_in_every_scaling(X):
    """Scaled column s * d + j is column j in scaling s: of two scalings, columns 1 and d + 1 are those of column 1."""
    kinds, d = ("standard", "robust"), X.shape[1]
    whole = scaling_of(kinds, column_statistics(X))
    fixed = leave_as_they_are(whole, np.arange(d) == 1)
    columns, before = scaled_columns(fixed, X), scaled_columns(whole, X)
    for s in range(len(kinds)):
        np.testing.assert_array_equal(columns[s * d + 1], X[:, 1].astype(np.float32))
        np.testing.assert_array_equal(columns[s * d + 2], before[s * d + 2])


def test_only_the_columns_of_arcsinh_standard_get_unit_moments(X):
    kinds, d = ("standard", "arcsinh-standard", "arcsinh"), X.shape[1]
    whole = scaling_of(kinds, column_statistics(X))
    part = unit_part(whole)
    assert part.kinds == ("arcsinh-standard",) and part.n_inputs == d
    values = scaled_columns(part, X).astype(np.float64)
    columns = scaled_columns(with_moments(whole, values.mean(axis=1), values.std(axis=1)), X)
    np.testing.assert_allclose(columns[d : d + 3].mean(axis=1), 0.0, atol=1e-6)
    np.testing.assert_allclose(columns[d : d + 3].std(axis=1), 1.0, rtol=1e-5)
    for other in (slice(0, d), slice(2 * d, 3 * d)):
        np.testing.assert_array_equal(columns[other], scaled_columns(whole, X)[other])


def test_column_statistics_by_hand():
    statistics = column_statistics(np.array([[1.0, 2.0, 2.0, 3.0, 12.0]]).T)
    assert statistics.mean[0] == pytest.approx(4.0)
    assert statistics.std[0] == pytest.approx(np.sqrt((9 + 4 + 4 + 1 + 64) / 5))
    assert (statistics.median[0], statistics.iqr[0], statistics.value_range[0]) == (2.0, 1.0, 11.0)
    assert statistics.tail_weight[0] == 10.0
    assert statistics.distinct_fraction[0] == 0.8
    assert statistics.mode_fraction[0] == 0.4
    assert statistics.skewness[0] == pytest.approx((-27 - 8 - 8 - 1 + 512) / 5 / statistics.std[0] ** 3)


def test_the_range_of_the_largest_numbers_is_the_largest_number():
    """Values are clipped at half of it, so that their difference is finite."""
    largest = np.finfo(float).max
    statistics = column_statistics(np.array([[-largest, largest / 2], [largest, 0.0]]))
    assert statistics.value_range.tolist() == [largest, largest / 2]
    assert np.isfinite(statistics.std).all() and statistics.tail_weight == pytest.approx([1.0, 1.0])


def test_statistics_do_not_depend_on_how_columns_are_grouped(X, monkeypatch):
    whole = column_statistics(X, 100)
    monkeypatch.setattr("rgld._model.statistics.GROUP_BYTES", 1)
    for field in whole.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(column_statistics(X, 100), field), getattr(whole, field))


CHOICES = {
    "normal columns": (lambda rng: rng.normal(size=(2000, 5)), "standard"),
    "uniform columns": (lambda rng: rng.random((2000, 5)), "standard"),
    "a few outliers": (
        lambda rng: rng.normal(size=(2000, 5)) * np.where(rng.random((2000, 1)) < 0.01, 30, 1),
        "robust",
    ),
    "exponential columns": (lambda rng: rng.exponential(size=(2000, 5)), "robust"),
    "log-normal columns": (lambda rng: rng.lognormal(sigma=2, size=(2000, 5)), "quantile"),
    "log-normal, rounded to a few values": (lambda rng: rng.lognormal(sigma=2, size=(2000, 5)).round(-1), "robust"),
    "log-normal, mostly zero": (
        lambda rng: rng.lognormal(sigma=2, size=(2000, 5)) * (rng.random((2000, 5)) < 0.3),
        "robust",
    ),
    "constant": (lambda rng: np.ones((50, 3)), "standard"),
    "log-normal among constants": (lambda rng: rng.lognormal(sigma=2, size=(2000, 5)) * [1, 0, 0, 0, 0], "quantile"),
}


@pytest.mark.parametrize(("make", "expected"), CHOICES.values(), ids=CHOICES.keys())
def test_choice_of_preprocessing(make, expected):
    assert choose_preprocessing(column_statistics(make(np.random.default_rng(0)))) == expected


@pytest.mark.parametrize(
    ("field", "below", "above"),
    [
        ("skewness", (3.9, "robust"), (4.1, "quantile")),
        ("distinct_fraction", (0.09, "robust"), (0.11, "quantile")),
        ("mode_fraction", (0.49, "quantile"), (0.51, "robust")),
    ],
)
def test_thresholds_of_the_choice_of_quantile(field, below, above):
    heavy = column_statistics(np.random.default_rng(0).lognormal(sigma=2, size=(2000, 5)))
    for value, expected in (below, above):
        assert choose_preprocessing(replace(heavy, **{field: np.full(5, value)})) == expected


def test_threshold_of_the_choice_of_standard():
    light = column_statistics(np.random.default_rng(0).normal(size=(2000, 20)))
    for weights, expected in (([4.9] * 20, "standard"), ([5.1] * 20, "robust"), ([1.0] * 19 + [99.0], "standard")):
        assert choose_preprocessing(replace(light, tail_weight=np.array(weights))) == expected


@pytest.mark.parametrize("sigma", [1, 6, 10])
def test_quantile_scaling_ignores_monotone_maps(sigma):
    X = np.random.default_rng(0).lognormal(sigma=sigma, size=(400, 2))
    np.testing.assert_allclose(scaled("quantile", X), scaled("quantile", np.log(X)), atol=1e-5)
    expected = QuantileTransformer(n_quantiles=400, output_distribution="normal").fit_transform(X)
    inner = np.abs(expected) < ndtri(1 - 0.5 / 400)
    np.testing.assert_allclose(scaled("quantile", X)[inner], expected[inner], atol=1e-4)


def test_normal_score_by_hand():
    quantiles = np.array([0.0, 1.0, 1.0, 1.0, 5.0])
    scores = normal_score(np.array([-3.0, 0.5, 1.0, 3.0, 9.0]), quantiles)
    end = ndtri(0.9)
    np.testing.assert_allclose(scores, [-end, -0.5 * end, 0.0, 0.5 * end, end], rtol=1e-6, atol=1e-12)


def test_quantile_is_that_of_numpy_to_the_bit():
    rng = np.random.default_rng(0)
    for n in range(1, 60):
        for rank in (0.9, 0.37):
            values = rng.lognormal(sigma=3.0, size=n)
            assert _quantile(values, rank) == np.quantile(values, rank)
