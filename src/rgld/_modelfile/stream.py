"""The stream in a model file: the sampled rows that `partial_fit` goes on from, as they were read.

In: a `Stream`. Out: what the header says of it and its arrays, and back. Keys of rows are not written: they follow from
the seed and the rows' indices.
"""

import re
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Float64s, Floats, Int64s, Objects
from .._fit import randomness
from .._fit.sampling import RowSample
from .._fit.stream import MAX_HALF_LIFE, MIN_HALF_LIFE, Stream
from .._model.fields import Array, array_fields
from .._table.cells import MAX_STRING_LENGTH
from .._table.columns import RawColumn
from .._table.table import ColumnTable, MatrixTable, Table
from ..exceptions import ModelFileError
from .layout import expected_spec
from .sizes import MAX_ROWS
from .tensors import Arrays, ArraySpec, Specs

STREAM_PREFIX = "stream."
STREAM_KEYS = {"seed", "size", "half_life", "n_rows", "columns"}
"""What a header says of a stream."""
RAW_KINDS = ("number", "boolean", "time", "duration", "text", "category")
INTEGER = re.compile(r"-?[0-9]{1,309}")
"""Digits of an integer in a table: no float64 has more."""
MAX_SEED = 2**4096


# The fields below are named as in a file, so the format fixes their names: `numbers` are row indices, `texts` strings.


class MatrixArrays:
    """The arrays of a stream of rows without column names."""

    numbers: Annotated[Int64s, Array("stream_rows")]
    """Indices of the sampled rows in the stream."""
    matrix: Annotated[Floats, Array("stream_rows table_columns")]


class ColumnArrays:
    """The arrays of a stream of rows with column names."""

    numbers: Annotated[Int64s, Array("stream_rows")]
    """Indices of the sampled rows in the stream."""
    values: Annotated[Float64s, Array("table_columns stream_rows")]
    """Numbers, or places in the strings of the column."""
    n_texts: Annotated[Int64s, Array("table_columns")]
    """Strings of each column."""
    text_ends: Annotated[Int64s, Array("strings")]
    """Where each string ends in `texts`."""
    texts: Annotated[NDArray[np.uint8], Array("bytes")]
    """The strings of all columns back to back, in UTF-8."""


def describe_stream(stream: Stream | None) -> Any:
    """Return what a header says of a stream."""
    if stream is None:
        return None
    table = stream.table
    columns = None
    if isinstance(table, ColumnTable):
        kinds = ["number" if column.kind == "nested" else column.kind for column in table.columns]
        columns = [
            [kind, column.is_of_objects, column.exact is not None]
            for kind, column in zip(kinds, table.columns, strict=True)
        ]
    own = {"seed": stream.seed, "size": stream.size, "half_life": stream.half_life, "n_rows": stream.n_rows}
    return {**own, "columns": columns}


def stream_arrays(stream: Stream | None) -> Arrays:
    """Return the arrays of a stream by name."""
    if stream is None or stream.sample is None:
        return {}
    table = stream.table
    own = {"matrix": table.matrix} if isinstance(table, MatrixTable) else _column_arrays(table)
    return {f"{STREAM_PREFIX}{name}": array for name, array in {"numbers": stream.sample.indices, **own}.items()}


def _column_arrays(table: Table) -> Arrays:
    """Return the arrays of `ColumnArrays` but for the rows' indices."""
    columns = [table.column(j) for j in range(table.n_columns)]
    lists = [column.strings if column.exact is None else _digits_as_strings(column.exact) for column in columns]
    encoded = [string.encode("utf-8", "surrogatepass") for strings in lists for string in strings]
    return {
        "values": np.array([column.values for column in columns], dtype=np.float64),
        "n_texts": np.array([len(strings) for strings in lists], dtype=np.int64),
        "text_ends": np.cumsum([len(string) for string in encoded], dtype=np.int64),
        "texts": np.frombuffer(b"".join(encoded), np.uint8),
    }


def _digits_as_strings(exact: Objects) -> list[str]:
    return ["" if digits is None else str(digits) for digits in exact]


def expected_stream_specs(content: Any, specs: Specs, n_columns: int, has_names: bool) -> dict[str, ArraySpec]:
    """Check what a header says of a stream, and return the type and shape of each of its arrays."""
    if content is None:
        return {}
    if not isinstance(content, dict) or set(content) != STREAM_KEYS:
        raise ModelFileError("The model file describes a stream in a way this version does not know.")
    lengths = {"table_columns": n_columns}
    expected = {}
    for field in array_fields(ColumnArrays if has_names else MatrixArrays):
        name = f"{STREAM_PREFIX}{field.name}"
        expected[name] = expected_spec(field, lengths, specs.get(name))
    if not (
        _are_possible_rows(content, lengths["stream_rows"]) and _are_columns(content["columns"], n_columns, has_names)
    ):
        raise ModelFileError("The model file's stream is not what a detector has.")
    return expected


def _are_possible_rows(content: dict[str, Any], n_sampled: int) -> bool:
    seed, size, n_rows, half_life = (content[name] for name in ("seed", "size", "n_rows", "half_life"))
    return (
        all(type(number) is int for number in (seed, size, n_rows))
        and 0 <= seed < MAX_SEED
        and 1 <= n_sampled <= min(size, n_rows)
        and max(size, n_rows) <= MAX_ROWS
        and (half_life is None or (type(half_life) is float and MIN_HALF_LIFE <= half_life <= MAX_HALF_LIFE))
    )


def _are_columns(columns: Any, n_columns: int, has_names: bool) -> bool:
    if not has_names:
        return columns is None
    return isinstance(columns, list) and len(columns) == n_columns and all(map(_is_column, columns))


def _is_column(column: Any) -> bool:
    """Tell whether this describes a column: its kind, whether its cells were Python objects, and whether its numbers
    have exact digits."""
    if not isinstance(column, list) or len(column) != 3:
        return False
    kind, is_of_objects, has_digits = column
    return (
        kind in RAW_KINDS
        and type(is_of_objects) is bool
        and type(has_digits) is bool
        and (kind == "number") >= has_digits
    )


def stream_of(content: Any, arrays: Arrays, names: list[str] | None) -> Stream | None:
    """Return the stream of a file whose header was checked."""
    if content is None:
        return None
    own = {name.removeprefix(STREAM_PREFIX): array for name, array in arrays.items() if name.startswith(STREAM_PREFIX)}
    indices = own["numbers"]
    in_stream = (indices >= 0) & (indices < content["n_rows"])  # before differences, which could overflow
    if not in_stream.all() or not np.all(np.diff(indices) > 0):
        raise ModelFileError("The model file's stream has rows that are not in order.")
    table = MatrixTable(own["matrix"]) if names is None else _columns_of(names, content["columns"], own)
    keys = randomness.row_keys(content["seed"], indices, content["half_life"])
    sample = RowSample(indices, keys, table, content["size"])
    return Stream(content["seed"], content["size"], content["half_life"], content["n_rows"], sample)


def _columns_of(names: list[str], described: list[list[Any]], own: Arrays) -> Table:
    strings = _strings(own["n_texts"], own["text_ends"], own["texts"])
    return ColumnTable(tuple(map(_column, names, described, own["values"], strings)))


def _strings(counts: Int64s, ends: Int64s, content: NDArray[np.uint8]) -> list[list[str]]:
    """Return the strings of each column."""
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    is_whole = np.all(counts >= 0) and counts.sum() == len(ends) and np.all(ends >= starts)
    if not is_whole or (ends[-1] if len(ends) else 0) != len(content):
        raise ModelFileError("The model file's stream has strings whose lengths do not fit its content.")
    data = content.tobytes()
    try:
        strings = [data[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True)]
    except UnicodeDecodeError as error:
        raise ModelFileError("The model file's stream has strings that are not UTF-8.") from error
    stops = np.cumsum(counts)
    return [strings[stop - count : stop] for stop, count in zip(stops, counts, strict=True)]


def _column(name: str, described: list[Any], values: Float64s, strings: list[str]) -> RawColumn:
    kind, is_of_objects, has_digits = described
    if kind in ("text", "category"):
        # Checked before the cast: NumPy warns about a number that no integer can hold.
        are_places = np.all((values >= -1) & (values < len(strings)) & (values == np.floor(values)))
        if not are_places or len(set(strings)) != len(strings) or max(map(len, strings), default=0) > MAX_STRING_LENGTH:
            raise ModelFileError("The model file's stream has strings that no table has.")
        return RawColumn(name, kind, values.astype(np.int64), tuple(strings), is_of_objects=is_of_objects)
    if len(strings) != (len(values) if has_digits else 0):
        raise ModelFileError("The model file's stream has numbers that no table has.")
    return RawColumn(name, kind, values, exact=_digits(strings) if has_digits else None, is_of_objects=is_of_objects)


def _digits(strings: list[str]) -> Objects:
    digits = np.full(len(strings), None, dtype=object)
    for i, string in enumerate(strings):
        if string and not INTEGER.fullmatch(string):
            raise ModelFileError("The model file's stream has numbers that no table has.")
        digits[i] = int(string) if string else None
    return digits
