"""Explanations: which columns made a row stand out, and how.

In: a model and encoded rows. Out: for each row the contribution of each column of the table, and how far its nearest
references are. The formula, with e_t(x) the evidence of view t and share_tj(x) the part of column j in it:

    contribution_j(x) = mean over views t of e_t(x) * share_tj(x)

- e_t is how far out the view finds the row: its standardized score if that is above 0 (`aggregation="standard"`),
  2 rank - 1 if its rank is above one half ("rank").
- In a local view, share_tj is column j's part in the mean squared distance, before the projection, to the view's k
  nearest references: mean over them of (x_j - ref_j)^2, divided by the sum over the view's columns.
- In a global view, share_tj is column j's part in the squared distance to the middle of the scaled columns.

Shares of a view sum to 1, so the contributions of a row sum to its mean evidence, and none is negative. Branches are
weighted as in the score. Encoded columns count with their weight and are added up to the columns of the table.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from . import _kernels, _words
from ._cells import RawColumn
from ._model import GlobalBranch, LocalBranch, Model
from ._ranks import STANDARD_BOUNDS, BranchRanks, normalized_rank

Floats = NDArray[np.float64]

BLOCK_NUMBERS = 2**20
"""Numbers per block of rows in the largest array."""
MATCH = 1e-12
"""Squared distances below this part of the references' spread are the row itself."""


LEAST_SHARE = 0.05
"""Columns with a smaller part in a row's contributions are no reason."""
HIGH = 0.95
"""A branch score above this stands out."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why rows stand out; made by `RGLD.explain`."""

    columns: tuple[str, ...]
    """Names of the table's columns, d of them."""
    contributions: Floats
    """Shape (n, d), never negative: what each column adds to the evidence, see the module's formula and
    docs/explanations.md. A row's sum is its mean evidence over all views."""
    anomaly_score: Floats
    """Shape (n,), as are the next three."""
    global_score: Floats | None
    """None for a detector without a global branch."""
    local_score: Floats | None
    distance_ratio: Floats | None
    """Distance to the nearest references, in distances typical of training rows."""
    _model: Model
    _table: list[RawColumn] | NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.contributions)

    def top(self, n_columns: int = 3) -> NDArray[np.intp]:
        """Return the numbers of the columns that contribute most to each row, largest first, shape (n, n_columns)."""
        return np.argsort(-self.contributions, axis=1, kind="stable")[:, :n_columns]

    def shares(self) -> Floats:
        """Return the contributions of each row divided by their sum, shape (n, d)."""
        return _shares(self.contributions.T).T

    def reasons(self, row: int, n_columns: int = 3) -> list[str]:
        """Return what is unusual about a row, column by column, the most important first."""
        row = range(len(self))[row]
        model = self._model
        (values,) = _words.values_of(model.encoding, self._table, np.array([row]))
        shares = _shares(self.contributions[[row]].T)[:, 0]
        order = np.argsort(-shares, kind="stable")[:n_columns]
        chosen = [j for place, j in enumerate(order) if place == 0 or shares[j] >= LEAST_SHARE]
        return [_words.reason(model.encoding, int(j), values[j], model.sample.rows) for j in chosen]

    def kind(self, row: int) -> str:
        """Return how a row stands out: in a broadly thin region, away from its nearest rows, both, or not clearly."""
        broad = self.global_score is not None and self.global_score[row] > HIGH
        apart = self.local_score is not None and self.local_score[row] > HIGH
        words = {(True, True): "broadly rare and locally isolated", (True, False): "broadly rare"}
        found = words.get((broad, apart), "locally isolated" if apart else "not clearly unusual")
        if self.distance_ratio is None:
            return found
        return f"{found}; {_words.isolation(float(self.distance_ratio[row]))}"


class Contributions(NamedTuple):
    """What is known about why rows stand out."""

    by_column: Floats
    """Shape (n, d)."""
    distance_ratio: Floats | None
    """How far the nearest references are, in typical distances of the training rows, shape (n,); None without a local
    branch. A geometric mean over views."""


def contributions(model: Model, matrix: NDArray[np.floating], n_threads: int) -> Contributions:
    """Return the contributions of all columns of the table, in blocks of rows."""
    widest = max(model.scaling.center.size, model.sample.places.shape[-1], 1)
    step = max(64, BLOCK_NUMBERS // widest)
    blocks = [matrix[start : start + step] for start in range(0, len(matrix), step)]
    references = _scaled(model, model.sample.rows)
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
        parts = list(pool.map(lambda block: _of_block(model, block, references), blocks))
    by_column = np.concatenate([part.by_column for part in parts])
    if model.local_branch is None:
        return Contributions(by_column, None)
    return Contributions(by_column, np.concatenate([np.asarray(part.distance_ratio) for part in parts]))


def _scaled(model: Model, rows: NDArray[np.floating]) -> Floats:
    """Return scaled columns, shape (S * e, b)."""
    scaled = _kernels.Rows(rows, model.scaling, 1)
    return scaled.take(np.arange(len(rows))).astype(np.float64)


def _of_block(model: Model, block: NDArray[np.floating], references: Floats) -> Contributions:
    scaled = _scaled(model, block)
    weights = np.tile(model.encoding.weights, len(model.scaling.kinds))[:, None]
    if model.local_branch is None or model.local_ranks is None:
        total, ratio = _global_part(model, block, scaled, weights), None
    else:
        total, ratio = _local_part(
            model.local_branch, model.local_ranks, model.sample.places, scaled, weights, references
        )
        if model.global_branch is not None:
            w = model.local_weight
            total = w * total + (1.0 - w) * _global_part(model, block, scaled, weights)
    owner = np.tile(model.encoding.owner, len(model.scaling.kinds))
    by_column = np.zeros((len(model.encoding.columns), len(block)))
    np.add.at(by_column, owner, total)
    return Contributions(by_column.T, ratio)


def _views(branch: GlobalBranch | LocalBranch, n_views: int) -> Iterator[tuple[int, NDArray[np.int32], Floats]]:
    """Yield each view's number, features and projection, without the padding of narrow views."""
    for t in range(n_views):
        projection = branch.views.projection[t]
        used = projection.any(axis=1)
        yield t, branch.views.features[t][used], projection[used].astype(np.float64)


def _global_part(model: Model, block: NDArray[np.floating], scaled: Floats, weights: Floats) -> Floats:
    """Return the contributions of scaled columns in the global branch, shape (S * e, b)."""
    branch, ranks = model.global_branch, model.global_ranks
    assert branch is not None and ranks is not None, "a model has a branch"
    scores = _kernels.view_scores(_kernels.Rows(block, model.scaling, 1), branch)
    total = np.zeros(scaled.shape)
    for t, features, _ in _views(branch, len(scores)):
        squares = np.square(scaled[features] * weights[features])
        total[features] += _evidence(ranks, t, scores[t]) * _shares(squares)
    return total / len(scores)


def _local_part(
    branch: LocalBranch,
    ranks: BranchRanks,
    places: NDArray[np.int32],
    scaled: Floats,
    weights: Floats,
    references: Floats,
) -> tuple[Floats, Floats]:
    """Return the contributions of scaled columns in the local branch, shape (S * e, b), and the ratio of distances."""
    total = np.zeros(scaled.shape)
    logarithms = np.zeros(scaled.shape[1])
    for t, features, projection in _views(branch, len(places)):
        near = references[np.ix_(features, places[t])]
        middle = near.mean(axis=1, keepdims=True)
        rows, near = scaled[features] - middle, near - middle
        nearest, distance = _nearest(projection.T @ rows, projection.T @ near, branch.n_neighbors)
        # The mean of (x - ref)^2 over the nearest references, from their mean and their mean square.
        squares = rows**2 - 2.0 * rows * (near @ nearest) + near**2 @ nearest
        evidence = _evidence(ranks, t, distance.astype(np.float32))
        total[features] += evidence * _shares(weights[features] ** 2 * squares.clip(0.0))
        logarithms += np.log(np.maximum(distance, _typical(ranks, t) * 1e-9) / _typical(ranks, t))
    return total / len(places), np.exp(logarithms / len(places))


def _nearest(rows: Floats, references: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the weights 1/k of each row's k nearest references, shape (C, b), and the root mean squared distance.

    One exact match is left out, as in the score. References at the same distance as the k-th share its place.
    """
    squared = np.square(rows).sum(0) - 2.0 * references.T @ rows + np.square(references).sum(0)[:, None]
    spread = max(float(np.square(references).sum(0).mean()), np.finfo(np.float64).tiny)
    first = squared.argmin(axis=0)
    every = np.arange(squared.shape[1])
    matched = squared[first, every] <= MATCH * (spread + np.square(rows).sum(0))
    squared[first[matched], every[matched]] = np.inf
    farthest = np.partition(squared, k - 1, axis=0)[k - 1]
    chosen = (squared <= farthest).astype(np.float64)
    chosen /= chosen.sum(axis=0)
    distance = np.sqrt(np.einsum("cb,cb->b", chosen, np.where(chosen > 0, squared, 0.0)).clip(0.0))
    return chosen, distance


def _shares(squares: Floats) -> Floats:
    """Return each column's part of the sum, shape (m, b); equal parts where the sum is 0."""
    whole = squares.sum(axis=0)
    equal = np.full_like(squares, 1.0 / len(squares))
    shares: Floats = np.divide(squares, whole, out=equal, where=whole > 0)
    return shares


def _evidence(ranks: BranchRanks, view: int, scores: NDArray[np.float32]) -> Floats:
    if len(ranks.standards):
        smallest, center, scale = ranks.standards[view].astype(np.float64)
        values = np.log(np.maximum(scores, smallest)) if smallest > 0 else scores.astype(np.float64)
        evidence: Floats = ((values - center) / scale).clip(0.0, STANDARD_BOUNDS[1])
        return evidence
    return (2.0 * normalized_rank(ranks.views[view], scores) - 1.0).clip(0.0)


def _typical(ranks: BranchRanks, view: int) -> float:
    """Return the typical distance of the training rows in a local view."""
    if len(ranks.standards):
        return float(np.exp(np.float64(ranks.standards[view][1])))
    cdf = ranks.views[view]
    return max(float(np.interp(0.5, cdf.ranks, cdf.values)), float(np.finfo(np.float32).tiny))
