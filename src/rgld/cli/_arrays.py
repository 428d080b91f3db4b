"""NumPy files: NPY and NPZ as frames.

In: a path. Out: a frame with columns x0, x1, ... What a file claims is checked against its size before memory is taken.
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

MOST_INFLATED = 2**30
"""Bytes that a compressed file may always have once it is unpacked."""
MOST_RATIO = 1000
"""Beyond them, how many times its own size: rows that differ do not compress so well."""


def check_inflation(packed: int, unpacked: int, shown: str) -> None:
    """Refuse a file that grows beyond reason when it is unpacked."""
    if unpacked > MOST_INFLATED and unpacked > MOST_RATIO * packed:
        raise TableError(
            f"{shown} grows to more than {MOST_RATIO} times its size when it is unpacked: unpack it first if you "
            "trust it."
        )


def check_npz(path: Path, shown: str) -> None:
    """Refuse a zip file that is not NPZ."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        raise TableError(f"{shown} is a damaged zip file: expected NPZ.") from None
    if any(name.startswith("xl/") for name in names):
        raise TableError(f"{shown} is an Excel workbook: save the sheet as CSV first.")
    if not names or not all(name.endswith(".npy") for name in names):
        raise TableError(f"{shown} is a zip archive, expected a CSV, Parquet, Arrow or NPZ file: unpack it first.")


def read_npy(path: Path, shown: str) -> pl.DataFrame:
    """Return the numeric array of an NPY file, of rows and columns."""
    with open(path, "rb") as file:
        claim = _claim(file, path.stat().st_size)
        if not claim.is_matrix:
            raise TableError(
                f"{shown} holds {claim.dtype} {claim.shape}: expected a numeric array with rows and columns."
            )
        file.seek(0)
        return pl.DataFrame(_columns(_load(file, claim)))


def read_npz(path: Path, shown: str) -> pl.DataFrame:
    """Return array X of an NPZ file, and the one-dimensional arrays of its length as further columns."""
    with zipfile.ZipFile(path) as archive:
        claims = {}
        for info in archive.infolist():
            with archive.open(info) as member:
                claims[info.filename.removesuffix(".npy")] = _claim(member, info.file_size)

        def load(name: str) -> NDArray[Any]:
            info = archive.getinfo(f"{name}.npy")
            check_inflation(info.compress_size, info.file_size, shown)
            with archive.open(info) as member:
                return _load(member, claims[name])

        X = claims.get("X")
        if X is None or not (X.is_matrix or X.dtype.hasobject):
            what = ", ".join(f"{name} {claim.shape}" for name, claim in claims.items())
            raise TableError(f"{shown} holds {what}: expected a numeric array X with rows and columns.")
        columns = _columns(load("X"))
        for name, claim in claims.items():
            if claim.shape == X.shape[:1] and not claim.dtype.hasobject and name not in columns:
                columns[name] = load(name)
        return pl.DataFrame(columns)


@dataclass(frozen=True)
class _Claim:
    """What a file says about an array in it, and how many bytes it has for that."""

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
        raise ValueError(f"it claims an array {claim.shape} of {claim.dtype}, which is more than it holds")
    array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return array


def _columns(X: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {f"x{j}": X[:, j] for j in range(X.shape[1])}
