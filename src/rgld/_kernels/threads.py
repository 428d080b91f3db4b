"""Threads: how many a call may use.

In: `n_jobs`. Out: a number of threads. None means all cores that the process may use. Inside a worker of joblib, Dask,
Spark or multiprocessing it means one, because the workers use the cores already.
"""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

SHORT_TABLE_ROWS, SHORT_FIT_ROWS = 768, 256
"""Tables of up to this many rows use one thread, in a single call and in a fit, whose calls share their threads: a
second one, or asking how many are allowed, would take longer."""


def threads_for(n_rows: int, n_jobs: int | None, short: int = SHORT_TABLE_ROWS) -> int:
    """Return the number of threads that pay off for a table of `n_rows` rows; one, if it has at most `short`."""
    return n_threads(n_jobs) if n_rows > short else 1


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`; as in joblib, -1 means all cores, -2 all but one, and so on."""
    from joblib.parallel import get_active_backend  # imported here: it takes long, and short tables do not need it

    if n_jobs is not None:
        return int(n_jobs) if n_jobs > 0 else max(1, _cpu_count() + 1 + int(n_jobs))
    backend, configured = get_active_backend()
    if backend.nesting_level or multiprocessing.parent_process() is not None or _in_dask_task() or _in_spark_task():
        return 1
    return n_threads(configured) if configured else _cpu_count()  # `joblib.parallel_config(n_jobs=...)`


def _cpu_count() -> int:
    """Return the number of cores that the process may use, by its affinity and by the limits of its container."""
    import joblib

    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return _counted(joblib.cpu_count, affinity)


@lru_cache(maxsize=16)
def _counted(count: Callable[[], int], affinity: int) -> int:
    """Return the count, which reads files of the system for half a millisecond: kept until the affinity changes."""
    return int(count())


class _OneBlasThread:
    """Limits the matrix products of NumPy to one thread.

    The limit holds for the whole process, and only the thread that set it may lift it: of two callers at once, one
    would restore the other's limit instead of the original. So a second caller has the limit of the first, for as long
    as that takes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limits: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Return a context in which the limit holds."""
        lock = self._lock
        if not lock.acquire(blocking=False):
            yield
            return
        try:
            with _thread_pools().limit(limits=1, user_api="blas") as self._limits:
                yield
        finally:
            self._limits = None
            lock.release()

    def release_in_child(self) -> None:
        """Release lock and limit in a forked child: the thread that held them is not there."""
        self._lock = threading.Lock()
        limits, self._limits = self._limits, None
        if limits is not None:
            limits.__exit__(None, None, None)


ONE_BLAS_THREAD = _OneBlasThread()
"""Where several threads compute: more of them would wait for each other's cores."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ONE_BLAS_THREAD.release_in_child)


@lru_cache(maxsize=1)
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController  # imported here: few calls need it

    return ThreadpoolController()


def _in_spark_task() -> bool:
    tasks = sys.modules.get("pyspark.taskcontext")
    return tasks is not None and tasks.TaskContext.get() is not None


def _in_dask_task() -> bool:
    distributed = sys.modules.get("distributed.worker")
    if distributed is not None and getattr(distributed.thread_state, "key", None) is not None:
        return True
    threaded = sys.modules.get("dask.threaded")
    if threaded is None:
        return False
    pools = [threaded.default_pool, *(pool for pools in threaded.pools.values() for pool in pools.values())]
    prefixes = [f"{pool._thread_name_prefix}_" for pool in pools if hasattr(pool, "_thread_name_prefix")]
    return threading.current_thread().name.startswith(tuple(prefixes))
