"""Options that commands have in common, and what they mean together."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from rgld._params import READINGS
from rgld.exceptions import ParameterError

from ._files import ReadOptions
from ._fitting import Asked, Infinity, Preset
from ._show import printable

__all__ = ["Infinity", "Preset"]


TablePath = Annotated[str, typer.Argument(help="CSV, Parquet, Arrow or NPZ file; - for standard input.")]
ModelPath = Annotated[str | None, typer.Option("--model", "-m", help="A model file of `rgld fit`.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", help="File to write (.csv, .parquet, .arrow), - for CSV on standard output."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output file.")]
Top = Annotated[int, typer.Option("--top", min=0, help="How many of the most anomalous rows to print, with reasons.")]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of everything random, where a model is fitted; 0.")
]
PresetOption = Annotated[
    Preset | None, typer.Option("--preset", help="Settings of the detector, where one is fitted; plus.")
]
Id = Annotated[
    str | None, typer.Option("--id", help="Column that names the rows: not used by the model, kept in the output.")
]
Label = Annotated[
    str | None,
    typer.Option("--label", help="Column of known labels: not used by the model, only to print AUROC and AUPRC."),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", help="NAME=number|category|time|drop: read a column otherwise than the rules would; repeatable."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and what was asked for.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
Inf = Annotated[Infinity, typer.Option("--inf", help="Infinite numbers: an error, or clipped to the column's largest.")]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Threads; all cores if not given.")]
Delimiter = Annotated[str | None, typer.Option("--delimiter", help="Of a CSV file; found out if not given.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Of a CSV file; found out if not given.")]
Decimal = Annotated[
    str | None, typer.Option("--decimal", help="Decimal mark of a CSV file, . or ,; found out if not given.")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The CSV file has no column names in its first line.")]


def read_options(delimiter: str | None, encoding: str | None, decimal: str | None, no_header: bool) -> ReadOptions:
    """Return what was said about the file."""
    return ReadOptions(delimiter, encoding, decimal, not no_header)


def asked_for(
    *,
    id: str | None,
    label: str | None,
    inf: Infinity,
    preset: Preset | None,
    seed: int | None,
    column: list[str] | None,
    jobs: int | None,
    model: str | None = None,
    calibrate: float = 0.0,
    rows: tuple[str, ...] = (),
) -> Asked:
    """Return what was asked for, or say what does not go together."""
    if model is not None:
        for option, given in (("--column", column), ("--preset", preset), ("--seed", seed)):
            if given is not None and given != []:
                raise ParameterError(f"{option} is for fitting: a model file is fitted already; leave it out.")
    if jobs == 0:
        raise ParameterError("--jobs must be a number of threads other than 0.")
    return Asked(id, label, inf, preset or Preset.plus, seed or 0, readings(column), jobs, calibrate, rows)


def readings(columns: list[str] | None) -> dict[str, str] | None:
    """Return how columns are to be read, by name."""
    found = {}
    for text in columns or []:
        name, equals, kind = text.rpartition("=")
        if not equals or not name:
            raise ParameterError(f"--column expects NAME=KIND, such as zip=category, got {text!r} instead.")
        if kind not in READINGS:
            raise ParameterError(f"--column {text}: a column can be {', '.join(READINGS)}, not {kind!r}.")
        found[name] = kind
    return found or None


def say(text: str, quiet: bool = False) -> None:
    """Print a message where results are not."""
    if not quiet:
        print(printable(text), file=sys.stderr)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Any]:
    """Yield a function to call with what is being done, or with the number of rows done; shown on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(what) as status:
        yield lambda done: status.update(done if isinstance(done, str) else f"{what}: {done:,} rows")
