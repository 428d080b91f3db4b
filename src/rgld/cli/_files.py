"""Table files: what a path holds, and its rows as frames.

In: a path, or `-` for standard input. Out: a `TableFile`, read whole or in batches. The content decides what a file is,
not its name. Files come from strangers: what cannot be read is one sentence, and nothing in a file is executed.
"""

import codecs
import csv
import gzip
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rgld.exceptions import ParameterError, TableError

HEAD_BYTES = 2**18
HEAD_LINES = 200
DELIMITERS = (",", ";", "\t", "|")
BATCH_CELLS = 4_000_000
"""Cells read at once when a file goes through in batches."""
COPY_BYTES = 2**24

MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz", b"\x1f\x8b": "gzip"}
BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


@dataclass(frozen=True)
class ReadOptions:
    """What a user says about a file instead of leaving it to be found out."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    has_header: bool = True


@dataclass(frozen=True)
class TableFile:
    """A file whose format is known and whose text, if it is one, is UTF-8."""

    path: Path
    shown: str
    """The name a user knows it by."""
    kind: str
    """"csv", "parquet", "arrow" or "npz"."""
    csv: dict[str, Any] = field(default_factory=dict)
    """How polars reads it."""
    notes: tuple[str, ...] = ()
    """What was found out about it."""

    def read(self) -> pl.DataFrame:
        """Return the whole table."""
        with _in_words(self):
            if self.kind == "npz":
                return _read_npz(self.path, self.shown)
            frame = self._scan(None, None).collect()
        return _require_rows(frame, self.shown)

    def batches(self, names: Sequence[str] | None, numbers: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, a bounded number at a time, of the named columns or of all.

        `numbers` are the columns of a CSV file that hold numbers; the others are read as text, so that a value reads
        the same in every batch.
        """
        if self.kind == "npz":
            frame = self.read()
            yield frame if names is None else frame.select(names)
            return
        with _in_words(self):
            lazy = self._scan(numbers, names)
            width = len(lazy.collect_schema())
            step = max(1000, BATCH_CELLS // max(1, width))
            some = False
            for frame in lazy.collect_batches(chunk_size=step):
                some = some or len(frame) > 0
                if len(frame):
                    yield frame
        if not some:
            raise TableError(f"{self.shown} has column names but no rows: expected at least one.")

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        with _in_words(self):
            if self.kind == "npz":
                return self.read().columns
            return self._scan({}, None).collect_schema().names()

    def _scan(self, numbers: Mapping[str, Any] | None, names: Sequence[str] | None) -> pl.LazyFrame:
        if self.kind == "parquet":
            lazy = pl.scan_parquet(self.path, glob=False)
        elif self.kind == "arrow":
            lazy = pl.scan_ipc(self.path, glob=False)
        elif numbers is None:
            lazy = pl.scan_csv(self.path, infer_schema_length=None, glob=False, **self.csv)
        else:
            known = set(pl.scan_csv(self.path, infer_schema=False, glob=False, **self.csv).collect_schema())
            overrides = {name: kind for name, kind in numbers.items() if name in known}
            lazy = pl.scan_csv(self.path, infer_schema=False, schema_overrides=overrides, glob=False, **self.csv)
        return lazy if names is None else lazy.select(names)


@contextmanager
def open_table(path: str, options: ReadOptions) -> Iterator[TableFile]:
    """Find out what a file is; what must be copied first (standard input, other encodings) is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="rgld-") as folder:
        shown = "standard input" if path == "-" else path
        source = _from_stdin(Path(folder)) if path == "-" else Path(path)
        if source.is_dir():
            raise TableError(f"{shown} is a folder, expected a file: name a CSV, Parquet, Arrow or NPZ file.")
        if not source.exists():
            raise TableError(f"There is no file {shown}: check the path.")
        head = _head(source)
        kind = next((name for magic, name in MAGIC.items() if head.startswith(magic)), "csv")
        if kind == "gzip":
            source = _unzipped(source, Path(folder), shown)
            head = _head(source)
            kind = "csv"
        if not head:
            raise TableError(f"{shown} is empty: expected a table.")
        if kind == "npz":
            _check_npz(source, shown)
        file = TableFile(source, shown, kind)
        yield _as_csv(file, head, options, Path(folder)) if kind == "csv" else file


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(HEAD_BYTES)


def _from_stdin(folder: Path) -> Path:
    if sys.stdin is None or sys.stdin.isatty():
        raise ParameterError("Expected a table on standard input, got a terminal: pipe a file into the command.")
    path = folder / "stdin"
    with open(path, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file, COPY_BYTES)
    return path


def _unzipped(path: Path, folder: Path, shown: str) -> Path:
    unzipped = folder / "unzipped"
    try:
        with gzip.open(path) as source, open(unzipped, "wb") as file:
            shutil.copyfileobj(source, file, COPY_BYTES)
    except (OSError, EOFError) as error:
        raise TableError(f"{shown} is a damaged gzip file ({error}): compress it again.") from error
    return unzipped


def _as_csv(file: TableFile, head: bytes, options: ReadOptions, folder: Path) -> TableFile:
    """Return the file as UTF-8 text, with its delimiter."""
    is_utf16 = (options.encoding or "").lower().startswith("utf-16") or _mark(head) == "utf-16"
    if b"\0" in head and not is_utf16:
        raise TableError(f"{file.shown} is not a table: expected CSV, Parquet, Arrow or NPZ, got binary data.")
    encoding = options.encoding or _mark(head) or _encoding(file.path)
    notes = []
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig", "ascii"):
        file = replace(file, path=_recoded(file, encoding, folder))
        head = _head(file.path)
        if options.encoding is None:
            notes.append(f"read as {encoding}: it is not UTF-8")
    text = head.decode("utf-8-sig", errors="replace")
    lines = text.splitlines()[:HEAD_LINES]
    lines = lines[:-1] if len(head) == HEAD_BYTES and len(lines) > 1 else lines
    delimiter = options.delimiter if options.delimiter is not None else _delimiter(lines)
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(delimiter.encode()) != 1:
        raise ParameterError(f"--delimiter must be one character, got {delimiter!r} instead.")
    if options.has_header:
        _check_header(lines, delimiter, file.shown)
    if options.decimal not in (None, ".", ","):
        raise ParameterError(f"--decimal must be '.' or ',', got {options.decimal!r} instead.")
    comma = options.decimal == "," if options.decimal else _has_decimal_commas(lines, delimiter)
    if options.delimiter is None and delimiter != ",":
        notes.append(f"columns are separated by {'tabs' if delimiter == chr(9) else repr(delimiter)}")
    if comma and options.decimal is None:
        notes.append("numbers have decimal commas")
    settings = {"separator": delimiter, "decimal_comma": comma, "has_header": options.has_header}
    return replace(file, csv=settings, notes=tuple(notes))


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


def _recoded(file: TableFile, encoding: str, folder: Path) -> Path:
    path = folder / "utf8"
    try:
        with (
            open(file.path, encoding=encoding, newline="") as source,
            open(path, "w", encoding="utf-8", newline="") as out,
        ):
            shutil.copyfileobj(source, out, COPY_BYTES)
    except LookupError:
        raise ParameterError(f"--encoding {encoding!r} is not known: try utf-8, windows-1252 or utf-16.") from None
    except UnicodeError as error:
        raise TableError(f"{file.shown} is not {encoding} ({error}): pass its --encoding.") from error
    return path


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that splits most lines alike, into the most fields."""
    best, best_score = ",", (0.0, 0)
    for delimiter in DELIMITERS:
        counts = [len(row) for row in _rows(lines, delimiter) if row]
        if not counts:
            continue
        common = max(set(counts), key=counts.count)
        score = (round(counts.count(common) / len(counts), 1), common)
        if common > 1 and score > best_score:
            best, best_score = delimiter, score
    return best


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return []


def _check_header(lines: Sequence[str], delimiter: str, shown: str) -> None:
    rows = _rows(lines[:50], delimiter)
    names = rows[0] if rows else []
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableError(f"{shown} has column names that repeat, {repeated[:3]}: rename or drop them.")


_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+,\d+\s*")
_POINT_NUMBER = re.compile(r"\s*[+-]?\d+\.\d+\s*")


def _has_decimal_commas(lines: Sequence[str], delimiter: str) -> bool:
    if delimiter == ",":
        return False
    cells = [cell for row in _rows(lines[1:], delimiter) for cell in row]
    return any(map(_COMMA_NUMBER.fullmatch, cells)) and not any(map(_POINT_NUMBER.fullmatch, cells))


def _check_npz(path: Path, shown: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        raise TableError(f"{shown} is a damaged zip file: expected NPZ.") from None
    if any(name.startswith("xl/") for name in names):
        raise TableError(f"{shown} is an Excel workbook: save the sheet as CSV first.")
    if not names or not all(name.endswith(".npy") for name in names):
        raise TableError(f"{shown} is a zip archive, expected a CSV, Parquet, Arrow or NPZ file: unpack it first.")


def _read_npz(path: Path, shown: str) -> pl.DataFrame:
    """Return array X of an NPZ file as columns x0, x1, ..., and the other arrays of its length as columns."""
    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    if "X" not in found or found["X"].ndim != 2 or found["X"].dtype.kind not in "biuf":
        what = ", ".join(f"{name} {array.shape}" for name, array in found.items())
        raise TableError(f"{shown} holds {what}: expected a numeric array X with rows and columns.")
    X = found.pop("X")
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    columns |= {name: array for name, array in found.items() if array.shape == (len(X),) and name not in columns}
    return _require_rows(pl.DataFrame(columns), shown)


def _require_rows(frame: pl.DataFrame, shown: str) -> pl.DataFrame:
    if not len(frame):
        raise TableError(f"{shown} has column names but no rows: expected at least one.")
    return frame


@contextmanager
def _in_words(file: TableFile) -> Iterator[None]:
    """Turn what polars and NumPy say about a broken file into one sentence."""
    try:
        yield
    except pl.exceptions.ColumnNotFoundError as error:
        raise TableError(f"{file.shown} has no such column: {_first_line(error)}.") from error
    except (pl.exceptions.PolarsError, ValueError, zipfile.BadZipFile, EOFError, OSError) as error:
        if isinstance(error, (TableError, ParameterError)):
            raise
        ragged = _ragged_line(file) if file.kind == "csv" else ""
        reason = ragged or f"it cannot be read as {file.kind.upper()}: {_first_line(error)}"
        raise TableError(f"{file.shown}: {reason}.") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".:")[:200]


def _ragged_line(file: TableFile) -> str:
    """Return where a line has another number of fields than the first, or ""."""
    with open(file.path, encoding="utf-8-sig", errors="replace", newline="") as text:
        reader = csv.reader(text, delimiter=file.csv["separator"])
        try:
            width = len(next(reader, []))
            for row in reader:
                if len(row) > width:
                    return (
                        f"line {reader.line_num} has {len(row)} fields, expected {width} as in the first line; "
                        "fix the line, or pass another --delimiter"
                    )
        except csv.Error as error:
            return f"line {reader.line_num} cannot be read ({error})"
    return ""
