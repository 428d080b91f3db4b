"""The kernels' named quantities of the paper, with numbers worked out by hand."""

import numpy as np
import pytest

from rgld import RGLD, _kernels
from rgld._kernels import elementary
from rgld._kernels.blocks import BLOCK_BYTES, LARGEST_BLOCK, SMALLEST_BLOCK, rows_per_block
from rgld._model.scaling import Scaling
from rgld._model.views import Views


def f32(*values):
    return np.array(values, dtype=np.float32)


def test_project_by_hand():
    columns = f32([1, 2], [10, 20], [100, 200])
    z = elementary.project(columns, np.array([[2, 0]], np.int32), f32([[1, 0, 2], [3, 1, -1]]))
    np.testing.assert_array_equal(z, [[[103, 206], [1, 2], [199, 398]]])


def test_random_features_by_hand():
    phi = elementary.random_features(f32([[0.0, np.pi]])[None].reshape(1, 1, 2), f32([0.0]).reshape(1, 1), 2.0)
    np.testing.assert_allclose(phi, [[[np.sqrt(2), 0.0]]], atol=1e-6)


def test_support_by_hand():
    phi = f32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(elementary.support(phi, f32([10, 1])), [[13, 24]])


def test_pair_distances_by_hand():
    X = np.array([[0.0], [3.0], [4.0], [4.0]])
    scaling = Scaling(("standard",), np.zeros(1), np.ones(1), np.zeros(1), np.ones(1), np.zeros((1, 0)))
    views = Views(np.zeros((1, 1), np.int32), f32([[2.0]]))
    rows = _kernels.Rows(X, scaling, 1)
    typical = _kernels.pair_distances(rows, views, np.arange(4), 4)
    np.testing.assert_allclose(typical.median, [4.0])  # of 6, 2, 0, 8
    typical = _kernels.pair_distances(rows, views, np.arange(4), 6)
    np.testing.assert_allclose(typical.median, [4.0])  # and 8, 2
    same = _kernels.Rows(X[[2, 0, 3, 2, 3, 2, 3, 2]], scaling, 1)
    typical = _kernels.pair_distances(same, views, np.arange(8), 8)
    np.testing.assert_array_equal(typical, [[0.0], [8.0]])  # of 8, 8, 0, 0, 0, 0, 0, 0


def test_a_support_without_spread_contributes_nothing():
    model = RGLD(n_local_views=0, random_state=0).fit(np.full((50, 3), 4.2)).model_
    assert np.all(model.global_branch.support_std == 0)
    rows = _kernels.Rows(np.random.default_rng(0).normal(size=(9, 3)), model.scaling, 1)
    assert np.all(_kernels.view_scores(rows, model.global_branch) == 0)


def neighbor_distance(z, references, k):
    return elementary.neighbor_distance(f32(*np.atleast_2d(z)), f32(*np.atleast_2d(references)), k)


def test_neighbor_distance_is_the_root_mean_square():
    # From 0: nearest are 3 and 4 of {3, -4, 20}; sqrt((9 + 16) / 2).
    np.testing.assert_allclose(neighbor_distance([0.0], [3.0, -4.0, 20.0], 2), [np.sqrt(12.5)])


def test_one_exact_match_is_left_out_and_only_one():
    np.testing.assert_allclose(neighbor_distance([1.0], [1.0, 4.0, 5.0], 2), [np.sqrt((9 + 16) / 2)])
    np.testing.assert_allclose(neighbor_distance([1.0], [1.0, 1.0, 5.0], 2), [np.sqrt((0 + 16) / 2)])


def test_distances_do_not_cancel_far_from_the_origin():
    offset = 1e4
    near, far = (neighbor_distance([[x], [x]], [[x, x + 1, x + 2], [x, x, x]], 1) for x in (0.0, offset))
    np.testing.assert_array_equal(near, far)


@pytest.mark.parametrize("k", [1, 5, 39])
def test_neighbor_distance_against_brute_force(k):
    rng = np.random.default_rng(0)
    z, references = rng.normal(size=(4, 100)), rng.normal(size=(4, 40))
    squared = ((z[:, :, None] - references[:, None, :]) ** 2).sum(axis=0)
    expected = np.sqrt(np.sort(squared, axis=1)[:, :k].mean(axis=1))
    np.testing.assert_allclose(neighbor_distance(z, references, k), expected, rtol=1e-5)


def test_blocks_keep_to_the_byte_budget():
    for floats_per_row in (10, 1000, 30_000):
        rows = rows_per_block(floats_per_row)
        assert rows * floats_per_row * 4 <= BLOCK_BYTES or rows == SMALLEST_BLOCK
        assert rows <= LARGEST_BLOCK
