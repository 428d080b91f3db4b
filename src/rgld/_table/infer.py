"""Inference: what each column is, decided from the training rows.

In: columns as they were read, and what the user asked for. Out: an `Encoding`: the kind of each column, the values of a
category and how often each comes, whether values are missing and what replaces them. docs/tables.md lists every rule.
"""

import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from .._arrays import Float64s, Floats
from ..exceptions import TableError
from . import cells, codes
from .columns import RawColumn, without_values
from .encoding import KIND_PLURALS, Column, Encoding, read_values
from .infer_numbers import (
    CURED_BY,
    MAX_SHOWN_NAME,
    NO_VALUE,
    SUSPECTED,
    Learned,
    boolean_if_binary,
    large_note,
    learn_numbers,
    stamps_of,
    with_gaps,
)
from .infer_strings import category_column, code_column, learn_strings
from .summary import ColumnSummary

NaValues = Mapping[str, Sequence[str | float]] | Sequence[str | float] | None
"""Values that count as missing: by column, or of all columns."""


def infer_encoding(
    columns: Sequence[RawColumn],
    readings: Mapping[str, str] | None = None,
    summaries: Sequence[ColumnSummary] | None = None,
    n_rows: int | None = None,
    na_values: NaValues = None,
) -> Encoding:
    """Return how each column is read. `na_values` are values that count as missing, of all columns or by column.

    The columns are those of all rows; or of a sample, with `summaries` of all rows; or of a sample of a table of
    `n_rows` rows, without summaries.

    Raises
    ------
    TableError
        If no column can be used, or a column cannot be read as `readings` asks.
    """
    readings = readings or {}
    names = {column.name for column in columns}
    for name, reading in readings.items():
        if name not in names:
            raise TableError(f"There is no column {name!r} to read as {reading!r}: check its name.")
    check_na_values(na_values, names)
    columns = [without_values(column, na_values_of(na_values, column.name)) for column in columns]
    if summaries is None:
        learned = [_learn(column, readings.get(column.name), None, n_rows) for column in columns]
    else:
        learned = [
            _learn(summary.completed(column), readings.get(column.name), summary)
            for column, summary in zip(columns, summaries, strict=True)
        ]
    learned = _with_common_cure(_with_paired_codes(columns, learned, readings, summaries))
    if na_values:
        learned = [(replace(column, na_values=na_values_of(na_values, column.name)), fill) for column, fill in learned]
    return _encoding_of(learned, len(columns[0]) if summaries is None else summaries[0].n_rows)


def _with_common_cure(learned: Sequence[Learned]) -> list[Learned]:
    """Return how columns are read. If the same value may stand for a missing one in several columns, one option cures
    them all."""
    times = Counter(hint.partition(SUSPECTED)[0] for (column, _) in learned if SUSPECTED in (hint := column.hint))
    result = []
    for column, fill in learned:
        value, found, _ = column.hint.partition(SUSPECTED)
        if found and times[value] > 1:
            column = replace(column, hint=f"{column.hint.partition(CURED_BY)[0]}{CURED_BY}{shlex.quote(value)}")
        result.append((column, fill))
    return result


def na_values_of(na_values: NaValues, name: str) -> tuple[str, ...]:
    """Return the values that count as missing in a column, as strings."""
    own = na_values.get(name, ()) if isinstance(na_values, Mapping) else na_values or ()
    return tuple(value if isinstance(value, str) else cells.number_to_string(value) for value in own)


def check_na_values(na_values: NaValues, names: Collection[str]) -> None:
    """Raise if values are given for a column that is not there."""
    for name in na_values if isinstance(na_values, Mapping) else ():
        if name not in names:
            raise TableError(f"There is no column {name!r} to take values of as missing: check its name.")


def infer_matrix_encoding(
    matrix: Floats, is_finite: bool, summaries: Sequence[ColumnSummary] | None = None
) -> Encoding:
    """Return the encoding of a matrix: all its columns are numbers. The matrix holds all rows; or a sample, with
    `summaries` of all rows. If it `is_finite`, no column has missing values."""
    if summaries is not None:
        sampled = [RawColumn(f"column {j}", "number", matrix[:, j].astype(np.float64)) for j in range(matrix.shape[1])]
        known = [
            with_gaps(Column(raw.name, "number"), summary.completed(raw).values.astype(np.float64), summary)
            for raw, summary in zip(sampled, summaries, strict=True)
        ]
        return _encoding_of(known, summaries[0].n_rows)
    columns = tuple(map(_number_column, range(matrix.shape[1])))
    if is_finite:
        return Encoding(columns, np.zeros(len(columns)), len(matrix))
    learned = [with_gaps(column, matrix[:, j].astype(np.float64)) for j, column in enumerate(columns)]
    return _encoding_of(learned, len(matrix))


@lru_cache(maxsize=4096)
def _number_column(j: int) -> Column:
    return Column(f"column {j}", "number")


def _encoding_of(learned: Sequence[Learned], n_rows: int) -> Encoding:
    columns = tuple(column for column, _ in learned)
    if all(column.kind == "dropped" for column in columns):
        few = "; ".join(f"{cells.quoted(column.name)}: {column.note}" for column in columns[:3])
        more = f"; and {len(columns) - 3} more" if len(columns) > 3 else ""
        raise TableError(f"No column of the table can be used ({few}{more}): at least one must vary from row to row.")
    fills = [fill if part == "value" else 0.0 for column, fill in learned for part in column.parts]
    return Encoding(columns, np.array(fills), n_rows)


def with_medians(encoding: Encoding, medians: Float64s) -> Encoding:
    """Return the encoding with medians to replace missing values in columns where training rows have none. (`medians`
    are those of the encoded columns. Columns with missing values have the median of their present values already.)"""
    if encoding.is_plain:
        return replace(encoding, fill=medians.copy())
    fill = encoding.fill.copy()
    for column, start in zip(encoding.columns, encoding.starts, strict=True):
        if column.kind not in ("dropped", "category") and not column.has_gaps:
            fill[start] = medians[start]
    return replace(encoding, fill=fill)


def _learn(
    raw: RawColumn, asked: str | None, summary: ColumnSummary | None = None, n_rows: int | None = None
) -> Learned:
    """Return how a column is read: as the user asked, if anything was asked and not all values are missing.

    With a summary, `raw` is a sample of the rows that were summarized; with `n_rows`, a sample of that many rows.
    """
    n_rows = summary.n_rows if summary is not None else n_rows or len(raw)
    name = raw.name
    if asked == "drop":
        return Column(name, "dropped", "you asked to drop it"), 0.0
    if raw.kind == "nested":
        if asked is not None:
            raise TableError(f"Column {name!r} holds {raw.holds}, which cannot be read as {asked!r}: 'drop' it.")
        return Column(name, "dropped", f"it holds {raw.holds[:MAX_SHOWN_NAME]}, not numbers, text or dates"), 0.0
    missing = raw.missing
    if missing.all():
        return Column(name, "dropped", NO_VALUE), 0.0
    if asked == "category" or (asked is None and raw.kind == "category"):
        return category_column(raw, asked, summary), 0.0
    if raw.is_string:
        return learn_strings(raw, asked, summary, n_rows)
    # The same rule as for strings: true and false can be read as numbers, times and durations cannot.
    kind = "number" if asked == "number" and raw.kind == "boolean" else raw.kind
    if kind == "number" and (stamps := stamps_of(raw, asked)) is not None:
        return learn_numbers(stamps, read_values(stamps, raw), asked, summary, n_rows)
    if asked in ("number", "time") and kind != asked:
        held, wanted = KIND_PLURALS[kind], {"number": "numbers", "time": "times"}[asked]
        which = "such as 20240619, or seconds since 1970: " if kind == "number" else ""
        raise TableError(
            f"Column {name!r} holds {held}, which cannot be read as {wanted}{', ' if which else ': '}{which}"
            "leave it as it is, or 'drop' it."
        )
    if asked is None and raw.exact is not None and not missing.any() and (note := large_note(name, raw.exact, n_rows)):
        return Column(name, "dropped", note), 0.0
    values = raw.values.astype(np.float64)
    column = Column(name, kind)
    if kind == "number" and asked is None:
        column = boolean_if_binary(column, values)
    learned = learn_numbers(column, values, asked, summary, n_rows)
    if asked is None and learned[0].kind == "number" and (why := codes.why_codes(name, values, n_rows)):
        return code_column(raw, why, summary), 0.0
    return learned


def _with_paired_codes(
    columns: Sequence[RawColumn],
    learned: Sequence[Learned],
    readings: Mapping[str, str],
    summaries: Sequence[ColumnSummary] | None,
) -> list[Learned]:
    """Return how columns are read, with numbers as codes if each of them belongs to one text of another column."""
    result = list(learned)
    texts = [j for j, raw in enumerate(columns) if raw.is_string and learned[j][0].kind == "category"]
    sizes = {j: len(learned[j][0].values) for j in texts}
    for j, raw in enumerate(columns):
        if raw.is_string or learned[j][0].kind != "number" or raw.name in readings:
            continue
        values = raw.values.astype(np.float64)
        if not texts or not codes.are_sparse(values):
            continue
        n_values = len(np.unique(values[np.isfinite(values)]))
        for i in texts:
            # A missing value is listed as well.
            if abs(sizes[i] - n_values) <= 1 and codes.are_paired(values, columns[i].values.astype(np.int64)):
                why = codes.BY_PARTNER.format(cells.quoted(columns[i].name))
                result[j] = code_column(raw, why, None if summaries is None else summaries[j]), 0.0
                break
    return result
