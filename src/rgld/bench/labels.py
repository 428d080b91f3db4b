"""Labels of points and of lines: none covers a point or another label.

In: axes with everything drawn but the labels, and a label for each point. Out: annotations on the axes. Around a point,
places are tried from near to far, and the best free one is taken. Labels of lines stand in a column to the right of
their ends; that of a line that ends before the others, where these go on, is placed as that of a point. A label that is
not at its point, or that could be read as that of another point, gets a thin line to its own: a leader.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from .._arrays import Floats

FIRST_GAP, GAP_STEP, N_GAPS = 3.0, 3.0, 40
"""Points (1/72 inch) from a point's edge to its label: the nearest, the step to the next, how many are tried."""
LEADER_GAP = 3.0
"""A label farther than this from the edge of its point gets a leader ..."""
RIVAL = 2.0
"""... and so does a label with another point at less than this many times the distance of its own."""
SHORTEST_LEADER = 6.0
"""A label with a leader is at least this far from its point: a shorter line reads as a hyphen."""
END_GAP = 5.0
"""Points from the end of a line to its label; twice as many if there are leaders."""
MAX_MOVED = 2.0
"""If a label at the end of a line is moved by more points than this, all labels of the column get leaders."""
PADDING, LABEL_GAP = 1.0, 5.0
"""Points kept free around a label, and to its left and right: two names side by side must not be read as one."""
CROSSING = 12.0
"""A label with another point as near as its own, or a leader over something, counts as this many points farther away,
a label twice as near to the other point as twice as many ..."""
ON_A_LINE = 36.0
"""... and a label on a drawn line as this many: a leader is better than a word that is crossed out."""
N_PIECES = 12
"""Dots that a leader is checked with."""
SIDES = [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)]
CORNERS = [(x, y) for y in (1.0, -1.0, 0.5, -0.5) for x in (1.0, -1.0)]
LABEL_DIRECTIONS = [*SIDES, *CORNERS]
"""Where a label may be, seen from its point, in order of preference."""


class Label(NamedTuple):
    """A text and the point it belongs to, in the units of the axes."""

    text: str
    x: float
    y: float
    color: str


def write_labels(axes: Axes, labels: Sequence[Label], font_size: float = 7.5) -> None:
    """Write labels beside their points. If there is no free place at all, a label goes to the right of its point.

    Call it last: what is drawn later, or limits that change, are not seen.
    """
    _write_around(axes, labels, font_size, _settled(axes), np.empty((0, 4)))


def _write_around(axes: Axes, labels: Sequence[Label], font_size: float, pixels: float, taken: Floats) -> None:
    """Write labels beside their points, and off the boxes that are taken."""
    points, dots = _drawn(axes, pixels)
    taken = np.concatenate([points, taken])
    for label in labels:
        text = _text(axes, label, font_size)
        size = np.array(text.get_window_extent().size)
        at = np.asarray(axes.transData.transform((label.x, label.y)))
        place, needs_leader = _best_place(at, size, pixels, axes.bbox.extents, points, taken, dots)
        text.set_position(tuple((place - at) / pixels))
        if needs_leader:
            leader = _leader(at, place, size, pixels)
            _draw_leader(axes, leader, label.color)
            dots = np.concatenate([dots, leader])
        wide = size + np.array([2.0 * (LABEL_GAP - PADDING) * pixels, 0.0])
        taken = np.concatenate([taken, _boxes(place[None], wide, PADDING * pixels)])


def write_end_labels(axes: Axes, labels: Sequence[Label], font_size: float = 7.0) -> None:
    """Write the labels of lines to the right of their ends, in a column and in the order of the ends; those of lines
    that end before the last one, around their ends. The x axis ends where the labels do, its ticks where the lines do.
    Call it last, as `write_labels`."""
    if not labels:
        return
    pixels = _settled(axes)
    last = max(label.x for label in labels)
    column = sorted((label for label in labels if label.x == last), key=lambda label: label.y)
    texts = [_text(axes, label, font_size, ha="left") for label in column]
    _make_room(axes, texts, last, pixels)
    _end_ticks(axes, last)
    _place_column(axes, column, texts, pixels)
    taken = np.array([text.get_window_extent().extents for text in texts])
    _write_around(axes, [label for label in labels if label.x != last], font_size, pixels, taken)


def _make_room(axes: Axes, texts: Sequence[Annotation], last: float, pixels: float) -> None:
    """Set the right limit so that the texts just fit between the last point and the edge, in at most half the width."""
    left, right = axes.bbox.x0, axes.bbox.x1
    needed = max(text.get_window_extent().width for text in texts) + (2 * END_GAP + LABEL_GAP) * pixels
    share = (axes.transData.transform((last, 1.0))[0] - left) / (right - left - min(needed, (right - left) / 2))
    axes.set_xlim(right=axes.transData.inverted().transform((left + (right - left) * share, axes.bbox.y0))[0])


def _end_ticks(axes: Axes, last: float) -> None:
    """End the x axis and its ticks at the last value: there is nothing but labels beyond it."""
    first = axes.get_xlim()[0]
    for minor in (False, True):
        axes.set_xticks([tick for tick in axes.get_xticks(minor=minor) if first <= tick <= last], minor=minor)
    axes.spines["bottom"].set_bounds(first, last)


def _place_column(axes: Axes, column: Sequence[Label], texts: Sequence[Annotation], pixels: float) -> None:
    """Place the labels of lines that end at one x. They all have leaders or none has: they stand at one x, too."""
    ends = axes.transData.transform([(label.x, label.y) for label in column])
    gap = max(text.get_window_extent().height for text in texts) + PADDING * pixels
    # Not above the axes, where the figure ends.
    highest = axes.bbox.y1 - gap / 2 - gap * np.arange(len(column))[::-1]
    moved = (np.minimum(_apart(list(ends[:, 1]), gap), highest) - ends[:, 1]) / pixels
    leads = bool((np.abs(moved) > MAX_MOVED).any())
    for label, text, end, up in zip(column, texts, ends, moved, strict=True):
        text.set_position((2 * END_GAP if leads else END_GAP, up))
        if leads:
            leader = np.array([[END_GAP / 2, 0.0], [2 * END_GAP - 1, up]])
            _draw_leader(axes, end + pixels * leader, label.color)


def _apart(places: list[float], gap: float) -> list[float]:
    """Return the increasing places, moved so that neighbours are at least a gap apart and each group keeps its
    middle."""
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and np.mean(groups[-1]) - np.mean(groups[-2]) < gap * len(groups[-2] + groups[-1]) / 2:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [float(np.mean(group)) + gap * (i - (len(group) - 1) / 2) for group in groups for i in range(len(group))]


def _settled(axes: Axes) -> float:
    """Settle the layout, and with it where points are; return the pixels of a point (1/72 inch)."""
    figure = axes.figure
    assert isinstance(figure, Figure), "the axes are not in a subfigure"
    figure.draw_without_rendering()
    return float(figure.dpi) / 72.0


def _text(axes: Axes, label: Label, font_size: float, ha: str = "center") -> Annotation:
    text = axes.annotate(label.text, (label.x, label.y), (0, 0), textcoords="offset points", fontsize=font_size)
    text.set(color=label.color, va="center", ha=ha, in_layout=False)
    return text


def _drawn(axes: Axes, pixels: float) -> tuple[Floats, Floats]:
    """Return the boxes (left, bottom, right, top) of the markers, and dots along the lines, all in pixels."""
    boxes: list[Floats] = [np.empty((0, 4))]
    dots: list[Floats] = [np.empty((0, 2))]
    for line in axes.get_lines():
        at = _finite(axes.transData.transform(np.asarray(line.get_xydata(), dtype=float)))
        if line.get_marker() not in ("None", None, ""):
            boxes.append(_boxes(at, np.full(2, line.get_markersize() * pixels), 0.0))
        if line.get_linestyle() != "None":
            dots += [np.linspace(a, b, max(2, int(np.abs(b - a).max() / 2))) for a, b in pairwise(at)]
    for collection in axes.collections:
        at = _finite(axes.transData.transform(np.ma.filled(collection.get_offsets(), np.nan)))
        sizes: Any = getattr(collection, "get_sizes", lambda: [1.0])()
        boxes.append(_boxes(at, np.full(2, np.sqrt(np.max(sizes)) * pixels), 0.0))
    return np.concatenate(boxes), np.concatenate(dots)


def _finite(at: Floats) -> Floats:
    finite: Floats = at[np.isfinite(at).all(axis=1)]
    return finite


def _boxes(centers: Floats, size: Floats, padding: float) -> Floats:
    half = np.asarray(size) / 2 + padding
    return np.concatenate([centers - half, centers + half], axis=1)


def _best_place(
    at: Floats, size: Floats, pixels: float, frame: Any, points: Floats, taken: Floats, dots: Floats
) -> tuple[Floats, bool]:
    """Return the centre of the best free place of a label around its point, and whether it needs a leader: it is far
    from its point, or another one is about as near."""
    own = points[np.all((points[:, :2] <= at) & (at <= points[:, 2:]), axis=1)]
    radius = float(np.max(own[:, 2] - own[:, 0])) / 2 / pixels if len(own) else 0.0
    gaps = np.repeat(FIRST_GAP + GAP_STEP * np.arange(N_GAPS), len(LABEL_DIRECTIONS))
    toward = np.tile(np.array(LABEL_DIRECTIONS, dtype=float), (N_GAPS, 1))
    centers = at + toward * (size / 2 + (radius + gaps[:, None]) * pixels)
    boxes = _boxes(centers, size, PADDING * pixels)
    is_other = np.abs((points[:, :2] + points[:, 2:]) / 2 - at).max(axis=1) > pixels
    rivalry = _rivalry(boxes, at, ((points[:, :2] + points[:, 2:]) / 2)[is_other])
    leads = (_distances(boxes, at[None])[:, 0] > (radius + LEADER_GAP) * pixels) | (rivalry > 0.0)
    free = _inside(boxes, frame, PADDING * pixels) & ~_overlaps(boxes, taken).any(axis=1)
    free &= ~leads | (gaps >= SHORTEST_LEADER)
    if not free.any():
        return centers[0], False
    cost = gaps + 0.5 * np.tile(np.arange(len(LABEL_DIRECTIONS)), N_GAPS)
    cost += CROSSING * rivalry + ON_A_LINE * _hit(boxes, dots)
    obstacles = np.concatenate([_obstacles(points[is_other], dots, pixels), taken[len(points) :]])
    for i in np.flatnonzero(free & leads):
        leader = _leader(at, centers[i], size, pixels)
        outside = leader[np.linalg.norm(leader - at, axis=1) > (radius + PADDING) * pixels]
        cost[i] += CROSSING * float(_hit(obstacles, outside).any())
    best = int(np.where(free, cost, np.inf).argmin())
    return centers[best], bool(leads[best])


def _inside(boxes: Floats, frame: Any, margin: float) -> Any:
    """Return for each box whether it lies in the frame; the margin is for text that is wider at another resolution."""
    return np.all((boxes[:, :2] >= frame[:2] + margin) & (boxes[:, 2:] <= frame[2:] - margin), axis=1)


def _obstacles(points: Floats, dots: Floats, pixels: float) -> Floats:
    """Return the boxes that a leader should not touch: other points, with some room around them, and drawn lines."""
    room = 2.0 * PADDING * pixels * np.array([-1.0, -1.0, 1.0, 1.0])
    return np.concatenate([points + room, _boxes(dots, np.full(2, pixels), 0.0)])


def _rivalry(boxes: Floats, at: Floats, others: Floats) -> Any:
    """Return for each box of a label how many times as near as its own point another one is, 0 if that is far enough.

    A point just behind its own one, seen from the label, is far enough: two points that touch may have a label each, on
    either side.
    """
    own = _distances(boxes, at[None])
    other = _distances(boxes, others)
    apart = np.linalg.norm(others - at, axis=1)
    near = other < np.minimum(RIVAL * own, own + apart / 2)
    return np.where(near, own / np.maximum(other, 1.0), 0.0).max(axis=1, initial=0.0)


def _overlaps(boxes: Floats, others: Floats) -> Any:
    """Return for each box and each of the others whether they share area."""
    a, b = boxes[:, None], others[None]
    return np.all((a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:]), axis=2)


def _distances(boxes: Floats, at: Floats) -> Any:
    """Return the distance of each box to each point, 0 if it is inside."""
    nearest = np.clip(at[None], boxes[:, None, :2], boxes[:, None, 2:])
    return np.linalg.norm(nearest - at[None], axis=2)


def _hit(boxes: Floats, dots: Floats) -> Any:
    """Return for each box whether a dot lies in it."""
    return np.any(np.all((boxes[:, None, :2] < dots) & (dots < boxes[:, None, 2:]), axis=2), axis=1)


def _leader(at: Floats, place: Floats, size: Floats, pixels: float) -> Floats:
    """Return dots from a point to the nearest spot just before the edge of its label."""
    half = size / 2 + PADDING * pixels
    edge = np.clip(at, place - half, place + half)
    return np.linspace(at, edge, N_PIECES)


def _draw_leader(axes: Axes, leader: Floats, color: str) -> None:
    ends = axes.transData.inverted().transform(leader[[0, -1]])
    limits = axes.get_xlim(), axes.get_ylim()
    axes.plot(ends[:, 0], ends[:, 1], color=color, linewidth=0.5, zorder=1, label="_leader")
    axes.set(xlim=limits[0], ylim=limits[1])
