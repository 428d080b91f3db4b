"""Threads: how many a call may use.

In: `n_jobs`. Out: a number of threads. None means all cores the process may use, unless someone else has already
shared them out: inside a worker of joblib or Dask it means one.
"""

import sys
import threading

from joblib import effective_n_jobs


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`, by joblib's convention for everything but None."""
    if n_jobs is not None:
        return int(effective_n_jobs(n_jobs))
    if _in_dask_task():
        return 1
    configured = int(effective_n_jobs(None))  # above 1 inside `joblib.parallel_config(n_jobs=...)`
    return configured if configured > 1 else int(effective_n_jobs(-1))


def _in_dask_task() -> bool:
    distributed = sys.modules.get("distributed.worker")
    if distributed is not None and getattr(distributed.thread_state, "key", None) is not None:
        return True
    threaded = sys.modules.get("dask.threaded")
    if threaded is None:
        return False
    pools = [threaded.default_pool, *(pool for pools in threaded.pools.values() for pool in pools.values())]
    return any(threading.current_thread() in getattr(pool, "_threads", ()) for pool in pools)
