"""Table files: a file as a table, read whole or in batches.

In: a path, or `-` for standard input. Out: a `TableFile`. The content decides what a file is, not its name. Files come
from strangers: a file that cannot be read gives one sentence, and nothing in a file is executed.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from rgld.exceptions import ParameterError, RGLDError, TableError

from . import _arrays, _csvread, _excel, _json
from ._addresses import is_database
from ._archives import PACKED, kind_of_zip, unpacked
from ._copies import as_utf8, is_wide, likely_encoding, marked_encoding, seekable
from ._csv import Dialect, sniff
from ._folders import files_of, partitions_of
from ._guard import DAMAGED, limit_memory, tells_of_memory, while_reading
from ._kinds import FORMATS, UNPACK, kind_of
from ._memory import allowed_bytes, require_memory
from ._options import Reading

BATCH_CELLS = 4_000_000
"""Cells of a batch."""
MIN_BATCH_ROWS = 1000
BYTES_PER_NUMBER = 8
BASE_BYTES = 2**27
"""Memory that a command takes for any table."""
FIT_BYTES_PER_CSV_BYTE = 8
FIT_BYTES_PER_NUMBER = 48
FIT_BYTES_PER_STRING = 240
"""Memory that a fit takes for each byte of a CSV file, or each cell: as read, as a number, and what is computed."""
WHOLE: dict[str, Callable[[Path, str, int], pl.DataFrame]] = {
    "npz": _arrays.read_npz,
    "npy": _arrays.read_npy,
    "stream": lambda path, shown, allowed: pl.read_ipc_stream(path),
    "jsonl": _json.read_json_lines,
}
"""Formats that are read at once, with their readers: of a path, its name and the bytes of memory allowed."""


class NotANumberError(TableError):
    """A CSV column that was to be read as numbers holds something else: read the file as text instead."""


@dataclass(frozen=True)
class TableFile:
    """A file whose format is known and whose text, if it is one, is UTF-8."""

    path: Path
    shown: str
    """The name that the user gave it."""
    kind: str
    """A kind of `_kinds`."""
    allowed: int
    """The bytes of memory that the command may use."""
    csv: Dialect | None = None
    """How it is written; None if it is not CSV."""
    notes: tuple[str, ...] = ()
    """What the user should know about how it is read."""
    partitions: Mapping[str, int | str | None] = field(default_factory=dict)
    """Columns that the names of its folders stand for, unless the file has them, with the value of all its rows."""
    frame: pl.DataFrame | None = None
    """The table, if it was read already."""

    @property
    def title(self) -> str:
        """A short name."""
        return Path(self.shown).name

    def read(self) -> pl.DataFrame:
        """Return the whole table."""
        return self._with_partitions(self._read(), None)

    def _read(self) -> pl.DataFrame:
        if self.kind in WHOLE or self.frame is not None:
            return self._whole
        with _in_words(self):
            if self.csv:
                frame = _csvread.read(self.path, self.csv)
            else:
                require_memory(self._least_bytes(), self.allowed, self.shown)
                frame = self._scan().collect()
        self._require_rows(len(frame))
        return frame

    @cached_property
    def _whole(self) -> pl.DataFrame:
        """The table of a format that is read at once."""
        if self.frame is not None:
            return self.frame
        with _in_words(self):
            frame = WHOLE[self.kind](self.path, self.shown, self.allowed)
        self._require_rows(len(frame))
        return frame

    def batches(
        self, names: Sequence[str] | None, number_columns: Mapping[str, Any], *, may_be_empty: bool = False
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, a bounded number at a time, of the named columns or of all.

        `number_columns` are the columns of a CSV file that hold numbers. The others are read as strings, so that a
        value is read in the same way in every batch. A file without rows is an error unless `may_be_empty`.
        """
        if self.kind in WHOLE or self.frame is not None:
            frame = self.read()
            yield frame if names is None else frame.select(names)
            return
        rows = 0
        own = names
        if self.partitions and names is not None:
            present = self._own_columns()
            own = [name for name in names if name in present]
        with _in_words(self):
            frames = self._batches(own, number_columns)
        while True:
            with _in_words(self):
                following = next(frames, None)
            if following is None:
                break
            rows += len(following)
            if len(following):
                yield self._with_partitions(following, names)
        if not may_be_empty:
            self._require_rows(rows)

    def fit_bytes(self) -> int:
        """Return about how much memory a fit on the whole table takes: measured factors, rounded up."""
        with _in_words(self):
            size = self.path.stat().st_size
            if self.csv:
                cells = _csvread.estimate_cells(self.path, self.csv)
                return BASE_BYTES + max(FIT_BYTES_PER_CSV_BYTE * size, FIT_BYTES_PER_NUMBER * cells)
            if self.kind in WHOLE or self.frame is not None:
                return BASE_BYTES + FIT_BYTES_PER_NUMBER * size // BYTES_PER_NUMBER
            lazy = self._scan()
            kinds = lazy.collect_schema().dtypes()
            row = sum(FIT_BYTES_PER_NUMBER if kind.is_numeric() else FIT_BYTES_PER_STRING for kind in kinds)
            return BASE_BYTES + row * int(lazy.select(pl.len()).collect().item())

    def _least_bytes(self) -> int:
        """Return the least memory that a Parquet or Arrow table takes."""
        lazy = self._scan()
        return BYTES_PER_NUMBER * int(lazy.select(pl.len()).collect().item()) * len(lazy.collect_schema())

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        own = self._own_columns()
        return [*own, *(name for name in self.partitions if name not in own)]

    def _with_partitions(self, frame: pl.DataFrame, names: Sequence[str] | None) -> pl.DataFrame:
        """Return rows of the file with the columns that its folders stand for: all, or those of these names."""
        if not self.partitions:
            return frame
        new = [pl.lit(value).alias(name) for name, value in self.partitions.items() if name not in frame.columns]
        frame = frame.with_columns(new)
        return frame if names is None else frame.select(names)

    def _own_columns(self) -> list[str]:
        if self.kind in WHOLE or self.frame is not None:
            return self._read().columns
        with _in_words(self):
            return _csvread.columns(self.path, self.csv) if self.csv else self._scan().collect_schema().names()

    def _batches(self, names: Sequence[str] | None, number_columns: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
        if self.csv:
            width = len(self._own_columns()) if names is None or self.csv.empty_rows else len(names)
            return _csvread.batches(self.path, self.csv, names, number_columns, batch_rows(width))
        lazy = self._scan() if names is None else self._scan().select(names)
        return iter(lazy.collect_batches(chunk_size=batch_rows(len(lazy.collect_schema()))))

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


def batch_rows(width: int) -> int:
    """Return the number of rows of a batch of so many columns."""
    return max(MIN_BATCH_ROWS, BATCH_CELLS // max(1, width))


@dataclass(frozen=True)
class TableFolder(TableFile):
    """Several files as one table, in order. All have the columns of the first one."""

    files: tuple[TableFile, ...] = ()

    def read(self) -> pl.DataFrame:
        """Return the whole table."""
        names = self.columns()
        frames = [file.read().select(names) for file in self.files]
        kinds = {name: {frame.schema[name] for frame in frames} for name in names}
        # A column of numbers in one file and of strings in another is one of strings.
        mixed = [name for name, found in kinds.items() if len(found) > 1 and pl.String in found]
        return pl.concat([frame.cast(dict.fromkeys(mixed, pl.String)) for frame in frames], how="vertical_relaxed")

    def batches(
        self, names: Sequence[str] | None, number_columns: Mapping[str, Any], *, may_be_empty: bool = False
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, file by file."""
        names = self.columns() if names is None else names
        for file in self.files:
            yield from file.batches(names, number_columns, may_be_empty=True)

    def fit_bytes(self) -> int:
        """Return about how much memory a fit on the whole table takes."""
        return sum(file.fit_bytes() for file in self.files)

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        names = self.files[0].columns()
        for file in self.files[1:]:
            missing = set(names) - set(file.columns())
            if missing:
                raise TableError(f"{file.shown} has no column {min(missing)!r}, which {self.files[0].shown} has.")
        return names


@contextmanager
def open_table(path: str, reading: Reading) -> Iterator[TableFile]:
    """Yield a file, or the files of a folder or a pattern, as one table. Copies are removed afterwards."""
    with open_files(path, reading) as files:
        if len(files) == 1:
            yield files[0]
            return
        notes = (f"{len(files)} files", *dict.fromkeys(note for file in files for note in file.notes))
        yield TableFolder(Path(path), path, "folder", files[0].allowed, notes=notes, files=files)


@contextmanager
def open_files(path: str, reading: Reading) -> Iterator[tuple[TableFile, ...]]:
    """Yield a file, the files of a folder or a pattern, or a table of a database, each as a table. Copies are removed
    afterwards."""
    if is_database(path):
        from ._databases import open_database

        limit_memory(allowed := allowed_bytes(reading.memory))
        with open_database(path, reading, allowed) as table:
            yield (table,)
        return
    if reading.query is not None or reading.from_table is not None:
        option = "--table" if reading.query is None else "--query"
        raise ParameterError(
            f"{option} is for databases such as duckdb:///shop.db, but {path} is a file: leave it out."
        )
    paths = files_of(path)
    with ExitStack() as stack:
        if paths is None:
            yield (stack.enter_context(_open_file(path, reading, {})),)
        else:
            yield tuple(stack.enter_context(_open_file(one, reading, partitions_of(one, path))) for one in paths)


@contextmanager
def _open_file(path: str, reading: Reading, partitions: Mapping[str, int | str | None]) -> Iterator[TableFile]:
    """Yield a file as a table. Copies of it (of a pipe, of another encoding) are removed afterwards."""
    allowed = allowed_bytes(reading.memory)
    limit_memory(allowed)
    with tempfile.TemporaryDirectory(prefix="rgld-") as name:
        folder = Path(name)
        shown = "standard input" if path == "-" else path
        source = seekable(path, shown, folder)
        kind, head = kind_of(source, shown)
        kind = kind_of_zip(source, shown) if kind == "zip" else kind
        if kind in PACKED:
            packed = kind
            source = unpacked(source, kind, folder, shown)
            kind, head = kind_of(source, shown)
            kind = kind_of_zip(source, shown) if kind == "zip" else kind
            if kind in PACKED:
                raise TableError(f"{shown} is a {kind} file in a {packed} file: {UNPACK}.")
        file = TableFile(source, shown, kind, allowed, partitions=partitions)
        if reading.sheet is not None and kind != "xlsx":
            raise ParameterError(f"--sheet is for Excel workbooks, but {shown} is none: leave it out.")
        if kind == "npz":
            with _in_words(file):
                _arrays.check_npz(source, shown)
        if kind == "xlsx":
            file = _as_sheet(file, reading)
        yield _as_csv(file, head, reading, folder) if kind == "csv" else file


def _as_sheet(file: TableFile, reading: Reading) -> TableFile:
    """Return a workbook with the sheet that was read."""
    _excel.check_workbook(file.path, file.shown, file.allowed)
    with _in_words(file):
        sheet, notes = _excel.sheet_of(file.path, file.shown, reading.sheet)
        frame, more = _excel.read_sheet(file.path, file.shown, sheet)
    return replace(file, frame=frame, notes=(*notes, *more))


def _as_csv(file: TableFile, head: bytes, reading: Reading, folder: Path) -> TableFile:
    """Return a CSV file in UTF-8, with its dialect."""
    mark = marked_encoding(head)
    if b"\0" in head and not is_wide(reading.encoding or mark or "utf-8"):
        raise TableError(f"{file.shown} is not a table: expected {FORMATS}, got binary data.")
    encoding = reading.encoding or mark or likely_encoding(file.path)
    is_utf8 = encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig", "ascii")
    notes: tuple[str, ...] = () if is_utf8 or reading.encoding else (f"read as {encoding}: it is not UTF-8",)
    # polars does not know lines that end in a carriage return alone, as on old Macintoshes.
    old_lines = b"\r" in head and b"\n" not in head
    if not is_utf8 or old_lines:
        file = replace(file, path=as_utf8(file.path, file.shown, encoding, None if old_lines else "", folder))
    dialect = sniff(file.path, file.shown, reading)
    file = replace(file, csv=dialect)
    with _in_words(file):
        empty = _csvread.count_empty_rows(file.path, dialect, BATCH_CELLS)
    if empty:
        notes += (f"{empty:,} empty {'line' if empty == 1 else 'lines'} skipped",)
    return replace(file, csv=replace(dialect, empty_rows=empty), notes=(*notes, *dialect.notes))


@contextmanager
def _in_words(file: TableFile) -> Iterator[None]:
    """Turn errors about a file that cannot be read into one sentence."""
    try:
        with while_reading(file.shown):
            yield
    except pl.exceptions.ColumnNotFoundError as error:
        raise TableError(f"{file.shown} has no such column: {_first_line(error)}.") from error
    except MemoryError as error:
        raise TableError(f"{file.shown} does not fit into memory: take fewer rows or columns.") from error
    except RGLDError:
        raise
    except pl.exceptions.PanicException as error:
        if tells_of_memory(str(error).encode()):
            raise TableError(f"{file.shown} does not fit into memory: take fewer rows or columns.") from error
        raise TableError(f"{file.shown}: {DAMAGED}.") from error
    except Exception as error:
        if file.csv and "`f64`" in str(error):
            raise NotANumberError(f"{file.shown}: {_first_line(error)}.") from error
        fault = _csvread.fault(file.path, file.csv) if file.csv else ""
        reason = fault or f"it cannot be read as {file.kind.upper()}: {_first_line(error)}"
        raise TableError(f"{file.shown}: {reason}.") from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".:")[:200]
