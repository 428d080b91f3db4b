"""Tables larger than memory, in one file or many: fitted in batches, or on a Dask cluster.

In: files. Out: a fitted detector. All files must have the columns of the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from rgld.exceptions import ParameterError, TableError

from ._addresses import is_database
from ._files import NotANumberError, TableFile, open_table
from ._fitting import clip_infinities, finite_ranges, read_training, require_columns
from ._folders import files_of
from ._memory import GIB, allowed_bytes
from ._numbers import LEADING_ZERO
from ._options import Fitting, Infinity, Reading

if TYPE_CHECKING:
    from rgld import RGLD

MAX_IN_MEMORY = 4 * GIB
"""Without `--memory`, larger tables are fitted in batches: on any machine the same, so that the models are the same."""


def expanded(paths: Sequence[str]) -> list[str]:
    """Return the files of paths, of folders and of patterns such as `logs/*.parquet`, sorted by name in each. A
    database stays as it is."""
    found = ([path] if is_database(path) else files_of(path) or [path] for path in paths)
    return list(dict.fromkeys(file for files in found for file in files))


def fit_files(
    files: Sequence[TableFile], fitting: Fitting, detector: RGLD, memory: float | None, tell: Callable[[str], None]
) -> RGLD:
    """Fit a detector on one or several files: in memory if a single table fits into `memory` GiB, else in batches."""
    limit = min(MAX_IN_MEMORY, allowed_bytes(None)) if memory is None else memory * GIB
    if len(files) == 1 and files[0].fit_bytes() <= limit:
        return detector.fit(read_training(files[0], fitting)[1])
    names = files[0].columns()
    require_columns(files[0], names, fitting)
    features = [name for name in names if name not in fitting.set_aside]
    for file in files[1:]:
        missing = set(features) - set(file.columns())
        if missing:
            raise TableError(f"{file.shown} has no column {min(missing)!r}, which {files[0].shown} has.")
    try:
        return _fit_batches(files, fitting, detector, features, _number_columns(files[0], features), tell)
    except NotANumberError:  # read all columns as strings: the rules of reading decide what a cell is
        return _fit_batches(files, fitting, detector, features, {}, tell)


def _fit_batches(
    files: Sequence[TableFile],
    fitting: Fitting,
    detector: RGLD,
    features: list[str],
    number_columns: dict[str, Any],
    tell: Callable[[str], None],
) -> RGLD:
    def as_read() -> Iterator[pl.DataFrame]:
        for file in files:
            yield from file.batches(features, number_columns, may_be_empty=True)

    # One more pass: what infinite numbers become is a number of the whole table.
    ranges = finite_ranges(as_read()) if fitting.inf is Infinity.clip else None

    def batches() -> Iterator[pl.DataFrame]:
        return as_read() if ranges is None else (clip_infinities(frame, None, ranges) for frame in as_read())

    def on_rows(number: int, rows: int) -> None:
        tell(f"fitting, pass {number}: {rows:,} rows")

    return detector.fit_batches(batches, on_rows=on_rows)


def _number_columns(file: TableFile, features: list[str]) -> dict[str, Any]:
    """Return the columns of a CSV file whose first rows hold numbers; other files know the types of their columns."""
    if not file.csv:
        return {}
    head = next(file.batches(features, {}, may_be_empty=True), pl.DataFrame({name: [] for name in features}))
    are_numbers = [name for name in features if _are_numbers(head[name])]
    return dict.fromkeys(are_numbers, pl.Float64)


def _are_numbers(strings: pl.Series) -> bool:
    if strings.str.contains(LEADING_ZERO).any():  # perhaps codes, which would lose their zeros
        return False
    found = strings.cast(pl.Float64, strict=False)
    return found.null_count() == strings.null_count() < len(strings)


def fit_on_cluster(paths: Sequence[str], fitting: Fitting, detector: RGLD, address: str, reading: Reading) -> RGLD:
    """Fit a detector on files that the workers of a Dask cluster can read."""
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise ParameterError("--dask needs Dask: pip install 'rgld[dask]'.") from error
    other = next((path for path in paths if path == "-" or is_database(path)), None)
    if other is not None:
        raise ParameterError(f"--dask reads files, got {other}: fit without --dask.")
    if fitting.inf is Infinity.clip:
        raise ParameterError("--inf clip does not go together with --dask: replace the infinite numbers first.")
    missing = [path for path in paths if not Path(path).exists()]
    if missing:
        raise TableError(f"There is no file {missing[0]}: check the path.")
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


def _fit_frame(frames: Iterator[Any], fitting: Fitting, detector: RGLD) -> RGLD:
    """Fit a detector on the workers of the current Dask client; if numbers are none, on the next frame."""
    import rgld.dask

    for frame in frames:
        for option, name in (*(("--id", name) for name in fitting.keys), ("--label", fitting.label)):
            if name is not None and name not in frame.columns:
                raise ParameterError(f"{option} {name}: the files have no such column.")
        try:
            return rgld.dask.fit(frame.drop(columns=fitting.set_aside), detector)
        except NotANumberError:
            continue
    raise AssertionError("strings are always read")


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
        found = _number_columns(file, features)
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
