"""GOAD, classification-based anomaly detection for general data (Bergman and Hoshen, ICLR 2020); our own code.

A row x is transformed M times by fixed random affine maps, T(x, m) = W_m x + b_m. One network f, the same for all
transformations, learns to tell them apart: the features f(T(x, m)) of the training rows gather around a centre c_m
(triplet-centre loss), and a linear head names m (cross entropy, which steadies the training). With

    P(m | T(x, m)) = exp(-|f(T(x, m)) - c_m|^2) / sum over m' of exp(-|f(T(x, m)) - c_m'|^2),

the score of a row is the mean over m of -log P: it is high if its transformed versions are taken for one another.
The authors change the settings from table to table: 64 or 256 transformations, 8 to 128 hidden nodes, 1 to 25 epochs.
Here every table has the same: 64 transformations to 32 dimensions, 32 hidden nodes with leaky ReLU, 500 steps; margin 1
and Adam as theirs. Squared distances come from one matrix product: the array of all differences, with 256
transformations, takes about a second for each step.
"""

from typing import Any

import numpy as np

NAME = "GOAD"
GROUP = "deep"
NEEDS = {"torch": "pip install 'rgld[deep]' (or a CPU build of torch)"}
SCORED_ROWS = 256
"""Rows that are scored at a time: each takes M * M distances."""


class _GOAD:
    def __init__(
        self,
        seed: int,
        n_transformations: int = 64,
        dimensions: int = 32,
        n_features: int = 32,
        steps: int = 500,
        batch_size: int = 64,
        lr: float = 1e-3,
        margin: float = 1.0,
        center_weight: float = 0.1,
    ) -> None:
        self._seed, self._n_transformations, self._dimensions = seed, n_transformations, dimensions
        self._n_features, self._steps, self._batch_size, self._lr = n_features, steps, batch_size, lr
        self._margin, self._center_weight = margin, center_weight

    def fit(self, X: Any) -> "_GOAD":
        import torch
        from torch import nn

        torch.manual_seed(self._seed)
        X = np.asarray(X, dtype=np.float64)
        self._mean, deviation = X.mean(axis=0), X.std(axis=0)
        self._deviation = np.where(deviation > 0, deviation, 1.0)
        rows = self._standardized(X)
        M = self._n_transformations
        self._matrices = torch.randn(rows.shape[1], M * self._dimensions)
        self._offsets = torch.randn(M * self._dimensions)
        hidden = self._n_features
        self._network = nn.Sequential(
            nn.Linear(self._dimensions, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, self._n_features)
        )
        head = nn.Sequential(nn.LeakyReLU(0.2), nn.Linear(self._n_features, M))
        parameters = [*self._network.parameters(), *head.parameters()]
        optimizer = torch.optim.Adam(parameters, lr=self._lr, betas=(0.5, 0.999))
        target = torch.arange(M).repeat(self._batch_size)
        for _ in range(self._steps):
            features = self._features(rows[torch.randint(len(rows), (self._batch_size,))])
            loss = nn.functional.cross_entropy(head(features).reshape(-1, M), target)
            loss = loss + self._center_weight * center_loss(features, self._margin)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            sums = [self._features(part).sum(dim=0) for part in rows.split(SCORED_ROWS)]
            self._centers = torch.stack(sums).sum(dim=0) / len(rows)
        return self

    def _standardized(self, X: Any) -> Any:
        import torch

        return torch.as_tensor(((np.asarray(X) - self._mean) / self._deviation).astype(np.float32))

    def _features(self, rows: Any) -> Any:
        """Return the features of all transformed rows, (rows, M, features)."""
        transformed = (rows @ self._matrices + self._offsets).reshape(len(rows), -1, self._dimensions)
        return self._network(transformed)

    def decision_function(self, X: Any) -> Any:
        import torch

        scores = []
        with torch.no_grad():
            for part in self._standardized(X).split(SCORED_ROWS):
                log_p = torch.log_softmax(-squared_distances(self._features(part), self._centers), dim=2)
                scores.append(-log_p.diagonal(dim1=1, dim2=2).mean(dim=1))
        return torch.cat(scores).numpy().astype(np.float64)


def squared_distances(features: Any, centers: Any) -> Any:
    """Return the squared distances of features (n, M, f) to centres (M, f), shape (n, M, M)."""
    product = features @ centers.T
    squares = (features**2).sum(dim=2)[:, :, None] + (centers**2).sum(dim=1)
    return (squares - 2.0 * product).clamp_min(0.0)


def center_loss(features: Any, margin: float) -> Any:
    """Return the triplet-centre loss of a batch: a row's own centre must be nearer than any other, by a margin. The
    centres are the means of the batch."""
    distances = squared_distances(features, features.mean(dim=0))
    own = distances.diagonal(dim1=1, dim2=2)
    nearest_other = distances.diagonal_scatter(own.new_full(own.shape, float("inf")), dim1=1, dim2=2).amin(dim=2)
    return (own + margin - nearest_other).clamp_min(0.0).mean()


def make(seed: int, **settings: Any) -> Any:
    """Return GOAD."""
    return _GOAD(seed, **settings)
