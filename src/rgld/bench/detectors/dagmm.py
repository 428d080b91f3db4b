"""DAGMM, the deep autoencoding Gaussian mixture model (Zong et al., ICLR 2018), trained end to end.

An autoencoder compresses a row. A Gaussian mixture models the code and the reconstruction errors; a second network
gives the memberships. The score is the row's energy, its negative log-likelihood under the mixture. The version in a
well-known benchmark detaches its loss and is never trained; this one is.
"""

from typing import Any

import numpy as np

NAME = "DAGMM"
GROUP = "deep"
NEEDS = {"torch": "pip install 'rgld[deep]' (or a CPU build of torch)"}


class _DAGMM:
    def __init__(
        self,
        seed: int,
        epochs: int = 100,
        batch_size: int = 256,
        lr: float = 1e-3,
        hidden: int = 60,
        code: int = 1,
        components: int = 4,
        energy_weight: float = 0.1,
        covariance_weight: float = 0.005,
    ) -> None:
        self._seed, self._epochs, self._batch_size, self._lr = seed, epochs, batch_size, lr
        self._hidden, self._code, self._components = hidden, code, components
        self._energy_weight, self._covariance_weight = energy_weight, covariance_weight

    def fit(self, X: Any) -> "_DAGMM":
        import torch
        from torch import nn

        torch.manual_seed(self._seed)
        d, h, c = X.shape[1], self._hidden, self._code
        self._encoder = nn.Sequential(nn.Linear(d, h), nn.Tanh(), nn.Linear(h, h // 2), nn.Tanh(), nn.Linear(h // 2, c))
        self._decoder = nn.Sequential(nn.Linear(c, h // 2), nn.Tanh(), nn.Linear(h // 2, h), nn.Tanh(), nn.Linear(h, d))
        self._membership = nn.Sequential(
            nn.Linear(c + 2, 10), nn.Tanh(), nn.Dropout(0.5), nn.Linear(10, self._components), nn.Softmax(dim=1)
        )
        networks = nn.ModuleList([self._encoder, self._decoder, self._membership])
        optimizer = torch.optim.Adam(networks.parameters(), lr=self._lr)
        rows = torch.as_tensor(np.asarray(X, dtype=np.float32))
        networks.train()
        for _ in range(self._epochs):
            for batch in torch.randperm(len(rows)).split(self._batch_size):
                x = rows[batch]
                z, error = self._latent(x)
                mixture = self._mixture(z)
                loss = error.mean() + self._energy_weight * self._energy(z, *mixture).mean()
                loss = loss + self._covariance_weight * (1.0 / mixture[2].diagonal(dim1=1, dim2=2)).sum()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(networks.parameters(), 5.0)
                optimizer.step()
        networks.eval()
        with torch.no_grad():
            self._fitted = self._mixture(self._latent(rows)[0])
        return self

    def _latent(self, x: Any) -> tuple[Any, Any]:
        """Return the code joined with two reconstruction errors (relative Euclidean, cosine), and the squared error."""
        import torch

        code = self._encoder(x)
        rebuilt = self._decoder(code)
        relative = (x - rebuilt).norm(dim=1) / x.norm(dim=1).clamp_min(1e-6)
        cosine = torch.nn.functional.cosine_similarity(x, rebuilt, dim=1, eps=1e-6)
        return torch.cat([code, relative[:, None], cosine[:, None]], dim=1), ((x - rebuilt) ** 2).sum(dim=1)

    def _mixture(self, z: Any) -> tuple[Any, Any, Any]:
        """Return weights, means and covariances of the mixture, given by the memberships."""
        import torch

        gamma = self._membership(z)
        mass = gamma.sum(dim=0).clamp_min(1e-6)
        means = gamma.T @ z / mass[:, None]
        centred = z[:, None, :] - means[None]
        covariances = torch.einsum("nk,nki,nkj->kij", gamma, centred, centred) / mass[:, None, None]
        return mass / len(z), means, covariances + 1e-4 * torch.eye(z.shape[1])

    @staticmethod
    def _energy(z: Any, weights: Any, means: Any, covariances: Any) -> Any:
        import torch

        normal = torch.distributions.MultivariateNormal(means, covariances, validate_args=False)
        return -torch.logsumexp(weights.log() + normal.log_prob(z[:, None, :]), dim=1)

    def decision_function(self, X: Any) -> Any:
        import torch

        with torch.no_grad():
            z, _ = self._latent(torch.as_tensor(np.asarray(X, dtype=np.float32)))
            return self._energy(z, *self._fitted).numpy()


def make(seed: int, **settings: Any) -> Any:
    """Return DAGMM."""
    return _DAGMM(seed, **settings)
