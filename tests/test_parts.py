"""Each named quantity of the paper, with numbers worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.preprocessing import QuantileTransformer, RobustScaler, StandardScaler

from rgld import RGLD, _kernels, _random
from rgld._global import PAIR_ROWS, base_bandwidths, draw_pairs
from rgld._kernels import elementary
from rgld._kernels.blocks import BLOCK_BYTES, LARGEST_BLOCK, SMALLEST_BLOCK, rows_per_block
from rgld._kernels.numpy_kernels import pair_places
from rgld._local import draw_local
from rgld._preprocess import Scaling, choose_preprocessing, column_statistics, fit_scaling, normal_score, scaled_columns
from rgld._ranks import STANDARD_BOUNDS, fit_standards, standard_agg
from rgld._threshold import fit_offset
from rgld._views import Views, ViewShape, draw_views, view_shape


def f32(*values):
    return np.array(values, dtype=np.float32)


# Views


@pytest.mark.parametrize(
    ("columns", "features", "dim"),
    [
        *[(1, 1, 2), (2, 2, 2), (3, 3, 2), (4, 3, 5), (10, 3, 5), (20, 6, 5), (21, 6, 8), (40, 12, 8), (41, 12, 12)],
        *[(100, 30, 12), (101, 30, 16), (1555, 466, 16)],
    ],
)
def test_view_shape_is_the_papers_rule(columns, features, dim):
    assert view_shape(columns, 0.3, 3, "auto") == ViewShape(columns, (features,), dim, 1)


def test_view_shape_parameters():
    assert view_shape(10, 1.0, 3, 4) == ViewShape(10, (10,), 4)
    assert view_shape(10, 0.1, 5, "auto") == ViewShape(10, (5,), 5)
    assert view_shape(10, (1.0, 0.3), 3, "auto", 2) == ViewShape(10, (10, 3), 5, 2)
    assert view_shape(30, (1.0, 0.3), 3, "auto", 1, "orthogonal") == ViewShape(30, (30, 9), 16, 1, "orthogonal")
    assert view_shape(8, 1.0, 3, "auto", 1, "orthogonal").projection_dim == 8


def test_features_are_drawn_without_replacement_and_uniformly():
    views = draw_views(0, _random.GLOBAL, 2000, ViewShape(10, (3,), 5))
    assert all(len(set(features)) == 3 for features in views.features.tolist())
    counts = np.bincount(views.features.ravel(), minlength=10)
    assert np.all(np.abs(counts - 600) < 4 * np.sqrt(2000 * 0.3 * 0.7))


def test_projection_is_normal_with_variance_one_over_r():
    projection = draw_views(0, _random.GLOBAL, 2000, ViewShape(10, (3,), 4)).projection
    assert projection.var() == pytest.approx(1 / 4, rel=0.05)
    assert projection.mean() == pytest.approx(0, abs=0.02)


def test_views_take_scalings_and_shares_of_the_columns_in_turn():
    views = draw_views(0, _random.LOCAL, 9, ViewShape(6, (6, 2), 3, 2))
    assert (views.features // 6 == np.arange(9)[:, None] % 2)[views.projection.any(axis=2)].all()
    used = views.projection.any(axis=2).sum(axis=1)
    np.testing.assert_array_equal(used, [6, 6, 2, 2, 6, 6, 2, 2, 6])
    assert not views.projection[2, 2:].any()


@pytest.mark.parametrize("shape", [ViewShape(9, (9, 4), 6, 1, "orthogonal"), ViewShape(5, (5,), 5, 1, "orthogonal")])
def test_orthogonal_projections_keep_squared_lengths(shape):
    views = draw_views(0, _random.LOCAL, 400, shape)
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


def test_standardized_scores_by_hand():
    scores = f32([1.0, np.e, np.e**2, 0.0], [1.0, 2.0, 3.0, 2.0])
    standards = fit_standards(scores, f32([np.e**-1, 0.0])[0])
    np.testing.assert_allclose(standards[0], [np.e**-1, 0.5, np.sqrt(1.25)], rtol=1e-6)  # of 0, 1, 2, -1
    np.testing.assert_allclose(standards[1], [0.0, 2.0, np.sqrt(0.5)], rtol=1e-6)
    expected = [(-0.5 / 1.25**0.5 - 2**0.5) / 2, 0.25 / 1.25**0.5]
    np.testing.assert_allclose(standard_agg(standards, scores)[:2], expected, rtol=1e-5)
    far = f32([1e30], [-1e30])
    np.testing.assert_allclose(standard_agg(standards, far), np.mean(STANDARD_BOUNDS))
    same = fit_standards(np.ones((1, 5), np.float32), np.zeros(1, np.float32))
    assert standard_agg(same, np.ones((1, 2), np.float32)).tolist() == [0.0, 0.0]


def test_project_by_hand():
    columns = f32([1, 2], [10, 20], [100, 200])
    z = elementary.project(columns, np.array([[2, 0]], np.int32), f32([[1, 0, 2], [3, 1, -1]]))
    np.testing.assert_array_equal(z, [[[103, 206], [1, 2], [199, 398]]])


# Global branch


def test_random_features_by_hand():
    phi = elementary.random_features(f32([[0.0, np.pi]])[None].reshape(1, 1, 2), f32([0.0]).reshape(1, 1), 2.0)
    np.testing.assert_allclose(phi, [[[np.sqrt(2), 0.0]]], atol=1e-6)


def test_support_by_hand():
    phi = f32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(elementary.support(phi, f32([10, 1])), [[13, 24]])


def test_base_bandwidth_is_the_median_with_two_fallbacks():
    typical = _kernels.Distances(median=np.array([2.5, 0.0, 0.0]), mean_positive=np.array([9.0, 4.0, 0.0]))
    np.testing.assert_array_equal(base_bandwidths(typical), [2.5, 4.0, 1.0])


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


def test_pairs_are_never_of_a_row_with_itself():
    for n in (2, 3, 50):
        pairs = draw_pairs(0, n, 5000)
        i, j = pair_places(n, pairs.n_pairs)
        assert np.all(i != j)
        assert set(pairs.rows[i]) == set(pairs.rows[j]) == set(range(n))
        assert len(i) == n * (n // 2)
    assert draw_pairs(0, 50, 70).n_pairs == 70
    assert len(set(draw_pairs(0, 10_000, 10).rows)) == PAIR_ROWS


def test_quasi_monte_carlo_normals_are_normal_in_every_view():
    points = _random.sobol_points(_random.child(0, _random.GLOBAL, _random.POINTS), 10, 3)
    normals = _random.shifted_normals(points, _random.child(0, _random.GLOBAL, _random.SHIFTS).random((4000, 3)))
    np.testing.assert_allclose(normals.mean(axis=0), 0, atol=4 / np.sqrt(4000))
    np.testing.assert_allclose(normals.var(axis=0), 1, atol=4 * np.sqrt(2 / 4000))
    # Evenly spread within a view: the mean of ten points varies less than that of ten independent normals would.
    assert normals.mean(axis=1).var() < 0.5 / 10


def test_branches_draw_views_of_their_own():
    views = [draw_views(0, branch, 3, ViewShape(10, (3,), 5)) for branch in (_random.GLOBAL, _random.LOCAL)]
    assert not np.array_equal(views[0].projection, views[1].projection)


def test_a_support_without_spread_contributes_nothing():
    model = RGLD(n_local_views=0, random_state=0).fit(np.full((50, 3), 4.2)).model_
    assert np.all(model.global_branch.support_std == 0)
    rows = _kernels.Rows(np.random.default_rng(0).normal(size=(9, 3)), model.scaling, 1)
    assert np.all(_kernels.view_scores(rows, model.global_branch) == 0)


def test_root_seed():
    assert _random.root_seed(7) == 7
    assert _random.root_seed(None) != _random.root_seed(None)


# Local branch


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


def test_references_are_at_most_all_rows():
    assert draw_local(0, 3, ViewShape(2, (2,), 2), 7, 400).rows.shape == (3, 7)


# Preprocessing


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return np.column_stack(
        (rng.normal(5, 3, size=400), rng.lognormal(size=400), rng.integers(0, 3, size=400), np.ones(400))
    )


def scaled(kind, X):
    return scaled_columns(fit_scaling((kind,), column_statistics(X, 400 if kind == "quantile" else 0)), X).T


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


def test_column_statistics_by_hand():
    statistics = column_statistics(np.array([[1.0, 2.0, 2.0, 3.0, 12.0]]).T)
    assert statistics.mean[0] == pytest.approx(4.0)
    assert statistics.std[0] == pytest.approx(np.sqrt((9 + 4 + 4 + 1 + 64) / 5))
    assert (statistics.median[0], statistics.iqr[0], statistics.value_range[0]) == (2.0, 1.0, 11.0)
    assert statistics.tail_weight[0] == 10.0
    assert statistics.distinct_share[0] == 0.8
    assert statistics.mode_share[0] == 0.4
    assert statistics.skewness[0] == pytest.approx((-27 - 8 - 8 - 1 + 512) / 5 / statistics.std[0] ** 3)


def test_statistics_do_not_depend_on_how_columns_are_grouped(X, monkeypatch):
    whole = column_statistics(X, 100)
    monkeypatch.setattr("rgld._preprocess.CHUNK_BYTES", 1)
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
        ("distinct_share", (0.09, "robust"), (0.11, "quantile")),
        ("mode_share", (0.49, "quantile"), (0.51, "robust")),
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


# Blocks and thresholds


def test_blocks_keep_to_the_byte_budget():
    for floats_per_row in (10, 1000, 30_000):
        rows = rows_per_block(floats_per_row)
        assert rows * floats_per_row * 4 <= BLOCK_BYTES or rows == SMALLEST_BLOCK
        assert rows <= LARGEST_BLOCK


def test_offset():
    scores = np.arange(100) / 100
    assert (-scores < fit_offset(0.05, scores)).sum() == 5
    assert fit_offset("auto", scores) == -0.95
