"""Dask: fit and score tables that are spread over a cluster.

In: a Dask dataframe or array; the cluster is the user's (`dask.distributed.Client`), or threads of this process. Out: a
fitted `RGLD`, as `RGLD.fit_batches` makes it of the same rows, and lazy scores. The only module that imports Dask.

A pass is a chain of partitions for every thread of the cluster, each handing its state on, and a tree over the chains:
what moves between workers does not grow with the number of rows.
"""

import functools
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

try:
    import dask.array as da
except ImportError as error:
    raise ImportError("rgld.dask needs Dask: pip install 'rgld[dask]'.") from error
from dask.base import annotate, compute
from dask.delayed import delayed
from dask.local import get_sync
from dask.optimization import cull
from dask.sizeof import sizeof
from dask.system import CPU_COUNT
from dask.utils import ensure_dict
from sklearn.utils.validation import check_is_fitted

from ._counts import ScoreCounts, ScoreMoments
from ._detector import RGLD
from ._global import EmbeddingSums
from ._preprocess import ColumnSums
from ._survey import Survey
from ._table import read_names
from ._training import PerBranch, State, Step, merged
from .exceptions import ParameterError, TableError


@sizeof.register((PerBranch, Step, ColumnSums, EmbeddingSums, ScoreCounts, ScoreMoments, Survey))  # type: ignore[untyped-decorator]
def _sizeof(value: Any) -> int:
    """Return the bytes of a state or a step, which Dask asks for before it moves one."""
    if isinstance(value, (tuple, list)):
        return sum(map(_sizeof, value))
    if hasattr(value, "__dict__"):
        return sum(map(_sizeof, vars(value).values()))
    return int(sizeof(value))


CHAINS = 16
"""Of a cluster whose workers are not known."""
MERGED_AT_ONCE = 4
"""States that a node of the tree merges."""


def fit(data: Any, detector: RGLD | None = None, **parameters: Any) -> RGLD:
    """Return a detector fitted on a Dask dataframe or array.

    The table is gone through several times (docs/scale.md says how often and for what): `persist` it first if the
    cluster has the memory.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or dask.array.Array
        The training table. Partitions may be uneven or empty, and may hold different categories.
    detector : RGLD or None
        The detector to fit, such as `RGLD.plus(random_state=0)`.
    **parameters
        Of the detector, if none is given: `fit(ddf, random_state=0)`.

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
    detector = RGLD(**parameters) if detector is None else detector
    data = _table(data)
    with detector._fitting():
        read_names(detector, _example(data))
        parts = _partitions(data)
        passes = Partitions(parts, _lengths(data, parts))
        detector._learn_in_passes(passes, passes.n_rows)
    return detector


def anomaly_score(detector: RGLD, data: Any) -> Any:
    """Return the anomaly score of each row, lazily: of a dataframe a series with its index, of an array an array."""
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


class Partitions:
    """The partitions of a Dask table, in their order."""

    def __init__(self, parts: Sequence[Any], lengths: Sequence[int]) -> None:
        """Take delayed partitions and their numbers of rows."""
        self.starts = np.cumsum([0, *lengths])
        self.chains = _chains(parts)
        self.parts = _packed(parts)

    @property
    def n_rows(self) -> int:
        """Rows of all partitions."""
        return int(self.starts[-1])

    def run(self, step: Step[State]) -> State:
        """Go through the table once."""
        shared = delayed(step, traverse=False)
        fold, merge = delayed(_fold), delayed(_merge)
        states = []
        for worker, chain in self.chains:
            # On one worker while it lives: a state that stays does not move, nor does the next partition.
            with annotate(workers=[worker], allow_other_workers=True) if worker else nullcontext():
                state = None
                for i in chain:
                    state = fold(shared, state, self.parts[i], int(self.starts[i]), int(self.starts[i + 1]))
            states.append(state)
        while len(states) > 1:
            states = [merge(states[i : i + MERGED_AT_ONCE]) for i in range(0, len(states), MERGED_AT_ONCE)]
        (result,) = compute(states[0])
        if result is None:
            raise TableError("Expected a table with rows, got partitions without any.")
        found: State = result
        return found


def _fold(step: Step[State], state: State | None, part: Any, start: int, stop: int) -> State | None:
    part = part.load() if isinstance(part, PackedPart) else part
    if len(part) != stop - start:
        raise TableError(
            f"A partition had {stop - start:,} rows when they were counted and has {len(part):,} now: the table must "
            "give the same rows every time it is computed; `persist` it if it is random."
        )
    return step.fold(state, part, start)


def _merge(states: Sequence[State | None]) -> State | None:
    return functools.reduce(merged, states)


class PackedPart:
    """A partition and how it is computed, in one piece: the task that needs it computes it, and it moves nowhere."""

    def __init__(self, graph: Mapping[Any, Any], key: Any) -> None:
        """Take the tasks that lead to a key."""
        self.graph, self.key = graph, key

    def load(self) -> Any:
        """Compute the partition."""
        return get_sync(self.graph, self.key)


def _packed(parts: Sequence[Any]) -> list[Any]:
    """Return the partitions packed, if they have no task in common and none is in the cluster's memory already."""
    graphs: dict[int, dict[Any, Any]] = {id(part.dask): ensure_dict(part.dask) for part in parts}
    culled = [cull(graphs[id(part.dask)], [part.key])[0] for part in parts]
    n_tasks = sum(map(len, culled))
    in_memory = any(type(task).__name__ == "Future" for graph in culled for task in graph.values())
    alone = n_tasks == len({key for graph in culled for key in graph})
    if in_memory or not alone or not all(part.key in graph for part, graph in zip(parts, culled, strict=True)):
        return list(parts)
    return [PackedPart(graph, part.key) for part, graph in zip(parts, culled, strict=True)]


def _chains(parts: Sequence[Any]) -> list[tuple[str, list[int]]]:
    """Return which partitions are gone through one after the other, and by which worker ("" without a cluster): those
    in a worker's memory by that worker, the others by all in turn."""
    client = _client()
    if client is None:
        return [("", chain.tolist()) for chain in np.array_split(range(len(parts)), min(len(parts), CPU_COUNT))]
    threads: dict[str, int] = client.nthreads()
    if not threads:  # an adaptive cluster that has not begun
        return [("", chain.tolist()) for chain in np.array_split(range(len(parts)), min(len(parts), CHAINS))]
    holders = client.who_has([part.key for part in parts])
    own: dict[str, list[int]] = {worker: [] for worker in threads}
    elsewhere: list[int] = []
    for i, part in enumerate(parts):
        holder = next(iter(holders.get(part.key) or ()), "")
        own.get(holder, elsewhere).append(i)
    shares = np.cumsum([0, *threads.values()]) * len(elsewhere) // sum(threads.values())
    for worker, first, last in zip(threads, shares, shares[1:], strict=False):
        own[worker] += elsewhere[first:last]
    return [
        (worker, chain.tolist())
        for worker, group in own.items()
        for chain in np.array_split(group, min(len(group), threads[worker]) or 1)
        if len(chain)
    ]


def _client() -> Any:
    """Return the client of the cluster in use, or None."""
    try:
        from dask.distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _table(data: Any) -> Any:
    """Return the table with whole rows in every partition."""
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
    """Return rows of the table's types, from what is known without computing."""
    return np.zeros((2, data.shape[1]), data.dtype) if isinstance(data, da.Array) else data._meta_nonempty


def _partitions(data: Any) -> list[Any]:
    parts = data.to_delayed()
    return [block for row in parts for block in row] if isinstance(data, da.Array) else list(parts)


def _lengths(data: Any, parts: Sequence[Any]) -> list[int]:
    """Return the rows of each partition: known of most arrays, else counted, by one column of a dataframe."""
    if isinstance(data, da.Array):
        if not np.isnan(data.chunks[0]).any():
            return [int(size) for size in data.chunks[0]]
        counted = parts
    else:
        counted = list(data[[data.columns[0]]].to_delayed())
    return list(compute(*(delayed(len)(part) for part in counted)))
