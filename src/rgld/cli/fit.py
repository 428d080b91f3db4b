"""`rgld fit`: learn a model from a table and keep it in a file."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from rgld.exceptions import ParameterError

from . import _options as options
from ._files import open_table
from ._large import expanded, fit_files, fit_on_cluster
from ._output import check_out
from ._show import print_columns


def fit(
    tables: Annotated[
        list[str],
        typer.Argument(
            metavar="TABLE...",
            help="CSV, Parquet, Arrow or NPZ files of the same columns, or patterns such as 'logs/*.parquet'; - for "
            "standard input.",
        ),
    ],
    model: Annotated[str, typer.Option("--model", "-m", "--out", "-o", help="The model file to write.")],
    id: options.Id = None,
    label: options.Label = None,
    preset: options.PresetOption = None,
    seed: options.Seed = None,
    calibrate: Annotated[
        float, typer.Option("--calibrate", help="Share of the rows held out to calibrate p-values; 0 for none.")
    ] = 0.2,
    column: options.Columns = None,
    inf: options.Inf = options.Infinity.error,
    memory: Annotated[
        float, typer.Option("--memory", min=0.0, help="GiB; a larger table goes through in batches, several times.")
    ] = 4.0,
    dask: Annotated[
        str | None, typer.Option("--dask", help="Address of a Dask scheduler: its workers read the files and fit.")
    ] = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
    jobs: options.Jobs = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> None:
    """Learn what is usual from a table, in one file or several, and write the model to a file.

    A fifth of the rows is held out of the model, so that `rgld score --model` can say how sure it is.
    """
    check_out(model, force=force, tables=False, option="--model")
    asked = options.asked_for(
        id=id, label=label, inf=inf, preset=preset, seed=seed, column=column, jobs=jobs, calibrate=calibrate
    )
    paths = expanded(tables)
    with ExitStack() as stack, options.progress("fitting", quiet=quiet) as tell:
        if dask is not None:
            if delimiter or encoding or decimal or no_header:
                raise ParameterError(
                    "--dask reads Parquet files: leave --delimiter, --encoding, --decimal, --no-header out."
                )
            detector = fit_on_cluster(paths, asked, dask)
        else:
            reading = options.read_options(delimiter, encoding, decimal, no_header)
            files = [stack.enter_context(open_table(path, reading)) for path in paths]
            for file in files:
                for note in file.notes:
                    options.say(f"{file.shown}: {note}", quiet)
            detector = fit_files(files, asked, memory, tell)
    detector.save(model)
    if not quiet:
        print_columns(detector, file=sys.stdout)
        held_out = len(detector.model_.calibration)
        rows = detector.model_.encoding.n_rows
        calibrated = (
            f", {held_out:,} held out to calibrate p-values (at least {1 / (held_out + 1):.2g})" if held_out else ""
        )
        print(f"fitted on {rows:,} rows{calibrated}; written to {model} ({Path(model).stat().st_size:,} bytes)")
