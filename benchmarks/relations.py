"""Rows that break a relation: how many are found, and how many of these are explained by the right columns.

    python benchmarks/relations.py FOLDER
    python benchmarks/relations.py FOLDER --times
    python benchmarks/relations.py FOLDER --accuracy ADBENCH TABLES

FOLDER holds public tables: flights.csv, ames.csv, claims.csv, telco.csv, medicare_cost.csv. Missing ones are left
out. Violations of five kinds are planted in them, and in a made table of 100 columns: at most 1 % of the rows
altogether. Each planted cell gets the value of another row of the same column, so that no cell is unusual by
itself. Printed per kind: how many planted rows are among the most anomalous 1 %, for `RGLD.plus()` with and without
relations, IsolationForest and LOF; and of those that plus finds, how many are explained by a relation between the
right columns. Then false alarms: rows that are said to break a relation in the tables as they are, and in tables of
independent columns. --times prints instead the time of fit and score beside that without relations; --accuracy prints
what relations do to AUROC and AUPRC on the collections of benchmarks/second_edition/run.py, whose folders it takes.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import numpy as np
import polars as pl
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import StandardScaler

from rgld import RGLD
from rgld._model.scores import anomaly_score

SEEDS = (1, 2, 3)
TOP = 0.01
MAX_PLANTED = 0.009
"""Fraction of the rows that are planted, all kinds together."""
MAX_EACH = 10
KINDS = ("sum or product", "order", "never together", "determined", "number beside a value")


@dataclass(frozen=True)
class Plant:
    """A kind of violation in a table."""

    kind: str
    changed: tuple[str, ...]
    """Columns that get the values of another row, or that are swapped."""
    partners: tuple[str, ...]
    """Columns that these no longer fit."""
    where: Callable[[pl.DataFrame], pl.Expr] | None = None
    """Rows that can be planted."""
    source: Callable[[pl.DataFrame], pl.Expr] | None = None
    """Rows whose values they can get."""
    swap: bool = False


def at(column: str, *values: str) -> Callable[[pl.DataFrame], pl.Expr]:
    return lambda _: pl.col(column).cast(pl.String).is_in(values)


def other(column: str, *values: str) -> Callable[[pl.DataFrame], pl.Expr]:
    return lambda _: ~pl.col(column).cast(pl.String).is_in(values)


PLANTS: dict[str, list[Plant]] = {
    "flights": [
        Plant("sum or product", ("ACTUAL_ELAPSED_TIME",), ("CRS_ELAPSED_TIME", "ARR_DELAY", "DEP_DELAY")),
        Plant("never together", ("DEST",), ("ORIGIN", "DEST_AIRPORT_ID"), at("ORIGIN", "ATL"), at("DEST", "ATL")),
        Plant("determined", ("ORIGIN_AIRPORT_ID",), ("ORIGIN",)),
        Plant(
            "number beside a value",
            ("CRS_ELAPSED_TIME", "ACTUAL_ELAPSED_TIME"),
            ("DISTANCE", "DEST", "ORIGIN", "ARR_DELAY", "DEP_DELAY"),
            lambda _: pl.col("DISTANCE") < 1000,
            lambda _: pl.col("DISTANCE") > 1800,
        ),
    ],
    "ames": [
        Plant("sum or product", ("Gr Liv Area",), ("1st Flr SF", "2nd Flr SF")),
        Plant("sum or product", ("Total Bsmt SF",), ("BsmtFin SF 1", "Bsmt Unf SF")),
        Plant(
            "order",
            ("Year Built", "Year Remod/Add"),
            ("Year Built", "Year Remod/Add"),
            lambda _: pl.col("Year Remod/Add") > pl.col("Year Built") + 5,
            None,
            swap=True,
        ),
        Plant("never together", ("Bldg Type",), ("MS SubClass",), at("MS SubClass", "60"), at("Bldg Type", "TwnhsE")),
        Plant(
            "number beside a value",
            ("Garage Area",),
            ("Garage Type", "Garage Finish", "Garage Cars", "Garage Qual", "Garage Cond"),
            at("Garage Type", "NA"),
            other("Garage Type", "NA"),
        ),
    ],
    "claims": [
        Plant("sum or product", ("total_claim_amount",), ("injury_claim", "property_claim", "vehicle_claim")),
        Plant("order", ("vehicle_claim", "total_claim_amount"), ("vehicle_claim", "total_claim_amount"), swap=True),
        Plant(
            "never together",
            ("collision_type",),
            ("incident_type",),
            at("incident_type", "Vehicle Theft", "Parked Car"),
            at("collision_type", "Rear Collision", "Side Collision"),
        ),
        Plant("determined", ("auto_make",), ("auto_model",)),
        Plant(
            "number beside a value",
            ("total_claim_amount", "injury_claim", "property_claim", "vehicle_claim"),
            ("incident_type", "incident_severity", "collision_type", "authorities_contacted"),
            at("incident_type", "Vehicle Theft", "Parked Car"),
            lambda _: pl.col("total_claim_amount") > 60_000,
        ),
    ],
    "telco": [
        Plant(
            "sum or product",
            ("TotalCharges",),
            ("tenure", "MonthlyCharges"),
            lambda _: pl.col("tenure") < 6,
            lambda _: pl.col("tenure") > 60,
        ),
        Plant(
            "order",
            ("MonthlyCharges", "TotalCharges"),
            ("MonthlyCharges", "TotalCharges"),
            lambda _: pl.col("tenure") > 3,
            swap=True,
        ),
        Plant(
            "never together",
            ("StreamingTV",),
            ("InternetService",),
            at("InternetService", "No"),
            at("StreamingTV", "Yes", "No"),
        ),
        Plant(
            "determined",
            ("MultipleLines",),
            ("PhoneService",),
            at("PhoneService", "No"),
            at("MultipleLines", "Yes", "No"),
        ),
        Plant(
            "number beside a value",
            ("MonthlyCharges",),
            ("InternetService",),
            at("InternetService", "No"),
            at("InternetService", "Fiber optic"),
        ),
    ],
    "medicare_cost": [
        Plant("sum or product", ("Total Payment",), ("Total Discharges ", "Average Total Payments ")),
        Plant("sum or product", ("Reimbursement Rate",), ("Average Covered Charges ", "Average Total Payments ")),
        Plant(
            "determined",
            ("Provider State",),
            (
                "City, State",
                "Provider City",
                "Provider Name",
                "Hospital Referral Region Description",
                "Provider Street Address",
            ),
        ),
        Plant("determined", ("Classification",), ("Definition", "DRG")),
    ],
    "made of 100 columns": [
        Plant("sum or product", ("total",), ("part_1", "part_2", "part_3")),
        Plant("sum or product", ("amount",), ("price", "quantity")),
        Plant("order", ("begin", "end"), ("begin", "end"), swap=True),
        Plant("never together", ("status",), ("payment",), at("payment", "cash"), at("status", "refused")),
        Plant("determined", ("region",), ("city",)),
        Plant("number beside a value", ("tip",), ("payment",), at("payment", "cash"), at("payment", "card")),
    ],
}


def made(n: int = 5000, seed: int = 0) -> pl.DataFrame:
    """Return a table of 100 columns with relations among twelve of them; the others are independent."""
    rng = np.random.default_rng(seed)
    parts = rng.gamma(2.0, 50.0, (n, 3)).round(2)
    price, quantity = rng.lognormal(2, 0.7, n).round(2), rng.integers(1, 40, n)
    begin = np.datetime64("2024-01-01", "ms") + rng.integers(0, 365 * 1440, n).astype("timedelta64[m]")
    payment = rng.choice(["card", "cash"], n, p=[0.7, 0.3])
    status = np.where((payment == "card") & (rng.random(n) < 0.2), "refused", "paid")
    city = rng.integers(0, 60, n)
    columns = {
        "total": parts.sum(axis=1).round(2),
        **{f"part_{k + 1}": parts[:, k] for k in range(3)},
        "price": price,
        "quantity": quantity,
        "amount": (price * quantity).round(2),
        "begin": begin,
        "end": begin + rng.gamma(2.0, 20_000, n).astype(int).astype("timedelta64[m]"),
        "payment": payment,
        "status": status,
        "tip": np.where(payment == "cash", 0.0, rng.gamma(2, 2, n).round(2)),
        "city": [f"city {c}" for c in city],
        "region": [f"region {c % 7}" for c in city],
    }
    for k in range(100 - len(columns)):
        columns[f"noise_{k}"] = rng.normal(size=n) if k % 4 else rng.choice(list("abcd"), n)
    return pl.DataFrame(columns)


def independent(n: int, d: int, seed: int) -> pl.DataFrame:
    """Return a table of independent columns: normal, skewed, whole numbers, dates, categories, flags, with gaps."""
    rng = np.random.default_rng(seed)
    makers = (
        lambda: rng.normal(size=n),
        lambda: rng.lognormal(0, 1.5, n).round(2),
        lambda: rng.integers(0, 100, n).astype(float),
        lambda: rng.choice(list("abcdef"), n, p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01]),
        lambda: rng.random(n) < 0.1,
        lambda: np.datetime64("2024-01-01", "ms") + rng.integers(0, 365 * 1440, n).astype("timedelta64[m]"),
        lambda: np.where(rng.random(n) < 0.2, np.nan, rng.standard_t(3, n)),
        lambda: rng.pareto(1.0, n),
    )
    return pl.DataFrame({f"c{j}": makers[j % len(makers)]() for j in range(d)})


def planted(table: pl.DataFrame, plants: list[Plant], seed: int) -> tuple[pl.DataFrame, list[tuple[int, Plant]]]:
    """Return the table with planted rows, and which they are."""
    rng = np.random.default_rng(seed)
    each = min(MAX_EACH, max(1, round(MAX_PLANTED * len(table) / len(plants))))
    cells = {name: table[name].to_list() for plant in plants for name in plant.changed}
    index = pl.Series(np.arange(len(table)))
    used: set[int] = set()
    rows: list[tuple[int, Plant]] = []
    for plant in plants:
        present = pl.all_horizontal(pl.col(name).is_not_null() for name in plant.changed)
        can = index.filter(table.select(present & (plant.where(table) if plant.where else pl.lit(True))).to_series())
        sources = index.filter(
            table.select(present & (plant.source(table) if plant.source else pl.lit(True))).to_series()
        )
        n_planted = 0
        for row in rng.permutation(can.to_numpy()):
            old = [table[name][int(row)] for name in plant.changed]
            new = (
                old[::-1]
                if plant.swap
                else [table[name][int(rng.choice(sources.to_numpy()))] for name in plant.changed]
            )
            if len(plant.changed) > 1 and not plant.swap:
                source = int(rng.choice(sources.to_numpy()))
                new = [table[name][source] for name in plant.changed]
            if int(row) in used or n_planted == each or not _differs(old, new):
                continue
            for name, value in zip(plant.changed, new, strict=True):
                cells[name][int(row)] = value
            used.add(int(row))
            rows.append((int(row), plant))
            n_planted += 1
    changed = table.with_columns(pl.Series(name, values, dtype=table[name].dtype) for name, values in cells.items())
    return changed, rows


def _differs(old: list[object], new: list[object]) -> bool:
    """Tell whether every value changes; numbers by a quarter at least, so that a person would see it."""
    for a, b in zip(old, new, strict=True):
        if isinstance(a, (int, float)) and not isinstance(a, bool):
            if abs(b - a) < 0.25 * max(abs(a), abs(b)):
                return False
        elif a == b:
            return False
    return True


def as_matrix(table: pl.DataFrame) -> np.ndarray:
    """Return the table as numbers for the other detectors: dates in seconds, frequent values one-hot, gaps filled."""
    columns = []
    for column in table.get_columns():
        if column.dtype.is_numeric() or column.dtype == pl.Boolean or column.dtype.is_temporal():
            own = column.to_physical().cast(pl.Float64).to_numpy()
            columns.append(np.nan_to_num(own, nan=np.nanmedian(own)) if np.isfinite(own).any() else np.zeros(len(own)))
        elif column.n_unique() <= 1000:
            frequent = column.value_counts(sort=True)[column.name][:20].to_list()
            columns += [(column == value).fill_null(False).to_numpy().astype(float) for value in frequent if value]
    return StandardScaler().fit_transform(np.column_stack(columns))


def top_rows(scores: np.ndarray) -> set[int]:
    return set(np.argsort(-scores, kind="stable")[: round(TOP * len(scores))].tolist())


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--accuracy", nargs=2, type=Path, metavar=("ADBENCH", "TABLES"))
    arguments = parser.parse_args()
    if arguments.accuracy:
        print_accuracy(*arguments.accuracy)
        return
    if arguments.times:
        print_times(read_tables(arguments.folder))
        return
    tables = {"made of 100 columns": made(), **read_tables(arguments.folder)}
    print_found(tables, arguments.verbose)
    print_alarms(tables)


def read_tables(folder: Path) -> dict[str, pl.DataFrame]:
    """Return the tables of the folder."""
    tables = {}
    for name in PLANTS:
        if (folder / f"{name}.csv").exists():
            tables[name] = pl.read_csv(folder / f"{name}.csv", infer_schema_length=None)
            if name == "telco":  # eleven cells are blank
                tables[name] = tables[name].with_columns(pl.col("TotalCharges").cast(pl.Float64, strict=False))
    return tables


def print_found(tables: dict[str, pl.DataFrame], verbose: bool) -> None:
    """Print how many planted rows are found, by kind and by table."""
    counts: dict[tuple[str, str], np.ndarray] = {}
    for name, table in tables.items():
        for seed in SEEDS:
            changed, rows = planted(table, PLANTS[name], seed)
            detector = RGLD.plus(random_state=seed)
            tops = {
                "plus": top_rows(detector.fit(changed).anomaly_score(changed)),
                "without": top_rows(RGLD.plus(random_state=seed, relations=False).fit(changed).anomaly_score(changed)),
            }
            matrix = as_matrix(changed)
            tops["IForest"] = top_rows(-IsolationForest(random_state=seed).fit(matrix).score_samples(matrix))
            tops["LOF"] = top_rows(-LocalOutlierFactor(n_neighbors=20).fit(matrix).negative_outlier_factor_)
            explained = explained_rows(detector, changed, rows)
            for row, plant in rows:
                found = [row in top for top in tops.values()]
                counts.setdefault((name, plant.kind), np.zeros(6, int))
                counts[name, plant.kind] += [1, *found, found[0] and row in explained]
                if verbose and not found[0]:
                    print("missed", name, plant.kind, plant.changed, row)
                elif verbose and row not in explained:
                    print("unexplained", name, plant.kind, plant.changed, row)
    heading = "| | planted | plus | without relations | IForest | LOF | right columns, of those plus finds |"
    for title, place in (("kind", 1), ("table", 0)):
        print(f"\n{heading.replace('| |', f'| {title} |', 1)}\n|---|---|---|---|---|---|---|")
        names = dict.fromkeys(key[place] for key in counts)
        for name in [*names, "all"]:
            total = sum(own for key, own in counts.items() if name in (key[place], "all"))
            print(f"| {name} | " + " | ".join(map(str, total)) + " |")


def explained_rows(detector: RGLD, table: pl.DataFrame, rows: list[tuple[int, Plant]]) -> set[int]:
    """Return the planted rows whose first broken relation names a changed column and one that it no longer fits."""
    explanation = detector.explain(table[[row for row, _ in rows]])
    right = set()
    for place, (row, plant) in enumerate(rows):
        broken = explanation.broken_relations(place)
        named = set(broken[0].columns) if broken else set()
        if any(a in named and b in named for a in plant.changed for b in plant.partners if a != b):
            right.add(row)
    return right


def print_alarms(tables: dict[str, pl.DataFrame]) -> None:
    """Print how many rows break a relation in tables without planted rows."""
    print("\n| table as it is | rows | relations | rows that break one |\n|---|---|---|---|")
    made_tables = {
        f"independent columns, {n} x {d}": independent(n, d, 1)
        for n, d in ((200, 8), (2000, 20), (5000, 100), (1000, 100), (30000, 20))
    }
    for name, table in {**tables, **made_tables}.items():
        detector = RGLD.plus(random_state=1).fit(table)
        scores = detector.branch_scores(table).relation_score
        n_broken = 0 if scores is None else int((scores > 0).sum())
        print(f"| {name} | {len(table)} | {len(detector.relations_)} | {n_broken} |")


def print_accuracy(adbench: Path, tables: Path) -> None:
    """Print mean AUROC and AUPRC with and without relations: one fit gives both."""
    sys.path.append(str(Path(__file__).parent / "second_edition"))
    import run

    print("| collection | splits | without relations | with | rows that break one |\n|---|---|---|---|---|")
    for collection in ("adbench", "tables", "clean"):
        found = []
        for key in run.keys_of(collection, tables):
            try:
                train, test, labels = run.split_of(key, adbench, tables)
            except ValueError:  # too few anomalies for a stratified split
                continue
            make = RGLD.novelty if collection == "clean" else RGLD.plus
            detector = make(random_state=key.seed, n_jobs=1).fit(train)
            scores = detector.branch_scores(test)
            relation = scores.relation_score
            both = [anomaly_score(s, detector.model_) for s in (scores._replace(relation_score=None), scores)]
            measured = [f(labels, own) for own in both for f in (roc_auc_score, average_precision_score)]
            found.append([*measured, 0.0 if relation is None else float(np.mean(relation > 0))])
        a, b, c, d, fraction = 100 * np.mean(found, axis=0)
        means = f"{a:.2f} / {b:.2f} | {c:.2f} / {d:.2f} | {fraction:.2f} %"
        print(f"| {run.COLLECTIONS[collection]} | {len(found)} | {means} |", flush=True)


def correlated(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return a table in which every column follows from eight hidden ones, with noise: the slow case."""
    return rng.normal(size=(n, 8)) @ rng.normal(size=(8, d)) + rng.normal(size=(n, d))


def print_times(tables: dict[str, pl.DataFrame]) -> None:
    """Print seconds of the processor to fit and score on one thread: the best of five runs (of a long table, one)."""
    rng = np.random.default_rng(0)
    timed = {
        "telco": tables.get("telco"),
        "made, 7000 x 20": made(7000)[:, :20],
        "normal, 7000 x 20": rng.normal(size=(7000, 20)),
        "correlated, 7000 x 60": correlated(7000, 60, rng),
        "flags and correlated, 7000 x 400": np.hstack(
            [correlated(7000, 200, rng), (rng.random((7000, 200)) < rng.random(200)).astype(float)]
        ),
        "made, 1000000 x 20": made(1_000_000)[:, :20],
    }
    print("\n| table | without relations, s | with, s | ratio |\n|---|---|---|---|")
    for name, table in timed.items():
        if table is None:
            continue
        seconds = []
        for relations in (False, True):
            best = np.inf
            for _ in range(5 if len(table) < 10**5 else 1):
                begin = time.process_time()
                RGLD.plus(random_state=0, n_jobs=1, relations=relations).fit(table).anomaly_score(table)
                best = min(best, time.process_time() - begin)
            seconds.append(best)
        print(f"| {name} | {seconds[0]:.2f} | {seconds[1]:.2f} | {seconds[1] / seconds[0]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
