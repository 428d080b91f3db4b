"""Results: the table that `rgld score` writes.

In: a `Scored` table. Out: a frame with a line per row.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from rgld._arrays import Bools
from rgld._threshold import select_by_fdr
from rgld.exceptions import ParameterError

from ._scoring import Scored

MAX_REASONS = 1000
"""Rows of the output with reasons: the most anomalous ones. Nobody reads reasons for a million rows."""


def id_name(ids: pl.Series, taken: Sequence[str]) -> str:
    """Return a name for the column of ids that no other column has."""
    name = ids.name
    while name in taken:
        name = f"id_{name}"
    return name


def result_frame(
    scored: Scored,
    fdr: float | None,
    reasons: Sequence[str],
    broken: Sequence[str] | None = None,
    table: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the output: id, score, rank, p-value (or top share), whether selected; of the most anomalous rows the
    reasons and, if the model has relations, the one that each breaks.

    With the table itself, its columns stand before them. A column of the output whose name the table has is called
    `rgld_score` or the like.
    """
    columns: dict[str, Any] = {"score": scored.scores, "rank": scored.ranks}
    if scored.p_values is None:
        columns["top_share"] = scored.top_share
    else:
        columns["p_value"] = scored.p_values
    if fdr is not None:
        columns["selected"] = selected(scored, fdr)
    if broken is not None:
        columns["broken_relation"] = _of_top_rows(scored, broken)
    columns["reasons"] = _of_top_rows(scored, reasons)
    name = id_name(scored.ids, list(columns))
    if table is None:
        return pl.DataFrame({name: scored.ids, **columns})
    if scored.ids.name not in table.columns:  # lines or row indices
        table = table.insert_column(0, scored.ids)
    return table.with_columns(pl.Series(_free_name(name, table.columns), values) for name, values in columns.items())


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"rgld_{name}"
    return name


def _of_top_rows(scored: Scored, strings: Sequence[str]) -> pl.Series:
    """Return a column that has these strings in the most anomalous rows, and "" in all others."""
    column = np.full(len(scored.scores), "", dtype=object)
    column[scored.top_rows[: len(strings)]] = strings
    return pl.Series(column.tolist(), dtype=pl.String)


def min_selected(scored: Scored, fdr: float) -> int:
    """Return the size of the smallest possible selection: the smallest p-value is 1 / (calibration rows + 1)."""
    return math.ceil(len(scored.scores) / ((len(scored.detector.model_.calibration) + 1) * fdr))


def selected(scored: Scored, fdr: float) -> Bools:
    """Return the selection at a false-discovery rate."""
    if scored.p_values is None:
        raise ParameterError("--fdr needs a calibrated model: fit it with `rgld fit --calibrate 0.2`.")
    return select_by_fdr(scored.p_values, fdr)
