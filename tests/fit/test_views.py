"""What a fit draws: views, frequencies, row pairs and references, and how wide bandwidths are."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import qmc

from rgld import RGLD, _kernels
from rgld._fit import randomness
from rgld._fit.global_branch import MAX_PAIR_ROWS, base_bandwidths, draw_pairs
from rgld._fit.local_branch import draw_local
from rgld._fit.views import ViewShape, draw_views, view_shape
from rgld._kernels.numpy_kernels import pair_places
from rgld._params import check_parameters
from rgld._table.table import MatrixTable


def shape_of(n_columns, n_scalings=1, **parameters):
    encoding = MatrixTable(np.zeros((2, n_columns))).infer_encoding(None)
    return view_shape(encoding, check_parameters(RGLD(**parameters).get_params()), n_scalings)


@pytest.mark.parametrize(
    ("columns", "features", "dim"),
    [
        *[(1, 1, 2), (2, 2, 2), (3, 3, 2), (4, 3, 5), (10, 3, 5), (20, 6, 5), (21, 6, 8), (40, 12, 8), (41, 12, 12)],
        *[(100, 30, 12), (101, 30, 16), (1555, 466, 16)],
    ],
)
def test_view_shape_is_the_papers_rule(columns, features, dim):
    assert shape_of(columns) == ViewShape(columns, (features,), dim, 1)


def test_view_shape_parameters():
    assert shape_of(10, feature_fraction=1.0, projection_dim=4) == ViewShape(10, (10,), 4)
    assert shape_of(10, feature_fraction=0.1, min_features=5) == ViewShape(10, (5,), 5)
    assert shape_of(10, n_scalings=2, feature_fraction=(1.0, 0.3)) == ViewShape(10, (10, 3), 5, 2)
    orthogonal = {"projection": "orthogonal"}
    assert shape_of(30, feature_fraction=(1.0, 0.3), **orthogonal) == ViewShape(30, (30, 9), 16, 1, "orthogonal")
    assert shape_of(8, feature_fraction=1.0, **orthogonal).projection_dim == 8


def test_features_are_drawn_without_replacement_and_uniformly():
    views = draw_views(0, randomness.GLOBAL, 2000, ViewShape(10, (3,), 5))
    assert all(len(set(features)) == 3 for features in views.features.tolist())
    counts = np.bincount(views.features.ravel(), minlength=10)
    assert np.all(np.abs(counts - 600) < 4 * np.sqrt(2000 * 0.3 * 0.7))


def test_projection_is_normal_with_variance_one_over_r():
    projection = draw_views(0, randomness.GLOBAL, 2000, ViewShape(10, (3,), 4)).projection
    assert projection.var() == pytest.approx(1 / 4, rel=0.05)
    assert projection.mean() == pytest.approx(0, abs=0.02)


def test_views_take_scalings_and_shares_of_the_columns_in_turn():
    views = draw_views(0, randomness.LOCAL, 9, ViewShape(6, (6, 2), 3, 2))
    assert (views.features // 6 == np.arange(9)[:, None] % 2)[views.projection.any(axis=2)].all()
    used = views.projection.any(axis=2).sum(axis=1)
    np.testing.assert_array_equal(used, [6, 6, 2, 2, 6, 6, 2, 2, 6])
    assert not views.projection[2, 2:].any()


@pytest.mark.parametrize("shape", [ViewShape(9, (9, 4), 6, 1, "orthogonal"), ViewShape(5, (5,), 5, 1, "orthogonal")])
def test_orthogonal_projections_keep_squared_lengths(shape):
    views = draw_views(0, randomness.LOCAL, 400, shape)
    for projection in views.projection[:4]:
        m, r = (int(projection.any(axis=axis).sum()) for axis in (1, 0))
        assert (m, r) in {(9, 6), (4, 4), (5, 5)}
        gram = projection[:m, :r].T @ projection[:m, :r]
        np.testing.assert_allclose(gram, m / r * np.eye(r), atol=1e-5)
    x = np.arange(1.0, 10.0)[: shape.n_features[0]]
    lengths = [
        np.sum((x @ p) ** 2)
        for p, used in zip(views.projection, views.projection.any(axis=2), strict=True)
        if used.all()
    ]
    assert np.mean(lengths) == pytest.approx(np.sum(x**2), rel=0.05)


def test_base_bandwidth_is_the_median_with_two_fallbacks():
    typical = _kernels.Distances(median=np.array([2.5, 0.0, 0.0]), mean_positive=np.array([9.0, 4.0, 0.0]))
    np.testing.assert_array_equal(base_bandwidths(typical), [2.5, 4.0, 1.0])


def test_pairs_are_never_of_a_row_with_itself():
    for n in (2, 3, 50):
        pairs = draw_pairs(0, np.arange(n), 5000)
        i, j = pair_places(n, pairs.n_pairs)
        assert np.all(i != j)
        assert set(pairs.rows[i]) == set(pairs.rows[j]) == set(range(n))
        assert len(i) == n * (n // 2)
    assert draw_pairs(0, np.arange(50), 70).n_pairs == 70
    assert len(set(draw_pairs(0, np.arange(10_000), 10).rows)) == MAX_PAIR_ROWS


def test_quasi_monte_carlo_normals_are_normal_in_every_view():
    generator = partial(randomness.child, 0, randomness.GLOBAL)
    points = randomness.sobol_points(generator(randomness.POINTS), 10, 3)
    normals = randomness.shifted_normals(
        points, randomness.child(0, randomness.GLOBAL, randomness.SHIFTS).random((4000, 3))
    )
    np.testing.assert_allclose(normals.mean(axis=0), 0, atol=4 / np.sqrt(4000))
    np.testing.assert_allclose(normals.var(axis=0), 1, atol=4 * np.sqrt(2 / 4000))
    # Evenly spread within a view: the mean of ten points varies less than that of ten independent normals would.
    assert normals.mean(axis=1).var() < 0.5 / 10


@pytest.mark.parametrize("n_points", [1, 2, 3, 10, 16, 17, 200, 300])
@pytest.mark.parametrize("n_dims", [1, 2, 5, 16, 33])
def test_sobol_points_are_those_of_scipy(n_points, n_dims):
    for seed in range(3):
        ours, theirs = (randomness.child(seed, randomness.GLOBAL, randomness.POINTS) for _ in range(2))
        engine = qmc.Sobol(n_dims, rng=theirs)
        expected = engine.random_base2(int(n_points - 1).bit_length())[:n_points]
        np.testing.assert_array_equal(randomness.sobol_points(ours, n_points, n_dims), expected)


def test_branches_draw_views_of_their_own():
    views = [draw_views(0, branch, 3, ViewShape(10, (3,), 5)) for branch in (randomness.GLOBAL, randomness.LOCAL)]
    assert not np.array_equal(views[0].projection, views[1].projection)


def test_root_seed():
    assert randomness.root_seed(7) == 7
    assert randomness.root_seed(None) != randomness.root_seed(None)


def test_references_are_at_most_all_rows():
    assert draw_local(0, 3, ViewShape(2, (2,), 2), np.arange(7), 400).rows.shape == (3, 7)
