"""Reading: what a column is, decided from the training rows.

In: columns as they were read, and what the user asked for. Out: an `Encoding`. What is learned of a column is its
kind, its values and how often each came, whether it has gaps and what fills them. Every rule is in docs/tables.md.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from . import _cells
from ._cells import RawColumn, at_places
from ._encoding import DAY, LISTED_VALUES, MONDAY, WEEK, YEAR, Column, Encoding, as_texts, read_texts
from ._survey import ColumnSummary
from .exceptions import TableError

ID_SHARE = 0.9
"""A text column with a larger share of different values is an id or free text: no value says anything about another."""
LEAST_IDS = 20
"""Different whole numbers count as ids from this many on."""
SAMPLED_ENDS = 20.0
"""Steps between sampled values that may lie before and behind them."""
LEAST_SAMPLED = 20
"""Of a category with more texts than are counted, those that a sample has so often are listed."""
ID_NAMES = re.compile(r"(?i:(^|[^a-z])(id|uid|uuid|guid|key))$|[a-z](Id|ID|UID|UUID|GUID|Key)$")
"""Names of ids end in such a word: user_id, userId; not in such letters: paid."""
WEEK_SPAN, YEAR_SPAN = 4 * WEEK, 2 * YEAR
"""Shorter tables know no weekly habits and no seasons."""
SPAN_QUANTILES = (0.01, 0.99)
"""A table spans the time between these: one mistyped year makes no seasons."""
HINT_SHARE = 0.5
"""A text column with this share of numbers says so."""
NO_VALUE = "it has no value"
EQUAL_AS_READ = f"its texts are equal in their first {_cells.LONGEST_TEXT} characters"

Learned = tuple[Column, float]
"""How a column is read, and what fills its gaps."""


def fit_encoding(
    columns: Sequence[RawColumn],
    readings: Mapping[str, str] | None = None,
    summaries: Sequence[ColumnSummary] | None = None,
    n_rows: int | None = None,
) -> Encoding:
    """Decide how each column is read, from all rows; or from a sample of them and summaries of all, or from a sample of
    so many rows alone.

    Raises
    ------
    TableError
        If no column is left, or `readings` asks for what a column cannot be.
    """
    readings = readings or {}
    names = {column.name for column in columns}
    for name, reading in readings.items():
        if name not in names:
            raise TableError(f"There is no column {name!r} to be read as {reading!r}: check its name.")
    if summaries is None:
        learned = [_learn(column, readings.get(column.name), None, n_rows) for column in columns]
        return _encoding_of(learned, len(columns[0]))
    learned = [
        _learn(summary.witnessed(column), readings.get(column.name), summary)
        for column, summary in zip(columns, summaries, strict=True)
    ]
    return _encoding_of(learned, summaries[0].n_rows)


def fit_plain_encoding(matrix: NDArray[np.floating], summaries: Sequence[ColumnSummary] | None = None) -> Encoding:
    """Return the encoding of an array: numbers, with gaps where there are some; of all rows, or as `fit_encoding`."""
    if summaries is not None:
        sampled = [RawColumn(f"column {j}", "number", matrix[:, j].astype(np.float64)) for j in range(matrix.shape[1])]
        known = [
            _with_gaps(Column(raw.name, "number"), summary.witnessed(raw).values.astype(np.float64), summary)
            for raw, summary in zip(sampled, summaries, strict=True)
        ]
        return _encoding_of(known, summaries[0].n_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = not np.isfinite(matrix.sum(dtype=np.float64))
    learned = []
    for j in range(matrix.shape[1]):
        column = Column(f"column {j}", "number")
        learned.append(_with_gaps(column, matrix[:, j].astype(np.float64)) if suspect else (column, 0.0))
    return _encoding_of(learned, len(matrix))


def _encoding_of(learned: Sequence[Learned], n_rows: int) -> Encoding:
    columns = tuple(column for column, _ in learned)
    if all(column.kind == "dropped" for column in columns):
        few = "; ".join(f"{_cells.quoted(column.name)}: {column.note}" for column in columns[:3])
        more = f"; and {len(columns) - 3} more" if len(columns) > 3 else ""
        raise TableError(f"No column of the table can be used ({few}{more}): at least one must vary from row to row.")
    fills = [fill if part == "value" else 0.0 for column, fill in learned for part in column.parts]
    return Encoding(columns, np.array(fills), n_rows)


def with_medians(encoding: Encoding, medians: NDArray[np.float64]) -> Encoding:
    """Return the encoding with the medians of the encoded columns as fill where the training rows had no gaps."""
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
    """Return how a column is read. What a user asked for is done, unless there is no value at all. With a summary,
    `raw` is a sample of what is summarized; with a number of rows, a sample of so many."""
    n_rows = summary.n_rows if summary is not None else n_rows or len(raw)
    name = raw.name
    if asked == "drop":
        return Column(name, "dropped", "you asked for it"), 0.0
    missing = raw.missing
    if missing.all():
        return Column(name, "dropped", NO_VALUE), 0.0
    if asked == "category" or (asked is None and raw.kind == "category"):
        return _category(raw, asked, summary), 0.0
    if raw.is_text:
        return _learn_text(raw, asked, summary, n_rows)
    # As in a file of texts, where true and false are numbers too, and times and durations are none.
    kind = "number" if asked == "number" and raw.kind == "boolean" else raw.kind
    if asked in ("number", "time") and kind != asked:
        held, wanted = _PLURALS[kind], {"number": "numbers", "time": "times"}[asked]
        raise TableError(
            f"Column {name!r} holds {held}, which cannot be read as {wanted}: leave it as it is, or 'drop' it."
        )
    if asked is None and raw.exact is not None and not missing.any() and (note := _large_note(name, raw.exact, n_rows)):
        return Column(name, "dropped", note), 0.0
    return _learn_numbers(Column(name, kind), raw.values.astype(np.float64), asked, summary, n_rows)


def _large_note(name: str, exact: NDArray[np.object_], n_rows: int) -> str:
    """Return why integers too large for floats say nothing, or "". As floats, ids may be equal to their neighbours."""
    if not all(isinstance(digits, int) for digits in exact):
        return ""
    lowest = min(exact)
    steps = np.array([digits - lowest for digits in exact], dtype=np.float64)
    highest = float(steps.max())
    if highest and float(lowest) == float(max(exact)):
        return _id_note(name, steps, 0.0, highest, n_rows) or "its values are equal as floats"
    return _id_note(name, steps, 0.0, highest, n_rows)


def _learn_text(raw: RawColumn, asked: str | None, summary: ColumnSummary | None, n_rows: int) -> Learned:
    texts, counts, n_missing = _counted_texts(raw, summary)
    column = _typed_column(raw.name, texts, counts, asked)
    if column is None:
        return _with_hint(_category(raw, asked, summary), texts, counts), 0.0
    values = read_texts(column, texts)
    unread = np.flatnonzero(np.isnan(values))
    if len(unread) == len(values):
        raise TableError(
            f"Column {raw.name!r} holds no {_PLURALS[column.kind]}, but texts such as {_cells.quoted(texts[0])}: "
            "'drop' it."
        )
    if len(unread):
        first = _cells.quoted(min(texts[i] for i in unread))
        note = f"{counts[unread].sum():,} values are no {_PLURALS[column.kind]} and count as missing, such as {first}"
        column = replace(column, note=note)
    sampled = at_places(read_texts(column, raw.texts), raw.values.astype(np.int64))
    if summary is not None:
        summary = replace(
            summary,
            n_missing=n_missing + int(counts[unread].sum()),
            low=min(summary.low, float(np.nanmin(values))),
            high=max(summary.high, float(np.nanmax(values))),
            counts=Counter(),
        )
        sampled = summary.witnessed(RawColumn(raw.name, "number", sampled)).values.astype(np.float64)
    return _learn_numbers(column, sampled, asked, summary, n_rows)


def _counted_texts(raw: RawColumn, summary: ColumnSummary | None) -> tuple[tuple[str, ...], NDArray[np.intp], int]:
    """Return the different texts of a column, the rows with each, and the rows without any. With a summary they are
    those of all rows where all were counted, else the sample's in proportion; a column that holds numbers in some
    parts has the texts counted and the sample's numbers."""
    codes, texts = as_texts(raw)
    present = codes[codes >= 0]
    counts = np.bincount(present, minlength=len(texts))
    if summary is None:
        used = np.flatnonzero(counts)
        return tuple(texts[i] for i in used), counts[used], len(codes) - len(present)
    found = dict(zip(texts, counts.tolist(), strict=True))
    known = summary.counts if summary.is_whole else Counter[str]()
    others = {text: n for text, n in found.items() if n and text not in known}
    n_others = summary.n_rows - summary.n_missing - known.total()
    factor = n_others / max(1, sum(others.values()))
    if n_others:
        known = known + Counter({text: int(n * factor) for text, n in others.items()})
    return tuple(known), np.array(list(known.values()), dtype=np.intp), summary.n_missing


def _with_hint(column: Column, texts: Sequence[str], counts: NDArray[np.intp]) -> Column:
    """Return the column with a note if many of its texts, but not enough, are numbers."""
    if not _cells.some_are_numbers(texts, counts):
        return column
    share = counts[~np.isnan(_cells.read_numbers(texts))].sum() / counts.sum()
    if share < HINT_SHARE:
        return column
    hint = f"{100 * share:.0f} % of its values are numbers: it can be read as 'number'"
    return replace(column, note=f"{column.note}; {hint}" if column.note else hint)


_PLURALS = {"number": "numbers", "boolean": "truth values", "time": "dates", "duration": "durations"}


def _typed_column(name: str, texts: Sequence[str], counts: NDArray[np.intp], asked: str | None) -> Column | None:
    """Return what the texts of a column stand for, if most of them stand for something; None for mere texts."""
    if asked == "number":
        return Column(name, "number")
    if asked == "time":
        return Column(name, "time", time_format=_cells.find_time_format(texts, counts, 0.0) or _cells.ISO)
    if all(text.strip().lower() in _cells.TRUTH for text in texts):
        return Column(name, "boolean")
    least = _cells.READABLE_SHARE * counts.sum()
    if _cells.some_are_numbers(texts, counts) and counts[~np.isnan(_cells.read_numbers(texts))].sum() >= least:
        return Column(name, "number")
    if time_format := _cells.find_time_format(texts, counts):
        return Column(name, "time", time_format=time_format)
    few = texts[:: max(1, len(texts) // _cells.A_FEW)]
    if not np.isnan(_cells.read_durations(few)).all():
        column = Column(name, "duration")
        if counts[~np.isnan(read_texts(column, texts))].sum() >= least:
            return column
    return None


def _learn_numbers(
    column: Column, values: NDArray[np.float64], asked: str | None, summary: ColumnSummary | None, n_rows: int
) -> Learned:
    """Drop what says nothing; give times their cycles. A column with infinities is kept: encoding refuses it."""
    finite = np.isfinite(values)
    whole = bool(finite.all())
    present = values if whole else values[finite]
    if len(present):
        low, high = float(present.min()), float(present.max())
        if asked is None and whole:
            if low == high:
                return replace(column, kind="dropped", note="it is constant"), 0.0
            if column.kind == "number" and (note := _id_note(column.name, values, low, high, n_rows)):
                return replace(column, kind="dropped", note=note), 0.0
        if column.kind == "time":
            column = replace(column, cycles=_cycles(present))
    return (column, 0.0) if whole else _with_gaps(column, values, summary)


def _with_gaps(column: Column, values: NDArray[np.float64], summary: ColumnSummary | None = None) -> Learned:
    """Return the column with the share of its gaps, and the median of the values it has, which fills them."""
    missing = np.isnan(values)
    if missing.all():
        return replace(column, kind="dropped", note=NO_VALUE), 0.0
    present = values[np.isfinite(values)]
    if not missing.any() or not len(present):
        return column, 0.0
    middle = [(len(present) - 1) // 2, len(present) // 2]
    # Halves first: the sum of two large numbers would overflow.
    median = (0.5 * np.partition(present, middle)[middle]).sum()
    share = float(missing.mean()) if summary is None else summary.n_missing / summary.n_rows
    return replace(column, gap_share=share), float(median)


def _cycles(values: NDArray[np.float64]) -> tuple[str, ...]:
    """Return the cycles that times go through: the time of day, the day of the week, the season."""
    low, high = np.quantile(values, SPAN_QUANTILES, method="nearest")
    span = high - low
    varies = {
        "day": np.ptp(np.mod(values, DAY)) > 0,
        "week": span >= WEEK_SPAN and np.ptp(np.mod(values - MONDAY, WEEK) // DAY) > 0,
        "year": span >= YEAR_SPAN,
    }
    return tuple(cycle for cycle, does in varies.items() if does)


def _id_note(name: str, values: NDArray[np.float64], low: float, high: float, n_rows: int) -> str:
    """Return why whole numbers are ids, or "": all different, and either close together or under such a name. The
    values are those of all rows, or of a sample, which may miss the ends."""
    ends = 0.0 if n_rows == len(values) else (high - low) * SAMPLED_ENDS / len(values)
    if n_rows < LEAST_IDS or high - low + ends < n_rows - 1 or np.any(values != np.floor(values)):
        return ""
    dense = high - low < 2 * n_rows
    if not (dense or ID_NAMES.search(name)) or len(np.unique(values)) < len(values):
        return ""
    return "it numbers the rows" if dense else "it is an id: all its values are different"


def _category(raw: RawColumn, asked: str | None, summary: ColumnSummary | None) -> Column:
    texts, counts, n_missing = _counted_texts(raw, summary)
    n_values, n_present = int((counts > 0).sum()), int(counts.sum())
    is_partial = summary is not None and not summary.is_whole
    if summary is not None and is_partial:
        n_present = summary.n_rows - n_missing
        n_values = min(max(n_values, round(summary.n_different)), n_present)
    if asked is None:
        if n_values == 1 and not n_missing:
            is_cut = len(texts[int(counts.argmax())]) == _cells.LONGEST_TEXT
            return Column(raw.name, "dropped", EQUAL_AS_READ if is_cut else "it is constant")
        if n_values > ID_SHARE * n_present:
            about = "about " if is_partial else ""
            return Column(
                raw.name, "dropped", f"it is an id or free text: {about}{n_values:,} values in {n_present:,} rows"
            )
    if n_missing:
        # A text that numbers or times have for a gap has no rows of its own.
        texts, counts = (*texts, ""), np.append(counts, n_missing)
    order = sorted(np.flatnonzero(counts), key=lambda i: (-counts[i], texts[i]))
    listed, others = order[:LISTED_VALUES], order[LISTED_VALUES:]
    rest = float(counts[others].mean()) if others else 0.0
    if summary is not None and is_partial:
        least = LEAST_SAMPLED * n_present / max(1, int((~raw.missing).sum()))
        listed = [i for i in listed if counts[i] >= least or not texts[i]]
        kept = {texts[i] for i in listed}
        of_rest = [n for text, n in summary.counts.items() if text not in kept]
        rest = float(np.mean(of_rest)) if of_rest else 1.0
        if not listed:
            listed, counts[order[0]] = order[:1], max(1, round(rest))
    return Column(
        raw.name,
        "category",
        values=tuple(texts[i] for i in listed),
        counts=tuple(int(counts[i]) for i in listed),
        rest=rest,
    )
