"""Contributions: how much each column made a row stand out.

In: a model and encoded rows. Out: for each row the contribution of each column of the table, and how far its nearest
references are. The formula, with e_t(x) the evidence of view t and share_tj(x) the part of column j in it:

    a_j(x) = mean over the views t that see column j of e_t(x) * share_tj(x)
    contribution_j(x) = E(x) * a_j(x) / sum over i of a_i(x),   E(x) = mean over all views of e_t(x)

- e_t is how far out the view finds the row: its standardized score if that is above 0 (`aggregation="standard"`),
  2 rank - 1 if its rank is above one half ("rank"). It is made of the score's own view scores, to the bit.
- share_tj is column j's part in what separates the row from the rows it is compared with: (x_j - their mean_j)^2 in the
  view's scaling and before its projection, divided by the sum over the view's columns.
- A local view compares with its k nearest references, those of the score. A global view, which asks a broad question,
  compares with the nearest quarter of a sample of the training rows.

So the contributions of a row sum to its mean evidence, and none is negative. That a column is seen by few of the random
views does not make it less of a reason. Branches are weighted as in the score. Encoded columns count with their weight
and are added up to the columns of the table.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from . import _kernels
from ._model import SMALLEST_BANDWIDTH, LocalBranch, Model
from ._ranks import STANDARD_BOUNDS, BranchRanks, normalized_rank
from ._views import Views

Floats = NDArray[np.float64]

BLOCK_NUMBERS = 2**18
"""Numbers per block of rows in the largest array: it stays in the cache, and memory in bounds."""
ROUNDING = 1e-12
"""Squared distances that differ by less, in parts of the squared numbers they are made of, are the same distance."""
BROAD_ROWS = 256
"""Rows of the sample that a global view looks at ..."""
BROAD_SHARE = 0.25
"""... and the nearest part of them that it compares with: the row's own region if the table has several."""

NEAR = 0.01
"""Distances below this part of the references' spread count as this, when distances are compared: in views of few
values most rows have a twin."""


class Contributions(NamedTuple):
    """What is known about why rows stand out."""

    by_column: Floats
    """Shape (n, d)."""
    distance_ratio: Floats | None
    """How far the nearest references are, in typical distances of the training rows, shape (n,); None without a local
    branch. A geometric mean over views."""


def contributions(model: Model, matrix: NDArray[np.floating], n_threads: int) -> Contributions:
    """Return the contributions of all columns of the table, in blocks of rows."""
    sample = _scaled(model, model.sample.rows)
    # Distances come out of a matrix product, which cancels far from the origin: most rows are near the median.
    middle = np.median(sample, axis=1, keepdims=True)
    sample -= middle
    coverage = _coverage(model)
    by_column = np.empty((len(matrix), len(model.encoding.columns)))
    ratio = None if model.local_branch is None else np.empty(len(matrix))
    widest = max(len(sample), model.sample.places.shape[-1], BROAD_ROWS)
    step = max(64, BLOCK_NUMBERS // widest)

    def explain_block(start: int) -> None:
        block = slice(start, start + step)
        found = _of_block(model, matrix[block], sample, middle, coverage)
        by_column[block] = found.by_column
        if ratio is not None:
            ratio[block] = found.distance_ratio

    with threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(explain_block, range(0, len(matrix), step)))
    return Contributions(by_column, ratio)


def _scaled(model: Model, rows: NDArray[np.floating]) -> Floats:
    """Return scaled columns, shape (S * e, b)."""
    scaled = _kernels.Rows(rows, model.scaling, 1)
    return scaled.take(np.arange(len(rows))).astype(np.float64)


def _of_block(
    model: Model, block: NDArray[np.floating], sample: Floats, middle: Floats, coverage: Floats
) -> Contributions:
    rows = _kernels.Rows(block, model.scaling, 1)
    scaled = rows.take(np.arange(len(block))) - middle
    total, ratio = np.zeros(scaled.shape), None
    local_weight, global_weight = _branch_weights(model)
    if model.local_branch is not None and model.local_ranks is not None:
        branch, places = model.local_branch, model.sample.places
        scores = _kernels.view_scores(rows, branch)[: len(places)]
        evidence = _evidence(model.local_ranks, scores) * (local_weight / len(scores))
        _add_views(total, model, branch.views, evidence, scaled, sample, places, branch.n_neighbors)
        ratio = _distance_ratio(branch, model.local_ranks, scores)
    if model.global_branch is not None and model.global_ranks is not None:
        scores = _kernels.view_scores(rows, model.global_branch)
        evidence = _evidence(model.global_ranks, scores) * (global_weight / len(scores))
        broad = _broad_places(sample.shape[1])
        n_nearest = max(1, round(BROAD_SHARE * len(broad)))
        places = np.broadcast_to(broad, (len(scores), len(broad)))
        _add_views(total, model, model.global_branch.views, evidence, scaled, sample, places, n_nearest)
    return Contributions(_folded(model, total, coverage).T, ratio)


def _broad_places(n_rows: int) -> NDArray[np.int32]:
    """Return which rows of the sample a global view looks at: evenly spaced, as they may stand in the table's order."""
    return np.unique(np.linspace(0, n_rows - 1, min(BROAD_ROWS, n_rows)).round().astype(np.int32))


def _add_views(
    total: Floats,
    model: Model,
    views: Views,
    evidence: Floats,
    scaled: Floats,
    sample: Floats,
    places: NDArray[np.int32],
    n_nearest: int,
) -> None:
    """Add evidence (T, b) times shares to the total of the scaled columns, both (S * e, b).

    Row t of `places` says which columns of `sample` (S * e, u) view t compares with.
    """
    weights = np.tile(model.encoding.weights, len(model.scaling.kinds)) ** 2
    for t in range(len(evidence)):
        rows = np.flatnonzero(evidence[t] > 0)
        used = views.projection[t].any(axis=1)  # narrow views are padded with zeros
        features, projection = views.features[t][used], views.projection[t][used].astype(np.float64)
        squares = _separation(
            scaled[np.ix_(features, rows)], sample[np.ix_(features, places[t])], projection, n_nearest
        )
        squares *= weights[features, None]
        whole = squares.sum(axis=0)
        squares[:, whole == 0] = 1.0  # nothing separates the row: equal parts
        squares *= evidence[t][rows] / np.where(whole == 0, len(squares), whole)
        total[np.ix_(features, rows)] += squares


def _separation(rows: Floats, references: Floats, projection: Floats, k: int) -> Floats:
    """Return (x_j - mean_j)^2, with the mean of each row's k nearest references after the projection, shape (m, b)."""
    squares: Floats = references @ _nearest(rows.T @ projection, references.T @ projection, k).T
    squares -= rows
    squares *= squares
    # A column that separates nothing must be 0, not a rounding error that becomes a share.
    squares -= ROUNDING**2 * (1.0 + rows**2)
    return np.maximum(squares, 0.0, out=squares)


def _nearest(rows: Floats, references: Floats, k: int) -> Floats:
    """Return the weights of each row's k nearest references, 1 / k each, shape (b, C); rows (b, r), references (C, r).

    One exact match is left out, as in the score. References at the distance of the k-th share what the nearer ones
    leave: whichever rows are explained together, rounding decides nothing.
    """
    length = np.square(rows).sum(axis=1)
    squared = rows @ (-2.0 * references.T)
    squared += np.square(references).sum(axis=1)
    squared += length[:, None]
    first = squared.argmin(axis=1)
    every = np.arange(len(squared))
    matched = squared[every, first] <= ROUNDING * length
    squared[every[matched], first[matched]] = np.inf
    farthest = np.partition(squared, k - 1, axis=1)[:, k - 1]
    margin = ROUNDING * (length + farthest)
    weights: Floats = (squared <= (farthest + margin)[:, None]) / k
    tied = np.flatnonzero(weights.sum(axis=1) > 1.0 + 0.5 / k)
    if len(tied):
        nearer = squared[tied] < (farthest - margin)[tied, None]
        same = (weights[tied] > 0) & ~nearer
        left = 1.0 - nearer.sum(axis=1) / k
        weights[tied] = nearer / k + same * (left / same.sum(axis=1))[:, None]
    return weights


def _coverage(model: Model) -> Floats:
    """Return the share of the views, weighted by branch, that see each encoded column, shape (e,)."""
    seen = np.zeros(len(model.scaling.center))
    local_weight, global_weight = _branch_weights(model)
    if model.local_branch is not None:
        _count(seen, model.local_branch.views, len(model.sample.places), local_weight)
    if model.global_branch is not None:
        _count(seen, model.global_branch.views, len(model.global_branch.phases), global_weight)
    coverage: Floats = seen.reshape(len(model.scaling.kinds), -1).sum(axis=0)
    return coverage


def _count(seen: Floats, views: Views, n_views: int, weight: float) -> None:
    for features, projection in zip(views.features[:n_views], views.projection, strict=False):
        seen[features[projection.any(axis=1)]] += weight / n_views


def _branch_weights(model: Model) -> tuple[float, float]:
    """Return the weights of the local and the global branch."""
    if model.global_branch is None or model.local_branch is None:
        return 1.0, 1.0
    return model.local_weight, 1.0 - model.local_weight


def _folded(model: Model, total: Floats, coverage: Floats) -> Floats:
    """Return the contributions of the table's columns (d, b), given evidence times shares of the scaled ones."""
    encoding = model.encoding
    encoded = total.reshape(len(model.scaling.kinds), -1, total.shape[1]).sum(axis=0)
    evidence = encoded.sum(axis=0)
    encoded /= np.where(coverage > 0, coverage, 1.0)[:, None]
    kept = np.array([bool(column.parts) for column in encoding.columns])
    by_column = np.zeros((len(kept), total.shape[1]))
    by_column[kept] = np.add.reduceat(encoded, encoding.starts[kept], axis=0)
    whole = by_column.sum(axis=0)
    by_column *= evidence / np.where(whole > 0, whole, 1.0)
    return by_column


def _evidence(ranks: BranchRanks, scores: NDArray[np.float32]) -> Floats:
    """Return how far out the views find the rows, shape (T, b): 0 for a row no farther out than the typical one."""
    if not len(ranks.standards):
        by_view = [normalized_rank(cdf, scores_t) for cdf, scores_t in zip(ranks.views, scores, strict=False)]
        above: Floats = 2.0 * np.array(by_view).clip(0.5) - 1.0
        return above
    smallest, center, scale = ranks.standards[: len(scores), :, None].astype(np.float64).swapaxes(0, 1)
    values = np.log(np.maximum(scores, smallest)) if (smallest > 0).all() else scores
    evidence: Floats = ((values - center) / scale).clip(0.0, STANDARD_BOUNDS[1])
    return evidence


def _distance_ratio(branch: LocalBranch, ranks: BranchRanks, distances: NDArray[np.float32]) -> Floats:
    """Return the distances (T, b) in units of the training rows' typical ones, as a geometric mean over views."""
    n_views = len(distances)
    if len(ranks.standards):
        typical = np.exp(ranks.standards[:n_views, 1].astype(np.float64))
    else:
        typical = np.array([np.interp(0.5, cdf.ranks, cdf.values) for cdf in ranks.views[:n_views]])
    near = NEAR * np.sqrt(branch.references[:n_views].astype(np.float64).var(axis=2).sum(axis=1))
    near = np.maximum(near, SMALLEST_BANDWIDTH)
    ratios = np.maximum(distances, near[:, None]) / np.maximum(typical, near)[:, None]
    ratio: Floats = np.exp(np.log(ratios).mean(axis=0))
    return ratio
