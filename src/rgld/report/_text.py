"""Text for the page: values of a table as short, harmless, visible text.

In: any text of the table. Out: text to show; the page inserts it as text, never as markup. Characters that cannot be
seen, or that turn the reading direction of what follows, are made visible: a value must not disguise itself.
"""

import unicodedata

LONGEST_VALUE = 80
"""Characters shown of a value, a column's name or an id."""
LONGEST_LABEL = 40
"""Characters shown of a category beside its bar."""
LONGEST_REASON = 240
"""Characters shown of a reason, which may hold a name and a value."""

CONTROLS = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}
"""Control characters have pictures of their own in Unicode."""
DIRECTIONS = {code: "\ufffd" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)}
"""Embeddings, overrides, isolates and marks of direction."""
VISIBLE = CONTROLS | DIRECTIONS


def short(text: str, longest: int = LONGEST_VALUE) -> str:
    """Return the beginning of a text, with an ellipsis where something is left out.

    >>> short("a\\x00b"), short("abcdef", 4)
    ('a␀b', 'abc…')
    """
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return cut.translate(VISIBLE)


def isolated(text: str) -> str:
    """Return a text that does not turn the direction of the sentence it stands in."""
    turns = any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in text)
    return f"\u2068{text}\u2069" if turns else text


def percent(share: float) -> str:
    """Return a share as people write it.

    >>> percent(0.123), percent(0.0123), percent(0.05), percent(0.0001), percent(0.0)
    ('12 %', '1.2 %', '5 %', '0.01 %', '0 %')
    """
    value = 100.0 * share
    if value == 0 or value >= 9.95:
        return f"{value:.0f} %"
    return (
        f"{f'{value:.1f}'.removesuffix('.0')} %"
        if value >= 0.95
        else f"{value:.1g} %"
        if value >= 0.001
        else "below 0.001 %"
    )


def count_of(n: int, one: str, many: str = "") -> str:
    """Return a number of things.

    >>> count_of(1, "row"), count_of(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
