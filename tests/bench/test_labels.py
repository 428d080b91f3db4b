"""Labels on drawn figures: none covers a point or another label, and all are on the axes."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyod", reason="the study needs the extra 'bench'")
pytest.importorskip("pandas", reason="the study needs the extra 'bench'")

import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from rgld.bench import figures, labels, speedpage, tables
from rgld.bench.lines import read_lines
from rgld.bench.study import Study

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
DPI = 160  # what figures are saved with
FAR = 8.0  # points (1/72 inch) from the middle of a dot, which is at most 3 wide on either side


def drawn(figure):
    """Return the boxes of labels and the centres of points of each axes, in pixels, as they are saved."""
    figure.set_dpi(DPI)
    FigureCanvasAgg(figure).draw()  # the canvas of a bare figure draws nothing
    for axes in figure.axes:
        boxes = {t.get_text(): t.get_window_extent() for t in axes.texts if isinstance(t, Annotation)}
        lines = [line.get_xydata() for line in axes.get_lines() if line.get_marker() != "None"]
        points = [*lines, *(np.asarray(c.get_offsets()) for c in axes.collections)]
        yield axes, boxes, axes.transData.transform(np.concatenate(points))


def faults(figure):
    found = []
    for axes, boxes, points in drawn(figure):
        names = list(boxes)
        for i, name in enumerate(names):
            box = boxes[name]
            found += [f"{name} on {other}" for other in names[:i] if box.overlaps(boxes[other])]
            found += [f"{name} on the point {at}" for at in points if box.contains(*at)]
            if not (axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1 and box.y1 <= figure.bbox.y1):
                found.append(f"{name} beside the axes")
    return found


def crossed(figure):
    """Return the labels that a line runs through; lines from a label to its point do not count."""
    found = []
    for axes, boxes, _ in drawn(figure):
        for line in axes.get_lines():
            if line.get_linestyle() == "None" or line.get_label() == "_leader":
                continue
            at = axes.transData.transform(line.get_xydata())
            dots = np.concatenate([np.linspace(a, b, 500) for a, b in pairwise(at[np.isfinite(at).all(axis=1)])])
            found += [name for name, box in boxes.items() if any(box.contains(*dot) for dot in dots)]
    return found


def has_leader(axes, text):
    leaders = [line.get_xydata()[0] for line in axes.get_lines() if line.get_label() == "_leader"]
    starts = axes.transData.transform(np.reshape(leaders, (-1, 2)))
    return bool((np.abs(starts - axes.transData.transform(text.xy)) < 1).all(axis=1).any())


def astray(figure):
    """Return the labels without a leader that are far from their point, or about as near to another one, which is not
    just behind it."""
    found = []
    for axes, boxes, points in drawn(figure):
        for text in axes.texts:
            own, box = axes.transData.transform(text.xy), boxes[text.get_text()]
            others = points[np.abs(points - own).max(axis=1) > 1]
            distance, *distances = (np.hypot(*(np.clip(at, box.p0, box.p1) - at)) for at in (own, *others))
            limits = [min(1.2 * distance, distance + 0.4 * np.hypot(*(at - own))) for at in others]
            near = any(other < limit for other, limit in zip(distances, limits, strict=True))
            if (near or distance > FAR * DPI / 72) and not has_leader(axes, text):
                found.append(text.get_text())
    return found


def main_of(times, accuracies):
    names = ["RGLD", "RGLD-Fast", *(f"Method-{i}" for i in range(2, len(times)))]
    return pd.DataFrame({"time": times, "auroc": accuracies}, index=names)


TABLES = {
    "one": ([1.0], [50.0]),
    "all the same": ([1.0] * 8, [70.0] * 8),
    "a clump and one far away": (
        [1.0, 1.01, 1.02, 1.03, 1.04, 1.05, 100.0],
        [70.0, 70.1, 70.2, 70.3, 70.4, 70.5, 10.0],
    ),
    "a row": (np.geomspace(0.1, 0.5, 20), np.full(20, 77.0)),
    "a crowd": (10 ** np.random.default_rng(1).normal(size=30), np.random.default_rng(2).normal(75, 3, size=30)),
}


@pytest.mark.parametrize("name", TABLES)
def test_labels_of_points(name):
    table = main_of(*TABLES[name])
    figure = figures.pareto(table)
    assert faults(figure) == []
    assert astray(figure) == []


def test_a_label_between_two_points_has_a_leader():
    """The label of the middle point is next to it, and the point on its other side is not much farther away."""
    figure = Figure(figsize=(4.0, 3.0), layout="constrained")
    axes = figure.subplots()
    places = {"left": (0.3, 0.5), "ECOD": (0.43, 0.5), "right": (0.437, 0.5)}
    axes.scatter(*zip(*places.values(), strict=True), s=28)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    labels.write_labels(axes, [labels.Label("ECOD", *places["ECOD"], "black")])
    assert faults(figure) == []
    assert has_leader(axes, axes.texts[0])


def test_two_points_that_touch_have_a_label_on_either_side_and_no_leaders():
    figure = Figure(figsize=(4.0, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.scatter([0.5, 0.52], [0.5, 0.5], s=28)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    labels.write_labels(axes, [labels.Label(name, x, 0.5, "black") for name, x in (("one", 0.5), ("two", 0.52))])
    assert faults(figure) == [] and astray(figure) == []
    assert not any(has_leader(axes, text) for text in axes.texts)


def test_no_leader_runs_through_another_point():
    table = main_of([1.0, 1.03, 1.06], [70.0, 70.0, 70.0])
    figure = figures.pareto(table)
    axes, _, points = next(drawn(figure))
    for line in axes.get_lines():
        if line.get_label() == "_leader":
            start, stop = axes.transData.transform(line.get_xydata())
            others = points[np.abs(points - start).max(axis=1) > 1]
            dots = np.linspace(start, stop, 50)[10:]
            assert all(np.hypot(*(dots - at).T).min() > 5 for at in others)


def test_labels_of_lines_that_end_together():
    x = [10, 100, 1000]
    series = {f"Method-{i}": pd.DataFrame({"seconds": [0.1, 1.0, 10 + 0.01 * i]}, index=x) for i in range(12)}
    series["Short"] = pd.DataFrame({"seconds": [0.2, 2.0, np.nan]}, index=x)
    figure = figures.lines(series, "rows", ["seconds"], log_x=True, log_y=True)
    assert faults(figure) == []
    (_, boxes, _) = next(drawn(figure))
    heights = [boxes[f"Method-{i}"].y0 for i in range(12)]
    assert heights == sorted(heights), "labels have the order of the lines"
    leaders = [line for line in figure.axes[0].get_lines() if line.get_label() == "_leader"]
    assert len(leaders) >= 12, "one label of the column has a leader, so all have"
    assert len({round(boxes[f"Method-{i}"].x0) for i in range(12)}) == 1


@pytest.mark.parametrize("log_x", [True, False])
def test_the_axis_of_lines_ends_at_the_data(log_x):
    x = [10, 100, 1000]
    series = {f"Method-{i}": pd.DataFrame({"seconds": [1.0, 2.0, 3.0 + i]}, index=x) for i in range(3)}
    figure = figures.lines(series, "rows", ["seconds"], log_x=log_x)
    assert faults(figure) == []
    (axes, boxes, _) = next(drawn(figure))
    assert max([*axes.get_xticks(), *axes.get_xticks(minor=True)]) <= 1000
    assert axes.spines["bottom"].get_bounds()[1] == 1000
    empty = axes.bbox.x1 - max(box.x1 for box in boxes.values())
    assert empty < 0.05 * axes.bbox.width, "labels end at the edge"


def test_the_label_of_a_line_that_ends_among_others_is_not_crossed_out():
    x = np.array([10.0, 100.0, 1000.0])
    series = {f"Method-{i}": pd.DataFrame({"seconds": 0.1 * (1 + i) * x}, index=x) for i in range(4)}
    series["Short"] = pd.DataFrame({"seconds": [2.0, 25.0, np.nan]}, index=x)
    figure = figures.lines(series, "rows", ["seconds"], log_x=True, log_y=True)
    assert faults(figure) == []
    assert crossed(figure) == []


def test_a_fault_is_found():
    """The check of this file sees what it looks for: labels written without care fail it."""
    figure = Figure()
    axes = figure.subplots()
    axes.scatter([0, 0.01], [0, 0])
    for x in (0, 0.01):
        axes.annotate("Label", (x, 0))
        axes.annotate("Other", (x, 0))
    assert faults(figure)


def test_a_label_that_finds_no_place_is_written_all_the_same():
    figure = Figure(figsize=(1.0, 1.0), layout="constrained")
    axes = figure.subplots()
    axes.scatter([0, 1], [0, 1])
    labels.write_labels(axes, [labels.Label("much wider than the axes are", 0, 0, "black")])
    assert len(axes.texts) == 1


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the lines are not in this copy of the project")
@pytest.mark.parametrize("measure", ["auroc", "auprc"])
def test_the_published_plots(measure):
    study = Study(read_lines(RESULTS))
    pareto = figures.pareto(tables.main_table(study.cells_44), measure)
    assert faults(pareto) == [] and astray(pareto) == [] and crossed(pareto) == []
    for variable in "nd":
        assert faults(figures.lines(study.scaling(variable), variable, ["seconds"], log_x=True, log_y=True)) == []
        assert crossed(figures.lines(study.scaling(variable), variable, ["seconds"], log_x=True, log_y=True)) == []


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the lines are not in this copy of the project")
def test_the_published_plot_of_growth():
    figure = speedpage.growth(json.loads((RESULTS / "speed.json").read_bytes()))
    assert faults(figure) == []
    assert crossed(figure) == []
