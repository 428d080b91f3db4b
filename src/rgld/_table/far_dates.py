"""Dates of another age: 2042 in a table of 2024.

In: rows as they were read, and encoded. Out: which rows have such a date, and the least anomaly score that it gives
them. A date counts half in a view, and only some views see it: so a date far from all others is evidence of its own.
"""

from collections.abc import Iterator

import numpy as np

from .._arrays import Float64s, Floats, Indices
from .encoding import Column, Encoding, read_values
from .future import MAX_FAR_FRACTION, natural_limits
from .table import Table

CLEARLY_FAR_SPANS = 2.0
"""A date is clearly of another age if it lies so many spans of the training dates beyond what is natural."""
FARTHEST = 1e30
HIGHEST_SCORE = 1.0 - 2.0**-53
"""The largest number below 1."""


def far_dates(encoding: Encoding, table: Table, matrix: Floats) -> Iterator[tuple[int, Indices, Float64s]]:
    """Yield the columns in which some rows have a date of another age, these rows, and the least anomaly score of
    each."""
    columns, places, low, high = encoding.date_limits
    if not len(columns):
        return
    found = matrix[:, places]
    far = (found < low) | (found > high)
    for k in np.flatnonzero(far.any(axis=0)):
        j, rows = int(columns[k]), np.flatnonzero(far[:, k])
        dates = read_values(encoding.columns[j], table.column(j, rows))  # a missing value may be encoded far out, too
        scores = _scores(encoding.columns[j], dates, encoding.n_rows)
        if scores.any():
            yield j, rows[scores > 0.0], scores[scores > 0.0]


def _scores(column: Column, dates: Float64s, n_rows: int) -> Float64s:
    """Return the least anomaly score of each date, 0 if it is natural, or as far out as more than a few training dates.

    Clearly far dates have 1 - p / 2, as the most anomalous training row has, and more the farther they are. Here p is
    the fraction of rows that are expected to have such a date: (training rows that have one + 1) / (training rows + 1).
    Nearer ones have 1 - p^w / 2, where w grows from 0 to 1 as the square of the distance.
    """
    limits = natural_limits(column.date_knots)
    span = column.date_knots[-1] - column.date_knots[0]
    most = 0.0 if column.kind == "number" else MAX_FAR_FRACTION  # numbers of the training table keep their scores
    scores = np.zeros(len(dates))
    for share, beyond in zip(column.far_shares, (limits[0] - dates, dates - limits[1]), strict=True):
        far = beyond > 0.0
        if share > most or not far.any():
            continue
        p = (share * n_rows + 1.0) / (n_rows + 1.0)
        with np.errstate(over="ignore"):  # by a forged model, whose dates hardly differ
            distance = np.minimum(beyond[far] / span / CLEARLY_FAR_SPANS, FARTHEST)
        scores[far] = 1.0 - 0.5 * p ** np.minimum(distance**2, 1.0) / np.maximum(distance, 1.0)
    return np.minimum(scores, HIGHEST_SCORE)


def date_score(encoding: Encoding, table: Table, matrix: Floats) -> Float64s | None:
    """Return the least anomaly score of each row by its dates, 0 if they are natural; None if no row can have one."""
    if not len(encoding.date_limits[0]):
        return None
    score = np.zeros(len(matrix))
    for _, rows, scores in far_dates(encoding, table, matrix):
        score[rows] = np.maximum(score[rows], scores)
    return score
