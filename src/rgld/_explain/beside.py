"""Beside what: the value of another column that makes a value unusual which is not unusual by itself.

In: the kept rows, a row, a column. Out: half a sentence that names one partner and what is usual beside it, or "" if
no single column explains it. The partner is the column among whose similar rows such values are rarest, compared with
all rows.
"""

import numpy as np

from .._arrays import Float64s, Indices
from .._table.shown import percent, short
from .._table.table import Table
from . import words
from .kept_columns import KeptColumn, KeptColumns

SIMILAR_FRACTION, MIN_SIMILAR = 0.1, 30
"""Rows that are similar in a number: the nearest `SIMILAR_FRACTION` of the kept rows by rank, at least `MIN_SIMILAR`
rows. Rows that are similar in a category have the same value; there must be at least `MIN_SIMILAR` of them too."""
MAX_BESIDE_FRACTION, MAX_BESIDE_RATIO = 0.4, 0.7
"""A value of a category is unusual beside another value if at most `MAX_BESIDE_FRACTION` of the similar rows have it,
and if this is at most `MAX_BESIDE_RATIO` times the fraction of all rows that have it."""
MAX_EXTREME = 0.05
"""A number is unusual beside another value if at most this fraction of the similar rows has a number as extreme."""
MAX_PARTNERS_TRIED = 16
"""Partners that are tried: the columns that contributed most."""


def beside_reason(
    kept: KeptColumns,
    table: Table,
    encoded: Float64s,
    row: int,
    j: int,
    contributed: Float64s,
) -> str:
    """Return what is unusual about the value of column j of a row, which is also given encoded."""
    own, number = kept[j], kept.number_of(j, encoded)
    is_number = not own.has_values and not np.isnan(number)
    most = min(MAX_EXTREME if is_number else MAX_BESIDE_FRACTION, MAX_BESIDE_RATIO * own.fraction(number))
    n_similar = max(MIN_SIMILAR, round(SIMILAR_FRACTION * kept.n_rows))
    best: tuple[float, int, Indices] | None = None
    tried = [int(k) for k in np.argsort(-contributed, kind="stable") if k != j and kept.encoding.columns[k].parts]
    for k in tried[:MAX_PARTNERS_TRIED]:
        similar = kept[k].rows_near(kept.number_of(k, encoded), n_similar)
        if len(similar) >= MIN_SIMILAR:
            fraction = own.fraction(number, similar)
            if fraction <= most and (best is None or fraction < best[0]):
                best = fraction, k, similar
    if best is None:
        return ""
    fraction, k, similar = best
    value, other = words.values_of(kept.encoding, table, np.array([row]), [j, k])[0]
    partner = kept.encoding.columns[k]
    return _sentence(own, value, fraction, similar, f"{short(partner.name)} {_quoted(partner.kind, other)}")


def _sentence(kept: KeptColumn, own: words.Value, fraction: float, similar: Indices, beside: str) -> str:
    column = kept.column
    name = short(column.name)
    if kept.has_values or np.isnan(own.number):
        often = f"{percent(fraction)} of the rows" if fraction else "none of the rows"
        return f"{name} {_quoted(column.kind, own)} is unusual beside {beside} ({often} there)"
    text, usual = words.with_usual(column, own, *kept.usual_among(similar))
    said = f"{name}{' = ' if name[-1:].isdigit() else ' '}{text}"
    return f"{said} is unusual beside {beside} ({usual} there)"


def _quoted(kind: str, value: words.Value) -> str:
    if not value.text:
        return "missing"
    return f"'{short(value.text)}'" if kind == "category" else short(value.text)
