"""The stream in a model file: the sampled rows that `partial_fit` goes on from, as they were read.

In: a `Stream`. Out: what the header says of it and its arrays, and back. All texts of all columns lie back to back in
one array of bytes. Keys are not written: they follow from the seed and the rows' numbers.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _random
from ._cells import LONGEST_TEXT, RawColumn
from ._sampling import RowSample
from ._stream import LONGEST_HALF_LIFE, SHORTEST_HALF_LIFE, Stream
from ._tensorfile import DTYPES, Arrays, ArraySpec, Specs
from .exceptions import ModelFileError

KINDS = ("number", "boolean", "time", "duration", "text", "category")
INTEGER = re.compile(r"-?[0-9]{1,200}")
MOST_ROWS = 2**40
F64, F32, I64, U8 = (DTYPES[name] for name in ("F64", "F32", "I64", "U8"))


def describe_stream(stream: Stream | None) -> Any:
    """Return what a header says of a stream."""
    if stream is None:
        return None
    table = stream.table
    columns = None if isinstance(table, np.ndarray) else [[c.kind, c.is_loose, c.exact is not None] for c in table]
    own = {"seed": stream.seed, "size": stream.size, "half_life": stream.half_life, "n_rows": stream.n_rows}
    return {**own, "columns": columns}


def stream_arrays(stream: Stream | None) -> Arrays:
    """Return the arrays of a stream."""
    if stream is None or stream.sample is None:
        return {}
    table = stream.table
    if isinstance(table, np.ndarray):
        return {"stream.numbers": stream.sample.numbers, "stream.matrix": table}
    lists = [column.texts if column.exact is None else [_shown(digits) for digits in column.exact] for column in table]
    encoded = [text.encode("utf-8", "surrogatepass") for texts in lists for text in texts]
    return {
        "stream.numbers": stream.sample.numbers,
        "stream.values": np.array([column.values for column in table], dtype=np.float64),
        "stream.n_texts": np.array([len(texts) for texts in lists], dtype=np.int64),
        "stream.text_ends": np.cumsum([len(text) for text in encoded], dtype=np.int64),
        "stream.texts": np.frombuffer(b"".join(encoded), np.uint8),
    }


def _shown(digits: int | None) -> str:
    return "" if digits is None else str(digits)


def stream_specs(content: Any, specs: Specs, n_columns: int, has_names: bool) -> dict[str, ArraySpec]:
    """Check what a header says of a stream, and return the arrays that must follow."""
    if content is None:
        return {}
    fields = {"seed", "size", "half_life", "n_rows", "columns"}
    if not isinstance(content, dict) or set(content) != fields:
        raise ModelFileError("The model file's stream is not described as one.")
    half_life, columns = content["half_life"], content["columns"]
    numbers = specs.get("stream.numbers", ArraySpec(I64, ()))
    n_sampled = numbers.shape[0] if len(numbers.shape) == 1 else 0
    holds = (
        type(content["seed"]) is int
        and 0 <= content["seed"] < 2**4096
        and all(type(content[name]) is int for name in ("size", "n_rows"))
        and 1 <= n_sampled <= content["size"] <= MOST_ROWS
        and n_sampled <= content["n_rows"] <= MOST_ROWS
        and (half_life is None or (type(half_life) is float and SHORTEST_HALF_LIFE <= half_life <= LONGEST_HALF_LIFE))
        and (columns is not None) == has_names
        and (columns is None or (isinstance(columns, list) and len(columns) == n_columns))
        and all(_is_column(column) for column in columns or [])
    )
    if not holds:
        raise ModelFileError("The model file's stream is not what a detector has.")
    own = {"stream.numbers": ArraySpec(I64, (n_sampled,))}
    if columns is None:
        dtype = specs.get("stream.matrix", ArraySpec(F64, ())).dtype
        return {**own, "stream.matrix": ArraySpec(F32 if dtype == F32 else F64, (n_sampled, n_columns))}
    sizes = [specs.get(f"stream.{name}", ArraySpec(I64, (0,))).shape for name in ("text_ends", "texts")]
    if any(len(size) != 1 for size in sizes):
        raise ModelFileError("The model file's stream is not what a detector has.")
    return {
        **own,
        "stream.values": ArraySpec(F64, (n_columns, n_sampled)),
        "stream.n_texts": ArraySpec(I64, (n_columns,)),
        "stream.text_ends": ArraySpec(I64, sizes[0]),
        "stream.texts": ArraySpec(U8, sizes[1]),
    }


def _is_column(column: Any) -> bool:
    return (
        isinstance(column, list)
        and len(column) == 3
        and column[0] in KINDS
        and type(column[1]) is bool
        and type(column[2]) is bool
        and (column[0] == "number" or not column[2])
    )


def stream_of(content: Any, arrays: Arrays, names: list[str] | None) -> Stream | None:
    """Return the stream of a file whose header was checked."""
    if content is None:
        return None
    numbers = arrays["stream.numbers"]
    increasing = bool(np.all(np.diff(numbers) > 0))
    if not increasing or numbers[0] < 0 or numbers[-1] >= content["n_rows"]:
        raise ModelFileError("The model file's stream has rows that are not in order.")
    table: list[RawColumn] | NDArray[np.floating]
    if names is None:
        table = arrays["stream.matrix"]
    else:
        lists = _texts(arrays)
        parts = zip(names, content["columns"], arrays["stream.values"], lists, strict=True)
        table = [_column(name, described, values, texts) for name, described, values, texts in parts]
    keys = _random.row_keys(content["seed"], numbers, content["half_life"])
    own = (content["seed"], content["size"], content["half_life"], content["n_rows"])
    return Stream(*own, RowSample(numbers, keys, table, content["size"]))


def _texts(arrays: Arrays) -> list[list[str]]:
    counts, ends, content = (arrays[f"stream.{name}"] for name in ("n_texts", "text_ends", "texts"))
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    whole = np.all(counts >= 0) and counts.sum() == len(ends) and np.all(ends >= starts)
    if not whole or (ends[-1] if len(ends) else 0) != len(content):
        raise ModelFileError("The model file's stream has texts that are not whole.")
    data = content.tobytes()
    try:
        texts = [data[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True)]
    except UnicodeDecodeError as error:
        raise ModelFileError("The model file's stream has texts that are not UTF-8.") from error
    stops = np.cumsum(counts)
    return [texts[stop - count : stop] for stop, count in zip(stops, counts, strict=True)]


def _column(name: str, described: tuple[str, bool, bool], values: NDArray[np.float64], texts: list[str]) -> RawColumn:
    kind, is_loose, has_digits = described
    if kind in ("text", "category"):
        codes = values.astype(np.int64)
        known = np.all((codes == values) & (codes >= -1) & (codes < len(texts))) and len(set(texts)) == len(texts)
        if not known or max(map(len, texts), default=0) > LONGEST_TEXT:
            raise ModelFileError("The model file's stream has texts that no table has.")
        return RawColumn(name, kind, codes, tuple(texts), is_loose=is_loose)
    if len(texts) != (len(values) if has_digits else 0):
        raise ModelFileError("The model file's stream has numbers that no table has.")
    return RawColumn(name, kind, values, exact=_digits(texts) if has_digits else None, is_loose=is_loose)


def _digits(texts: list[str]) -> NDArray[np.object_]:
    digits = np.full(len(texts), None, dtype=object)
    for i, text in enumerate(texts):
        if text and not INTEGER.fullmatch(text):
            raise ModelFileError("The model file's stream has numbers that no table has.")
        digits[i] = int(text) if text else None
    return digits
