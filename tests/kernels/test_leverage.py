"""Leverage views and whitening: both kernels agree, and whatever the table is, scores are finite."""

import dataclasses
import warnings

import numpy as np
import pytest

from rgld import RGLD, _kernels
from rgld._fit.leverage_branch import inverse_roots, scalings_of
from rgld._fit.views import ViewShape, draw_views
from rgld._fit.whitening import whitened
from rgld._kernels import numpy_kernels
from rgld._model.model import LARGEST_LEVERAGE
from rgld._model.scaling import Scaling

from .test_kernels import assert_same_bits, native_kernels, table

PRESETS = {"plus": RGLD.plus, "novelty": RGLD.novelty}


def fitted(kind, n, d, preset="plus"):
    X = table(kind, n, d)
    return PRESETS[preset](random_state=0, n_references=30).fit(X).model_, X


@pytest.mark.parametrize("kind", ["normal", "discrete", "constant", "log-normal", "duplicates"])
@pytest.mark.parametrize(("n", "d"), [(17, 1), (65, 3), (513, 7), (300, 41)])
@pytest.mark.parametrize("preset", PRESETS)
def test_kernels_agree(preset, kind, n, d):
    model, X = fitted(kind, n, d, preset)
    rows = [kernels.Rows(X, model.scaling, 1) for kernels in (native_kernels, numpy_kernels)]
    branch = model.global_branch
    native, twin = (
        kernels.view_scores(own, branch) for kernels, own in zip((native_kernels, numpy_kernels), rows, strict=True)
    )
    # The form is a sum of squares of differences: where it is small, digits are lost.
    np.testing.assert_allclose(native, twin, rtol=2e-3, atol=2e-3)
    indices = np.arange(0, n, 2)
    sums = native_kernels.leverage_sums(rows[0], branch, indices)
    expected = numpy_kernels.leverage_sums(rows[1], branch, indices)
    np.testing.assert_allclose(sums.phi, expected.phi, rtol=1e-5, atol=1e-4 * n)
    np.testing.assert_allclose(sums.phi_phi, expected.phi_phi, rtol=1e-5, atol=1e-4 * n)


def test_the_mean_and_root_are_those_of_the_features():
    model, X = fitted("normal", 400, 5, "novelty")
    branch = model.global_branch
    rows = numpy_kernels.Rows(X, model.scaling, 1)
    phi, products = numpy_kernels.leverage_sums(rows, branch, np.arange(400))
    mean = phi / 400
    np.testing.assert_allclose(branch.mean, mean, atol=1e-5)
    covariance = products / 400 - mean[:, :, None] * mean[:, None, :]
    root = branch.root.astype(float)
    identity = root @ (covariance + 0.001 * np.eye(phi.shape[1])) @ root.swapaxes(1, 2)
    np.testing.assert_allclose(identity, np.broadcast_to(np.eye(phi.shape[1]), identity.shape), atol=2e-2)


@pytest.mark.parametrize("n_threads", [2, 5])
def test_threads_do_not_change_a_bit(n_threads):
    model, X = fitted("normal", 3000, 9)
    results = []
    for threads, keep in ((1, False), (n_threads, True)):
        rows = native_kernels.Rows(X, model.scaling, threads, keep)
        results.append(
            [
                native_kernels.view_scores(rows, model.global_branch),
                *native_kernels.leverage_sums(rows, model.global_branch, np.arange(0, 3000, 3)),
            ]
        )
    assert_same_bits(*results)


@pytest.mark.parametrize("kernels", [native_kernels, numpy_kernels])
def test_far_rows_are_finite_and_keep_their_order(kernels):
    model, _ = fitted("normal", 500, 4)
    far = np.array([[10.0**k] * 4 for k in (2, 4, 8, 16, 300)])
    scores = kernels.view_scores(kernels.Rows(far, model.scaling, 1), model.global_branch)
    assert np.isfinite(scores).all() and (scores <= LARGEST_LEVERAGE).all() and (scores >= 0).all()
    assert (np.diff(scores[::2], axis=1) >= 0).all()  # arcsinh-standard; quantiles end
    huge = dataclasses.replace(model.global_branch, root=model.global_branch.root * 1e30)
    overflowing = kernels.view_scores(kernels.Rows(far, model.scaling, 1), huge)
    assert (overflowing == np.float32(LARGEST_LEVERAGE)).all()


@pytest.mark.parametrize("kernels", [_kernels, numpy_kernels])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_inverses_of_triangles(kernels, n):
    rng = np.random.default_rng(n)
    triangles = np.tril(rng.normal(size=(3, n, n)), -1) / n + np.eye(n) * rng.uniform(0.5, 2.0, n)
    inverses = kernels.inverse_triangles(triangles)
    np.testing.assert_array_equal(inverses, np.tril(inverses))
    np.testing.assert_allclose(inverses @ triangles, np.broadcast_to(np.eye(n), (3, n, n)), atol=1e-12)
    above = np.triu(rng.normal(size=(3, n, n)), 1)  # is not read
    np.testing.assert_array_equal(kernels.inverse_triangles(triangles + above), inverses)


def test_only_squares_have_triangles():
    core = pytest.importorskip("rgld._kernels._core", reason="rgld was installed without its compiled core")
    with pytest.raises(ValueError, match="a triangle is square"):
        core.inverse_triangles(np.ones((2, 3, 4)))


def test_roots_of_singular_and_indefinite_matrices():
    bad = np.diag([1.0, -0.5, 1.0, 1.0])  # rounding can do this to a covariance
    every = np.array([np.zeros((4, 4)), np.ones((4, 4)), np.diag([1e12, 1.0, 0.0, 0.0]), -1e-9 * np.eye(4), bad])
    for matrices in (every[:4], every):  # the last one is not positive definite
        roots = inverse_roots(matrices, 1e-3)
        assert np.isfinite(roots).all() and np.array_equal(roots, np.tril(roots))
        np.testing.assert_array_equal(roots[:4], inverse_roots(every[:4], 1e-3))
    np.testing.assert_allclose(inverse_roots(np.diag([3.0, 8.0])[None], 1.0)[0], np.diag([1 / 2, 1 / 3]), rtol=1e-6)


def test_leverage_views_take_turns_among_scalings_of_unit_spread():
    assert scalings_of(("arcsinh", "arcsinh-standard", "quantile"), 5).tolist() == [1, 2, 1, 2, 1]
    assert scalings_of(("standard",), 2).tolist() == [0, 0]
    assert scalings_of(("robust", "arcsinh"), 3).tolist() == [0, 1, 0]


@pytest.mark.parametrize("ridge", [1.0, 0.1, 0.001])
def test_whitened_coordinates_are_uncorrelated(ridge):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6)) @ rng.normal(size=(6, 6))
    zeros, ones = np.zeros(6), np.ones(6)
    rows = _kernels.Rows(X, Scaling(("standard",), zeros, ones, zeros, ones, np.zeros((6, 0))), 1)
    shape = ViewShape(6, (6, 3), 4, projection="orthogonal", ridges=(ridge, 0.0))
    views = draw_views(0, 1, 4, shape)
    white = whitened(views, rows, np.arange(1500), shape, 0)
    assert np.array_equal(white.projection[1::2], views.projection[1::2])  # ridge 0
    for t in (0, 2):
        before, after = (X @ v.projection[t].astype(float) for v in (views, white))
        eigenvalues = np.linalg.eigvalsh(np.cov(before.T, bias=True))
        scaled = eigenvalues / eigenvalues.mean()
        covariance = np.cov(after.T, bias=True) / eigenvalues.mean()
        np.testing.assert_allclose(np.diag(covariance), np.diag(np.diag(covariance)).sum(axis=0))
        np.testing.assert_allclose(covariance - np.diag(np.diag(covariance)), 0.0, atol=1e-4)
        np.testing.assert_allclose(np.sort(np.diag(covariance)), np.sort(scaled * ridge / (scaled + ridge)), rtol=1e-3)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("n", [2, 3, 10, 30])
@pytest.mark.parametrize("kind", ["constant", "binary", "duplicates", "collinear", "wide", "all equal"])
def test_degenerate_tables(preset, n, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 300 if kind == "wide" else 4))
    if kind == "constant":
        X[:, :3] = 7.0
    elif kind == "binary":
        X = rng.integers(0, 2, size=(n, 4)).astype(float)
    elif kind == "duplicates":
        X[:] = X[rng.integers(2, size=n)]
    elif kind == "collinear":
        X[:, 1:] = X[:, :1] * np.array([2.0, -1.0, 1e6])
    elif kind == "all equal":
        X[:] = 3.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector = PRESETS[preset](random_state=0).fit(X)
        scores = detector.anomaly_score(np.vstack((X, 1e9 * X[:1] + 1.0)))
        explained = detector.explain(X).contributions
    assert ((scores > 0) & (scores < 1)).all() and np.isfinite(explained).all()
