"""The speed page: tables and plots of what `speed.measure` measured."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .._modelfile.atomic import write_whole, written_beside
from .figures import ACCENT, MUTED, OUR_COLOR, STYLE
from .labels import Label, write_end_labels
from .speed import FOREST, ROWS_OF_WIDE_TABLES
from .tables import OTHER_44

HOW_MEASURED = "All times are from one run of `rgld bench speed`. A time is the median of several repeats, right after a fit that is not counted; fewer repeats where they take more than a second."

MAX_EQUAL_DIFFERENCE = 0.05
"""Points of AUROC: if the means of both kernels differ by no more than this, they count as equal."""


def write_page(speed: dict[str, Any], out: Path) -> None:
    """Write the page, and its plots into a folder of the same name beside it."""
    folder = out.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    sections = (_head, _splits, _goals, _stages, _rows, _columns, _cold, _roofline)
    parts = [section(speed) for section in sections]
    _plots(speed, folder)
    write_whole(out, "\n\n".join(part for part in parts if part) + "\n")


def _means(speed: dict[str, Any], without: tuple[str, ...] = ()) -> dict[str, float]:
    """Return each detector's mean seconds over the splits, or over all but some."""
    tables = [table for name, table in speed["splits"].items() if name not in without]
    return {name: float(np.mean([table["seconds"][name] for table in tables])) for name in tables[0]["seconds"]}


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _ms(value: float) -> str:
    return f"{1000 * value:.1f}" if value < 0.1 else f"{1000 * value:,.0f}"


def _head(speed: dict[str, Any]) -> str:
    machine = speed["machine"]
    kernels = f"{machine['kernels']} kernels" + (f" ({machine['instruction_set']})" * bool(machine["instruction_set"]))
    return (
        "# Speed\n\nHow long RGLD and other detectors take to fit and score, and how much memory they need. `rgld bench speed` makes this page; do not edit it.\n\n"
        f"{HOW_MEASURED} rgld {machine['rgld']}, {kernels}, {machine['cores']} cores of {machine['cpu']} ({machine['processor']}), {machine['versions']}. "
        "Every detector has its own defaults: RGLD uses all cores, most others use one. `RGLD, one thread` is for a "
        "fair comparison per core." + (f" {speed['remark']}" if "remark" in speed else "")
    )


def _line(speed: dict[str, Any], detector: str, n_rows: int) -> dict[str, Any] | None:
    found = [x for x in speed["rows"] if x["detector"] == detector and x["rows"] == n_rows and not x.get("error")]
    return found[0] if found else None


def _goals(speed: dict[str, Any]) -> str:
    """Return the goals that the project set itself, and whether they are met."""
    means = _means(speed)

    def ratio(name: str, ours: str = "RGLD") -> float:
        return means[name] / means[ours]

    of_44 = _means(speed, OTHER_44)
    forest_44 = of_44[FOREST] / of_44["RGLD"]
    goal = "at least 8 x faster than scikit-learn's IsolationForest"
    found = f"{ratio(FOREST):.1f} x; {forest_44:.1f} x on the 44 datasets of the results page"
    rows: list[list[Any]] = [[goal, found, ratio(FOREST) >= 8]]
    if "ADERH" in means:
        rows.append(["at least 20 x faster than ADERH", f"{ratio('ADERH'):.1f} x", ratio("ADERH") >= 20])
    cheap = [name for name in ("COPOD", "ECOD", "LODA") if name in means]
    rows += [[f"faster than {name}", f"{ratio(name):.1f} x", ratio(name) > 1] for name in cheap]
    if "HBOS" in means:
        rows.append(["as fast as HBOS in the mean", f"{ratio('HBOS'):.2f} x", ratio("HBOS") >= 1])
        fast = ratio("HBOS", "RGLD-Fast")
        rows.append(["RGLD-Fast faster than HBOS in the mean", f"{fast:.2f} x", fast > 1])
    if "RGLD-plus" in means:
        plus, forest = means["RGLD-plus"] / means["RGLD"], ratio(FOREST, "RGLD-plus")
        plus_44 = of_44["RGLD-plus"] / of_44["RGLD"]
        rows.append(
            [
                "RGLD-plus takes at most 1.8 x the time of RGLD",
                f"{plus:.2f} x; {plus_44:.2f} x on the 44 datasets of the results page",
                max(plus, plus_44) <= 1.8,
            ]
        )
        rows.append(["RGLD-plus at least 3 x faster than IsolationForest", f"{forest:.1f} x", forest >= 3])
    if large := _line(speed, "RGLD", 10_000_000):
        took = large["fit"] + large["score"]
        rows.append(["10,000,000 x 20 float32 rows, fit + score, under 90 s", f"{took:.0f} s", took < 90])
        added = large["added_mb"]
        rows.append(["... with less than 1.5 GB above the table", f"{added / 1000:.2f} GB", added < 1500])
        if middle := _line(speed, "RGLD", 100_000):
            growth = took / 1e7 / ((middle["fit"] + middle["score"]) / 1e5)
            rows.append(["the same time per row at 1e5 and 1e7 rows", f"{growth:.2f} x", growth < 1.25])
    both = speed["kernels"]
    native, twin = (float(np.mean(both[kernels]["auroc"])) for kernels in ("native", "numpy"))
    states = np.reshape(both["native"]["auroc"], (-1, 3)).mean(axis=0)
    spread = float(states.max() - states.min())
    same = abs(native - twin) <= MAX_EQUAL_DIFFERENCE
    rows.append(
        [
            "as accurate as with the NumPy kernels",
            f"AUROC {native:.3f} against {twin:.3f}; three random states differ by {spread:.2f}",
            same,
        ]
    )
    small = speed["small"]
    one_row = small["one_row"]
    rows.append(["one row scored by a loaded model under 200 us", f"{1e6 * one_row:.0f} us", one_row < 2e-4])
    slowest = f"{1e6 * one_row:.0f} us (the slowest 1 %: {1e6 * small['one_row_99']:.0f} us or more)"
    rows[-1][1] = slowest
    imported = f"{small['import']:.2f} s; `from rgld import RGLD`, with scikit-learn: {small['import_class']:.2f} s"
    rows.append(["`import rgld` under 0.5 s", imported, small["import"] < 0.5])
    cells = [[goal, found, "met" if met else "**not met**"] for goal, found, met in rows]
    title = "## Goals\n\nThe goals that we set ourselves. Ratios are of mean times on the study's splits.\n\n"
    return title + _table(["goal", "measured", ""], [[str(cell) for cell in row] for row in cells])


def _splits(speed: dict[str, Any]) -> str:
    means = _means(speed)
    tables = speed["splits"]
    rows = []
    for name, mean in sorted(means.items(), key=lambda item: item[1]):
        values = [table["seconds"][name] for table in tables.values()]
        label = f"**{name}**" if name.startswith("RGLD") else name
        faster = np.mean([t["seconds"]["RGLD"] < t["seconds"][name] for t in tables.values()])
        percent = "" if name == "RGLD" else f"{100 * faster:.0f} %"
        rows.append([label, _ms(mean), _ms(float(np.median(values))), f"{means[FOREST] / mean:.1f}", percent])
    header = ["detector", "mean ms", "median ms", "x faster than IForest (mean)", "RGLD faster on"]
    wide = sorted(tables.items(), key=lambda item: -item[1]["columns"])[:3]
    words = ", ".join(f"{name} ({t['columns']} columns, {_ms(t['seconds']['RGLD'])} ms)" for name, t in wide)
    return (
        f"## On the study's splits\n\nMilliseconds to fit and score on {len(tables)} datasets, split seed 1 (at most 7000 rows to fit and 3000 to "
        f"score).\n\n{_table(header, rows)}\n\nIForest is scikit-learn's with 100 trees; isotree has the same settings. "
        "The wide tables decide the means, "
        f"the small ones the medians. RGLD is slowest on the widest tables: {words}. {_forest_by_size(tables)}\n\n"
        "![Time on the splits](speed/splits.png)"
    )


def _forest_by_size(tables: dict[str, Any]) -> str:
    """Return two sentences on how much faster than IForest RGLD is, for tables of each size."""

    def ratio(words: str, holds: Callable[[dict[str, Any]], bool]) -> str:
        own = [table["seconds"] for table in tables.values() if holds(table)]
        if not own:
            return f"(there are no {words})"
        return (
            f"{np.mean([t[FOREST] for t in own]) / np.mean([t['RGLD'] for t in own]):.1f} x on the {len(own)} {words}"
        )

    ratios = [
        ratio("tables of up to 2000 rows", lambda t: t["columns"] < 100 and t["rows"] <= 2000),
        ratio("tables of more rows", lambda t: t["columns"] < 100 and t["rows"] > 2000),
        ratio("tables of 100 columns or more", lambda t: t["columns"] >= 100),
    ]
    return (
        f"RGLD is faster than IForest by {ratios[0]}, {ratios[1]}, and {ratios[2]}. RGLD's work grows with rows times "
        "columns; that of a hundred trees on 256 rows each hardly depends on the table."
    )


def _stages(speed: dict[str, Any]) -> str:
    profiles = speed["stages"]
    names = list(next(iter(profiles.values())))
    totals = {shape: sum(stages.values()) for shape, stages in profiles.items()}
    rows = [[name, *(_ms(stages[name]) for stages in profiles.values())] for name in names]
    rows.append(["all", *(_ms(total) for total in totals.values())])
    numpy = np.mean(speed["kernels"]["numpy"]["seconds"]) / np.mean(speed["kernels"]["native"]["seconds"])
    return (
        "## Where the time goes\n\nMilliseconds to fit 70 % of the rows and score 30 %, repeated in one process.\n\n"
        f"{_table(['stage', *profiles], rows)}\n\n"
        f"{_why(speed, totals)}The NumPy kernels take {numpy:.1f} times as long on the study's splits."
    )


def _why(speed: dict[str, Any], totals: dict[str, float]) -> str:
    """Return what keeps it from being faster, by the profile."""
    means = _means(speed)
    profile = speed["stages"]
    big, wide = ("10000 x 20, all cores", "2000 x 500, all cores")
    if big not in totals or wide not in totals:
        return ""
    views = profile[big]["view scores, sorting, ranks"] / totals[big]
    gain = totals["10000 x 20, one thread"] / totals[big]
    python = profile[big]["drawing, checking and the rest, in Python"]
    share = means[FOREST] / 8 / means["RGLD"]
    missing = f"- 8 x faster than IForest in the mean would be {_ms(means[FOREST] / 8)} ms, {100 * share:.0f} % of RGLD's mean here.\n"
    forest = missing if share < 1 else ""
    return (
        "Why it is not faster:\n\n"
        f"- On a table of the protocol's full size, the view scores of the training rows and their sorting take {100 * views:.0f} % of the time (400 distances in each of ten views, "
        "400 cosines at four bandwidths, fifty sorts). They run near the limit of one core (see below), and a second core helps.\n"
        f"- In all, a second core gives only {gain:.2f} x the speed: the {_ms(python)} ms in Python, the drawing of views and the merging of sums and distributions "
        "stay on one thread.\n"
        f"{forest}- A wide table spends {_ms(profile[wide]['column statistics'] + profile[wide]['scaling'])} of {_ms(totals[wide])} ms on sorting its columns for their statistics and on scaling them. "
        "Trees and histograms need neither.\n\n"
        "What could still be gained: sort fewer columns (only the choice of the scaling needs all of them), sum the random features in fewer passes, "
        "take distributions from a sample of the training rows (as `RGLD.plus()` does; this would change scores).\n\n"
        "Tried, and not kept:\n\n"
        "- *References in a k-d tree*, rows sorted by its parts, and batches of references left out that are too far for all rows of a vector. Less than half of the distances are enough, and the scores are the same to the bit. "
        "But only views of 2 and 5 dimensions take less time. From 8 dimensions on, finding out what can be left out takes longer than computing it.\n"
        "- *Statistics and profiles of the columns on the other core* while this one draws the views. Starting a thread and taking turns in Python cost more than they save.\n"
        "- *Scoring in smaller pieces*, so that threads that begin later have less to do: the time is the same. So it is if Python's threads take turns more often while `RGLD.plus()` learns relations beside its views.\n\n"
    )


def _seconds(line: dict[str, Any]) -> str:
    return f"{line['fit'] + line['score']:.3g}"


def _growth_table(lines: list[dict[str, Any]], key: str, shown: Callable[[dict[str, Any]], str] = _seconds) -> str:
    sizes = sorted({line[key] for line in lines})
    names = list(dict.fromkeys(line["detector"] for line in lines))
    found = {(line["detector"], line[key]): line for line in lines}

    def cell(name: str, size: int) -> str:
        line = found.get((name, size))
        if line is None:
            return ""
        return "failed" if line.get("error") else shown(line)

    return _table(["detector", *(f"{size:,}" for size in sizes)], [[n, *(cell(n, s) for s in sizes)] for n in names])


def _rows(speed: dict[str, Any]) -> str:
    lines = [x for x in speed["rows"] if not x.get("error")]
    if not lines:
        return ""
    memory = [
        [x["detector"], f"{x['rows']:,}", f"{x['added_mb']:,.0f}"]
        for x in lines
        if x["rows"] == max(y["rows"] for y in lines if y["detector"] == x["detector"])
    ]
    return (
        "## Growth with the rows\n\nSeconds to fit and score the same float32 table of 20 columns, each detector in a process of its own. A "
        "detector that took more than ten seconds was not tried on a larger table. Each time is of one fit, so small times are rough.\n\n"
        f"{_growth_table(speed['rows'], 'rows')}\n\nPeak memory in addition to the table, for the largest table of each detector:\n\n"
        f"{_table(['detector', 'rows', 'MB'], memory)}\n\n![Growth](speed/growth.png)"
    )


def _columns(speed: dict[str, Any]) -> str:
    lines = speed["columns"]
    ours = [line for line in lines if line["detector"].startswith("RGLD") and not line.get("error")]
    memory = _growth_table(ours, "columns", lambda line: f"{line['added_mb']:,.0f}")
    return (
        f"## Growth with the columns\n\nSeconds to fit and score {ROWS_OF_WIDE_TABLES} rows, one fit each.\n\n"
        f"{_growth_table(lines, 'columns')}\n\nPeak memory in addition to the table, in MB:\n\n{memory}"
    )


def _cold(speed: dict[str, Any]) -> str:
    rows = [
        [name, f"{x['imports']:.2f}", _ms(x["first"]), f"{x['imports'] + x['first']:.2f}"]
        for name, x in sorted(speed["cold"].items(), key=lambda item: item[1]["imports"] + item[1]["first"])
    ]
    return (
        "## The first call in a new process\n\nA table of 5000 x 20. The process has imported NumPy and made the table; the clock starts before the detector is imported.\n\n"
        + _table(["detector", "imports s", "first fit + score ms", "together s"], rows)
        + "\n\nMost of the import time goes to scikit-learn and SciPy, which all detectors here but isotree need. HBOS and CBLOF compile code in the first call."
    )


def _roofline(speed: dict[str, Any]) -> str:
    roof = speed["roofline"]
    if not roof:
        return ""
    rows = []
    for name, stage in roof["stages"].items():
        rate = stage["operations"] / stage["seconds_per_row"]
        rows.append(
            [
                name,
                f"{stage['operations']:,}",
                f"{1e9 * stage['seconds_per_row']:.0f}",
                f"{rate / 1e9:.1f}",
                f"{100 * rate / roof['fused_per_second']:.0f} %",
            ]
        )
    total = sum(stage["seconds_per_row"] for stage in roof["stages"].values())
    traffic = roof["bytes_per_row"] / total / roof["bytes_per_second"]
    header = ["branch", "operations per row", "ns per row", "1e9 operations/s", "of the limit"]
    return (
        "## Against the machine's limit\n\nHow close scoring comes to what the processor can do: one thread, 20 columns, paper settings. Operations are counted in the source of the kernels "
        "(a fused multiply-add counts as one, a comparison of the neighbour search as two). The limit is the measured rate of independent fused "
        f"multiply-adds, {roof['fused_per_second'] / 1e9:.0f}e9 per second, with each lane of a vector counted. More than 100 % is "
        "possible, because differences, minima and maxima run on other units of the processor at the same time.\n\n"
        f"{_table(header, rows)}\n\nThe table is read at {100 * traffic:.2f} % of the measured memory rate "
        f"({roof['bytes_per_second'] / 1e9:.1f} GB/s): arithmetic limits the speed, not memory."
    )


def _plots(speed: dict[str, Any], folder: Path) -> None:
    import matplotlib.pyplot as plt

    with plt.style.context(STYLE):
        means = dict(sorted(_means(speed).items(), key=lambda item: -item[1]))
        figure, axes = plt.subplots(figsize=(6.4, 0.28 * len(means) + 0.9), layout="constrained")
        own, places = [1000 * value for value in means.values()], range(len(means))
        medians = [1000 * float(np.median([t["seconds"][name] for t in speed["splits"].values()])) for name in means]
        colors = [OUR_COLOR if name.startswith("RGLD") else MUTED for name in means]
        axes.hlines(places, medians, own, color=colors, lw=1.5)
        axes.scatter(own, places, color=colors, s=36, zorder=3)
        axes.scatter(medians, places, color=colors, s=100, zorder=3, marker="|", linewidths=1.8)  # taller than a dot
        axes.set_yticks(places, list(means))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set_xlabel(
            "milliseconds to fit and score (logarithmic)\n"
            "dot: mean over the splits; tick: median over the splits; the line joins the two"
        )
        axes.grid(axis="y", visible=False)
        _save(figure, folder / "splits")
        _save(growth(speed), folder / "growth")


def growth(speed: dict[str, Any]) -> Any:
    """Return a figure of the time of each detector over rows and over columns."""
    import matplotlib.pyplot as plt

    with plt.style.context(STYLE):
        figure, panels = plt.subplots(2, 1, figsize=(6.4, 8.6), layout="constrained")
        keys = ("rows", "columns")
        ends = [
            _growth_plot(p, [x for x in speed[k] if not x.get("error")], k) for p, k in zip(panels, keys, strict=True)
        ]
        for panel, labels in zip(panels, ends, strict=True):
            panel.set_ylabel("seconds to fit and score")
            write_end_labels(panel, labels)
    return figure


def _growth_plot(panel: Any, lines: list[dict[str, Any]], key: str) -> list[Label]:
    """Draw a line for each detector; return the labels of their ends."""
    ends = []
    for name in dict.fromkeys(line["detector"] for line in lines):
        own = [line for line in lines if line["detector"] == name]
        ours = name.startswith("RGLD")
        color = OUR_COLOR if ours else ACCENT if name in (FOREST, "HBOS") else MUTED
        x, y = [line[key] for line in own], [line["fit"] + line["score"] for line in own]
        style = {"RGLD-Fast": "--", "RGLD-plus": "-.", "RGLD-novelty": ":"}.get(name, "-")
        panel.plot(x, y, style, marker="o", markersize=3, color=color, lw=1.8 if ours else 1.0, zorder=3 if ours else 2)
        ends.append(Label(name, x[-1], y[-1], color))
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.margins(y=0.06)
    panel.set_xlim(left=min(line[key] for line in lines) / 1.5)
    panel.set_xlabel(f"{key} (20 columns)" if key == "rows" else f"{key} (2000 rows)")
    return ends


def _save(figure: Any, path: Path) -> None:
    import matplotlib.pyplot as plt

    with written_beside(path.with_suffix(".png")) as beside:
        figure.savefig(beside, format="png", dpi=150)
    with written_beside(path.with_suffix(".svg")) as beside:
        figure.savefig(beside, format="svg", metadata={"Date": None})
    plt.close(figure)
