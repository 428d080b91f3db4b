"""`RGLD.plus()` and `RGLD.novelty()` equal the slow twin for the same draws."""

import numpy as np
import pytest

from rgld import RGLD, _kernels
from rgld._fit import randomness
from rgld._fit.global_branch import draw_pairs
from rgld._fit.inner_rows import N_REFERENCES, N_VIEWS, is_inner
from rgld._fit.local_branch import draw_local
from rgld._fit.sampling import viewed_rows
from rgld._fit.views import view_shape
from rgld._fit.whitening import MAX_COVARIANCE_ROWS
from rgld._kernels.numpy_kernels import pair_places
from rgld._params import Parameters

from .reference import second_edition
from .test_twin import tables

SETTINGS = {"n_local_views": 12, "n_references": 30, "n_random_features": 4, "n_bandwidth_pairs": 300}


def drawn_rows(detector, n):
    """Return the indices of the rows that the views learn from."""
    drawn = viewed_rows(n, Parameters.of(detector), detector.random_state)
    return np.arange(n) if drawn is None else drawn


def twin_of(detector, train, new):
    model, parameters, seed = detector.model_, Parameters.of(detector), detector.random_state
    shape = view_shape(model.encoding, parameters, len(model.scaling.kinds))

    def local(drawn, ridges):
        return [
            {"features": f, "projection": r, "rows": rows, "ridge": ridge}
            for f, r, rows, ridge in zip(
                drawn.views.features.tolist(),
                drawn.views.projection.astype(float).tolist(),
                drawn.rows.tolist(),
                ridges,
                strict=True,
            )
        ]

    def local_views(inner):
        drawn = draw_local(seed, parameters.n_local_views, shape, np.array(inner), parameters.n_references)
        ridges = [shape.ridges[turn % len(shape.ridges)] for turn in shape.turns(parameters.n_local_views)]
        rng = randomness.child(seed, randomness.LOCAL, randomness.WHITENING)
        return local(drawn, ridges), rng.choice(inner, min(MAX_COVARIANCE_ROWS, len(inner)), replace=False)

    def leverage_views(inner):
        branch = model.global_branch
        views = zip(
            branch.views.features.tolist(),
            branch.projection.astype(float).tolist(),
            branch.frequencies.astype(float).tolist(),
            branch.phases.astype(float).tolist(),
            strict=True,
        )
        pairs = draw_pairs(seed, np.array(inner), parameters.n_bandwidth_pairs)
        i, j = pair_places(len(pairs.rows), pairs.n_pairs)
        names = ("features", "projection", "frequencies", "phases")
        return [dict(zip(names, view, strict=True)) for view in views], list(
            zip(pairs.rows[i].tolist(), pairs.rows[j].tolist(), strict=True)
        )

    first_pass = []
    if parameters.trim:
        own = shape._replace(n_features=tuple(dict.fromkeys(shape.n_features)))
        indices = np.arange(len(drawn_rows(detector, len(train))))
        drawn = draw_local(seed, N_VIEWS, own, indices, N_REFERENCES, branch=randomness.FIRST_PASS)
        first_pass = local(drawn, [0.0] * N_VIEWS)
    settings = parameters.n_neighbors, parameters.trim, parameters.ridge, parameters.local_weight
    kinds = model.scaling.kinds
    draws = first_pass, local_views, leverage_views
    which = drawn_rows(detector, len(train)).tolist()
    return second_edition.scores(train.tolist(), which, new.tolist(), kinds, *draws, settings)


def assert_equals_the_twin(detector, train, new):
    """Return what the twin says, and the rows that it drew."""
    twin = twin_of(detector, train, new)
    model, train = detector.model_, train[drawn_rows(detector, len(train))]
    for branch, name in ((model.local_branch, "local_views"), (model.global_branch, "leverage_views")):
        for part, X in enumerate((train, new)):
            actual = _kernels.view_scores(_kernels.Rows(X, model.scaling, 1), branch)
            expected = np.array([view[part] for view in twin[name]])
            np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=2e-4)
    np.testing.assert_allclose(detector.anomaly_score(train), twin["train"], atol=1e-3)
    np.testing.assert_allclose(detector.anomaly_score(new), twin["new"], atol=1e-3)
    return twin, train


@pytest.mark.parametrize("kind", ["normal", "outliers", "duplicates"])
@pytest.mark.parametrize("preset", ["plus", "novelty"])
@pytest.mark.parametrize("d", [1, 6, 23])
def test_presets_equal_the_twin(preset, kind, d):
    train, new = tables(kind, 90, d, 6)
    detector = getattr(RGLD, preset)(random_state=6, **SETTINGS).fit(train)
    assert_equals_the_twin(detector, train, new)


@pytest.mark.parametrize("preset", ["plus", "novelty"])
def test_a_rare_flag(preset):
    """Rows that have it are anomalous: among the inner rows of plus, nobody has it, and all rows scale it."""
    train, new = tables("normal", 90, 6, 6)
    train[:, 2] = np.isin(np.arange(90), [20, 50, 51])
    new[:, 2] = np.arange(len(new)) % 2
    detector = getattr(RGLD, preset)(random_state=6, **SETTINGS).fit(train)
    twin, _ = assert_equals_the_twin(detector, train, new)
    assert train[twin["inner"], 2].any() == (preset == "novelty")


@pytest.mark.parametrize("preset", ["plus", "novelty"])
def test_drawn_rows_and_columns_of_a_wide_table(preset):
    """Views of some columns, learned from some rows: all of the drawn ones, or those that are not trimmed, have 0 in
    one column, which some of the other rows do not."""
    train, new = tables("outliers", 120, 60, 6)
    some = {**SETTINGS, "max_training_rows": 70, "max_features": 16, "relations": False}
    detector = getattr(RGLD, preset)(random_state=6, **some)
    missed = np.setdiff1d(np.arange(120), drawn_rows(detector, 120))
    train[:, 7] = np.isin(np.arange(120), missed[:3])
    new[:, 7] = np.arange(len(new)) % 2
    twin, drawn = assert_equals_the_twin(detector.fit(train), train, new)
    assert len(drawn) == 70 and not drawn[:, 7].any()
    assert len(twin["inner"]) == (42 if preset == "plus" else 70)
    assert detector.model_.local_branch.views.features.shape == (12, 16)


def test_rows_that_tie_with_the_last_inner_row_stay():
    assert is_inner(np.array([3.0, 1.0, 2.0, 2.0, 2.0]), 0.5).tolist() == [False, True, True, True, True]
    assert is_inner(np.array([3.0, 1.0, 2.0, 4.0]), 0.5).tolist() == [False, True, True, False]
    assert is_inner(np.ones(4), 0.9).all()
    assert is_inner(np.array([1.0, 2.0]), 0.9).all()  # two rows are the least
