"""Tables: pure functions of the lines.

In: lines of runs, the paper's figures. Out: data frames; `markdown` turns one into text. Our figures and the paper's
are never mixed without a mark: `Cells` says for every cell where it comes from.

Conventions of the paper: if several methods tie at the maximum, each of them wins. The average rank is the mean of the
average AUROC rank and the average AUPRC rank over datasets. Missing cells are skipped, and the number of datasets is
shown.
"""

from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import rankdata, wilcoxon

from .detectors import registry as detector_registry
from .lines import Line
from .specs import parse_spec

MEASURES = ("auroc", "auprc", "seconds")
OTHER_44 = ("census", "fraud", "speech")
"""Means over "the 44" leave these out: two datasets were rebuilt, one was not available."""


def frame_of(lines: Iterable[Line]) -> pd.DataFrame:
    """Return the successful runs as rows of a frame. `method` is the detector without its random state, `seconds` is
    the processor time to fit and score: unlike wall time, it hardly depends on what else the machine does."""
    rows = []
    for line in lines:
        if line.get("error"):
            continue
        spec = parse_spec(line["detector"])
        state = spec.settings.pop("random_state", None)
        settings = ", ".join(f"{name}={value}" for name, value in spec.settings.items())
        method = f"{spec.name}({settings})" if settings else spec.name
        seconds = line.get("cpu_seconds", line["fit_seconds"] + line["score_seconds"])  # brief lines have no other
        rows.append({**line, "method": method, "random_state": state, "seconds": seconds})
    columns = ["protocol", "dataset", "method", "seed", "random_state", *MEASURES]
    return pd.DataFrame(rows, columns=sorted({*columns, *(name for row in rows for name in row)}))


def paper_results() -> pd.DataFrame:
    """Return the paper's figures: dataset, method, auroc, auprc, seconds."""
    return pd.read_csv(str(files(__package__) / "data" / "paper_results.csv"))


def paper_main() -> pd.DataFrame:
    """Return the paper's main table."""
    return pd.read_csv(str(files(__package__) / "data" / "paper_main.csv"))


def wide(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return datasets x methods: means over random states, then over split seeds. Seconds are of the first split seed,
    which every method has: the lines of the others were taken at other times."""
    if measure == "seconds" and "seed" in frame:
        frame = frame[frame["seed"] == frame["seed"].min()]
    by_seed = frame.groupby(["dataset", "method", "seed"] if "seed" in frame else ["dataset", "method"])[measure].mean()
    return by_seed.groupby(["dataset", "method"]).mean().unstack("method")


class Cells(NamedTuple):
    """Datasets x methods for each measure, and which cells are the paper's figures."""

    values: dict[str, pd.DataFrame]
    from_paper: pd.DataFrame
    n_seeds: pd.DataFrame
    """How many split seeds a cell of ours is the mean of; 0 where there is none."""


def cells(
    frame: pd.DataFrame, methods: Sequence[str], datasets: Sequence[str], fill_from_paper: Sequence[str] = ()
) -> Cells:
    """Return our figures for the methods and datasets. For methods in `fill_from_paper`, the paper's figures take the
    place of missing ones."""
    published = paper_results()
    values = {}
    for measure in MEASURES:
        ours = wide(frame, measure).reindex(index=datasets, columns=methods)
        theirs = wide(published, measure).reindex(index=datasets, columns=methods)
        filled = ours.copy()
        for method in fill_from_paper:
            filled[method] = ours[method].fillna(theirs[method])
        values[measure] = filled
        if measure == "auroc":
            from_paper = filled.notna() & ours.isna()
    measured = frame.dropna(subset=["auroc"]).groupby(["dataset", "method"])["seed"].nunique().unstack("method")
    n_seeds = measured.reindex(index=datasets, columns=methods).fillna(0).astype(int)
    return Cells(values, from_paper, n_seeds)


def wins(table: pd.DataFrame) -> pd.Series:
    """Return on how many datasets each method has the largest value; if methods tie, each of them wins."""
    return table.eq(table.max(axis=1), axis=0).sum()


def average_rank(table: pd.DataFrame) -> pd.Series:
    """Return the mean rank over datasets; rank 1 is the largest value, missing cells are skipped."""
    return table.rank(axis=1, ascending=False).mean()


def main_table(found: Cells) -> pd.DataFrame:
    """Return the main table: means, wins, average rank, time, speed relative to RGLD, datasets and split seeds counted;
    best first."""
    auroc, auprc, seconds = (found.values[measure] for measure in MEASURES)
    table = pd.DataFrame(
        {
            "type": [_kind(method) for method in auroc.columns],
            "auroc": auroc.mean(),
            "auroc_wins": wins(auroc),
            "auprc": auprc.mean(),
            "auprc_wins": wins(auprc),
            "rank": (average_rank(auroc) + average_rank(auprc)) / 2,
            "time": seconds.mean(),
        }
    )
    if "RGLD" in table.index:
        table["speed"] = table.loc["RGLD", "time"] / table["time"]
    table["datasets"] = auroc.notna().sum()
    table["seeds"] = {method: _range_of_seeds(found.n_seeds[method]) for method in auroc.columns}
    table["from_paper"] = found.from_paper.sum()
    return table.sort_values("auroc", ascending=False)


def _range_of_seeds(n_seeds: pd.Series) -> str:
    """Return over how many split seeds the datasets of a method are measured: "3", or "1 to 3" if these differ."""
    measured = n_seeds[n_seeds > 0]
    if measured.empty:
        return "-"
    return " to ".join(dict.fromkeys((str(measured.min()), str(measured.max()))))


def _kind(method: str) -> str:
    module = detector_registry().get(parse_spec(method).name)
    names = {
        "rgld": "Statistical",
        "statistical": "Statistical",
        "deep": "DL",
        "anchor": "Anchor",
        "reference": "Reference",
    }
    return names[module.GROUP] if module else ""


class PairedTest(NamedTuple):
    """A paired comparison over datasets."""

    measure: str
    n: int
    mean_difference: float
    better: int
    equal: int
    worse: int
    p_value: float
    effect: float
    """Matched-pairs rank-biserial correlation, from -1 to 1; positive if the first method is ahead."""


def paired_test(measure: str, first: pd.Series, second: pd.Series) -> PairedTest:
    """Return Wilcoxon's signed-rank test of two methods over the datasets that both have; fewer seconds are better."""
    both = pd.concat([first, second], axis=1).dropna()
    if both.empty:
        return PairedTest(measure, 0, np.nan, 0, 0, 0, np.nan, np.nan)
    difference = (both.iloc[:, 0] - both.iloc[:, 1]).to_numpy()
    if measure == "seconds":
        difference = -difference
    nonzero = difference[difference != 0]
    p_value = float(wilcoxon(nonzero).pvalue) if len(nonzero) else 1.0
    ranks = rankdata(np.abs(nonzero))
    effect = float((ranks * np.sign(nonzero)).sum() / ranks.sum()) if len(nonzero) else 0.0
    better, equal, worse = ((difference > 0).sum(), (difference == 0).sum(), (difference < 0).sum())
    return PairedTest(
        measure, len(both), float(difference.mean()), int(better), int(equal), int(worse), p_value, effect
    )


def head_to_head(found: Cells, first: str, second: str) -> pd.DataFrame:
    """Return the paired tests of two methods on AUROC, AUPRC and time."""
    tests = [paired_test(m, found.values[m][first], found.values[m][second]) for m in MEASURES]
    return pd.DataFrame(tests).set_index("measure")


def comparison(frame: pd.DataFrame, method: str, measure: str, published: str | None = None) -> pd.DataFrame:
    """Return for each dataset our figure, the paper's and the difference. `published` is the paper's name of the
    method, if it differs."""
    ours, theirs = wide(frame, measure), wide(paper_results(), measure)
    published = published or method
    if method not in ours or published not in theirs:
        return pd.DataFrame(columns=["ours", "paper", "difference"])
    both = pd.concat({"ours": ours[method], "paper": theirs[published]}, axis=1).dropna()
    both["difference"] = both["ours"] - both["paper"]
    return both


def beside_paper(found: Cells, measure: str) -> pd.DataFrame:
    """Return our figures by dataset, each method beside the paper's figure if there is one."""
    ours = found.values[measure].where(~found.from_paper)
    theirs = wide(paper_results(), measure).reindex(index=ours.index)
    columns = {}
    for method in ours.columns:
        columns[method] = ours[method]
        if method in theirs:
            columns[f"{method} (paper)"] = theirs[method]
    return pd.DataFrame(columns)


def spread(frame: pd.DataFrame, method: str, datasets: Sequence[str]) -> pd.DataFrame:
    """Return the mean over datasets and seeds for each random state of a method."""
    runs = frame[(frame["method"] == method) & frame["dataset"].isin(list(datasets)) & frame["random_state"].notna()]
    by_state = runs.groupby(["random_state", "dataset"])[["auroc", "auprc"]].mean()
    means = by_state.groupby("random_state").mean()
    return means.set_index(means.index.astype(int))


def ablation(frame: pd.DataFrame, variants: dict[str, str], datasets: Sequence[str]) -> pd.DataFrame:
    """Return the means of RGLD and of its variants, and how much each variant changes them."""
    rows = {}
    for label, method in variants.items():
        runs = frame[(frame["method"] == method) & frame["dataset"].isin(list(datasets))]
        if len(runs):
            rows[label] = runs.groupby("dataset")[list(MEASURES)].mean().mean()
    table = pd.DataFrame(rows).T
    if len(table):
        table["auroc_change"] = table["auroc"] - table["auroc"].iloc[0]
        table["auprc_change"] = table["auprc"] - table["auprc"].iloc[0]
    return table


def markdown(table: pd.DataFrame, digits: int | dict[str, int] = 2, index_name: str = "") -> str:
    """Return a table as Markdown; missing cells are "N/A". The heading of `mean_difference` is "mean difference": two
    words can be wrapped."""

    def cell(column: str, value: Any) -> str:
        if isinstance(value, str):
            return value
        if pd.isna(value):
            return "N/A"
        places = digits.get(column, 2) if isinstance(digits, dict) else digits
        if isinstance(value, (int, np.integer)) or places == 0:
            return f"{value:.0f}"
        return f"{value:.{places}f}"

    names = [str(column).replace("_", " ") for column in table.columns]
    lines = [f"| {index_name} | " + " | ".join(names) + " |", "|---" * (1 + len(names)) + "|"]
    for name in table.index:
        values = [cell(column, table.at[name, column]) for column in table.columns]
        lines.append(f"| {name} | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def significant(values: pd.Series, digits: int = 2) -> pd.Series:
    """Return numbers as strings with so many significant digits: a small p-value is not 0."""
    return values.map(lambda value: value if pd.isna(value) else f"{value:.{digits}g}")
