"""The second study: real tables of the ODDBench collection, under the paper's protocol and under the collection's own.

In: lines of `rgld bench run --tables DIR`. Out: the page, its figures and CSV files. Means are over the tables that all
detectors have a result for, so that every row of a table of results is about the same tables.
"""

from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import pandas as pd

from .._modelfile.atomic import write_whole
from . import figures, tables
from .lines import Line

DETECTORS = (
    *("KNN", "LOF", "IForest", "ECOD", "COPOD", "HBOS", "MCD", "ADERH"),
    *("RGLD", "RGLD-Fast", "RGLD-plus", "RGLD-novelty"),
)
"""What the study runs if not told otherwise."""
MAX_REASON = 100
"""Letters of the reason of a failed run."""
MIN_TABLES = 3
"""A diagram of ranks needs at least this many tables, and this many detectors."""


class Protocol(NamedTuple):
    """One of the two ways to split a table."""

    name: str
    title: str
    words: str
    compared: str
    """Each detector is compared with this one, which is meant for the protocol."""


ODDBENCH_PROTOCOLS = (
    Protocol(
        "paper",
        "Training rows with anomalies",
        "The paper's protocol: 70 % of all rows are for training, with their anomalies; the others are scored. Columns are scaled to [0, 1] by the training rows.",
        "RGLD-plus",
    ),
    Protocol(
        "clean",
        "Clean training rows",
        "The collection's own protocol: the training rows are all normal (each table says which), the others are scored. Columns get mean 0 and variance 1 by the training rows.",
        "RGLD-novelty",
    ),
)

PUBLISHED = {
    "TaskBridge": (80.2, 50.4),
    "DTE-NP": (77.0, 43.6),
    "kNN": (76.3, 42.4),
    "OutFormer": (74.2, 43.0),
    "LOF": (74.2, 40.0),
    "TabPFN": (73.6, 37.1),
    "IForest": (71.3, 31.3),
    "ECOD": (68.1, 28.3),
}
"""AUROC and AUPRC as published (TaskBridge, arXiv 2609.36968, table 4), for clean training rows and all 790 tables. Not
measured by us."""


def write_page(lines: list[Line], path: Path) -> None:
    """Write the page; its figures and tables go into a folder beside it."""
    folder = path.parent / path.stem
    folder.mkdir(parents=True, exist_ok=True)
    frames = {
        protocol: tables.frame_of(line for line in lines if line["protocol"] == protocol.name)
        for protocol in ODDBENCH_PROTOCOLS
    }
    sections = [_introduction(max(len(complete(frame, "auroc")) for frame in frames.values() if len(frame)))]
    sections += [_section(protocol, frame, folder) for protocol, frame in frames.items() if len(frame)]
    sections += [_published(), _fine_print(lines), _again()]
    write_whole(path, "\n".join(sections))


def complete(frame: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return tables x detectors, with the tables that every detector has a result for."""
    return tables.wide(frame, measure).dropna()


def summary(frame: pd.DataFrame, compared: str) -> pd.DataFrame:
    """Return means with their standard errors, average ranks, and the paired difference to one detector with
    its standard error; best AUROC first."""
    auroc, auprc = complete(frame, "auroc"), complete(frame, "auprc")
    columns = {}
    for name, values in (("AUROC", auroc), ("AUPRC", auprc)):
        columns[name] = values.mean()
        columns[f"± {name}"] = values.sem()
        columns[f"rank, {name}"] = tables.average_rank(values)
        if compared in values:
            apart = values.sub(values[compared], axis=0)
            columns[f"{name} minus {compared}"] = [
                "" if method == compared else f"{apart[method].mean():+.2f} ± {apart[method].sem():.2f}"
                for method in values
            ]
    return pd.DataFrame(columns).sort_values("AUROC", ascending=False)


def _section(protocol: Protocol, frame: pd.DataFrame, folder: Path) -> str:
    table = summary(frame, protocol.compared)
    text = f"## {protocol.title}\n\n{protocol.words} {len(complete(frame, 'auroc'))} tables.\n\n{tables.markdown(table, 2, 'detector')}"
    for measure in ("auroc", "auprc"):
        values = complete(frame, measure)
        write_whole(folder / f"{protocol.name}_{measure}.csv", values.round(2).to_csv())
        if min(values.shape) >= MIN_TABLES:
            name = f"{protocol.name}_ranks_{measure}"
            figures.save(figures.critical_difference(values, measure.upper()), folder / name)
            text += f"\n![average ranks by {measure.upper()}, {protocol.title.lower()}]({folder.name}/{name}.png)\n"
    return text


def _introduction(n_tables: int) -> str:
    return f"""# The second study: ODDBench

Real tables outside the paper's study: scraped public tables, one column of each turned into the label (OddBench of macrOData, arXiv 2602.09329; files of psorus/Outformer, arXiv 2602.03018). Here are {n_tables} of its 790
tables, twice: trained on rows with anomalies among them, and trained on clean rows. All figures were measured by us, except those in the table that says "published".

± is a standard error over tables; "minus" is the mean paired difference over tables with its standard error. A rank is an average over tables (1 is best); bars beside the ranks join detectors that do not differ by
Nemenyi's test. Times are in [speed.md](speed.md): here, several runs shared the machine.
"""


def _published() -> str:
    table = pd.DataFrame(PUBLISHED, index=["AUROC", "AUPRC"]).T
    return f"""## Published figures for clean training rows

Published, not measured by us: some rows of table 4 of the paper on TaskBridge (Choi, Lee and Yoo, arXiv 2609.36968). We have not checked these methods. The means are over all 790 tables, so not over the same tables as above, and over five random seeds; tables have up to 100,000 rows there, up to 10,000 on either side here. IForest, kNN, LOF and ECOD are in both.

TaskBridge is first in that table: a tabular foundation model (TabICLv2) is asked, in tasks made from the table itself, whether the values of a row fit each other. TabPFN is its extension for anomalies.

{tables.markdown(table, 1, "detector, published")}"""


def _fine_print(lines: list[Line]) -> str:
    failed = [line for line in lines if line["error"]]
    together: dict[tuple[str, str, str], list[str]] = {}
    for line in failed:
        together.setdefault((line["dataset"], line["protocol"], line["error"]), []).append(line["detector"])
    n_tables = len({line["dataset"] for line in lines})
    reasons = "".join(
        f"\n    - {', '.join(detectors)} on {dataset} ({protocol}): {shorten(error, MAX_REASON, placeholder=' ...')}"
        for (dataset, protocol, error), detectors in together.items()
    )
    return f"""## What to keep in mind

- The settings of `RGLD.plus` and `RGLD.novelty` were chosen with the help of these tables ([plus.md](plus.md)): for them this is not a fresh test. `RGLD` and `RGLD.fast` have the paper's settings.
- [plus.md](plus.md) has slightly other means for the same detectors. It leaves out only tables that cannot be split, here a table is left out if any detector fails on it; and its random state of plus and novelty is 0, here it is 1. On clean training rows, its columns are as they are in the files, here they are scaled first.
- One split and one random state for each table. Labels of scraped tables are of mixed quality. Do not build on differences within two standard errors.
- At most 10,000 rows of a table are used (clean training rows: on either side). The {n_tables} tables that we ran were drawn at random among those of the collection with 500 to 60,000 rows, at least 4 columns, and at least 10 anomalies, but at most 20 % of the rows.
- A table is left out of a protocol if a detector has no result for it. {len(failed)} of {len(lines)} runs have none{":" if failed else "."}{reasons}
"""


def _again() -> str:
    return """## Run it again

    rgld bench run --tables FOLDER --out benchmarks/oddbench/plus --detectors RGLD-plus --detectors RGLD-novelty --brief
    rgld bench oddbench benchmarks/oddbench/others benchmarks/oddbench/plus --out docs/oddbench.md

FOLDER holds a file `NAME.npz` for each table, with the arrays `X`, `y` (1 = anomaly) and `n_train`; the first `n_train` rows hold no anomalies. The collection's tables are in `benchmarks/oddbench` of <https://github.com/psorus/Outformer>. They are not part of this repository. A run that was stopped continues. Delete `benchmarks/oddbench/plus/lines.jsonl` first if plus or novelty have changed; the lines of the other
detectors, in `benchmarks/oddbench/others`, stay.
"""
