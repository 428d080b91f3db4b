"""The compiled core equals its NumPy twin, on any matrix, any processor and any number of threads."""

import copy
import dataclasses
import functools
import os
import pickle
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

import rgld
from rgld import RGLD
from rgld._fit.global_branch import draw_pairs
from rgld._fit.scaling import quantiles_for, scaling_of
from rgld._kernels import numpy_kernels
from rgld._kernels.elementary import project
from rgld._model.ranks import (
    EXACT_CDF_SIZE,
    SMALLEST_RANGE,
    STANDARD_BOUNDS,
    BranchRanks,
    branch_score,
    fit_branch_ranks,
    fit_cdf,
    normalized_rank,
)
from rgld._model.scaling import LARGEST_RAW_VALUE

from ..observing import assert_threads_worked, cpu_times, on_kernels

_core = pytest.importorskip("rgld._kernels._core", reason="rgld was installed without its compiled core")
native_kernels = pytest.importorskip("rgld._kernels.native_kernels")

STATISTICS_TOLERANCE = 1e-11  # of the largest value: float64 sums of a few thousand values, in another order
ARCSINH_TOLERANCE = 1e-12  # near 0, what is left of a difference
SCALED_TOLERANCE = 2.0**-23  # one unit of a float32: the normal quantile is computed by another formula
ANGLE_TOLERANCE = 2.0**-19  # of a cosine, times 1 + |angle|: a float32 angle is known to 2^-24, doubled thrice
LOCAL_TOLERANCE = 2.0**-20  # of a distance: float32 squares, summed with and without fused multiply-add
PAIR_TOLERANCE = 2.0**-19  # of the largest projection: the core subtracts float32 numbers, the twin float64
RANK_TOLERANCE = 2e-12  # ranks of equal scores: means are rounded to 12 decimals
CLOSE_RANKS = 0.99999  # Spearman's correlation of final scores: only near ties may change places
SCORE_TOLERANCE = 2.0  # of a final score, in training rows: rounding moves a row past a near tie or two in a branch

SIZES = (1, 2, 3, 15, 16, 17, 63, 65, 511, 513, 2049)
WIDTHS = (1, 2, 3, 7, 20, 21, 41, 130)
SCALINGS = ("standard", "robust", "quantile")
ALL_SCALINGS = (*SCALINGS, "arcsinh", "arcsinh-standard")
SMALL = {"n_global_views": 3, "n_local_views": 2, "n_bandwidth_pairs": 300, "n_references": 60, "random_state": 0}


def table(kind, n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.1, 100, size=d)
    if kind == "far":
        X = rng.normal(size=(n, d)) + 1e6
    elif kind == "huge":
        X[rng.random((n, d)) < 0.05] *= 1e300
    elif kind == "discrete":
        X = rng.integers(0, 4, size=(n, d)).astype(float)
    elif kind == "flags":  # two values; of some columns only in some rows, or a third one in one row
        X = np.where(rng.random((n, d)) < rng.uniform(0.0, 0.5, size=d), 3.5, -0.25)
        X[n // 2 :, 0] = 0.0
        X[n // 3, d - 1] = 7.0
    elif kind == "constant":
        X[:, ::2] = rng.normal(size=d)[::2]
    elif kind == "log-normal":
        X = rng.lognormal(sigma=4.0, size=(n, d))
    elif kind == "duplicates":
        X[: n // 2] = X[rng.integers(4, size=n // 2)] if n >= 4 else X[:1]
    return X


def fitted(kernels, X, **parameters):
    with on_kernels(kernels):
        return RGLD(**{**SMALL, **parameters}).fit(X)


def scored(kernels, detector, X):
    with on_kernels(kernels):
        return detector.anomaly_score(X)


def sides(X, scaling, n_threads=2, keep=False):
    """The rows of X, read by the core and by its twin."""
    return native_kernels.Rows(X, scaling, n_threads, keep), numpy_kernels.Rows(X, scaling, 1, keep)


def all_rows(X, n_views):
    return np.tile(np.arange(len(X)), (n_views, 1))


def feature_errors(branch, X, scaling):
    """What rounding may do to each random feature, shape (T, M, D, n)."""
    columns = numpy_kernels.Rows(X, scaling, 1).take(np.arange(len(X)))
    angles = np.abs(project(columns, branch.views.features, branch.directions)).astype(np.float64)
    far = 1.0 + angles[:, None] / branch.multipliers[:, None, None]
    return ANGLE_TOLERANCE * np.sqrt(2.0 / angles.shape[1]) * far


def view_score_errors(branch, X, scaling, expected):
    """What rounding may do to each view score, shape (T, n)."""
    if not hasattr(branch, "phases"):
        return LOCAL_TOLERANCE * expected.astype(np.float64) + 1e-20  # squares of less than this are no float32
    std = branch.support_std.astype(np.float64)
    share = np.divide(1.0, std, out=np.zeros_like(std), where=std > 0) / len(branch.multipliers)
    weights = share[:, :, None] * np.abs(branch.mean_embedding)
    constant = share * np.abs(branch.support_mean)
    errors = np.einsum("tmd,tmdn->tn", weights, feature_errors(branch, X, scaling))
    return errors + ANGLE_TOLERANCE * (constant.sum(axis=1)[:, None] + np.abs(expected))


def assert_within(actual, expected, errors):
    difference = np.abs(actual.astype(np.float64) - expected)
    beyond = ~(difference <= errors)
    assert not beyond.any(), f"{np.count_nonzero(beyond)} beyond, by {(difference - errors).max():.3g}"


def assert_same_bits(actual, expected):
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def assert_same_statistics(X, n_quantiles):
    actual = native_kernels.column_statistics(X, 2, n_quantiles)
    expected = numpy_kernels.column_statistics(X, 1, n_quantiles)
    largest = np.abs(X.astype(np.float64)).max(axis=0).clip(np.finfo(float).tiny)
    for name in ("median", "iqr", "value_range", "distinct_fraction", "mode_fraction", "quantiles"):
        np.testing.assert_array_equal(getattr(actual, name), getattr(expected, name), err_msg=name)
    for name in ("mean", "std"):
        error = np.abs(getattr(actual, name) / largest - getattr(expected, name) / largest)
        assert np.all(error <= STATISTICS_TOLERANCE), name
    np.testing.assert_array_equal(actual.std == 0, expected.std == 0)
    # A moment of deviations is as good as the deviations: worse where they are small beside the values.
    relative = expected.std / largest
    apart = STATISTICS_TOLERANCE + 1e-15 / np.divide(relative, 1.0, out=np.ones_like(relative), where=relative > 0)
    assert np.all(np.abs(actual.skewness - expected.skewness) <= 10 * apart * (1.0 + np.abs(expected.skewness)))
    assert np.all(np.abs(actual.tail_weight - expected.tail_weight) <= 10 * apart * expected.tail_weight)


def assert_same_scores(actual, expected, ranks):
    """Of the same view scores: means may fall to either side of their last decimal, where the CDF may be steep."""
    steepest = np.max(np.diff(ranks.branch.ranks) / np.diff(ranks.branch.values), initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=RANK_TOLERANCE * steepest)


def assert_kernels_agree(train, new, **parameters):
    """Every kernel on rows of a table, with a model that the twin fitted to another."""
    detector = fitted(numpy_kernels, train, **parameters)
    model, scaling = detector.model_, detector.model_.scaling
    for X in (train, new):
        native, twin = sides(X, scaling)
        taken, expected = native.take(np.arange(len(X))), twin.take(np.arange(len(X)))
        assert taken.dtype == np.float32 and taken.flags.c_contiguous
        exact = set(scaling.kinds) <= {"standard", "robust"}
        by_arcsinh = "arcsinh" in scaling.kinds or "arcsinh-standard" in scaling.kinds
        atol = ARCSINH_TOLERANCE if by_arcsinh else 0
        np.testing.assert_allclose(taken, expected, rtol=0 if exact else SCALED_TOLERANCE, atol=atol)
        for branch, ranks in ((model.global_branch, model.global_ranks), (model.local_branch, model.local_ranks)):
            numbers = all_rows(X, len(branch.views.features))
            z = numpy_kernels.project_rows(twin, branch.views, numbers)
            if exact or np.array_equal(taken, expected):  # the projection itself rounds in the same way
                np.testing.assert_array_equal(native_kernels.project_rows(native, branch.views, numbers), z)

            actual = native_kernels.view_scores(native, branch)
            expected_scores = numpy_kernels.view_scores(twin, branch)
            assert actual.dtype == np.float32
            assert_within(actual, expected_scores, view_score_errors(branch, X, scaling, expected_scores))

            # Ranking adds no rounding of its own: the core's view scores get the twin's ranks.
            score = native_kernels.branch_scores(native, model)[branch is model.local_branch]
            assert_same_scores(score, branch_score(ranks, actual), ranks)
            fit, fit_scores = native_kernels.fit_ranks(native, branch, "rank")
            twin_fit, twin_scores = fit_branch_ranks(actual, np.empty(0))
            assert_same_scores(fit_scores, twin_scores, twin_fit)
            for cdf, twin_cdf in zip(fit.views, twin_fit.views, strict=True):
                np.testing.assert_array_equal(cdf.values, twin_cdf.values)
                np.testing.assert_array_equal(cdf.ranks, twin_cdf.ranks)
                assert cdf.n_rows == len(X)

        branch = model.global_branch
        sums = native_kernels.embedding_sums(native, branch)
        expected_sums = numpy_kernels.embedding_sums(twin, branch)
        errors = feature_errors(branch, X, scaling).sum(axis=3)
        assert_within(sums.phi, expected_sums.phi, errors)
        amplitude = np.sqrt(2.0 / branch.phases.shape[1])
        assert_within(sums.phi_phi, expected_sums.phi_phi, amplitude * (errors[..., :, None] + errors[..., None, :]))
        np.testing.assert_array_equal(sums.phi_phi, sums.phi_phi.swapaxes(2, 3))

        if len(X) > 1:
            pairs = draw_pairs(1, np.arange(len(X)), 301)
            distances = native_kernels.pair_distances(native, branch.views, *pairs)
            expected_distances = numpy_kernels.pair_distances(twin, branch.views, *pairs)
            z = numpy_kernels.project_rows(twin, branch.views, all_rows(X, len(branch.views.features)))
            errors = PAIR_TOLERANCE * np.abs(z).max(axis=(1, 2))
            assert_within(distances.median, expected_distances.median, errors)
            assert_within(distances.mean_positive, expected_distances.mean_positive, errors)
    return detector


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("n", SIZES)
def test_any_size(n, d):
    train, new = table("normal", max(n, 2), d), table("normal", n, d, seed=1)
    assert_kernels_agree(train, new, preprocessing=SCALINGS[(n + d) % 3])
    for n_quantiles in {0, 2, max(2, min(n, 1000))}:
        assert_same_statistics(new, n_quantiles)


@pytest.mark.parametrize("preprocessing", ALL_SCALINGS)
@pytest.mark.parametrize("kind", ["normal", "far", "huge", "discrete", "flags", "constant", "log-normal", "duplicates"])
def test_any_values(kind, preprocessing):
    train, new = table(kind, 700, 6), table(kind, 333, 6, seed=1)
    assert_kernels_agree(train, new, preprocessing=preprocessing)
    assert_same_statistics(train, quantiles_for((preprocessing,), len(train)))


@pytest.mark.parametrize("n_neighbors", [*range(1, 21), 40])
def test_any_number_of_neighbors(n_neighbors):
    train = table("duplicates", 400, 4)
    assert_kernels_agree(train, train[:77], n_neighbors=n_neighbors, n_references=67)


@pytest.mark.parametrize("n_random_features", [1, 3, 10, 64])
@pytest.mark.parametrize("multipliers", [(1.0,), (0.25, 0.5, 1.0, 2.0), (1.0, 3.0, 0.3, 0.6), (0.001, 1000.0)])
def test_any_bandwidths(multipliers, n_random_features):
    train, new = table("normal", 600, 5), table("normal", 129, 5, seed=1)
    assert_kernels_agree(train, new, bandwidth_multipliers=multipliers, n_random_features=n_random_features)


@pytest.mark.parametrize("projection_dim", [1, 2, 3, 4, 6, 7, 9, 10, 11, 13, 33])
def test_any_projection(projection_dim):
    train, new = table("normal", 200, 12), table("normal", 50, 12, seed=1)
    assert_kernels_agree(train, new, projection_dim=projection_dim, feature_fraction=0.8)


SEVERAL = {"preprocessing": ALL_SCALINGS, "feature_fraction": (1.0, 0.3), "n_local_views": 11, "n_global_views": 11}


@pytest.mark.parametrize("projection", ["gaussian", "orthogonal"])
@pytest.mark.parametrize(("n", "d"), [(17, 1), (65, 2), (513, 7), (300, 41)])
def test_several_scalings_and_shares_of_the_columns(n, d, projection):
    train, new = table("normal", n, d), table("normal", 129, d, seed=1)
    assert_kernels_agree(train, new, **SEVERAL, projection=projection)


@pytest.mark.parametrize("kind", ["normal", "discrete", "flags", "duplicates", "constant", "far"])
def test_moments_of_scaled_columns(kind):
    X = table(kind, 2049, 5)
    statistics = numpy_kernels.column_statistics(X, 1, quantiles_for(ALL_SCALINGS, len(X)))
    native, twin = sides(X, scaling_of(ALL_SCALINGS, statistics))
    for actual, expected in zip(native_kernels.column_moments(native), numpy_kernels.column_moments(twin), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("asked", [[0], [1, 2, 8, 9, 14, 20, 24], range(25), []])
def test_moments_of_some_columns_are_those_of_all(asked):
    X = table("discrete", 2049, 5)
    statistics = numpy_kernels.column_statistics(X, 1, quantiles_for(ALL_SCALINGS, len(X)))
    chosen = np.isin(np.arange(25), list(asked))
    for kernels, rows in zip(
        (native_kernels, numpy_kernels), sides(X, scaling_of(ALL_SCALINGS, statistics)), strict=True
    ):
        for some, every in zip(kernels.column_moments(rows, chosen), kernels.column_moments(rows), strict=True):
            np.testing.assert_array_equal(some, np.where(chosen, every, 0.0))


@pytest.mark.parametrize("n", [65, 2049])
def test_rows_may_keep_only_the_columns_of_some_views(n):
    model = fitted(native_kernels, table("normal", n, 40), **SEVERAL | {"n_local_views": 3}).model_
    X = table("normal", n, 40, seed=1)  # other rows: memory that the fit has freed must not hold what is looked for
    some = native_kernels.Rows(X, model.scaling, 2, keep=True, features=model.local_branch.views.features)
    every = native_kernels.Rows(X, model.scaling, 2)
    scores = [native_kernels.view_scores(rows, model.local_branch) for rows in (every, some)]
    assert_same_bits([scores[0]], [scores[1]])
    # What was not kept is scaled when it is asked for.
    assert_same_bits([every.take(np.arange(n))], [some.take(np.arange(n))])
    assert_same_bits(native_kernels.column_moments(every), native_kernels.column_moments(some))
    with pytest.raises(ValueError, match="a feature is not a column"):
        native_kernels.Rows(X, model.scaling, 1, keep=True, features=np.array([[10_000]], np.int32))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["normal", "discrete", "flags", "duplicates", "constant", "far"])
@pytest.mark.parametrize("n", [1, 2, 127, 129, 3000])
def test_column_knots(kind, n, dtype):
    X = table(kind, n, 9).astype(dtype)
    X[-1, 3] = np.nan
    X[n // 2, 4] = -np.nan
    for places in (np.arange(n), np.unique(np.linspace(0, n - 1, 17).round().astype(int))):
        actual = native_kernels.column_knots(X, places, 2)
        for one, other in zip(actual, numpy_kernels.column_knots(X, places, 1), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        assert actual[0][3, 0] == actual[0][4, 0] == -np.inf
        for kernels in (native_kernels, numpy_kernels):
            assert_same_bits(kernels.statistics_and_knots(X, places, 2, 0)[1], actual)


def test_statistics_with_knots_are_those_without():
    """Statistics are of clipped values, knots of the values as they are."""
    X = np.append([[-1e308, 1.0], [1e300, 2.0], [np.inf, 3.0]], np.random.default_rng(0).normal(size=(500, 2)), axis=0)
    statistics, knots = native_kernels.statistics_and_knots(X, np.array([0, 502]), 1, 7)
    assert_same_bits(vars(statistics).values(), vars(native_kernels.column_statistics(X, 1, 7)).values())
    assert_same_statistics(X, 7)
    assert statistics.value_range[0] == 2 * LARGEST_RAW_VALUE
    assert knots.values[0].tolist() == [-1e308, np.inf]


@pytest.mark.parametrize("bad", [[-1], [5], [1, 1], [2, 1]])
def test_column_knots_are_at_rows_in_their_order(bad):
    with pytest.raises(ValueError, match="places"):
        native_kernels.column_knots(np.zeros((5, 2)), np.array(bad), 1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_are_sorted_by_their_bits(dtype):
    """Columns of one or two values, without crowding, with ties, with a long tail, and with both zeros."""
    rng = np.random.default_rng(0)
    n = 3000
    signs = np.where(rng.random(n) < 0.5, -0.0, 0.0)
    columns = [
        *(np.full(n, 2.5), np.where(rng.random(n) < 0.3, 7.0, -1.0), signs, np.append(signs[1:], 3.0)),
        *(rng.normal(size=n), np.where(rng.random(n) < 0.2, signs, rng.normal(size=n)), rng.integers(0, 40, n)),
        *(rng.lognormal(sigma=4.0, size=n), np.append(rng.normal(size=n - 1), 1e30), rng.normal(size=n) * 1e-300),
    ]
    X = np.column_stack(columns).astype(dtype)
    keys = X.view(np.int64 if dtype == np.float64 else np.int32)
    order = np.argsort(np.where(keys < 0, keys ^ np.iinfo(keys.dtype).max, keys), axis=0, kind="stable")
    knots, _ = native_kernels.column_knots(X, np.arange(n), 1)
    expected = np.take_along_axis(X, order, axis=0).T.astype(np.float64)
    np.testing.assert_array_equal(knots.view(np.int64), expected.view(np.int64))


@pytest.mark.parametrize("kind", ["normal", "discrete", "flags", "duplicates", "constant", "huge", "far", "log-normal"])
@pytest.mark.parametrize("n", [2, 65, 700, 2048, 2049, EXACT_CDF_SIZE, EXACT_CDF_SIZE + 1])
def test_training_rows_are_ranked_as_other_rows_are(kind, n):
    # Sorting tells the ranks of the training rows of a short table: they must be those that a lookup finds.
    detector = fitted(native_kernels, table(kind, n, 4), preprocessing="robust")
    model, X = detector.model_, table(kind, n, 4)
    rows = native_kernels.Rows(X, model.scaling, 2)
    for branch, looked_up in zip((model.global_branch, model.local_branch), detector.branch_scores(X), strict=False):
        _, scores = native_kernels.fit_ranks(rows, branch, "rank")
        np.testing.assert_array_equal(scores, looked_up)


@pytest.mark.parametrize("kind", ["normal", "discrete", "flags", "duplicates", "constant", "log-normal"])
def test_standardized_scores_agree(kind):
    train, new = table(kind, 900, 6), table(kind, 333, 6, seed=1)
    native, twin = (fitted(k, train, **SEVERAL, aggregation="standard") for k in (native_kernels, numpy_kernels))
    for name in ("global_ranks", "local_ranks"):
        actual, expected = getattr(native.model_, name), getattr(twin.model_, name)
        np.testing.assert_allclose(actual.standards, expected.standards, rtol=1e-3, atol=1e-4)
        assert len(actual.cdfs) == len(expected.cdfs) == 1
    for X in (train, new):
        # Each side by its own model: standardized scores are rounded differently, and near ties change places.
        scores = [scored(native_kernels, native, X), scored(numpy_kernels, twin, X)]
        assert np.median(np.abs(scores[0] - scores[1])) <= SCORE_TOLERANCE / len(train)
        assert np.quantile(np.abs(scores[0] - scores[1]), 0.99) <= 10 * SCORE_TOLERANCE / len(train)


@pytest.mark.parametrize("kind", ["normal", "flags", "discrete"])
@pytest.mark.parametrize("scaling", ALL_SCALINGS)
def test_scaled_values_are_those_of_the_twin(kind, scaling):
    X = table(kind, 900, 5)
    fit = fitted(numpy_kernels, X, preprocessing=scaling).model_.scaling
    every = np.arange(len(X))
    scaled = [kernels.Rows(X, fit, 2).take(every) for kernels in (native_kernels, numpy_kernels)]
    np.testing.assert_allclose(*scaled, rtol=1e-5, atol=1e-6)
    alone = np.column_stack([native_kernels.Rows(X[i : i + 1], fit, 1).take([0]) for i in range(0, 900, 7)])
    np.testing.assert_array_equal(alone, scaled[0][:, ::7])


@pytest.mark.parametrize("kind", ["normal", "discrete"])
def test_distributions_of_many_rows_keep_the_same_knots(kind):
    train = table(kind, EXACT_CDF_SIZE + 3001, 4)
    assert_kernels_agree(train, train[:5], n_global_views=2, n_local_views=1)


def unaligned(X):
    room = np.zeros(len(X), dtype=np.dtype({"names": ["x"], "formats": [(X.dtype, X.shape[1:])], "offsets": [3]}))
    room["x"] = X
    return room["x"]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def spread_out(X):
    room = np.zeros((2 * len(X), 3 * X.shape[1]), dtype=X.dtype)
    room[::2, 1::3] = X
    return room[::2, 1::3]


LAYOUTS = {
    "Fortran": np.asfortranarray,
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "spread out": spread_out,
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "little-endian": lambda X: X.astype(X.dtype.newbyteorder("<")),
    "unaligned": unaligned,
    "read-only": read_only,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout(layout, dtype):
    X = table("normal", 777, 5).astype(dtype)
    other = LAYOUTS[layout](X)
    np.testing.assert_array_equal(other, X)
    for preprocessing in SCALINGS:
        n_quantiles = quantiles_for((preprocessing,), len(X))
        statistics = native_kernels.column_statistics(other, 2, n_quantiles)
        assert_same_bits(vars(statistics).values(), vars(native_kernels.column_statistics(X, 2, n_quantiles)).values())
        assert_same_statistics(other, n_quantiles)
        scaling = scaling_of((preprocessing,), statistics)
        numbers = np.array([3, 0, 776, 3])
        for keep in (False, True):
            native, twin = sides(other, scaling, keep=keep)
            taken = native.take(numbers)
            np.testing.assert_array_equal(taken, native_kernels.Rows(X, scaling, 1).take(numbers))
            np.testing.assert_allclose(taken, twin.take(numbers), rtol=SCALED_TOLERANCE)
    detector = fitted(native_kernels, X)
    np.testing.assert_array_equal(scored(native_kernels, detector, other), scored(native_kernels, detector, X))


def test_float32_rows_score_as_they_are():
    X = table("normal", 600, 5).astype(np.float32)
    detector = fitted(native_kernels, X)
    np.testing.assert_array_equal(
        scored(native_kernels, detector, X), scored(native_kernels, detector, X.astype(np.float64))
    )
    assert_kernels_agree(X, X[:100])


@pytest.mark.parametrize("n", [2, 5, 127, 128, 129, 1999])
@pytest.mark.parametrize("d", [1, 6, 23])
def test_covariances_of_projected_rows(n, d):
    """Of an orthogonal projection with two sizes of views: the narrow ones are padded with zeros."""
    X = table("normal", 2000, d)
    X[:, 0] += 1e3  # a mean far from 0
    model = fitted(native_kernels, X, **SEVERAL, projection="orthogonal").model_
    views, rows = model.local_branch.views, np.random.default_rng(n).choice(2000, n, replace=False)
    native, twin = (
        kernels.projected_covariances(own, views, rows)
        for kernels, own in zip((native_kernels, numpy_kernels), sides(X, model.scaling), strict=True)
    )
    largest = np.abs(twin).max(axis=(1, 2), keepdims=True)
    assert np.all(np.abs(native - twin) <= 1e-12 * largest)
    np.testing.assert_array_equal(native, native.swapaxes(1, 2))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 700, 2048, 9999, 10_000, 10_001, 15_000, 20_001, 32_768])
def test_draws_without_replacement_are_those_of_numpy(n):
    """The same rows, from all sizes and both of NumPy's methods, and the generator is left in the same state."""
    for size in sorted({1, min(n, 50), min(n, 400), n // 50 or 1, min(n, n // 50 + 1), n // 2 or 1, n}):
        generators = [np.random.default_rng(n + size) for _ in range(2)]
        for rng in generators:
            rng.integers(7, dtype=np.uint32)  # half of a number of 64 bits is kept for the next draw
        native, twin = (
            kernels.draw_without_replacement(rng, n, size, 3)
            for kernels, rng in zip((native_kernels, numpy_kernels), generators, strict=True)
        )
        np.testing.assert_array_equal(native, twin)
        assert generators[0].bit_generator.state == generators[1].bit_generator.state


def test_a_constant_column_has_no_spread():
    """Whatever the sum of its values is rounded to; else a new value would be infinitely far away."""
    for n in (2, 3, 7, 49, 100, 1000):
        X = np.full((n, 4), [0.1, 1e6 + 0.3, -7.7, 5e-324])
        for kind in (X, X[:, :3].astype(np.float32)):
            statistics = native_kernels.column_statistics(kind, 1, 0)
            assert not statistics.std.any() and not statistics.skewness.any()
            np.testing.assert_array_equal(statistics.mean, kind[0])


@pytest.mark.parametrize("preprocessing", SCALINGS)
@pytest.mark.parametrize(("n", "d"), [(513, 3), (2049, 21)])
def test_final_rankings_agree(n, d, preprocessing):
    train, new = table("normal", n, d), table("normal", 2049, d, seed=1)
    detectors = [fitted(k, train, preprocessing=preprocessing) for k in (native_kernels, numpy_kernels)]
    for X in (train, new):
        scores = [scored(k, detector, X) for k in (native_kernels, numpy_kernels) for detector in detectors]
        for other in scores[1:]:
            assert spearmanr(scores[0], other).statistic > CLOSE_RANKS
            np.testing.assert_allclose(scores[0], other, rtol=0, atol=SCORE_TOLERANCE / n)
            apart = np.abs(other[:, None] - other) > 2 * SCORE_TOLERANCE / n
            assert np.all(((scores[0][:, None] > scores[0]) == (other[:, None] > other))[apart])


# ---- the same bits


def everything(X, detector, n_threads, keep):
    """What the core makes of rows: every array of every kernel."""
    model = detector.model_
    rows = native_kernels.Rows(X, model.scaling, n_threads, keep)
    results = [*vars(native_kernels.column_statistics(X, n_threads, 100)).values(), rows.take(np.arange(len(X)))]
    for branch in (model.global_branch, model.local_branch):
        results += [native_kernels.project_rows(rows, branch.views, all_rows(X, len(branch.views.features)))]
        results += native_kernels.pair_distances(rows, branch.views, *draw_pairs(0, np.arange(len(X)), 999))
        results += [native_kernels.view_scores(rows, branch)]
        ranks, scores = native_kernels.fit_ranks(rows, branch, "rank")
        results += [scores, *(array for cdf in ranks.cdfs for array in (cdf.values, cdf.ranks))]
    results += native_kernels.embedding_sums(rows, model.global_branch)
    results += native_kernels.branch_scores(rows, model)
    return results


@pytest.mark.parametrize(("n", "d"), [(65, 1), (2049, 7), (9001, 41)])
def test_threads_do_not_change_a_bit(n, d):
    X = table("normal", n, d)
    detector = fitted(native_kernels, X)
    one = everything(X, detector, 1, keep=False)
    with cpu_times() as together:
        for n_threads in (2, 3, 7):
            for keep in (False, True):
                assert_same_bits(everything(X, detector, n_threads, keep), one)
    assert_same_bits(everything(X, detector, 1, keep=True), one)
    if n > 2048:
        assert_threads_worked(together)


def test_a_row_alone_scores_as_among_others():
    X = np.concatenate([table(kind, 150, 5) for kind in ("normal", "huge", "far")])
    detector = fitted(native_kernels, X[:400])
    together = scored(native_kernels, detector, X)
    alone = np.concatenate([scored(native_kernels, detector, X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(scored(native_kernels, detector, X[::-1])[::-1], together)


@pytest.mark.parametrize("n", [2, 49, 98, 103, 1000])
@pytest.mark.parametrize("preprocessing", SCALINGS)
def test_copies_score_the_same_bits(n, preprocessing, tmp_path):
    train, new = table("normal", n, 5), table("normal", 2000, 5, seed=1)
    detector = fitted(native_kernels, train, preprocessing=preprocessing)
    fresh = [pickle.loads(pickle.dumps(detector)), copy.deepcopy(detector)]
    scores = scored(native_kernels, detector, new)
    detector.save(tmp_path / "model")
    used = [pickle.loads(pickle.dumps(detector)), copy.deepcopy(detector), rgld.load(tmp_path / "model")]
    for other in [*fresh, *used, pickle.loads(pickle.dumps(used[0]))]:
        np.testing.assert_array_equal(scored(native_kernels, other, new), scores)
        assert type(other.model_.global_ranks).__name__ == "BranchRanks", "nothing of the core is pickled"


# ---- ranks

floats32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
shares = st.floats(0.0, 1.0)
distributions = st.one_of(
    st.lists(floats32, min_size=1, max_size=300),
    st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=300),
    st.tuples(floats32, st.integers(1, 50)).map(lambda pair: [pair[0]] * pair[1]),
    st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 5000), st.sampled_from(["normal", "heavy", "steps"])).map(
        lambda case: drawn(*case)
    ),
)


def drawn(seed, n, kind):
    rng = np.random.default_rng(seed)
    if kind == "heavy":
        return np.float32(rng.lognormal(sigma=12.0, size=n)).tolist()
    return np.float32(rng.normal(size=n).round(2 if kind == "steps" else 9)).tolist()


def asked(scores, more, dtype):
    """The scores, the places between them, places beyond them, and some more."""
    scores = np.sort(np.array(scores, dtype=np.float64))
    width = max(scores[-1] - scores[0], 1e-3)
    beyond = [end + side * width * by for end, side in ((scores[0], -1), (scores[-1], 1)) for by in (1e-6, 1.0, 1e6)]
    values = np.concatenate((scores, (scores[1:] + scores[:-1]) / 2.0, beyond, more))
    largest = float(np.finfo(np.float32).max)
    return np.sort(values.clip(-largest, largest).astype(dtype))


def assert_same_ranks(cdf, view, scores):
    knots = (cdf.values, cdf.ranks)
    no_standards = np.empty((0, 3), np.float32)
    native = _core.Ranks([knots], no_standards, knots, STANDARD_BOUNDS, cdf.n_rows, SMALLEST_RANGE)
    ranks = native.normalized_rank(view, scores.astype(np.float64))
    np.testing.assert_allclose(ranks, normalized_rank(cdf, scores), rtol=0, atol=1e-12)
    assert np.all((ranks > 0.0) & (ranks < 1.0))
    assert np.all(np.diff(ranks) >= 0.0)


@given(distributions, st.lists(floats32, max_size=20))
def test_ranks_of_views_are_the_twins(scores, more):
    assert_same_ranks(fit_cdf(np.float32(scores)), 0, asked(scores, more, np.float32))


@given(st.one_of(st.lists(shares, min_size=1, max_size=200), st.lists(st.integers(0, 7), min_size=1)), st.lists(shares))
def test_ranks_of_branches_are_the_twins(scores, more):
    """Branch scores are mean ranks: in [0, 1], to 12 decimals."""
    scores = np.round(np.array(scores, dtype=np.float64) / max(1.0, *scores), 12)
    assert_same_ranks(fit_cdf(scores), 1, asked(scores, more, np.float64).clip(0.0, 1.0))


@pytest.mark.parametrize("view", [0, 1], ids=["view", "branch"])
@pytest.mark.parametrize("n_rows", [2, 20, 2**40])
def test_ranks_near_0_and_1_do_not_become_0_and_1(view, n_rows):
    """The core rounds ranks to whole levels; a forged model may have ranks that no fit gives."""
    knots = (np.array([1.0, 2.0]), np.array([1e-18, 1.0 - 2.0**-53]))
    no_standards = np.empty((0, 3), np.float32)
    native = _core.Ranks([knots], no_standards, knots, STANDARD_BOUNDS, n_rows, SMALLEST_RANGE)
    ranks = native.normalized_rank(view, np.array([1.0, 1.5, 2.0]))
    assert np.all((ranks > 0.0) & (ranks < 1.0))


@pytest.mark.parametrize("kernels", [native_kernels, numpy_kernels])
@pytest.mark.parametrize("aggregation", ["rank", "standard"])
def test_means_need_no_distribution_of_the_branch(kernels, aggregation):
    """A fit in passes ranks the views before it knows what their means look like."""
    X = table("normal", 300, 4)
    model = fitted(kernels, X, aggregation=aggregation).model_
    rows = kernels.Rows(X, model.scaling, 1)
    for branch, ranks in ((model.global_branch, model.global_ranks), (model.local_branch, model.local_ranks)):
        of_views = BranchRanks(ranks.views, ranks.standards)
        assert of_views.branch is None and of_views.cdfs == ranks.views == ranks.cdfs[:-1]
        expected = kernels.branch_means(rows, branch, ranks)
        np.testing.assert_array_equal(kernels.branch_means(rows, branch, of_views), expected)
    of_views = BranchRanks(model.global_ranks.views, model.global_ranks.standards)
    with pytest.raises((ValueError, AssertionError), match="the distribution of the branch is"):
        kernels.branch_scores(rows, dataclasses.replace(model, global_ranks=of_views))


# ---- what is refused


def test_wrong_arrays_are_refused():
    """A mistake on the Python side raises; it reads no foreign memory."""
    X = table("normal", 50, 4)
    detector = fitted(native_kernels, X)
    scaling, branch = detector.model_.scaling, detector.model_.local_branch
    rows = native_kernels.Rows(X, scaling, 1)
    for numbers in ([50], [-1], [0, 10**12]):
        with pytest.raises(ValueError, match="not in the table"):
            rows.take(np.array(numbers))
    with pytest.raises(ValueError, match="other columns than the scaling"):
        native_kernels.Rows(X[:, :3], scaling, 1)
    with pytest.raises(ValueError, match="no rows"):
        native_kernels.Rows(X[:0], scaling, 1)
    with pytest.raises(ValueError, match="float32 or float64"):
        native_kernels.Rows(X.astype(np.float16), scaling, 1)
    for generator, size in ((rows, 3), (np.random.default_rng(0).bit_generator.capsule, 8)):
        with pytest.raises((TypeError, ValueError)):
            _core.draw_without_replacement(generator, 7, size, 1)
    narrow = fitted(native_kernels, X[:, :3])
    with pytest.raises(ValueError, match="other columns than the branch"):
        native_kernels.view_scores(native_kernels.Rows(X[:, :3], narrow.model_.scaling, 1), branch)


# ---- processes of their own

BITS = """
import sys
import numpy as np
from rgld import RGLD
from rgld._kernels import _core, native_kernels
from tests.kernels.test_kernels import SMALL, everything, table

X = table("normal", 1025, 7)
results = [detector.fit(X).anomaly_score(X) for detector in (RGLD(**SMALL), RGLD.plus(random_state=0))]
for kind, d in (("normal", 7), ("huge", 3), ("discrete", 20)):
    X = table(kind, 1025, d)
    for more in ({}, {"bandwidth_multipliers": (1.0, 3.0, 0.3, 0.6), "n_neighbors": 17, "preprocessing": "standard"}):
        results += everything(X, RGLD(**SMALL | more).fit(X), 2, keep=True)
np.savez(sys.argv[1], **{f"{i:04}": result for i, result in enumerate(results)})
print(_core.instruction_set())
"""


def run(code, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "RGLD_KERNELS": "", **environment},
        check=False,
    )


@functools.cache
def instruction_sets():
    result = run("import rgld._kernels", RGLD_CPU="abacus")
    said = r"ImportError: RGLD_CPU must be one of (.+) on this processor, got 'abacus' instead\."
    found = re.fullmatch(said, result.stderr.splitlines()[-1])
    assert found, result.stderr
    return found[1].split(", ")


@pytest.mark.own_process
def test_an_unavailable_instruction_set_is_refused_by_the_import():
    available = instruction_sets()
    assert available[0] == "baseline" and set(available) <= {"baseline", "avx2", "avx512"}
    for name in {"baseline", "avx2", "avx512"} - set(available):
        result = run("from rgld import RGLD; RGLD().fit([[0.0], [1.0]])", RGLD_CPU=name)
        assert f"must be one of {', '.join(available)} on this processor, got '{name}'" in result.stderr


@pytest.mark.own_process
def test_instruction_sets_give_the_same_bits(tmp_path):
    """With fused multiply-add; the baseline, without, is off by its rounding."""
    results = {}
    for name in instruction_sets():
        done = run(BITS, tmp_path / f"{name}.npz", RGLD_CPU=name)
        assert done.stdout.strip() == name, done.stderr
        with np.load(tmp_path / f"{name}.npz") as arrays:
            results[name] = [arrays[key] for key in sorted(arrays)]
    fused = [arrays for name, arrays in results.items() if name != "baseline"]
    if not fused:
        pytest.skip("this processor has one instruction set only")
    for other in fused[1:]:
        assert_same_bits(other, fused[0])
    X = table("normal", 1025, 7)
    expected = scored(numpy_kernels, fitted(numpy_kernels, X), X)
    for scores, *_ in results.values():
        np.testing.assert_allclose(scores, expected, rtol=0, atol=SCORE_TOLERANCE / len(X))
        assert spearmanr(scores, expected).statistic > CLOSE_RANKS


LONG = """
import signal
import numpy as np
from rgld import RGLD

signal.signal(signal.SIGINT, signal.default_int_handler)  # some shells start their children without
rng = np.random.default_rng(0)
detector = RGLD(n_global_views=400, random_state=0).fit(rng.normal(size=(500, 4)))
X = np.broadcast_to(rng.normal(size=(1, 4)), (3_000_000, 4))
print("started", flush=True)
detector.anomaly_score(X)
print("finished", flush=True)
"""


@pytest.mark.own_process
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")
def test_an_interrupt_ends_a_long_call():
    with subprocess.Popen(
        [sys.executable, "-c", LONG],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RGLD_KERNELS": "native"},
    ) as process:
        try:
            assert process.stdout.readline().strip() == "started"
            time.sleep(0.5)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            elapsed = time.monotonic() - start
        finally:
            process.kill()
    assert "finished" not in out
    assert "KeyboardInterrupt" in err
    assert elapsed < 5.0


DAEMON = """
import threading
import time
import numpy as np
from rgld import RGLD

X = np.random.default_rng(0).normal(size=(2000, 4))
detector = RGLD(random_state=0, n_jobs=2).fit(X)
rounds = [0]

def work():
    while True:
        detector.anomaly_score(X)
        RGLD(random_state=0, n_jobs=2).fit(X)
        rounds[0] += 1

threading.Thread(target=work, daemon=True).start()
while not rounds[0]:
    time.sleep(0.001)
"""


@pytest.mark.own_process
@pytest.mark.parametrize("n_processes", [1, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_python_exits_quietly_while_a_daemon_thread_works(n_processes):
    """It used to abort, and to write about objects that were not freed."""
    for _ in range(n_processes):
        done = run(DAEMON)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


WITHOUT_CORE = """
import sys
import warnings

sys.modules["rgld._kernels._core"] = None  # as if it had not been built
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from rgld import RGLD
    RGLD(random_state=0).fit([[0.0], [1.0], [5.0]]).predict([[2.0]])
from rgld import _kernels
print(_kernels.name, *(f"{w.category.__name__}: {w.message}" for w in said if "rgld" in str(w.message)), sep="\\n")
"""


@pytest.mark.own_process
def test_without_the_core_numpy_is_used_and_said_once():
    lines = run(WITHOUT_CORE).stdout.splitlines()
    assert lines[0] == "numpy" and len(lines) == 2
    assert lines[1].startswith("RuntimeWarning: rgld was installed without its compiled core")
    assert run(WITHOUT_CORE, RGLD_KERNELS="numpy").stdout.splitlines() == ["numpy"]
    refused = run(WITHOUT_CORE, RGLD_KERNELS="native")
    assert "ImportError: RGLD_KERNELS=native, but rgld was installed without its compiled core" in refused.stderr
