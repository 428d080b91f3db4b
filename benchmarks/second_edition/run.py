"""The accuracy of `RGLD.plus()` and `RGLD.novelty()` on five collections, rerunnable.

    python benchmarks/second_edition/run.py --report
    python benchmarks/second_edition/run.py --adbench FOLDER --tables FOLDER

The first writes the tables of docs/plus.md from the committed lines. The second runs what has no line in results.csv
yet before.
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when NumPy is imported: one process uses one core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.ensemble import IsolationForest

from rgld import RGLD
from rgld._arrays import Float64s, Floats
from rgld.bench.datasets import load_npz, registry
from rgld.bench.protocol import MAX_STUDY_ROWS, Split, measure, split
from rgld.bench.synthetic import ANOMALY_KINDS, typed
from rgld.bench.tables import OTHER_44

sys.path.append(str(Path(__file__).parents[1]))
import search

RESULTS = Path(__file__).with_name("results.csv")
KEY = ["collection", "number", "name", "seed", "detector", "state"]
FIELDS = [*KEY, "auroc", "auprc", "seconds"]
BOTH = ["auroc", "auprc"]

COLLECTIONS = {
    "adbench": "ADBench, the paper's protocol",
    "tables": "Tables, the paper's protocol",
    "full": "ADBench, whole tables of at most 50,000 rows",
    "typed": "Typed anomalies",
    "clean": "Tables, training rows without anomalies",
}
TITLES = {
    "adbench": "ADBench",
    "full": "ADBench, whole tables",
    "typed": "typed anomalies",
    "tables": "tables",
    "unseen": "tables that the first search did not use",
}
ALONE = "plus, no relations"
VARIANTS: dict[str, dict[str, Any]] = {
    ALONE: {},
    "plus, all training rows": {"max_training_rows": None},
    "plus, 4,096 training rows": {"max_training_rows": 4096},
    "plus, 60 local views": {"n_local_views": 60},
    "plus, nothing trimmed": {"trim": 0.0},
    "plus, trim 0.2": {"trim": 0.2},
    "plus, trim 0.3": {"trim": 0.3},
    "plus, trim 0.5": {"trim": 0.5},
    "plus, no leverage views": {"n_global_views": 0},
    "plus, 12 leverage views": {"n_global_views": 12},
    "plus, leverage ridge 0.1": {"ridge": 0.1},
    "plus, local weight 0.5": {"local_weight": 0.5},
    "plus, local weight 0.75": {"local_weight": 0.75},
    "plus, local weight 0.85": {"local_weight": 0.85},
    "plus, 25 references, 3 neighbours": {"n_references": 25, "n_neighbors": 3},
    "plus, 100 references, 10 neighbours": {"n_references": 100, "n_neighbors": 10},
    "plus, 200 references, 5 neighbours": {"n_references": 200},
    "plus, no whitening": {"whitening": 0.0},
    "plus, whitening with ridge 0.5": {"whitening": (0.0, 0.0, 0.0, 0.5)},
    "plus, a third of the views whitened": {"feature_fraction": (1.0, 0.3, 1.0), "whitening": (0.0, 0.0, 0.1)},
    "plus, standard as a fourth scaling": {"preprocessing": ("arcsinh", "arcsinh-standard", "quantile", "standard")},
    "plus, no quantile scaling": {"preprocessing": ("arcsinh", "arcsinh-standard")},
    "plus, all columns": {"max_features": None},
}
"""Plus without relations, and this with one setting changed: views and relations have nothing in common."""
OTHERS = ("first edition", "IForest", "ADERH-script")
OF_HALVES = ("first edition", "IForest")
"""The detectors from which plus is also told apart by halves."""
SEARCHED = ("adbench", "tables")
"""The collections on which settings were chosen."""
MIN_LOSS = {"auroc": 3.0, "auprc": 8.0}
"""Differences, in points, that count as a loss."""
MAX_NAMED = 15
PAGE = Path(__file__).parents[2] / "docs" / "plus.md"
START, END = "<!-- benchmarks/second_edition/run.py writes from here -->", "<!-- to here -->"
MAX_FULL_ROWS = 50_000
FIRST_EDITION = {
    "n_global_views": 0,
    "n_local_views": 64,
    "n_references": 100,
    "feature_fraction": (1.0, 0.3),
    "projection": "orthogonal",
    "preprocessing": ("standard", "arcsinh", "arcsinh-standard", "quantile"),
    "aggregation": "standard",
}
"""`RGLD.plus()` as it was before."""


class Key(NamedTuple):
    """One split of a dataset. Number is ADBench's, or the place in the alphabet."""

    collection: str
    number: int
    name: str
    seed: int


def keys_of(collection: str, tables: Path) -> Iterator[Key]:
    """Yield the splits of a collection."""
    if collection in ("adbench", "full"):
        for entry in registry().values():
            if entry.name in OTHER_44 or (collection == "full" and entry.rows > MAX_FULL_ROWS):
                continue
            for seed in (1,) if collection == "full" else (1, 2, 3):
                yield Key(collection, entry.number, entry.name, seed)
    elif collection == "typed":
        for number, kind in enumerate(ANOMALY_KINDS, 1):
            for seed in (1, 2, 3):
                yield Key(collection, number, kind, seed)
    else:
        for number, path in enumerate(sorted(tables.glob("*.npz")), 1):
            yield Key(collection, number, path.stem, 1)


def split_of(key: Key, adbench: Path, tables: Path) -> Split:
    """Return the rows to fit, the rows to score and their labels."""
    if key.collection == "clean":
        return clean_split(tables / f"{key.name}.npz")
    if key.collection == "typed":
        X, y = typed(key.name, seed=key.seed)
    elif key.collection == "tables":
        X, y = load_npz(tables / f"{key.name}.npz")
    else:
        X, y = load_npz(adbench / registry()[key.name].file_name)
    return split(X, y, key.seed, "full" if key.collection == "full" else "paper")


def clean_split(path: Path) -> Split:
    """Return the table's own split: its first `n_train` rows hold no anomalies. At most 10,000 rows of each part."""
    X, y = load_npz(path)
    with np.load(path, allow_pickle=False) as archive:
        n_train = int(archive["n_train"])
    rng = np.random.default_rng(0)
    train, test = np.arange(n_train), np.arange(n_train, len(X))
    if len(train) > MAX_STUDY_ROWS:
        train = train[rng.choice(len(train), MAX_STUDY_ROWS, replace=False)]
    if len(test) > MAX_STUDY_ROWS:
        test = test[rng.choice(len(test), MAX_STUDY_ROWS, replace=False)]
    return Split(X[train], X[test], y[test])


def detectors_of(collection: str) -> tuple[str, ...]:
    names = ("plus", "first edition", "IForest")
    if collection in ("adbench", "tables"):
        return (*names, *VARIANTS)
    return ("novelty", "novelty, no relations", ALONE, *names) if collection == "clean" else (ALONE, *names)


def scores_of(detector: str, state: int, train: Floats, test: Floats, seed: int) -> Float64s:
    """Return the scores of the test rows."""
    if detector == "IForest":
        return -IsolationForest(random_state=seed, n_jobs=1).fit(train).score_samples(test)
    makers: dict[str, Callable[..., RGLD]] = {
        "plus": RGLD.plus,
        "novelty": RGLD.novelty,
        "first edition": partial(RGLD, **FIRST_EDITION),
        **{name: partial(RGLD.plus, relations=False, **settings) for name, settings in VARIANTS.items()},
        "novelty, no relations": partial(RGLD.novelty, relations=False),
    }
    return makers[detector](random_state=state, n_jobs=1).fit(train).anomaly_score(test)


def lines_of(key: Key, todo: list[tuple[str, int]], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the lines of detectors (with their random states) on one split."""
    try:
        train, test, labels = split_of(key, arguments.adbench, arguments.tables)
    except ValueError:  # two tables have too few anomalies for a stratified split
        return []
    train, test = np.ascontiguousarray(train, np.float64), np.ascontiguousarray(test, np.float64)
    lines = []
    for detector, state in todo:
        start = time.process_time()
        scores = scores_of(detector, state, train, test, key.seed)
        seconds = time.process_time() - start
        auroc, auprc = measure(labels, scores)
        numbers = {"auroc": round(auroc, 4), "auprc": round(auprc, 4), "seconds": round(seconds, 4)}
        lines.append({**key._asdict(), "detector": detector, "state": state, **numbers})
    return lines


def run(arguments: argparse.Namespace) -> None:
    """Run what has no line yet."""
    done = set(read()[KEY].itertuples(index=False, name=None))
    tasks = []
    for collection in arguments.collections:
        chosen = [name for name in detectors_of(collection) if not arguments.detectors or name in arguments.detectors]
        for key in keys_of(collection, arguments.tables):
            n_states = arguments.states if collection == "adbench" else 1
            every = [(name, state) for name in chosen for state in range(1 if name == "IForest" else n_states)]
            todo = [pair for pair in every if (*key, *pair) not in done]
            if todo:
                tasks.append((key, todo, arguments))
    parallel = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered", batch_size=1)
    with open(RESULTS, "a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        for lines in parallel(delayed(lines_of)(*task) for task in tasks):
            writer.writerows(lines)
            file.flush()


def read() -> pd.DataFrame:
    return pd.read_csv(RESULTS, dtype={"name": str}, keep_default_na=False)


def aderh() -> pd.DataFrame:
    """Return the lines of ADERH on the same splits, which the first search has (benchmarks/search/lines.csv)."""
    frame = search.read().rename(columns={"dataset": "name", "candidate": "detector"})
    return frame[(frame["detector"] == "ADERH-script") & ((frame["collection"] != "tables") | (frame["seed"] == 1))]


def searched_tables() -> set[str]:
    """Return the names of the tables that the first search has seen."""
    frame = search.read()
    return set(frame.loc[frame["collection"] == "tables", "dataset"])


def by_dataset(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over splits and random states."""
    return frame.groupby("name")[BOTH].mean()


def pair(values: Iterable[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in values)


def halves(lines: pd.DataFrame) -> list[str]:
    """Return the means over all datasets, over those with even and over those with odd numbers."""
    is_even = lines["number"] % 2 == 0
    return [pair(by_dataset(part).mean()) for part in (lines, lines[is_even], lines[~is_even])]


def difference(first: pd.DataFrame, second: pd.DataFrame) -> str:
    """Return the mean paired difference over datasets with its standard error, and on how many the first is better."""
    apart = (first - second).dropna()
    mean, error = apart.mean(), apart.std() / np.sqrt(len(apart))
    both = " / ".join(f"{mean[name]:+.2f} ± {error[name]:.2f}" for name in BOTH)
    better = " and ".join(str((apart[name] > 0).sum()) for name in BOTH)
    return f"{both}; better on {better} of {len(apart)}"


def by_half(first: pd.DataFrame, second: pd.DataFrame) -> Iterator[str]:
    """Yield the difference over the datasets with even numbers, and over those with odd ones."""
    for is_odd in (0, 1):
        one, other = (by_dataset(own[own["number"] % 2 == is_odd]) for own in (first, second))
        yield difference(one, other).partition(";")[0]


def chosen_on(half: int, of: dict[tuple[str, str], pd.DataFrame]) -> Iterator[str]:
    """Yield the variant that is best on one half of ADBench and of the tables (0: the even one), and how it differs
    from plus there and on the other half. Best is the largest mean of AUROC and AUPRC over both collections."""

    def on(name: str, part: str, which: int) -> pd.DataFrame:
        lines = of[part, name]
        return by_dataset(lines[lines["number"] % 2 == which])

    best = max(VARIANTS, key=lambda name: sum(float(on(name, part, half).mean().mean()) for part in SEARCHED))
    yield best
    for which in (half, 1 - half):
        for part in SEARCHED:
            yield difference(on(best, part, which), on(ALONE, part, which)).partition(";")[0]


def losses(first: pd.DataFrame, second: pd.DataFrame) -> str:
    """Return the datasets on which the first loses clearly, worst first."""
    words = []
    for name in BOTH:
        apart = (first[name] - second[name]).dropna().sort_values()
        named = [f"{dataset} ({value:+.1f})" for dataset, value in apart.items() if value < -MIN_LOSS[name]]
        words.append(f"{name.upper()} {', '.join(named[:MAX_NAMED]) or 'none'}")
    return "; ".join(words)


def table(*rows: Iterable[str]) -> str:
    """Return a table of Markdown; the first row is its head."""
    head, *others = [f"| {' | '.join(row)} |\n" for row in rows]
    return head + "|---" * (head.count("|") - 1) + "|\n" + "".join(others)


def lines_by_part() -> dict[tuple[str, str], pd.DataFrame]:
    """Return the lines of each collection (and of the tables that no search had seen) and detector."""
    lines = pd.concat((read(), aderh()))
    parts = {name: lines[lines["collection"] == name] for name in COLLECTIONS}
    parts["unseen"] = parts["tables"][~parts["tables"]["name"].isin(searched_tables())]
    return {(part, name): own for part, chosen in parts.items() for name, own in chosen.groupby("detector")}


def figures() -> str:
    """Return the tables of docs/plus.md."""
    of = lines_by_part()
    means = {key: by_dataset(own) for key, own in of.items()}
    accuracy = [("AUROC / AUPRC", "datasets", "plus", "even half", "odd half", *OTHERS)]
    differences = [("plus minus", *OTHERS)]
    for part, title in TITLES.items():
        n_datasets = len(means[part, "plus"])
        # ADERH was run on the tables of the first search only.
        whole = [name for name in OTHERS if len(means.get((part, name), ())) == n_datasets]
        others = [pair(means[part, name].mean()) if name in whole else "-" for name in OTHERS]
        accuracy.append((title, str(n_datasets), *halves(of[part, "plus"]), *others))
        apart = [difference(means[part, "plus"], means[part, name]) if (part, name) in of else "-" for name in OTHERS]
        differences.append((title, *apart))
    of_halves = [("plus minus", *(f"{name}, {half}" for name in OF_HALVES for half in ("even", "odd")))]
    for part in ("adbench", "tables", "unseen"):
        cells = [cell for name in OF_HALVES for cell in by_half(of[part, "plus"], of[part, name])]
        of_halves.append((TITLES[part], *cells))
    states = [pair(by_dataset(own).mean()) for _, own in of["adbench", "plus"].groupby("state")]
    kinds = [
        (kind, *(pair(means["typed", name].loc[kind]) for name in ("plus", *OTHERS)))
        for kind in means["typed", "plus"].index
    ]
    every = ("novelty", "novelty, no relations", "plus", ALONE, "first edition", "IForest")
    finished = [name for name in every if len(means.get(("clean", name), ())) == len(means["clean", "IForest"])]
    best = finished[0]
    clean = [("AUROC / AUPRC", "all", "even half", "odd half", f"{best} minus it")]
    for name in finished:
        apart = "" if name == best else difference(means["clean", best], means["clean", name])
        clean.append((name, *halves(of["clean", name]), apart))
    variants = [("AUROC / AUPRC", "ADBench", "minus it", "tables", "minus it")]
    for name in VARIANTS:
        cells = [name]
        for part in ("adbench", "tables"):
            apart = "" if name == ALONE else difference(means[part, name], means[part, ALONE]).partition(";")[0]
            cells += [pair(means[part, name].mean()), apart]
        variants.append(tuple(cells))
    head = ("chosen on", "setting", "there: ADBench", "there: tables", "other half: ADBench", "other half: tables")
    chosen = [
        head,
        *(("the even half", "the odd half")[half : half + 1] + tuple(chosen_on(half, of)) for half in (0, 1)),
    ]
    related = [("", "datasets", "without relations", "with", "difference")]
    for part in COLLECTIONS:
        name = "novelty" if part == "clean" else "plus"
        with_relations = means[part, name]
        without = means[part, f"{name}, no relations"].loc[with_relations.index]
        cells = (pair(without.mean()), pair(with_relations.mean()), difference(with_relations, without))
        related.append((f"{name}: {COLLECTIONS[part]}", str(len(without)), *cells))
    lost = [
        f"- {TITLES[part]}, against {other}: {losses(means[part, 'plus'], means[part, other])}\n"
        for part in ("adbench", "tables")
        for other in ("first edition", "IForest")
    ]
    return f"""{table(*accuracy)}
Mean differences over datasets, with their standard errors:

{table(*differences)}
The same differences on the even and on the odd half:

{table(*of_halves)}
The random states of plus on ADBench: {", ".join(states)}.

Typed anomalies, by kind:

{table(("AUROC / AUPRC", "plus", *OTHERS), *kinds)}
Training rows without anomalies (the tables' own split):

{table(*clean)}
Plus without relations, and this with one setting changed:

{table(*variants)}
The best of these settings on one half of the datasets, and what it is worth on the other half, minus plus without
relations. Best is the largest mean of AUROC and AUPRC over both collections.

{table(*chosen)}
What relations change, on the datasets that have been run with them:

{table(*related)}
Where plus loses more than 3 points of AUROC or 8 of AUPRC, at most {MAX_NAMED} datasets each:

{"".join(lost)}"""


def write_page() -> None:
    """Put the tables into docs/plus.md."""
    before, _, rest = PAGE.read_text().partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n\n{figures()}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--report", action="store_true", help="only write the tables")
    parser.add_argument("--adbench", type=Path, help="folder of ADBench's files, number_name.npz")
    parser.add_argument("--tables", type=Path, help="folder of labelled tables, name.npz")
    parser.add_argument("--collections", nargs="*", choices=list(COLLECTIONS), default=list(COLLECTIONS))
    parser.add_argument("--detectors", nargs="*", help="only these, such as plus or novelty")
    parser.add_argument("--states", type=int, default=3, help="random states per split of ADBench; elsewhere one")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if not arguments.report:
        if arguments.adbench is None or arguments.tables is None:
            parser.error("--adbench FOLDER and --tables FOLDER are needed to run; --report does without")
        run(arguments)
    write_page()


if __name__ == "__main__":
    main()
