"""`rgld fit`: learn a model from a table and keep it in a file."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import _options as options
from ._files import open_table
from ._output import check_out
from ._show import print_columns
from ._work import fit_file


def fit(
    table: options.TablePath,
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
    quiet: options.Quiet = False,
    force: options.Force = False,
    jobs: options.Jobs = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> None:
    """Learn what is usual from a table, and write the model to a file.

    A fifth of the rows is held out of the model, so that `rgld score --model` can say how sure it is.
    """
    check_out(model, force=force, tables=False, option="--model")
    asked = options.asked_for(
        id=id, label=label, inf=inf, preset=preset, seed=seed, column=column, jobs=jobs, calibrate=calibrate
    )
    with open_table(table, options.read_options(delimiter, encoding, decimal, no_header)) as file:
        for note in file.notes:
            options.say(f"{file.shown}: {note}", quiet)
        with options.progress("fitting", quiet=quiet):
            detector = fit_file(file, asked)
    detector.save(model)
    if not quiet:
        print_columns(detector, file=sys.stdout)
        held_out = len(detector.model_.calibration)
        rows = detector.model_.encoding.n_rows
        calibrated = (
            f", {held_out:,} held out to calibrate p-values (at least {1 / (held_out + 1):.2g})" if held_out else ""
        )
        print(f"fitted on {rows:,} rows{calibrated}; written to {model} ({Path(model).stat().st_size:,} bytes)")
