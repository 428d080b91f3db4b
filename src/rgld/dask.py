"""Dask: fit and score tables that are spread over a cluster.

In: a Dask dataframe or array; the cluster is the user's (`dask.distributed.Client`), or threads of this process. Out: a
fitted `RGLD`, as `RGLD.fit_batches` makes it of the same rows, and lazy scores. The only module that imports Dask.

A pass is a chain of partitions for every few threads of the cluster, each handing its state on, and a tree over the
chains: what moves between workers does not grow with the number of rows.
"""

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed
from dask.system import CPU_COUNT

from ._detector import RGLD
from ._table import read_names
from ._training import Step
from .exceptions import ParameterError, TableError

State = TypeVar("State")

CHAINS_PER_THREAD = 2
"""Chains to a thread: a thread that was faster than others has another one to take."""
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
        self.parts = parts
        self.starts = np.cumsum([0, *lengths])
        self.n_passes = 0

    @property
    def n_rows(self) -> int:
        """Rows of all partitions."""
        return int(self.starts[-1])

    def run(self, step: Step[State]) -> State:
        """Go through the table once."""
        self.n_passes += 1
        shared = delayed(step, pure=True, traverse=False)
        fold, merge = delayed(_fold, pure=True), delayed(_merge, pure=True)
        n_chains = min(len(self.parts), CHAINS_PER_THREAD * _n_threads())
        bounds = np.linspace(0, len(self.parts), n_chains + 1).astype(int)
        states = []
        for first, last in pairwise(bounds):
            state = None
            for i in range(first, last):
                state = fold(shared, state, self.parts[i], int(self.starts[i]), int(self.starts[i + 1]))
            states.append(state)
        while len(states) > 1:
            states = [merge(shared, states[i : i + MERGED_AT_ONCE]) for i in range(0, len(states), MERGED_AT_ONCE)]
        (result,) = compute(states[0])
        if result is None:
            raise TableError("Expected a table with rows, got partitions without any.")
        found: State = result
        return found


def _fold(step: Step[State], state: State | None, part: Any, start: int, stop: int) -> State | None:
    if len(part) != stop - start:
        raise TableError(
            f"A partition had {stop - start:,} rows when they were counted and has {len(part):,} now: the table must "
            "give the same rows every time it is computed; `persist` it if it is random."
        )
    return step.fold(state, part, start)


def _merge(step: Step[State], states: Sequence[State | None]) -> State | None:
    return functools.reduce(step.merge_any, states)


def _n_threads() -> int:
    """Return the threads of the cluster, or of this machine without one."""
    try:
        from dask.distributed import get_client

        return max(1, int(sum(get_client().nthreads().values())))
    except (ImportError, ValueError):
        return int(CPU_COUNT)


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
