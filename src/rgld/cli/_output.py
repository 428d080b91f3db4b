"""Results out: tables written whole or not at all, and never a formula.

In: a frame. Out: a CSV, Parquet or Arrow file, written beside its place and renamed, or CSV on standard output.
"""

import sys
from pathlib import Path

import polars as pl

from rgld._atomic import written_beside
from rgld.exceptions import ParameterError

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a cell that begins with one of these for a formula."""
WRITERS = {".csv": "csv", ".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}


def check_out(out: str | None, *, force: bool, tables: bool = True, option: str = "--out") -> None:
    """Refuse a place that cannot be written to, before any work is done."""
    if out is None or (out == "-" and tables):
        return
    if out == "-":
        raise ParameterError(f"{option} must be the name of a file here, not standard output.")
    path = Path(out)
    if tables and path.suffix.lower() not in WRITERS:
        raise ParameterError(
            f"{option} {out}: expected a name that ends in {', '.join(WRITERS)}, or - for standard output."
        )
    if path.is_dir():
        raise ParameterError(f"{option} {out} is a folder, expected the name of a file.")
    if not path.parent.is_dir():
        raise ParameterError(f"{option} {out}: there is no folder {path.parent}: make it first.")
    if path.exists() and not force:
        raise ParameterError(f"{option} {out} exists already: name another file, or pass --force to replace it.")


def write_table(frame: pl.DataFrame, out: str) -> None:
    """Write a frame; texts in CSV that a spreadsheet would run begin with an apostrophe."""
    if out == "-":
        sys.stdout.write(without_formulas(frame).write_csv())
        sys.stdout.flush()
        return
    kind = WRITERS[Path(out).suffix.lower()]
    with written_beside(out) as beside:
        if kind == "csv":
            without_formulas(frame).write_csv(beside)
        else:
            getattr(frame, f"write_{kind}")(beside)


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the frame with an apostrophe before names and texts that a spreadsheet would take for a formula.

    Texts that are plain numbers stay as they are.
    """
    renamed = frame.rename({name: _harmless(name) for name in frame.columns})
    texts = [name for name, dtype in renamed.schema.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    risky = r"^[=+\-@\t\r]"
    number = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
    columns = {name: pl.col(name).cast(pl.String) for name in texts}
    is_risky = {name: c.str.contains(risky) & ~c.str.contains(number) for name, c in columns.items()}
    return renamed.with_columns(
        pl.when(is_risky[name]).then(pl.lit("'") + column).otherwise(column).alias(name)
        for name, column in columns.items()
    )


def _harmless(name: str) -> str:
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name
