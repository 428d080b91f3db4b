"""Packed files: gzip, zstd, and zip archives with one file in them.

In: a packed file. Out: its content in a temporary folder. Files come from strangers: how far a file may grow is
limited, and what it claims about its size does not count.
"""

import gzip
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from rgld.exceptions import ParameterError, TableError

from ._arrays import NUMPY_COMPRESSIONS, check_inflation
from ._copies import COPY_BYTES, in_folder
from ._kinds import UNPACK

MAX_ZSTD_WINDOW = 2**27
"""Bytes that a zstd file may make its reader keep: the limit of the `zstd` command."""
ZSTD_READ_BYTES = 2**10
"""Bytes that are unpacked at once: a block of four bytes can stand for 128 KiB."""
IGNORED_MEMBERS = ("__MACOSX/", ".DS_Store")
PACKED = ("gzip", "zstd", "zip")
"""Kinds of files that are unpacked first."""
_FAULTS = (gzip.BadGzipFile, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError)


def kind_of_zip(path: Path, shown: str) -> str:
    """Return what a zip archive is: "npz", "xlsx", or "zip" for one with a single file in it."""
    members = _members(path, shown)
    names = [member.filename for member in members]
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    if any(name.startswith("xl/") for name in names):
        return "xlsx"
    if len(names) != 1:
        raise TableError(f"{shown} is a zip archive of {len(names)} files, expected one table: {UNPACK}.")
    return "zip"


def _members(path: Path, shown: str) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError):
        raise TableError(f"{shown} is a damaged zip file: write it again.") from None
    return [m for m in members if not m.is_dir() and not m.filename.startswith(IGNORED_MEMBERS)]


def unpacked(path: Path, kind: str, folder: Path, shown: str) -> Path:
    """Return the content of a packed file."""
    target = folder / "unpacked"
    size, written = path.stat().st_size, 0
    with in_folder(folder), _OPENERS[kind](path, shown) as source, open(target, "wb") as file:
        while chunk := _read(source, kind, shown):
            written += file.write(chunk)
            check_inflation(size, written, shown)
    return target


def check_members(path: Path, shown: str) -> int:
    """Return how many bytes all members of a zip archive have when unpacked, counted and not as claimed; raise an error
    if they are too many for its size."""
    size, counted = path.stat().st_size, 0
    for member in _members(path, shown):
        with _zip_member(path, shown, member) as source:
            while chunk := _read(source, "zip", shown):
                counted += len(chunk)
                check_inflation(size, counted, shown)
    return counted


def _read(source: Any, kind: str, shown: str) -> bytes:
    try:
        content: bytes = source.read(COPY_BYTES)
        return content
    except Exception as error:
        if not isinstance(error, _FAULTS) and type(error).__name__ != "ZstdError":
            raise
        raise TableError(f"{shown} is a damaged {kind} file ({error}): compress it again.") from error


@contextmanager
def _gzip(path: Path, shown: str) -> Iterator[IO[bytes]]:
    with gzip.open(path) as source:
        yield source  # type: ignore[misc]


class _Zstd:
    """Reads a zstd file of one or several frames. It raises an error if the last frame is cut, unlike the reader of the
    package."""

    def __init__(self, packed: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise ParameterError("A zstd file needs the package zstandard: pip install 'rgld[cli]'.") from error
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
        self._packed = packed
        self._frame: Any = None

    def read(self, n_bytes: int) -> bytes:
        """Return the next bytes, at least one unless the file ends. A few may be more than `n_bytes`."""
        parts: list[bytes] = []
        n_read = 0
        while n_read < n_bytes:
            packed = self._packed.read(ZSTD_READ_BYTES)
            if not packed:
                if self._frame is not None:
                    raise EOFError("it ends within a frame")
                break
            while packed:
                self._frame = self._frame or self._decompressor.decompressobj()
                parts.append(self._frame.decompress(packed))
                n_read += len(parts[-1])
                packed = self._frame.unused_data if self._frame.eof else b""
                self._frame = None if self._frame.eof else self._frame
        return b"".join(parts)


@contextmanager
def _zstd(path: Path, shown: str) -> Iterator[_Zstd]:
    with open(path, "rb") as packed:
        yield _Zstd(packed)


@contextmanager
def _zip_member(path: Path, shown: str, member: zipfile.ZipInfo | None = None) -> Iterator[IO[bytes]]:
    member = member or _members(path, shown)[0]
    if member.flag_bits & 1:
        raise TableError(f"{shown} is encrypted: {UNPACK}.")
    if member.compress_type not in NUMPY_COMPRESSIONS:
        raise TableError(f"{shown} is compressed in a way that is not read: {UNPACK}.")
    with zipfile.ZipFile(path) as archive, archive.open(member) as source:
        yield source


_OPENERS: dict[str, Callable[[Path, str], Any]] = {"gzip": _gzip, "zstd": _zstd, "zip": _zip_member}
