"""A file of named arrays and strings: the safetensors format, with a checksum.

In: arrays and a dictionary of strings. Out: a file that holds no code and that any safetensors reader opens.
The format: the length of the header (8 bytes, little-endian), a JSON header, the arrays back to back. The last array,
"sha256", is the digest of every byte before it.

Nothing in a file is trusted: types, shapes and offsets are checked against the length of the file before an array is
made.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..exceptions import ModelFileError
from .atomic import written_beside

MAX_FILE_BYTES = 2 * 2**30
MAX_HEADER_BYTES = 8 * 2**20
"""Far more than models take: one of 10,000 columns takes some 30 MB, its column names less than 1 MB."""
MAX_DIMENSIONS = 8

DIGEST = "sha256"
DIGEST_BYTES = 32
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class ArraySpec(NamedTuple):
    """The type and shape of an array."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


DIGEST_SPEC = ArraySpec(DTYPES["U8"], (DIGEST_BYTES,))

Arrays = dict[str, NDArray[Any]]
Specs = Mapping[str, ArraySpec]


def specs_of(arrays: Arrays) -> Specs:
    """Return the types and shapes of the arrays of a file, with that of the checksum."""
    specs = {name: ArraySpec(array.dtype.newbyteorder("<"), array.shape) for name, array in arrays.items()}
    return {**specs, DIGEST: DIGEST_SPEC}


def write_tensors(
    path: str | os.PathLike[str], metadata: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write the file; if that fails, an old file stays as it was."""
    content = _encoded(metadata, arrays)
    with written_beside(path) as beside:
        beside.write_bytes(content)


def _encoded(metadata: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    chunks = []
    start = 0
    for name, array in {**arrays, DIGEST: np.zeros(DIGEST_BYTES, np.uint8)}.items():
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        stop = start + little.nbytes
        header[name] = {"dtype": DTYPE_NAMES[little.dtype], "shape": list(little.shape), "data_offsets": [start, stop]}
        chunks.append(little.tobytes())
        start = stop
    encoded = json.dumps(header, separators=(",", ":")).encode()
    if len(encoded) > MAX_HEADER_BYTES:
        raise ModelFileError(
            f"The names and values of this table's columns take {len(encoded):,} bytes, a model file holds at most "
            f"{MAX_HEADER_BYTES:,}: leave out some columns, such as those with many or long values."
        )
    encoded += b" " * (-len(encoded) % 8)  # arrays start at a multiple of 8, as the format recommends
    content = len(encoded).to_bytes(8, "little") + encoded + b"".join(chunks[:-1])
    return content + hashlib.sha256(content).digest()


@dataclass(frozen=True)
class TensorReader:
    """A file whose header has been read and checked; its arrays have not been."""

    file: BinaryIO
    head: bytes
    metadata: Mapping[str, str]
    specs: Specs
    data_size: int

    def read(self) -> Arrays:
        """Return the arrays, if the checksum is right."""
        data = _read_exactly(self.file, self.data_size)
        digest = hashlib.sha256(self.head)
        digest.update(memoryview(data)[:-DIGEST_BYTES])
        if digest.digest() != data[-DIGEST_BYTES:]:
            raise ModelFileError("The model file is damaged: its checksum does not match its content.")
        arrays: Arrays = {}
        offset = 0
        for name, (dtype, shape) in self.specs.items():
            count = math.prod(shape)
            arrays[name] = np.frombuffer(data, dtype, count, offset).reshape(shape).astype(dtype.newbyteorder("="))
            offset += count * dtype.itemsize
        return arrays


@contextmanager
def open_tensors(path: str | os.PathLike[str]) -> Iterator[TensorReader]:
    """Open a file and check its header against its length; anything but a file of this layout is a ModelFileError."""
    with open(_regular_file(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MAX_FILE_BYTES:
            raise ModelFileError(f"The model file has {size} bytes, expected at most {MAX_FILE_BYTES}.")
        length = _read_exactly(file, 8)
        header = _read_exactly(file, _bounded_length(length, size, path))
        data_size = size - 8 - len(header)
        metadata, specs = _parse_header(header, data_size)
        yield TensorReader(file, length + header, metadata, specs, data_size)


def _regular_file(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the path if it leads to an ordinary file: opening a pipe or a device could wait for ever."""
    try:
        mode = os.stat(path).st_mode
    except ValueError:
        raise ModelFileError(f"Expected a model file, got a path with a null character: {os.fspath(path)!r}.") from None
    if not stat.S_ISREG(mode):
        raise ModelFileError(f"Expected a model file, got something that is not an ordinary file: {os.fspath(path)!r}.")
    return path


def _read_exactly(file: BinaryIO, n_bytes: int) -> bytes:
    data = file.read(n_bytes)
    if len(data) != n_bytes:
        raise ModelFileError("The model file is truncated.")
    return data


def _bounded_length(length_bytes: bytes, size: int, path: str | os.PathLike[str]) -> int:
    length = int.from_bytes(length_bytes, "little")
    if length > min(MAX_HEADER_BYTES, size - 8 - DIGEST_BYTES):
        raise ModelFileError(
            f"{os.fspath(path)!r} is not a model file, or it is truncated: expected a file of `rgld fit` or `save`."
        )
    return length


def _parse_header(content: bytes, data_size: int) -> tuple[Mapping[str, str], Specs]:
    header = parse_json(content)
    if not isinstance(header, dict):
        raise ModelFileError("The model file's header is not an object.")
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ModelFileError("The model file's metadata is not a dictionary of strings.")
    specs: dict[str, ArraySpec] = {}
    start = 0
    for name, entry in header.items():
        specs[name], start = _parse_entry(name, entry, start)
    if start != data_size:
        raise ModelFileError(f"The model file holds {data_size} bytes of arrays, its header describes {start}.")
    if list(specs)[-1:] != [DIGEST] or specs[DIGEST] != DIGEST_SPEC:
        raise ModelFileError("The model file does not end with its checksum.")
    return metadata, specs


def _parse_entry(name: str, entry: Any, start: int) -> tuple[ArraySpec, int]:
    """Return the array's type and shape, and where it ends; it must begin at `start`, where the one before it ends."""
    if (
        not isinstance(entry, dict)
        or set(entry) != {"dtype", "shape", "data_offsets"}
        or entry["dtype"] not in tuple(DTYPES)
    ):
        raise ModelFileError(f"The model file describes array {name[:40]!r} in a way this version does not know.")
    dtype, shape, offsets = DTYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
    if not (_are_lengths(shape) and _are_lengths(offsets)):
        raise ModelFileError(
            f"The model file gives array {name[:40]!r} a shape or offsets that are not lists of whole numbers."
        )
    stop = start + math.prod(shape) * dtype.itemsize
    if offsets != [start, stop]:
        raise ModelFileError(
            f"The model file gives array {name[:40]!r} the offsets {str(offsets)[:60]}, expected {[start, stop]}."
        )
    return ArraySpec(dtype, tuple(shape)), stop


def _are_lengths(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= MAX_DIMENSIONS
        and all(type(v) is int and 0 <= v <= MAX_FILE_BYTES for v in values)
    )


def parse_json(content: bytes | str) -> Any:
    """Parse JSON strictly: NaN, a repeated name and very deep nesting are errors."""
    try:
        return json.loads(content, parse_constant=_reject_constant, object_pairs_hook=_unique_names)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError("The model file's header is not valid JSON.") from error


def _reject_constant(name: str) -> None:
    raise ModelFileError(f"The model file's header holds {name}, expected finite numbers.")


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ModelFileError("The model file's header repeats a name.")
    return result
