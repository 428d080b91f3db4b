"""Words of relations: what they say, and how a row breaks them.

In: a relation, the values of a row. Out: half a sentence, as in `words.py`.
"""

import math
from typing import NamedTuple

import numpy as np

from .._model.relations import LOGARITHMS, MISSING, SUM, UNLISTED, Relations
from .._table.encoding import Encoding
from .._table.shown import short, shown
from .words import apart

MAX_NAMED_PARTNERS = 4
"""Partners that are named."""
LARGE_FACTOR = 1.5
"""Of products, larger differences are said as a factor, smaller ones in percent."""
ROUNDING_IN_LIMITS = 0.01
"""If 99 % of the rows are nearer than this fraction of the limit, the numbers are said to be equal."""
TIMED = ("time", "duration")
"""Kinds whose cells are in seconds."""
SECONDS_PER_DAY = 86_400.0
GIVEN_WORD = "given"
"""What is said of a number or a date if it only matters that it is not missing."""
WITHIN = "99 %"
"""The fraction of the training rows that keep within the distance that is named."""


class Said(NamedTuple):
    """How a row breaks a relation."""

    columns: tuple[str, ...]
    """The column that is named first, and its partners."""
    value: str
    expected: str
    words: str


class Names:
    """What columns and values are called."""

    def __init__(self, encoding: Encoding, relations: Relations) -> None:
        self.encoding = encoding
        self.relations = relations

    def of(self, j: int) -> str:
        """Return the name of a column; that of a span is made of its two dates."""
        columns = self.encoding.columns
        if j < len(columns):
            return columns[j].name
        begin, end = (int(own[j - len(columns)]) for own in (self.relations.spans.begin, self.relations.spans.end))
        return f"{columns[end].name} - {columns[begin].name}"

    def short(self, j: int) -> str:
        """Return the name of a column for a sentence."""
        return short(self.of(j))

    def kind(self, j: int) -> str:
        """Return the kind of a column."""
        return self.encoding.columns[j].kind if j < len(self.encoding.columns) else "duration"

    def value(self, j: int, code: int) -> str:
        """Return what a code stands for."""
        if code in (MISSING, UNLISTED):
            return ""
        if j in self.relations.levels.by_column:
            return shown(self.kind(j), float(self.relations.levels.by_column[j][code]), self.of(j))
        return self.encoding.columns[j].values[code] if self.kind(j) == "category" else GIVEN_WORD

    def has_values(self, j: int) -> bool:
        """Tell whether the codes of a column stand for values, not only for missing or not."""
        return self.kind(j) == "category" or j in self.relations.levels.by_column

    def said(self, j: int, value: str) -> str:
        """Return a value of a column as it is said: a category in quotation marks."""
        is_number = j < len(self.encoding.columns) and self.kind(j) != "category"
        return in_quotes(value) if not value or not is_number else short(value)

    def has(self, j: int, code: int) -> str:
        """Return "payment is 'cash'" or "age is missing"."""
        return f"{self.short(j)} is {self.said(j, self.value(j, code))}"

    def number(self, j: int, number: float) -> str:
        """Return a number of a column as text."""
        return shown(self.kind(j), number, self.of(j)) if abs(number) < 1e300 else f"{number:.4g}"

    def distance(self, j: int, number: float) -> str:
        """Return a difference of two values of a column as text."""
        kind = "duration" if self.kind(j) == "time" else self.kind(j)
        return shown("number" if kind == "boolean" else kind, _two_digits(number))


def in_quotes(value: str) -> str:
    """Return a value of a category in quotation marks."""
    return f"'{short(value)}'" if value else "missing"


def _two_digits(number: float) -> float:
    return float(f"{number:.2g}")


def listed(names: list[str]) -> str:
    """Return "fare, tip and tolls"."""
    if len(names) > MAX_NAMED_PARTNERS:
        names = [*names[: MAX_NAMED_PARTNERS - 1], f"{len(names) - MAX_NAMED_PARTNERS + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _factor(logarithm: float) -> str:
    """Return a relative difference: "2.5 %" or "a factor of 1.8"."""
    factor = math.exp(min(logarithm, 600.0))
    return f"a factor of {factor:.3g}" if factor > LARGE_FACTOR else f"{100.0 * math.expm1(logarithm):.2g} %"


def _is_equal(names: Names, i: int) -> bool:
    """Tell whether the two sides of a relation of numbers are equal up to rounding."""
    numbers = names.relations.numbers
    return bool(numbers.within[i] <= ROUNDING_IN_LIMITS * numbers.limit[i])


def _within(names: Names, i: int) -> str:
    numbers = names.relations.numbers
    within = float(numbers.within[i])
    return _factor(within) if numbers.form[i] == LOGARITHMS else names.distance(int(numbers.target[i]), within)


def number_words(names: Names, i: int) -> str:
    """Return "total = fare + tip + tolls, within 0.4 in 99 % of the rows"."""
    numbers = names.relations.numbers
    target = int(numbers.target[i])
    how = "" if _is_equal(names, i) else f", within {_within(names, i)} in {WITHIN} of the rows"
    sign = "=" if _is_equal(names, i) else "≈"
    if numbers.when[i] >= 0:
        where = names.has(int(numbers.when[i]), int(numbers.when_code[i]))
        return f"{names.short(target)} {sign} {names.number(target, float(numbers.constant[i]))} where {where}{how}"
    formula = _sum(names, i) if numbers.form[i] == SUM else _product(names, i)
    return f"{names.short(target)} {sign} {formula}{how}"


def _terms(names: Names, i: int) -> list[tuple[int, int, float]]:
    numbers = names.relations.numbers
    n_terms = int(np.argmax(np.append(numbers.partner[i], -1) < 0))
    columns = (numbers.partner[i], numbers.partner_code[i], numbers.weight[i])
    return [
        (int(j), int(code), float(weight)) for j, code, weight in zip(*(own[:n_terms] for own in columns), strict=True)
    ]


def _sum(names: Names, i: int) -> str:
    numbers = names.relations.numbers
    constant, target = float(numbers.constant[i]), int(numbers.target[i])
    words = ""
    for j, code, weight in _terms(names, i):
        sign = " - " if weight < 0 else " + " if words else ""
        size, unit = f"{abs(weight):.3g}", ""
        if code == UNLISTED and (names.kind(j) in TIMED) != (names.kind(target) in TIMED):
            size, unit = _per_day(abs(weight), names.kind(j) in TIMED)
        if code == UNLISTED:
            words += sign + ("" if size == "1" else f"{size} × ") + names.short(j) + unit
        else:
            words += f"{sign}{size} if {names.has(j, code)}"
    if constant:
        # The constant of a difference of dates is a duration.
        n_times = sum(names.kind(j) == "time" for j, code, _ in _terms(names, i) if code == UNLISTED)
        is_date = names.kind(target) == "time" and not n_times
        text = names.number(target, constant) if is_date else names.distance(target, abs(constant))
        words += (" - " if constant < 0 and not is_date else " + ") + text
    return words.strip()


def _per_day(weight: float, is_of_time: bool) -> tuple[str, str]:
    """Return a weight that is per second, or in seconds, as one of days: "0.0864" and " in days", or "1.6 days"."""
    if is_of_time:
        return f"{weight * SECONDS_PER_DAY:.3g}", " in days"
    return f"{shown('duration', _two_digits(weight))}", ""


def _product(names: Names, i: int) -> str:
    numbers = names.relations.numbers
    factor = math.exp(max(-600.0, min(600.0, float(numbers.constant[i]))))
    above, below = [f"{factor:.3g}"] * bool(numbers.constant[i]), list[str]()
    for j, code, weight in _terms(names, i):
        if code != UNLISTED:
            above.append(f"{math.exp(max(-600.0, min(600.0, weight))):.3g} if {names.has(j, code)}")
            continue
        power = "" if abs(weight) == 1 else f"^{abs(weight):.2g}"
        (above if weight > 0 else below).append(names.short(j) + power)
    return " × ".join(above or ["1"]) + "".join(f" / {word}" for word in below)


def number_broken(names: Names, i: int, value: float, rest: float) -> Said:
    """Return "total 37.3 where fare, tip and tolls suggest 12.3 (usually within 0.4)"."""
    numbers = names.relations.numbers
    target = int(numbers.target[i])
    expected = value * math.exp(max(-600.0, min(600.0, -rest))) if numbers.form[i] == LOGARITHMS else value - rest
    texts = [names.number(target, number) for number in (value, expected)]
    if names.kind(target) == "number":
        texts = apart((value, expected), texts, names.of(target))
        texts = [text.removesuffix(".0") for text in texts]
    usual = "always so" if _is_equal(names, i) and not numbers.n_broken[i] else f"usually within {_within(names, i)}"
    if _is_equal(names, i) and numbers.n_broken[i]:
        usual = f"so in all but {numbers.n_broken[i]:,} of {numbers.n_rows[i]:,} rows"
    said = f"{names.short(target)} {texts[0]}"
    if numbers.when[i] >= 0:
        when, code = int(numbers.when[i]), int(numbers.when_code[i])
        words = f"{said} where {names.has(when, code)} suggests {texts[1]} ({usual})"
        return Said((names.of(target), names.of(when)), texts[0], texts[1], words)
    columns = list(dict.fromkeys(j for j, _, _ in _terms(names, i)))
    suggest = "suggests" if len(columns) == 1 else "suggest"
    words = f"{said} where {listed([names.short(j) for j in columns])} {suggest} {texts[1]} ({usual})"
    return Said((names.of(target), *map(names.of, columns)), texts[0], texts[1], words)


def curve_words(names: Names, i: int) -> str:
    """Return "fare follows distance: about 5.5 at 0.6, 11 at 2.1, 36 at 9.4"."""
    curves = names.relations.curves
    target, partner = int(curves.target[i]), int(curves.partner[i])
    places = (0, len(curves.knot[i]) // 2, len(curves.knot[i]) - 1)
    points = [
        f"{names.number(target, _two_digits(float(curves.center[i, k])))} at "
        f"{names.number(partner, _two_digits(float(curves.knot[i, k])))}"
        for k in places
    ]
    return f"{names.short(target)} follows {names.short(partner)}: about {', '.join(points)}"


def curve_broken(names: Names, i: int, value: float, beside: float, expected: float) -> Said:
    """Return "fare 120 where distance 0 suggests 5.5 (usually 4 to 7.5)"."""
    curves = names.relations.curves
    target, partner = int(curves.target[i]), int(curves.partner[i])
    texts = [names.number(target, value), names.number(target, _two_digits(expected))]
    below, above = (float(np.interp(beside, curves.knot[i], part[i])) for part in (curves.below, curves.above))
    usual = [names.number(target, _two_digits(number)) for number in (expected - below, expected + above)]
    partner_text = f"{names.short(partner)} {names.number(partner, beside)}"
    words = f"{names.short(target)} {texts[0]} where {partner_text} suggests {texts[1]} (usually {' to '.join(usual)})"
    return Said((names.of(target), names.of(partner)), texts[0], texts[1], words)


def _of_rows(n_broken: int, n_rows: int) -> str:
    return f"all {n_rows:,} rows" if not n_broken else f"all but {n_broken:,} of {n_rows:,} rows"


def order_words(names: Names, i: int) -> str:
    """Return "pickup <= dropoff in all 6,400 rows"."""
    orders = names.relations.orders
    low, high = names.short(int(orders.low[i])), names.short(int(orders.high[i]))
    return f"{low} <= {high} in {_of_rows(int(orders.n_broken[i]), int(orders.n_rows[i]))}"


def order_broken(names: Names, i: int, low: float, high: float) -> Said:
    """Return "dropoff 10:02 is before pickup 10:22 (never in 6,400 rows)"."""
    orders = names.relations.orders
    a, b = int(orders.low[i]), int(orders.high[i])
    low_text, high_text = names.number(a, low), names.number(b, high)
    if names.kind(a) == "number":
        low_text, high_text = apart((low, high), [low_text, high_text], names.of(a))
    n_broken, n_rows = int(orders.n_broken[i]), int(orders.n_rows[i])
    often = f"in {n_broken:,} of {n_rows:,} rows" if n_broken else f"never in {n_rows:,} rows"
    is_below = "before" if names.kind(a) == "time" else "below"
    words = f"{names.short(b)} {high_text} is {is_below} {names.short(a)} {low_text} ({often})"
    return Said((names.of(b), names.of(a)), high_text, low_text, words)


def pair_words(names: Names, i: int) -> str:
    """Return "payment 'cash' is never with status 'refused'"."""
    pairs = names.relations.pairs
    first, second = int(pairs.first[i]), int(pairs.second[i])
    a, b = names.value(first, int(pairs.first_code[i])), names.value(second, int(pairs.second_code[i]))
    n_broken, n_rows = int(pairs.n_broken[i]), int(pairs.n_rows[i])
    often = f"in only {n_broken:,} of {n_rows:,} rows" if n_broken else f"never in {n_rows:,} rows"
    return f"{names.short(first)} {names.said(first, a)} with {names.short(second)} {names.said(second, b)}: {often}"


def pair_broken(names: Names, i: int) -> Said:
    """Return "payment 'cash' is never with status 'refused' (usually 'paid')"."""
    pairs = names.relations.pairs
    first, second = int(pairs.first[i]), int(pairs.second[i])
    a, b = names.value(first, int(pairs.first_code[i])), names.value(second, int(pairs.second_code[i]))
    n_broken, n_usual = int(pairs.n_broken[i]), int(pairs.usual_rows[i])
    often = "hardly ever" if n_broken else "never"
    usual = names.value(second, int(pairs.usual_code[i]))
    how = "always" if n_usual == pairs.n_rows[i] else "usually" if 2 * n_usual > pairs.n_rows[i] else "most often"
    own, other = f"{names.short(first)} {names.said(first, a)}", f"{names.short(second)} {names.said(second, b)}"
    words = f"{own} is {often} with {other} ({how} {names.said(second, usual)})"
    return Said((names.of(first), names.of(second)), a, usual, words)


def determined_words(names: Names, i: int) -> str:
    """Return "zone determines borough in all 6,400 rows"."""
    determined = names.relations.determined
    by, column = (
        names.short(j) if names.has_values(j) else f"whether {names.short(j)} is missing"
        for j in (int(determined.by[i]), int(determined.column[i]))
    )
    return f"{by} determines {column} in {_of_rows(int(determined.n_broken[i]), int(determined.n_rows[i]))}"


def determined_broken(names: Names, i: int, by_code: int, value: str, expected: int) -> Said:
    """Return "zone 'JFK Airport' is never with borough 'Manhattan' (always 'Queens')"."""
    determined = names.relations.determined
    by, column = int(determined.by[i]), int(determined.column[i])
    own, usual = names.value(by, by_code), names.value(column, expected)
    often, how = ("hardly ever", "nearly always") if determined.n_broken[i] else ("never", "always")
    first, second = f"{names.short(by)} {names.said(by, own)}", f"{names.short(column)} {names.said(column, value)}"
    words = f"{first} is {often} with {second} ({how} {names.said(column, usual)})"
    return Said((names.of(column), names.of(by)), value, usual, words)
