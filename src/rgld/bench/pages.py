"""The results page, and the tables and figures on it.

In: lines. Out: files. The commands call `write_tables`, `write_figures` and `write_page`. Everything is made from the
lines and the paper's figures, so that anyone can make the page again.
"""

from collections import Counter
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from .._modelfile.atomic import write_whole
from . import figures, tables
from .datasets import registry as dataset_registry
from .detectors import registry as detector_registry
from .lines import Line
from .study import Study

ABLATIONS = {
    "RGLD": "RGLD",
    "one bandwidth": "RGLD(bandwidth_multipliers=(1.0,))",
    "no feature bagging": "RGLD(feature_fraction=1.0)",
    "no local branch": "RGLD(n_local_views=0)",
    "no global branch": "RGLD(n_global_views=0)",
    "one view per branch": "RGLD(n_global_views=1, n_local_views=1)",
}
N_RANKED = 15
"""Number of methods in the critical-difference diagram."""
WHY_MISSING = {"speech": "its file could not be had"}
"""Datasets of the study that we do not have."""


def write_tables(lines: list[Line], folder: Path) -> None:
    """Write every table as Markdown and CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    study = Study(lines)
    found = {"main": tables.main_table(study.cells), "main_44": tables.main_table(study.cells_44)}
    found |= {f"by_dataset_{measure}": tables.beside_paper(study.cells, measure) for measure in tables.MEASURES}
    if {"RGLD", "ADERH"} <= set(study.methods):
        found["head_to_head"] = tables.head_to_head(study.cells, "RGLD", "ADERH")
    found["ablation"] = tables.ablation(study.frame, ABLATIONS, study.datasets_44)
    for name, table in found.items():
        write_whole(folder / f"{name}.csv", table.round(4).to_csv())
        write_whole(folder / f"{name}.md", tables.markdown(table))


def write_figures(lines: list[Line], folder: Path) -> None:
    """Write every figure as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in _figures(Study(lines)).items():
        figures.save(figure, folder / name)


def _figures(study: Study) -> dict[str, Figure]:
    main = tables.main_table(study.cells_44)
    found = {
        "pareto_auroc": figures.pareto(main, "auroc"),
        "pareto_auprc": figures.pareto(main, "auprc"),
        "motivation_scales": figures.motivation_scales(),
        "motivation_branches": figures.motivation_branches(),
        "motivation_views": figures.motivation_views(),
    }
    ranked = list(main.sort_values("rank").index[:N_RANKED])
    if len(ranked) > 2 and len(study.cells_44.values["auroc"][ranked].dropna()) > 2:
        shown = f"shown: the {len(ranked)} of {len(main)} methods with the best mean of AUROC rank and AUPRC rank"
        found["critical_difference"] = figures.critical_difference(
            study.cells_44.values["auroc"][ranked], "AUROC", shown if len(ranked) < len(main) else ""
        )
    against_paper = tables.comparison(study.frame, "RGLD", "auroc")
    if len(against_paper):
        found["rgld_against_paper"] = figures.difference_bars(against_paper, "our AUROC minus the paper's (points)")
    for parameter, label in (
        ("n_global_views", "global views"),
        ("n_local_views", "local views"),
        ("n_random_features", "random features D"),
    ):
        varied = study.varied(parameter)
        if len(varied) > 1:
            found[f"sensitivity_{parameter}"] = figures.lines({"RGLD": varied}, label, ["auroc", "auprc"])
    for variable, label in (("n", "rows"), ("d", "columns")):
        scaling = study.scaling(variable)
        if scaling:
            found[f"scaling_{variable}"] = figures.lines(scaling, label, ["seconds"], log_x=True, log_y=True)
    return found


def write_page(lines: list[Line], path: Path) -> None:
    """Write the results page; its figures and tables go into a folder beside it."""
    study = Study(lines)
    folder = path.parent / "results"
    write_figures(lines, folder)
    write_tables(lines, folder)
    sections = [
        _introduction(study),
        _main_section(study),
        _method_section(study),
        _head_to_head_section(study),
        _rgld_section(study),
        _ablation_section(study),
        _scaling_section(study),
        _motivation_section(),
        _published_section(study),
        _failures_section(study),
        _by_dataset_section(study),
    ]
    write_whole(path, "\n".join(section for section in sections if section))


def _picture(name: str, words: str) -> str:
    return f"![{words}](results/{name}.png)\n"


def _introduction(study: Study) -> str:
    return f"""# Results

This page compares RGLD with the other detectors of the paper's study and with some stronger ones: {len(study.lines)} runs on {len(study.datasets)} of the study's 47 datasets.
{_findings(study)}
{_left_out(study)}
`make results` makes the page from the lines in `benchmarks/results/`; do not edit it. [study.md](study.md) says how to run the study yourself.
"""


def _findings(study: Study) -> str:
    """Return what the main table says, in three sentences at most."""
    main = tables.main_table(study.cells_44)
    first = {
        "mean AUROC": main["auroc"].idxmax(),
        "mean AUPRC": main["auprc"].idxmax(),
        "average rank": main["rank"].idxmin(),
    }
    names = list(dict.fromkeys(first.values()))
    leads = [
        f"{name} is first in {' and in '.join(what for what, own in first.items() if own == name)}" for name in names
    ]
    text = f"On the {len(study.datasets_44)} datasets, {'; '.join(leads)}."
    if "RGLD" in main.index and len(main) > 1:
        place = int((main["auroc"] > main.at["RGLD", "auroc"]).sum()) + 1
        text += f" RGLD, the paper's detector, is number {place} of {len(main)} by mean AUROC."
    missing = {str(method): list(own[own].index) for method, own in study.cells.from_paper.items() if own.any()}
    named = "; ".join(f"{method} on {', '.join(datasets)}" for method, datasets in missing.items())
    return text + (
        f" Taken from the paper: {named}."
        if named
        else " All figures were measured by us, unless a table says otherwise."
    )


def _left_out(study: Study) -> str:
    """Return which dataset and which preset of ours a reader may miss, and why; nothing if there is none."""
    words = [f"`{name}` is missing: {why}." for name, why in WHY_MISSING.items() if name not in study.datasets]
    if "RGLD-novelty" not in study.methods:
        words.append(
            "`RGLD.novelty()` is not here: it needs training rows without anomalies, and the study's training rows hold "
            "some. [oddbench.md](oddbench.md) and [plus.md](plus.md) have it."
        )
    return "".join(f"{sentence}\n" for sentence in words)


def _method_section(study: Study) -> str:
    versions: dict[str, str] = next((line["versions"] for line in reversed(study.lines) if line.get("versions")), {})
    named = ", ".join(f"{name} {number}" for name, number in versions.items())
    return f"""## How it was measured

- *Datasets.* Missing: {_missing(study) or "none"}. Three datasets are not ADBench's own files: `backdoor` is the ADRepository's table, `fraud` is the ULB table without its time column,
  and `census` was rebuilt from the raw table (close, but not identical). "The 44" leaves out census, fraud and speech.
- *Protocol.* `src/rgld/bench/protocol.py`, split seeds 1, 2 and 3, one thread per run.
- *Time.* Seconds are processor time of one thread, to fit and score for the first time in a process, with split seed 1. They were measured on one machine on two days, one run at a time on one of its two cores; other work ran on the other core. A quiet run of all detectors on three to six of the datasets takes 1.00 times as long (median; 0.90 to 1.08 in 90 % of the runs; [everyone in one quiet run](study.md#everyone-in-one-quiet-run)).
  [speed.md](speed.md) has wall time with all cores, of one run on a quiet machine.
  To fit and score our detectors and the statistical ones (without COF and SOD) with three seeds takes {_minutes(study):.0f} minutes of one core.
- *Versions* of the last run: {named}.
"""


def _missing(study: Study) -> str:
    """Return the datasets that no run is of, each with the reason if there is one."""
    missing = [name for name in dataset_registry() if name not in study.datasets]
    return ", ".join(f"{name} ({WHY_MISSING[name]})" if name in WHY_MISSING else name for name in missing)


def _minutes(study: Study) -> float:
    quick = [name for name, module in detector_registry().items() if module.GROUP in ("rgld", "statistical")]
    runs = study.frame[study.frame["method"].isin(set(quick) - {"COF", "SOD"})]
    one_state = runs[(runs["method"] != "RGLD") | (runs["random_state"] == 0)]
    return float(one_state["seconds"].sum()) / 60.0


def _main_section(study: Study) -> str:
    digits = {"auroc": 2, "auprc": 2, "rank": 2, "time": 3}
    table = _shown(tables.main_table(study.cells_44))
    whole = _shown(tables.main_table(study.cells))
    without_smtp = [name for name in study.datasets_44 if name != "smtp"]
    smtp = tables.main_table(tables.cells(study.frame, study.methods, without_smtp, study.deep))
    few = pd.DataFrame({"auroc": smtp["auroc"], "auprc": smtp["auprc"]})
    return f"""## The main table

Means over the 44 datasets. The mean of a dataset is over the split seeds that were measured (column *seeds*); a mean over one seed is less certain.

| column | means |
|---|---|
| type | *Statistical* and *DL* (deep) are the paper's, and ours; *Anchor* are further strong detectors; *Reference* is ADERH as its authors' script computes it, which is what the paper's table shows |
| wins | on how many datasets it is the best; if several tie, each of them wins |
| rank | the mean of the AUROC rank and the AUPRC rank |
| time | seconds to fit and score, of one thread |
| speed | how many times as fast as RGLD |
| datasets | {_words_of_datasets(table)} |
| seeds | over how many split seeds the figures of a dataset are; "1 to 3": one on some datasets, up to three on others; times are always of split seed 1 |

{tables.markdown(table, digits, "method")}
{_picture("pareto_auroc", "accuracy against runtime")}
{_picture("pareto_auprc", "precision against runtime")}
{_picture("critical_difference", "average ranks and critical differences")}
Bars join detectors that Nemenyi's test does not tell apart. It compares {N_RANKED} detectors at once, so it needs larger differences than the tests of two detectors [below](#head-to-head).

Means over all {len(study.datasets)} datasets that we have:

{tables.markdown(whole, digits, "method")}
Means over the 44 without `smtp`. Its test parts have only 1 to 3 anomalies, which move a mean AUPRC by up to 2 points:

{tables.markdown(few.sort_values("auroc", ascending=False), 2, "method")}"""


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """Return the main table as the page shows it: without `from_paper` if nothing is from the paper."""
    table = table.assign(speed=tables.significant(table["speed"], 3))
    return table if table["from_paper"].any() else table.drop(columns="from_paper")


def _words_of_datasets(table: pd.DataFrame) -> str:
    words = "how many datasets the means are over"
    if "from_paper" not in table:
        return f"{words}; all figures are our own runs"
    return f"{words}; *from paper*: for how many of these the paper's figures are used, because we did not run the detector there"


def _head_to_head_section(study: Study) -> str:
    parts = []
    for ours, others in HEAD_TO_HEAD.items():
        for other in others:
            if {ours, other} <= set(study.methods):
                test = tables.head_to_head(study.cells_44, ours, other)
                test = test.assign(p_value=tables.significant(test["p_value"]))
                table = tables.markdown(test, {"mean_difference": 3}, "measure")
                parts.append(f"{ours} against {other}:\n\n{table}")
    return (
        "## Head to head\n\nWilcoxon's signed-rank test, paired over the 44 datasets. A positive difference or effect means that the first method is better. Each p-value is of this one test, not corrected for the number of tests. So a p-value can be small though the picture of critical differences joins the two detectors.\n\n"
        + "\n".join(parts)
    )


HEAD_TO_HEAD = {
    "RGLD": ("ADERH", "ADERH-script", "IForest", "RankAverage", "RGLD-Fast"),
    "RGLD-plus": ("ADERH-script", "ADERH", "IForest", "RankAverage", "MCD", "RGLD"),
}


def _rgld_section(study: Study) -> str:
    states = tables.spread(study.frame, "RGLD", study.datasets_44)
    text = "## RGLD, paper settings\n\n"
    if len(states) > 1:
        mean, std = states.mean(), states.std()
        text += (
            f"Means over {len(states)} random states on the {len(study.datasets_44)} datasets: AUROC {mean['auroc']:.2f} (standard deviation {std['auroc']:.2f}), AUPRC {mean['auprc']:.2f} "
            f"({std['auprc']:.2f}). The paper has 78.13 and 40.38.\n\n"
            f"{tables.markdown(states, 2, 'random state')}\n"
        )
    rows = study.frame[study.frame["method"] == "RGLD"]
    if "preprocessing" not in rows:
        return text
    chosen = rows.groupby("dataset")["preprocessing"].agg(lambda values: "/".join(sorted(set(values))))
    auroc, auprc = (tables.comparison(study.frame, "RGLD", measure) for measure in ("auroc", "auprc"))
    table = pd.DataFrame(
        {
            "scaling": chosen,
            "AUROC": auroc["ours"],
            "paper": auroc["paper"],
            "difference": auroc["difference"],
            "AUPRC": auprc["ours"],
            "paper ": auprc["paper"],
            "difference ": auprc["difference"],
        }
    ).reindex(study.datasets)
    return f"""{text}The next table has the scaling that `preprocessing="auto"` chose from the training columns alone, and the result beside the paper's. The paper does not say which scaling it
used on which dataset; where results differ much, it has mostly made another choice.

{tables.markdown(table, 2, "dataset")}
{_picture("rgld_against_paper", "our AUROC minus the paper's")}"""


def _ablation_section(study: Study) -> str:
    table = tables.ablation(study.frame, ABLATIONS, study.datasets_44)
    if len(table) < 2:
        return ""
    spread = tables.spread(study.frame, "RGLD", study.datasets_44).std()
    text = (
        "## Ablations\n\nMeans over the 44; each row changes one thing. RGLD's row is the mean of five random states, the rows of variants have one. "
        f"Another random state changes a mean by {spread['auroc']:.2f} / {spread['auprc']:.2f} (standard deviation), so smaller changes, such as that of the "
        f"global branch on these datasets, may be chance.\n\n{tables.markdown(table, {'seconds': 3}, 'variant')}\n"
    )
    pictures = [
        ("n_global_views", "number of global views"),
        ("n_local_views", "number of local views"),
        ("n_random_features", "number of random features"),
    ]
    drawn = [_picture(f"sensitivity_{name}", words) for name, words in pictures if len(study.varied(name)) > 1]
    return text + (
        "How much the number of views and of random features matters, over the split seeds that all values have. Another random state also changes these means: see above.\n\n"
        + "\n".join(drawn)
        if drawn
        else ""
    )


def _scaling_section(study: Study) -> str:
    parts = []
    for variable, label in (("n", "rows"), ("d", "columns")):
        found = study.scaling(variable)
        if found:
            seconds = pd.DataFrame({name: frame["seconds"] for name, frame in found.items()})
            parts.append(
                f"{tables.markdown(seconds, 3, label)}\n{_picture(f'scaling_{variable}', f'seconds over {label}')}"
            )
    if not parts:
        return ""
    return (
        "## Scaling\n\nSeconds to fit and score a Gaussian mixture with locally shifted anomalies, protocol `full`, one thread. N/A: the run failed or took longer than 60 s. Nothing else ran on the machine.\n\n"
        + "\n".join(parts)
    )


def _motivation_section() -> str:
    return f"""## Motivating examples

{_picture("motivation_scales", "fine and broad bandwidths see different anomalies")}
{_picture("motivation_branches", "what the global and the local branch see")}
{_picture("motivation_views", "one view depends on its columns, many views do not")}"""


def _published_section(study: Study) -> str:
    rows: dict[str, dict[str, float]] = {}
    reasons: dict[str, list[str]] = {}
    for method in study.methods:
        ours = tables.comparison(study.frame, method, "auroc", PUBLISHED_AS.get(method))
        if len(ours):
            precision = tables.comparison(study.frame, method, "auprc", PUBLISHED_AS.get(method))
            rows[method] = {
                "datasets": len(ours),
                "within 0.02": int((ours["difference"].abs() <= 0.02).sum()),
                "within 1": int((ours["difference"].abs() <= 1).sum()),
                "mean difference, AUROC": ours["difference"].mean(),
                "largest, AUROC": ours["difference"].abs().max(),
                "mean difference, AUPRC": precision["difference"].mean(),
            }
            reason = REASONS.get(method, "not known" if ours["difference"].abs().max() > 1 else "")
            reasons.setdefault(reason, []).append(method)
    words = "\n".join(f"- *{', '.join(methods)}*: {reason}." for reason, methods in reasons.items() if reason)
    return f"""## Our figures and the paper's

How much our figures differ from the published ones, by method:

{tables.markdown(pd.DataFrame.from_dict(rows, orient="index"), 3, "method")}
Why they differ, where we know it:

{words}
"""


PUBLISHED_AS = {"ADERH-script": "ADERH"}

_DEFAULTS = "ours has today's defaults of DeepOD or PyOD"
_ONE_SPLIT = "ours has one split seed and today's defaults of DeepOD or PyOD"
_SOME_SPLITS = "ours has one split seed on 16 datasets, three on 30"

_OTHER_DATA = (
    "donors and campaign were published without the scaling by split; backdoor, census and fraud are other files"
)

REASONS = {
    **dict.fromkeys(("HBOS", "OCSVM"), _OTHER_DATA),
    **dict.fromkeys(("KNN", "LODA", "LOF"), _OTHER_DATA + "; the rest is not known"),
    "IForest": "another random state",
    "ECOD": "the published figures are older than a bug fix in PyOD of April 2022",
    "PCA": "scores can be infinite if an eigenvalue is 0, and depend on the signs of eigenvectors",
    "CBLOF": "10 clusters on two datasets where 8 fail; the rest is not known",
    "COF": "one split seed on the largest datasets; the rest is not known",
    "SOD": "one split seed on the largest datasets; the rest is not known",
    "ADERH": "as its paper describes it; the published figures come from its authors' script: see ADERH-script",
    "ADERH-script": "this is the published ADERH",
    "DAGMM": "ours is trained, the published one is not; " + _SOME_SPLITS,
    "REPEN": f"its sampler was replaced, because it fails on NumPy 2; {_SOME_SPLITS}, and today's defaults of DeepOD",
    **dict.fromkeys(("DeepSVDD", "DIF"), _DEFAULTS),
    **dict.fromkeys(("RCA", "NeuTraL", "SLAD"), _ONE_SPLIT),
    "RDP": f"{_SOME_SPLITS}, and today's defaults of DeepOD",
    "GOAD": "ours is our own implementation, with one setting for all tables",
    "ICL": "ours is our own implementation; one net, and two nets differ by up to ten points; ours has one split seed",
    "RGLD": "the paper leaves the choice of scaling and other points open ([departures.md](departures.md))",
    "RGLD-Fast": "as for RGLD",
}


def _failures_section(study: Study) -> str:
    errors = study.errors()
    infinite = [line for line in study.lines if line.get("n_infinite")]
    counts = Counter(f"{line['detector']}: {line['error'][:90]}" for line in errors)
    text = "## What failed\n\n"
    if len(errors):
        text += (
            "Runs without a result, and why:\n\n"
            + "\n".join(f"- {n} x {what}" for what, n in counts.most_common())
            + "\n"
        )
    else:
        text += "No run failed.\n"
    if infinite:
        names = ", ".join(sorted({f"{line['detector']} on {line['dataset']}" for line in infinite}))
        text += f"\nSome scores were infinite; such rows rank first: {names}.\n"
    return text


def _by_dataset_section(study: Study) -> str:
    parts = []
    for measure in tables.MEASURES:
        table = tables.beside_paper(study.cells, measure)
        pairs = {
            method: [_pair(*row) for row in zip(table[method], _paper_column(table, method), strict=True)]
            for method in study.methods
        }
        title = {"auroc": "AUROC", "auprc": "AUPRC", "seconds": "Seconds"}[measure]
        parts.append(f"### {title}\n\n{tables.markdown(pd.DataFrame(pairs, index=table.index), 2, 'dataset')}")
    return "## By dataset\n\nOur figure / the paper's; a dash if there is no figure.\n\n" + "\n".join(parts)


def _paper_column(table: pd.DataFrame, method: str) -> pd.Series:
    name = f"{method} (paper)"
    return table[name] if name in table else pd.Series(float("nan"), index=table.index)


def _pair(ours: float, paper: float) -> str:
    """Return two figures in one cell, which stays one line."""
    return "\N{NO-BREAK SPACE}/\N{NO-BREAK SPACE}".join(
        "-" if pd.isna(value) else f"{value:.2f}" for value in (ours, paper)
    )
