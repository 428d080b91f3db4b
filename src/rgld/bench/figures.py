"""Figures: pure functions of tables. Each returns a Matplotlib figure.

All look alike: our detector in one strong colour, everything else muted; labels at the lines instead of legends where
there is room. Each says what it shows, because pictures travel without their page.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import friedmanchisquare, studentized_range

from rgld import RGLD

from .._kernels import Rows, view_scores
from .._model.ranks import normalized_rank
from .._modelfile.atomic import written_beside
from .labels import Label, write_end_labels, write_labels
from .synthetic import global_against_local, sparse_subspace, two_scales

OUR_COLOR, MUTED, ACCENT, DARK = "#c1272d", "#8a94a0", "#2f5d8a", "#3c4650"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e8eaed",
    "axes.axisbelow": True,
    "svg.hashsalt": "rgld",  # the same figure gives the same file
}


def _figure(width: float, height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False)[0]
    return figure, list(axes)


def _colour(method: str) -> str:
    return OUR_COLOR if method.startswith("RGLD") else MUTED


def _text_colour(method: str) -> str:
    return OUR_COLOR if method.startswith("RGLD") else DARK


ON_THE_FRONT = "on this line: no other method is both faster and more accurate"


def pareto(main: pd.DataFrame, measure: str = "auroc") -> Figure:
    """Return a plot of accuracy against runtime, with the Pareto front: no method is above it and to its left."""
    figure, (axes,) = _figure(7.5, 4.6)
    table = main.dropna(subset=[measure, "time"]).sort_values("time")
    axes.scatter(table["time"], table[measure], c=[_colour(m) for m in table.index], s=28, zorder=3)
    best = table[measure].cummax()
    front = table[table[measure] >= best]
    # The front as a line of its own corners: labels keep off it.
    corners = np.repeat(front["time"], 2)[1:], np.repeat(front[measure], 2)[:-1]
    axes.plot(*corners, color=ACCENT, linewidth=1, zorder=2, label=ON_THE_FRONT)
    # Above the axes, where no label can be.
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    axes.set_xscale("log")
    axes.margins(x=0.1, y=0.08)
    axes.set_xlabel("mean seconds to fit and score: processor time of one thread (logarithmic)")
    axes.set_ylabel(f"mean {measure.upper()} (%)")
    places = zip(table.index, table["time"], table[measure], strict=True)
    write_labels(axes, [Label(name, x, y, _text_colour(name)) for name, x, y in places])
    return figure


def critical_difference(scores: pd.DataFrame, measure: str, shown: str = "", alpha: float = 0.05) -> Figure:
    """Return a plot of the average ranks of methods. Bars beside their names join methods that do not differ by
    Nemenyi's test.

    `scores` is datasets x methods; larger is better. Datasets with a missing cell are left out. `measure` names the
    scores; `shown` says which methods are shown, if not all are.
    """
    complete = scores.dropna()
    n, k = complete.shape
    ranks = complete.rank(axis=1, ascending=False).mean().sort_values()
    p_value = friedmanchisquare(*(complete[c] for c in complete)).pvalue
    distance = studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n))
    figure, (axes,) = _figure(7.0, 0.24 * k + 1.2)
    _draw_groups(axes, _groups(ranks.to_numpy(), distance), ranks)
    _draw_ranks(axes, ranks)
    words = [
        f"average rank by {measure} over {n} datasets (1 is best; Friedman p = {p_value:.1g})",
        f"a bar joins methods that do not differ at {alpha:g} (critical distance {distance:.2f})",
    ]
    axes.set_xlabel("\n".join([*words, shown] if shown else words))
    return figure


def _draw_groups(axes: Axes, groups: list[tuple[int, int]], ranks: pd.Series) -> None:
    """Draw a bar for each group, left of the ranks, and set the limits to what is drawn."""
    step = max(float(ranks.max() - ranks.min()), 1.0) / 40.0
    left = float(ranks.min()) - (2 + len(groups)) * step
    for number, (first, last) in enumerate(groups):
        at = left + number * step
        axes.plot([at, at], [first - 0.3, last + 0.3], color=DARK, linewidth=2.5, solid_capstyle="butt", zorder=3)
    axes.set_xlim(left - step, float(ranks.max()) + 4 * step)


def _draw_ranks(axes: Axes, ranks: pd.Series) -> None:
    """Draw a dot and a figure for each rank; names stand in a column at the left."""
    places = range(len(ranks))
    colors = [_colour(str(method)) for method in ranks.index]
    axes.hlines(places, axes.get_xlim()[0], ranks, color=STYLE["grid.color"], linewidth=0.8, zorder=1)
    axes.scatter(ranks, places, c=colors, s=25, zorder=3)
    axes.set_yticks(places, [str(method) for method in ranks.index])
    axes.set_ylim(len(ranks) - 0.4, -0.6)
    for name, place, rank in zip(axes.get_yticklabels(), places, ranks, strict=True):
        color = _text_colour(name.get_text())
        name.set_color(color)
        figure = axes.annotate(f"{rank:.2f}", (rank, place), (6, 0), textcoords="offset points", va="center")
        figure.set(color=color, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(False)
    axes.spines["left"].set_visible(False)
    axes.set_xticks([tick for tick in axes.get_xticks() if ranks.min() <= tick <= ranks.max()])
    axes.spines["bottom"].set_bounds(ranks.min(), ranks.max())


def _groups(ranks: np.ndarray, distance: float) -> list[tuple[int, int]]:
    """Return the longest runs of methods whose ranks lie within the critical distance."""
    groups: list[tuple[int, int]] = []
    for first in range(len(ranks)):
        last = int(np.searchsorted(ranks, ranks[first] + distance, side="right")) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups


def lines(
    series: dict[str, pd.DataFrame], x_label: str, measures: Sequence[str], log_x: bool = False, log_y: bool = False
) -> Figure:
    """Return a figure with one panel per measure. Each series is a frame indexed by x, with the measures as columns."""
    many = len(series) > 1
    figure, axes = _figure((4.6 if many else 3.6) * len(measures), 3.6 if many else 3.0, len(measures))
    for panel, measure in zip(axes, measures, strict=True):
        for name, frame in series.items():
            values = frame[measure].dropna()
            ours = name.startswith("RGLD")
            style: dict[str, Any] = {"linewidth": 1.8 if ours else 1.0, "zorder": 3 if ours else 2}
            dashes = {"RGLD-Fast": "--", "RGLD-plus": "-."}.get(name, "-")
            panel.plot(
                values.index, values, dashes, marker="o", markersize=3.5, color=_colour(name), label=name, **style
            )
        if log_x:
            panel.set_xscale("log")
        if log_y:
            panel.set_yscale("log")
        panel.set_xlabel(x_label)
        panel.set_ylabel(
            {"auroc": "mean AUROC (%)", "auprc": "mean AUPRC (%)", "seconds": "seconds, fit and score"}.get(
                measure, measure
            )
        )
    if many:
        label_ends(axes[-1])
    return figure


def label_ends(axes: Axes) -> None:
    """Write each line's label beside its right end."""
    axes.margins(y=0.08)
    ends = []
    for line in axes.get_lines():
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        known = np.flatnonzero(np.isfinite(y))
        if len(known):
            name = str(line.get_label())
            ends.append(Label(name, x[known[-1]], y[known[-1]], _text_colour(name)))
    if axes.get_xscale() == "log":
        axes.set_xlim(left=min(np.min(line.get_xdata()) for line in axes.get_lines()) / 1.6)
    write_end_labels(axes, ends)


def difference_bars(comparison: pd.DataFrame, label: str) -> Figure:
    """Return a plot of our figures minus the paper's, by dataset, sorted."""
    values = comparison["difference"].sort_values()
    figure, (axes,) = _figure(7.5, 0.16 * len(values) + 0.9)
    axes.barh(values.index, values, color=[OUR_COLOR if v >= 0 else MUTED for v in values], height=0.7)
    axes.axvline(0, color=DARK, linewidth=0.8)
    axes.tick_params(axis="y", labelsize=6.5)
    axes.grid(axis="y", visible=False)
    axes.margins(y=0.01)
    axes.set_xlabel(label)
    return figure


def motivation_scales(seed: int = 0) -> Figure:
    """Return the first motivating example: a fine and a broad bandwidth find different anomalies, four bandwidths find
    both."""
    X, y = two_scales(seed=seed)
    settings = {
        "fine bandwidth (0.25)": (0.25,),
        "broad bandwidth (2)": (2.0,),
        "four bandwidths": (0.25, 0.5, 1.0, 2.0),
    }
    detectors = {
        name: RGLD(
            n_local_views=0,
            n_random_features=60,
            bandwidth_multipliers=value,
            preprocessing="standard",
            random_state=seed,
        )
        for name, value in settings.items()
    }
    return _score_maps(X, y, {name: d.fit(X).anomaly_score for name, d in detectors.items()}, ("gaps", "beyond"))


def motivation_branches(seed: int = 0) -> Figure:
    """Return the second motivating example: which anomalies the global branch finds, the local branch, and both."""
    X, y = global_against_local(seed=seed)
    common: dict[str, Any] = {"preprocessing": "standard", "random_state": seed}
    detectors = {
        "global branch": RGLD(n_local_views=0, n_random_features=60, **common),
        "local branch": RGLD(n_global_views=0, **common),
        "both": RGLD(n_random_features=60, **common),
    }
    return _score_maps(X, y, {name: d.fit(X).anomaly_score for name, d in detectors.items()}, ("clump", "hole"))


def _score_maps(X: np.ndarray, y: np.ndarray, scores: dict[str, Any], kinds: tuple[str, str]) -> Figure:
    """Return maps of the score over the plane. The two kinds of anomalies alternate in the table; each has an AUROC."""
    figure, axes = _figure(3.3 * len(scores), 3.1, len(scores))
    low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
    grid = [np.linspace(a, b, 70) for a, b in zip(low, high, strict=True)]
    points = np.stack(np.meshgrid(*grid), axis=-1)
    for panel, (name, score) in zip(axes, scores.items(), strict=True):
        heat = score(points.reshape(-1, 2)).reshape(points.shape[:2])
        panel.pcolormesh(*grid, heat, cmap="Blues", vmin=0, vmax=1, shading="auto", rasterized=True)
        panel.scatter(X[y == 0, 0], X[y == 0, 1], s=2, color=DARK, alpha=0.5, linewidths=0)
        panel.scatter(X[y == 1, 0], X[y == 1, 1], s=14, color=OUR_COLOR, edgecolors="white", linewidths=0.4)
        given = score(X)
        normal, anomalous = given[y == 0], given[y == 1]
        aurocs = [(part[:, None] > normal).mean() for part in (anomalous[::2], anomalous[1::2])]
        parts = ", ".join(f"{kind} {100 * auroc:.0f}" for kind, auroc in zip(kinds, aurocs, strict=True))
        panel.set_title(f"{name}\nAUROC: {parts}", fontsize=8)
        panel.grid(False)
        panel.set_xticks([])
        panel.set_yticks([])
    return figure


def motivation_views(seed: int = 0) -> Figure:
    """Return the third motivating example: whether one view finds an anomaly depends on its columns; many views find
    it."""
    X, y = sparse_subspace(n=800, seed=seed)
    informative = 3
    views: dict[str, Any] = {"n_global_views": 0, "n_references": 200, "preprocessing": "standard"}
    figure, (single, many) = _figure(7.5, 3.0, 2)
    # One detector with many views: each view has the scores that it would have in a detector of its own.
    detector = RGLD(n_local_views=120, random_state=seed, **views).fit(X)
    branch, ranks = detector.model_.local_branch, detector.model_.local_ranks
    assert branch is not None and ranks is not None, "the detector has a local branch"
    scores = zip(ranks.views, view_scores(Rows(X, detector.model_.scaling, 1), branch), strict=True)
    view_ranks = np.array([normalized_rank(cdf, score) for cdf, score in scores])
    found = 100.0 * (view_ranks[:, y == 1] > 0.95).mean(axis=1)
    held = (branch.views.features < informative).sum(axis=1)
    counts = np.unique(held)
    single.boxplot([found[held == count] for count in counts], tick_labels=[str(count) for count in counts])
    single.set_xlabel(f"informative columns in the view (of {informative} among {X.shape[1]})")
    sizes = [1, 2, 5, 10, 20, 40]
    means = [np.mean([_percent_found(view_ranks[k : k + n], y) for k in range(0, 120 - n + 1, n)]) for n in sizes]
    many.plot(sizes, means, "o-", color=OUR_COLOR, markersize=4)
    many.set_xlabel("number of views")
    for panel in (single, many):
        panel.set_ylabel("anomalies in the top 5 % (%)")
        panel.set_ylim(-4, 104)
    return figure


def _percent_found(view_ranks: np.ndarray, y: np.ndarray) -> float:
    """Return the percentage of the anomalies that are among the top 5 % of mean ranks."""
    means = view_ranks.mean(axis=0)
    return 100.0 * float((means[y == 1] > np.quantile(means, 0.95)).mean())


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG and SVG; the same figure gives the same files."""
    with matplotlib.rc_context(STYLE):
        with written_beside(path.with_suffix(".png")) as beside:
            figure.savefig(beside, format="png", dpi=160)
        with written_beside(path.with_suffix(".svg")) as beside:
            figure.savefig(beside, format="svg", metadata={"Date": None})
