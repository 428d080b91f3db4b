"""A row's score depends on the row and the model, on nothing else, to the bit."""

import copy
import functools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgld import RGLD, _kernels
from rgld._kernels import blocks, numpy_kernels
from rgld._kernels.threads import n_threads
from rgld._model import scaling as scaling_module

from .observing import assert_no_other_thread_worked, assert_threads_worked, cpu_times, on_kernels

PRESETS = ("plus", "novelty")  # of leverage views
PREPROCESSINGS = ("standard", "robust", "quantile", *PRESETS)
N_ROWS = 9000 if _kernels.name == "native" else 2500
"""Enough for several blocks (of up to 2048 rows in the core, 1024 in NumPy) and for threads (from 769 rows on)."""


@functools.cache
def fitted(preprocessing, d=7):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, d)) * rng.lognormal(size=d)
    is_preset = preprocessing in PRESETS
    detector = getattr(RGLD, preprocessing)() if is_preset else RGLD(preprocessing=preprocessing)
    detector.set_params(random_state=0, n_jobs=1).fit(X)
    rows = np.concatenate((X[:200], 5 * rng.normal(size=(N_ROWS - 204, d)), 1e6 * rng.normal(size=(4, d))))
    return detector, rows, detector.anomaly_score(rows)


def scored(detector, rows, n_jobs):
    """The scores on so many threads. The detector is shared with other tests and stays as it was."""
    return copy.copy(detector).set_params(n_jobs=n_jobs).anomaly_score(rows)


@given(st.data(), st.sampled_from(PREPROCESSINGS))
def test_any_selection_of_rows_in_any_order(data, preprocessing):
    detector, rows, scores = fitted(preprocessing)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=40))
    np.testing.assert_array_equal(detector.anomaly_score(rows[chosen]), scores[chosen])


@given(
    start=st.integers(0, N_ROWS - 1),
    length=st.integers(1, N_ROWS),
    n_jobs=st.sampled_from([1, 2]),
    preprocessing=st.sampled_from(PREPROCESSINGS),
)
def test_any_slice(start, length, n_jobs, preprocessing):
    detector, rows, scores = fitted(preprocessing)
    part = slice(start, start + length)
    np.testing.assert_array_equal(scored(detector, rows[part], n_jobs), scores[part])


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda rows: np.repeat(np.repeat(rows, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda rows: np.ascontiguousarray(rows[::-1])[::-1],
}


@pytest.mark.parametrize("preprocessing", PREPROCESSINGS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_and_number_of_threads(layout, preprocessing):
    detector, rows, scores = fitted(preprocessing)
    rows = LAYOUTS[layout](rows)
    with cpu_times() as alone:
        np.testing.assert_array_equal(scored(detector, rows, 1), scores)
    with cpu_times() as together:
        for n_jobs in (2, 3):
            np.testing.assert_array_equal(scored(detector, rows, n_jobs), scores)
    assert_no_other_thread_worked(alone)
    assert_threads_worked(together)  # a block is the work of one thread: so there were several blocks, too


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_float32_rows_score_as_the_same_numbers_in_float64(n_jobs):
    detector, rows, _ = fitted("robust")
    rows = rows.astype(np.float32)
    np.testing.assert_array_equal(scored(detector, rows, n_jobs), scored(detector, rows.astype(np.float64), n_jobs))


@functools.cache
def scored_on_numpy(preprocessing):
    detector, rows, _ = fitted(preprocessing)
    with on_kernels(numpy_kernels):
        return scored(detector, rows[-900:], 1)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_any_size_of_blocks(n_jobs):
    """Of the NumPy kernels: in the core, the size of a block is no one's choice."""
    n_blocks, n_workers = set(), set()

    @settings(max_examples=8)
    @given(
        block_bytes=st.integers(2**10, 2**22),
        smallest=st.integers(9, 64),
        preprocessing=st.sampled_from(PREPROCESSINGS),
    )
    def check(block_bytes, smallest, preprocessing):
        detector, rows, _ = fitted(preprocessing)
        threads = []

        def scaled_columns(scaling, X):
            threads.append(threading.get_ident())
            return scaling_module.scaled_columns(scaling, X)

        with pytest.MonkeyPatch.context() as patch, on_kernels(numpy_kernels):
            patch.setattr(blocks, "BLOCK_BYTES", block_bytes)
            patch.setattr(blocks, "SMALLEST_BLOCK", smallest)
            patch.setattr(blocks, "scaled_columns", scaled_columns)
            np.testing.assert_array_equal(scored(detector, rows[-900:], n_jobs), scored_on_numpy(preprocessing))
        n_blocks.add(len(threads))
        n_workers.add(len(set(threads)))

    check()
    assert max(n_blocks) > 20 and len(n_blocks) > 2
    assert n_workers == {1} if n_jobs == 1 else max(n_workers) > 1


@pytest.mark.parametrize("d", [1, 2, 3, 21, 41, 130])
def test_one_row_at_a_time(d):
    detector, rows, scores = fitted("robust", d)
    for i in (0, 1, 77, 300, 2101, N_ROWS - 1):
        assert detector.anomaly_score(rows[i : i + 1])[0] == scores[i]


@functools.cache
def fitted_on_threads(preprocessing, n_jobs):
    """A detector, its scores of the training rows, and the processor times of both."""
    X = np.random.default_rng(1).normal(size=(2 * N_ROWS, 6))
    is_preset = preprocessing in PRESETS
    detector = getattr(RGLD, preprocessing)() if is_preset else RGLD.fast(preprocessing=preprocessing)
    with cpu_times() as times:
        scores = detector.set_params(random_state=0, n_jobs=n_jobs).fit(X).anomaly_score(X)
    return detector, scores, times


@pytest.mark.parametrize("preprocessing", PREPROCESSINGS)
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_the_fit_does_not_depend_on_n_jobs(preprocessing, n_jobs):
    (one, scores, alone), (many, found, together) = (fitted_on_threads(preprocessing, n) for n in (1, n_jobs))
    if (
        preprocessing not in PRESETS or _kernels.name == "native"
    ):  # leverage views in NumPy use BLAS, which has own threads
        assert_no_other_thread_worked(alone)
    if n_threads(n_jobs) > 1:
        for _ in range(4):  # on a busy machine, another thread may come too late once
            if together.of_other_threads > 0.05 * together.total:
                break
            _, _, together = fitted_on_threads(preprocessing, n_jobs)
        assert_threads_worked(together)
    if preprocessing not in PRESETS:
        np.testing.assert_array_equal(one.model_.global_branch.mean_embedding, many.model_.global_branch.mean_embedding)
    np.testing.assert_array_equal(found, scores)


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
