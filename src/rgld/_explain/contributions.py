"""Contributions: how much each column makes a row stand out.

In: a model and encoded rows. Out: for each row, the contribution of each column of the table, and how far its nearest
references are. With e_t(x) the evidence of view t and share_tj(x) the fraction of it that belongs to column j:

    a_j(x) = mean over the views t that see column j of e_t(x) * share_tj(x)
    contribution_j(x) = E(x) * a_j(x) / sum over i of a_i(x),   E(x) = mean over all views of e_t(x)

- e_t says how far out the row lies in view t: its standardized score (`aggregation="standard"`) or 2 rank - 1 ("rank"),
  and 0 if that is negative. It is computed from the same view scores as the anomaly score, to the bit.
- share_tj says how much column j separates the row from the rows that it is compared with: the cube of
  |u_j - their mean_j| / sqrt(their variance_j + 0.005), divided by the sum over the view's columns. For a flag (a
  boolean, a value of a category, "is missing"), 0.1 times the squared distance between no and yes takes the place of
  0.005. So a column in which the row's neighbours agree counts more. The cube and not the square,
  because neighbours follow a changed value halfway, and then all columns that usually go with it are somewhat apart.
- u_j is the value in the view's scaling, before its projection. Scalings bend the tails of a column, and the quantile
  scaling ends at the largest training value: good for scores, but all far values look alike. So a value above
  the 0.998 quantile of the kept rows is moved out by 2 log(its distance from the median / the distance of that
  quantile), at most by 2, and one below the 0.002 quantile likewise. Flags are not moved, and neither is a side whose
  quantile is the median.
- A local view compares the row with its k nearest references, the same as for the score. A global view asks a broader
  question and compares the row with the nearest quarter of some of the kept rows.

So the contributions of a row are not negative, and their sum is its mean evidence. A column that few of the random
views see can contribute as much as any other. Branches are weighted as in the score. Encoded columns are weighted as in
the views, and their contributions are added up to those of the table's columns.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from .. import _kernels
from .._arrays import Bools, Float32s, Float64s, Floats, Int32s
from .._kernels.threads import ONE_BLAS_THREAD
from .._model.model import SMALLEST_BANDWIDTH, Branch, LocalBranch, Model
from .._model.ranks import STANDARD_BOUNDS, BranchRanks, normalized_rank
from .._model.scaling import LARGEST_RAW_VALUE, Scaling, scaled_columns
from .._model.views import Views
from .._table.encoding import Encoding

MAX_CACHED_ROWS = 16
"""Up to this many rows are explained by the calling thread alone, from what is kept of the model."""
MAX_CACHED_CELLS = 2**22
"""Numbers (32 MiB) that are kept of a model for its next explanation."""
BLOCK_CELLS = 2**18
"""Numbers in the largest array of a block of rows: it fits into the processor's cache, and memory stays bounded."""
RELATIVE_ROUNDING = 1e-12
"""Two squared distances count as equal if they differ by less than this fraction of the squared numbers in them."""
MAX_ROUNDING_DISTANCE = 1e-12
"""Squared distances below this, in the unit of the scaling, come from rounding: no column separates the rows, and all
columns of the view have the same share."""
ADDED_VARIANCE = 0.005
"""Added to the variance of a row's neighbours, which are few, in the unit of the scaling: a column has a variance of
about 1."""
ADDED_FLAG_VARIANCE = 0.1
"""The same for flags, in the squared distance between no and yes: that none of a few neighbours has one does not say
that it is rare."""
TAIL_FRACTION = 0.002
"""Values farther out than all but this fraction of the kept rows, on one side of a column, are moved out ..."""
TAIL_FACTOR = 2.0
"""... by this times the logarithm of how many times as far from the median they are as that fraction begins."""
MOST_MOVED = 2.0
"""No value is moved out by more: farther out, the scaling itself tells values apart."""
N_BROAD_ROWS = 128
"""Number of kept rows that a global view looks at ..."""
BROAD_FRACTION = 0.25
"""... and the fraction of them, the nearest ones, that it compares a row with: the row's own region, if the table has
several."""

MIN_DISTANCE_IN_SPREADS = 0.01
"""In `distance_ratio`, smaller distances, in units of the references' spread, count as this: in a view whose columns
have few different values, most rows have an equal row."""


class Contributions(NamedTuple):
    """Why rows stand out, in numbers."""

    by_column: Float64s
    """Shape (n, d)."""
    distance_ratio: Float64s | None
    """Distance to the nearest references divided by that of a typical training row, shape (n,): a geometric mean over
    views. None without a local branch."""


class _ExplainedBranch(NamedTuple):
    """What explanations need of one branch."""

    branch: Branch
    ranks: BranchRanks
    weight: float
    """The weight of the branch in the score."""
    places: Int32s
    """Indices of the kept rows that each view looks at, shape (T, C) ..."""
    n_nearest: int
    """... and how many of these, the nearest ones, it compares a row with."""


class _Tails(NamedTuple):
    """Where the tails of the encoded columns begin, in halves: whole differences of the largest floats overflow. All of
    shape (e, 1)."""

    median: Float64s
    below: Float64s
    """How far below the median the lower tail begins; 0 if there is none."""
    above: Float64s

    def moved_by(self, rows: Floats) -> Float64s:
        """Return how far out the values of encoded rows (b, e) are moved, shape (e, b): mostly 0."""
        from_median = _halves(rows).T - self.median
        reach = np.where(from_median < 0, self.below, self.above)
        ratio = np.ones_like(from_median)
        with np.errstate(over="ignore"):  # an infinite ratio is moved by as much as any
            np.divide(np.abs(from_median), reach, out=ratio, where=reach > 0)
        distance = np.minimum(TAIL_FACTOR * np.log(np.maximum(ratio, 1.0)), MOST_MOVED)
        moved: Float64s = np.copysign(distance, from_median)
        return moved


def _halves(rows: Floats) -> Float64s:
    return 0.5 * np.clip(rows.astype(np.float64), -LARGEST_RAW_VALUE, LARGEST_RAW_VALUE)


class _Stack(NamedTuple):
    """What explanations need of G views of the same sizes: m columns, r dimensions, C rows to compare with."""

    features: Int32s
    """Shape (G, m)."""
    projection: Float64s
    """For rows that are weighted already, shape (G, m, r)."""
    references: Float64s
    """u of the rows to compare with, shape (G, m, C) ..."""
    squares: Float64s
    """... their squares, shape (G, m, C) ..."""
    projected: Float64s
    """... the same rows as the score sees them, after the projection, times -2, shape (G, r, C) ..."""
    lengths: Float64s
    """... and their squared lengths after the projection, shape (G, 1, C)."""
    added_variance: Float64s
    """Of the weighted columns, shape (G, m, 1)."""

    def only(self, g: int) -> "_Stack":
        """Return the stack of one of its views."""
        one = slice(g, g + 1)
        return _Stack(self.features[one], *(array[one] for array in self[1:]))


class _Shared(NamedTuple):
    """What all blocks of rows share. It must not refer to the model itself: the model is the key under which it is
    kept, and would live for ever."""

    scaling: Scaling
    encoding: Encoding
    branches: list[_ExplainedBranch]
    middle: Float64s
    """Medians of the kept rows' scaled columns, shape (S * e, 1). They become the origin: distances come from a matrix
    product, which loses digits far from the origin, and most rows are near the medians."""
    weights: Float64s
    """Weights of the scaled columns, shape (S * e, 1)."""
    added_variance: Float64s
    """What is added to their neighbours' variances, weighted too, shape (S * e, 1)."""
    tails: _Tails
    kept: Float64s
    """The kept rows, scaled, centred and weighted, shape (S * e, u) ..."""
    moved: Float64s
    """... and how far the values in their tails are moved out, weighted too, shape (S * e, u)."""
    coverage: Float64s
    """Fraction of the views that see each encoded column, shape (e, 1)."""
    typical: Float64s
    """Typical and smallest distances that count in each local view, shape (2, T); empty without a local branch."""
    stacks: list[list[tuple[list[int], _Stack]]]
    """For each branch, views of the same sizes: which they are, and their stack. Empty if they take too much memory to
    be kept from one call to the next."""


_SHARED: WeakKeyDictionary[Model, _Shared] = WeakKeyDictionary()
"""What explanations need of the models in use: one row must not wait for it."""


def contributions(model: Model, matrix: Floats, n_threads: int) -> Contributions:
    """Return the contributions of all columns of the table, computed in blocks of rows."""
    shared = _SHARED.get(model) or _shared(model)
    by_column = np.empty((len(matrix), len(model.encoding.columns)))
    ratio = None if model.local_branch is None else np.empty(len(matrix))
    widest = max(len(shared.kept), *(explained.places.shape[1] for explained in shared.branches))
    step = max(64, BLOCK_CELLS // widest)

    def explain_block(start: int) -> None:
        block = slice(start, start + step)
        found = _of_block(shared, matrix[block])
        by_column[block] = found.by_column
        if ratio is not None:
            ratio[block] = found.distance_ratio

    if len(matrix) <= MAX_CACHED_ROWS:  # products of so few rows need no threads, and finding BLAS takes milliseconds
        explain_block(0)
        return Contributions(by_column, ratio)
    with ONE_BLAS_THREAD.held(), ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(explain_block, range(0, len(matrix), step)))
    return Contributions(by_column, ratio)


def _shared(model: Model) -> _Shared:
    """Return what all blocks of rows share. It is kept for the next call, unless the model is very large."""
    branches = list(_explained_branches(model))
    rows = _kernels.Rows(model.kept_rows.rows, model.scaling, 1)
    kept = rows.take(np.arange(len(model.kept_rows.rows))).astype(np.float64)
    middle = np.median(kept, axis=1, keepdims=True)
    weights = np.tile(model.encoding.weights, len(model.scaling.kinds))[:, None]
    tails = _tails(model.kept_rows.rows, model.encoding)
    coverage = np.zeros(len(kept))
    for explained in branches:
        for t in range(len(explained.places)):
            coverage[_columns_of(explained.branch.views, t)[0]] += explained.weight / len(explained.places)
    coverage = coverage.reshape(len(model.scaling.kinds), -1).sum(axis=0)
    coverage[coverage == 0] = 1.0  # no view sees this column, so its contribution is 0
    shared = _Shared(
        model.scaling,
        model.encoding,
        branches,
        middle,
        weights,
        _added_variance(model) * np.square(weights),
        tails,
        (kept - middle) * weights,
        _moved(tails, weights, model.kept_rows.rows),
        coverage[:, None],
        _typical_distances(branches),
        [],
    )
    n_cells = sum(explained.places.size * explained.branch.views.features.shape[1] for explained in branches)
    if 2 * kept.size + 2 * n_cells <= MAX_CACHED_CELLS:
        for explained in branches:
            groups: dict[int, list[int]] = {}
            for t in range(len(explained.places)):
                groups.setdefault(len(_columns_of(explained.branch.views, t)[0]), []).append(t)
            shared.stacks.append([(views, _stack(shared, explained, views)) for views in groups.values()])
        _SHARED[model] = shared
    return shared


def _flags(encoding: Encoding) -> Bools:
    """Return which encoded columns are flags, shape (e,): 1 for yes and 0 for no."""
    is_boolean = np.array([column.kind == "boolean" for column in encoding.columns])
    is_value = np.zeros(len(encoding.owner), dtype=bool)
    is_value[encoding.starts[is_boolean]] = True
    return is_value | encoding.is_indicator


def _added_variance(model: Model) -> Float64s:
    """Return what is added to the variances of the scaled columns, shape (S * e, 1). That of a flag is a part of the
    squared distance between no and yes, which is far for a rare flag."""
    no_and_yes = np.repeat([[0.0], [1.0]], model.scaling.n_inputs, axis=1)
    no, yes = scaled_columns(model.scaling, no_and_yes).astype(np.float64).T
    is_flag = np.tile(_flags(model.encoding), len(model.scaling.kinds))
    added = np.where(is_flag, ADDED_FLAG_VARIANCE * np.square(yes - no), ADDED_VARIANCE)
    return np.maximum(added, ADDED_VARIANCE)[:, None]


def _tails(rows: Floats, encoding: Encoding) -> _Tails:
    """Return the tails of the kept rows' columns. A flag has none, and neither has a side of a column on which hardly
    a row differs from the median: there the scaling itself leaves values far out."""
    low, median, high = np.quantile(_halves(rows), [TAIL_FRACTION, 0.5, 1 - TAIL_FRACTION], axis=0)[:, :, None]
    has_tails = ~_flags(encoding)[:, None]
    return _Tails(median, (median - low) * has_tails, (high - median) * has_tails)


def _moved(tails: _Tails, weights: Float64s, rows: Floats) -> Float64s:
    """Return how far out the values of encoded rows are moved in every scaling, weighted, shape (S * e, b)."""
    moved = tails.moved_by(rows)
    return np.tile(moved, (len(weights) // len(moved), 1)) * weights


def _stack(shared: _Shared, explained: _ExplainedBranch, views: list[int]) -> _Stack:
    """Return some views, which must have the same number of features, as a stack."""
    columns = [_columns_of(explained.branch.views, t) for t in views]
    features, projection = (np.stack(arrays) for arrays in zip(*columns, strict=True))
    weights = shared.weights[features]
    projection /= weights  # the rows are weighted already
    kept, moved = (
        np.stack([rows[own].take(explained.places[t], axis=1) for t, own in zip(views, features, strict=True)])
        for rows in (shared.kept, shared.moved)
    )
    projected = projection.swapaxes(1, 2) @ kept
    references = kept + moved
    return _Stack(
        features,
        projection,
        references,
        np.square(references),
        -2.0 * projected,
        np.square(projected).sum(axis=1, keepdims=True),
        shared.added_variance[features],
    )


def _stacks(shared: _Shared, i: int, together: bool) -> Iterator[tuple[list[int], _Stack]]:
    """Yield the views of a branch: those of the same sizes together, or one by one."""
    if not shared.stacks:
        explained = shared.branches[i]
        yield from (([t], _stack(shared, explained, [t])) for t in range(len(explained.places)))
        return
    for views, stack in shared.stacks[i]:
        if together:
            yield views, stack
        else:
            yield from (([t], stack.only(g)) for g, t in enumerate(views))


def _explained_branches(model: Model) -> Iterator[_ExplainedBranch]:
    alone = model.local_branch is None or model.global_branch is None
    if model.local_branch is not None and model.local_ranks is not None:
        weight = 1.0 if alone else model.local_weight
        branch = model.local_branch
        yield _ExplainedBranch(branch, model.local_ranks, weight, model.kept_rows.places, branch.n_neighbors)
    if model.global_branch is not None and model.global_ranks is not None:
        weight = 1.0 if alone else 1.0 - model.local_weight
        n_rows = len(model.kept_rows.rows)
        # Evenly spaced, because the kept rows may be in the order of the table.
        broad = np.unique(np.linspace(0, n_rows - 1, min(N_BROAD_ROWS, n_rows)).round().astype(np.int32))
        places = np.broadcast_to(broad, (len(model.global_branch.phases), len(broad)))
        yield _ExplainedBranch(
            model.global_branch, model.global_ranks, weight, places, max(1, round(BROAD_FRACTION * len(broad)))
        )


def _columns_of(views: Views, t: int) -> tuple[Int32s, Float64s]:
    """Return the features of a view and its projection, without the zeros that pad narrow views."""
    used = views.projection[t].any(axis=1)
    return views.features[t][used], views.projection[t][used].astype(np.float64)


def _of_block(shared: _Shared, block: Floats) -> Contributions:
    rows = _kernels.Rows(block, shared.scaling, 1)
    scaled = (rows.take(np.arange(len(block))) - shared.middle) * shared.weights
    moved = _moved(shared.tails, shared.weights, block)
    total, ratio = np.zeros(scaled.shape), None
    for i, explained in enumerate(shared.branches):
        scores = _kernels.view_scores(rows, explained.branch)[: len(explained.places)]
        evidence = _evidence(explained.ranks, scores) * (explained.weight / len(scores))
        for views, stack in _stacks(shared, i, together=len(block) <= MAX_CACHED_ROWS):
            _add_views(total, stack, explained.n_nearest, evidence[views], scaled, moved)
        if isinstance(explained.branch, LocalBranch):
            ratio = _distance_ratio(shared.typical, scores)
    return Contributions(_folded(shared, total).T, ratio)


def _add_views(
    total: Float64s, stack: _Stack, n_nearest: int, evidence: Float64s, scaled: Float64s, moved: Float64s
) -> None:
    """Add the evidence of views (G, b) times the shares of their columns to the total, shape (S * e, b) as `scaled` and
    `moved`."""
    found = np.flatnonzero(evidence.any(axis=0))
    # A forged model can have views without features: no column has a part in their scores.
    if not len(found) or not stack.features.size:
        return
    rows = scaled[stack.features].take(found, axis=2)
    nearest = _nearest(rows.swapaxes(1, 2) @ stack.projection, stack, n_nearest).swapaxes(1, 2) / n_nearest
    rows += moved[stack.features].take(found, axis=2)
    separation = _separation(rows, stack, nearest)
    whole = separation.sum(axis=1, keepdims=True)
    if not whole.all():
        separation += whole == 0
        whole = separation.sum(axis=1, keepdims=True)
    separation *= evidence[:, None, found] / whole
    if total.shape[1] == 1:  # a single row, as a server explains it: the sums below in one call
        np.add.at(total[:, 0], stack.features.ravel(), separation.ravel())
        return
    for features, part in zip(stack.features, separation, strict=True):
        if len(found) == total.shape[1]:
            total[features] += part
            continue
        added = np.zeros((len(features), total.shape[1]))
        added[:, found] = part
        total[features] += added


def _separation(rows: Float64s, stack: _Stack, nearest: Float64s) -> Float64s:
    """Return the cube of |u_j - mean_j| / sqrt(variance_j + added variance_j), shape (G, m, b). Mean and variance are
    those of the row's nearest references (G, C, b). All 0 if no column separates the row from them."""
    mean = stack.references @ nearest
    variance = stack.squares @ nearest
    variance -= np.square(mean)
    np.maximum(variance, 0.0, out=variance)
    variance += stack.added_variance
    mean -= rows
    squares: Float64s = np.square(mean)
    is_apart = squares.sum(axis=1, keepdims=True) > MAX_ROUNDING_DISTANCE
    if not is_apart.all():
        squares *= is_apart
    squares /= variance
    squares *= np.sqrt(squares)
    return squares


def _nearest(rows: Float64s, stack: _Stack, k: int) -> Float64s:
    """Return 1 for the k nearest references of each projected row (G, b, r), 0 for the others, shape (G, b, C).

    One exact match is left out, as in the score. If several references are as far as the k-th, they get equal fractions
    that sum to the places that are left. So rounding, which depends on the rows that are explained together, decides
    nothing.
    """
    length = np.square(rows).sum(axis=2, keepdims=True)
    squared = rows @ stack.projected
    squared += stack.lengths  # the row's own length is left out: it is the same for all references
    first = squared.argmin(axis=2)[:, :, None]
    matched = np.take_along_axis(squared, first, 2) + length <= RELATIVE_ROUNDING * length
    if matched.any():
        views, own, _ = np.nonzero(matched)
        squared[views, own, first[views, own, 0]] = np.inf
    farthest = np.partition(squared, k - 1, axis=2)[:, :, k - 1 : k]
    margin = RELATIVE_ROUNDING * (2.0 * length + farthest)
    nearest: Float64s = (squared <= farthest + margin).astype(np.float64)
    tied = nearest.sum(axis=2) > k
    if tied.any():
        nearer = squared[tied] < (farthest - margin)[tied]
        same = (nearest[tied] > 0) & ~nearer
        left = k - nearer.sum(axis=1)
        nearest[tied] = nearer + same * (left / same.sum(axis=1))[:, None]
    return nearest


def _folded(shared: _Shared, total: Float64s) -> Float64s:
    """Return the contributions of the table's columns (d, b), given evidence times share of each scaled column."""
    encoding = shared.encoding
    encoded = total.reshape(len(shared.scaling.kinds), -1, total.shape[1]).sum(axis=0)
    evidence = encoded.sum(axis=0)
    encoded /= shared.coverage
    kept = np.array([bool(column.parts) for column in encoding.columns])
    by_column = np.zeros((len(kept), total.shape[1]))
    by_column[kept] = np.add.reduceat(encoded, encoding.starts[kept], axis=0)
    whole = by_column.sum(axis=0)
    by_column *= evidence / np.where(whole > 0, whole, 1.0)
    return by_column


def _evidence(ranks: BranchRanks, scores: Float32s) -> Float64s:
    """Return the evidence e_t of each view and row, shape (T, b): 0 for a row that is not farther out than a typical
    one."""
    if not len(ranks.standards):
        by_view = [normalized_rank(cdf, scores_t) for cdf, scores_t in zip(ranks.views, scores, strict=False)]
        above: Float64s = 2.0 * np.array(by_view).clip(0.5) - 1.0
        return above
    smallest, center, scale = ranks.standards[: len(scores), :, None].astype(np.float64).swapaxes(0, 1)
    values = np.log(np.maximum(scores, smallest)) if (smallest > 0).all() else scores
    evidence: Float64s = ((values - center) / scale).clip(0.0, STANDARD_BOUNDS[1])
    return evidence


def _typical_distances(branches: list[_ExplainedBranch]) -> Float64s:
    """Return the typical distances of the training rows to their nearest references in each local view, and the
    smallest distances that count, shape (2, T)."""
    for branch, ranks, _, places, _ in branches:
        if not isinstance(branch, LocalBranch):
            continue
        n_views = len(places)
        if len(ranks.standards):
            typical = np.exp(ranks.standards[:n_views, 1].astype(np.float64))
        else:
            typical = np.array([np.interp(0.5, cdf.ranks, cdf.values) for cdf in ranks.views[:n_views]])
        spread = np.sqrt(branch.references[:n_views].astype(np.float64).var(axis=2).sum(axis=1))
        near = np.maximum(MIN_DISTANCE_IN_SPREADS * spread, SMALLEST_BANDWIDTH)
        return np.array([np.maximum(typical, near), near])
    return np.empty((2, 0))


def _distance_ratio(typical: Float64s, distances: Float32s) -> Float64s:
    """Return the distances (T, b) divided by the typical distances of the training rows, as a geometric mean over
    views, shape (b,)."""
    usual, near = typical[:, :, None]
    ratio: Float64s = np.exp(np.log(np.maximum(distances, near) / usual).mean(axis=0))
    return ratio
