"""Excel workbooks: a sheet as a frame.

In: an .xlsx file and the name of a sheet. Out: a frame. What a workbook grows to when unpacked is counted before a
reader sees it.
"""

from pathlib import Path
from typing import Any

import polars as pl

from rgld.exceptions import ParameterError, TableError

from ._archives import check_members
from ._header import n_title_rows
from ._memory import require_memory

MEMORY_PER_BYTE = 4
"""Bytes of memory that a reader takes for each byte of a workbook's XML, at least."""
HEAD_SHEET_ROWS = 50
"""Rows that are looked at for a title."""


def sheet_of(path: Path, shown: str, asked: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the sheet to read, and what the user should know about the choice."""
    names = _reader(path).sheet_names
    if asked is not None:
        if asked not in names:
            raise ParameterError(f"--sheet {asked}: {shown} has no such sheet; it has {', '.join(names[:8])}.")
        return asked, ()
    if not names:
        raise TableError(f"{shown} has no sheets: expected a table.")
    others = f"; pass --sheet for another of its {len(names)} sheets" if len(names) > 1 else ""
    return names[0], (f"sheet {names[0]!r} is read{others}",) if others else ()


def read_sheet(path: Path, shown: str, sheet: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return a sheet as a frame, and what the user should know. A title before the column names is skipped."""
    workbook = _reader(path)
    head = workbook.load_sheet(sheet, header_row=None, n_rows=HEAD_SHEET_ROWS, dtypes="string").to_polars()
    rows = [[cell or "" for cell in row] for row in head.rows()]
    n_title = n_title_rows(rows) if rows else 0
    frame: pl.DataFrame = workbook.load_sheet(sheet, header_row=n_title, schema_sample_rows=None).to_polars()
    frame = frame.filter(~pl.all_horizontal(pl.all().is_null())) if frame.width else frame
    if not frame.width or not len(frame):
        others = [name for name in workbook.sheet_names if name != sheet]
        cure = f"; pass --sheet for another ({', '.join(others[:8])})" if others else ""
        raise TableError(f"{shown} has no rows in the sheet {sheet!r}: expected column names and rows{cure}.")
    return frame, (f"{n_title} title line{'s' * (n_title != 1)} skipped",) if n_title else ()


def check_workbook(path: Path, shown: str, allowed: int) -> None:
    """Raise an error if a workbook grows too much when it is unpacked, or needs more memory than allowed."""
    require_memory(MEMORY_PER_BYTE * check_members(path, shown), allowed, shown)


def _reader(path: Path) -> Any:
    try:
        import fastexcel
    except ImportError as error:
        raise ParameterError("An Excel workbook needs the package fastexcel: pip install 'rgld[cli]'.") from error
    return fastexcel.read_excel(str(path))
