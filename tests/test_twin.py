"""The library equals the slow twin for the same draws."""

import numpy as np
import pytest

from rgld import RGLD, _kernels
from rgld._fit.global_branch import draw_pairs
from rgld._fit.local_branch import draw_local
from rgld._fit.views import ViewShape, view_shape
from rgld._kernels.numpy_kernels import pair_places
from rgld._params import PREPROCESSINGS, check_parameters

from .files.house.cases import FIRST_EDITION
from .reference import paper

TOLERANCE = 1e-4  # scores before ranking: the library computes in float32


def tables(kind, n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 15, d)) * rng.uniform(0.1, 100, size=d) + rng.normal(size=d) * 10
    if kind == "duplicates":
        X[: n // 2] = X[rng.integers(4, size=n // 2)]
    elif kind == "discrete":
        X = rng.integers(0, 4, size=X.shape).astype(float)
    elif kind == "outliers":
        X[n - 3 :: 4] *= 100.0
    elif kind == "log-normal":
        X = rng.lognormal(sigma=8.0, size=X.shape)
    return X[:n], X[n:]


def draws_of(detector, n):
    """Everything the detector drew, as the twin takes it."""
    model, p = detector.model_, detector.get_params()
    shape = view_shape(model.encoding, check_parameters(detector.get_params()), len(model.scaling.kinds))
    global_views = local_views = ()
    if branch := model.global_branch:
        global_views = [
            {"features": f, "projection": r, "frequencies": w, "phases": b}
            for f, r, w, b in zip(
                branch.views.features.tolist(),
                branch.views.projection.astype(float).tolist(),
                branch.frequencies.astype(float).tolist(),
                branch.phases.astype(float).tolist(),
                strict=True,
            )
        ]
    if branch := model.local_branch:
        rows = draw_local(p["random_state"], p["n_local_views"], shape, np.arange(n), p["n_references"]).rows
        local_views = [
            {"features": f, "projection": r, "rows": rows_t}
            for f, r, rows_t in zip(
                branch.views.features.tolist(),
                branch.views.projection.astype(float).tolist(),
                rows.tolist(),
                strict=True,
            )
        ]
    pairs = draw_pairs(p["random_state"], np.arange(n), p["n_bandwidth_pairs"])
    i, j = pair_places(len(pairs.rows), pairs.n_pairs)
    return global_views, local_views, list(zip(pairs.rows[i].tolist(), pairs.rows[j].tolist(), strict=True))


def twin_of(detector, train, new):
    p = detector.get_params()
    draws = draws_of(detector, len(train))
    multipliers, k = p["bandwidth_multipliers"], p["n_neighbors"]
    return paper.algorithm_1(
        train.tolist(),
        new.tolist(),
        detector.model_.scaling.kinds,
        *draws,
        multipliers,
        k,
        p["local_weight"],
        p["aggregation"],
    )


def assert_same_order(actual, expected, tolerance):
    """Rows whose twin scores differ by more than the tolerance come in the same order."""
    expected = np.array(expected)
    apart = expected[:, None] - expected[None, :] > tolerance
    assert np.all((actual[:, None] > actual[None, :])[apart])


CASES = [(kind, p) for kind in ("normal", "duplicates", "discrete", "outliers") for p in PREPROCESSINGS]


@pytest.mark.parametrize(("kind", "preprocessing"), [*CASES, ("log-normal", "quantile")])
@pytest.mark.parametrize(("n", "d", "seed"), [(60, 1, 0), (90, 4, 1), (75, 23, 2)])
def test_library_equals_twin(kind, preprocessing, n, d, seed):
    train, new = tables(kind, n, d, seed)
    detector = RGLD(
        n_global_views=3,
        n_local_views=3,
        n_bandwidth_pairs=200,
        n_references=40,
        n_neighbors=5,
        preprocessing=preprocessing,
        random_state=seed,
    ).fit(train)
    twin = twin_of(detector, train, new)

    model = detector.model_
    for branch, name in ((model.global_branch, "global_views"), (model.local_branch, "local_views")):
        actual = [_kernels.view_scores(_kernels.Rows(X, model.scaling, 1), branch) for X in (train, new)]
        for part in (0, 1):
            expected = [view[part] for view in twin[name]]
            np.testing.assert_allclose(actual[part], expected, rtol=TOLERANCE, atol=TOLERANCE)
        # Ranking adds no rounding of its own: given the library's view scores, the twin's ranks are the library's.
        ranks = paper.rank_agg(
            list(zip(actual[0].astype(float).tolist(), actual[1].astype(float).tolist(), strict=True))
        )
        for X, expected in zip((train, new), ranks, strict=True):
            scores = getattr(detector.branch_scores(X), name.replace("views", "score"))
            np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)

    # On a grid (of integers, of quantiles) many distances tie on paper; rounding splits them in float64 as in float32.
    if kind != "discrete" and preprocessing != "quantile":
        assert_same_order(detector.anomaly_score(train), twin["train"], tolerance=1e-9)
    assert np.median(np.abs(detector.anomaly_score(train) - twin["train"])) < 1e-9


def test_order_is_identical_where_nothing_ties():
    train, new = tables("normal", 80, 5, 3)
    detector = RGLD(n_global_views=4, n_local_views=4, n_references=30, n_bandwidth_pairs=100, random_state=3).fit(
        train
    )
    twin = twin_of(detector, train, new)
    np.testing.assert_allclose(detector.anomaly_score(train), twin["train"], atol=1e-9)
    np.testing.assert_allclose(detector.anomaly_score(new), twin["new"], atol=1e-5)


@pytest.mark.parametrize(
    "ablation",
    [
        {"n_local_views": 0},
        {"n_global_views": 0},
        {"bandwidth_multipliers": (1.0,)},
        {"feature_fraction": 1.0},
        {"local_weight": 0.8},
        {"aggregation": "standard"},
        {"projection": "orthogonal"},
        {"feature_fraction": (1.0, 0.5), "n_global_views": 3},
        {"preprocessing": ("arcsinh-standard", "standard", "robust"), "n_local_views": 4},
        {"preprocessing": ("standard", "arcsinh"), "feature_fraction": (0.3, 1.0), "n_local_views": 5},
    ],
)
def test_ablations_equal_the_twin(ablation):
    train, new = tables("normal", 70, 6, 4)
    parameters = {"n_global_views": 2, "n_local_views": 2, "n_references": 30, "n_bandwidth_pairs": 100, **ablation}
    detector = RGLD(random_state=4, **parameters).fit(train)
    twin = twin_of(detector, train, new)
    np.testing.assert_allclose(detector.anomaly_score(train), twin["train"], atol=1e-9)
    np.testing.assert_allclose(detector.anomaly_score(new), twin["new"], atol=1e-5)


@pytest.mark.parametrize("kind", ["normal", "outliers", "duplicates"])
def test_the_first_edition_of_plus_equals_the_twin(kind):
    train, new = tables(kind, 90, 6, 6)
    settings = {"n_local_views": 9, "n_references": 30, "preprocessing": ("standard", "arcsinh", "arcsinh-standard")}
    detector = RGLD(random_state=6, **{**FIRST_EDITION, **settings}).fit(train)
    twin = twin_of(detector, train, new)
    np.testing.assert_allclose(detector.anomaly_score(train), twin["train"], atol=1e-9)
    np.testing.assert_allclose(detector.anomaly_score(new), twin["new"], atol=1e-5)


def test_references_are_the_projected_rows_that_were_drawn():
    train, _ = tables("normal", 50, 4, 5)
    detector = RGLD(random_state=5, n_references=20, n_local_views=2).fit(train)
    rows = draw_local(5, 2, ViewShape(4, (3,), 5), np.arange(50), 20).rows
    columns = _kernels.Rows(train, detector.model_.scaling, 1).take(rows[1])
    view = detector.model_.local_branch.views
    expected = np.einsum("fc,fr->rc", columns[view.features[1]], view.projection[1])
    np.testing.assert_allclose(detector.model_.local_branch.references[1], expected, rtol=1e-5, atol=1e-6)
    assert all(len(set(rows_t)) == 20 for rows_t in rows.tolist()), "drawn without replacement"
