"""Output: tables written whole or not at all, without formulas for spreadsheets.

In: a frame. Out: a CSV, Parquet or Arrow file, or CSV on standard output. A file is written under another name and
renamed when it is complete.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from rgld._modelfile.atomic import is_standard_output, is_written_through, written_beside
from rgld.exceptions import ParameterError, RGLDError

from ._addresses import OUT_TABLE
from ._terminal import printable

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet reads a cell that begins with one of these as a formula."""
WRITERS = {".csv": "csv", ".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}


def check_out(
    out: str | None,
    *,
    force: bool,
    tables: bool = True,
    option: str = "--out",
    source: str | None = None,
    from_table: str | None = None,
) -> None:
    """Raise an error if a file cannot be written there, before any work is done.

    If `source`, which is read, is a database, `table:NAME` is a new table of it, other than `from_table`.
    """
    if out is None or (out == "-" and tables):
        return
    if tables and out.startswith(OUT_TABLE):
        from ._databases import check_new_table

        check_new_table(out, source, from_table, force=force)
        return
    if out == "-":
        raise ParameterError(f"{option} must be the name of a file here, not standard output.")
    if is_written_through(out):
        return
    path = Path(out)
    if tables and path.suffix.lower() not in WRITERS:
        raise ParameterError(
            f"{option} {out}: expected a name that ends in {', '.join(WRITERS)}, or - for standard output."
        )
    if path.is_dir():
        raise ParameterError(f"{option} {out} is a folder, expected the name of a file.")
    if not path.parent.is_dir():
        raise ParameterError(f"{option} {out}: there is no folder {path.parent}: make it first.")
    if path.exists() and not path.is_file():
        raise ParameterError(f"{option} {out} is a device, a pipe or a socket, expected the name of a file.")
    if path.exists() and not force:
        raise _exists_already(out, option)


def _exists_already(out: str, option: str) -> ParameterError:
    return ParameterError(f"{option} {out} exists already: name another file, or pass --force to replace it.")


def is_stdout(out: str | None) -> bool:
    """Tell whether results go to standard output; messages then go to standard error."""
    return out == "-" or (out is not None and is_standard_output(out))


@contextmanager
def written_out(out: str, *, force: bool, option: str = "--out") -> Iterator[Path]:
    """Yield a path to write to. The file gets its name when it is whole; without `force`, it replaces no other."""
    try:
        with written_beside(out, replace=force) as beside:
            yield beside
    except FileExistsError:  # another process wrote it after `check_out`
        raise _exists_already(out, option) from None


def write_table(frame: pl.DataFrame, out: str, *, force: bool, source: str | None = None) -> None:
    """Write a frame to a file, or to a new table of the database `source`.

    In CSV, strings that a spreadsheet would run as a formula get an apostrophe before them.
    """
    if out.startswith(OUT_TABLE) and source is not None:
        from ._databases import write_new_table

        write_new_table(_simple(frame), out, source, force=force)
        return
    kind = WRITERS.get(Path(out).suffix.lower(), "csv")  # devices have no suffix
    if kind == "csv" and is_stdout(out):
        _print_csv(as_csv_columns(frame).write_csv())
        return
    try:
        with written_out(out, force=force) as beside:
            if kind == "csv":
                as_csv_columns(frame).write_csv(beside)
            else:
                getattr(frame, f"write_{kind}")(beside)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        if number := re.search(r"\(os error (\d+)\)", str(error)):  # polars repeats an error of the system so
            raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
        if isinstance(error, OSError):
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise RGLDError(f"{out} cannot be written: {reason}.") from error


def _print_csv(text: str) -> None:
    """Print CSV in UTF-8, whatever the encoding of the terminal is; on a terminal without control characters."""
    if sys.stdout.isatty():
        text = "\n".join(printable(line) for line in text.split("\n"))
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.flush()


def as_csv_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with what CSV cannot hold (lists, bytes) as strings, and without formulas."""
    return without_formulas(_simple(frame))


def _simple(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with lists and bytes as strings."""
    kinds = {name: dtype for name, dtype in frame.schema.items() if is_compound(dtype)}
    return frame.with_columns(printed_column(frame[name]) for name in kinds)


def is_compound(dtype: pl.DataType) -> bool:
    """Return whether values of this type are lists, structures, objects or bytes."""
    return dtype.is_nested() or dtype in (pl.Binary, pl.Object)


def printed_column(values: pl.Series) -> pl.Series:
    """Return values as they are printed."""
    if is_compound(values.dtype) or values.dtype.is_temporal():
        return pl.Series(values.name, [None if value is None else printed_cell(value) for value in values.to_list()])
    return values.cast(pl.String)


def printed_cell(value: object) -> str:
    """Return a value as it is printed: bytes as hexadecimal digits."""
    if isinstance(value, pl.Series):  # an element of a column of lists
        value = value.to_list()
    return value.hex() if isinstance(value, bytes) else str(value)


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with an apostrophe before names and strings that a spreadsheet would read as a formula.

    Strings that are plain numbers stay as they are.
    """
    renamed = frame.rename({name: _harmless(name) for name in frame.columns})
    strings = [name for name, dtype in renamed.schema.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    risky = r"^[=+\-@\t\r]"
    number = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
    columns = {name: pl.col(name).cast(pl.String) for name in strings}
    is_risky = {name: c.str.contains(risky) & ~c.str.contains(number) for name, c in columns.items()}
    return renamed.with_columns(
        pl.when(is_risky[name]).then(pl.lit("'") + column).otherwise(column).alias(name)
        for name, column in columns.items()
    )


def _harmless(name: str) -> str:
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name
