"""Values as text: numbers, times and names of a table as a sentence shows them.

In: a value. Out: text of bounded length, without control characters. Code that puts it on a page must escape it.
"""

import numpy as np

from . import cells
from .encoding import DAY
from .names import says_year

MAX_VALUE_LENGTH = 60
"""Characters of a name or a value in a sentence."""


def shown(kind: str, number: float, name: str = "") -> str:
    """Return a value as text: 9,940; 0.0123; 2024-02-29 08:00:00; 2 h 30 min; true. Missing is ""."""
    if np.isnan(number):
        return ""
    if kind == "boolean" and number in (0.0, 1.0):  # another number may come in a table to score
        return "true" if number else "false"
    if kind == "time":
        return cells.time_to_string(round(number))
    if kind == "duration":
        return _duration_in_words(number)
    size = abs(number)
    if size >= 1e15:
        return f"{number:.4g}"
    number += 0.0  # a negative zero is zero
    if number == round(number) or size >= 1e4:
        return grouped(number, 0, name)
    return grouped(number, 1, name) if size >= 999.95 else f"{number:.4g}"


def grouped(number: float, decimals: int, name: str) -> str:
    """Return a number without an exponent, with a comma between thousands unless the column holds years."""
    return f"{number:.{decimals}f}" if says_year(name) else f"{number:,.{decimals}f}"


def _duration_in_words(seconds: float) -> str:
    """Return seconds in at most two common units: 45.5 s; 12 min 30 s; 3 h; 2 d 4 h."""
    size, sign = abs(seconds), "-" if seconds < 0 else ""
    if size < 120:
        return f"{seconds:.4g} s"
    units = (("min", "s", 1, 60), ("h", "min", 60, 60), ("d", "h", 3600, 24))
    large, small, seconds_each, ratio = units[(size >= 2 * 3600) + (size >= 2 * DAY)]
    whole, rest = divmod(round(size / seconds_each), ratio)
    return f"{sign}{whole:,} {large}" + (f" {rest} {small}" if rest else "")


def short(text: str) -> str:
    """Return a name or a value of the table in one line of bounded length."""
    plain = "".join(character if character.isprintable() else " " for character in text.strip()[: MAX_VALUE_LENGTH + 1])
    return plain if len(plain) <= MAX_VALUE_LENGTH else plain[: MAX_VALUE_LENGTH - 1] + "…"


def percent(fraction: float) -> str:
    """Return a fraction as a percentage, such as 12 %, 0.3 % or over 99 %."""
    hundredths = 100.0 * fraction
    if 99 < hundredths < 100:
        return "over 99 %"
    return f"{hundredths:.0f} %" if hundredths >= 9.5 else f"{hundredths:.1g} %"


def fine_percent(fraction: float) -> str:
    """Return a fraction in percent, for pages and tables: with one digit more than in a sentence.

    >>> fine_percent(0.123), fine_percent(0.0123), fine_percent(0.05), fine_percent(0.0001), fine_percent(0.0)
    ('12 %', '1.2 %', '5 %', '0.01 %', '0 %')
    """
    value = 100.0 * fraction
    if value == 0 or value >= 9.95:
        return f"{value:.0f} %"
    return (
        f"{f'{value:.1f}'.removesuffix('.0')} %"
        if value >= 0.95
        else f"{value:.1g} %"
        if value >= 0.001
        else "below 0.001 %"
    )
