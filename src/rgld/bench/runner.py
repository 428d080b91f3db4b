"""The runner: runs every (dataset, detector, seed) in a worker process, with limits.

In: tasks and a folder. Out: one line per run in the folder. A study that was stopped continues where it was. The runner
knows no detector by name.
"""

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .datasets import registry as dataset_registry
from .datasets import unpack
from .detectors import warmth
from .lines import Line, appended_lines, key_of
from .specs import parse_spec
from .warm import VARIABLE as WARM_VARIABLE
from .worker import Task, run_in_process

THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "LOKY_MAX_CPU_COUNT",  # joblib, and so our own
)
POLL_SECONDS = 0.2
MIN_ROWS_TO_UNPACK = 20_000
"""Datasets of at least this many rows are unpacked once for all runs."""


@dataclass(frozen=True)
class Worker:
    """A run that is not finished."""

    task: Task
    process: Any
    connection: Connection
    deadline: float


def run_study(
    tasks: Iterable[Task],
    folder: Path,
    *,
    jobs: int = 1,
    time_limit: float = 600.0,
    retry_errors: bool = False,
    brief: bool = False,
    progress: Callable[[int, int, Line | None], None] = lambda done, total, line: None,
) -> list[Line]:
    """Run the tasks that have no line yet, and return all lines of the folder.

    `brief` keeps of a line only what tables need. `progress(done, total, line)` is called after each run.
    """
    tasks = list(tasks)
    with appended_lines(folder, brief) as (lines, writer):
        finished = {key_of(line) for line in lines if not (retry_errors and line["error"])}
        pending = [task for task in tasks if key_of(task._asdict()) not in finished]
        total, done = len(tasks), len(tasks) - len(pending)
        progress(done, total, None)
        context = _context(pending)
        queue = iter(pending)
        running: list[Worker] = []
        scratch = TemporaryDirectory(prefix="rgld-bench-")
        try:
            while True:
                while len(running) < jobs and (task := next(queue, None)) is not None:
                    running.append(_start(context, _unpacked(task, Path(scratch.name)), time_limit))
                if not running:
                    break
                wait([worker.connection for worker in running], timeout=POLL_SECONDS)
                for worker in list(running):
                    line = _collect(worker, time_limit)
                    if line is not None:
                        running.remove(worker)
                        writer.write(line)
                        lines.append(line)
                        done += 1
                        progress(done, total, line)
        finally:
            for worker in running:
                _stop(worker)
            scratch.cleanup()
    return lines


def _unpacked(task: Task, scratch: Path) -> Task:
    """Return the task; a large dataset is read from an unpacked copy, because unpacking takes longer than most runs."""
    entry = dataset_registry().get(task.dataset)
    if entry is None or entry.rows < MIN_ROWS_TO_UNPACK or task.data is None or task.table is not None:
        return task
    folder = scratch / task.dataset
    if not folder.exists():
        folder.mkdir()
        unpack(task.dataset, Path(task.data), folder)
    return task._replace(data=str(folder))


def _context(tasks: list[Task]) -> Any:
    """Return the context that starts processes. On Linux it is a fork server, in which heavy imports happen once."""
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(tasks[0].threads if tasks else 1)
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    names = sorted({parse_spec(task.detector).name for task in tasks})
    os.environ[WARM_VARIABLE] = json.dumps([name for name in names if warmth(name) == "study"])
    context.set_forkserver_preload(["rgld.bench.worker", "rgld.bench.warm"])
    return context


def _start(context: Any, task: Task, time_limit: float) -> Worker:
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_in_process, args=(sender, json.dumps(task._asdict())), daemon=True)
    process.start()
    sender.close()
    return Worker(task, process, receiver, time.monotonic() + time_limit)


def _collect(worker: Worker, time_limit: float) -> Line | None:
    """Return the worker's line if it has ended, with or without a result; else None."""
    if worker.connection.poll():
        try:
            line: Line = json.loads(worker.connection.recv_bytes())
        except EOFError:  # the process died without sending a line
            worker.process.join()
            line = _failed(worker.task, f"the process died (exit code {worker.process.exitcode})")
    elif time.monotonic() > worker.deadline:
        line = _failed(worker.task, f"stopped at the time limit of {time_limit:g} s")
    else:
        return None
    _stop(worker)
    return line


def _failed(task: Task, error: str) -> Line:
    return {
        **{name: getattr(task, name) for name in ("protocol", "dataset", "detector", "seed", "threads")},
        "error": error,
    }


def _stop(worker: Worker) -> None:
    worker.process.join(timeout=0.5)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()
    worker.connection.close()
