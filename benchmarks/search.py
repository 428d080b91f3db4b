"""The search behind the first edition of `RGLD.plus()`: all candidates on two collections of tables, rerunnable.

    python benchmarks/search.py run --adbench FOLDER --tables FOLDER
    python benchmarks/search.py time --adbench FOLDER
    python benchmarks/search.py report

A candidate is one fixed setting of a detector, without labels and without a rule about datasets. Candidates are
compared on one half of the datasets (ADBench's odd numbers, every second table) and confirmed on the other. What was
run is kept, one line a run, in benchmarks/search/lines.csv, and not run again. There a blank cell repeats the one
above it: long names are written once for the lines that share them.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pandas as pd
from candidates import CANDIDATES
from joblib import Parallel, delayed

from rgld.bench.datasets import load_npz, registry
from rgld.bench.detectors import make_detector
from rgld.bench.protocol import measure, seed_globally, split
from rgld.bench.synthetic import ANOMALY_KINDS, typed
from rgld.bench.tables import OTHER_44

LINES = Path(__file__).parent / "search" / "lines.csv"
TIMES = LINES.with_name("times.json")
SEEDS = {"adbench": (1, 2, 3), "tables": (1, 2), "full": (1,), "typed": (1, 2, 3)}
KEY = ["collection", "dataset", "seed", "candidate", "state"]
COLUMNS = [*KEY, "number", "auroc", "auprc", "seconds"]
REPEATED = ["collection", "dataset", "seed", "candidate", "number"]
"""Columns whose cells are blank where they equal the one above."""


class Table(NamedTuple):
    """A labelled table of a collection. Number is ADBench's, or the place in the alphabet."""

    collection: str
    name: str
    number: int
    path: Path | None


def tables_of(adbench: Path, tables: Path) -> Iterator[Table]:
    """Yield the 44 (under the paper's protocol and, in `full`, as they are), the tables, and typed anomalies."""
    for collection in ("adbench", "full"):
        for entry in registry().values():
            path = adbench / entry.file_name
            if entry.name not in OTHER_44 and path.exists():
                yield Table(collection, entry.name, entry.number, path)
    for number, path in enumerate(sorted(tables.glob("*.npz")), 1):
        yield Table("tables", path.stem, number, path)
    for number, kind in enumerate(ANOMALY_KINDS, 1):
        yield Table("typed", kind, number, None)


def runs_of(table: Table, seed: int, todo: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """Return the lines of the candidates (with their random states) on one split."""
    X, y = typed(table.name, seed=seed) if table.path is None else load_npz(table.path)
    if table.collection == "full" and len(X) > 50_000:
        return []
    train, test, labels = split(X, y, seed, "full" if table.collection == "full" else "paper")
    lines = []
    for candidate, state in todo:
        seed_globally(seed)
        spec = CANDIDATES[candidate]
        detector = make_detector(spec.format(state=state), seed)
        start = time.perf_counter()
        detector.fit(train)
        scores = detector.decision_function(test)
        seconds = time.perf_counter() - start
        auroc, auprc = measure(labels, scores)
        key = (table.collection, table.name, seed, candidate, state)
        lines.append(
            {
                **dict(zip(KEY, key, strict=True)),
                "number": table.number,
                "auroc": round(auroc, 3),
                "auprc": round(auprc, 3),
                "seconds": round(seconds, 4),
            }
        )
    return lines


def run(arguments: argparse.Namespace) -> None:
    """Run what has no line yet."""
    LINES.touch()
    os.truncate(LINES, LINES.read_bytes().rfind(b"\n") + 1)  # a line that an interrupted run left unfinished
    if LINES.stat().st_size == 0:
        LINES.write_text(",".join(COLUMNS) + "\n")
    done = set(read()[KEY].itertuples(index=False, name=None))
    chosen = arguments.candidates or list(CANDIDATES)
    tasks = []
    for table in tables_of(arguments.adbench, arguments.tables):
        if arguments.collections and table.collection not in arguments.collections:
            continue
        for seed in SEEDS[table.collection]:
            todo = [
                (candidate, state)
                for candidate in chosen
                for state in range(arguments.states if "{state}" in CANDIDATES[candidate] else 1)
                if (table.collection, table.name, seed, candidate, state) not in done
            ]
            if todo:
                tasks.append((table, seed, todo))
    parallel = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")
    with open(LINES, "a") as file:
        for number, lines in enumerate(parallel(delayed(runs_of)(*task) for task in tasks), 1):
            file.write(as_csv(lines))
            file.flush()
            if sys.stderr.isatty() or number % 50 == 0:
                print(f"{number} of {len(tasks)} splits", file=sys.stderr)


def side_by_side(arguments: argparse.Namespace) -> None:
    """Time RGLD and plus in turn on ADBench's splits, all cores, and keep the medians."""
    times: dict[str, dict[str, float]] = {}
    for table in tables_of(arguments.adbench, arguments.adbench / "none"):
        if table.collection != "adbench" or table.path is None:
            continue
        train, test, _ = split(*load_npz(table.path), 1)
        found: dict[str, list[float]] = {"RGLD": [], "plus": []}
        for state in range(4):
            for name, seconds in found.items():
                detector = make_detector(CANDIDATES[name].format(state=state), 1)
                start = time.perf_counter()
                detector.fit(train)
                detector.decision_function(test)
                seconds.append(time.perf_counter() - start)
        times[table.name] = {name: median(seconds[1:]) for name, seconds in found.items()}
        print(table.name, {name: round(1000 * value, 1) for name, value in times[table.name].items()}, file=sys.stderr)
    TIMES.write_text(json.dumps(times, indent=1))


def as_csv(lines: list[dict[str, Any]]) -> str:
    """Return lines to append; the first has no blanks, so that it does not hang on what stands before it."""
    frame = pd.DataFrame(lines, columns=COLUMNS, dtype=object)
    frame[REPEATED] = frame[REPEATED].mask(frame[REPEATED] == frame[REPEATED].shift())
    text: str = frame.to_csv(index=False, header=False, lineterminator="\n")
    return text


def read() -> pd.DataFrame:
    """Return all finished lines; the last of equal runs counts."""
    finished = LINES.read_text().rpartition("\n")[0]
    names = {"collection": str, "dataset": str, "candidate": str}
    frame = pd.read_csv(StringIO(finished), dtype=names, keep_default_na=False, na_values=[""])
    frame[REPEATED] = frame[REPEATED].ffill()
    return frame.astype({"seed": int, "number": int}).drop_duplicates(KEY, keep="last")


def means(frame: pd.DataFrame) -> pd.DataFrame:
    """Return AUROC and AUPRC by candidate: first the mean over splits and states of a dataset, then over datasets."""
    by_dataset = frame.groupby(["candidate", "dataset"])[["auroc", "auprc"]].mean()
    return by_dataset.groupby("candidate").mean()


def report(arguments: argparse.Namespace) -> None:
    """Print the means of every candidate: the half to choose on, the half to confirm on, and all."""
    frame = read()
    parts: dict[str, pd.DataFrame] = {}
    for collection in ("adbench", "tables"):
        own = frame[frame["collection"] == collection]
        parts[f"{collection} choose"] = means(own[own["number"] % 2 == 1])
        parts[f"{collection} confirm"] = means(own[own["number"] % 2 == 0])
        parts[f"{collection}"] = means(own)
    for collection in ("full", "typed"):
        parts[collection] = means(frame[frame["collection"] == collection])
    table = pd.concat(parts, axis=1).round(2)
    by_state = (
        frame[frame["collection"] == "adbench"].groupby(["candidate", "state", "dataset"])[["auroc", "auprc"]].mean()
    )
    spread = by_state.groupby(["candidate", "state"]).mean().groupby("candidate").std()
    table[("sd over states", "auroc")], table[("sd over states", "auprc")] = spread["auroc"], spread["auprc"]
    table[("ms", "")] = 1000 * frame[frame["collection"] == "adbench"].groupby("candidate")["seconds"].mean()
    order = [name for name in CANDIDATES if name in table.index]
    with pd.option_context("display.width", 250, "display.max_columns", 40):
        print(table.loc[order].round(2).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("run", help="run what has no line yet")
    command.add_argument("--adbench", type=Path, required=True)
    command.add_argument("--tables", type=Path, required=True)
    command.add_argument("--states", type=int, default=3)
    command.add_argument("--jobs", type=int, default=2)
    command.add_argument("--collections", nargs="*")
    command.add_argument("--candidates", nargs="*")
    command.set_defaults(call=run)
    command = commands.add_parser("time", help="time RGLD and plus in turn")
    command.add_argument("--adbench", type=Path, required=True)
    command.set_defaults(call=side_by_side)
    command = commands.add_parser("report", help="print the means of all candidates")
    command.set_defaults(call=report)
    arguments = parser.parse_args()
    arguments.call(arguments)


if __name__ == "__main__":
    main()
