"""New gaps: values that are missing in a column where no training row missed one.

In: rows as they were read, and encoded. Out: which rows have a new gap, and how rare that is. A single column counts
little among many in a view, and a gap is no number that could lie far away: so a new gap is evidence of its own.
"""

from collections.abc import Iterator

import numpy as np

from .._arrays import Float64s, Floats, Indices
from .columns import without_values
from .encoding import Column, Encoding, read_values
from .table import Table

MAX_SCREENED_ROWS = 16
"""Up to this many rows are first looked at all together, so that a single row is not slowed by a loop over columns."""


def new_gaps(encoding: Encoding, table: Table, matrix: Floats) -> Iterator[tuple[int, Indices]]:
    """Yield the columns in which some rows have a new gap, and these rows."""
    columns, places, values = encoding.gap_codes
    values = values.astype(matrix.dtype)
    if not len(columns) or (len(matrix) <= MAX_SCREENED_ROWS and not (matrix[:, places] == values).any()):
        return
    for j, place, value in zip(columns.tolist(), places.tolist(), values, strict=True):
        rows = np.flatnonzero(matrix[:, place] == value)
        if len(rows):  # or rows that hold this very number, or a category's value that was never seen
            rows = rows[_is_missing(encoding.columns[j], table, j, rows)]
        if len(rows):
            yield j, rows


def _is_missing(column: Column, table: Table, j: int, rows: Indices) -> Indices:
    raw = table.column(j, rows)
    if column.kind == "category":
        return np.flatnonzero(without_values(raw, column.na_values).missing)
    return np.flatnonzero(np.isnan(read_values(column, raw)))


def gap_score(encoding: Encoding, table: Table, matrix: Floats) -> Float64s | None:
    """Return the gap score of each row, 1 - p if it has a new gap and 0 if it has none; None if no row can have one.

    p is the fraction of new rows that are expected to have a new gap, if they are like the training rows: Good and
    Turing's estimate, (columns with a gap in exactly one training row + 1) / (training rows + 1).
    """
    if not len(encoding.gap_codes[0]):
        return None
    score = np.zeros(len(matrix))
    for _, rows in new_gaps(encoding, table, matrix):
        score[rows] = 1.0 - min(1.0, (_n_single_gaps(encoding) + 1.0) / (encoding.n_rows + 1.0))
    return score


def _n_single_gaps(encoding: Encoding) -> int:
    """Return the number of columns in which exactly one training row misses its value."""
    return sum(
        column.counts[column.values.index("")] == 1
        if "" in column.values
        else round(column.gap_share * encoding.n_rows) == 1
        for column in encoding.columns
    )
