"""Explanations: which columns made a row stand out, and how.

In: a model and encoded rows. Out: for each row the contribution of each column of the table, and how far its nearest
references are. The formula, with e_t(x) the evidence of view t and share_tj(x) the part of column j in it:

    contribution_j(x) = mean over views t of e_t(x) * share_tj(x)

- e_t is how far out the view finds the row: its standardized score if that is above 0 (`aggregation="standard"`),
  2 rank - 1 if its rank is above one half ("rank"). It is made of the score's own view scores, to the bit.
- share_tj is column j's part in what separates the row from the rows it is compared with: the mean over them of
  (x_j - ref_j)^2, in the view's scaling and before its projection, divided by the sum over the view's columns.
- A local view compares with its k nearest references, those of the score. A global view, which asks a broad question,
  compares with the nearest quarter of a sample of the training rows.

Shares of a view sum to 1, so the contributions of a row sum to its mean evidence, and none is negative. Branches are
weighted as in the score. Encoded columns count with their weight and are added up to the columns of the table.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from . import _kernels, _words
from ._cells import RawColumn
from ._encoding import Encoding
from ._model import Model
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

SMALLEST_RATIO = 1e-9
"""Of a distance to the typical one, so that it has a logarithm."""

LEAST_SHARE = 0.05
"""Columns with a smaller part in a row's contributions are no reason."""
HIGH = 0.95
"""A branch score above this stands out."""
SHOWN_ROWS = 5
"""Rows in a printed explanation."""


@dataclass(frozen=True, eq=False, repr=False)
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

    def __repr__(self) -> str:
        """Return the size, and the reasons of the rows with the highest scores."""
        size = (
            f"{len(self):,} row{'s' * (len(self) != 1)}, {len(self.columns):,} column{'s' * (len(self.columns) != 1)}"
        )
        highest = np.argsort(-self.anomaly_score, kind="stable")[:SHOWN_ROWS]
        lines = []
        for row in highest:
            reasons = "; ".join(self.reasons(int(row))) or "nothing unusual"
            lines.append(f"  row {row:,}, score {self.anomaly_score[row]:.4f}: {reasons}")
        return "\n".join([f"Explanation of {size}" + (", highest scores first" * (len(self) > 1)), *lines])

    def top(self, n_columns: int = 3) -> NDArray[np.intp]:
        """Return the numbers of the columns that contribute most to each row, largest first, shape (n, n_columns)."""
        return np.argsort(-self.contributions, axis=1, kind="stable")[:, :n_columns]

    def shares(self) -> Floats:
        """Return the contributions of each row divided by their sum, shape (n, d); 0 in a row without evidence."""
        whole = self.contributions.sum(axis=1, keepdims=True)
        shares: Floats = np.divide(self.contributions, whole, out=np.zeros_like(self.contributions), where=whole > 0)
        return shares

    def reasons(self, row: int, n_columns: int = 3) -> list[str]:
        """Return what is unusual about a row, column by column, the most important first.

        None for a row that no view finds unusual; columns with less than 5 % of the contributions are left out.
        """
        row = range(len(self))[row]
        model = self._model
        contributed = self.contributions[row]
        order = np.argsort(-contributed, kind="stable")[:n_columns]
        least = LEAST_SHARE * contributed.sum()
        chosen = [
            int(j) for place, j in enumerate(order) if contributed[j] > 0 and (place == 0 or contributed[j] >= least)
        ]
        if not chosen:
            return []
        (values,) = _words.values_of(model.encoding, self._table, np.array([row]))
        return [_words.reason(model.encoding, j, values[j], model.sample.rows) for j in chosen]

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
    sample = _scaled(model, model.sample.rows)
    # Distances come out of a matrix product, which cancels far from the origin: most rows are near the median.
    middle = np.median(sample, axis=1, keepdims=True)
    sample -= middle
    by_column = np.empty((len(matrix), len(model.encoding.columns)))
    ratio = None if model.local_branch is None else np.empty(len(matrix))
    widest = max(len(sample), model.sample.places.shape[-1], BROAD_ROWS)
    step = max(64, BLOCK_NUMBERS // widest)

    def explain_block(start: int) -> None:
        block = slice(start, start + step)
        found = _of_block(model, matrix[block], sample, middle)
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


def _of_block(model: Model, block: NDArray[np.floating], sample: Floats, middle: Floats) -> Contributions:
    rows = _kernels.Rows(block, model.scaling, 1)
    scaled = rows.take(np.arange(len(block))) - middle
    total, ratio = np.zeros(scaled.shape), None
    local_weight = model.local_weight if model.global_branch is not None else 1.0
    if model.local_branch is not None and model.local_ranks is not None:
        branch, places = model.local_branch, model.sample.places
        scores = _kernels.view_scores(rows, branch)[: len(places)]
        evidence = _evidence(model.local_ranks, scores) * (local_weight / len(scores))
        _add_views(total, model, branch.views, evidence, scaled, sample, places, branch.n_neighbors)
        ratio = _distance_ratio(model.local_ranks, scores)
    if model.global_branch is not None and model.global_ranks is not None:
        scores = _kernels.view_scores(rows, model.global_branch)
        weight = 1.0 - local_weight if model.local_branch is not None else 1.0
        evidence = _evidence(model.global_ranks, scores) * (weight / len(scores))
        broad = _broad_places(sample.shape[1])
        n_nearest = max(1, round(BROAD_SHARE * len(broad)))
        places = np.broadcast_to(broad, (len(scores), len(broad)))
        _add_views(total, model, model.global_branch.views, evidence, scaled, sample, places, n_nearest)
    return Contributions(_folded(model.encoding, total).T, ratio)


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
    """Return the mean of (x_j - ref_j)^2 over each row's k nearest references after the projection, shape (m, b).

    From the mean and the mean square of these references, which are matrix products.
    """
    nearest = _nearest(rows.T @ projection, references.T @ projection, k)
    moments = np.concatenate((references, references**2)) @ nearest.T
    mean, mean_square = moments[: len(rows)], moments[len(rows) :]
    mean *= -2.0
    mean += rows
    mean *= rows
    mean_square *= (
        1.0 - ROUNDING
    )  # a column that separates nothing must be 0, not a rounding error that becomes a share
    mean += mean_square
    return np.maximum(mean, 0.0, out=mean)


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


def _folded(encoding: Encoding, total: Floats) -> Floats:
    """Add up the scaled columns (S * e, b) to the columns of the table (d, b)."""
    encoded = total.reshape(-1, len(encoding.fill), total.shape[1]).sum(axis=0)
    kept = np.array([bool(column.parts) for column in encoding.columns])
    by_column = np.zeros((len(kept), total.shape[1]))
    by_column[kept] = np.add.reduceat(encoded, encoding.starts[kept], axis=0)
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


def _distance_ratio(ranks: BranchRanks, distances: NDArray[np.float32]) -> Floats:
    """Return the distances (T, b) in units of the training rows' typical ones, as a geometric mean over views."""
    if len(ranks.standards):
        typical = np.exp(ranks.standards[: len(distances), 1].astype(np.float64))
    else:
        typical = np.array([np.interp(0.5, cdf.ranks, cdf.values) for cdf in ranks.views[: len(distances)]])
    typical = np.maximum(typical, np.finfo(np.float32).tiny)[:, None]
    ratio: Floats = np.exp(np.log(np.maximum(distances / typical, SMALLEST_RATIO)).mean(axis=0))
    return ratio
