"""`rgld report`: one page about a table, to be opened in a browser."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from ._addresses import masked
from ._files import open_table
from ._fitting import make_detector, read_training, row_names
from ._lines import RowIds
from ._options import Output, Reading, Scoring, TablePath, with_groups
from ._output import check_out, is_stdout, printed_cell, written_out
from ._scoring import read_for_model
from ._terminal import printable, progress, say_notes

PageOut = Annotated[str, typer.Option("--out", "-o", help="The page to write.")]


@with_groups
def report(
    table: TablePath, *, out: PageOut = "report.html", output: Output, scoring: Scoring, reading: Reading
) -> None:
    """Write a page about a table: what stands out, why, and how its columns were read.

    The page is one file and loads nothing from the network: open it in a browser, print it, send it. The rows are
    scored by a model file, or by a detector fitted on the table itself.
    """
    from rgld.report import write_report

    check_out(out, force=output.force, tables=False)
    with open_table(table, reading) as file:
        say_notes(file.shown, file.notes, quiet=output.quiet)
        with progress("scoring and drawing", quiet=output.quiet):
            if scoring.model is None:
                frame, features = read_training(file, scoring)
                detector = make_detector(scoring).fit(features)
            else:
                detector, frame, features = read_for_model(file, scoring)
            names = row_names(frame, scoring)
            ids = RowIds(file).of_all(len(frame)) if names is None else names
            is_counted = names is None and ids.name == "row"
            with written_out(out, force=output.force) as beside:
                write_report(
                    detector,
                    features,
                    beside,
                    source=file.title,
                    ids=None if is_counted else [printed_cell(value) for value in ids],
                    id_name=None if is_counted else ids.name,
                    p_values=detector.p_values(features)
                    if scoring.model and len(detector.model_.calibration)
                    else None,
                    command=masked(shlex.join(["rgld", *sys.argv[1:]])),
                )
    if not output.quiet:
        where, size = sys.stderr if is_stdout(out) else sys.stdout, Path(out).stat().st_size
        print(f"{len(frame):,} rows; written to {printable(out)} ({size / 1e6:.1f} MB)", file=where)
