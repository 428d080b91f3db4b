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
            if not (axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1):
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


def astray(figure):
    """Return the labels that are nearer to the point of another one and have no line to their own."""
    found = []
    for axes, boxes, points in drawn(figure):
        leaders = [line.get_xydata()[0] for line in axes.get_lines() if line.get_label() == "_leader"]
        starts = axes.transData.transform(np.reshape(leaders, (-1, 2)))
        for text in axes.texts:
            own, box = axes.transData.transform(text.xy), boxes[text.get_text()]
            distances = [np.hypot(*(np.clip(at, box.p0, box.p1) - at)) for at in (own, *points)]
            if min(distances) < distances[0] - 2 and not (np.abs(starts - own) < 1).all(axis=1).any():
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


def test_labels_of_lines_that_end_together():
    x = [10, 100, 1000]
    series = {f"Method-{i}": pd.DataFrame({"seconds": [0.1, 1.0, 10 + 0.01 * i]}, index=x) for i in range(12)}
    series["Short"] = pd.DataFrame({"seconds": [0.2, 2.0, np.nan]}, index=x)
    figure = figures.lines(series, "rows", ["seconds"], log_x=True, log_y=True)
    assert faults(figure) == []
    (_, boxes, _) = next(drawn(figure))
    heights = [boxes[f"Method-{i}"].y0 for i in range(12)]
    assert heights == sorted(heights), "labels have the order of the lines"


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
