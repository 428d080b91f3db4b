"""Columns: what has changed in the values of each column, against the training rows.

In: a table, how its columns are read, and the profiles of the training columns. Out: a `ColumnCheck` for each column
that the model uses. Every p-value is corrected for the number of all tests on all columns and relations (Holm): if
nothing has changed, the probability that any finding has a p-value of at most t is at most t.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._arrays import Float64s
from .._table.columns import RawColumn, as_strings
from .._table.encoding import Column, Encoding, read_values
from .._table.profiles import MAX_KNOTS, Profile, Profiles, knots_of
from .._table.table import Table
from . import words
from .relations import RelationCheck
from .two_samples import beyond_p_value, corrected, distance_p_value, largest_distance, shares_p_value, smallest

MAX_EXACT_LABELS = 8
"""Values of a category whose p-values are computed: those whose frequency has changed most."""
MAX_SHOWN_VALUES = 12
"""Values of a category whose two frequencies are kept, for a chart."""


@dataclass(frozen=True)
class Finding:
    """What one test says of a column."""

    what: str
    """"gaps", "unread", "unseen", "frequency", "range" or "distribution"."""
    p_value: float
    words: str


@dataclass(frozen=True)
class ColumnCheck:
    """A column of a new table beside the training table."""

    name: str
    kind: str
    findings: tuple[Finding, ...]
    """The smallest p-value first."""
    gaps: float
    """Fraction of the new rows without a value."""
    gaps_in_training: float
    unread: float
    """Fraction of the new rows whose value cannot be read."""
    unseen: float
    """Fraction of the new rows with a value of a category that was never seen."""
    distance: float | None = None
    """Largest distance of the two cumulative distributions, 0 to 1; of a category half the sum of the differences."""
    new: Profile | None = None
    training: Profile | None = None
    frequencies: tuple[tuple[str, float, float], ...] = ()
    """Of a category: values with their fractions of the new rows and of the training rows."""

    @property
    def p_value(self) -> float:
        """The smallest p-value of its findings."""
        return min((finding.p_value for finding in self.findings), default=1.0)

    def said(self, level: float) -> list[str]:
        """Return what is found at this level, in words."""
        found = {finding.what: finding.words for finding in self.findings if finding.p_value <= level}
        if "distribution" in found:  # says the same, and more
            found.pop("range", None)
        if "unseen" in found or ("gaps" in found and self.gaps == 1.0):
            found.pop("frequency", None)
        return [f"{words.named(self.name)}: {text}" for text in found.values()]


def check_columns(
    encoding: Encoding, profiles: Profiles, table: Table, relations: Sequence[RelationCheck] = ()
) -> tuple[tuple[ColumnCheck, ...], tuple[RelationCheck, ...]]:
    """Return what has changed in each column, and the relations, with corrected p-values. A column that the model does
    not use is left out."""
    found = []
    for j, column in enumerate(encoding.columns):
        if column.kind == "category":
            found.append(_category(column, encoding.n_rows, table.column(j)))
        elif column.kind != "dropped":
            training = profiles[j] if profiles.are_known else None
            found.append(_numbers(column, encoding.n_rows, training, table.column(j)))
    tested = [finding.p_value for check in found for finding in check.findings]
    tested += [relation.p_value for relation in relations if relation.held_out is not None]
    p_values = iter(corrected(np.array(tested)).tolist())
    columns = tuple(_with(check, p_values) for check in found)
    return columns, tuple(replace(one, p_value=next(p_values)) if one.held_out else one for one in relations)


def _with(check: ColumnCheck, p_values: Iterator[float]) -> ColumnCheck:
    """Return a check with other p-values."""
    findings = [replace(finding, p_value=next(p_values)) for finding in check.findings]
    return replace(check, findings=tuple(sorted(findings, key=lambda finding: finding.p_value)))


def _numbers(column: Column, n_training: int, training: Profile | None, raw: RawColumn) -> ColumnCheck:
    """Return what has changed in a column of numbers, times, durations or bools."""
    values = np.sort(read_values(column, raw))  # NaN comes last
    n, n_present = len(values), int(np.searchsorted(values, np.nan))
    values = values[:n_present]
    n_missing = int(raw.missing.sum())
    n_unread = n - n_present - n_missing
    new = Profile(n_present, n_missing, n_unread, *knots_of(values, MAX_KNOTS))
    if training is None:  # an old model file: all that is known is the fraction of gaps, unread values among them
        gaps, n_gaps, n_rows = column.gap_share, round(column.gap_share * n_training), n_training
        p_value = shares_p_value(n - n_present, n, n_gaps, n_rows)
        findings = [Finding("gaps", p_value, words.gaps((n - n_present) / n, gaps))]
        return ColumnCheck(column.name, column.kind, tuple(findings), n_missing / n, gaps, n_unread / n, 0.0, new=new)
    m = training.n_rows
    gaps = training.n_missing / max(1, m)
    findings = [
        Finding("gaps", shares_p_value(n_missing, n, training.n_missing, m), words.gaps(n_missing / n, gaps)),
        Finding(
            "unread",
            shares_p_value(n_unread, n, training.n_unread, m),
            words.unread(column.kind, n_unread, n, training.n_unread / max(1, m), _unread_example(column, raw)),
        ),
    ]
    distance = None
    if column.kind != "time" and n_present and training.n_present:  # new times are always later
        own_counts = np.searchsorted(values, training.knots, side="right")
        distance, place = largest_distance(own_counts, n_present, training.counts, training.n_present)
        said = words.distribution(column, new, training, place, float(own_counts[place] / n_present))
        findings += [
            _range(column, values, training),
            Finding("distribution", distance_p_value(distance, n_present, training.n_present), said),
        ]
    return ColumnCheck(
        column.name, column.kind, tuple(findings), n_missing / n, gaps, n_unread / n, 0.0, distance, new, training
    )


def _range(column: Column, values: Float64s, training: Profile) -> Finding:
    """Return whether more values than chance explains lie outside the range of the training values."""
    low, high = float(training.knots[0]), float(training.knots[-1])
    n, m = len(values), training.n_present
    below, above = int(np.searchsorted(values, low)), n - int(np.searchsorted(values, high, side="right"))
    p_values = [beyond_p_value(below, n, m), beyond_p_value(above, n, m)]
    is_below = p_values[0] < p_values[1]
    said = words.beyond(column, is_below, below if is_below else above, float(values[0 if is_below else -1]), low, high)
    return Finding("range", smallest(p_values), said)


def _unread_example(column: Column, raw: RawColumn) -> str:
    """Return the most frequent string that cannot be read; "" if there is none."""
    unread = np.flatnonzero(np.isnan(read_values(column, raw)) & ~raw.missing)
    if not len(unread):
        return ""
    codes, strings = as_strings(raw)
    return strings[int(np.bincount(codes[unread]).argmax())]


def _category(column: Column, m: int, raw: RawColumn) -> ColumnCheck:
    """Return what has changed in a category."""
    codes, strings = as_strings(raw)
    n = len(codes)
    counts = np.bincount(codes[codes >= 0], minlength=len(strings))
    known = np.zeros(len(column.values), np.int64)
    unlisted: Counter[str] = Counter()
    for string, count in zip(strings, counts.tolist(), strict=True):
        place = column.place(string)
        if place >= 0:
            known[place] += count
        elif count:
            unlisted[string] += count
    n_missing = int((codes < 0).sum())
    gap = column.place("")
    trained = np.array(column.counts)
    n_gaps = int(trained[gap]) if gap >= 0 else 0
    listed = np.array([value != "" for value in column.values])
    n_unlisted_values = 0 if not column.rest else round((m - int(trained.sum())) / column.rest)
    unseen = 0 if column.rest else unlisted.total()
    n_values = len(column.values) + (n_unlisted_values or len(unlisted))  # of both tables, or a few less
    findings = [Finding("gaps", shares_p_value(n_missing, n, n_gaps, m), words.gaps(n_missing / n, n_gaps / m))]
    if not column.rest:
        once = sum(count == 1 for count in unlisted.values())
        once_in_training = int(np.sum((trained == 1) & (known == 0) & listed))
        p_once = shares_p_value(once, n, once_in_training, m) if once / n > once_in_training / m else 1.0
        top = [shares_p_value(count, n, 0, m) for _, count in unlisted.most_common(1)]
        p_value = smallest([p_once, min(1.0, n_values * min(top, default=1.0))])
        findings.append(Finding("unseen", p_value, words.unseen(unlisted, n, column)))
    changes = np.abs(known / n - trained / m) / np.sqrt((known + trained) / (n + m) / min(n, m)) * listed
    places = np.argsort(-changes, kind="stable")[:MAX_EXACT_LABELS]
    tested = [(shares_p_value(int(known[i]), n, int(trained[i]), m), int(i)) for i in places if listed[i]]
    p_value, place = min(tested, default=(1.0, 0))
    said = words.frequency(column.values[place], known[place] / n, trained[place] / m)
    findings.append(Finding("frequency", min(1.0, n_values * p_value), said))
    pairs = [(value, int(known[i]) / n, int(trained[i]) / m) for i, value in enumerate(column.values)]
    pairs += [(value, count / n, 0.0) for value, count in unlisted.most_common(MAX_SHOWN_VALUES)]
    pairs = sorted(pairs, key=lambda pair: -max(pair[1], pair[2]))
    distance = 0.5 * sum(abs(new - old) for _, new, old in pairs) if not column.rest else None
    return ColumnCheck(
        column.name,
        column.kind,
        tuple(findings),
        n_missing / n,
        n_gaps / m,
        0.0,
        unseen / n,
        distance,
        frequencies=tuple(pairs[:MAX_SHOWN_VALUES]),
    )
