"""The PyOD face: PyOD's contract, our scores."""

import inspect
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pyod.models.base import BaseDetector
from pyod.models.combination import aom, average, maximization, median, moa
from pyod.models.copod import COPOD
from pyod.models.feature_bagging import FeatureBagging
from pyod.models.pca import PCA
from pyod.models.thresholds import IQR
from pyod.utils.data import generate_data
from pyod.utils.utility import check_detector, standardizer
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import rgld
from rgld import ParameterError, TableError
from rgld.pyod import RGLD

CONTAMINATION = 0.1
ROC_FLOOR = 0.8
"""What PyOD asks of its own detectors on this data."""


@pytest.fixture(scope="module")
def data():
    """PyOD's own example: X and labels of 200 training and 100 test rows."""
    return generate_data(n_train=200, n_test=100, n_features=4, contamination=CONTAMINATION, random_state=42)


@pytest.fixture(scope="module", params=["paper", "fast", "plus"])
def detector(request, data):
    make = RGLD if request.param == "paper" else getattr(RGLD, request.param)
    return make(contamination=CONTAMINATION, random_state=0).fit(data[0])


# What PyOD's test-suite expects of every detector.


def test_attributes(detector, data):
    n = len(data[0])
    assert isinstance(detector, BaseDetector)
    check_detector(detector)
    assert detector.decision_scores_.shape == (n,)
    assert detector.labels_.shape == (n,) and set(detector.labels_) == {0, 1}
    assert detector.labels_.sum() == CONTAMINATION * n
    assert detector._classes == 2
    assert detector._mu == detector.decision_scores_.mean() and detector._sigma == detector.decision_scores_.std()
    assert (detector.labels_ == (detector.decision_scores_ > detector.threshold_)).all()


def test_scores_find_the_outliers(detector, data):
    _, X_test, y_train, y_test = data
    scores = detector.decision_function(X_test)
    assert scores.shape == (len(X_test),)
    assert roc_auc_score(y_train, detector.decision_scores_) >= ROC_FLOOR
    assert roc_auc_score(y_test, scores) >= ROC_FLOOR


def test_labels_follow_the_threshold(detector, data):
    labels = detector.predict(data[1])
    assert (labels == (detector.decision_function(data[1]) > detector.threshold_)).all()
    assert 0 < labels.sum() < len(labels)


@pytest.mark.parametrize("method", ["linear", "unify"])
def test_rescaled_scores(detector, data, method):
    rescaled, confidence = detector.predict_proba(data[1], method=method, return_confidence=True)
    assert rescaled.shape == (100, 2) and confidence.shape == (100,)
    assert rescaled.min() >= 0 and rescaled.max() <= 1
    np.testing.assert_allclose(rescaled.sum(axis=1), 1)
    assert (np.diff(rescaled[detector.decision_function(data[1]).argsort(), 1]) >= 0).all()
    with pytest.raises(ValueError, match="not a valid"):
        detector.predict_proba(data[1], method="something")


def test_confidence_and_rejection(detector, data):
    labels, confidence = detector.predict(data[1], return_confidence=True)
    assert (labels == detector.predict(data[1])).all()
    assert confidence.min() >= 0 and confidence.max() <= 1
    with pytest.warns(UserWarning, match="cost of rejection"):
        rejected, statistics = detector.predict_with_rejection(data[1], return_stats=True)
    assert set(rejected) <= {-2, 0, 1} and len(statistics) == 3


def test_fit_predict(data):
    with pytest.warns(FutureWarning, match="deprecated"):
        labels = RGLD(random_state=0).fit_predict(data[0])
    assert (labels == RGLD(random_state=0).fit(data[0]).labels_).all()
    with pytest.warns(FutureWarning, match="deprecated"):
        assert RGLD(random_state=0).fit_predict_score(data[0], data[2]) >= ROC_FLOOR


@pytest.mark.parametrize("normalized", [False, True])
def test_ranks_keep_the_order(detector, data, normalized):
    ranks = detector._predict_rank(data[1], normalized=normalized)
    np.testing.assert_allclose(rankdata(ranks), rankdata(detector.decision_function(data[1])), atol=4)
    assert ranks.min() >= 0 and ranks.max() <= (1 if normalized else 200)


def test_labels_given_are_not_used(data):
    with pytest.warns(UserWarning, match="y should not be presented"):
        detector = RGLD(random_state=0).fit(data[0], data[2])
    assert (detector.decision_scores_ == RGLD(random_state=0).fit(data[0]).decision_scores_).all()


# The same detector as rgld.RGLD.


@pytest.mark.parametrize("preset", ["paper", "fast", "plus"])
def test_scores_equal_the_library_to_the_bit(data, preset):
    ours, theirs = (kind if preset == "paper" else getattr(kind, preset) for kind in (rgld.RGLD, RGLD))
    expected = ours(random_state=3).fit(data[0])
    detector = theirs(random_state=3).fit(data[0])
    assert (detector.decision_scores_ == expected.anomaly_score(data[0])).all()
    assert (detector.decision_function(data[1]) == expected.anomaly_score(data[1])).all()


def test_parameters_are_those_of_the_library():
    ours = inspect.signature(rgld.RGLD.__init__).parameters
    theirs = inspect.signature(RGLD.__init__).parameters
    assert list(theirs)[:2] == ["self", "contamination"] and theirs["contamination"].default == 0.1
    rest = [name for name in ours if name not in ("self", "contamination")]
    assert list(theirs)[2:] == rest
    assert {n: theirs[n].default for n in rest} == {n: ours[n].default for n in rest}
    for preset in ("fast", "plus"):
        expected = {**getattr(rgld.RGLD, preset)().get_params(), "contamination": 0.1}
        assert getattr(RGLD, preset)().get_params() == expected
    assert RGLD.plus(contamination=0.2, n_references=50).n_references == 50


def test_clone_and_set_params(data):
    detector = RGLD.plus(contamination=0.2, random_state=1).fit(data[0])
    copy = clone(detector)
    assert copy.get_params() == detector.get_params() and not hasattr(copy, "decision_scores_")
    assert (copy.fit(data[0]).decision_scores_ == detector.decision_scores_).all()
    assert copy.set_params(contamination=0.05).fit(data[0]).labels_.sum() == 10
    assert "n_local_views=48" in repr(detector)


def test_the_detector_behind_decides_alike(data, tmp_path):
    detector = RGLD.plus(contamination=0.1, calibration_fraction=0.3, random_state=0).fit(data[0])
    detector.detector_.save(tmp_path / "model.rgld")
    for behind in (detector.detector_, rgld.load(tmp_path / "model.rgld")):
        for X in data[:2]:
            assert ((behind.predict(X) == -1) == detector.predict(X)).all()
    assert detector.labels_.sum() == 20
    assert detector.detector_.p_values(data[1]).shape == (100,)
    assert detector.detector_.explain(data[1]).top(1).shape == (100, 1)


# Tables PyOD's own detectors do not take.


def test_gaps_and_frames(data):
    X = data[0].copy()
    X[::7, 2] = np.nan
    detector = RGLD(random_state=0).fit(X)
    assert np.isfinite(detector.decision_scores_).all()
    assert np.isfinite(detector.decision_function([[np.nan] * 4])).all()
    assert detector.__sklearn_tags__().input_tags.allow_nan

    table = pd.DataFrame(X, columns=list("abcd")).assign(kind=np.where(np.arange(200) % 9, "usual", "rare"))
    detector = RGLD.plus(random_state=0).fit(table)
    assert detector.predict(pl.from_pandas(table)).tolist() == detector.labels_.tolist()
    assert detector.predict_proba(table).shape == (200, 2)
    assert (detector.decision_scores_ == rgld.RGLD.plus(random_state=0).fit(table).anomaly_score(table)).all()


def test_a_list_of_rows(data):
    detector = RGLD(random_state=0).fit(data[0].tolist())
    assert (detector.predict_proba(data[1].tolist()) == detector.predict_proba(data[1])).all()


# PyOD's tools.


def test_combinations(data):
    X_train, X_test, _, y_test = data
    detectors = [RGLD(random_state=0), RGLD.plus(random_state=0), PCA(), COPOD()]
    for detector in detectors:
        detector.fit(X_train)
    train = np.column_stack([detector.decision_scores_ for detector in detectors])
    test = np.column_stack([detector.decision_function(X_test) for detector in detectors])
    _, scores = standardizer(train, test)
    for combined in (average(scores), maximization(scores), median(scores), aom(scores, 2), moa(scores, 2)):
        assert combined.shape == (100,) and roc_auc_score(y_test, combined) >= ROC_FLOOR


def test_feature_bagging(data):
    ensemble = FeatureBagging(RGLD.fast(), n_estimators=3, random_state=0).fit(data[0])
    assert roc_auc_score(data[3], ensemble.decision_function(data[1])) >= ROC_FLOOR


def test_thresholder(data):
    detector = RGLD(contamination=IQR(), random_state=0).fit(data[0])
    assert set(detector.labels_) <= {0, 1} and len(detector.labels_) == 200
    assert len(detector.predict(data[1])) == 100
    assert (detector.decision_scores_ == RGLD(random_state=0).fit(data[0]).decision_scores_).all()


# Errors.


@pytest.mark.parametrize("contamination", ["auto", None, np.float32(0.1), True, float("nan")])
def test_a_contamination_pyod_cannot_use(data, contamination):
    detector = RGLD()
    detector.contamination = contamination
    with pytest.raises(ParameterError, match=r"contamination must be a float in \(0, 0.5\] or a thresholder"):
        detector.fit(data[0])


def test_errors_are_the_librarys(data):
    with pytest.raises(NotFittedError):
        RGLD().decision_function(data[0])
    with pytest.raises(ValueError, match="contamination must be in"):
        RGLD(0.7)
    with pytest.raises(ParameterError, match="n_neighbors must be"):
        RGLD(n_neighbors=0).fit(data[0])
    detector = RGLD(random_state=0).fit(data[0])
    before = dict(vars(detector))
    with pytest.raises(TableError, match="inf"):
        detector.fit(np.full((5, 2), np.inf))
    assert vars(detector) == before


def test_without_pyod_one_sentence_says_what_to_do():
    code = "import sys; sys.modules['pyod'] = None\nimport rgld.pyod"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    said = "ImportError: rgld.pyod needs PyOD, which is not installed: pip install 'rgld[pyod]'"
    assert result.stderr.strip().splitlines()[-1] == said


def test_the_library_itself_does_not_import_pyod():
    code = "import sys, rgld; rgld.RGLD; print('pyod' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_explains():
    X = np.random.default_rng(0).normal(size=(300, 4))
    detector = RGLD.plus(random_state=0).fit(X)
    explanation = detector.explain([[0.0, 9.0, 0.0, 0.0]])
    assert explanation.top(1).tolist() == [[1]] and explanation.reasons(0)[0].startswith("column 1 = 9 is far above")
    assert explanation.threshold == detector.threshold_
    with pytest.raises(NotFittedError):
        RGLD().explain(X)
