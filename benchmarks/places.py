"""Where the data lives: what clusters move and merge, and what scoring inside DuckDB costs.

    python benchmarks/places.py tree                  # a simulated network of a thousand partitions
    python benchmarks/places.py workers dask          # 1, 2, 4 and 8 worker processes on this machine's cores
    python benchmarks/places.py workers spark         # the same with executors
    python benchmarks/places.py scheduler             # what a partition costs Dask's scheduler and client
    python benchmarks/places.py slow                  # one of two Dask workers takes 1.5 s longer for each partition
    python benchmarks/places.py duckdb --folder DIR   # ten million rows inside DuckDB, and through Arrow

Each prints lines of JSON; those of docs/scale.md are in benchmarks/scale/places.jsonl.
"""

import argparse
import functools
import hashlib
import json
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rgld import RGLD
from rgld._detector import fit_in_passes
from rgld._fit.in_passes import Executor
from rgld._fit.packing import pack, unpack
from rgld._fit.steps import State, Step, merged

N_COLUMNS = 20
MB = 1e6


def rows(n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((n, N_COLUMNS))
    matrix[:, 1:] += 0.5 * matrix[:, :-1]
    return pd.DataFrame(matrix, columns=[f"x{j}" for j in range(N_COLUMNS)])


class Network(Executor):
    """Partitions on simulated workers: states are merged as clusters merge them, and what moves is counted."""

    def __init__(self, n_parts: int, n_rows: int, workers: tuple[int, ...]) -> None:
        self.workers = workers
        self.n_rows = n_parts * n_rows
        self.tables = [rows(n_rows, i) for i in range(n_parts)]

    def example(self) -> Any:
        """Return rows."""
        return rows(2, 0)

    def run(self, step: Step[State]) -> State:
        """Return the state of a step, and note what moved."""
        states = [step.fold(None, table, i * len(table)) for i, table in enumerate(self.tables)]
        state, line = dask_tree(states, self.workers)
        line = {"what": "tree", "parts": len(states), "step": type(step).__name__, **line, **spark_tree(states)}
        print(json.dumps(line), flush=True)
        return state


def dask_tree(states: list[Any], workers: tuple[int, ...]) -> tuple[Any, dict[str, Any]]:
    """Return the merged state, and what the tree of `rgld.dask` costs: two states at a time, above groups of eight."""
    n_parts, moved, merges = len(states), dict.fromkeys(workers, 0), []

    def merge(one: Any, other: Any, first: int, middle: int) -> Any:
        """Merge a state into the one on its left, whose worker it goes to."""
        far = [n for n in workers if first * n // n_parts != middle * n // n_parts]
        size = len(pack(other)) if far else 0
        for n in far:
            moved[n] += size
        start = time.process_time()
        state = merged(one, other)
        merges.append(time.process_time() - start)
        return state

    def state_of(first: int, last: int) -> tuple[Any, int]:
        """Return the state of some partitions, and the levels above them."""
        if last - first <= 8:
            state = states[first]
            for i in range(first + 1, last):
                state = merge(state, states[i], first, i)
            return state, 0
        middle = (first + last) // 2
        (one, levels), (other, more) = state_of(first, middle), state_of(middle, last)
        return merge(one, other, first, middle), max(levels, more) + 1

    state, levels = state_of(0, n_parts)
    line = {"levels": levels, "leaf_mb": mb(states[:1]), "node_mb": mb([state])}
    line |= {f"moved_mb_{n}_workers": round(moved[n] / MB, 1) for n in workers}
    return state, line | {"root_ms": round(merges[-1] * 1e3, 1), "all_merges_s": round(sum(merges), 2)}


def spark_tree(states: list[Any]) -> dict[str, Any]:
    """Return what the tree of `rgld.spark` costs: 32 states at a time, each unpacked and packed by its task."""
    shuffled, slowest, largest, levels = 0, 0.0, 0, 0
    while len(states) > 8:
        groups, states, levels = [states[i : i + 32] for i in range(0, len(states), 32)], [], levels + 1
        for group in groups:
            packed = [pack(state) for state in group]
            shuffled, largest = shuffled + sum(map(len, packed)), max(largest, sum(map(len, packed)))
            start = time.process_time()
            states.append(unpack(pack(functools.reduce(merged, map(unpack, packed)))))
            slowest = max(slowest, time.process_time() - start)
    line = {"spark_levels": levels, "spark_shuffled_mb": round(shuffled / MB, 1)}
    return line | {"spark_node_in_mb": round(largest / MB, 1), "spark_node_ms": round(slowest * 1e3, 1)}


def mb(states: list[Any]) -> float:
    return round(sum(len(pack(state)) for state in states) / MB, 2)


def tree() -> list[dict[str, Any]]:
    network = Network(1000, 100, (1, 8, 100, 1000))
    fit_in_passes(RGLD(random_state=0, n_jobs=1), network)
    return []


@contextmanager
def dask_cluster(n_workers: int) -> Iterator[Any]:
    """Yield the client of a cluster whose scheduler is in this process, and whose workers are processes."""
    from dask.distributed import Client, LocalCluster

    quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=n_workers, threads_per_worker=1, **quiet) as cluster, Client(cluster) as client:
        client.wait_for_workers(n_workers)
        assert len(client.nthreads()) == n_workers
        yield client


def moved_by_dask(n_workers: int, folder: Path) -> dict[str, Any]:
    import dask.dataframe as dd

    import rgld.dask

    def received(dask_worker: Any) -> int:
        return sum(one["total"] for one in dask_worker.transfer_incoming_log)

    def sent_to_client(dask_worker: Any) -> int:
        return sum(one["total"] for one in dask_worker.transfer_outgoing_log if one["who"] is None)

    with dask_cluster(n_workers) as client:
        table = dd.read_parquet(f"{folder}/*.parquet")
        start = time.perf_counter()
        rgld.dask.fit(table, random_state=0)
        seconds = time.perf_counter() - start
        between, up = client.run(received), client.run(sent_to_client)
    return {
        "fit_s": round(seconds, 1),
        "moved_mb": round(sum(between.values()) / MB, 1),
        "most_mb_of_a_worker": round(max(between.values()) / MB, 1),
        "to_client_mb": round(sum(up.values()) / MB, 1),
    }


def moved_by_spark(n_workers: int, folder: Path) -> dict[str, Any]:
    import pyspark
    from pyspark.sql import SparkSession

    import rgld.spark

    home = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
    os.environ.update({**home, "SPARK_LOCAL_IP": "127.0.0.1"})
    settings = {"spark.ui.enabled": "false", "spark.executor.memory": "512m", "spark.log.level": "OFF"}
    settings |= {"spark.ui.showConsoleProgress": "false"}
    settings |= {"spark.sql.files.openCostInBytes": str(2**27), "spark.driver.host": "127.0.0.1"}
    settings |= {"spark.sql.shuffle.partitions": "8", "spark.scheduler.minRegisteredResourcesRatio": "1"}
    builder = SparkSession.builder.master(f"local-cluster[{n_workers},1,768]").config(map=settings)
    with builder.getOrCreate() as spark:
        table = spark.read.parquet(str(folder))
        table.count()  # executors are up
        start = time.perf_counter()
        rgld.spark.fit(table, random_state=0)
        seconds = time.perf_counter() - start
        store = spark.sparkContext._jsc.sc().statusStore().executorList(False)
        all_of_them = [store.apply(i) for i in range(store.size())]
        executors = [one for one in all_of_them if one.id() != "driver"]
        assert len(executors) == n_workers
        moved = [one.totalShuffleWrite() for one in executors]
    return {
        "fit_s": round(seconds, 1),
        "moved_mb": round(sum(moved) / MB, 1),
        "most_mb_of_a_worker": round(max(moved) / MB, 1),
    }


def workers(where: str, folder: Path, numbers: list[int]) -> list[dict[str, Any]]:
    folder = folder / "files"
    folder.mkdir(exist_ok=True)
    for i in range(32):
        path = folder / f"{i:02}.parquet"
        if not path.exists():
            rows(5_000, i).to_parquet(path)
    for n in numbers:
        found = (moved_by_dask if where == "dask" else moved_by_spark)(n, folder)
        print(json.dumps({"what": where, "workers": n, "rows": 160_000, "parts": 32, **found}), flush=True)
    return []


def scheduler() -> list[dict[str, Any]]:
    """Measure what partitions cost the process of the client and the scheduler: its CPU time, by their number."""
    import dask.array as da

    import rgld.dask

    lines = []
    with dask_cluster(2):
        for n_parts in (50, 50, 300):  # the first is warm-up
            table = da.random.default_rng(0).normal(size=(n_parts * 100, N_COLUMNS), chunks=(100, N_COLUMNS))
            start = time.process_time()
            rgld.dask.fit(table, random_state=0, n_global_views=4, n_local_views=2)
            seconds = time.process_time() - start
            lines.append({"what": "scheduler", "parts": n_parts, "cpu_s": round(seconds, 2)})
    return lines[1:]


def slow_partition(i: int, slow: int, seconds: float, folder: str) -> Any:
    (Path(folder) / f"{time.monotonic_ns()}-{os.getpid()}").touch()
    time.sleep(seconds if os.getpid() == slow else 0.1)
    return rows(2500, i)


def slow() -> list[dict[str, Any]]:
    """Measure a fit in which one of two workers takes 1.6 s to read a partition, and the other 0.1 s."""
    import dask
    import dask.dataframe as dd

    import rgld.dask

    lines = []
    with dask_cluster(2) as client, tempfile.TemporaryDirectory() as folder:
        one, _ = client.run(os.getpid).values()
        for seconds in (0.1, 1.6):
            parts = [dask.delayed(slow_partition, pure=False)(i, one, seconds, folder) for i in range(16)]
            table = dd.from_delayed(parts, meta=rows(2, 0), verify_meta=False)
            start = time.perf_counter()
            detector = rgld.dask.fit(table, random_state=0)
            lines.append({"what": "slow", "read_s": seconds, "fit_s": round(time.perf_counter() - start, 1)})
            reads = [path.name.endswith(f"-{one}") for path in Path(folder).iterdir()]
            lines[-1] |= {"reads": len(reads), "by_the_slow_worker": sum(reads)}
            for path in Path(folder).iterdir():
                path.unlink()
            scores = detector.anomaly_score(rows(1000, 99))
            lines[-1]["scores"] = hashlib.sha256(scores.tobytes()).hexdigest()[:12]
    return lines


def duckdb_line(way: str, folder: Path, n_rows: int) -> dict[str, Any]:
    import duckdb

    import rgld.duckdb

    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        columns = ", ".join(f"hash(i * {N_COLUMNS} + {j}) / 1.8446744073709552e19 AS x{j}" for j in range(N_COLUMNS))
        connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT {columns} FROM range({n_rows}) s(i)")
        detector = RGLD.fast(random_state=0).fit(connection.sql("SELECT * FROM t LIMIT 50000"))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start, cpu = time.perf_counter(), time.process_time()
        if way == "inside":
            rgld.duckdb.register(connection, detector, "score")
            highest = connection.execute("SELECT max(score(t)) FROM t").fetchall()[0][0]
        else:
            reader = connection.sql("SELECT * FROM t").to_arrow_reader(200_000)
            highest = max(float(detector.anomaly_score(pa_table(batch)).max()) for batch in reader)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = {"what": "duckdb", "way": way, "rows": n_rows, "score_s": round(seconds, 1), "cpu_s": round(cpu, 2)}
    return {**line, "highest": highest, "peak_mib": round(peak), "peak_before_mib": round(before)}


def pa_table(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tree", "workers", "scheduler", "slow", "duckdb"])
    parser.add_argument("way", nargs="?", default="")
    parser.add_argument("--folder", type=Path, default=Path("build/places"))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.what == "duckdb" and not given.way:  # a process for each way: peak memory is that of a process
        for way in ("inside", "arrow"):
            options = [way, "--folder", str(given.folder), "--rows", str(given.rows)]
            subprocess.run([sys.executable, __file__, "duckdb", *options], check=True)
        return
    if given.what == "duckdb":
        lines = [duckdb_line(given.way, given.folder, given.rows)]
    elif given.what == "workers":
        lines = workers(given.way or "dask", given.folder, given.workers)
    else:
        lines = {"tree": tree, "scheduler": scheduler, "slow": slow}[given.what]()
    for line in lines:
        print(json.dumps(line))


if __name__ == "__main__":
    main()
