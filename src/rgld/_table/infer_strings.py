"""Inference of strings: what the strings of a column stand for.

In: a column of strings. Out: a `Column`, and what replaces its missing values: of numbers, dates, durations or bools if
most of its strings can be read as such, else a category, or dropped.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .._arrays import Indices
from ..exceptions import TableError
from . import cells, codes
from .columns import RawColumn, as_strings, at_places
from .encoding import KIND_PLURALS, KIND_SINGULARS, MAX_LISTED_VALUES, Column, numbers_of_strings
from .infer_numbers import Learned, boolean_if_binary, learn_numbers, stamps_of
from .styles import find_style
from .summary import ColumnSummary

MIN_ID_FRACTION = 0.9
"""A text column in which more than this fraction of the values are different is an id or free text: its values do not
repeat, so there is nothing to learn from them."""
MIN_SAMPLED_ROWS = 20
"""If a category has too many strings to count, those are listed that at least this many rows of the sample have."""
MIN_HINT_FRACTION = 0.5
"""If at least this fraction of a text column's values are numbers, a note says so."""
EQUAL_WHEN_CUT = f"its texts are equal in their first {cells.MAX_STRING_LENGTH} characters"


def learn_strings(raw: RawColumn, asked: str | None, summary: ColumnSummary | None, n_rows: int) -> Learned:
    whole_summary = summary
    strings, counts, n_missing = _counted_strings(raw, summary)
    if asked is None and n_rows >= codes.MIN_CODED_ROWS and (why := codes.why_code_strings(strings)):
        return code_column(raw, why, summary), 0.0
    column = _typed_column(raw.name, strings, counts, asked)
    if column is None:
        return _with_hint(category_column(raw, asked, summary), strings, counts), 0.0
    values = numbers_of_strings(column, strings)
    unread = np.flatnonzero(np.isnan(values))
    if len(unread) == len(values):
        raise TableError(
            f"Column {raw.name!r} holds no {KIND_PLURALS[column.kind]}, only text such as {cells.quoted(strings[0])}: "
            "'drop' it."
        )
    if len(unread):
        first = cells.quoted(min(strings[i] for i in unread))
        n_unread = int(counts[unread].sum())
        many = f"{n_unread:,} values are not {KIND_PLURALS[column.kind]} and count as missing, such as {first}"
        one = f"1 value is not {KIND_SINGULARS[column.kind]} and counts as missing: {first}"
        note = one if n_unread == 1 else many
        column = replace(column, note=note, n_unread=n_unread)
    if asked is None and column.kind == "number":
        column = boolean_if_binary(column, values)
    sampled = at_places(numbers_of_strings(column, raw.strings), raw.values.astype(np.int64))
    if summary is not None:
        summary = replace(
            summary,
            n_missing=n_missing + int(counts[unread].sum()),
            low=min(summary.low, float(np.nanmin(values))),
            high=max(summary.high, float(np.nanmax(values))),
            counts=Counter(),
        )
        sampled = summary.completed(RawColumn(raw.name, "number", sampled)).values.astype(np.float64)
    learned = learn_numbers(column, sampled, asked, summary, n_rows)
    is_plain = learned[0].kind == "number" and not len(unread) and asked is None
    if is_plain and (why := codes.why_codes(raw.name, sampled, n_rows)):
        return code_column(raw, why, whole_summary), 0.0
    return learned


def _counted_strings(raw: RawColumn, summary: ColumnSummary | None) -> tuple[tuple[str, ...], Indices, int]:
    """Return the different strings of a column, how many rows have each, and in how many rows it is missing.

    With a summary, the counts are those of all rows. Strings that the summary did not count (if there were too many, or
    if they are numbers in some parts of the table) have the sample's counts, scaled up to the rows that are left.
    """
    places, strings = as_strings(raw)
    present = places[places >= 0]
    counts = np.bincount(present, minlength=len(strings))
    if summary is None:
        used = np.flatnonzero(counts)
        return tuple(strings[i] for i in used), counts[used], len(places) - len(present)
    found = dict(zip(strings, counts.tolist(), strict=True))
    known = summary.counts if summary.is_whole else Counter[str]()
    others = {string: n for string, n in found.items() if n and string not in known}
    n_others = summary.n_rows - summary.n_missing - known.total()
    factor = n_others / max(1, sum(others.values()))
    if n_others:
        known = known + Counter({string: int(n * factor) for string, n in others.items()})
    return tuple(known), np.array(list(known.values()), dtype=np.intp), summary.n_missing


def _with_hint(column: Column, strings: Sequence[str], counts: Indices) -> Column:
    """Return the column; if many of its strings are numbers, but too few to read it as numbers, with a note."""
    if not cells.some_are_numbers(strings, counts):
        return column
    fraction = counts[~np.isnan(cells.read_numbers(strings))].sum() / counts.sum()
    if fraction < MIN_HINT_FRACTION:
        return column
    hint = f"{100 * fraction:.0f} % of its values are numbers: it can be read as 'number'"
    return replace(column, note=f"{column.note}; {hint}" if column.note else hint)


def _typed_column(name: str, strings: Sequence[str], counts: Indices, asked: str | None) -> Column | None:
    """Return a column of numbers, bools, times or durations, if most of the strings can be read as such; else None."""
    if asked == "number":
        plain = np.count_nonzero(~np.isnan(cells.read_bools(strings)))
        style = find_style(strings, counts) if plain < len(strings) else None
        return Column(name, "number") if style is None else Column(name, "number", **style._asdict())
    if asked == "time":
        return _asked_time(name, strings, counts)
    if all(string.strip().lower() in cells.BOOLS for string in strings):
        return Column(name, "boolean")
    least = cells.MIN_READABLE_FRACTION * counts.sum()
    if cells.some_are_numbers(strings, counts):
        numbers = cells.read_numbers(strings)
        if counts[~np.isnan(numbers)].sum() >= least:
            stamps = stamps_of(RawColumn(name, "number", numbers), None)
            return Column(name, "number") if stamps is None else stamps
    if time_format := cells.find_time_format(strings, counts):
        return Column(name, "time", time_format=time_format)
    if style := find_style(strings, counts):
        return Column(name, "number", **style._asdict())
    few = strings[:: max(1, len(strings) // cells.N_TRIAL_STRINGS)]
    if not np.isnan(cells.read_durations(few)).all():
        column = Column(name, "duration")
        if counts[~np.isnan(numbers_of_strings(column, strings))].sum() >= least:
            return column
    return None


def _asked_time(name: str, strings: Sequence[str], counts: Indices) -> Column:
    """Return a column of times as the user asked: of dates in the format that reads most of them, of dates written as
    digits, or of times of day if no value is a date."""
    if time_format := cells.find_time_format(strings, counts, 0.0):
        return Column(name, "time", time_format=time_format)
    if stamps := stamps_of(RawColumn(name, "number", cells.read_numbers(strings)), "time"):
        return stamps
    if not np.isnan(cells.read_durations(strings)).all():
        return Column(name, "duration")
    return Column(name, "time", time_format=cells.ISO)


def code_column(raw: RawColumn, why: str, summary: ColumnSummary | None) -> Column:
    """Return a column of codes as a category; dropped if hardly any code comes twice."""
    column = category_column(raw, None, summary)
    if summary is not None and not raw.is_string:  # numbers are not counted over all rows: the sample must decide
        own = category_column(raw, None, None)
        column = own if own.kind == "dropped" else column
    if column.kind == "dropped":
        return replace(column, note=f"it is an id ({why}):{column.note.rpartition(':')[2]}")
    return replace(column, note=f"{why}: {codes.QUANTITY_CURE}")


def category_column(raw: RawColumn, asked: str | None, summary: ColumnSummary | None) -> Column:
    strings, counts, n_missing = _counted_strings(raw, summary)
    n_values, n_present = int((counts > 0).sum()), int(counts.sum())
    is_partial = summary is not None and not summary.is_whole
    if summary is not None and is_partial:
        n_present = summary.n_rows - n_missing
        n_values = min(max(n_values, round(summary.n_distinct)), n_present)
    if asked is None:
        if n_values == 1 and not n_missing:
            is_cut = len(strings[int(counts.argmax())]) == cells.MAX_STRING_LENGTH
            return Column(raw.name, "dropped", EQUAL_WHEN_CUT if is_cut else "it is constant")
        if n_values > MIN_ID_FRACTION * n_present:
            about = "about " if is_partial else ""
            return Column(
                raw.name, "dropped", f"it is an id or free text: {about}{n_values:,} values in {n_present:,} rows"
            )
    if n_missing:
        # Numbers and times have the string "" for missing already. Its count is 0, so that it is not listed twice.
        strings, counts = (*strings, ""), np.append(counts, n_missing)
    order = sorted(np.flatnonzero(counts), key=lambda i: (-counts[i], strings[i]))
    listed, others = order[:MAX_LISTED_VALUES], order[MAX_LISTED_VALUES:]
    rest = float(counts[others].mean()) if others else 0.0
    if summary is not None and is_partial:
        least = MIN_SAMPLED_ROWS * n_present / max(1, int((~raw.missing).sum()))
        listed = [i for i in listed if counts[i] >= least or not strings[i]]
        kept = {strings[i] for i in listed}
        of_rest = [n for string, n in summary.counts.items() if string not in kept]
        rest = float(np.mean(of_rest)) if of_rest else 1.0
        if not listed:
            listed, counts[order[0]] = order[:1], max(1, round(rest))
    return Column(
        raw.name,
        "category",
        values=tuple(strings[i] for i in listed),
        counts=tuple(int(counts[i]) for i in listed),
        rest=rest,
        gap_value=None if n_missing else 0.0,
    )
