"""Our ICL against its description, by plain loops. It needs PyTorch."""

import math

import numpy as np
import pytest

from rgld.bench.detectors.icl import contrast, inside_product, make, outside_product, window_length
from rgld.bench.protocol import measure

torch = pytest.importorskip("torch", reason="the deep detectors need the extra 'deep'")


@pytest.fixture(autouse=True)
def one_thread():
    """The arrays are small: threads wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def on_a_plane(rng, n, plane):
    return rng.normal(size=(n, 2)) @ plane


def plain_losses(rows, weights, length, left_out=()):
    """Return the loss of each row: window by window, with PyTorch's own batch norm and autograd."""
    n_columns = rows.shape[1]
    starts = range(n_columns - length + 1)
    norm = torch.nn.BatchNorm1d(len(starts), affine=False)
    g = torch.stack([rows[:, s : s + length] for s in starts], dim=1)
    f = torch.stack([torch.cat([rows[:, :s], rows[:, s + length :]], dim=1) for s in starts], dim=1)
    for i in range(3):
        g = norm(torch.nn.functional.leaky_relu(g @ weights[i]))
        f = f @ weights[3 + i]
        f = norm(torch.tanh(f) if i == 0 else torch.nn.functional.leaky_relu(f))
    f, g = (x / torch.sqrt((x**2).sum(dim=1, keepdim=True)) for x in (f, g))
    losses = []
    for a, b in zip(f, g, strict=True):
        similar = a @ b.T / 0.01
        kept = [[j for j in starts if j == i or j not in left_out] for i in starts]
        losses.append(sum(torch.logsumexp(similar[i, kept[i]], 0) - similar[i, i] for i in starts) / len(starts))
    return torch.stack(losses)


@pytest.mark.parametrize(("n_columns", "length", "left_out"), [(3, 2, ()), (7, 2, ()), (9, 6, ()), (8, 3, (0, 4))])
def test_losses_and_gradients_are_those_of_plain_loops(n_columns, length, left_out, monkeypatch):
    rows = torch.randn(5, n_columns, generator=torch.Generator().manual_seed(n_columns))
    icl = make(0, epochs=0, kernel_size=length, hidden=(6, 4), n_features=5).fit(rows.numpy())
    if left_out:
        mask = torch.zeros(n_columns - length + 1, n_columns - length + 1)
        mask[:, list(left_out)] = -torch.inf
        monkeypatch.setattr(icl, "_mask", lambda: mask.fill_diagonal_(0.0))
    weights = [w.clone().requires_grad_() for w in icl._g._weights + icl._f._weights]
    plain = plain_losses(rows, weights, length, left_out)
    plain.mean().backward()
    torch.testing.assert_close(icl._learn(rows), plain.detach(), rtol=1e-4, atol=1e-4)
    scale = max(float(w.grad.abs().max()) for w in weights)
    for ours, w in zip(icl._g._gradients + icl._f._gradients, weights, strict=True):
        torch.testing.assert_close(ours, w.grad, rtol=1e-3, atol=1e-4 * scale)


def test_the_loss_by_hand():
    """Two windows, one feature, temperature 1: similarities f_i g_j are 1 2 and 3 6. The losses of the windows are
    log(e + e^2) - 1 and log(e^3 + e^6) - 6."""
    f, g = torch.tensor([[[1.0]], [[3.0]]]), torch.tensor([[[1.0]], [[2.0]]])
    expected = (math.log(math.e + math.e**2) - 1 + math.log(math.e**3 + math.e**6) - 6) / 2
    assert float(contrast(f, g, 1.0, None, slopes=False)[0]) == pytest.approx(expected, rel=1e-5)


def test_the_first_layers_see_the_columns_inside_and_outside_of_a_window():
    rows = torch.tensor([[1.0, 20.0, 300.0, 4000.0]])
    ones = torch.ones(2, 1)
    assert inside_product(rows, ones).flatten().tolist() == [21.0, 320.0, 4300.0]
    assert outside_product(rows, ones).flatten().tolist() == [4300.0, 4001.0, 21.0]
    assert outside_product(rows, torch.tensor([[1.0], [2.0]])).flatten().tolist() == [8300.0, 8001.0, 41.0]


@pytest.mark.parametrize(
    ("n_columns", "length"),
    [(3, 2), (40, 2), (41, 10), (160, 10), (161, 11), (240, 90), (241, 41), (480, 280), (500, 100)],
)
def test_the_length_of_a_window(n_columns, length):
    assert window_length(n_columns) == length


def test_it_finds_rows_whose_columns_do_not_go_together():
    rng = np.random.default_rng(1)
    plane = rng.normal(size=(2, 6))
    train, normal = on_a_plane(rng, 600, plane), on_a_plane(rng, 200, plane)
    anomalous = rng.normal(size=(200, 6)) * normal.std(axis=0)  # the same columns, but not on the plane
    icl = make(0, epochs=15).fit(train)
    scores = np.concatenate([icl.decision_function(normal), icl.decision_function(anomalous)])
    assert measure(np.repeat([0, 1], 200), scores).auroc > 90


def test_scores_are_frozen_repeat_and_do_not_depend_on_the_other_rows():
    X = np.random.default_rng(2).normal(size=(130, 5))
    first, second = (make(3, epochs=2).fit(X) for _ in range(2))
    scores = first.decision_function(X)
    np.testing.assert_array_equal(scores, second.decision_function(X))
    np.testing.assert_allclose(first.decision_function(X[7:9]), scores[7:9], rtol=1e-3)
    np.testing.assert_allclose(scores[:4], FROZEN, rtol=1e-2)


FROZEN = (557.768, 217.579, 169.760, 213.587)
"""The first training: these scores change with the networks, their start, the order of rows or the optimizer."""


def test_three_columns_are_enough_and_two_are_not():
    X = np.random.default_rng(4).normal(size=(65, 3))  # the last batch has one row
    X[:, 2] = 1.0
    assert np.isfinite(make(0, epochs=2).fit(X).decision_function(X)).all()
    with pytest.raises(ValueError, match="at least 3 columns; this table has 2"):
        make(0).fit(X[:, :2])
    with pytest.raises(ValueError, match="kernel_size must be from 1 to 2"):
        make(0, kernel_size=3).fit(X)
