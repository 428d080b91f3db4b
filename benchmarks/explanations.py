"""Writes the tables of docs/explanations.md: do explanations name the columns that were changed, and how fast?

python benchmarks/explanations.py
python benchmarks/explanations.py --only quality    # leaves the table of times as it is
python benchmarks/explanations.py --first-seed 5 --seeds 20 --show    # other tables, and the page stays as it is
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from pyod.models.copod import COPOD
from pyod.models.ecod import ECOD
from second_edition.run import FIRST_EDITION

from rgld import RGLD

PAGE = Path(__file__).parent.parent / "docs" / "explanations.md"
START, END = "<!-- benchmarks/explanations.py writes from here -->", "<!-- to here -->"

N_ROWS, N_COLUMNS, N_ANOMALIES, N_CHANGED = 2000, 50, 30, 3
SHIFT = 6.0
"""Standard deviations that a changed column is moved by."""
TOP = 0.02
"""Share of the rows that count as found."""
LARGE = 100_000
SCALINGS = FIRST_EDITION["preprocessing"]
"""`standard` and the three of today's plus."""

Rows = np.ndarray | pd.DataFrame
Table = tuple[Rows, np.ndarray]
"""Rows (n, d), and for the first `N_ANOMALIES` of them the changed columns (a, 3)."""


def changed_columns(rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.choice(N_COLUMNS, N_CHANGED, replace=False) for _ in range(N_ANOMALIES)])


def shift(rng: np.random.Generator, rows: np.ndarray, columns: np.ndarray) -> None:
    """Move the changed columns of the first rows up or down."""
    signs = rng.choice([-1.0, 1.0], columns.shape)
    rows[np.arange(len(columns))[:, None], columns] += SHIFT * signs


def independent(rng: np.random.Generator) -> Table:
    """Normal columns; three of an anomaly's are moved."""
    rows, columns = rng.normal(size=(N_ROWS, N_COLUMNS)), changed_columns(rng)
    shift(rng, rows, columns)
    return rows, columns


def correlated(rng: np.random.Generator) -> Table:
    """Five factors, ten columns each with correlations of 0.8; three columns of an anomaly are moved."""
    rows, columns = of_factors(rng, 0.8), changed_columns(rng)
    shift(rng, rows, columns)
    return rows, columns


def of_factors(rng: np.random.Generator, correlation: float) -> np.ndarray:
    factors = rng.normal(size=(N_ROWS, 5))[:, np.arange(N_COLUMNS) % 5]
    return np.sqrt(correlation) * factors + np.sqrt(1 - correlation) * rng.normal(size=(N_ROWS, N_COLUMNS))


def clusters(rng: np.random.Generator) -> Table:
    """Four clusters apart in every column; three columns of an anomaly leave its cluster, within the table's range."""
    centers = 10.0 * rng.normal(size=(4, N_COLUMNS))
    rows, columns = centers[rng.integers(4, size=N_ROWS)] + rng.normal(size=(N_ROWS, N_COLUMNS)), changed_columns(rng)
    shift(rng, rows, columns)
    return rows, columns


def dependencies(rng: np.random.Generator) -> Table:
    """Correlations of 0.98; three columns of an anomaly come from other rows: ordinary values, but not together."""
    rows, columns = of_factors(rng, 0.98), changed_columns(rng)
    original = rows.copy()
    for i, changed in enumerate(columns):
        for j in changed:
            # Of twenty rows, the one that differs most: another row may agree by chance.
            donors = original[rng.integers(N_ANOMALIES, N_ROWS, size=20), j]
            rows[i, j] = donors[np.abs(donors - original[i, j]).argmax()]
    return rows, columns


def skewed(make: Callable[[np.random.Generator], Table], rng: np.random.Generator) -> Table:
    """The same rows, but a third of the columns lognormal, and another third the cubes of normal columns."""
    rows, columns = make(rng)
    rows[:, 1::3] = np.exp(rows[:, 1::3])
    rows[:, 2::3] **= 3
    return rows, columns


def categories(rng: np.random.Generator) -> Table:
    """Forty normal columns, ten categories; two numbers of an anomaly are moved, and a category is its rare value."""
    rows, columns = rng.normal(size=(N_ROWS, N_COLUMNS - 10)), np.empty((N_ANOMALIES, N_CHANGED), dtype=np.int64)
    values = rng.choice(list("abcd"), (N_ROWS, 10), p=[0.5, 0.3, 0.19, 0.01])
    for own in columns:
        own[:] = *rng.choice(N_COLUMNS - 10, N_CHANGED - 1, replace=False), N_COLUMNS - 10 + rng.integers(10)
    shift(rng, rows, columns[:, :-1])
    values[np.arange(N_ANOMALIES), columns[:, -1] - (N_COLUMNS - 10)] = "d"
    numbers, texts = (pd.DataFrame(part).add_prefix(name) for part, name in ((rows, "number "), (values, "text ")))
    return pd.concat((numbers, texts), axis=1), columns


TABLES = {
    "independent": independent,
    "correlated": correlated,
    "clusters": clusters,
    "dependencies": dependencies,
    "skewed, independent": partial(skewed, independent),
    "skewed, correlated": partial(skewed, correlated),
    "skewed, dependencies": partial(skewed, dependencies),
    "categories": categories,
}

N_NORMAL = 4
"""The first so many have a table of figures of their own."""

Explained = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]
"""Scores of all rows, and a function from row numbers to contributions (rows, d)."""


def by_contributions(make: Callable[..., RGLD]) -> Callable[[Rows, int], Explained]:
    def explained(rows: Rows, seed: int) -> Explained:
        detector = make(random_state=seed).fit(rows)
        return detector.anomaly_score(rows), lambda chosen: detector.explain(rows).contributions[chosen]

    return explained


def by_occlusion(make: Callable[..., RGLD], *, evidence: bool) -> Callable[[np.ndarray, int], Explained]:
    """A column contributes what the score (or the mean evidence) loses when its median takes the value's place."""

    def explained(rows: np.ndarray, seed: int) -> Explained:
        detector = make(random_state=seed).fit(rows)

        def measure(table: np.ndarray) -> np.ndarray:
            return detector.explain(table).contributions.sum(axis=1) if evidence else detector.anomaly_score(table)

        def contributions(chosen: np.ndarray) -> np.ndarray:
            before, drops = measure(rows[chosen]), []
            for j, median in enumerate(np.median(rows, axis=0)):
                occluded = rows[chosen].copy()
                occluded[:, j] = median
                drops.append(before - measure(occluded))
            return np.array(drops).T

        return detector.anomaly_score(rows), contributions

    return explained


def by_tails(make: Callable[[], ECOD | COPOD]) -> Callable[[np.ndarray, int], Explained]:
    """PyOD's two detectors are sums over columns: the summands are their explanation."""

    def explained(rows: np.ndarray, seed: int) -> Explained:
        detector = make().fit(rows)
        return detector.decision_scores_, lambda chosen: detector.O[chosen]

    return explained


def by_z_scores(rows: np.ndarray, seed: int) -> Explained:
    """No detector at all: the distance from the column's median in interquartile ranges."""
    low, median, high = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
    z_scores = np.abs(rows - median) / (high - low)
    return z_scores.max(axis=1), lambda chosen: z_scores[chosen]


NAMED = 0.05
"""Reasons name the columns that contribute at least this fraction of the first one."""

EXPLAINERS = {
    "RGLD.plus().explain": by_contributions(RGLD.plus),
    "first edition of plus": by_contributions(partial(RGLD, **FIRST_EDITION)),
    "plus, the first edition's scalings": by_contributions(partial(RGLD.plus, preprocessing=SCALINGS)),
    "plus, no whitening": by_contributions(partial(RGLD.plus, whitening=0.0)),
    "plus, nothing trimmed": by_contributions(partial(RGLD.plus, trim=0.0)),
    "RGLD.novelty().explain": by_contributions(RGLD.novelty),
    "RGLD().explain": by_contributions(RGLD),
    "RGLD.fast().explain": by_contributions(RGLD.fast),
    "plus, occlusion of the score": by_occlusion(RGLD.plus, evidence=False),
    "plus, occlusion of the evidence": by_occlusion(RGLD.plus, evidence=True),
    "RGLD(), occlusion of the score": by_occlusion(RGLD, evidence=False),
    "COPOD": by_tails(COPOD),
    "ECOD": by_tails(ECOD),
    "robust z-scores": by_z_scores,
}

WITH_REASONS = [name for name in EXPLAINERS if name.endswith((".explain", "of plus"))]
"""Those that explain in words."""


def measured(seeds: range) -> Iterator[dict[str, object]]:
    for name, make in TABLES.items():
        for seed in seeds:
            rows, columns = make(np.random.default_rng(seed))
            for explainer, explain in EXPLAINERS.items():
                if isinstance(rows, pd.DataFrame) and explainer not in WITH_REASONS:
                    continue  # these read numbers only
                score, contributions = explain(rows, seed)
                found = np.flatnonzero(score[:N_ANOMALIES] >= np.quantile(score, 1 - TOP))
                line = {"table": name, "explainer": explainer, "found": len(found) / N_ANOMALIES}
                if len(found):
                    contributed = contributions(found)
                    is_changed = np.zeros(contributed.shape, dtype=bool)
                    np.put_along_axis(is_changed, columns[found], True, axis=1)
                    top = np.argsort(-contributed, axis=1)[:, :N_CHANGED]
                    hits = np.take_along_axis(is_changed, top, axis=1).sum(axis=1)
                    is_named = contributed >= NAMED * contributed.max(axis=1, keepdims=True)
                    right = (is_named & is_changed).sum(axis=1)
                    line |= {"all": np.mean(hits == N_CHANGED), "precision": hits.mean() / N_CHANGED}
                    line |= {"right": np.mean(right / is_named.sum(axis=1)), "named": right.mean() / N_CHANGED}
                yield line


def quality(seeds: range) -> str:
    """Return tables: how many of the three first columns were changed, and how many of those in reasons."""
    means = pd.DataFrame(measured(seeds)).groupby(["explainer", "table"]).mean(numeric_only=True)

    def table(title: str, names: list[str], explainers: list[str], cell: Callable[[pd.Series], str]) -> str:
        lines = [f"| {title}, in percent | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
        for explainer in explainers:
            rows = [100 * means.loc[(explainer, name)] if (explainer, name) in means.index else None for name in names]
            cells = ["-" if row is None or np.isnan(row["all"]) else cell(row) for row in rows]
            lines.append(f"| {explainer} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def top_three(row: pd.Series) -> str:
        return f"{row['precision']:.0f} / {row['all']:.0f} of {row['found']:.0f}"

    names, explainers = list(TABLES), list(EXPLAINERS)
    return "\n\n".join(
        (
            table("top three", names[:N_NORMAL], explainers, top_three),
            table("top three, other tables", names[N_NORMAL:], explainers, top_three),
            table("reasons", names, WITH_REASONS, lambda row: f"{row['right']:.0f} / {row['named']:.0f}"),
        )
    )


def seconds(action: Callable[[], object]) -> np.ndarray:
    """Return the time and the processor time of all threads."""
    start = np.array([time.perf_counter(), time.process_time()])
    action()
    return np.array([time.perf_counter(), time.process_time()]) - start


def times() -> str:
    rows = np.random.default_rng(0).normal(size=(LARGE, N_COLUMNS))
    measured = {}
    for name, make in (("RGLD.plus()", RGLD.plus), ("RGLD()", RGLD), ("RGLD.fast()", RGLD.fast)):
        detector = make(random_state=0).fit(rows)
        detector.explain(rows[:1000])
        measured[f"{name}.explain"] = seconds(partial(detector.explain, rows))
        occlusion = N_COLUMNS * seconds(partial(detector.anomaly_score, rows))
        measured[f"{name}, occlusion of the score ({N_COLUMNS} times the time of scoring)"] = occlusion
    measured["COPOD, fit, which its explanation comes with"] = seconds(partial(COPOD().fit, rows))
    measured["ECOD, the same"] = seconds(partial(ECOD().fit, rows))
    lines = [f"| {LARGE:,} x {N_COLUMNS}, {os.cpu_count()} cores | seconds | processor seconds |", "|---|---|---|"]
    lines += [f"| {name} | {wall:.1f} | {processor:.1f} |" for name, (wall, processor) in measured.items()]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="print the tables and leave the page as it is")
    parser.add_argument("--only", choices=["quality", "times"], help="only this table; the other one stays")
    arguments = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START)
    old, after = rest.split(END)
    how_good, how_fast = old.strip().rsplit("\n\n", maxsplit=1)
    if arguments.only != "times":
        how_good = quality(range(arguments.first_seed, arguments.first_seed + arguments.seeds))
    if arguments.only != "quality":
        how_fast = times()
    made = f"{START}\n\n{how_good}\n\n{how_fast}\n\n{END}"
    if not arguments.show:
        PAGE.write_text(before + made + after, encoding="utf-8")
    print(made)


if __name__ == "__main__":
    main()
