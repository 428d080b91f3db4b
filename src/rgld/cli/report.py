"""`rgld report`: one page about a table, to be opened in a browser."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from . import _options as options
from ._files import open_table
from ._fitting import make_detector, read_training
from ._output import check_out


def report(
    table: options.TablePath,
    out: Annotated[str, typer.Option("--out", "-o", help="The page to write.")] = "report.html",
    id: options.Id = None,
    label: options.Label = None,
    preset: options.PresetOption = None,
    seed: options.Seed = None,
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
    """Write a page about a table: what stands out, why, and how its columns were read.

    One file, without anything from the network: open it in a browser, print it, send it.
    """
    from rgld.report import write_report

    check_out(out, force=force, tables=False)
    asked = options.asked_for(id=id, label=label, inf=inf, preset=preset, seed=seed, column=column, jobs=jobs)
    with open_table(table, options.read_options(delimiter, encoding, decimal, no_header)) as file:
        for note in file.notes:
            options.say(f"{file.shown}: {note}", quiet)
        with options.progress("fitting and drawing", quiet=quiet):
            frame, features = read_training(file, asked)
            detector = make_detector(asked).fit(features)
            ids = [str(value) for value in frame[id]] if id else None
            write_report(
                detector,
                features,
                out,
                source=Path(file.shown).name,
                ids=ids,
                id_name=id,
                command=shlex.join(["rgld", *sys.argv[1:]]),
            )
    if not quiet:
        print(f"{len(features):,} rows; written to {out} ({Path(out).stat().st_size / 1e6:.1f} MB)")
