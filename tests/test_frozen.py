"""A row's score depends on the row and the model, on nothing else, to the bit."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from rgld import RGLD
from rgld._kernels import blocks

PREPROCESSINGS = ("standard", "robust", "quantile", "plus")


@functools.cache
def fitted(preprocessing, d=7, n_jobs=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, d)) * rng.lognormal(size=d)
    plus = preprocessing == "plus"
    make = RGLD.plus(random_state=0) if plus else RGLD(random_state=0, preprocessing=preprocessing)
    detector = make.set_params(n_jobs=n_jobs).fit(X)
    rows = np.concatenate((X[:200], 5 * rng.normal(size=(1900, d)), 1e6 * rng.normal(size=(4, d))))
    return detector, rows, detector.anomaly_score(rows)


@settings(deadline=None, max_examples=60)
@given(st.data(), st.sampled_from(PREPROCESSINGS))
def test_any_selection_of_rows_in_any_order(data, preprocessing):
    detector, rows, scores = fitted(preprocessing)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=40))
    np.testing.assert_array_equal(detector.anomaly_score(rows[chosen]), scores[chosen])


@settings(deadline=None, max_examples=25)
@given(start=st.integers(0, 2000), length=st.integers(1, 2104), preprocessing=st.sampled_from(PREPROCESSINGS))
def test_any_slice(start, length, preprocessing):
    detector, rows, scores = fitted(preprocessing)
    part = slice(start, start + length)
    np.testing.assert_array_equal(detector.anomaly_score(rows[part]), scores[part])


@settings(deadline=None, max_examples=25)
@given(
    layout=st.sampled_from(["C", "F", "strided", "reversed", "float32-exact"]),
    block_bytes=st.integers(2**10, 2**24),
    smallest=st.integers(1, 64),
    n_jobs=st.sampled_from([None, 1, 2, 3]),
    preprocessing=st.sampled_from(PREPROCESSINGS),
)
def test_any_layout_chunking_and_number_of_threads(layout, block_bytes, smallest, n_jobs, preprocessing):
    detector, rows, scores = (part[-400:] if isinstance(part, np.ndarray) else part for part in fitted(preprocessing))
    if layout == "F":
        rows = np.asfortranarray(rows)
    elif layout == "strided":
        rows = np.repeat(np.repeat(rows, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "reversed":
        rows, scores = rows[::-1], scores[::-1]
    elif layout == "float32-exact":
        rows = rows.astype(np.float32)
        scores = detector.anomaly_score(rows.astype(np.float64))
    detector.n_jobs = n_jobs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
        patch.setattr(blocks, "SMALLEST_BLOCK", smallest)
        np.testing.assert_array_equal(detector.anomaly_score(rows), scores)
    detector.n_jobs = None


@pytest.mark.parametrize("d", [1, 2, 3, 21, 41, 130])
def test_one_row_at_a_time(d):
    detector, rows, scores = fitted("robust", d)
    for i in (0, 1, 77, 300, 2101):
        assert detector.anomaly_score(rows[i : i + 1])[0] == scores[i]


@pytest.mark.parametrize("preprocessing", PREPROCESSINGS)
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_the_fit_does_not_depend_on_n_jobs(preprocessing, n_jobs):
    X = np.random.default_rng(1).normal(size=(3000, 6))
    plus = preprocessing == "plus"
    make = RGLD.plus() if plus else RGLD.fast(preprocessing=preprocessing)
    one, many = (clone(make).set_params(random_state=0, n_jobs=n).fit(X) for n in (1, n_jobs))
    if not plus:
        np.testing.assert_array_equal(one.model_.global_branch.mean_embedding, many.model_.global_branch.mean_embedding)
    np.testing.assert_array_equal(one.anomaly_score(X), many.anomaly_score(X))


@settings(deadline=None, max_examples=20)
@given(
    n=st.integers(2, 400),
    d=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
    decimals=st.sampled_from([0, 1, 8]),
    contamination=st.sampled_from(["auto", 0.01, 0.1, 0.5]),
)
def test_fit_predict_is_fit_then_predict(n, d, seed, decimals, contamination):
    X = np.random.default_rng(seed).normal(size=(n, d)).round(decimals)
    detector = RGLD.fast(random_state=seed, contamination=contamination)
    np.testing.assert_array_equal(detector.fit_predict(X), detector.fit(X).predict(X))


def test_a_reference_gets_no_discount():
    """Every training row is a reference here; the same row seen as new must score the same as in training."""
    X = np.random.default_rng(2).normal(size=(60, 3))
    detector = RGLD(n_global_views=0, n_references=60, random_state=0)
    labels = detector.fit_predict(X)
    np.testing.assert_array_equal(detector.predict(X.copy()), labels)
    assert detector.anomaly_score(X).min() > 0
