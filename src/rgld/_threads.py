"""Threads: how many a call may use.

In: `n_jobs`. Out: a number of threads. None means all cores the process may use, unless someone else has already
shared them out: inside a worker of joblib, Dask or multiprocessing it means one.
"""

import multiprocessing
import sys
import threading

from joblib import cpu_count
from joblib.parallel import get_active_backend


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`; negative numbers count back from all cores, as in joblib."""
    if n_jobs is not None:
        return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))
    backend, configured = get_active_backend()
    if backend.nesting_level or multiprocessing.parent_process() is not None or _in_dask_task():
        return 1
    return n_threads(configured) if configured else int(cpu_count())  # `joblib.parallel_config(n_jobs=...)`


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
