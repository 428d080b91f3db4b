"""Dask: fit and score tables that are spread over a cluster.

In: a Dask dataframe or array. The cluster is the user's (`dask.distributed.Client`), or threads of this process. Out: a
fitted `RGLD`, the same as by `RGLD.fit_batches` on the same rows, and lazy scores. This is the only module that imports
Dask.

A pass is one task for every partition, and a tree of tasks that merge their states. The tree depends only on the number
of partitions, so the same partitions give the same bits on any cluster and any workers. Partitions that are neighbours
in the tree are offered to the same worker, so that few states move. A worker with nothing to do takes over tasks that a
slow or dead worker has not started.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

try:
    import dask.array as da
except ImportError as error:
    raise ImportError("rgld.dask needs Dask: pip install 'rgld[dask]'.") from error
from dask.base import annotate, compute, get_scheduler
from dask.delayed import delayed
from dask.local import get_sync
from dask.optimization import cull
from dask.sizeof import sizeof
from dask.utils import ensure_dict
from sklearn.utils.validation import check_is_fitted

from ._detector import fit_in_passes
from ._estimator import RGLD
from ._fit.in_passes import Executor
from ._fit.states import Mergeable
from ._fit.steps import State, Step, merged
from ._params import Parameters
from ._table.schema import Schema
from .exceptions import ParameterError, RGLDError, TableError


@sizeof.register((Mergeable, Step))  # type: ignore[untyped-decorator]
def _sizeof(value: Any) -> int:
    """Return the size of a state or a step in bytes, which Dask asks for before it moves one."""
    if isinstance(value, (tuple, list)):
        return sum(map(_sizeof, value))
    if hasattr(value, "__dict__"):
        return sum(map(_sizeof, vars(value).values()))
    return int(sizeof(value))


MAX_PARTS_MERGED = 8
"""Partitions whose states one task merges, at the bottom of the tree."""
WORKER_TIMEOUT_SECONDS = 300.0
"""How long a fit waits for a worker by default: machines of a cloud take minutes to start."""
SECONDS_BETWEEN_WORKER_LOOKS = 1.0
"""Time between two looks at which workers are there."""


def fit(
    data: Any, detector: RGLD | None = None, *, worker_timeout: float = WORKER_TIMEOUT_SECONDS, **parameters: Any
) -> RGLD:
    """Return a detector fitted on a Dask dataframe or array.

    The fit makes several passes over the table (docs/scale.md lists them): `persist` the table first if the cluster has
    the memory. Workers may come, go and die: the same partitions give the same detector, to the bit.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or dask.array.Array
        The training table. Its partitions may be uneven or empty, and may hold different categories.
    detector : RGLD or None
        The detector to fit, such as `RGLD.plus(random_state=0)`.
    worker_timeout : float
        Seconds to wait while the cluster has no worker at all, before the fit ends with an `RGLDError`. The default is
        five minutes.
    **parameters
        Parameters of the detector, if no detector is given: `fit(ddf, random_state=0)`.

    Examples
    --------
    >>> import dask.array as da
    >>> import rgld.dask
    >>> X = da.random.default_rng(0).normal(size=(100_000, 4), chunks=(20_000, 4))
    >>> detector = rgld.dask.fit(X, n_global_views=4, n_local_views=2, random_state=0)
    >>> rgld.dask.anomaly_score(detector, X).shape
    (100000,)
    """
    if detector is not None and parameters:
        raise ParameterError("Pass a detector or its parameters, not both.")
    if not worker_timeout >= 0:
        raise ParameterError(f"`worker_timeout` must be a number of seconds, 0 or more, got {worker_timeout}.")
    detector = RGLD(**parameters) if detector is None else detector
    data = _table(data)
    example, parts = _example(data), _partitions(data)
    Parameters.of(detector), Schema.of(example)  # raise errors of these before rows are counted
    fit_in_passes(detector, Partitions(parts, _lengths(data, parts, worker_timeout), example, worker_timeout))
    return detector


def anomaly_score(detector: RGLD, data: Any) -> Any:
    """Return the anomaly score of each row, lazily: a series with the dataframe's index, or an array for an array."""
    check_is_fitted(detector)
    data = _table(data)
    model = delayed(detector, pure=True, traverse=False)
    if isinstance(data, da.Array):
        blocks = [
            da.from_delayed(delayed(_score)(model, block), (size,), dtype=np.float64)
            for block, size in zip(_partitions(data), data.chunks[0], strict=True)
        ]
        return da.concatenate(blocks)
    return data.map_partitions(_score_frame, model, meta=("anomaly_score", "f8"))


def _score(detector: RGLD, part: Any) -> Any:
    return detector.anomaly_score(part) if len(part) else np.empty(0)


def _score_frame(part: Any, detector: RGLD) -> Any:
    import pandas as pd

    return pd.Series(_score(detector, part), index=part.index, name="anomaly_score")


class Partitions(Executor):
    """Runs passes over the partitions of a Dask table."""

    def __init__(self, parts: Sequence[Any], lengths: Sequence[int], example: Any, worker_timeout: float) -> None:
        """Take delayed partitions, their numbers of rows, and example rows with the same columns and types."""
        self._example = example
        self.starts = np.cumsum([0, *lengths])
        self.n_rows = int(self.starts[-1])
        graphs = _graphs(parts)
        self.futures = [[task for task in graph.values() if type(task).__name__ == "Future"] for graph in graphs]
        self.is_packed = not any(self.futures) and _have_nothing_in_common(graphs)
        self.parts = list(map(PackedPart, graphs, [part.key for part in parts])) if self.is_packed else list(parts)
        self.worker_timeout = worker_timeout

    def example(self) -> Any:
        """Return example rows with the table's columns and types."""
        return self._example

    def run(self, step: Step[State]) -> State:
        """Return the state of a step after one pass over all partitions."""
        (result,) = _computed(functools.partial(self._tree, step), self.worker_timeout)
        if result is None:
            raise TableError("Expected a table with rows, got only empty partitions.")
        found: State = result
        return found

    def _tree(self, step: Step[State], client: Any) -> tuple[list[Any], set[str]]:
        """Return the task that gives the state of all partitions, and the workers that parts of it are offered to."""
        shared = delayed(step, traverse=False)
        learn, merge = delayed(_learned, pure=False), delayed(_merged, pure=False)
        workers = self._workers(client)
        states = []
        for i, (part, worker) in enumerate(zip(self.parts, workers, strict=True)):
            with annotate(workers=[worker], allow_other_workers=True) if worker else nullcontext():
                states.append(learn(shared, part, int(self.starts[i]), int(self.starts[i + 1])))

        def state_of(first: int, last: int) -> Any:
            if last - first <= MAX_PARTS_MERGED:
                return merge(states[first:last])
            middle = (first + last) // 2
            return merge([state_of(first, middle), state_of(middle, last)])

        return [state_of(0, len(states))], set(workers) - {""}

    def _workers(self, client: Any) -> list[str]:
        """Return the worker that each partition is offered to; "" leaves the choice to Dask."""
        n = len(self.parts)
        if client is None:
            return [""] * n
        if self.is_packed:
            threads = [worker for worker, n_threads in client.nthreads().items() for _ in range(n_threads)] or [""]
            return [threads[i * len(threads) // n] for i in range(n)]
        holders = client.who_has([future for futures in self.futures for future in futures])
        return [next((one for future in own for one in holders.get(future.key, ())), "") for own in self.futures]


def _learned(step: Step[State], part: Any, start: int, stop: int) -> State | None:
    part = part.load() if isinstance(part, PackedPart) else part
    if len(part) != stop - start:
        raise TableError(
            f"A partition had {stop - start:,} rows when they were counted and has {len(part):,} now: the table must "
            "have the same rows every time it is computed; `persist` it if it is random."
        )
    return step.fold(None, part, start)


def _merged(states: Sequence[State | None]) -> State | None:
    return functools.reduce(merged, states)


class PackedPart:
    """A partition as the tasks that compute it. The task that needs the partition computes it, so that it need not be
    moved."""

    def __init__(self, graph: Mapping[Any, Any], key: Any) -> None:
        """Take the tasks that compute a key."""
        self.graph, self.key = graph, key

    def load(self) -> Any:
        """Return the partition, computed now."""
        return get_sync(self.graph, self.key)


def _graphs(parts: Sequence[Any]) -> list[dict[Any, Any]]:
    """Return the tasks that lead to each partition."""
    whole: dict[int, dict[Any, Any]] = {id(part.dask): ensure_dict(part.dask) for part in parts}
    return [cull(whole[id(part.dask)], [part.key])[0] for part in parts]


def _have_nothing_in_common(graphs: Sequence[Mapping[Any, Any]]) -> bool:
    return sum(map(len, graphs)) == len({key for graph in graphs for key in graph})


def _computed(tasks: Callable[[Any], tuple[list[Any], set[str]]], worker_timeout: float) -> list[Any]:
    """Return the results of tasks, computed by the cluster in use or in this process.

    `tasks` takes the cluster's client, or None, and returns the tasks and the workers that some are offered to. It is
    called again if Dask waits for such a worker that is gone.
    """
    client = _client()
    if client is None:
        return list(compute(*tasks(None)[0]))
    with _outside_of_task():
        while True:
            wanted, workers = tasks(client)
            futures = client.compute(wanted)
            try:
                results: list[Any] | None = client.sync(_gathered, client, futures, workers, worker_timeout)
            finally:
                for future in futures:
                    future.release()
            if results is not None:
                return results


async def _gathered(client: Any, futures: list[Any], workers: set[str], worker_timeout: float) -> list[Any] | None:
    """Return the results, or None if tasks are stuck that were offered to workers that are gone."""
    gathering = asyncio.ensure_future(client.gather(futures))
    last_seen = time.monotonic()
    try:
        while not (await asyncio.wait({gathering}, timeout=SECONDS_BETWEEN_WORKER_LOOKS))[0]:
            present = set(await client.nthreads())
            if present:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen >= worker_timeout:
                raise RGLDError(f"The Dask cluster has had no worker for {worker_timeout:g} seconds: start workers.")
            if present and await _left_lying(client, futures, workers, present):
                return None
        return list(await gathering)
    finally:
        if not gathering.done():  # it ends by itself when the results are released; cancelled earlier, it logs an error
            for future in futures:
                future.release()
            await asyncio.wait({gathering}, timeout=SECONDS_BETWEEN_WORKER_LOOKS)
            if not gathering.cancel() and not gathering.cancelled():
                gathering.exception()


async def _left_lying(client: Any, futures: list[Any], workers: set[str], present: set[str]) -> bool:
    """Return whether tasks are stuck that were offered to workers that are gone.

    Such tasks may run on any worker. But if Dask looks for another worker while there is none, they wait for ever for
    the worker they were offered to.
    """
    if workers <= present or all(future.done() for future in futures):
        return False
    return not workers & present or not any((await client.processing()).values())


@contextmanager
def _outside_of_task() -> Iterator[None]:
    """Give this thread back to its worker for the time of the block, if it runs a task of the cluster."""
    from dask.distributed import rejoin, secede

    try:
        secede()
        in_task = True
    except ValueError:
        in_task = False
    try:
        yield
    finally:
        if in_task:
            rejoin()


def _client() -> Any:
    """Return the client of the cluster that Dask would compute on now, or None."""
    try:
        from dask.distributed import Client
    except ImportError:
        return None
    client = getattr(get_scheduler(), "__self__", None)
    return client if isinstance(client, Client) else None


def _table(data: Any) -> Any:
    """Return the table with all columns in every partition."""
    if isinstance(data, da.Array):
        if data.ndim != 2:
            raise TableError(f"Expected an array of rows and columns, got {data.ndim} dimensions.")
        return data.rechunk({1: -1})
    if hasattr(data, "map_partitions") and hasattr(data, "columns"):
        return data
    raise TableError(
        f"Expected a Dask dataframe or array, got {type(data).__name__}: use RGLD.fit, or dask.dataframe.from_pandas."
    )


def _example(data: Any) -> Any:
    """Return example rows with the table's columns and types, made without computing the table."""
    return np.zeros((2, data.shape[1]), data.dtype) if isinstance(data, da.Array) else data._meta_nonempty


def _partitions(data: Any) -> list[Any]:
    if not isinstance(data, da.Array):
        return list(data.to_delayed())
    blocks = list(data.to_delayed().flat)
    # Of an array in the cluster's memory, the optimized graph does not say what the blocks are.
    return (
        blocks if all(block.key in block.dask for block in blocks) else list(data.to_delayed(optimize_graph=False).flat)
    )


def _lengths(data: Any, parts: Sequence[Any], worker_timeout: float) -> list[int]:
    """Return the rows of each partition: known of most arrays, else counted, by one column of a dataframe."""
    if isinstance(data, da.Array):
        if not np.isnan(data.chunks[0]).any():
            return [int(size) for size in data.chunks[0]]
        counted = parts
    else:
        counted = list(data[[data.columns[0]]].to_delayed())
    return _computed(lambda _: ([delayed(len)(part) for part in counted], set()), worker_timeout)
