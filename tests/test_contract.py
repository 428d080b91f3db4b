"""scikit-learn's contract, presets, frames."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rgld import RGLD, load

SMALL = {"n_global_views": 4, "n_local_views": 3, "n_references": 30, "n_bandwidth_pairs": 200}


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(200, 5))


@parametrize_with_checks([RGLD(), RGLD.fast(), RGLD(**SMALL, preprocessing="quantile", n_jobs=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_defaults_are_the_papers():
    parameters = RGLD().get_params()
    expected = {
        "n_global_views": 40,
        "n_local_views": 10,
        "n_random_features": 10,
        "bandwidth_multipliers": (0.25, 0.5, 1.0, 2.0),
        "n_bandwidth_pairs": 8192,
        "n_references": 400,
        "n_neighbors": 10,
        "feature_fraction": 0.3,
        "min_features": 3,
        "projection_dim": "auto",
        "preprocessing": "auto",
        "projection": "gaussian",
        "aggregation": "rank",
        "local_weight": 0.5,
    }
    assert {name: parameters[name] for name in expected} == expected


def test_fast_halves_views_features_and_references():
    changed = {k: v for k, v in RGLD.fast().get_params().items() if v != RGLD().get_params()[k]}
    assert changed == {"n_global_views": 20, "n_local_views": 5, "n_random_features": 5, "n_references": 200}
    assert RGLD.fast(n_references=50, random_state=3).n_references == 50


def test_plus_is_pinned():
    changed = {k: v for k, v in RGLD.plus().get_params().items() if v != RGLD().get_params()[k]}
    assert changed == {
        "n_global_views": 6,
        "n_local_views": 48,
        "n_random_features": 20,
        "bandwidth_multipliers": (1.0, 2.0),
        "n_references": 50,
        "n_neighbors": 5,
        "feature_fraction": (1.0, 0.3, 1.0, 1.0),
        "max_features": 48,
        "projection": "orthogonal",
        "preprocessing": ("arcsinh", "arcsinh-standard", "quantile"),
        "aggregation": "standard",
        "global_score": "leverage",
        "whitening": (0.0, 0.0, 0.0, 0.1),
        "trim": 0.4,
        "max_training_rows": 2048,
        "relations": True,
        "local_weight": 0.67,
    }
    assert RGLD.plus().ridge == 0.02
    assert RGLD.plus(n_references=60, random_state=3).n_references == 60


def test_novelty_is_pinned():
    changed = {k: v for k, v in RGLD.novelty().get_params().items() if v != RGLD.plus().get_params()[k]}
    assert changed == {
        "n_local_views": 18,
        "max_features": 64,
        "n_random_features": 30,
        "bandwidth_multipliers": (0.5, 1.0),
        "n_references": 1000,
        "n_neighbors": 1,
        "feature_fraction": (1.0, 0.3),
        "ridge": 0.001,
        "whitening": 0.01,
        "trim": 0.0,
        "max_training_rows": None,
        "local_weight": 0.75,
    }
    assert RGLD.novelty(n_references=60, random_state=3).n_references == 60


@pytest.mark.parametrize("load_data", [load_wine, pytest.param(load_digits, marks=pytest.mark.exhaustive)])
def test_plus_finds_a_rare_class_as_well(load_data):
    """One class of a dataset of scikit-learn, thinned out, is to be found among the others."""
    X, y = load_data(return_X_y=True)
    rng = np.random.default_rng(0)
    auroc = {"plus": [], "RGLD": []}
    for rare in np.unique(y):
        kept = np.concatenate((np.flatnonzero(y != rare), rng.choice(np.flatnonzero(y == rare), 8, replace=False)))
        labels = y[kept] == rare
        for name, make in (("plus", RGLD.plus), ("RGLD", RGLD)):
            for state in range(3):
                scores = make(random_state=state).fit(X[kept]).anomaly_score(X[kept])
                auroc[name].append(roc_auc_score(labels, scores))
    assert np.mean(auroc["plus"]) > np.mean(auroc["RGLD"]) - 0.02


@pytest.mark.parametrize(
    "ablation",
    [
        {"bandwidth_multipliers": (1.0,)},
        {"feature_fraction": 1.0},
        {"n_local_views": 0},
        {"n_global_views": 0},
        {"n_global_views": 1, "n_local_views": 1},
        {"projection_dim": 7},
    ],
)
def test_ablations_are_plain_parameters(X, ablation):
    X[0] = 8.0
    detector = RGLD(random_state=0, **ablation).fit(X)
    scores = detector.anomaly_score(X)
    assert np.all((scores > 0) & (scores < 1))
    assert scores[0] > 0.9


def test_numpy_integers_are_integers(X):
    parameters = {**SMALL, "n_random_features": 5, "projection_dim": 3, "random_state": 1}
    numpys = {name: np.int16(value) for name, value in parameters.items()}
    expected, scores = (RGLD(**given).fit(X).anomaly_score(X) for given in (parameters, numpys))
    np.testing.assert_array_equal(scores, expected)


def test_signs_and_threshold(X):
    detector = RGLD(**SMALL, contamination=0.1, random_state=0).fit(X)
    scores = detector.anomaly_score(X)
    np.testing.assert_array_equal(detector.score_samples(X), -scores)
    np.testing.assert_array_equal(detector.decision_function(X), -scores - detector.offset_)
    np.testing.assert_array_equal(detector.predict(X) == -1, detector.decision_function(X) < 0)
    assert (scores > -detector.offset_).sum() <= 20 <= (scores >= -detector.offset_ - 1e-12).sum() + 1
    assert is_outlier_detector(detector)


def test_automatic_threshold_is_a_fixed_score(X):
    assert RGLD(**SMALL, random_state=0).fit(X).offset_ == -0.95


def test_anomaly_score_is_the_mean_of_the_branches(X):
    detector = RGLD(**SMALL, random_state=0).fit(X)
    branches = detector.branch_scores(X)
    np.testing.assert_array_equal(detector.anomaly_score(X), (branches.global_score + branches.local_score) / 2)


def test_a_branch_without_views_has_no_score(X):
    branches = RGLD(n_local_views=0, random_state=0).fit(X).branch_scores(X)
    assert branches.local_score is None
    branches = RGLD(n_global_views=0, random_state=0).fit(X).branch_scores(X)
    assert branches.global_score is None


def test_same_seed_same_model_other_seed_other_model(X):
    scores = [RGLD(**SMALL, random_state=seed).fit(X).anomaly_score(X) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_generators_as_random_state(X, make):
    scores = [RGLD(**SMALL, random_state=make(5)).fit(X).anomaly_score(X) for _ in range(2)]
    np.testing.assert_array_equal(*scores)


def test_numpys_global_generator_is_never_touched(X):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    RGLD(**SMALL).fit(X).anomaly_score(X)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_views_do_not_depend_on_how_many_there_are(X):
    few, many = (RGLD(**{**SMALL, "n_global_views": n}, random_state=0).fit(X).model_.global_branch for n in (2, 5))
    np.testing.assert_array_equal(few.views.projection, many.views.projection[:2])
    np.testing.assert_array_equal(few.mean_embedding, many.mean_embedding[:2])


def test_clone_pipeline_and_search(X):
    detector = clone(RGLD(**SMALL, random_state=0))
    pipeline = make_pipeline(MinMaxScaler(), detector).fit(X)
    assert pipeline.predict(X).shape == (200,)
    assert pipeline.score_samples(X).shape == (200,)
    search = GridSearchCV(detector, {"n_neighbors": [2, 5]}, scoring=lambda e, X, y=None: e.n_neighbors)
    assert search.fit(X).best_estimator_.n_neighbors == 5
    np.testing.assert_array_equal(search.predict(X), clone(detector).set_params(n_neighbors=5).fit(X).predict(X))


def test_unfitted():
    for method in ("predict", "anomaly_score", "branch_scores", "decision_function", "score_samples", "save"):
        with pytest.raises(NotFittedError):
            getattr(RGLD(), method)(np.zeros((3, 2)))


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "polars": pl.DataFrame,
    "Arrow": pa.table,
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_numeric_frames_score_as_arrays_do(frame):
    rng = np.random.default_rng(0)
    columns = {
        "amount": rng.normal(size=100),
        "count": rng.integers(0, 9, size=100),
        "flag": rng.random(100) < 0.2,
    }
    table = frame(columns)
    matrix = np.column_stack(list(columns.values())).astype(float)
    detector = RGLD(**SMALL, random_state=0).fit(table)
    assert detector.feature_names_in_.tolist() == ["amount", "count", "flag"]
    expected = RGLD(**SMALL, random_state=0).fit(matrix).anomaly_score(matrix)
    np.testing.assert_array_equal(detector.anomaly_score(table), expected)


def test_column_names_survive_saving(tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=["a", "b", "c"])
    RGLD(**SMALL, random_state=0).fit(table).save(tmp_path / "m.rgld")
    detector = load(tmp_path / "m.rgld")
    assert detector.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        detector.predict(table[["c", "b", "a"]])


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint16, np.float16])
def test_dtypes_that_hold_the_same_numbers_score_the_same(dtype):
    X = np.random.default_rng(0).integers(0, 50, size=(80, 4))
    detector = RGLD(**SMALL, random_state=0).fit(X.astype(np.float64))
    np.testing.assert_array_equal(detector.anomaly_score(X.astype(dtype)), detector.anomaly_score(X.astype(np.float64)))
    other = RGLD(**SMALL, random_state=0).fit(X.astype(dtype))
    np.testing.assert_array_equal(other.anomaly_score(X), detector.anomaly_score(X))


def test_input_is_not_changed(X):
    before = X.copy()
    for preprocessing in ("standard", "robust", "quantile"):
        RGLD(**SMALL, preprocessing=preprocessing).fit(X).anomaly_score(X)
        np.testing.assert_array_equal(X, before)


def test_every_parameter_is_documented_and_constrained():
    from rgld._params import CONSTRAINTS

    names = list(inspect.signature(RGLD).parameters)
    assert sorted(CONSTRAINTS) == sorted(names)
    for name in names:
        assert f"\n{name} : " in inspect.getdoc(RGLD)
