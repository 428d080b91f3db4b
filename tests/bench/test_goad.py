"""Our GOAD against its description. It needs PyTorch."""

import numpy as np
import pytest

from rgld.bench.detectors.goad import center_loss, make, squared_distances
from rgld.bench.protocol import measure

torch = pytest.importorskip("torch", reason="the deep detectors need the extra 'deep'")


def test_distances_by_a_matrix_product_are_those_by_differences():
    generator = torch.Generator().manual_seed(0)
    features, centers = torch.randn(5, 7, 3, generator=generator), torch.randn(7, 3, generator=generator)
    plain = ((features[:, :, None] - centers) ** 2).sum(dim=3)
    torch.testing.assert_close(squared_distances(features, centers), plain)


def test_the_triplet_centre_loss_by_hand():
    """Two transformations with one feature. Centres 0 and 3; the distances of the rows (1, 3) and (-1, 3): own 1 and 0,
    other 4 or 16, and 9. Only one of the four is not nearer by 4: max(0, 1 + 4 - 4) = 1."""
    features = torch.tensor([[[1.0], [3.0]], [[-1.0], [3.0]]])
    assert float(center_loss(features, 4.0)) == pytest.approx(1 / 4)
    assert float(center_loss(features, 1.0)) == 0.0


def test_the_score_is_the_mean_negative_log_probability_of_the_right_transformation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    goad = make(0, n_transformations=6, dimensions=5, n_features=3, steps=3).fit(X)
    rows = torch.as_tensor(((X[:10] - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32))
    expected = np.zeros(10)
    with torch.no_grad():
        for m in range(6):
            own = slice(5 * m, 5 * m + 5)
            z = goad._network(rows @ goad._matrices[:, own] + goad._offsets[own])
            distances = torch.stack([((z - c) ** 2).sum(dim=1) for c in goad._centers], dim=1).double().numpy()
            expected += -np.log(np.exp(-distances[:, m]) / np.exp(-distances).sum(axis=1)) / 6
    np.testing.assert_allclose(goad.decision_function(X[:10]), expected, rtol=1e-4)


def test_training_lowers_the_score_of_normal_rows_and_finds_anomalies():
    rng = np.random.default_rng(1)
    plane = rng.normal(size=(2, 6))
    train, normal = rng.normal(size=(600, 2)) @ plane, rng.normal(size=(200, 2)) @ plane
    anomalous = rng.normal(size=(200, 6)) * (normal.std(axis=0))  # the same columns, but not on the plane
    little, more = (make(0, n_transformations=16, steps=steps).fit(train) for steps in (1, 200))
    assert more.decision_function(normal).mean() < little.decision_function(normal).mean()
    scores = np.concatenate([more.decision_function(normal), more.decision_function(anomalous)])
    assert measure(np.repeat([0, 1], 200), scores).auroc > 90


def test_one_seed_gives_one_score_and_constant_columns_are_allowed():
    X = np.column_stack([np.random.default_rng(2).normal(size=(100, 2)), np.ones(100)])
    first, second = (make(3, n_transformations=8, steps=5).fit(X).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.isfinite(first).all()
