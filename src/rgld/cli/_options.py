"""Options of the commands, each defined once, in groups.

A group is a dataclass: each field is an option with its help text and default. A command names the groups it takes as
parameters, and `with_groups` makes one option of each field. To add an option, add a field to a group: every command
with this group has it. An option of a group and of a command without it has a name of its own here, such as `Jobs`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

import typer

from rgld._params import READINGS
from rgld.exceptions import ParameterError


class Preset(StrEnum):
    """The detector's settings."""

    paper = "paper"
    fast = "fast"
    plus = "plus"
    novelty = "novelty"


class Infinity(StrEnum):
    """What to do with infinite numbers."""

    error = "error"
    clip = "clip"


TABLE_HELP = (
    "CSV, Parquet, Arrow, Excel, JSON lines or NPZ file, also packed; a folder or pattern of such files; - for "
    "standard input; or a database, such as duckdb:///shop.db, sqlite:///shop.db or postgresql://ann@host/shop, with "
    "--table or --query."
)
TablePath = Annotated[str, typer.Argument(help=TABLE_HELP)]
Top = Annotated[int, typer.Option("--top", min=0, help="How many of the most anomalous rows to print, with reasons.")]
ModelFile = Annotated[str | None, typer.Option("--model", "-m", help="A model file of `rgld fit`.")]
Id = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        help="Column that names the rows: not used by the model, kept in the output; repeat it to join several.",
    ),
]
Inf = Annotated[
    Infinity,
    typer.Option(
        "--inf",
        help="error: infinite numbers are an error. clip: they become the largest or smallest other number of their "
        "column.",
    ),
]
Jobs = Annotated[int | None, typer.Option("--jobs", help="Number of threads; all cores if not given.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and what was asked for.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output file or table.")]


@dataclass(frozen=True)
class Reading:
    """How a table is read."""

    from_table: Annotated[
        str | None, typer.Option("--table", metavar="NAME", help="The table to read, if it is in a database.")
    ] = None
    query: Annotated[
        str | None, typer.Option("--query", metavar="SQL", help="A SELECT for a database: its rows are read.")
    ] = None
    delimiter: Annotated[
        str | None, typer.Option("--delimiter", help="Delimiter of a CSV file; detected if not given.")
    ] = None
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Encoding of a CSV file; detected if not given.")
    ] = None
    decimal: Annotated[
        str | None, typer.Option("--decimal", help="Decimal mark of a CSV file, . or ,; detected if not given.")
    ] = None
    no_header: Annotated[
        bool | None,
        typer.Option(
            "--no-header/--header",
            help="The CSV file has no column names in its first line, or has them; detected if not given.",
        ),
    ] = None
    skip: Annotated[
        int,
        typer.Option(
            "--skip", min=0, help="Lines to skip before the column names of a CSV file; detected if not given."
        ),
    ] = 0
    sheet: Annotated[
        str | None, typer.Option("--sheet", help="Sheet of an Excel workbook; the first one if not given.")
    ] = None
    memory: Annotated[
        float | None,
        typer.Option(
            "--memory",
            min=0.0,
            help="GiB of memory to use at most; three quarters of the machine's if not given.",
        ),
    ] = None


@dataclass(frozen=True)
class Fitting:
    """How a detector is fitted on a table."""

    id: Id = None
    label: Annotated[
        str | None,
        typer.Option(
            "--label", help="Column of known labels: not used by the model; `rgld score` prints AUROC and AUPRC by it."
        ),
    ] = None
    preset: Annotated[
        Preset | None,
        typer.Option(
            "--preset",
            help="Settings of the detector, if one is fitted; default: plus. Take novelty if the table has no "
            "anomalies.",
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Seed for everything random, if a detector is fitted; default: 0."),
    ] = None
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="NAME=number|category|time|drop: how to read a column, if not as detected; repeatable.",
        ),
    ] = None
    na: Annotated[
        list[str] | None,
        typer.Option("--na", help="A value that means missing: VALUE for all columns, or NAME=VALUE; repeatable."),
    ] = None
    inf: Inf = Infinity.error
    jobs: Jobs = None

    def __post_init__(self) -> None:
        """Check the values that Typer does not check."""
        if self.jobs == 0:
            raise ParameterError("--jobs must be a number of threads other than 0.")
        self.column_kinds()
        self.na_values()

    def na_values(self) -> list[str] | dict[str, list[str]] | None:
        """Return what `--na` says: values that mean missing, of all columns or by column."""
        parts = [text.rpartition("=") for text in self.na or []]
        if len({bool(name) for name, _, _ in parts}) > 1:
            raise ParameterError(
                "--na must be NAME=VALUE each time or VALUE each time: name the column in all of them."
            )
        if not parts or not parts[0][0]:
            return [value for _, _, value in parts] or None
        values: dict[str, list[str]] = {}
        for name, _, value in parts:
            values.setdefault(name, []).append(value)
        return values

    @property
    def set_aside(self) -> list[str]:
        """The columns that the model does not use: of `--id` and `--label`."""
        return [*self.keys, *([self.label] if self.label is not None else [])]

    @property
    def keys(self) -> list[str]:
        """The columns of `--id`, which together name a row."""
        return [self.id] if isinstance(self.id, str) else list(self.id or ())

    def column_kinds(self) -> dict[str, str] | None:
        """Return what `--column` says, as kinds by column name."""
        kinds = {}
        for text in self.column or []:
            name, equals, kind = text.rpartition("=")
            if not equals or not name:
                raise ParameterError(f"--column expects NAME=KIND, such as zip=category, got {text!r} instead.")
            if kind not in READINGS:
                raise ParameterError(f"--column {text}: a column can be {', '.join(READINGS)}, not {kind!r}.")
            kinds[name] = kind
        return kinds or None


@dataclass(frozen=True)
class Scoring(Fitting):
    """How a table is scored: by a model file, or by a detector fitted on the table."""

    model: ModelFile = None

    def __post_init__(self) -> None:
        """Refuse options for fitting beside a model file."""
        super().__post_init__()
        if self.model is None:
            return
        options = {"--column": self.column, "--na": self.na, "--preset": self.preset, "--seed": self.seed}
        for option, value in options.items():
            if value is not None and value != []:
                raise ParameterError(f"{option} is for fitting, but the model file is already fitted: leave it out.")


@dataclass(frozen=True)
class Output:
    """What a command prints and replaces."""

    quiet: Quiet = False
    force: Force = False


@dataclass(frozen=True)
class TableOutput(Output):
    """Output of a command that writes a table."""

    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            help="File to write (.csv, .parquet, .arrow), - for CSV on standard output, table:NAME for a new table "
            "of the database that is read.",
        ),
    ] = None
    json_: Json = False


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with one keyword for each option of its groups, as Typer expects it."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += inspect.signature(groups[name]).parameters.values()
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    def run(**options: Any) -> None:
        for name, group in groups.items():
            given = {field.name: options.pop(field.name) for field in fields(group) if field.name in options}
            options[name] = group(**given)
        command(**options)

    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    return run
