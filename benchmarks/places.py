"""Where the data lives: what clusters move and merge, and what scoring inside DuckDB costs.

    python benchmarks/places.py tree                  # a simulated network of a thousand partitions
    python benchmarks/places.py workers dask          # 1, 2, 4 and 8 worker processes on this machine's cores
    python benchmarks/places.py workers spark         # the same with executors
    python benchmarks/places.py duckdb --folder DIR   # ten million rows inside DuckDB, and through Arrow

Each prints lines of JSON; those of docs/scale.md are in benchmarks/scale/places.jsonl.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rgld import RGLD
from rgld._detector import fit_in_passes
from rgld._fit.in_passes import Executor
from rgld._fit.packing import pack
from rgld._fit.steps import State, Step, merged

N_COLUMNS = 20
MB = 1e6


def rows(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((n, N_COLUMNS))
    matrix[:, 1:] += 0.5 * matrix[:, :-1]
    return pd.DataFrame(matrix, columns=[f"x{j}" for j in range(N_COLUMNS)])


class Network(Executor):
    """Partitions on simulated workers: states are merged as `rgld.dask` merges them, and what moves is counted."""

    def __init__(self, n_parts: int, n_rows: int, workers: tuple[int, ...]) -> None:
        self.parts, self.part_rows, self.workers = n_parts, n_rows, workers
        self.n_rows = n_parts * n_rows
        self.lines: list[dict[str, Any]] = []

    def example(self) -> Any:
        """Return rows."""
        return rows(2, 0)

    def run(self, step: Step[State]) -> State:
        """Return the state of a step, and note what moved."""
        start = time.perf_counter()
        states = [step.fold(None, rows(self.part_rows, i), i * self.part_rows) for i in range(self.parts)]
        learned = time.perf_counter()
        moved = dict.fromkeys(self.workers, 0)

        def count(state: Any, first: int, middle: int) -> None:
            """Count a state that goes to the worker of the state on its left."""
            for n in self.workers:
                if first * n // self.parts != middle * n // self.parts:
                    moved[n] += len(pack(state))

        def state_of(first: int, last: int) -> tuple[Any, int]:
            """Return the state of some partitions, and the levels above them."""
            if last - first <= 8:
                state, levels = states[first], 0
                for i in range(first + 1, last):
                    count(states[i], first, i)
                    state = merged(state, states[i])
            else:
                middle = (first + last) // 2
                one, levels = state_of(first, middle)
                other, more = state_of(middle, last)
                count(other, first, middle)
                state, levels = merged(one, other), max(levels, more) + 1
            return state, levels

        state, levels = state_of(0, self.parts)
        line = {"step": type(step).__name__, "levels": levels, "state_mb": round(len(pack(state)) / MB, 2)}
        line |= {f"moved_mb_{n}_workers": round(moved[n] / MB, 1) for n in self.workers}
        line |= {"learn_s": round(learned - start, 1), "merge_s": round(time.perf_counter() - learned, 1)}
        self.lines.append({"what": "tree", "parts": self.parts, **line})
        return state


def tree() -> list[dict[str, Any]]:
    network = Network(1000, 100, (1, 8, 100, 1000))
    fit_in_passes(RGLD(random_state=0, n_jobs=1), network)
    return network.lines


def moved_by_dask(n_workers: int, folder: Path) -> tuple[float, float]:
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    import rgld.dask

    with LocalCluster(n_workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        table = dd.read_parquet(f"{folder}/*.parquet")
        start = time.perf_counter()
        rgld.dask.fit(table, random_state=0)
        seconds = time.perf_counter() - start
        logs = client.run(lambda dask_worker: sum(one["total"] for one in dask_worker.transfer_incoming_log))
    return seconds, sum(logs.values()) / MB


def moved_by_spark(n_workers: int, folder: Path) -> tuple[float, float]:
    import pyspark
    from pyspark.sql import SparkSession

    import rgld.spark

    home = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
    os.environ.update({**home, "SPARK_LOCAL_IP": "127.0.0.1"})
    settings = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.log.level": "OFF"}
    settings |= {"spark.sql.files.openCostInBytes": str(2**27), "spark.driver.host": "127.0.0.1"}
    builder = SparkSession.builder.master(f"local-cluster[{n_workers},1,768]").config(map=settings)
    with builder.getOrCreate() as spark:
        table = spark.read.parquet(str(folder))
        table.count()  # executors are up
        start = time.perf_counter()
        rgld.spark.fit(table, random_state=0)
        seconds = time.perf_counter() - start
        executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
        moved = sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))
    return seconds, moved / MB


def workers(where: str, folder: Path) -> list[dict[str, Any]]:
    for i in range(32):
        path = folder / f"{i:02}.parquet"
        if not path.exists():
            rows(20_000, i).to_parquet(path)
    lines = []
    for n in (1, 2, 4, 8):
        seconds, moved = (moved_by_dask if where == "dask" else moved_by_spark)(n, folder)
        lines.append({"what": where, "workers": n, "rows": 640_000, "parts": 32, "fit_s": round(seconds, 1)})
        lines[-1]["moved_mb"] = round(moved, 1)
        print(json.dumps(lines[-1]), flush=True)
    return []


def duckdb_line(way: str, folder: Path, n_rows: int) -> dict[str, Any]:
    import duckdb

    import rgld.duckdb

    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        columns = ", ".join(f"hash(i * {N_COLUMNS} + {j}) / 1.8446744073709552e19 AS x{j}" for j in range(N_COLUMNS))
        connection.execute(f"CREATE TABLE IF NOT EXISTS t AS SELECT {columns} FROM range({n_rows}) s(i)")
        detector = RGLD.fast(random_state=0).fit(connection.sql("SELECT * FROM t LIMIT 50000"))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.perf_counter()
        if way == "inside":
            rgld.duckdb.register(connection, detector, "score")
            highest = connection.execute("SELECT max(score(t)) FROM t").fetchall()[0][0]
        else:
            reader = connection.sql("SELECT * FROM t").to_arrow_reader(200_000)
            highest = max(float(detector.anomaly_score(pa_table(batch)).max()) for batch in reader)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = {"what": "duckdb", "way": way, "rows": n_rows, "score_s": round(seconds, 1), "highest": highest}
    return {**line, "peak_mib": round(peak), "peak_before_mib": round(before)}


def pa_table(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tree", "workers", "duckdb"])
    parser.add_argument("way", nargs="?", default="")
    parser.add_argument("--folder", type=Path, default=Path("build/places"))
    parser.add_argument("--rows", type=int, default=10_000_000)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.what == "duckdb" and not given.way:  # a process for each way: peak memory is that of a process
        for way in ("inside", "arrow"):
            options = [way, "--folder", str(given.folder), "--rows", str(given.rows)]
            subprocess.run([sys.executable, __file__, "duckdb", *options], check=True)
        return
    if given.what == "duckdb":
        lines = [duckdb_line(given.way, given.folder, given.rows)]
    else:
        lines = tree() if given.what == "tree" else workers(given.way or "dask", given.folder)
    for line in lines:
        print(json.dumps(line))


if __name__ == "__main__":
    main()
