"""Synthetic tables with labels: the paper's and others.

In: sizes and a seed. Out: X (n, d) and y (1 = anomaly). `GENERATORS` has them by name, for
`rgld bench run --datasets "mixture(n=100000, d=20)"`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from .._arrays import Float64s, Int64s
from ..exceptions import ParameterError

Table = tuple[Float64s, Int64s]


def _labels(n: int, share: float) -> Int64s:
    """Return labels: the last rows, at least one, are anomalies."""
    return (np.arange(n) >= n - max(1, round(share * n))).astype(np.int64)


def sparse_subspace(
    n: int = 2000, d: int = 50, informative: int = 3, shift: float = 6.0, share: float = 0.02, seed: int = 0
) -> Table:
    """Return isotropic Gaussian rows; anomalies are shifted in the first few of many columns."""
    rng = np.random.default_rng(seed)
    y = _labels(n, share)
    X = rng.normal(size=(n, d))
    X[y == 1, :informative] += shift
    return X, y


def mixture(
    n: int = 10_000,
    d: int = 20,
    clusters: int = 5,
    informative: int = 3,
    shift: float = 3.0,
    share: float = 0.02,
    seed: int = 0,
) -> Table:
    """Return a Gaussian mixture for the scaling study; anomalies are rows of a cluster, shifted in a few informative
    columns."""
    rng = np.random.default_rng(seed)
    y = _labels(n, share)
    centers = rng.normal(scale=4.0, size=(clusters, d))
    X = centers[rng.integers(clusters, size=n)] + rng.normal(size=(n, d))
    X[y == 1, : min(informative, d)] += shift * rng.choice([-1.0, 1.0], size=(int(y.sum()), min(informative, d)))
    return X, y


def two_scales(n: int = 1500, share: float = 0.04, seed: int = 0) -> Table:
    """Return a motivating example: nine tight clusters in a loose halo. Half of the anomalies lie in the gaps between
    the clusters, half lie beyond the halo.

    A broad bandwidth blurs the gaps away. With a fine bandwidth, the halo looks as empty as the space beyond it.
    """
    rng = np.random.default_rng(seed)
    y = _labels(n, share)
    centers = 3.0 * (np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 2), axis=-1).reshape(-1, 2))
    X = centers[rng.integers(len(centers), size=n)] + rng.normal(scale=0.3, size=(n, 2))
    halo = rng.random(n) < 0.1
    X[halo] = rng.normal(scale=4.0, size=(int(halo.sum()), 2))
    anomalies = np.flatnonzero(y)
    gaps, beyond = anomalies[::2], anomalies[1::2]
    X[gaps] = 1.5 * rng.choice([-1.0, 1.0], size=(len(gaps), 2)) + rng.normal(scale=0.2, size=(len(gaps), 2))
    angle = rng.uniform(0, 2 * np.pi, size=len(beyond))
    X[beyond] = 13.0 * np.column_stack((np.cos(angle), np.sin(angle)))
    return X, y


def global_against_local(n: int = 1000, share: float = 0.06, seed: int = 0) -> Table:
    """Return a motivating example: a ring of rows. Half of the anomalies form a clump far outside, half lie alone in
    the hole of the ring.

    Rows of the clump have near neighbours, but their region is sparse: the global branch finds them. Rows in the hole
    are in the middle of the table, but have no near neighbour: the local branch finds them.
    """
    rng = np.random.default_rng(seed)
    y = _labels(n, share)
    angle = rng.uniform(0, 2 * np.pi, size=n)
    X = (3.0 + rng.normal(scale=0.2, size=n))[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
    anomalies = np.flatnonzero(y)
    clump, hole = anomalies[::2], anomalies[1::2]
    X[clump] = rng.normal([6.0, 4.5], 0.12, size=(len(clump), 2))
    X[hole] = rng.uniform(-1.2, 1.2, size=(len(hole), 2))
    return X, y


ANOMALY_KINDS = ("local", "global", "cluster", "dependency")


def typed(
    kind: str = "local", n: int = 3000, d: int = 10, clusters: int = 3, share: float = 0.05, seed: int = 0
) -> Table:
    """Return a Gaussian mixture with anomalies of one kind, as in ADBench.

    `local`: spread as their cluster, with five times its variance. `global`: uniform over a little more than the range.
    `cluster`: a clump of their own, far outside. `dependency`: each column is drawn as in ordinary rows, but
    independently of the other columns.
    """
    rng = np.random.default_rng(seed)
    y = _labels(n, share)
    anomalies = y == 1
    n_anomalies = int(anomalies.sum())
    centers = rng.normal(scale=3.0, size=(clusters, d))
    shapes = rng.normal(size=(clusters, d, d)) / np.sqrt(d)
    cluster = rng.integers(clusters, size=n)
    spread = np.einsum("nd,nde->ne", rng.normal(size=(n, d)), shapes[cluster])
    X = centers[cluster] + spread
    normal = X[~anomalies]
    if kind == "local":
        X[anomalies] += (np.sqrt(5.0) - 1.0) * spread[anomalies]
    elif kind == "global":
        low, high = normal.min(axis=0), normal.max(axis=0)
        margin = 0.05 * (high - low)
        X[anomalies] = rng.uniform(low - margin, high + margin, size=(n_anomalies, d))
    elif kind == "cluster":
        X[anomalies] += 2.0 * centers[cluster[anomalies][0]]
    elif kind == "dependency":
        X[anomalies] = np.column_stack([rng.choice(column, n_anomalies) for column in normal.T])
    else:
        raise ParameterError(f"Expected a kind of anomalies among {ANOMALY_KINDS}, got {kind!r}.")
    return X, y


GENERATORS: dict[str, Callable[..., Any]] = {
    "sparse_subspace": sparse_subspace,
    "mixture": mixture,
    "two_scales": two_scales,
    "global_against_local": global_against_local,
    "typed": typed,
}
