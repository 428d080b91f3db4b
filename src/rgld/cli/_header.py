"""Column names of CSV files: whether the first line holds them, and which lines before it are a title.

In: the first rows of a file, as lists of cells. Out: decisions. In doubt, the first line is taken for the column
names, as in most files.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ._numbers import is_number

MIN_NUMERIC_FRACTION = 0.9
"""A column is of numbers if at least this fraction of its cells are."""
MIN_BODY_ROWS = 3
"""Fewer rows do not show what a column holds."""
MAX_TITLE_LINES = 20
"""Lines before the column names that may be a title."""
MISSING_CELLS = frozenset({"", "NA", "?", "-", "null", "NULL", "NaN", "nan", "\\N"})
_YEAR = re.compile(r"(19|20)[0-9]{2}")


def first_row_has_names(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row holds column names: False only if it is plainly a row like those that follow.

    It is one if it has numbers where the columns hold numbers, or texts that come again in their columns. Years and
    numbers in equal steps (2019, 2020, ... or 0, 1, ...) are names.
    """
    first, body = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if len(body) < MIN_BODY_ROWS:
        return True
    columns = [[row[j] for row in body if row[j].strip() not in MISSING_CELLS] for j in range(len(first))]
    numeric = [j for j, cells in enumerate(columns) if cells and _are_numbers(cells)]
    numbers = [first[j] for j in numeric if is_number(first[j])]
    text = [j for j in range(len(first)) if j not in numeric and columns[j]]
    n_again = sum(first[j].strip() != "" and first[j] in columns[j] for j in text)
    if numbers and not _are_names(numbers):
        return not (n_again or 2 * len(numbers) > len(numeric))
    return not (n_again >= 2 and 2 * n_again > len(text))


def _are_numbers(cells: Sequence[str]) -> bool:
    return sum(map(is_number, cells)) >= MIN_NUMERIC_FRACTION * len(cells)


def _are_names(numbers: Sequence[str]) -> bool:
    """Return whether numbers are names of columns: years, or whole numbers in equal steps."""
    stripped = [number.strip() for number in numbers]
    if all(_YEAR.fullmatch(number) for number in stripped):
        return True
    if len(stripped) < 2 or not all(number.isdecimal() for number in stripped):
        return False
    steps = {int(b) - int(a) for a, b in pairwise(stripped)}
    return steps == {1} or (len(stripped) > 2 and len(steps) == 1 and steps != {0})


def n_title_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return how many rows before the column names are a title: they have at most one filled cell or are a sentence
    with commas, and the rows after them have several cells, all in the same number of fields."""
    widths = Counter(len(row) for row in rows)
    width, times = widths.most_common(1)[0]
    if width < 2 or 2 * times <= len(rows):
        return 0
    start = next((i for i, row in enumerate(rows) if len(row) == width and _n_filled(row) > 1), 0)
    if not 0 < start <= MAX_TITLE_LINES or any(_n_filled(row) > 1 and not _is_sentence(row) for row in rows[:start]):
        return 0
    # The names follow: mostly filled, and not numbers. A title before rows without names is not plain.
    return start if 2 * _n_filled(rows[start]) > width and not any(map(is_number, rows[start])) else 0


def _is_sentence(row: Sequence[str]) -> bool:
    """Return whether a line is a sentence with commas, as "Sales of spring, all shops": a space follows each."""
    return all(cell.startswith(" ") for cell in row[1:])


def _n_filled(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)
