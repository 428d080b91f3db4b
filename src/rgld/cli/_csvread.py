"""CSV files: their rows as frames.

In: a UTF-8 file and its `Dialect`. Out: frames whose names are those of the csv module, whose numbers have decimal
points, and which have no rows without a value.
"""

import csv
import mmap
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ._csv import COMMA_NUMBER, Dialect, any_field_size


def read(path: Path, dialect: Dialect) -> pl.DataFrame:
    """Return all rows; a column of nothing but numbers is one of numbers, the others are text."""
    frame = _without_empty_rows(_scan(path, dialect, None).collect(), dialect)
    return _as_numbers(_with_points(frame)) if dialect.decimal_comma else frame


def batches(
    path: Path, dialect: Dialect, names: Sequence[str] | None, numbers: Mapping[str, Any], step: int
) -> Iterator[pl.DataFrame]:
    """Yield the rows in order, of the named columns or of all; columns of `numbers` as such, the others as text."""
    lazy = _scan(path, dialect, {} if dialect.decimal_comma else numbers)
    if names is not None and not dialect.empty_rows:
        lazy = lazy.select(names)
    for frame in lazy.collect_batches(chunk_size=step):
        kept = _without_empty_rows(frame, dialect)
        kept = kept if names is None else kept.select(names)
        if dialect.decimal_comma:
            known: dict[Any, Any] = {name: kind for name, kind in numbers.items() if name in kept.columns}
            kept = _with_points(kept).cast(known)
        yield kept


def columns(path: Path, dialect: Dialect) -> list[str]:
    """Return the names of the columns."""
    return _scan(path, dialect, {}).collect_schema().names()


def count_empty_rows(path: Path, dialect: Dialect, cells: int) -> int:
    """Return the number of rows without a value in a table of several columns, reading so many cells at once.

    Most files have none, which a search for such lines tells without taking rows apart.
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
    """Return where a file cannot be a table, and why: a line with too many fields, a quotation without end; or ""."""
    lines: list[str] = []
    last: tuple[int, list[str]] = (0, [])
    start, width = dialect.skip_lines, None
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as text, any_field_size():

        def remembered() -> Iterator[str]:
            for line in islice(text, dialect.skip_lines, None):
                lines.append(line)
                yield line

        reader = csv.reader(remembered(), delimiter=dialect.delimiter)
        try:
            for row in reader:
                width = len(row) if width is None else width
                if len(row) > width:
                    return (
                        f"line {start + 1} has {len(row)} fields, expected {width} as in the first line; "
                        "fix the line, or pass another --delimiter"
                    )
                last, lines[:] = (start, lines[:]), []
                start = dialect.skip_lines + reader.line_num
        except csv.Error as error:
            return f"line {start + 1} cannot be read ({error})"
        if _is_open(last[1], dialect.delimiter):
            return f"line {last[0] + 1} opens a quotation that never ends"
    return ""


def _is_open(lines: Sequence[str], delimiter: str) -> bool:
    try:
        list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


def _scan(path: Path, dialect: Dialect, numbers: Mapping[str, Any] | None) -> pl.LazyFrame:
    """Return the rows; without `numbers` all columns are looked through for what they hold."""
    settings: dict[str, Any] = {
        "separator": dialect.delimiter,
        "has_header": dialect.names is not None,
        "skip_lines": dialect.skip_lines,
        "glob": False,
    }
    if numbers is None and not dialect.decimal_comma:
        lazy = pl.scan_csv(path, infer_schema_length=None, **settings)
        found = lazy.collect_schema().names()
    else:
        lazy = pl.scan_csv(path, infer_schema=False, **settings)
        found = lazy.collect_schema().names()
    # polars leaves quotes in names as they are in the file.
    names = dialect.names if dialect.names is not None and len(dialect.names) == len(found) else tuple(found)
    if numbers:
        kinds = {old: numbers[new] for old, new in zip(found, names, strict=True) if new in numbers}
        lazy = pl.scan_csv(path, infer_schema=False, schema_overrides=kinds, **settings)
    changed = {old: new for old, new in zip(found, names, strict=True) if old != new}
    return lazy.rename(changed) if changed else lazy


def _empty_rows(frame: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which rows have no value, looking at a column only for rows that had none so far."""
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
    """Return the frame with numbers such as 98.765,43 as 98765.43, cell by cell: other texts are as they were."""
    text = pl.col(pl.String)
    number = text.str.replace_all(r"[.'’\s]", "").str.replace(",", ".", literal=True)
    return frame.with_columns(pl.when(text.str.contains(COMMA_NUMBER)).then(number).otherwise(text))


def _as_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with the text columns in which every value is a number as numbers."""
    return frame.with_columns(_as_number(column) for column in frame if column.dtype == pl.String)


def _as_number(column: pl.Series) -> pl.Series:
    for kind in (pl.Int64, pl.Float64):
        numbers = column.cast(kind, strict=False)
        if numbers.null_count() == column.null_count() < len(column):
            return numbers
    return column
