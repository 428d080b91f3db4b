"""Tables from a hundred thousand to a hundred million rows: in memory, in batches from disk, on a Dask cluster.

    python benchmarks/scale.py run --folder DIR    # writes Parquet files there (8 GB for 1e8 rows) and measures
    python benchmarks/scale.py exact --data DIR    # compares batches with memory on the long tables of the study
    python benchmarks/scale.py page                # the tables and the plot of docs/scale.md, from the measured lines
    python benchmarks/scale.py sketch              # what a KLL sketch would cost

Every measurement is a process of its own; peak memory is that of the process, with the libraries. Run it on a quiet
machine: the whole takes about an hour on two cores.
"""

import argparse
import json
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rgld import RGLD
from rgld._fit.sampling import MAX_SAMPLE_ROWS

HERE = Path(__file__).parent
LINES, EXACT = HERE / "scale" / "lines.jsonl", HERE / "scale" / "exact.jsonl"
PAGE, PLOT = HERE.parent / "docs" / "scale.md", HERE.parent / "docs" / "scale.png"
N_COLUMNS = 20
ROWS_PER_FILE = 500_000
PLAN = {
    "memory": (100_000, 1_000_000, 10_000_000),
    "batches": (100_000, 1_000_000, 10_000_000, 100_000_000),
    "dask, 1 worker": (1_000_000, 20_000_000),
    "dask, 2 workers": (1_000_000, 20_000_000),
}
MIB = 2**20


def files(folder: Path, n_rows: int) -> list[Path]:
    """Return the files of a table, and write those that are not there yet. Tables begin with the same rows."""
    found = []
    for number, start in enumerate(range(0, n_rows, ROWS_PER_FILE)):
        size = min(ROWS_PER_FILE, n_rows - start)
        path = folder / f"part-{number:04}-{size}.parquet"
        if not path.exists():
            rng = np.random.default_rng(number)
            # Two clusters of correlated columns, and one row in a thousand out of both.
            rows = rng.standard_normal((size, N_COLUMNS), dtype=np.float32)
            rows[:, 1:] += 0.5 * rows[:, :-1]
            rows[rng.random(size) < 0.3] += 4.0
            odd = rng.random(size) < 0.001
            rows[odd] = rng.uniform(-8.0, 12.0, (int(odd.sum()), N_COLUMNS))
            pl.DataFrame(rows, schema=[f"x{j}" for j in range(N_COLUMNS)]).write_parquet(path)
        found.append(path)
    return found


def in_memory(paths: list[Path]) -> dict[str, Any]:
    start = time.perf_counter()
    X = np.concatenate([pl.read_parquet(path).to_numpy() for path in paths])
    loaded = time.perf_counter()
    detector = RGLD(random_state=0).fit(X)
    fitted = time.perf_counter()
    detector.anomaly_score(X)
    return {"load": loaded - start, "fit": fitted - loaded, "score": time.perf_counter() - fitted}


def in_batches(paths: list[Path]) -> dict[str, Any]:
    def batches() -> Iterator[pl.DataFrame]:
        return (pl.read_parquet(path) for path in paths)

    passes: list[int] = []
    start = time.perf_counter()
    detector = RGLD(random_state=0).fit_batches(batches, on_rows=lambda number, rows: passes.append(number))
    fitted = time.perf_counter()
    for frame in batches():
        detector.anomaly_score(frame)
    return {"fit": fitted - start, "score": time.perf_counter() - fitted, "passes": max(passes)}


def on_cluster(paths: list[Path], n_workers: int) -> dict[str, Any]:
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    import rgld.dask

    states: list[int] = []
    steps: list[int] = []
    in_passes: list[float] = []
    run = rgld.dask.Partitions.run

    def measured(self: Any, step: Any) -> Any:
        start = time.perf_counter()
        state = run(self, step)
        in_passes.append(time.perf_counter() - start)
        states.append(len(pickle.dumps(state)))
        steps.append(len(pickle.dumps(step)))
        return state

    rgld.dask.Partitions.run = measured  # type: ignore[method-assign]
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(n_workers)
        table = dd.read_parquet([str(path) for path in paths])
        start = time.perf_counter()
        detector = rgld.dask.fit(table, random_state=0)
        fitted = time.perf_counter()
        moved = sum(client.run(_bytes_received).values())
        rgld.dask.anomaly_score(detector, table).max().compute()
        scored = time.perf_counter()
        worker_peak = max(client.run(_peak_mib).values())
    return {
        "fit": fitted - start,
        "score": scored - fitted,
        "passes": len(states),
        "moved_mib": moved / MIB,
        "states_mib": [round(size / MIB, 3) for size in states],
        "steps_mib": [round(size / MIB, 3) for size in steps],
        "client": fitted - start - sum(in_passes),
        "worker_peak_mib": worker_peak,
    }


def _bytes_received(dask_worker: Any) -> int:
    return int(sum(transfer["total"] for transfer in dask_worker.transfer_incoming_log))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(how: str, folder: Path, n_rows: int) -> None:
    paths = files(folder, n_rows)
    result = {"memory": in_memory, "batches": in_batches}.get(how, lambda p: on_cluster(p, int(how.split()[1])))(paths)
    print(json.dumps({"how": how, "rows": n_rows, **result, "peak_mib": _peak_mib()}))


def run(folder: Path, how: list[str], rows: list[int]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, sizes in PLAN.items():
        for n_rows in sizes:
            if (how and name not in how) or (rows and n_rows not in rows):
                continue
            files(folder, n_rows)  # not in the measured process
            # Not of multiprocessing, whose workers leave the other cores to each other.
            command = [sys.executable, __file__, "measure", "--folder", folder, "--how", name, "--rows", str(n_rows)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            line = done.stdout.splitlines()[-1]
            print(line, flush=True)
            with open(LINES, "a") as lines:
                lines.write(line + "\n")


def exact(data: Path) -> None:
    """Compare batches with memory on the long tables of the study, and other batches with batches."""
    from scipy.stats import spearmanr
    from sklearn.metrics import roc_auc_score

    for path in sorted(data.glob("*.npz")):
        with np.load(path) as file:
            X, y = file["X"], file["y"]
        if len(X) <= MAX_SAMPLE_ROWS:
            continue
        for name, make in (("RGLD", RGLD), ("plus", RGLD.plus)):
            memory = make(random_state=0).fit(X).anomaly_score(X)
            batches = make(random_state=0).fit_batches(np.array_split(X, 7)).anomaly_score(X)
            others = make(random_state=0).fit_batches(np.array_split(X, 20)).anomaly_score(X)
            line = {
                "dataset": path.stem,
                "rows": len(X),
                "columns": X.shape[1],
                "detector": name,
                "rank_correlation": spearmanr(memory, batches)[0],
                "auroc_difference": abs(roc_auc_score(y, memory) - roc_auc_score(y, batches)),
                "of_other_batches": np.abs(others - batches).max(),
            }
            print(json.dumps(line), flush=True)
            with open(EXACT, "a") as lines:
                lines.write(json.dumps(line) + "\n")


def sketch() -> None:
    """Compare a KLL sketch with counting at known knots (needs `pip install datasketches`)."""
    from datasketches import kll_floats_sketch

    from rgld._fit.counts import draw_knots
    from rgld._kernels import count_scores

    values = np.random.default_rng(0).normal(size=(1, 1_000_000)).astype(np.float32)
    sketches = [kll_floats_sketch(4096) for _ in range(2)]
    start = time.perf_counter()
    sketches[0].update(values[0])
    updated = time.perf_counter()
    sketches[1].update(values[0])
    knots = draw_knots(values[:, :MAX_SAMPLE_ROWS], values.shape[1]).values
    begun = time.perf_counter()
    count_scores(values, knots, 1)
    print(f"KLL: {1e3 * (updated - start):.0f} ns a value, {1e3 * (time.perf_counter() - begun):.0f} ns counted")
    print("two sketches of the same numbers are the same:", sketches[0].serialize() == sketches[1].serialize())


def page() -> None:
    lines = {(line["how"], line["rows"]): line for line in map(json.loads, LINES.read_text().splitlines())}
    table = [
        "| how | rows | passes | fit, s | score, s | µs per row | rows per second | peak memory, MiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (how, n_rows), line in sorted(lines.items(), key=lambda item: (list(PLAN).index(item[0][0]), item[0][1])):
        total, peak = line["fit"] + line["score"], line.get("worker_peak_mib", line["peak_mib"])
        table.append(
            f"| {how} | {n_rows:,} | {line.get('passes', '')} | {line['fit']:.1f} | {line['score']:.1f} | "
            f"{1e6 * total / n_rows:.2f} | {n_rows / total:,.0f} | {peak:,.0f} |"
        )
    replace_part("measured", table)
    replace_part("exact", exact_table())
    plot(lines)


def exact_table() -> list[str]:
    """Return the worst of all tables: how far batches are from memory, and other batches from these."""
    lines = [json.loads(line) for line in EXACT.read_text().splitlines()]
    both = [[line for line in lines if line["detector"] == name] for name in ("RGLD", "plus")]
    shown = {
        "lowest rank correlation with memory": [f"{min(line['rank_correlation'] for line in own):.5f}" for own in both],
        "largest difference in AUROC": [f"{max(line['auroc_difference'] for line in own):.5f}" for own in both],
        "largest difference of a score, 20 parts instead of 7": [
            f"{max(line['of_other_batches'] for line in own):.4f}" for own in both
        ],
    }
    head = [f"| over {len(both[0])} tables | `RGLD()` | `RGLD.plus()` |", "|---|---|---|"]
    return head + [f"| {name} | {' | '.join(values)} |" for name, values in shown.items()]


def replace_part(name: str, lines: list[str]) -> None:
    """Replace what stands between the marks of a part of the page."""
    before, rest = PAGE.read_text().split(f"<!-- {name} -->\n")
    after = rest[rest.index(f"<!-- end of {name} -->") :]
    PAGE.write_text(before + f"<!-- {name} -->\n" + "\n".join(lines) + "\n" + after)


def plot(lines: dict[tuple[str, int], dict[str, Any]]) -> None:
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    for how, marker in zip(PLAN, "o^sD", strict=True):
        own = sorted((n, line) for (name, n), line in lines.items() if name == how)
        rows = [n for n, _ in own]
        left.plot(rows, [1e6 * (line["fit"] + line["score"]) / n for n, line in own], marker=marker, label=how)
        right.plot(rows, [line.get("worker_peak_mib", line["peak_mib"]) for _, line in own], marker=marker, label=how)
    left.set(xscale="log", xlabel="rows", ylabel="fit and score, µs per row", ylim=(0, None))
    right.set(xscale="log", xlabel="rows", ylabel="peak memory of a process, MiB", ylim=(0, None))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    left.legend(frameon=False)
    figure.savefig(PLOT, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("run", "measure"):
        runner = commands.add_parser(command)
        runner.add_argument("--folder", type=Path, required=True, help="for the Parquet files; they are kept")
        runner.add_argument("--how", nargs="*", default=[], choices=PLAN, help="all by default")
        runner.add_argument("--rows", nargs="*", type=lambda text: int(float(text)), default=[], help="all by default")
    commands.add_parser("page")
    commands.add_parser("sketch")
    commands.add_parser("exact").add_argument("--data", type=Path, required=True, help="folder of the study's tables")
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked.folder, asked.how, asked.rows)
    elif asked.command == "measure":
        measure(asked.how[0], asked.folder, asked.rows[0])
    elif asked.command == "exact":
        exact(asked.data)
    elif asked.command == "sketch":
        sketch()
    else:
        page()
