"""Copies of a file in a temporary folder: of pipes, which are read once only, and of other encodings.

In: a path. Out: a file on disk that can be read several times, and is UTF-8 if it is text.
"""

import codecs
import errno
import shutil
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from rgld.exceptions import ParameterError, TableError

COPY_BYTES = 2**24
"""Bytes copied at once."""
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says of a disk, a quota or a file that can hold no more."""
BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order marks at the start of a file, and the encoding each stands for. The mark of UTF-32 begins with that of
UTF-16: it comes first."""


def seekable(path: str, shown: str, folder: Path) -> Path:
    """Return the file itself if it is a regular one, else a copy of what the pipe delivers."""
    copy = folder / "copy"
    if path == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ParameterError("Expected a table on standard input, got a terminal: pipe a file into the command.")
        return _copied(sys.stdin.buffer, copy)
    source = Path(path)
    if not source.exists():
        raise TableError(f"There is no file {shown}: check the path.")
    mode = source.stat().st_mode
    if stat.S_ISREG(mode):
        return source
    if not stat.S_ISFIFO(mode):
        raise TableError(f"{shown} is a device, expected a file: name a CSV, Parquet, Arrow or NPZ file.")
    with open(source, "rb") as pipe:
        return _copied(pipe, copy)


def _copied(source: IO[bytes], path: Path) -> Path:
    if hasattr(signal, "siginterrupt"):  # with polars' signal handler, Ctrl-C would not end the wait for a silent pipe
        signal.siginterrupt(signal.SIGINT, True)
    with in_folder(path.parent), open(path, "wb") as file:
        shutil.copyfileobj(source, file, COPY_BYTES)
    return path


@contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Say which folder is full, if it is."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise TableError(
            f"The temporary folder {folder} is full: free some space, or set TMPDIR to a folder on another disk."
        ) from error


def marked_encoding(head: bytes) -> str | None:
    """Return the encoding that the byte-order mark at the start of a file stands for; None without a mark."""
    return next((name for mark, name in BOMS.items() if head.startswith(mark)), None)


def is_wide(encoding: str) -> bool:
    """Return whether an encoding has more than one byte for each character, so that a text file has zero bytes."""
    try:
        return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))
    except LookupError:
        return False


def likely_encoding(path: Path) -> str:
    """Return UTF-8 if the whole file is valid UTF-8, else Windows-1252, which most other files are in."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(path, "rb") as file:
        try:
            while chunk := file.read(COPY_BYTES):
                if not chunk.isascii() or decoder.getstate()[0]:
                    decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "windows-1252"
    return "utf-8"


def as_utf8(path: Path, shown: str, encoding: str, newline: str | None, folder: Path) -> Path:
    """Return a text file in UTF-8; `newline` as in `open`."""
    target = folder / "utf8"
    try:
        with (
            in_folder(folder),
            open(path, encoding=encoding, newline=newline) as source,
            open(target, "w", encoding="utf-8", newline="") as out,
        ):
            shutil.copyfileobj(source, out, COPY_BYTES)
    except LookupError:
        raise ParameterError(f"--encoding {encoding!r} is not known: try utf-8, windows-1252 or utf-16.") from None
    except UnicodeError as error:
        raise TableError(f"{shown} is not {encoding} ({error}): pass its --encoding.") from error
    return target
