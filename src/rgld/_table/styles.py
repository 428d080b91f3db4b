"""Styles of numbers: decimal commas and units, which a whole column shares.

In: the strings of a column. Out: the `NumberStyle` in which most of them are numbers; strings read in a style. What
is a number in any column (1,234.50, $5, 12 %) is in `cells`.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Float64s, Indices
from . import cells

CURRENCIES = frozenset(
    {"USD", "EUR", "GBP", "JPY", "CHF", "CAD", "AUD", "NZD", "CNY", "RMB", "INR", "Rs", "SEK", "NOK", "DKK", "PLN"}
    | {"CZK", "HUF", "TRY", "ZAR", "BRL", "MXN", "KRW", "SGD", "HKD", "RUB", "ILS", "THB", "IDR", "AED", "SAR"}
)
"""Units that may stand before a number. Other words before a number make it a name: shop 12, Lot 7."""
MAX_UNIT_LENGTH = 12

_SIGN = r"[+-]?\s?"
_DECIMALS = re.compile(rf"{_SIGN}(\d+|\d{{1,3}}([.'’ \u00a0\u202f]\d{{3}})+)?,\d+([eE][+-]?\d+)?", re.ASCII)
_POINTED = re.compile(rf"{_SIGN}\d{{1,3}}(\.\d{{3}})+", re.ASCII)
_COMMA_THOUSANDS = re.compile(rf"{_SIGN}[1-9]\d{{0,2}}(,\d{{3}})+", re.ASCII)
_MARKS = re.compile("[.'’\\s]")
_AFTER = re.compile(rf"([^A-Za-z]*\d[\d.,'’ \u00a0\u202f]*?)(\s?)([^\W\d_°µ]{{1,{MAX_UNIT_LENGTH}}}|[°µ]\w+)\.?")
_BEFORE = re.compile(r"([A-Za-z]{2,3})\s?([^A-Za-z]+)")
_AMOUNTS = "$€£¥% "


class NumberStyle(NamedTuple):
    """How the numbers of a column are written."""

    decimal_comma: bool = False
    """1.297,38 is 1297.38, and 1.297 is 1297."""
    unit: str = ""
    """A word before or after each number, as in 12 kg and EUR 5; "" if there is none."""


def find_style(strings: Sequence[str], counts: Indices) -> NumberStyle | None:
    """Return the style in which enough of the strings are numbers; None if there is none, or if no style is needed.

    A unit must be the same in all strings that have one: 500 g and 12 kg are not one quantity.
    """
    few = strings[:: max(1, len(strings) // cells.N_TRIAL_STRINGS)]
    units = Counter(unit for string in few if (unit := _unit_of(string)))
    unit = units.most_common(1)[0][0] if units else ""
    least = cells.MIN_READABLE_FRACTION * counts.sum()
    for style in (NumberStyle(unit=unit), NumberStyle(True, unit)):
        if style == NumberStyle() or np.isnan(read_in_style(few, style)).all():
            continue
        if style.decimal_comma and not _shows_comma(strings, style):
            continue
        if counts[~np.isnan(read_in_style(strings, style))].sum() >= least:
            return style
    return None


def read_in_style(strings: Sequence[str], style: NumberStyle) -> Float64s:
    """Return the numbers that strings stand for in a style. Other strings give NaN."""
    bare = [_without_unit(string.strip(), style.unit) for string in strings]
    if not style.decimal_comma:
        return cells.read_bools(bare)
    return cells.read_bools([_with_point(string) for string in bare])


def _unit_of(string: str) -> str:
    """Return the word before or after a number, or "". A word directly after the digits has at least two letters:
    12A is a name."""
    stripped = string.strip()
    if (found := _AFTER.fullmatch(stripped)) and (found[2] or len(found[3]) > 1):
        return found[3]
    if (found := _BEFORE.fullmatch(stripped)) and found[1] in CURRENCIES:
        return found[1]
    return ""


def _without_unit(string: str, unit: str) -> str:
    if not unit:
        return string
    if _unit_of(string) != unit:
        return string
    return string.rstrip(".").removesuffix(unit).removeprefix(unit).strip()


def _with_point(string: str) -> str:
    """Return a number of a column with decimal commas as `cells` reads it."""
    bare = string.strip(_AMOUNTS)
    if _DECIMALS.fullmatch(bare):
        return _MARKS.sub("", bare).replace(",", ".")
    return _MARKS.sub("", bare) if _POINTED.fullmatch(bare) else string


def _shows_comma(strings: Sequence[str], style: NumberStyle) -> bool:
    """Return whether the strings show that commas are decimal marks: some number is one only with a decimal comma, and
    none only with a decimal point. 1,234 alone may be a thousand."""
    bare = [_without_unit(string.strip(), style.unit).strip(_AMOUNTS) for string in strings]
    if any(
        "." in string and not _POINTED.fullmatch(string) and not _DECIMALS.fullmatch(string) and _is_number(string)
        for string in bare
    ):
        return False
    return any(_DECIMALS.fullmatch(string) and not _COMMA_THOUSANDS.fullmatch(string) for string in bare)


def _is_number(string: str) -> bool:
    return not np.isnan(cells.read_numbers([string])[0])
