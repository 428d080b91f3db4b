"""Files that a cluster reads and fits: the workers of a Dask scheduler, or the executors of a Spark master.

In: paths that the workers can read too. Out: a fitted detector.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import polars as pl

from rgld.exceptions import ParameterError, RGLDError, TableError

from ._addresses import is_database, masked
from ._files import NotANumberError, open_table
from ._large import number_columns_of
from ._options import Fitting, Infinity, Reading

if TYPE_CHECKING:
    from rgld import RGLD
    from rgld._detector import Detector

SPARK_CONNECT = "sc://"
"""What the address of a Spark Connect server begins with. Only the server needs Java."""
SPARK_PORTS = {"sc": 15002, "spark": 7077}
"""Usual ports, by the kind of address. Something must answer there, or Spark would try for minutes."""
ANSWER_SECONDS = 10.0
QUIET_SPARK: dict[str, Any] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}


def fit_on_dask(paths: Sequence[str], fitting: Fitting, detector: Detector, address: str, reading: Reading) -> Detector:
    """Fit a detector on files that the workers of a Dask cluster can read."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ParameterError("--dask needs Dask: pip install 'rgld[dask]'.") from error
    _check_files(paths, fitting, "--dask")
    try:
        client = Client(address, timeout="10s", set_as_default=True)
    except (OSError, ValueError) as error:
        raise ParameterError(f"There is no Dask scheduler at {address}: check the address.") from error
    with client:
        try:
            return _fit_frame(_cluster_frames(paths, fitting, reading), fitting, detector)
        except (OSError, ValueError) as error:  # Arrow's errors are of these types
            if isinstance(error, (ParameterError, TableError)):
                raise
            reason = str(error).strip().splitlines()[0][:200]
            raise TableError(f"The workers cannot read the files: {reason}") from error


def _fit_frame(frames: Iterator[Any], fitting: Fitting, detector: Detector) -> Detector:
    """Fit a detector on the workers of the current Dask client. If a column of numbers holds something else, try the
    next frame."""
    import rgld.dask

    estimator = _estimator(detector)
    for frame in frames:
        _check_columns(frame.columns, fitting)
        try:
            return rgld.dask.fit(frame.drop(columns=fitting.set_aside), estimator)
        except NotANumberError:
            continue
    raise AssertionError("strings are always read")


def _estimator(detector: Detector) -> RGLD:
    """Return an unfitted detector as scikit-learn's estimator, which Dask and Spark fit."""
    from rgld import RGLD
    from rgld._detector import given_parameters

    return RGLD(**given_parameters(detector))


def _cluster_frames(paths: Sequence[str], fitting: Fitting, reading: Reading) -> Iterator[Any]:
    """Yield the files as Dask dataframes: as they are, and then, if they are CSV, with all columns as strings."""
    import dask.dataframe as dd

    absolute = [str(Path(path).resolve()) for path in paths]
    if all(Path(path).suffix.lower() == ".parquet" for path in paths):
        yield dd.read_parquet(absolute)
        return
    with open_table(absolute[0], reading) as file:
        names = file.columns()
        features = [name for name in names if name not in fitting.set_aside]
        found = number_columns_of(file, features)
    for number_columns in (found, {}):
        example = pl.DataFrame({name: pl.Series([], dtype=number_columns.get(name, pl.String)) for name in names})
        yield dd.from_map(
            _read_on_worker,
            absolute,
            names=names,
            number_columns=number_columns,
            reading=reading,
            meta=example.to_pandas(),
        )


def _read_on_worker(path: str, names: list[str], number_columns: dict[str, Any], reading: Reading) -> Any:
    """Return a file as a pandas frame, read as the command reads it: a file is a partition."""
    with open_table(path, reading) as file:
        missing = set(names) - set(file.columns())
        if missing:
            raise TableError(f"{file.shown} has no column {min(missing)!r}, which the first file has.")
        frames = list(file.batches(names, number_columns, may_be_empty=True))
    return pl.concat(frames).to_pandas() if frames else pl.DataFrame({name: [] for name in names}).to_pandas()


def fit_on_spark(paths: Sequence[str], fitting: Fitting, detector: Detector, master: str) -> Detector:
    """Fit a detector on Parquet files that the executors of a Spark master can read."""
    try:
        import rgld.spark
    except ImportError as error:
        raise ParameterError("--spark needs PySpark: pip install 'rgld[spark]'.") from error
    _check_files(paths, fitting, "--spark")
    other = next((path for path in paths if Path(path).suffix.lower() != ".parquet"), None)
    if other is not None:
        raise ParameterError(f"--spark reads Parquet files, got {other}: fit without --spark, or with --dask.")
    with _spark_session(master) as spark:
        try:
            df = spark.read.parquet(*(str(Path(path).resolve()) for path in paths))
            _check_columns(df.columns, fitting)
            return rgld.spark.fit(df.drop(*fitting.set_aside), _estimator(detector))
        except RGLDError:
            raise
        except Exception as error:  # Spark has many kinds
            raise TableError(f"Spark cannot read the files: {_first_line(error)}") from error


@contextmanager
def _spark_session(master: str) -> Iterator[Any]:
    """Yield a session of a Spark master, and stop it afterwards."""
    from pyspark.sql import SparkSession

    _require_answer(master)
    builder = SparkSession.builder.appName("rgld fit")
    if master.startswith(SPARK_CONNECT):
        builder = builder.remote(master)
    else:
        home = os.environ.get("JAVA_HOME")  # Spark looks nowhere else if it is set
        if shutil.which("java", path=f"{home}/bin" if home else None) is None:
            raise ParameterError("--spark needs Java 17 or newer: install it, or set JAVA_HOME to where it is.")
        builder = builder.master(master).config(map=QUIET_SPARK)
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # executors are on this machine
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark", RuntimeWarning)
        try:
            spark = builder.getOrCreate()
        except Exception as error:
            raise ParameterError(f"Spark cannot be started on {_shown(master)}: {_first_line(error)}.") from error
        try:
            yield spark
        finally:
            with suppress(Exception):  # a session that was interrupted cannot always be stopped in order
                spark.stop()


def _require_answer(master: str) -> None:
    """Raise if nothing listens at the address of a master or a Connect server. Of several masters, one may be down."""
    kind, _, rest = master.partition("://")
    if kind not in SPARK_PORTS or "," in rest:
        return
    try:
        parts = urlsplit("//" + rest.split(";")[0])
        socket.create_connection((parts.hostname or "", parts.port or SPARK_PORTS[kind]), ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise ParameterError(f"There is no Spark at {_shown(master)}: check the address.") from error


def _shown(master: str) -> str:
    """Return an address without what may be secret: the options of a Connect server, a token among them."""
    return masked(master.split(";")[0])


def _first_line(error: BaseException) -> str:
    """Return what an error says, in one line, without the call and the Java class that Spark puts before it."""
    lines = [line.strip(": \t") for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        lines = lines[1:]
    said = re.sub(r"^(?:[\w$]+\.)+[\w$]+: ", "", lines[0]) if lines else ""
    return (said or type(error).__name__).rstrip(".:")[:200]


def _check_files(paths: Sequence[str], fitting: Fitting, option: str) -> None:
    """Raise if something is not a file, or asked for what a cluster does not do."""
    other = next((path for path in paths if path == "-" or is_database(path)), None)
    if other is not None:
        raise ParameterError(f"{option} reads files, got {other}: fit without {option}.")
    if fitting.inf is Infinity.clip:
        raise ParameterError(f"--inf clip does not go together with {option}: replace the infinite numbers first.")
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise TableError(f"There is no file {missing[0]}: check the path.")


def _check_columns(present: Sequence[str], fitting: Fitting) -> None:
    """Raise if the column of `--id` or `--label` is not in the files."""
    for option, name in (*(("--id", name) for name in fitting.keys), ("--label", fitting.label)):
        if name is not None and name not in present:
            raise ParameterError(f"{option} {name}: the files have no such column.")
