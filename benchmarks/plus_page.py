"""Writes docs/plus.md from the lines of the search.

python benchmarks/plus_page.py
"""

import json
from pathlib import Path

import pandas as pd
from candidates import ALONE, AROUND, ONE_BACK, OTHERS, PATH
from search import TIMES, means, read

from rgld.bench.tables import average_rank, markdown, paired_test

PAGE = Path(__file__).parent.parent / "docs" / "plus.md"
MEASURES = ("auroc", "auprc")
LOSSES = {"auroc": 3.0, "auprc": 8.0}
"""Points that count as a loss."""


def pair(frame: pd.DataFrame, collection: str, half: int | None = None) -> pd.Series:
    """Return "AUROC / AUPRC" by candidate."""
    own = frame[frame["collection"] == collection]
    if half is not None:
        own = own[own["number"] % 2 == half]
    table = means(own)
    return table["auroc"].map("{:.2f}".format) + " / " + table["auprc"].map("{:.2f}".format)


def by_dataset(frame: pd.DataFrame, collection: str, measure: str) -> pd.DataFrame:
    """Return datasets x candidates."""
    own = frame[frame["collection"] == collection]
    return own.pivot_table(index="dataset", columns="candidate", values=measure, aggfunc="mean")


def milliseconds(frame: pd.DataFrame) -> pd.Series:
    """Return the mean time on ADBench's splits, without the noise of floats: a mean may be half a millisecond."""
    own = frame[frame["collection"] == "adbench"]
    seconds = own.groupby(["candidate", "dataset"])["seconds"].mean().groupby("candidate").mean()
    return (1000 * seconds).round(6)


def results(frame: pd.DataFrame) -> str:
    """Return the table of all methods on both collections, with average ranks among them."""
    methods = ["plus", "RGLD", *OTHERS]
    rows = {}
    for collection, title in (("adbench", "ADBench"), ("tables", "tables")):
        rows[title] = pair(frame, collection)
        if collection == "adbench":
            rows["odd half"], rows["even half"] = pair(frame, collection, 1), pair(frame, collection, 0)
        ranks = [average_rank(by_dataset(frame, collection, m)[methods]) for m in MEASURES]
        rows[f"rank, {title}"] = sum(ranks) / len(ranks)
    rows["ms"] = milliseconds(frame)
    table = pd.DataFrame(rows).loc[methods]
    return markdown(table, {"ms": 0}, "AUROC / AUPRC")


def tests(frame: pd.DataFrame) -> str:
    """Return the paired tests of plus against others."""
    lines = {}
    for collection, title in (("adbench", "ADBench"), ("tables", "tables")):
        for other in ("ADERH-script", "IForest", "RGLD", "COPOD", "HBOS"):
            for measure in MEASURES:
                table = by_dataset(frame, collection, measure)
                test = paired_test(measure, table["plus"], table[other])
                lines[f"{title}, {other}, {measure.upper()}"] = {
                    "mean difference": test.mean_difference,
                    "better": test.better,
                    "worse": test.worse,
                    "p": f"{test.p_value:.2g}",
                    "effect": test.effect,
                }
    return markdown(pd.DataFrame(lines).T, 2, "plus against")


def candidates(frame: pd.DataFrame, names: list[str]) -> str:
    """Return the table of candidates: the halves to choose on, the halves to confirm on."""
    present = [name for name in names if name in set(frame["candidate"])]
    table = pd.DataFrame(
        {
            "ADBench, choose": pair(frame, "adbench", 1),
            "confirm": pair(frame, "adbench", 0),
            "all": pair(frame, "adbench"),
            "tables, choose": pair(frame, "tables", 1),
            "confirm ": pair(frame, "tables", 0),
            "all ": pair(frame, "tables"),
            "ms": milliseconds(frame),
        }
    ).loc[present]
    return markdown(table, {"ms": 0}, "AUROC / AUPRC")


def spread(frame: pd.DataFrame) -> str:
    """Return the standard deviation over random states of the means on both collections."""
    columns: dict[str, pd.Series] = {}
    for collection, title in (("adbench", "ADBench"), ("tables", "tables")):
        own = frame[(frame["collection"] == collection) & frame["candidate"].isin(["plus", "RGLD"])]
        by_state = own.groupby(["candidate", "state", "dataset"])[list(MEASURES)].mean().groupby(["candidate", "state"])
        deviation = by_state.mean().groupby("candidate").std()
        columns |= {f"{title}, {measure.upper()}": deviation[measure] for measure in MEASURES}
    return markdown(pd.DataFrame(columns), 2, "standard deviation over three states")


def times() -> str:
    """Return how long plus takes, in RGLD()'s time, in a sentence."""
    found = pd.DataFrame(json.loads(TIMES.read_text())).T
    ratio = found["plus"] / found["RGLD"]
    slow = ", ".join(f"{name} {value:.1f}" for name, value in ratio[ratio > 2].sort_values(ascending=False).items())
    return (
        f"In turn on all cores, the mean over the {len(found)} splits of seed 1 is {1000 * found['plus'].mean():.0f} ms for plus and "
        f"{1000 * found['RGLD'].mean():.0f} ms for `RGLD()`, {found['plus'].mean() / found['RGLD'].mean():.2f} times as long; more than twice as long on: {slow or 'none'}."
    )


def losses(frame: pd.DataFrame, other: str) -> str:
    """Return the datasets where plus loses clearly, worst first."""
    lines = []
    for measure, least in LOSSES.items():
        for collection, title in (("adbench", "ADBench"), ("tables", "tables")):
            table = by_dataset(frame, collection, measure)
            difference = (table["plus"] - table[other]).sort_values()
            named = [f"{name} ({value:+.1f})" for name, value in difference.items() if value < -least]
            lines.append(f"- {measure.upper()}, {title}: {', '.join(named) or 'none'}")
    return "\n".join(lines)


def page() -> str:
    """Return docs/plus.md."""
    frame = read()
    others = frame[frame["collection"].isin(["full", "typed"])]
    checks = pd.DataFrame({name: pair(others, name) for name in ("full", "typed") if name in set(others["collection"])})
    kinds = by_dataset(frame, "typed", "auroc").T
    n_full = frame[frame["collection"] == "full"]["dataset"].nunique()
    order = [name for name in ("plus", "RGLD", "IForest", "ADERH-script", "HBOS", "COPOD") if name in checks.index]
    return f"""# RGLD.plus

Written by `python benchmarks/plus_page.py` from the lines of `benchmarks/search.py`; do not edit.

`RGLD()` is the paper's detector. `RGLD.plus()` is one fixed configuration of the same idea, many cheap random views and their mean,
that is more accurate on both collections of labelled tables we have: 44 datasets of ADBench (three splits) and 72 other real tables (two splits; discrete, skewed, often
coded categories), three random states each for our own. It needs no labels and knows no dataset. The lead on ADBench is thin where it is thin: on the odd-numbered half its mean
AUROC is below that of `RGLD()` and level with ADERH's; the gain is in AUPRC, in the other half, and on the tables.

The 72 tables are of the ODDBench collection (psorus/Outformer): scraped public tables, one column turned into the label, drawn at random among those with 500 to 60,000 rows, at least
4 columns, at least 10 anomalies and at most 20 % of them. They are not part of this project; `--tables` names a folder of such NPZ files (`X`, `y`).

## What it reaches

Means over datasets, the paper's protocol; average ranks among the methods listed (mean of the ranks by AUROC and by AUPRC).

{results(frame)}
Times are of one thread, taken while the other core was busy too and not all at once: rough. {times()} Other detectors measured in the study are in [results.md](results.md).

{spread(frame)}
Wilcoxon's signed-rank test over datasets; effect is the matched-pairs rank-biserial correlation.

{tests(frame)}
## The changes, one after the other

{candidates(frame, list(PATH))}
1. *Smaller reference sets, more views.* A hundred references instead of 400, four times as many views: as many distances. Ten of a hundred nearest is a broader question than ten
   of 400: a group of anomalies that is a percent of the table no longer hides its members from each other. More views average away what one sample of references happens to miss. With the paper's scaling and the
   global branch beside it this and the next change move little; taken back from plus it costs most on ADBench, and gains AUROC on the tables.
2. *All columns beside 30 % of them.* Half of the views see whole rows. Narrow tables have little to gain from leaving columns out; wide ones keep the views that do.
3. *Four scalings.* Which scaling suits a table decides more than anything else, and no rule we know picks it. Views draw their columns at random; here they also take turns in the
   scaling: standard, arcsinh of the robust z-score (linear in the middle, logarithmic in the tails), the same brought to unit variance, and normal quantiles. On ADBench the chosen scaling has the better AUROC and the worse AUPRC; on the tables it is far behind: this is what carries over.
4. *Standardized scores.* A rank ends at 1: the farthest training row and one ten times as far are nearly the same to it, and the mean over views decides the top of the list by
   noise. The distance's logarithm, in standard deviations of the training rows', keeps how far out a row is; it is cut at 8, so that no view decides alone. (The global branch's
   scores are standardized already.) It also spares the sorting of every view.
5. *Orthogonal projections*, of twice the dimensions where there are so many columns: distances are kept better, exactly so in narrow tables.
6. *The local branch alone.* With small reference sets the local question is broad enough to cover what the global branch sees, and the mean with it costs accuracy on both
   collections.

`plus` has 64 local views instead of 40. Each change by itself, from the paper's settings:

{candidates(frame, ["RGLD", *ALONE])}
Each change taken back alone, from plus:

{candidates(frame, ["plus", *ONE_BACK])}
Neighbours; one random state moves a mean by about 0.2 / 0.2, another draw of datasets by more, and plus was not moved to the best of them:

{candidates(frame, ["plus", *AROUND])}
## Where it loses

By more than {LOSSES["auroc"]:g} points of AUROC or {LOSSES["auprc"]:g} of AUPRC. Against `RGLD()`:

{losses(frame, "RGLD")}

Against ADERH (its authors' script):

{losses(frame, "ADERH-script")}

Against IForest:

{losses(frame, "IForest")}

## Other checks

`full`: the {n_full} of ADBench's datasets with up to 50,000 rows, as they are, fitted and scored whole, no split and no min-max. `typed`: Gaussian mixtures with four kinds of anomalies (`rgld.bench.synthetic.typed`), three draws.

{markdown(checks.loc[order], 2, "AUROC / AUPRC")}
AUROC by kind:

{markdown(kinds.loc[order], 1, "")}
## How it was found

Blocks of views (a scaling, a share of the columns, a size of the reference sets, a law of projection) were scored once on all splits, and mixtures of them compared by several
aggregations, by the mean of AUROC and AUPRC over both collections on the halves marked *choose* (ADBench's odd numbers, every second table in alphabetical order), with an eye on the other halves: on ADBench's
odd half alone the AUROC would have spoken for one chosen scaling, on the tables against it. That stage was exploratory and is not kept; the tables above rerun what came out of it,
as it can be had from the package, on all splits and three random states. Nothing names or recognizes a dataset. Rerun it:

    python benchmarks/search.py run --adbench FOLDER --tables FOLDER
    python benchmarks/search.py time --adbench FOLDER
    python benchmarks/plus_page.py

What did not help in the exploration: k of 1 or 3 with a hundred references, 40 neighbours; uniform quantiles; 60 % of the columns beside all and 30 %; sparse or axis-parallel projections; maxima.
"""


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"written to {PAGE}")
