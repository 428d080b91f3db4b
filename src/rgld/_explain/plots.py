"""Plots: why a row stands out, and all scores. The only module of the library that draws with matplotlib, which is
imported when a plot is asked for."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import Float64s

MAX_BARS = 8
"""Columns with a bar of their own; the others share one."""
MAX_LABEL_LENGTH = 26
ANOMALY, ORDINARY, INK, LINE = "#d6480b", "#8496b3", "#171c26", "#c4cad6"
"""Colours, as in the report."""


def plot_contributions(
    columns: Sequence[str], contributions: Float64s, values: Sequence[str], title: str, ax: Any
) -> Any:
    """Draw the contributions of a row as a waterfall: each bar begins where the one before ends, and the last shows
    their sum, the mean evidence."""
    order = np.argsort(-contributions, kind="stable")
    shown = [int(j) for j in order[:MAX_BARS] if contributions[j] > 0]
    sizes = [float(contributions[j]) for j in shown]
    labels = [f"{_short(columns[j])}\n= {_short(values[j]) or 'missing'}" for j in shown]
    rest = float(contributions.sum()) - sum(sizes)
    n_rest = int((contributions > 0).sum()) - len(shown)
    if n_rest:
        sizes.append(rest)
        labels.append(f"{n_rest:,} other column{'s' * (n_rest != 1)}")
    starts = np.concatenate(([0.0], np.cumsum(sizes)))
    whole = float(starts[-1])
    ax = _axes(ax, (7.0, 1.4 + 0.52 * (len(sizes) + 1)))
    places = np.arange(len(sizes))
    ax.barh(places, sizes, left=starts[:-1], color=ANOMALY, height=0.62, zorder=2)
    ax.barh([len(sizes)], [whole], color=ORDINARY, height=0.62, zorder=2)
    for place, start in zip(places, starts[1:], strict=True):  # from the end of a bar to the beginning of the next
        ax.plot([start, start], [place - 0.31, place + 1.31], color=LINE, linewidth=1.0, zorder=1)
    for i, (end, size) in enumerate(zip([*starts[1:], whole], [*sizes, whole], strict=True)):
        ax.annotate(f"{size:.2f}", (end, i), (5, 0), textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(np.arange(len(sizes) + 1), [*map(_plain, labels), "mean evidence"], fontsize=9)
    ax.set_ylim(len(sizes) + 0.6, -0.6)
    ax.set_xlim(0.0, max(whole, 1e-12) * 1.12)
    ax.set_xlabel("contribution to the evidence")
    ax.set_title(title, loc="left", fontsize=11)
    _clean(ax, left=True)
    return ax


def plot_scores(scores: Float64s, threshold: float | None, ax: Any) -> Any:
    """Draw the scores of all rows, from the highest to the lowest, with the threshold."""
    ax = _axes(ax, (7.0, 3.6))
    ordered = np.sort(scores)[::-1]
    ranks = np.arange(1, len(ordered) + 1)
    above = ordered > (np.inf if threshold is None else threshold)
    is_few = len(ordered) <= 2000
    for group, color in ((~above, ORDINARY), (above, ANOMALY)):
        style = {"marker": "o", "markersize": 3.5, "linestyle": "none"} if is_few else {"linewidth": 2.5}
        ax.plot(ranks[group], ordered[group], color=color, zorder=2, **style)
    if threshold is not None:
        ax.axhline(threshold, color=INK, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        said = f"threshold {threshold:.4g}: {int(above.sum()):,} of {len(ordered):,} above"
        ax.set_title(said, loc="right", fontsize=9)
    if len(ordered) >= 100:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_ylim(-0.02, 1.03)
    ax.set_xlabel("rank, 1 is the most anomalous")
    ax.set_ylabel("anomaly score")
    ax.set_title("Scores of all rows", loc="left", fontsize=11)
    _clean(ax, left=False)
    return ax


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plot needs matplotlib, which is not installed: pip install matplotlib") from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def _clean(ax: Any, *, left: bool) -> None:
    """Remove the lines of the frame that carry no information."""
    for side in ("top", "right", *(("left",) if left else ())):
        ax.spines[side].set_visible(False)
    ax.tick_params(length=0 if left else 3)
    ax.grid(axis="x" if left else "y", color=LINE, linewidth=0.5, alpha=0.6, zorder=0)
    ax.set_axisbelow(True)


def _short(text: str) -> str:
    line = "".join(character if character.isprintable() else " " for character in text)
    return line if len(line) <= MAX_LABEL_LENGTH else line[: MAX_LABEL_LENGTH - 1] + "…"


def _plain(text: str) -> str:
    """Return text that matplotlib does not read as a formula: it reads what stands between two dollar signs as one."""
    return text.replace("$", r"\$")
