"""How columns were read, on the terminal: in groups of a kind, with the reason for each column that was left out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from ._terminal import printable

if TYPE_CHECKING:
    from rgld._detector import Detector
    from rgld._table.encoding import Column

KIND_HEADINGS = {
    "number": "numbers",
    "boolean": "true or false",
    "time": "dates",
    "duration": "durations",
    "category": "categories",
    "dropped": "left out",
}
HINT = "hint"
INDENT = max(map(len, KIND_HEADINGS.values())) + 4
MAX_NAME_LENGTH = 40
"""Characters printed of a column's name."""
MAX_LINES = 12
"""Lines of a group, or columns left out, that are printed; of a wide table the rest is counted."""
MAX_HINT_NAMES = 3
"""Names of columns that are printed before a hint that they share."""
_ROWS = re.compile(r" in ([\d,]+) rows")
WIDTHS = (60, 100)
"""Smallest and largest width of a line: that of the terminal, within these bounds."""


def print_columns(detector: Detector, file: TextIO) -> None:
    """Print how the columns were read: which names are numbers, dates, categories; which are left out, and why."""
    columns = detector.columns_
    print(f"{len(columns):,} column{'s' * (len(columns) != 1)}, read as", file=file)
    width = min(max(shutil.get_terminal_size().columns, WIDTHS[0]), WIDTHS[1])
    for kind, plural in KIND_HEADINGS.items():
        group = [column for column in columns if column.kind == kind]
        entries = [_left_out(column) if kind == "dropped" else _entry(column) for column in group]
        lines = entries if kind == "dropped" else list(_wrapped(entries, width - INDENT))
        _print_group(plural, lines, len(group), file, is_list=kind == "dropped")
    noted = [column for column in columns if column.note and column.kind != "dropped"]
    _print_group("note", [f"{_name(column)}: {printable(column.note)}" for column in noted], len(noted), file)
    hints = _hints([column for column in columns if column.hint])
    _print_group(HINT, hints, len(hints), file)


def _hints(columns: Sequence[Column]) -> list[str]:
    """Return a line for each hint. Columns with the same hint share a line, even if it counts other numbers of rows."""
    alike: dict[str, list[Column]] = {}
    for column in columns:
        alike.setdefault(_ROWS.sub("", column.hint), []).append(column)
    lines = []
    for group in alike.values():
        names = ", ".join(_name(column) for column in group[:MAX_HINT_NAMES])
        more = f" and {len(group) - MAX_HINT_NAMES:,} more" if len(group) > MAX_HINT_NAMES else ""
        text = group[0].hint
        counts = [int(found[1].replace(",", "")) for column in group if (found := _ROWS.search(column.hint))]
        if len(set(counts)) > 1:
            text = _ROWS.sub(f" in {min(counts):,} to {max(counts):,} rows", text, count=1)
        lines.append(f"{names}{more}: {printable(text)}")
    return lines


def _print_group(title: str, lines: Sequence[str], n_entries: int, file: TextIO, *, is_list: bool = True) -> None:
    """Print some lines under a title; a list has one entry a line, so that what is left out can be counted."""
    shown = lines if len(lines) <= MAX_LINES else lines[: MAX_LINES - 1]
    for place, line in enumerate(shown):
        print(f"  {title if place == 0 else '':<{INDENT - 2}}{line}", file=file)
    if len(shown) < len(lines):
        rest = f"and {n_entries - len(shown):,} more" if is_list else f"and more: {n_entries:,} in all"
        print(f"{'':<{INDENT}}{rest} (`rgld info` lists all columns of a model)", file=file)


def _wrapped(entries: Sequence[str], width: int) -> Iterator[str]:
    """Yield lines of entries, separated by commas."""
    line = ""
    for place, entry in enumerate(entries):
        text = entry + "," * (place < len(entries) - 1)
        if line and len(line) + 1 + len(text) > width:
            yield line
            line = text
        else:
            line = f"{line} {text}" if line else text
    if line:
        yield line


def _name(column: Column) -> str:
    name = printable(column.name)
    return name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "…"


def _entry(column: Column) -> str:
    """Return a column's name, for a category with the number of its values."""
    if column.kind != "category":
        return _name(column)
    more = "over " if column.rest else ""
    return f"{_name(column)} ({more}{len(column.values):,})"


def _left_out(column: Column) -> str:
    return f"{_name(column)}: {printable(column.note)}" if column.note else _name(column)


def reading_as_dicts(detector: Detector) -> list[dict[str, Any]]:
    """Return how the columns were read, for JSON."""
    return [
        {"name": column.name, "kind": column.kind}
        | ({"note": column.note} if column.note else {})
        | ({"hint": column.hint} if column.hint else {})
        for column in detector.columns_
    ]
