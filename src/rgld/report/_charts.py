"""Charts: the score distribution, the scatter and the map, as numbers to draw.

In: scores, contributions and encoded rows. Out: plain data: axes with ticks, bins, points. A chart draws a sample of
the ordinary rows and says so; the rows of the page's table are all in it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from .. import _kernels
from .._encoding import Encoding
from .._explain import Explanation
from .._model import Model
from .._ranks import STANDARD_BOUNDS, Cdf
from ._axes import Ticks, linear_ticks, log_ticks, tail, tail_ticks
from ._text import LONGEST_LABEL, count_of, percent, short

Floats = NDArray[np.float64]

DRAWN_ORDINARY = 1500
"""Ordinary rows drawn: more would only darken the cloud."""
DRAWN_FLAGGED = 500
"""Rows above the threshold drawn beside those of the table."""
SCORE_BINS = 60
DECIMALS = 4
"""Of positions: finer than a pixel."""
LEAST_LOADING = 0.1
"""A column with a smaller part in an axis of the map is not named there."""
LONGEST_PAIR = 26
"""Characters of the names beside an axis of the map, which has room for so many."""
RATIO_RANGE = (0.05, 1e6)
"""Distance ratios are drawn within these."""


@dataclass(frozen=True)
class Drawn:
    """Which rows a chart draws."""

    top: NDArray[np.intp]
    """The rows of the page's table, the highest score first."""
    flagged: NDArray[np.intp]
    """Others above the threshold, or a sample of them."""
    ordinary: NDArray[np.intp]
    """A sample of the rows that are neither."""
    note: str
    """What was drawn of what there is."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """All of them, in this order."""
        return np.concatenate((self.top, self.flagged, self.ordinary))


def draw_rows(top: NDArray[np.intp], is_flagged: NDArray[np.bool_]) -> Drawn:
    """Choose the rows to draw; the same table gives the same choice."""
    rng = np.random.default_rng(0)
    others = np.ones(len(is_flagged), bool)
    others[top] = False
    flagged, ordinary = np.flatnonzero(others & is_flagged), np.flatnonzero(others & ~is_flagged)
    drawn_flagged, drawn_ordinary = _some(rng, flagged, DRAWN_FLAGGED), _some(rng, ordinary, DRAWN_ORDINARY)
    n_drawn = len(top) + len(drawn_flagged) + len(drawn_ordinary)
    note = f"All {count_of(n_drawn, 'row')} are drawn."
    if n_drawn < len(is_flagged):
        note = (
            f"Drawn are the {count_of(len(top), 'row')} of the table below, "
            f"{_part(len(drawn_flagged), len(flagged))} other rows above the threshold and "
            f"{_part(len(drawn_ordinary), len(ordinary))} others, chosen at random."
        )
    return Drawn(top, drawn_flagged, drawn_ordinary, note)


def _some(rng: np.random.Generator, rows: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _part(n: int, whole: int) -> str:
    return f"{n:,} of {whole:,}" if n < whole else f"all {n:,}" if n else "no"


def score_chart(model: Model, scores: Floats, threshold: float) -> dict[str, Any]:
    """Return the distribution of the scores and the threshold in it.

    A detector with one branch scores by a rank: of training rows every score is equally frequent, and a histogram of
    them says nothing. It shows what is ranked instead, the mean over the views.
    """
    single = [ranks for ranks in (model.global_ranks, model.local_ranks) if ranks is not None]
    if len(single) == 2:
        values, at, bounds = scores, threshold, (0.0, 1.0)
        label = "anomaly score"
        note = "The score is the mean of two ranks, broadly rare and locally isolated; 1 is the most anomalous."
    else:
        (ranks,) = single
        at = float(unranked(ranks.branch, np.array([threshold]))[0])
        values = unranked(ranks.branch, scores)
        if len(ranks.standards):
            label = "standard deviations above the mean, over all views"
            values = values.clip(*STANDARD_BOUNDS)
        else:
            label = "mean rank over all views"
            values = values.clip(0.0, 1.0)
        bounds = (min(float(values.min()), at), max(float(values.max()), at))
        note = (
            "The score is the rank of this quantity among the training rows, so a score of 0.95 means: further out "
            "than 95 % of them."
        )
    low, high = bounds if bounds[1] > bounds[0] else (bounds[0] - 0.5, bounds[1] + 0.5)
    counts, edges = np.histogram(values, SCORE_BINS, (low, high))
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


def unranked(cdf: Cdf, ranks: Floats) -> Floats:
    """Return the scores that have these ranks: the inverse of `normalized_rank`, within a range beyond the training
    scores."""
    values: Floats = np.interp(ranks, cdf.ranks, cdf.values)
    edge = 0.5 / cdf.n_rows
    unit = float(cdf.values[-1] - cdf.values[0]) or 1.0
    above, below = ranks > cdf.ranks[-1], ranks < cdf.ranks[0]
    with np.errstate(over="ignore", divide="ignore"):
        values[above] += unit * np.expm1(edge / (1.0 - ranks[above]) - 1.0).clip(0.0, 1.0)
        values[below] -= unit * np.expm1(edge / ranks[below] - 1.0).clip(0.0, 1.0)
    return values


def scatter_chart(found: Explanation, drawn: Drawn) -> dict[str, Any]:
    """Return the two kinds of evidence against each other; `found` explains the drawn rows, in their order.

    With one branch there is one kind of evidence: it is drawn against how much of it comes from a single column.
    """
    if found.global_score is not None and found.local_score is not None:
        x, y = tail(found.global_score), tail(found.local_score)
        high = max(float(x.max()), float(y.max()), 2.0)
        return {
            "title": "Broadly rare, or locally isolated?",
            "x": _axis("broadly rare (rank)", 0.0, high, tail_ticks(high)),
            "y": _axis("locally isolated (rank)", 0.0, high, tail_ticks(high)),
            "points": _points(x, y, drawn),
            "note": "Right: in a thin region of the whole table. Up: far from the rows that are nearest. The axes are "
            "stretched towards 1.",
        }
    share = found.shares().max(axis=1)
    if found.distance_ratio is None:
        x = tail(found.anomaly_score)
        high = max(float(x.max()), 2.0)
        x_axis = _axis("broadly rare (rank)", 0.0, high, tail_ticks(high))
        words = "Right: in a thin region of the table."
    else:
        x = np.log10(found.distance_ratio.clip(*RATIO_RANGE))
        low, high = float(x.min()), float(x.max())
        low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
        x_axis = _axis("distance to the nearest rows (1 = typical)", low, high, log_ticks(low, high))
        words = "Right: far from the rows that are nearest."
    return {
        "title": "How far out, and from how many columns",
        "x": x_axis,
        "y": _axis("part of the strongest column", 0.0, 1.0, [(i / 4, f"{25 * i} %") for i in range(5)]),
        "points": _points(x, share, drawn),
        "note": f"{words} Up: because of one column. Down: because of many. This detector has one branch, so there is "
        "no second kind of evidence to draw it against.",
    }


def map_chart(model: Model, matrix: NDArray[np.floating], drawn: Drawn) -> dict[str, Any]:
    """Return the drawn rows in two dimensions: the first two principal components of their scaled columns.

    The columns are scaled and weighted as the detector sees them; a last arcsinh keeps the most extreme rows on the
    map.
    """
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
        "note": f"Rows that are alike lie close together. The two axes are principal components of the scaled columns "
        f"and hold {percent(covered)} of their spread, so a row can be unusual without standing apart here.",
    }


def _direction_words(encoding: Encoding, direction: Floats) -> str:
    """Return the columns that a direction among the scaled columns follows most, at most two."""
    owner = np.tile(encoding.owner, len(direction) // len(encoding.owner))
    loading = np.bincount(owner, np.square(direction), minlength=len(encoding.columns))
    named = [j for j in np.argsort(-loading, kind="stable")[:2] if loading[j] >= LEAST_LOADING]
    names = [short(encoding.columns[j].name, LONGEST_LABEL) for j in named]
    if sum(map(len, names)) > LONGEST_PAIR:
        names = [short(names[0], LONGEST_PAIR)]
    return f"mostly {' and '.join(names)}" if names else "many columns together"


def _padded(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    pad = 0.04 * (high - low) or 0.5
    return low - pad, high + pad


def _axis(label: str, low: float, high: float, ticks: Ticks) -> dict[str, Any]:
    return {"label": label, "low": low, "high": high, "ticks": ticks}


def _points(x: Floats, y: Floats, drawn: Drawn) -> dict[str, list[list[float]]]:
    """Return the points of the three groups of rows."""
    pairs = np.column_stack((x, y)).round(DECIMALS).tolist()
    first, second = len(drawn.top), len(drawn.top) + len(drawn.flagged)
    return {"top": pairs[:first], "flagged": pairs[first:second], "ordinary": pairs[second:]}
