"""One run: a detector on a split, measured, in a process of its own.

In: a task as JSON. Out: a line as JSON. The line also says if the detector raised an error, returned NaN or needed too
much memory. If the process hangs or crashes, the runner writes the line.
"""

import json
import os
import sys
import threading
import time
import traceback
import warnings
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .datasets import load_dataset, load_n_train, load_npz, load_table
from .detectors import make_detector, warm_up, warmth
from .protocol import measure, seed_globally, split

RECORDED_PACKAGES = ("rgld", "numpy", "scipy", "scikit-learn", "pyod", "torch", "deepod", "isotree")


class Task(NamedTuple):
    """What to run."""

    protocol: str
    dataset: str
    detector: str
    seed: int
    data: str | None
    """Folder of the datasets."""
    table: str | None
    """A table of its own, instead of a dataset by name ..."""
    label: str | None
    """... and its label column; None for a table of ODDBench."""
    threads: int
    memory_limit: int
    """Bytes of address space; 0 for no limit."""


def run_in_process(connection: Connection, task_text: str) -> None:
    """Run a task and send its line. This is the entry point of the worker process."""
    task = Task(**json.loads(task_text))
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    _limit_memory(task.memory_limit)
    warnings.simplefilter("ignore")  # MCD alone gives hundreds on some tables; what matters is in the line
    connection.send_bytes(json.dumps(run(task)).encode())
    connection.close()


def _end_with_parent(parent: int) -> None:
    """End this process when its parent ends, so that a killed study leaves no run behind."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def run(task: Task) -> dict[str, Any]:
    """Run a task and return its line."""
    line: dict[str, Any] = {
        "protocol": task.protocol,
        "dataset": task.dataset,
        "detector": task.detector,
        "seed": task.seed,
        "threads": task.threads,
        "versions": {"python": sys.version.split()[0], **_versions()},
        "error": None,
    }
    try:
        line |= _measured(task)
    except MemoryError:
        line["error"] = f"MemoryError: more than the limit of {task.memory_limit / 2**30:.1f} GiB"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        line["error"] = f"{type(error).__name__}: {str(error)[:300]} ({Path(where.filename).name}:{where.lineno})"
    line["peak_memory_mb"] = peak_memory_mb()
    return line


def _measured(task: Task) -> dict[str, Any]:
    folder = Path(task.data) if task.data else None
    n_train = None
    if task.table and task.label:
        X, y = load_table(Path(task.table), task.label)
    elif task.table:
        X, y = load_npz(Path(task.table))
        X, n_train = X.astype(np.float64), load_n_train(Path(task.table))  # float32 would be compiled anew (HBOS)
    else:
        X, y = load_dataset(task.dataset, folder)
    train, test, labels = split(X, y, task.seed, task.protocol, n_train)
    if warmth(task.detector) == "run":
        warm_up(task.detector)
    seed_globally(task.seed)
    detector = make_detector(task.detector, task.seed)
    marks = [_clocks()]
    detector.fit(train)
    marks.append(_clocks())
    scores = np.asarray(detector.decision_function(test))
    marks.append(_clocks())
    (fit_wall, fit_cpu), (score_wall, score_cpu) = (np.subtract(b, a) for a, b in pairwise(marks))
    result = {
        "n_train": len(train),
        "n_test": len(test),
        "n_columns": train.shape[1],
        "fit_seconds": round(fit_wall, 5),
        "score_seconds": round(score_wall, 5),
        "cpu_seconds": round(fit_cpu + score_cpu, 5),
        **(detector.notes() if hasattr(detector, "notes") else {}),
    }
    if np.isnan(scores).any():
        return {**result, "error": f"{int(np.isnan(scores).sum())} of {len(scores)} scores are NaN"}
    auroc, auprc = measure(labels, scores)
    return {**result, "auroc": round(auroc, 4), "auprc": round(auprc, 4), "n_infinite": int(np.isinf(scores).sum())}


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _versions() -> dict[str, str]:
    found = {}
    for package in RECORDED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _limit_memory(n_bytes: int) -> None:
    if n_bytes:
        try:
            import resource
        except ImportError:  # not on this platform
            return
        resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def peak_memory_mb() -> float | None:
    """Return the peak memory of this process so far, in MiB; None if the system does not tell."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage also counts the parent's memory at the start
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 2**10, 1)
    try:
        import resource
    except ImportError:  # not on this platform
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
