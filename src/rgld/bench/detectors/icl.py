"""ICL, internal contrastive learning (Shenkar and Wolf, ICLR 2022); our own code.

A row of d columns has d - k + 1 windows of k neighbouring columns. Two networks encode a window i: g what is inside and
f what is outside of it, by 128 numbers each, divided by their norm over the windows. They learn which inside belongs to
which outside: with the similarities s_ij = f_i . g_j / temperature, the score of a row, and the loss of training, is

    mean over i of  log(sum over j of exp(s_ij)) - s_ii,

high if the columns do not go together as in the training rows. Of more than `max_negatives` windows, a random choice
(and i) is summed. Networks and settings are those of DeepOD 0.4.1, and the same weights give the same losses, gradients
and scores; also there, the norm is over the windows and not over the 128 numbers. What differs:

- DeepOD trains one to nine pairs of networks in this study, and scores with the last. Here it is one.
- Derivatives are written out, arrays are windows-first (windows, rows, features), and no copies of the rows are made:
  what is outside of window s differs in one column from what is outside of window s - 1, so that the first layer of f
  is a running sum over the windows. The similarities of a few rows at a time stay in the cache.
"""

from itertools import pairwise
from typing import Any

import numpy as np

NAME = "ICL"
GROUP = "deep"
NEEDS = {"torch": "pip install 'rgld[deep]' (or a CPU build of torch)"}
SCORED_ROWS = 64
BLOCK = 2**18
"""Numbers of a temporary array: 1 MB."""
SLOPE, EPS, MOMENTUM = 0.01, 1e-5, 0.1
"""Of leaky ReLU and batch norm, as in PyTorch."""


class _ICL:
    def __init__(
        self,
        seed: int,
        epochs: int = 100,
        batch_size: int = 64,
        lr: float = 1e-3,
        n_features: int = 128,
        hidden: tuple[int, int] = (100, 50),
        kernel_size: int | None = None,
        temperature: float = 0.01,
        max_negatives: int = 1000,
    ) -> None:
        self._seed, self._epochs, self._batch_size, self._lr = seed, epochs, batch_size, lr
        self._n_features, self._hidden, self._kernel_size = n_features, hidden, kernel_size
        self._temperature, self._max_negatives = temperature, max_negatives

    def fit(self, X: Any) -> "_ICL":
        import torch

        torch.manual_seed(self._seed)
        rows: Any = torch.as_tensor(np.asarray(X, dtype=np.float32))
        n_columns = rows.shape[1]
        if n_columns < 3:
            raise ValueError(f"ICL needs at least 3 columns; this table has {n_columns}")
        length = window_length(n_columns) if self._kernel_size is None else self._kernel_size
        if not 1 <= length < n_columns:
            raise ValueError(f"kernel_size must be from 1 to {n_columns - 1} for {n_columns} columns, not {length}")
        self._n_windows = n_columns - length + 1
        half = [h // 2 for h in self._hidden]
        inside = [*pairwise((length, *half, self._n_features))]
        outside = [*pairwise((n_columns - length, *self._hidden, self._n_features))]
        start = [torch.nn.Linear(a, b, bias=False).weight.detach().T.flatten() for a, b in inside + outside]
        flat: Any = torch.cat(start)  # one tensor: each call of the optimizer costs more than its arithmetic
        flat.grad = torch.zeros_like(flat)
        parts = [t.split([len(w) for w in start]) for t in (flat, flat.grad)]
        weights, gradients = ([w.view(s) for w, s in zip(p, inside + outside, strict=True)] for p in parts)
        self._g = Network(True, weights[: len(inside)], gradients[: len(inside)], self._n_windows)
        self._f = Network(False, weights[len(inside) :], gradients[len(inside) :], self._n_windows)
        optimizer = torch.optim.Adam([flat], lr=self._lr, weight_decay=1e-5)
        torch.set_flush_denormal(True)  # late in the training most steps would meet some: a third of the time
        try:
            for _ in range(self._epochs):
                for batch in rows[torch.randperm(len(rows))].split(self._batch_size):
                    self._learn(batch)
                    optimizer.step()
        finally:
            torch.set_flush_denormal(False)
        return self

    def _learn(self, rows: Any) -> Any:
        """Write the gradients of the mean loss of the rows; return their losses."""
        f, g = self._f.training(rows), self._g.training(rows)
        losses, slope_f, slope_g = contrast(f, g, self._temperature, self._mask(), slopes=True)
        self._f.learn(slope_f)
        self._g.learn(slope_g)
        return losses

    def _mask(self) -> Any:
        """Return what is added to the similarities: -inf for windows that are left out; None if there are none."""
        import torch

        n = self._n_windows
        if n <= self._max_negatives:
            return None
        mask = torch.full((n, n), -torch.inf)
        mask[:, torch.randperm(n)[: self._max_negatives]] = 0.0
        return mask.fill_diagonal_(0.0)

    def decision_function(self, X: Any) -> Any:
        import torch

        torch.manual_seed(self._seed)
        rows: Any = torch.as_tensor(np.asarray(X, dtype=np.float32))
        scores = []
        for part in rows.split(SCORED_ROWS):
            f, g = self._f.scoring(part), self._g.scoring(part)
            scores.append(contrast(f, g, self._temperature, self._mask(), slopes=False)[0])
        return torch.cat(scores).numpy().astype(np.float64)


def window_length(n_columns: int) -> int:
    """Return the number of columns of a window: 2 or 10; in wide tables as many as leave 151, 201 or 401 windows."""
    if n_columns <= 40:
        return 2
    if n_columns <= 160:
        return 10
    if n_columns <= 240:
        return n_columns - 150
    return n_columns - (200 if n_columns <= 480 else 400)


class Network:
    """f or g: layers of a product, an activation (leaky ReLU; tanh in the first layer of f) and a batch norm with one
    mean and one variance for each window."""

    def __init__(self, inside: bool, weights: list[Any], gradients: list[Any], n_windows: int) -> None:
        self._inside, self._weights, self._gradients = inside, weights, gradients
        self._means = weights[0].new_zeros(len(weights), n_windows, 1)
        self._variances = weights[0].new_ones(len(weights), n_windows, 1)

    def _layer(self, x: Any, i: int) -> Any:
        """Return layer i, after its activation, for the rows or for the layer before."""
        import torch

        weight = self._weights[i]
        if i == 0:
            product = inside_product(x, weight) if self._inside else outside_product(x, weight)
        else:
            product = x.view(-1, len(weight)) @ weight
        product = product.view(self._means.shape[1], -1)
        return product.tanh_() if self._tanh(i) else torch.nn.functional.leaky_relu_(product, SLOPE)

    def _tanh(self, i: int) -> bool:
        return i == 0 and not self._inside

    def scoring(self, rows: Any) -> Any:
        """Return the features (windows, rows, features), by the means and variances of the training."""
        x = rows
        for i in range(len(self._weights)):
            x = (self._layer(x, i) - self._means[i]) * (self._variances[i] + EPS).rsqrt()
        return (x * _inverse_norm(x)).view(len(x), len(rows), -1)

    def training(self, rows: Any) -> Any:
        """Return the features, by the means and variances of these rows, and keep what `learn` needs."""
        import torch

        x, self._rows, self._kept = rows, rows, []
        for i in range(len(self._weights)):
            active = self._layer(x, i)
            n = active.shape[1]
            x, mean, scale = torch.native_layer_norm(active, (n,), None, None, EPS)
            self._kept.append((active, mean, scale, x))
            self._means[i].lerp_(mean, MOMENTUM)
            self._variances[i].lerp_((scale**-2 - EPS) * (n / (n - 1)), MOMENTUM)
        self._norm = _inverse_norm(x)
        self._unit = x * self._norm
        return self._unit.view(len(x), len(rows), -1)

    def learn(self, slope: Any) -> None:
        """Write the gradients of the weights, given those of the features."""
        import torch

        slope = slope.view(self._unit.shape)
        along = (slope * self._unit).sum(dim=0)
        slope = torch.addcmul(slope, self._unit, along, value=-1.0).mul_(self._norm)
        for i in reversed(range(len(self._weights))):
            weight, gradient = self._weights[i], self._gradients[i]
            active, mean, scale, _ = self._kept[i]
            slope, _, _ = torch.ops.aten.native_layer_norm_backward(
                slope, active, active.shape[1:], mean, scale, None, None, [True, False, False]
            )
            if self._tanh(i):
                slope = torch.ops.aten.tanh_backward(slope, active)
            else:
                slope = torch.ops.aten.leaky_relu_backward(slope, active, SLOPE, True)
            if i == 0:
                by_window = slope.view(len(slope), len(self._rows), -1)
                (inside_gradient if self._inside else outside_gradient)(self._rows, by_window, gradient)
            else:
                slope = slope.view(-1, weight.shape[1])
                torch.mm(self._kept[i - 1][3].view(-1, len(weight)).T, slope, out=gradient)
                slope = (slope @ weight.T).view(len(active), -1)


def _inverse_norm(x: Any) -> Any:
    """Return 1 / the norm over the windows."""
    return (x * x).sum(dim=0).clamp_min_(1e-24).rsqrt_()


def inside_product(rows: Any, weight: Any) -> Any:
    """Return the product of the columns inside of each window with the weights, (windows, rows, features)."""
    import torch

    views = rows.unfold(1, len(weight), 1).transpose(0, 1)
    return torch.bmm(views, weight.expand(len(views), *weight.shape))


def inside_gradient(rows: Any, slope: Any, out: Any) -> None:
    """Write the gradient of the weights of `inside_product`."""
    out.zero_()
    step = max(1, BLOCK // (len(rows) * len(out)))
    views = rows.unfold(1, len(out), 1).transpose(0, 1)
    for part, upper in zip(views.split(step), slope.split(step), strict=True):
        out.addmm_(part.reshape(-1, len(out)).T, upper.view(-1, upper.shape[2]))


def outside_product(rows: Any, weight: Any) -> Any:
    """Return the product of the columns outside of each window with the weights, (windows, rows, features)."""
    import torch

    n_outside = len(weight)
    out = rows.new_empty(n_outside + 1, len(rows), weight.shape[1])
    torch.mm(rows[:, -n_outside:], weight, out=out[0])
    changes = (rows[:, :n_outside] - rows[:, -n_outside:]).T.unsqueeze(2)
    for (before, after), change, w in zip(pairwise(out.unbind()), changes.unbind(), weight.unbind(), strict=True):
        torch.addcmul(before, change, w, out=after)
    return out


def outside_gradient(rows: Any, slope: Any, out: Any) -> None:
    """Write the gradient of the weights of `outside_product`. It uses up the slope."""
    import torch

    n_outside = len(out)
    for after, before in pairwise(slope.unbind()[::-1]):
        before.add_(after)
    changes = (rows[:, :n_outside] - rows[:, -n_outside:]).T.unsqueeze(1)
    torch.bmm(changes, slope[1:], out=out.unsqueeze(1))
    out.addmm_(rows[:, -n_outside:].T, slope[0])


def contrast(f: Any, g: Any, temperature: float, mask: Any, slopes: bool) -> tuple[Any, ...]:
    """Return the loss of each row and, if asked for, the gradients of the mean loss for f and for g."""
    import torch

    n_windows, n_rows, _ = f.shape
    losses = f.new_empty(n_rows)
    slope_f, slope_g = (torch.empty_like(f), torch.empty_like(g)) if slopes else (f, g)
    nothing, beta = f.new_zeros(1, 1, 1), 0.0 if mask is None else 1.0
    step = max(1, BLOCK // n_windows**2)
    for first in range(0, n_rows, step):
        own = slice(first, first + step)
        a, b = f[:, own].transpose(0, 1), g[:, own].transpose(0, 1)
        similarities = torch.baddbmm(
            nothing if mask is None else mask, a, b.transpose(1, 2), beta=beta, alpha=1.0 / temperature
        )
        log_p = torch.log_softmax(similarities, dim=2)
        torch.mean(log_p.diagonal(dim1=1, dim2=2), dim=1, out=losses[own])
        if slopes:
            slope = log_p.exp_()
            slope.diagonal(dim1=1, dim2=2).sub_(1.0)
            scale = 1.0 / (temperature * n_rows * n_windows)
            slope_f[:, own] = torch.baddbmm(nothing, slope, b, beta=0.0, alpha=scale).transpose(0, 1)
            slope_g[:, own] = torch.baddbmm(nothing, slope.transpose(1, 2), a, beta=0.0, alpha=scale).transpose(0, 1)
    return losses.neg_(), slope_f, slope_g


def make(seed: int, **settings: Any) -> Any:
    """Return ICL."""
    return _ICL(seed, **settings)
