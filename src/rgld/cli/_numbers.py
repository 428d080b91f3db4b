"""Numbers in CSV files: which cells are numbers, and whether commas are decimal marks.

In: cells. Out: decisions. What a cell of a column means is decided later, in `rgld._table`.
"""

import re
from collections.abc import Sequence

LEADING_ZERO = r"^\s*0[0-9]"
"""Digits that begin with a zero: a zip code, an account, a time of day. As a number, they would lose it."""
MAX_NUMBER_LENGTH = 60
"""Characters. Longer cells are not tried as numbers: the patterns would take very long on a long blank cell."""
_SIGNED = r"\s*\(?[+-]?\s*[€$£¥]?\s*[+-]?{}\s*[€$£¥%]?\)?\s*"
_COMMA_NUMBER = _SIGNED.format(r"([0-9]*|[1-9][0-9]{0,2}([.'’ \u00a0\u202f][0-9]{3})+),[0-9]+([eE][+-]?[0-9]+)?")
_DOTTED_NUMBER = _SIGNED.format(r"[1-9][0-9]{0,2}(\.[0-9]{3})+")
COMMA_NUMBER = f"^(?:{_COMMA_NUMBER}|{_DOTTED_NUMBER})$"
"""A number in a file with decimal commas: 4,64 or 98.765,43 or 98 765,43; also 1.234, which is 1234 there."""
_COMMA = re.compile(_COMMA_NUMBER)
_DOTTED = re.compile(_DOTTED_NUMBER)
_POINT = re.compile(_SIGNED.format(r"([0-9]+|[0-9]{1,3}(,[0-9]{3})+)?\.[0-9]+"))
_THOUSANDS = re.compile(_SIGNED.format(r"[1-9][0-9]{0,2}(,[0-9]{3})+"))
_NUMBER = re.compile(_SIGNED.format(r"([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?"))


def is_number(text: str) -> bool:
    """Return whether a cell is a number in any common notation."""
    return len(text) <= MAX_NUMBER_LENGTH and _NUMBER.fullmatch(text) is not None


def has_decimal_commas(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Return whether commas are decimal marks: some number has a comma as one, and no number has a decimal point.

    A number such as 101,257 can also be a hundred thousand. It counts as decimal if semicolons separate the columns,
    because they are used where commas are decimal marks.
    """
    cells = [cell for row in rows for cell in row if len(cell) <= MAX_NUMBER_LENGTH]
    if any(_POINT.fullmatch(cell) and not _DOTTED.fullmatch(cell) for cell in cells):
        return False
    if any(_THOUSANDS.fullmatch(cell) and cell.count(",") > 1 for cell in cells):
        return False
    return any(_COMMA.fullmatch(cell) and (delimiter == ";" or not _THOUSANDS.fullmatch(cell)) for cell in cells)
