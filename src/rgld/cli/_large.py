"""Tables larger than memory, in one file or many: fitted in batches.

In: files. Out: a fitted detector. All files must have the columns of the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from rgld.exceptions import TableError

from ._addresses import is_database
from ._files import NotANumberError, TableFile
from ._fitting import clip_infinities, finite_ranges, read_training, require_columns
from ._folders import files_of
from ._memory import GIB, allowed_bytes
from ._numbers import LEADING_ZERO
from ._options import Fitting, Infinity

if TYPE_CHECKING:
    from rgld._detector import Detector

MAX_IN_MEMORY = 4 * GIB
"""Without `--memory`, larger tables are fitted in batches: on any machine the same, so that the models are the same."""


def expanded(paths: Sequence[str]) -> list[str]:
    """Return the files of paths, of folders and of patterns such as `logs/*.parquet`, sorted by name in each. A
    database stays as it is."""
    found = ([path] if is_database(path) else files_of(path) or [path] for path in paths)
    return list(dict.fromkeys(file for files in found for file in files))


def fit_files(
    files: Sequence[TableFile], fitting: Fitting, detector: Detector, memory: float | None, tell: Callable[[str], None]
) -> Detector:
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
        return _fit_batches(files, fitting, detector, features, number_columns_of(files[0], features), tell)
    except NotANumberError:  # read all columns as strings: the rules of reading decide what a cell is
        return _fit_batches(files, fitting, detector, features, {}, tell)


def _fit_batches(
    files: Sequence[TableFile],
    fitting: Fitting,
    detector: Detector,
    features: list[str],
    number_columns: dict[str, Any],
    tell: Callable[[str], None],
) -> Detector:
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


def number_columns_of(file: TableFile, features: list[str]) -> dict[str, Any]:
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
