"""CSV files: their rows as frames.

In: a UTF-8 file and its `Dialect`. Out: frames with the column names as the csv module reads them, numbers with decimal
points, and no empty rows.
"""

import csv
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import polars as pl

from ._csv import DIALECT_BYTES, MAX_FIELD, Dialect, long_fields
from ._header import MAX_TITLE_LINES
from ._numbers import COMMA_NUMBER, LEADING_ZERO


def read(path: Path, dialect: Dialect) -> pl.DataFrame:
    """Return all rows. A column in which every value is a number has a numeric type, the others are strings, and so are
    whole numbers with leading zeros."""
    lazy = _scan(path, dialect, None)
    if padded := _padded_columns(path, dialect, lazy):
        as_strings = _scan(path, dialect, {}).select(padded).collect()
        frame = lazy.drop(padded).collect().hstack(as_strings).select(lazy.collect_schema().names())
    else:
        frame = lazy.collect()
    frame = _without_empty_rows(frame, dialect)
    return _as_numbers(_with_points(frame)) if dialect.decimal_comma else frame


def batches(
    path: Path, dialect: Dialect, names: Sequence[str] | None, number_columns: Mapping[str, Any], n_rows: int
) -> Iterator[pl.DataFrame]:
    """Yield the rows in order, `n_rows` at a time, of the named columns or of all.

    The columns of `number_columns` have the types given there, the others are strings.
    """
    lazy = _scan(path, dialect, {} if dialect.decimal_comma else number_columns)
    if names is not None and not dialect.empty_rows:
        lazy = lazy.select(names)
    for frame in lazy.collect_batches(chunk_size=n_rows):
        kept = _without_empty_rows(frame, dialect)
        kept = kept if names is None else kept.select(names)
        if dialect.decimal_comma:
            known: dict[Any, Any] = {name: kind for name, kind in number_columns.items() if name in kept.columns}
            kept = _with_points(kept).cast(known)
        yield kept


def _padded_columns(path: Path, dialect: Dialect, lazy: pl.LazyFrame) -> list[str]:
    """Return the names of the columns of whole numbers of which some have leading zeros.

    A search for a zero before a digit comes first: files of numbers alone have none, and are not read again.
    """
    whole = [name for name, kind in lazy.collect_schema().items() if kind.is_integer()]
    before = re.escape(f'\n"{dialect.delimiter}').encode()
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if not whole or not re.search(rb"[%b]0[0-9]" % before, content):
            return []
    strings = _scan(path, dialect, {}).select(pl.col(whole).str.contains(LEADING_ZERO).any())
    found = strings.collect(engine="streaming").row(0)
    return [name for name, is_padded in zip(whole, found, strict=True) if is_padded]


def columns(path: Path, dialect: Dialect) -> list[str]:
    """Return the names of the columns."""
    return _scan(path, dialect, {}).collect_schema().names()


def estimate_cells(path: Path, dialect: Dialect) -> int:
    """Return about how many cells a file has, from its first bytes."""
    with open(path, "rb") as file:
        head = file.read(DIALECT_BYTES)
    separators = head.count(dialect.delimiter.encode()) + head.count(b"\n")
    return separators * path.stat().st_size // max(1, len(head))


def count_empty_rows(path: Path, dialect: Dialect, cells: int) -> int:
    """Return the number of rows without a value in a table of several columns; `cells` are read at once.

    A search for blank lines comes first: most files have none, and need not be split into columns.
    """
    blank = re.escape(f' \t\r"{dialect.delimiter}').encode()
    lines = re.compile(rb"\n[%b]*\n|\n[%b]+\Z" % (blank, blank))
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if not lines.search(content):
            return 0
    lazy = _scan(path, dialect, {})
    width = len(lazy.collect_schema())
    if width < 2:
        return 0
    return sum(int(_empty_rows(frame).sum()) for frame in lazy.collect_batches(chunk_size=max(1000, cells // width)))


def fault(path: Path, dialect: Dialect) -> str:
    """Return which line of a file cannot be read, and why: too many fields, or an open quotation; "" if none."""
    previous = start = dialect.skip_lines
    width = None
    with _opened(path) as text, long_fields():
        reader = csv.reader(islice(text, start, None), delimiter=dialect.delimiter)
        try:
            for row in reader:
                width = len(row) if width is None else width
                if len(row) > width:
                    first = "the first line" if not dialect.skip_lines else f"line {dialect.skip_lines + 1}"
                    titles = start if start - dialect.skip_lines <= MAX_TITLE_LINES else 0
                    skip = f" --skip {titles} if the lines before it are a title, or" if titles else ""
                    return (
                        f"line {start + 1} has {len(row)} fields, expected {width} as in {first}; "
                        f"fix the line, or pass{skip} another --delimiter"
                    )
                previous, start = start, dialect.skip_lines + reader.line_num
        except csv.Error as error:
            if "field limit" in str(error):
                return f"line {start + 1} opens a quotation that does not end within {MAX_FIELD:,} characters"
            return f"line {start + 1} cannot be read ({error})"
        if _is_open(path, previous, dialect.delimiter):
            return f"line {previous + 1} opens a quotation that never ends: close it or remove the quotation mark"
    return _stray_mark(path, dialect)


def _stray_mark(path: Path, dialect: Dialect) -> str:
    """Return which line has a quotation mark that does not belong there, and what to do; "" if none has."""
    cure = "remove it, or write it twice within a quoted field"
    start = dialect.skip_lines
    with _opened(path) as text, long_fields():
        reader = csv.reader(islice(text, start, None), delimiter=dialect.delimiter, strict=True)
        try:
            for _ in reader:
                start = dialect.skip_lines + reader.line_num
        except csv.Error:
            end = dialect.skip_lines + reader.line_num
            where = f" (the quotation that it opens ends in line {end})" if end > start + 1 else ""
            return f"line {start + 1} has a quotation mark that does not belong there{where}: {cure}"
    other = re.escape(f'"{dialect.delimiter}\r\n')
    stray = re.compile(f'[^{other}]"[^{other}]')
    with _opened(path) as text:
        for number, line in enumerate(text):
            if number >= dialect.skip_lines and stray.search(line):
                return f"line {number + 1} has a quotation mark that does not belong there: {cure}"
    return ""


def _opened(path: Path) -> TextIO:
    return open(path, encoding="utf-8-sig", errors="replace", newline="")


def _is_open(path: Path, start: int, delimiter: str) -> bool:
    """Return whether the last row of a file, from this line on, ends within a quotation."""
    with _opened(path) as text:
        try:
            for _ in csv.reader(islice(text, start, None), delimiter=delimiter, strict=True):
                pass
        except csv.Error as error:
            return "unexpected end of data" in str(error)
    return False


def _scan(path: Path, dialect: Dialect, number_columns: Mapping[str, Any] | None) -> pl.LazyFrame:
    """Return the rows, not yet read. Without `number_columns`, polars finds the type of each column from all cells."""
    settings: dict[str, Any] = {
        "separator": dialect.delimiter,
        "has_header": dialect.names is not None,
        "skip_lines": dialect.skip_lines,
        "glob": False,
    }
    if number_columns is None and not dialect.decimal_comma:
        lazy = pl.scan_csv(path, infer_schema_length=None, **settings)
        found = lazy.collect_schema().names()
    else:
        lazy = pl.scan_csv(path, infer_schema=False, **settings)
        found = lazy.collect_schema().names()
    # polars keeps the quotes of names: take the names of the csv module instead.
    names = dialect.names or tuple(f"column_{j}" for j in range(len(found)))
    names = names if len(names) == len(found) else tuple(found)
    if number_columns:
        kinds = {old: number_columns[new] for old, new in zip(found, names, strict=True) if new in number_columns}
        lazy = pl.scan_csv(path, infer_schema=False, schema_overrides=kinds, **settings)
    changed = {old: new for old, new in zip(found, names, strict=True) if old != new}
    return lazy.rename(changed) if changed else lazy


def _empty_rows(frame: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows have no value. Of each column, only the rows that had no value so far are looked at."""
    empty = np.ones(len(frame), dtype=bool)
    for column in frame:
        rows = np.flatnonzero(empty)
        if not len(rows):
            break
        cells = column[rows]
        blank = cells.is_null()
        if cells.dtype == pl.String:
            blank |= (cells.str.strip_chars() == "").fill_null(True)
        empty[rows] = blank.to_numpy()
    return empty


def _without_empty_rows(frame: pl.DataFrame, dialect: Dialect) -> pl.DataFrame:
    return frame.filter(~_empty_rows(frame)) if dialect.empty_rows else frame


def _with_points(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with numbers such as 98.765,43 as 98765.43; other strings stay as they are."""
    text = pl.col(pl.String)
    number = text.str.replace_all(r"[.'’\s]", "").str.replace(",", ".", literal=True)
    return frame.with_columns(pl.when(text.str.contains(COMMA_NUMBER)).then(number).otherwise(text))


def _as_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with numeric types for the columns in which every string is a number."""
    return frame.with_columns(_as_number(column) for column in frame if column.dtype == pl.String)


def _as_number(column: pl.Series) -> pl.Series:
    if column.str.contains(LEADING_ZERO).any() and not column.str.contains("[.,]").any():
        return column
    for kind in (pl.Int64, pl.Float64):
        numbers = column.cast(kind, strict=False)
        if numbers.null_count() == column.null_count() < len(column):
            return numbers
    return column
