"""NumPy files: NPY and NPZ as frames.

In: a path. Out: a frame with columns x0, x1, ... The shapes that a file claims are checked against its size before
memory is allocated.
"""

import math
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.lib import format as npy
from numpy.typing import NDArray

from rgld.exceptions import TableError

from ._memory import require_memory

ALWAYS_UNPACKED_BYTES = 2**30
"""A compressed file of at most this size when unpacked is always accepted."""
MAX_RATIO = 1000
"""A larger one may be at most this many times its packed size: rows that differ do not compress better."""
NUMPY_COMPRESSIONS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""Compressions that Python unpacks only as far as asked. It unpacks others as a whole: 80 MB to read one header."""


def check_inflation(packed: int, unpacked: int, shown: str) -> None:
    """Raise an error if a file grows too much when it is unpacked."""
    if unpacked > ALWAYS_UNPACKED_BYTES and unpacked > MAX_RATIO * packed:
        raise TableError(
            f"{shown} grows to more than {MAX_RATIO} times its size when unpacked: unpack it first if you trust it."
        )


def check_npz(path: Path, shown: str) -> None:
    """Raise an error if an NPZ file is compressed in a way that NumPy does not write."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    if not {member.compress_type for member in members} <= NUMPY_COMPRESSIONS:
        raise TableError(f"{shown} is compressed in a way that NumPy does not write: use numpy.savez_compressed.")


def read_npy(path: Path, shown: str, allowed: int) -> pl.DataFrame:
    """Return the numeric array of an NPY file, which must have rows and columns; `allowed` bytes of memory."""
    with open(path, "rb") as file:
        claim = _claim(file, path.stat().st_size)
        if not claim.is_matrix:
            raise TableError(
                f"{shown} holds {claim.dtype} {claim.shape}: expected a numeric array with rows and columns."
            )
        require_memory(claim.size, allowed, shown)
        file.seek(0)
        return pl.DataFrame(_columns(_load(file, claim)))


def read_npz(path: Path, shown: str, allowed: int) -> pl.DataFrame:
    """Return the array X of an NPZ file; one-dimensional arrays of the same length are further columns."""
    with zipfile.ZipFile(path) as archive:
        infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        claims = {}
        for name, info in infos.items():
            with archive.open(info) as member:
                claims[name] = _claim(member, info.file_size)
        X = claims.get("X")
        if X is None or not (X.is_matrix or X.dtype.hasobject):
            what = ", ".join(f"{name} {claim.shape}" for name, claim in claims.items())
            raise TableError(f"{shown} holds {what}: expected a numeric array X with rows and columns.")
        vectors = [name for name, claim in claims.items() if claim.shape == X.shape[:1] and not claim.dtype.hasobject]
        unpacked = sum(infos[name].file_size for name in ("X", *vectors))
        check_inflation(sum(infos[name].compress_size for name in ("X", *vectors)), unpacked, shown)
        require_memory(unpacked, allowed, shown)

        def load(name: str) -> NDArray[Any]:
            with archive.open(infos[name]) as member:
                return _load(member, claims[name])

        columns = _columns(load("X"))
        return pl.DataFrame(columns | {name: load(name) for name in vectors if name not in columns})


@dataclass(frozen=True)
class _Claim:
    """What a file claims about an array in it, and how many bytes the file has for it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    size: int

    @property
    def is_matrix(self) -> bool:
        return len(self.shape) == 2 and self.dtype.kind in "biuf"


def _claim(file: IO[bytes], size: int) -> _Claim:
    version = npy.read_magic(file)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"its arrays are of NPY version {version[0]}.{version[1]}, expected 1.0 or 2.0")
    shape, _, dtype = readers[version](file)
    return _Claim(shape, dtype, size - file.tell())


def _load(file: IO[bytes], claim: _Claim) -> NDArray[Any]:
    if claim.dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read from files")
    if min(claim.shape, default=0) < 0 or math.prod(claim.shape) * claim.dtype.itemsize > claim.size:
        raise ValueError(f"it claims an array {claim.shape} of {claim.dtype}, but holds fewer bytes")
    array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return array


def _columns(X: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {f"x{j}": X[:, j] for j in range(X.shape[1])}
