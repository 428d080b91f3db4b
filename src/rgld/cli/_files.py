"""Table files: what a path holds, and its rows as frames.

In: a path, or `-` for standard input. Out: a `TableFile`, read whole or in batches. The content decides what a file is,
not its name. Files come from strangers: what cannot be read is one sentence, and nothing in a file is executed.
"""

import codecs
import gzip
import re
import shutil
import signal
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import polars as pl

from rgld.exceptions import ParameterError, TableError

from . import _arrays, _csvread
from ._csv import Dialect, ReadOptions, sniff

__all__ = ["ReadOptions", "TableFile", "open_table"]

HEAD_BYTES = 2**18
BATCH_CELLS = 4_000_000
"""Cells read at once when a file goes through in batches."""
COPY_BYTES = 2**24

MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "stream",
    b"PK\x03\x04": "npz",
    b"\x93NUMPY": "npy",
    b"\x1f\x8b": "gzip",
}
UNPACK = "unpack it first"
EXPORT = "write the table to a CSV or Parquet file first"
FOREIGN = {
    b"\xfd7zXZ\0": ("an xz file", UNPACK),
    b"\x28\xb5\x2f\xfd": ("a zstd file", UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", UNPACK),
    b"SQLite format 3\0": ("an SQLite database", EXPORT),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", EXPORT),
    b"FEA1": ("a Feather file of the first version", EXPORT),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "save the sheet as CSV first"),
    b"%PDF-": ("a PDF document", EXPORT),
    **{b"BZh%d1AY&SY" % level: ("a bzip2 file", UNPACK) for level in range(1, 10)},
}
"""Files that are sometimes taken for tables: what they are, and what to do."""
JSON = re.compile(rb'\s*(\{\s*("|\})|\[\s*[\[{"])')
HTML = re.compile(rb"\s*<(!doctype|html|\?xml)", re.IGNORECASE)
BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
WHOLE: dict[str, Callable[[Path, str], pl.DataFrame]] = {
    "npz": _arrays.read_npz,
    "npy": _arrays.read_npy,
    "stream": lambda path, shown: pl.read_ipc_stream(path),
}
"""Formats that are read at once."""


class NotANumberError(TableError):
    """A cell of a CSV column that was to be read as numbers is none: the file may be read as text."""


@dataclass(frozen=True)
class TableFile:
    """A file whose format is known and whose text, if it is one, is UTF-8."""

    path: Path
    shown: str
    """The name a user knows it by."""
    kind: str
    """"csv", "parquet", "arrow", "stream" (of Arrow), "npz" or "npy"."""
    csv: Dialect | None = None
    """How it is written, if it is CSV."""
    notes: tuple[str, ...] = ()
    """What was found out about it."""

    def read(self) -> pl.DataFrame:
        """Return the whole table."""
        with _in_words(self):
            if self.kind in WHOLE:
                frame = WHOLE[self.kind](self.path, self.shown)
            elif self.csv:
                frame = _csvread.read(self.path, self.csv)
            else:
                frame = self._scan().collect()
        self._require_rows(len(frame))
        return frame

    def batches(
        self, names: Sequence[str] | None, numbers: Mapping[str, Any], *, may_be_empty: bool = False
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, a bounded number at a time, of the named columns or of all.

        `numbers` are the columns of a CSV file that hold numbers; the others are read as text, so that a value reads
        the same in every batch. A file without rows is an error unless it may be one of many.
        """
        if self.kind in WHOLE:
            frame = self.read()
            yield frame if names is None else frame.select(names)
            return
        rows = 0
        with _in_words(self):
            for frame in self._batches(names, numbers):
                rows += len(frame)
                if len(frame):
                    yield frame
        if not may_be_empty:
            self._require_rows(rows)

    def n_cells(self) -> int:
        """Return the size of a table that is not CSV: what it says itself, where it does."""
        with _in_words(self):
            if self.kind in WHOLE:
                return self.path.stat().st_size // 8
            lazy = self._scan()
            return int(lazy.select(pl.len()).collect().item()) * len(lazy.collect_schema())

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        if self.kind in WHOLE:
            return self.read().columns
        with _in_words(self):
            return _csvread.columns(self.path, self.csv) if self.csv else self._scan().collect_schema().names()

    def _batches(self, names: Sequence[str] | None, numbers: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
        if self.csv:
            width = len(self.columns()) if names is None or self.csv.empty_rows else len(names)
            return _csvread.batches(self.path, self.csv, names, numbers, _step(width))
        lazy = self._scan() if names is None else self._scan().select(names)
        return lazy.collect_batches(chunk_size=_step(len(lazy.collect_schema())))

    def _scan(self) -> pl.LazyFrame:
        return (pl.scan_parquet if self.kind == "parquet" else pl.scan_ipc)(self.path, glob=False)

    def _require_rows(self, rows: int) -> None:
        if rows:
            return
        if self.csv and (fault := _csvread.fault(self.path, self.csv)):
            raise TableError(f"{self.shown}: {fault}.")
        empty = self.csv is not None and self.csv.empty_rows > 0
        why = "it has no value in any of its lines" if empty else "expected at least one"
        raise TableError(f"{self.shown} has column names but no rows: {why}.")


def _step(width: int) -> int:
    return max(1000, BATCH_CELLS // max(1, width))


@contextmanager
def open_table(path: str, options: ReadOptions) -> Iterator[TableFile]:
    """Find out what a file is; what must be copied first (pipes, other encodings) is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="rgld-") as folder:
        shown = "standard input" if path == "-" else path
        source = _seekable(path, shown, Path(folder))
        kind, head = _kind(source, shown)
        if kind == "gzip":
            source = _unzipped(source, Path(folder), shown)
            kind, head = _kind(source, shown)
            if kind == "gzip":
                raise TableError(f"{shown} is a gzip file in a gzip file: {UNPACK}.")
        if kind == "npz":
            _arrays.check_npz(source, shown)
        file = TableFile(source, shown, kind)
        yield _as_csv(file, head, options, Path(folder)) if kind == "csv" else file


def _seekable(path: str, shown: str, folder: Path) -> Path:
    """Return a file on disk: pipes can be read once only, and are copied."""
    copy = folder / "copy"
    if path == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise ParameterError("Expected a table on standard input, got a terminal: pipe a file into the command.")
        return _copied(sys.stdin.buffer, copy)
    source = Path(path)
    if source.is_dir():
        raise TableError(f"{shown} is a folder, expected a file: name a CSV, Parquet, Arrow or NPZ file.")
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
    if hasattr(signal, "siginterrupt"):  # polars' handler would let a pipe that says nothing wait on through Ctrl-C
        signal.siginterrupt(signal.SIGINT, True)
    with open(path, "wb") as file:
        shutil.copyfileobj(source, file, COPY_BYTES)
    return path


def _kind(path: Path, shown: str) -> tuple[str, bytes]:
    """Return what a file is by its first bytes, and these; what is known not to be a table is an error."""
    head = _head(path)
    if not head:
        raise TableError(f"{shown} is empty: expected a table.")
    kind = next((name for magic, name in MAGIC.items() if _starts(head, magic)), "csv")
    what, cure = next((words for magic, words in FOREIGN.items() if _starts(head, magic)), ("", ""))
    text = head.removeprefix(codecs.BOM_UTF8)
    if JSON.match(text):
        lines = text.splitlines()
        many = len(lines) > 1 and all(line.startswith(b"{") and line.endswith(b"}") for line in lines[:2])
        what, cure = "JSON lines" if many else "JSON", EXPORT
    elif HTML.match(text):
        what, cure = "HTML or XML", EXPORT
    if what:
        raise TableError(f"{shown} is {what}, expected CSV, Parquet, Arrow or NPZ: {cure}.")
    return kind, head


def _starts(head: bytes, magic: bytes) -> bool:
    """Tell whether a file begins with these bytes; if a column may be called so, as PAR1, only if it is not text."""
    return head.startswith(magic) and (not magic.isalnum() or b"\0" in head)


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(HEAD_BYTES)


def _unzipped(path: Path, folder: Path, shown: str) -> Path:
    unzipped = folder / "unzipped"
    packed, written = path.stat().st_size, 0
    try:
        with gzip.open(path) as source, open(unzipped, "wb") as file:
            while chunk := source.read(COPY_BYTES):
                written += file.write(chunk)
                _arrays.check_inflation(packed, written, shown)
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{shown} is a damaged gzip file ({error}): compress it again.") from error
    return unzipped


def _as_csv(file: TableFile, head: bytes, options: ReadOptions, folder: Path) -> TableFile:
    """Return the file as UTF-8 text, with how it is written."""
    is_utf16 = (options.encoding or "").lower().startswith("utf-16") or _mark(head) == "utf-16"
    if b"\0" in head and not is_utf16:
        raise TableError(f"{file.shown} is not a table: expected CSV, Parquet, Arrow or NPZ, got binary data.")
    encoding = options.encoding or _mark(head) or _encoding(file.path)
    is_utf8 = encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig", "ascii")
    notes: tuple[str, ...] = () if is_utf8 or options.encoding else (f"read as {encoding}: it is not UTF-8",)
    # Lines that end in carriage returns alone, as on old Macintoshes, are unknown to polars.
    old_lines = b"\r" in head and b"\n" not in head
    if not is_utf8 or old_lines:
        file = replace(file, path=_recoded(file, encoding, None if old_lines else "", folder))
    dialect = sniff(file.path, file.shown, options)
    file = replace(file, csv=dialect)
    with _in_words(file):
        empty = _csvread.count_empty_rows(file.path, dialect, BATCH_CELLS)
    if empty:
        notes += (f"{empty:,} empty {'line' if empty == 1 else 'lines'} skipped",)
    return replace(file, csv=replace(dialect, empty_rows=empty), notes=(*notes, *dialect.notes))


def _mark(head: bytes) -> str | None:
    """Return the encoding that a file names in its first bytes."""
    return next((name for mark, name in BOMS.items() if head.startswith(mark)), None)


def _encoding(path: Path) -> str:
    """Return UTF-8 if all of a file is, else Windows-1252, which most other files are in."""
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


def _recoded(file: TableFile, encoding: str, newline: str | None, folder: Path) -> Path:
    path = folder / "utf8"
    try:
        with (
            open(file.path, encoding=encoding, newline=newline) as source,
            open(path, "w", encoding="utf-8", newline="") as out,
        ):
            shutil.copyfileobj(source, out, COPY_BYTES)
    except LookupError:
        raise ParameterError(f"--encoding {encoding!r} is not known: try utf-8, windows-1252 or utf-16.") from None
    except UnicodeError as error:
        raise TableError(f"{file.shown} is not {encoding} ({error}): pass its --encoding.") from error
    return path


@contextmanager
def _in_words(file: TableFile) -> Iterator[None]:
    """Turn what polars and NumPy say about a broken file into one sentence."""
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        raise TableError(f"{file.shown} has no such column: {_first_line(error)}.") from error
    except MemoryError as error:
        raise TableError(f"{file.shown} does not fit into memory: take fewer rows or columns.") from error
    except (pl.exceptions.PolarsError, ValueError, zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        if isinstance(error, (TableError, ParameterError)):
            raise
        if file.csv and "`f64`" in str(error):
            raise NotANumberError(f"{file.shown}: {_first_line(error)}.") from error
        fault = _csvread.fault(file.path, file.csv) if file.csv else ""
        reason = fault or f"it cannot be read as {file.kind.upper()}: {_first_line(error)}"
        raise TableError(f"{file.shown}: {reason}.") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".:")[:200]
