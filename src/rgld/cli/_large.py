"""Tables larger than memory, of one file or of many: fitted in batches, or on a Dask cluster.

In: files. Out: a fitted detector. All files must have the columns of the first.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rgld.exceptions import ParameterError, TableError

from ._files import NotANumberError, TableFile
from ._fitting import Asked, Infinity, fit_file, make_detector, require_columns

if TYPE_CHECKING:
    from rgld import RGLD

BYTES_PER_CELL = 32
"""Memory that a cell takes in a fit on a whole table: as read, as a number, and what is made of it."""
BYTES_PER_CSV_BYTE = 6
GIB = 2**30


def expanded(paths: Sequence[str]) -> list[str]:
    """Return the files that paths and patterns such as `logs/*.parquet` name, those of a pattern by name."""
    found: list[str] = []
    for path in paths:
        if path == "-" or Path(path).exists() or not glob.has_magic(path):
            found.append(path)
            continue
        matching = sorted(glob.glob(path, recursive=True))
        if not matching:
            raise TableError(f"There is no file that matches {path}: check the pattern.")
        found += matching
    return list(dict.fromkeys(found))


def fit_files(files: Sequence[TableFile], asked: Asked, memory: float, tell: Callable[[str], None]) -> RGLD:
    """Fit a detector on one or several files, within so many GiB: on a whole table if it fits, else in batches."""
    if len(files) == 1 and _needed_bytes(files[0]) <= memory * GIB:
        return fit_file(files[0], asked)
    if asked.inf is Infinity.clip:
        raise ParameterError(
            "--inf clip needs a single table in memory, and this one goes through in batches: raise --memory, or "
            "replace infinities first."
        )
    names = files[0].columns()
    require_columns(files[0], names, asked)
    features = [name for name in names if name not in (asked.id, asked.label)]
    for file in files[1:]:
        missing = set(features) - set(file.columns())
        if missing:
            raise TableError(f"{file.shown} has no column {min(missing)!r}, which {files[0].shown} has.")
    try:
        return _fit_batches(files, asked, features, _number_columns(files[0], features), tell)
    except NotANumberError:  # a later cell is none: all columns as text, then, and the rules of reading decide
        return _fit_batches(files, asked, features, {}, tell)


def _fit_batches(
    files: Sequence[TableFile], asked: Asked, features: list[str], numbers: dict[str, Any], tell: Callable[[str], None]
) -> RGLD:
    def batches() -> Iterator[pl.DataFrame]:
        for file in files:
            yield from file.batches(features, numbers, may_be_empty=True)

    def on_rows(number: int, rows: int) -> None:
        tell(f"fitting, pass {number}: {rows:,} rows")

    return make_detector(asked).fit_batches(batches, on_rows=on_rows)


def _number_columns(file: TableFile, features: list[str]) -> dict[str, Any]:
    """Return the columns that hold numbers in the first rows of a CSV file; other files know the types of theirs."""
    if not file.csv:
        return {}
    head = next(file.batches(features, {}, may_be_empty=True), pl.DataFrame({name: [] for name in features}))
    are_numbers = [name for name in features if _are_numbers(head[name])]
    return dict.fromkeys(are_numbers, pl.Float64)


def _are_numbers(texts: pl.Series) -> bool:
    found = texts.cast(pl.Float64, strict=False)
    return found.null_count() == texts.null_count() < len(texts)


def _needed_bytes(file: TableFile) -> float:
    if file.csv:
        return float(BYTES_PER_CSV_BYTE * file.path.stat().st_size)
    return float(BYTES_PER_CELL * file.n_cells())


def fit_on_cluster(paths: Sequence[str], asked: Asked, address: str) -> RGLD:
    """Fit a detector on Parquet files that the workers of a Dask cluster can read."""
    try:
        import dask.dataframe as dd
        from dask.distributed import Client

        import rgld.dask
    except ImportError as error:
        raise ParameterError("--dask needs Dask: pip install 'rgld[dask]'.") from error
    other = next((path for path in paths if Path(path).suffix.lower() != ".parquet"), None)
    if other is not None:
        raise ParameterError(f"--dask reads .parquet files, got {other}: convert it, or fit without --dask.")
    if asked.inf is Infinity.clip:
        raise ParameterError("--inf clip does not go together with --dask: replace infinities first.")
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise TableError(f"There is no file {missing[0]}: check the path.")
    try:
        client = Client(address, timeout="10s", set_as_default=True)
    except (OSError, ValueError) as error:
        raise ParameterError(f"There is no Dask scheduler at {address}: check the address.") from error
    with client:
        try:
            frame = dd.read_parquet([str(Path(path).resolve()) for path in paths])
            for option, name in (("--id", asked.id), ("--label", asked.label)):
                if name is not None and name not in frame.columns:
                    raise ParameterError(f"{option} {name}: the files have no such column.")
            unused = [name for name in (asked.id, asked.label) if name is not None]
            return rgld.dask.fit(frame.drop(columns=unused), make_detector(asked))
        except (OSError, ValueError) as error:  # Arrow's errors are of these kinds
            if isinstance(error, (ParameterError, TableError)):
                raise
            reason = str(error).strip().splitlines()[0][:200]
            raise TableError(f"The workers cannot read the files as Parquet: {reason}") from error
