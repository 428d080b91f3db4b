"""`rgld fit`: learn a model from a table and keep it in a file."""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from rgld.exceptions import ParameterError

from ._clusters import fit_on_dask, fit_on_spark
from ._files import open_files
from ._fitting import make_detector
from ._large import expanded, fit_files
from ._options import Fitting, Output, Reading, with_groups
from ._output import check_out, is_stdout, written_out
from ._reading import print_columns
from ._terminal import printable, progress, say_notes

TablePaths = Annotated[
    list[str],
    typer.Argument(
        help="CSV, Parquet, Arrow, Excel, JSON lines or NPZ files of the same columns, also packed; folders, or "
        "patterns such as 'logs/*.parquet'; - for standard input; or a database, such as postgresql://ann@host/shop, "
        "with --table or --query.",
    ),
]
ModelOut = Annotated[str, typer.Option("--model", "-m", "--out", "-o", help="The model file to write.")]
Calibrate = Annotated[
    float, typer.Option("--calibrate", help="Fraction of the rows held out to calibrate p-values; 0 for none.")
]
Dask = Annotated[
    str | None, typer.Option("--dask", help="Address of a Dask scheduler: its workers read the files and fit.")
]
Spark = Annotated[
    str | None,
    typer.Option(
        "--spark",
        help="Spark master, such as local[4], spark://HOST:PORT or yarn, or a Connect server (sc://HOST): its "
        "executors read the Parquet files and fit.",
    ),
]


@with_groups
def fit(
    tables: TablePaths,
    *,
    model: ModelOut,
    fitting: Fitting,
    calibrate: Calibrate = 0.2,
    dask: Dask = None,
    spark: Spark = None,
    output: Output,
    reading: Reading,
) -> None:
    """Learn what is usual from a table, in one file or several, and write the model to a file.

    A fifth of the rows is held out of the model, so that `rgld score --model` can say how sure it is. A table that
    needs more than --memory (or 4 GiB), and a table in several files, is read in batches, several times.
    """
    if dask is not None and spark is not None:
        raise ParameterError("--dask and --spark do not go together: pass one of them.")
    check_out(model, force=output.force, tables=False, option="--model")
    with ExitStack() as stack, progress("fitting", quiet=output.quiet) as tell:
        if dask is not None:
            detector = fit_on_dask(expanded(tables), fitting, make_detector(fitting, calibrate), dask, reading)
        elif spark is not None:
            detector = fit_on_spark(expanded(tables), fitting, make_detector(fitting, calibrate), spark)
        else:
            opened = [file for table in tables for file in stack.enter_context(open_files(table, reading))]
            files = {file.shown: file for file in opened}
            for file in files.values():
                say_notes(file.shown, file.notes, quiet=output.quiet)
            detector = fit_files(list(files.values()), fitting, make_detector(fitting, calibrate), reading.memory, tell)
    with written_out(model, force=output.force, option="--model") as beside:
        detector.save(beside)
    if not output.quiet:
        where = sys.stderr if is_stdout(model) else sys.stdout
        print_columns(detector, file=where)
        held_out = len(detector.model_.calibration)
        rows = detector.model_.encoding.n_rows
        calibrated = (
            f", {held_out:,} held out to calibrate p-values (at least {1 / (held_out + 1):.2g})" if held_out else ""
        )
        size = Path(model).stat().st_size
        print(f"fitted on {rows:,} rows{calibrated}; written to {printable(model)} ({size:,} bytes)", file=where)
