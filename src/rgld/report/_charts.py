"""Charts: the score distribution, the scatter chart and the map, as numbers to draw.

In: scores, contributions and encoded rows. Out: plain data: axes with ticks, bins, points. A chart draws all rows of
the page's table and some of the others, chosen at random; it says how many.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _kernels
from .._arrays import Bools, Float64s, Floats, Indices
from .._explain.explanation import Explanation
from .._model.model import Model
from .._model.ranks import STANDARD_BOUNDS, BranchRanks, Cdf
from .._table.encoding import Encoding
from .._table.shown import fine_percent
from ._axes import Ticks, bin_edges, linear_ticks, log_ticks, tail, tail_ticks
from ._text import LONGEST_LABEL, count_of, visible

MAX_ORDINARY = 1500
"""At most this many ordinary rows are drawn. More would only make the cloud darker."""
MAX_FLAGGED = 500
"""At most this many rows above the threshold are drawn, in addition to the rows of the page's table."""
N_SCORE_BINS = 60
POSITION_DECIMALS = 4
"""Decimals of positions: finer than a pixel."""
MIN_LOADING = 0.1
"""An axis of the map names the columns with at least this fraction of its squared loadings."""
MAX_PAIR_LENGTH = 26
"""Characters of the column names at an axis of the map: there is no room for more."""
RATIO_RANGE = (0.05, 1e6)
"""Distance ratios outside this range are drawn at its ends."""


@dataclass(frozen=True)
class Drawn:
    """Which rows a chart draws."""

    top: Indices
    """Indices of the rows in the page's table, the highest score first."""
    flagged: Indices
    """Other rows above the threshold, at most `MAX_FLAGGED`, chosen at random."""
    ordinary: Indices
    """Rows that are neither, at most `MAX_ORDINARY`, chosen at random."""
    note: str
    """How many rows of each group are drawn."""

    @property
    def rows(self) -> Indices:
        """Indices of all drawn rows, in this order."""
        return np.concatenate((self.top, self.flagged, self.ordinary))


def draw_rows(top: Indices, is_flagged: Bools) -> Drawn:
    """Return the rows to draw. The same table gives the same rows."""
    rng = np.random.default_rng(0)
    others = np.ones(len(is_flagged), bool)
    others[top] = False
    flagged, ordinary = np.flatnonzero(others & is_flagged), np.flatnonzero(others & ~is_flagged)
    drawn_flagged, drawn_ordinary = _some(rng, flagged, MAX_FLAGGED), _some(rng, ordinary, MAX_ORDINARY)
    n_drawn = len(top) + len(drawn_flagged) + len(drawn_ordinary)
    note = f"All {count_of(n_drawn, 'row')} are drawn."
    if n_drawn < len(is_flagged):
        note = (
            f"Drawn are the {count_of(len(top), 'row')} of the table below, "
            f"{_n_of(len(drawn_flagged), len(flagged))} other rows above the threshold and "
            f"{_n_of(len(drawn_ordinary), len(ordinary))} other rows, chosen at random."
        )
    return Drawn(top, drawn_flagged, drawn_ordinary, note)


def _some(rng: np.random.Generator, rows: Indices, most: int) -> Indices:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _n_of(n: int, whole: int) -> str:
    return f"{n:,} of {whole:,}" if n < whole else f"all {n:,}" if n else "no"


def score_chart(model: Model, scores: Float64s, threshold: float) -> dict[str, Any]:
    """Return a histogram of the scores, with the threshold.

    The score of a detector with one branch is a rank. Among the training rows all ranks are equally frequent, so that a
    histogram of them shows nothing. The chart then shows the quantity that is ranked: the mean over the views.
    """
    branches = [ranks for ranks in (model.global_ranks, model.local_ranks) if ranks is not None]
    if len(branches) == 2:
        values, at, bounds = scores, threshold, (0.0, 1.0)
        label = "anomaly score"
        note = "The score is the mean of two ranks, broadly rare and locally isolated; 1 is the most anomalous."
    else:
        values, at, label = _ranked_quantity(branches[0], scores, threshold)
        bounds = (min(float(values.min()), at), max(float(values.max()), at))
        note = (
            "The score is the rank of this quantity among the training rows: a score of 0.95 means further out than "
            "95 % of them."
        )
    edges = bin_edges(*(bounds if bounds[1] > bounds[0] else (bounds[0] - 0.5, bounds[1] + 0.5)), N_SCORE_BINS)
    low, high = float(edges[0]), float(edges[-1])
    counts = np.histogram(values, edges)[0]
    above = np.histogram(values[scores > threshold], edges)[0]
    return {
        "low": low,
        "high": high,
        "counts": counts.tolist(),
        "above": above.tolist(),
        "threshold": at if low <= at <= high else None,
        "threshold_text": f"threshold {threshold:.4g}",
        "ticks": linear_ticks(low, high),
        "label": label,
        "note": f"All {count_of(len(scores), 'row')}. {note}",
    }


def _ranked_quantity(branch: BranchRanks, scores: Float64s, threshold: float) -> tuple[Float64s, float, str]:
    """Return the quantity whose rank is the score, at the scores and at the threshold, and its name."""
    assert branch.branch is not None, "a fitted model has the distributions of its branches"
    values = unranked(branch.branch, scores)
    at = float(unranked(branch.branch, np.array([threshold]))[0])
    if len(branch.standards):
        return values.clip(*STANDARD_BOUNDS), at, "standard deviations above the mean, over all views"
    return values.clip(0.0, 1.0), at, "mean rank over all views"


def unranked(cdf: Cdf, ranks: Float64s) -> Float64s:
    """Return the scores that have these ranks: the inverse of `normalized_rank`.

    Beyond the training scores it is bounded to one range of them.
    """
    values: Float64s = np.interp(ranks, cdf.ranks, cdf.values)
    edge = 0.5 / cdf.n_rows
    unit = float(cdf.values[-1] - cdf.values[0]) or 1.0
    above, below = ranks > cdf.ranks[-1], ranks < cdf.ranks[0]
    with np.errstate(over="ignore", divide="ignore"):
        values[above] += unit * np.expm1(edge / (1.0 - ranks[above]) - 1.0).clip(0.0, 1.0)
        values[below] -= unit * np.expm1(edge / ranks[below] - 1.0).clip(0.0, 1.0)
    return values


def scatter_chart(found: Explanation, drawn: Drawn) -> dict[str, Any]:
    """Return the global score against the local score; `found` explains the drawn rows, in their order.

    A detector with one branch has one of them only. It is drawn against the largest contribution of a single column.
    """
    if found.global_score is not None and found.local_score is not None:
        x, y = tail(found.global_score), tail(found.local_score)
        high = max(float(x.max()), float(y.max()), 2.0)
        return {
            "title": "Broadly rare, or locally isolated?",
            "x": _axis("broadly rare (rank)", 0.0, high, tail_ticks(high)),
            "y": _axis("locally isolated (rank)", 0.0, high, tail_ticks(high)),
            "points": _points(x, y, drawn),
            "note": "Right: in a sparse region of the whole table. Up: far from its nearest rows. The axes are "
            "stretched towards 1.",
        }
    return _one_branch_chart(found, drawn)


def _one_branch_chart(found: Explanation, drawn: Drawn) -> dict[str, Any]:
    """Return how far out rows are against the largest contribution of a single column."""
    if found.distance_ratio is None:
        x = tail(found.anomaly_score)
        high = max(float(x.max()), 2.0)
        x_axis = _axis("broadly rare (rank)", 0.0, high, tail_ticks(high))
        words = "Right: in a sparse region of the table."
    else:
        x = np.log10(found.distance_ratio.clip(*RATIO_RANGE))
        low, high = float(x.min()), float(x.max())
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
        x_axis = _axis("distance to the nearest rows (1 = typical)", low, high, log_ticks(low, high))
        words = "Right: far from its nearest rows."
    return {
        "title": "How far out, and from how many columns",
        "x": x_axis,
        "y": _axis("part of the strongest column", 0.0, 1.0, [(i / 4, f"{25 * i} %") for i in range(5)]),
        "points": _points(x, found.shares().max(axis=1), drawn),
        "note": f"{words} Up: because of one column. Down: because of many. This detector has one branch, so there is "
        "no second kind of evidence to draw it against.",
    }


def map_chart(model: Model, matrix: Floats, drawn: Drawn) -> dict[str, Any]:
    """Return the drawn rows in two dimensions: the first two principal components of their scaled columns.

    The columns are scaled and weighted as the detector sees them. An arcsinh keeps the most extreme rows on the map.
    """
    from sklearn.utils.extmath import randomized_svd  # imported here: it takes long, and only this chart needs it

    rows = np.ascontiguousarray(matrix[drawn.rows])
    scaled = _kernels.Rows(rows, model.scaling, 1).take(np.arange(len(rows))).astype(np.float64)
    n_scalings = len(model.scaling.kinds)
    points = (np.arcsinh(scaled) * np.tile(model.encoding.weights, n_scalings)[:, None]).T
    points -= points.mean(axis=0)
    n_components = min(2, *points.shape)
    left, sizes, directions = randomized_svd(points, n_components, random_state=0)
    places = np.zeros((len(rows), 2))
    places[:, :n_components] = left * sizes
    whole = float(np.square(points).sum()) or 1.0
    covered = float(np.square(sizes).sum()) / whole
    labels = [*(_direction_words(model.encoding, direction) for direction in directions), ""]
    return {
        "x": _axis(labels[0], *_padded(places[:, 0]), []),
        "y": _axis(labels[1], *_padded(places[:, 1]), []),
        "points": _points(places[:, 0], places[:, 1], drawn),
        "note": f"Similar rows are close together. The two axes are principal components of the scaled columns and "
        f"hold {fine_percent(covered)} of their spread, so a row can be unusual without standing apart here.",
    }


def _direction_words(encoding: Encoding, direction: Float64s) -> str:
    """Return the names of the one or two columns with the largest loadings in a direction of the map."""
    owner = np.tile(encoding.owner, len(direction) // len(encoding.owner))
    loading = np.bincount(owner, np.square(direction), minlength=len(encoding.columns))
    named = [j for j in np.argsort(-loading, kind="stable")[:2] if loading[j] >= MIN_LOADING]
    names = [visible(encoding.columns[j].name, LONGEST_LABEL) for j in named]
    if sum(map(len, names)) > MAX_PAIR_LENGTH:
        names = [visible(names[0], MAX_PAIR_LENGTH)]
    return f"mostly {' and '.join(names)}" if names else "many columns together"


def _padded(values: Float64s) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = 0.04 * (high - low) or 0.5
    return low - pad, high + pad


def _axis(label: str, low: float, high: float, ticks: Ticks) -> dict[str, Any]:
    return {"label": label, "low": low, "high": high, "ticks": ticks}


def _points(x: Float64s, y: Float64s, drawn: Drawn) -> dict[str, list[list[float]]]:
    """Return the points of the three groups of rows."""
    pairs = np.column_stack((x, y)).round(POSITION_DECIMALS).tolist()
    first, second = len(drawn.top), len(drawn.top) + len(drawn.flagged)
    return {"top": pairs[:first], "flagged": pairs[first:second], "ordinary": pairs[second:]}
