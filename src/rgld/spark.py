"""Spark: fit, score and explain tables where Spark holds them.

In: a Spark DataFrame, of a classic or a Connect session. Out: a fitted `RGLD`, the same as by `RGLD.fit_batches` on the
same rows, and DataFrames with scores and reasons. Every executor needs this package. This is the only module that
imports Spark.

A pass is one job: each partition becomes the state of its rows (`mapInArrow`), and groups of neighbouring states are
merged until few are left, which the driver merges. Which states are merged in which order depends only on the number of
partitions, and a task gives the same state every time. So an executor that dies, and a task that runs twice, change no
bit. Rows are numbered by counting the rows of each partition first: nothing is shuffled but states. States travel as
bytes without code in them (`_fit/packing.py`), the model as its file; Spark itself sends functions as pickles.
"""

import functools
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

try:
    import pyarrow as pa
    from pyspark import TaskContext
    from pyspark.sql.types import ArrayType, DataType, DoubleType, StringType, StructType
except ImportError as error:
    raise ImportError("rgld.spark needs PySpark and PyArrow: pip install 'rgld[spark]'.") from error
from sklearn.utils.validation import check_is_fitted

from ._detector import fit_in_passes
from ._estimator import RGLD, load
from ._fit.in_passes import Executor
from ._fit.packing import pack, unpack
from ._fit.steps import BLOCK_ROWS, State, Step, merged
from ._params import Parameters
from ._table.schema import Schema
from .exceptions import ParameterError, RGLDError, TableError

__all__ = ["anomaly_score", "explain", "fit"]

MAX_STATES_MERGED = 32
"""States that one task merges."""
MAX_STATES_AT_DRIVER = 8
"""States that the driver merges: as many megabytes arrive there."""
SCORE, SPARK_REASONS = "anomaly_score", "reasons"
ROWS_COMPARED = 100
"""Rows at the start of each partition that must be the same in every pass."""


def fit(df: Any, detector: RGLD | None = None, **parameters: Any) -> RGLD:
    """Return a detector fitted on a Spark DataFrame.

    The fit makes several passes over the table (docs/scale.md lists them), so `persist` it first if the cluster has the
    memory. The table must have the same partitions with the same rows in the same order every time, as files and cached
    tables have. A table that was just shuffled (a join, `repartition`) has not: cache or write it first.

    Parameters
    ----------
    df : pyspark.sql.DataFrame
        The training table: drop ids and labels first. Partitions may be uneven or empty.
    detector : RGLD or None
        The detector to fit, such as `RGLD.plus(random_state=0)`.
    **parameters
        Parameters of the detector, if no detector is given: `fit(df, random_state=0)`.
    """
    if detector is not None and parameters:
        raise ParameterError("Pass a detector or its parameters, not both.")
    detector = RGLD(**parameters) if detector is None else detector
    if _checked(df).isStreaming:
        raise TableError("Expected a table, got a stream: fit on a table; the stream can be scored.")
    table = SparkTable(df)
    Parameters.of(detector), Schema.of(table.example())  # raise errors of these before rows are counted
    table.count()
    fit_in_passes(detector, table)
    return detector


def anomaly_score(detector: RGLD, df: Any) -> Any:
    """Return the DataFrame with one more column, `anomaly_score`. Nothing is computed yet.

    The columns of the model are found by their names; others, such as ids, are kept as they are. The scores have the
    bits of `RGLD.anomaly_score`.
    """
    return _extended(detector, df, {SCORE: DoubleType()}, _score)


def explain(detector: RGLD, df: Any) -> Any:
    """Return the DataFrame with two more columns: `anomaly_score`, and `reasons`, an array of strings.

    Reasons are much slower than scores: ask for those of the rows that matter,
    `explain(detector, anomaly_score(detector, df).filter("anomaly_score > 0.99").drop("anomaly_score"))`.
    """
    return _extended(detector, df, {SCORE: DoubleType(), SPARK_REASONS: ArrayType(StringType())}, _explain)


def _score(detector: RGLD, rows: Any) -> list[Any]:
    return [pa.array(detector.anomaly_score(rows))]


def _explain(detector: RGLD, rows: Any) -> list[Any]:
    explanation = detector.explain(rows)
    reasons = [explanation.reasons(i) for i in range(len(explanation))]
    return [pa.array(explanation.anomaly_score), pa.array(reasons, pa.list_(pa.string()))]


def _extended(detector: RGLD, df: Any, added: dict[str, DataType], answer: Callable[[RGLD, Any], list[Any]]) -> Any:
    """Return the DataFrame with columns that are computed row by row."""
    check_is_fitted(detector)
    df = _checked(df)
    names = getattr(detector, "feature_names_in_", None)
    if names is None:
        raise TableError("The detector was fitted without column names: fit it on a table with names.")
    dropped = detector.model_.encoding.dropped
    missing = [str(name) for name in names if name not in df.columns and name not in dropped]
    if missing:
        raise TableError(f"The table has no column {missing[0]!r}, which the detector was fitted on: add it.")
    taken = [name for name in added if name in df.columns]
    if taken:
        raise TableError(f"The table has a column {taken[0]!r} already: rename or drop it.")
    schema = StructType(list(df.schema.fields))  # `add` changes a schema, and this one would be that of `df`
    for name, kind in added.items():
        schema.add(name, kind)
    mapped = functools.partial(_answered, _content(detector), [str(name) for name in names], list(added), answer)
    return df.mapInArrow(mapped, schema)


def _answered(
    content: bytes, names: list[str], added: list[str], answer: Callable[[RGLD, Any], list[Any]], batches: Iterable[Any]
) -> Iterator[Any]:
    """Yield the batches of a partition with their new columns; runs on an executor."""
    detector = _loaded(content)
    for batch in batches:
        if batch.num_rows:
            present = {name: batch.column(name) for name in names if name in batch.schema.names}
            rows = pa.table({name: present.get(name, pa.nulls(batch.num_rows)) for name in names})
            columns = [*batch.columns, *answer(detector, rows)]
            yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, *added])


def _content(detector: RGLD) -> bytes:
    """Return the detector's model file."""
    with tempfile.TemporaryDirectory(prefix="rgld-") as folder:
        path = Path(folder) / "model.rgld"
        detector.save(path)
        return path.read_bytes()


@functools.lru_cache(maxsize=4)
def _loaded(content: bytes) -> RGLD:
    """Return the detector of a model file; a process loads it once, for all its tasks."""
    with tempfile.TemporaryDirectory(prefix="rgld-") as folder:
        path = Path(folder) / "model.rgld"
        path.write_bytes(content)
        return load(path)


class SparkTable(Executor):
    """Runs passes over the partitions of a DataFrame."""

    def __init__(self, df: Any) -> None:
        self.df = df
        self.starts: dict[int, int] = {}
        self.marks: dict[int, tuple[int, int]] = {}

    def example(self) -> Any:
        """Return a table without rows, with the columns of the DataFrame. What types they have is seen in the parts."""
        return pa.table([pa.nulls(0)] * len(self.df.columns), names=self.df.columns)

    def count(self) -> None:
        """Number the rows: count those of each partition."""
        counted = _collected(self.df.mapInArrow(_counted, "part long, rows long, mark long"))
        self.marks = {row.part: (row.rows, row.mark) for row in sorted(counted, key=lambda row: row.part)}
        lengths = [rows for rows, _ in self.marks.values()]
        self.starts = dict(zip(self.marks, accumulate(lengths, initial=0), strict=False))
        self.n_rows = sum(lengths)
        if not lengths:
            raise TableError("Expected a table with rows, got only empty partitions.")

    def run(self, step: Step[State]) -> State:
        """Return the state of a step after one pass over all partitions."""
        learned = functools.partial(_learned, step, self.starts, self.marks)
        states = self.df.mapInArrow(learned, "node long, state binary")
        n_nodes = max(self.marks) + 1
        while n_nodes > MAX_STATES_AT_DRIVER:
            group = (states["node"] / MAX_STATES_MERGED).cast("long")
            states = states.withColumn("parent", group).groupBy("parent")
            states = states.applyInArrow(_merged, "node long, state binary")
            n_nodes = -(-n_nodes // MAX_STATES_MERGED)
        rows = sorted(_collected(states), key=lambda row: row.node)
        state: State | None = functools.reduce(merged, (unpack(bytes(row.state)) for row in rows), None)
        if state is None:
            raise RGLDError("Spark lost the rows of the table between two passes: `persist` the table first.")
        return state


def _counted(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the number of a partition, its number of rows, and a mark of its first rows; runs on an executor."""
    rows, head = 0, []
    for batch in batches:
        if rows < ROWS_COMPARED:
            head.append(batch.slice(0, ROWS_COMPARED - rows))
        rows += batch.num_rows
    if rows:
        yield pa.record_batch({"part": [_partition()], "rows": [rows], "mark": [_mark(head)]})


def _learned(
    step: Step[State], starts: dict[int, int], marks: dict[int, tuple[int, int]], batches: Iterable[Any]
) -> Iterator[Any]:
    """Yield the state of a partition; runs on an executor."""
    part = _partition()
    state, rows, head = None, 0, []
    for block in _blocks(batches):
        if rows < ROWS_COMPARED:
            head.append(block.slice(0, ROWS_COMPARED - rows))
        state = step.fold(state, block, starts.get(part, 0) + rows)
        rows += len(block)
    if rows and (rows, _mark(head)) != marks.get(part):
        raise TableError(
            f"Partition {part} had other rows when they were counted: the table must have the same rows in the same "
            "order every time it is computed; `persist` it, or write it to files first."
        )
    if state is not None:
        yield pa.record_batch({"node": [part], "state": [pack(state)]})


def _blocks(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of `BLOCK_ROWS` rows, and a rest: the same, whatever the size of Spark's batches is."""
    held: list[Any] = []
    n_held = 0
    for batch in batches:
        held.append(batch)
        n_held += batch.num_rows
        while n_held >= BLOCK_ROWS:
            whole = pa.Table.from_batches(held)
            yield whole.slice(0, BLOCK_ROWS)
            held, n_held = whole.slice(BLOCK_ROWS).to_batches(), n_held - BLOCK_ROWS
    if n_held:
        yield pa.Table.from_batches(held)


def _merged(group: Any) -> Any:
    """Return the merged state of neighbouring states, in their order; runs on an executor."""
    group = group.sort_by("node")
    states = (unpack(state.as_buffer().to_pybytes()) for state in group["state"])
    state: Any = functools.reduce(merged, states, None)
    return pa.table({"node": [group["parent"][0].as_py()], "state": [pack(state)]})


def _mark(head: Sequence[Any]) -> int:
    """Return a number that tells some rows from others, and from the same rows in another order."""
    return zlib.crc32(repr([part.to_pylist() for part in _joined(head)]).encode("utf-8", "surrogatepass"))


def _joined(head: Sequence[Any]) -> list[Any]:
    """Return rows as one table, so that it does not matter how they came."""
    batches = [batch for part in head for batch in (part.to_batches() if isinstance(part, pa.Table) else [part])]
    return [pa.Table.from_batches(batches)] if batches else []


def _partition() -> int:
    """Return the number of the partition that this task works on."""
    context = TaskContext.get()
    assert context is not None, "this runs in a task of Spark's"
    return int(context.partitionId())


def _collected(df: Any) -> list[Any]:
    """Return the rows of a small DataFrame. An error of ours in a task comes back as itself."""
    try:
        rows: list[Any] = df.collect()
    except Exception as error:
        for kind in (TableError, ParameterError, RGLDError):
            name = f"{kind.__module__}.{kind.__name__}: "
            if name in str(error):
                raise kind(str(error).split(name, 1)[1].splitlines()[0]) from error
        if "No module named 'rgld" in str(error):
            raise RGLDError(
                "The executors of Spark do not find rgld: install it where they run, or set PYSPARK_PYTHON to a Python "
                "that has it."
            ) from error
        raise
    return rows


def _checked(df: Any) -> Any:
    """Return the DataFrame, if it is one."""
    if not all(hasattr(df, name) for name in ("mapInArrow", "schema", "columns")):
        raise TableError(f"Expected a Spark DataFrame, got {type(df).__name__}: use RGLD.fit, or createDataFrame.")
    return df
