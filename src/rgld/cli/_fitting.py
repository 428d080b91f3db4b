"""Fitting: a detector fitted on a file.

In: a file and options. Out: a fitted detector. This module prints nothing. The detector, and scikit-learn with it, is
loaded when it is first used, so that a wrong path is reported at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from rgld.exceptions import ParameterError, TableError

from ._files import TableFile
from ._options import Fitting, Infinity, Preset
from ._output import printed_column

if TYPE_CHECKING:
    from rgld._arrays import Floats
    from rgld._detector import Detector


def make_detector(fitting: Fitting, calibrate: float = 0.0) -> Detector:
    """Return an unfitted detector."""
    from rgld._detector import Detector  # not for `--help` and wrong paths: it takes a while to load

    makers: dict[Preset, Callable[..., Detector]] = {
        Preset.paper: Detector,
        Preset.fast: Detector.fast,
        Preset.plus: Detector.plus,
        Preset.novelty: Detector.novelty,
    }
    return makers[fitting.preset or Preset.plus](
        random_state=fitting.seed or 0,
        n_jobs=fitting.jobs,
        columns=fitting.column_kinds(),
        na_values=fitting.na_values(),
        calibration_fraction=calibrate,
    )


def read_training(file: TableFile, fitting: Fitting) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the whole table, and the columns of it that the model uses."""
    frame = file.read()
    require_columns(file, frame.columns, fitting)
    features = frame.drop(set(fitting.set_aside))
    if fitting.inf is Infinity.clip:
        features = clip_infinities(features, None)
    return frame, features


def require_columns(file: TableFile, present: Sequence[str], fitting: Fitting) -> None:
    """Raise an error if the column of `--id` or `--label` is not in the file."""
    for option, name in (*(("--id", name) for name in fitting.keys), ("--label", fitting.label)):
        if name is not None and name not in present:
            near = get_close_matches(name.lower(), [column.lower() for column in present], n=1)
            meant = next((column for column in present if [column.lower()] == near), None)
            few = ", ".join(present[:8]) + (f" and {len(present) - 8:,} more" if len(present) > 8 else "")
            hint = f"it has {few}." if meant is None else f"did you mean {meant}?"
            raise ParameterError(f"{option} {name}: {file.shown} has no such column; {hint}")


def row_names(frame: pl.DataFrame, fitting: Fitting) -> pl.Series | None:
    """Return the names of the rows: the column of `--id` or, of several, their values in one string; else None."""
    keys = fitting.keys
    if len(keys) < 2:
        return frame[keys[0]] if keys else None
    strings = [printed_column(frame[name]).fill_null("") for name in keys]
    return pl.DataFrame(strings).select(pl.concat_str(pl.all(), separator=" ").alias(" ".join(keys))).to_series()


INFINITE_STRINGS = r"(?i)^\s*[+-]?inf(inity)?\s*$"


def clip_infinities(
    frame: pl.DataFrame, detector: Detector | None, ranges: Mapping[str, Floats] | None = None
) -> pl.DataFrame:
    """Return the frame with infinite numbers replaced by the column's largest and smallest finite numbers.

    These are numbers of the frame itself or, with a fitted detector, of its training rows; or `ranges` gives them, by
    column, if the frame is a part of a table (`finite_ranges`). All other cells stay as they are.
    """
    columns = []
    for place, (name, dtype) in enumerate(frame.schema.items()):
        if not (dtype.is_float() or dtype == pl.String):
            continue
        column = pl.col(name)
        infinite = column.is_infinite() if dtype.is_float() else column.str.contains(INFINITE_STRINGS)
        if not frame.select(infinite.any()).item():
            continue
        finite = _finite_numbers(frame[name], place, detector) if ranges is None else ranges[name]
        if finite is None or (not len(finite) and dtype == pl.String):  # "inf" is a category, or not used
            continue
        if not len(finite):
            raise TableError(f"Column {name!r} has infinite numbers only: leave it out with --column {name}=drop.")
        low, high = (pl.lit(float(bound)).cast(dtype) for bound in (finite.min(), finite.max()))
        below = column < 0 if dtype.is_float() else column.str.contains("-", literal=True)
        columns.append(pl.when(infinite & below).then(low).when(infinite).then(high).otherwise(column).alias(name))
    return frame.with_columns(columns)


def finite_ranges(frames: Iterable[pl.DataFrame]) -> dict[str, Floats]:
    """Return the smallest and largest finite number of each column of a table in parts; nothing if it has none."""
    ranges: dict[str, Floats] = {}
    for frame in frames:
        for name, dtype in frame.schema.items():
            if dtype.is_float() or dtype == pl.String:
                numbers = _finite_numbers(frame[name], 0, None)
                assert numbers is not None, "there is no detector that reads no numbers"
                held = np.concatenate((ranges.get(name, np.empty(0)), numbers))
                ranges[name] = np.array([held.min(), held.max()]) if len(held) else held
    return ranges


def _finite_numbers(column: pl.Series, place: int, detector: Detector | None) -> Floats | None:
    """Return the finite numbers of a column, or those a detector was fitted on; None if it reads no numbers there."""
    numbers: Floats
    if detector is None:
        numbers = column.cast(pl.Float64, strict=False).to_numpy()
    else:
        encoding = detector.model_.encoding
        if encoding.columns[place].kind in ("dropped", "category"):
            return None
        numbers = detector.model_.kept_rows.rows[:, encoding.starts[place]]
    return numbers[np.isfinite(numbers)]
