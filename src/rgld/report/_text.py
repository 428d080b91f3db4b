"""Strings for the page: values of a table as short, harmless, visible strings.

In: any string of the table. Out: a string to show; the page inserts it as text, never as markup. Characters that are
invisible or change the reading direction are replaced by visible ones, so that a value cannot look like another.
"""

import unicodedata

LONGEST_VALUE = 80
"""Characters shown of a value, a column's name or an id."""
LONGEST_LABEL = 40
"""Characters shown of a category beside its bar."""
LONGEST_REASON = 240
"""Characters shown of a reason, which may hold a name and a value."""

CONTROLS = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
"""Control characters, and the characters of Unicode that picture them."""
DIRECTIONS = {code: "\ufffd" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)}
"""Characters that change the reading direction."""
VISIBLE = CONTROLS | DIRECTIONS


def visible(text: str, longest: int = LONGEST_VALUE) -> str:
    """Return the beginning of a string, with an ellipsis if it is cut.

    >>> visible("a\\x00b"), visible("abcdef", 4)
    ('a␀b', 'abc…')
    """
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return cut.translate(VISIBLE)


def isolated(text: str) -> str:
    """Return a string that does not change the reading direction of the sentence it is put into."""
    turns = any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)
    return f"\u2068{text}\u2069" if turns else text


def count_of(n: int, one: str, many: str = "") -> str:
    """Return a number with its noun, singular or plural.

    >>> count_of(1, "row"), count_of(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
