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

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from . import _kernels
from ._model import SMALLEST_BANDWIDTH, GlobalBranch, LocalBranch, Model
from ._ranks import STANDARD_BOUNDS, BranchRanks, normalized_rank
from ._views import Views

Floats = NDArray[np.float64]

BLOCK_NUMBERS = 2**18
"""Numbers per block of rows in the largest array: it stays in the cache, and memory in bounds."""
ROUNDING = 1e-12
"""Squared distances that differ by less, in parts of the squared numbers they are made of, are the same distance."""
NOTHING = 1e-12
"""Squared distances below this, in the unit of the scaling, are rounding: nothing separates the rows, and the view's
columns have equal parts."""
BROAD_ROWS = 128
"""Rows of the sample that a global view looks at ..."""
BROAD_SHARE = 0.25
"""... and the nearest part of them that it compares with: the row's own region if the table has several."""

NEAR = 0.01
"""Distances below this part of the references' spread count as this, when distances are compared: in views of few
values most rows have a twin."""


_ONE_AT_A_TIME = Lock()
"""The limit on BLAS threads is one of the whole process: two that overlap would restore each other's."""


class Contributions(NamedTuple):
    """What is known about why rows stand out."""

    by_column: Floats
    """Shape (n, d)."""
    distance_ratio: Floats | None
    """How far the nearest references are, in typical distances of the training rows, shape (n,); None without a local
    branch. A geometric mean over views."""


class _Part(NamedTuple):
    """What explanations need of one branch."""

    branch: GlobalBranch | LocalBranch
    ranks: BranchRanks
    weight: float
    """Of the branch in the score."""
    places: NDArray[np.int32]
    """The rows of the sample that each view looks at, shape (T, C) ..."""
    n_nearest: int
    """... and how many of them, the nearest, it compares with."""


class _Frame(NamedTuple):
    """What all blocks of rows share."""

    model: Model
    parts: list[_Part]
    middle: Floats
    """Medians of the sample's scaled columns, shape (S * e, 1). Distances come out of a matrix product, which cancels
    far from the origin: most rows are near the medians."""
    weights: Floats
    """Of the scaled columns, shape (S * e, 1)."""
    sample: Floats
    """Scaled, centred and weighted, shape (S * e, u)."""
    coverage: Floats
    """Share of the views that see each encoded column, shape (e, 1)."""


def contributions(model: Model, matrix: NDArray[np.floating], n_threads: int) -> Contributions:
    """Return the contributions of all columns of the table, in blocks of rows."""
    frame = _frame(model)
    by_column = np.empty((len(matrix), len(model.encoding.columns)))
    ratio = None if model.local_branch is None else np.empty(len(matrix))
    widest = max(len(frame.sample), *(part.places.shape[1] for part in frame.parts))
    step = max(64, BLOCK_NUMBERS // widest)

    def explain_block(start: int) -> None:
        block = slice(start, start + step)
        found = _of_block(frame, matrix[block])
        by_column[block] = found.by_column
        if ratio is not None:
            ratio[block] = found.distance_ratio

    with _ONE_AT_A_TIME, threadpool_limits(1, "blas"), ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(explain_block, range(0, len(matrix), step)))
    return Contributions(by_column, ratio)


def _frame(model: Model) -> _Frame:
    parts = list(_parts(model))
    rows = _kernels.Rows(model.sample.rows, model.scaling, 1)
    sample = rows.take(np.arange(len(model.sample.rows))).astype(np.float64)
    middle = np.median(sample, axis=1, keepdims=True)
    weights = np.tile(model.encoding.weights, len(model.scaling.kinds))[:, None]
    coverage = np.zeros(len(sample))
    for part in parts:
        for t in range(len(part.places)):
            coverage[_columns_of(part.branch.views, t)[0]] += part.weight / len(part.places)
    coverage = coverage.reshape(len(model.scaling.kinds), -1).sum(axis=0)
    coverage[coverage == 0] = 1.0  # such a column has no part in any view
    return _Frame(model, parts, middle, weights, (sample - middle) * weights, coverage[:, None])


def _parts(model: Model) -> Iterator[_Part]:
    alone = model.local_branch is None or model.global_branch is None
    if model.local_branch is not None and model.local_ranks is not None:
        weight = 1.0 if alone else model.local_weight
        branch = model.local_branch
        yield _Part(branch, model.local_ranks, weight, model.sample.places, branch.n_neighbors)
    if model.global_branch is not None and model.global_ranks is not None:
        weight = 1.0 if alone else 1.0 - model.local_weight
        n_rows = len(model.sample.rows)
        # Evenly spaced, as the sample may stand in the order of the table.
        broad = np.unique(np.linspace(0, n_rows - 1, min(BROAD_ROWS, n_rows)).round().astype(np.int32))
        places = np.broadcast_to(broad, (len(model.global_branch.phases), len(broad)))
        yield _Part(model.global_branch, model.global_ranks, weight, places, max(1, round(BROAD_SHARE * len(broad))))


def _columns_of(views: Views, t: int) -> tuple[NDArray[np.int32], Floats]:
    """Return the features of a view and its projection, without the zeros that narrow views are padded with."""
    used = views.projection[t].any(axis=1)
    return views.features[t][used], views.projection[t][used].astype(np.float64)


def _of_block(frame: _Frame, block: NDArray[np.floating]) -> Contributions:
    rows = _kernels.Rows(block, frame.model.scaling, 1)
    scaled = (rows.take(np.arange(len(block))) - frame.middle) * frame.weights
    total, ratio = np.zeros(scaled.shape), None
    for part in frame.parts:
        scores = _kernels.view_scores(rows, part.branch)[: len(part.places)]
        evidence = _evidence(part.ranks, scores) * (part.weight / len(scores))
        for t in range(len(scores)):
            _add_view(total, frame, part, t, evidence[t], scaled)
        if isinstance(part.branch, LocalBranch):
            ratio = _distance_ratio(part.branch, part.ranks, scores)
    return Contributions(_folded(frame, total).T, ratio)


def _add_view(total: Floats, frame: _Frame, part: _Part, t: int, evidence: Floats, scaled: Floats) -> None:
    """Add evidence (b,) times shares to the total of the scaled columns, shape (S * e, b) as `scaled`."""
    features, projection = _columns_of(part.branch.views, t)
    projection /= frame.weights[features]  # the rows have them already
    found = np.flatnonzero(evidence)
    references = frame.sample[features].take(part.places[t], axis=1)
    squares = _separation(scaled[features].take(found, axis=1), references, projection, part.n_nearest)
    whole = squares.sum(axis=0)
    nothing = whole <= NOTHING
    squares[:, nothing], whole[nothing] = 1.0, len(squares)
    squares *= evidence[found] / whole
    added = np.zeros((len(features), len(evidence)))
    added[:, found] = squares
    total[features] += added


def _separation(rows: Floats, references: Floats, projection: Floats, k: int) -> Floats:
    """Return (x_j - mean_j)^2, with the mean of each row's k nearest references after the projection, shape (m, b)."""
    squares: Floats = references @ _nearest(rows.T @ projection, references.T @ projection, k).T
    squares *= 1.0 / k
    squares -= rows
    squares *= squares
    return squares


def _nearest(rows: Floats, references: Floats, k: int) -> Floats:
    """Return 1 for each row's k nearest references, 0 for the others, shape (b, C); rows (b, r), references (C, r).

    One exact match is left out, as in the score. References at the distance of the k-th share what the nearer ones
    leave of k: whichever rows are explained together, rounding decides nothing.
    """
    length = np.square(rows).sum(axis=1)
    squared = rows @ (-2.0 * references.T)
    squared += np.square(references).sum(axis=1)  # and the row's own length, the same for all its references
    first = squared.argmin(axis=1)
    every = np.arange(len(squared))
    matched = squared[every, first] + length <= ROUNDING * length
    squared[every[matched], first[matched]] = np.inf
    farthest = np.partition(squared, k - 1, axis=1)[:, k - 1]
    margin = ROUNDING * (2.0 * length + farthest)
    nearest: Floats = (squared <= (farthest + margin)[:, None]).astype(np.float64)
    tied = np.flatnonzero(nearest.sum(axis=1) > k)
    if len(tied):
        nearer = squared[tied] < (farthest - margin)[tied, None]
        same = (nearest[tied] > 0) & ~nearer
        left = k - nearer.sum(axis=1)
        nearest[tied] = nearer + same * (left / same.sum(axis=1))[:, None]
    return nearest


def _folded(frame: _Frame, total: Floats) -> Floats:
    """Return the contributions of the table's columns (d, b), given evidence times shares of the scaled ones."""
    encoding = frame.model.encoding
    encoded = total.reshape(len(frame.model.scaling.kinds), -1, total.shape[1]).sum(axis=0)
    evidence = encoded.sum(axis=0)
    encoded /= frame.coverage
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
