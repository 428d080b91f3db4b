"""Fitting: what a user asked for, and a detector fitted on a file.

In: a file and options. Out: a fitted detector. No printing here. The detector, and scikit-learn with it, is loaded when
it is needed: a wrong path is said at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import rgld
from rgld.exceptions import ParameterError, TableError

from ._files import TableFile

if TYPE_CHECKING:
    from rgld import RGLD


class Preset(StrEnum):
    """The detector's settings."""

    paper = "paper"
    fast = "fast"
    plus = "plus"


class Infinity(StrEnum):
    """What to do with infinite numbers."""

    error = "error"
    clip = "clip"


@dataclass(frozen=True)
class Asked:
    """What a user asked for."""

    id: str | None = None
    label: str | None = None
    inf: Infinity = Infinity.error
    preset: Preset = Preset.plus
    seed: int = 0
    columns: dict[str, str] | None = None
    jobs: int | None = None
    calibrate: float = 0.0
    rows: tuple[str, ...] = ()
    """Ids of rows to keep instead of the most anomalous ones."""


def make_detector(asked: Asked) -> RGLD:
    """Return an unfitted detector."""
    makers: dict[Preset, Callable[..., RGLD]] = {
        Preset.paper: rgld.RGLD,
        Preset.fast: rgld.RGLD.fast,
        Preset.plus: rgld.RGLD.plus,
    }
    return makers[asked.preset](
        random_state=asked.seed,
        n_jobs=asked.jobs,
        columns=asked.columns,
        calibration_fraction=asked.calibrate,
    )


def read_training(file: TableFile, asked: Asked) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the whole table, and the columns of it that a model may see."""
    frame = file.read()
    require_columns(file, frame.columns, asked)
    features = frame.drop([name for name in (asked.id, asked.label) if name is not None])
    if asked.inf is Infinity.clip:
        features = clip_infinities(features, None)
    return frame, features


def fit_file(file: TableFile, asked: Asked) -> RGLD:
    """Fit a detector on a file."""
    _, features = read_training(file, asked)
    return make_detector(asked).fit(features)


def require_columns(file: TableFile, present: Sequence[str], asked: Asked) -> None:
    """Raise if a column that was named is not there."""
    for option, name in (("--id", asked.id), ("--label", asked.label)):
        if name is not None and name not in present:
            few = ", ".join(present[:8]) + (", ..." if len(present) > 8 else "")
            raise ParameterError(f"{option} {name}: {file.shown} has no such column; it has {few}.")


INFINITE_TEXTS = r"(?i)^\s*[+-]?inf(inity)?\s*$"


def clip_infinities(frame: pl.DataFrame, detector: RGLD | None) -> pl.DataFrame:
    """Return the frame with infinite numbers replaced by the column's largest and smallest finite ones: of this table
    or, for a fitted detector, of its training sample. All other cells stay as they are."""
    columns = []
    for place, (name, dtype) in enumerate(frame.schema.items()):
        if not (dtype.is_float() or dtype == pl.String):
            continue
        column = pl.col(name)
        infinite = column.is_infinite() if dtype.is_float() else column.str.contains(INFINITE_TEXTS)
        if not frame.select(infinite.any()).item():
            continue
        finite = frame[name].cast(pl.Float64, strict=False).to_numpy()
        if detector is not None:
            encoding = detector.model_.encoding
            if encoding.columns[place].kind in ("dropped", "category"):
                continue
            finite = detector.model_.sample.rows[:, encoding.starts[place]]
        finite = finite[np.isfinite(finite)]
        if not len(finite) and dtype == pl.String:  # a category with such a value
            continue
        if not len(finite):
            raise TableError(f"Column {name!r} holds nothing but infinities: leave it out with --column {name}=drop.")
        low, high = (pl.lit(float(bound)).cast(dtype) for bound in (finite.min(), finite.max()))
        below = column < 0 if dtype.is_float() else column.str.contains("-", literal=True)
        columns.append(pl.when(infinite & below).then(low).when(infinite).then(high).otherwise(column).alias(name))
    return frame.with_columns(columns)
