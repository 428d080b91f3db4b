"""Codes: whole numbers that name things instead of measuring them, and numbers that say yes or no.

In: the name and the numbers of a column, or its strings. Out: why they are codes, or "" if they are quantities. Only
columns with names are looked at: an array of numbers is taken as it is. docs/tables.md lists the rules.
"""

import re
from collections.abc import Sequence

import numpy as np

from .._arrays import Float64s, Int64s
from .cells import N_TRIAL_STRINGS
from .names import says_code, says_number_of_a_thing

MIN_CODED_ROWS = 20
"""Fewer rows than this do not show that numbers are codes."""
MIN_DIGITS = 3
"""Numbers under a name such as `InvoiceNo`, and strings with leading zeros, are codes if they have this many digits: a
number of children has one, the hours 00 to 23 have two."""
MAX_PAIRED_VALUES = 1000
"""Columns of more different values are not compared with the strings of other columns."""
MIN_PAIRED_VALUES = 3
MIN_PAIRED_ROWS = 5
"""A code and its string are seen together in at least this many rows, on average."""

BY_NAME = "a code, by its name"
BY_ZEROS = "a code, by its leading zeros"
BY_PARTNER = "a code: each value belongs to one text of {}"
QUANTITY_CURE = "'number' reads it as a quantity"

_DIGITS = re.compile(r"\d+", re.ASCII)
_CLOCK_DIGITS = re.compile(r"([01]\d|2[0-3])[0-5]\d|2400", re.ASCII)


def are_bools(values: Float64s) -> bool:
    """Return whether numbers are 0 and 1 only; both must come."""
    present = values[~np.isnan(values)]
    return bool(len(present)) and present.min() == 0.0 and present.max() == 1.0 and bool(np.all(present % 1.0 == 0.0))


def why_codes(name: str, values: Float64s, n_rows: int) -> str:
    """Return why the numbers of a column are codes, or "" if they are not, by the column's name."""
    strong = says_code(name)
    if n_rows < MIN_CODED_ROWS or not (strong or says_number_of_a_thing(name)):
        return ""
    present = values[~np.isnan(values)]
    if not np.isfinite(present).all() or np.any(present % 1.0 != 0.0):
        return ""
    long = present.min() >= 0.0 and present.max() >= 10.0 ** (MIN_DIGITS - 1)
    return BY_NAME if strong or long else ""


def why_code_strings(strings: Sequence[str]) -> str:
    """Return why strings are codes: they are digits, some of them with leading zeros, as zip codes are; else "".

    Two digits are not enough, and four digits that are all times of day (`0905`) are not codes either.
    """
    few = strings[:: max(1, len(strings) // N_TRIAL_STRINGS)]
    if not all(_DIGITS.fullmatch(string.strip()) for string in few):
        return ""
    stripped = [string.strip() for string in strings]
    if not any(len(string) >= MIN_DIGITS and string[0] == "0" for string in stripped if string):
        return ""
    if not all(_DIGITS.fullmatch(string) for string in stripped):
        return ""
    return "" if all(_CLOCK_DIGITS.fullmatch(string) for string in stripped) else BY_ZEROS


def are_sparse(values: Float64s) -> bool:
    """Return whether numbers may be codes of a text: whole, not many, repeated, and with gaps between them. The numbers
    1 to 12, of months or ratings, have an order; they have no gaps."""
    first = values[:MAX_PAIRED_VALUES]
    if np.any(first != np.floor(first), where=~np.isnan(first)):  # most columns end here
        return False
    present = values[np.isfinite(values)]
    if len(present) < MIN_CODED_ROWS or np.any(present % 1.0 != 0.0):
        return False
    if len(np.unique(present[: 10 * MAX_PAIRED_VALUES])) > MAX_PAIRED_VALUES:
        return False
    different = np.unique(present)
    few = MIN_PAIRED_VALUES <= len(different) <= min(MAX_PAIRED_VALUES, len(present) // MIN_PAIRED_ROWS)
    return few and bool(different[-1] - different[0] >= 2 * len(different))


def are_paired(values: Float64s, codes: Int64s) -> bool:
    """Return whether each number goes with one string and each string with one number, given the places of the strings
    (-1 where missing); rows in which either is missing do not count."""
    both = np.isfinite(values) & (codes >= 0)
    if np.count_nonzero(both) < MIN_CODED_ROWS:
        return False
    numbers, places = np.unique(values[both], return_inverse=True)
    strings, partners = np.unique(codes[both], return_inverse=True)
    if len(numbers) != len(strings) or len(numbers) < MIN_PAIRED_VALUES:
        return False
    return len(np.unique(places * len(strings) + partners)) == len(numbers)
