"""CSV files: how a file is written, by its first lines.

In: a UTF-8 file and the options for reading it. Out: a `Dialect`. No decision rests on one line alone: a delimiter must
split the column names and the rows into the same number of fields.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rgld.exceptions import ParameterError, TableError

from ._header import MAX_TITLE_LINES, first_row_has_names, n_title_rows
from ._numbers import has_decimal_commas, is_number
from ._options import Reading

DIALECT_BYTES = 2**18
"""Bytes after the first line that the dialect is found from."""
HEAD_ROWS = 200
"""Rows that the dialect is found from."""
MAX_FIRST_LINE = 2**24
"""A first line of more bytes than this is not a list of column names."""
MAX_FIELD = 2**24
"""A field of more characters than this is a quotation that was not closed."""
DELIMITERS = (";", "\t", "|", ",")
"""The comma is last: it also occurs in numbers and in text, where the others are rare."""
NO_NAMES = "no line of column names found: they are column_0, column_1, ...; pass --header if its first line has them"
MIN_SAME_WIDTH = 0.9
"""A delimiter fits if it splits at least this fraction of the rows into as many fields as the column names."""


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    delimiter: str
    decimal_comma: bool
    names: tuple[str, ...] | None
    """The column names; None for a file without names."""
    skip_lines: int = 0
    """Lines before the column names: comments, blank lines, `sep=;`."""
    empty_rows: int = 0
    """Number of rows without any value. They are skipped."""
    notes: tuple[str, ...] = ()
    """What the user should know about the choice."""


def sniff(path: Path, shown: str, reading: Reading) -> Dialect:
    """Return how a file is written."""
    if reading.decimal not in (None, ".", ","):
        raise ParameterError(f"--decimal must be '.' or ',', got {reading.decimal!r} instead.")
    lines = _first_lines(path, shown)
    notes: list[str] = []
    named = _SEPARATOR_LINE.fullmatch(lines[0])
    if named:
        notes.append("its first line names the delimiter")
    first = max(1 if named else 0, reading.skip)
    start = _table_start(lines, first)
    if start >= len(lines):
        raise TableError(f"{shown} has no rows: all of its lines are empty{' or skipped' if reading.skip else ''}.")
    delimiter = _delimiter(lines[start:], reading, named[1] if named else None, notes)
    start = _with_marked_header(lines, first, start, delimiter)
    if not reading.skip and (titles := _title_lines(lines[start:], delimiter)):
        start += titles
        notes.append(f"{_count(titles, 'title line')} skipped")
    if comments := sum(line.startswith("#") for line in lines[first:start]):
        notes.append(f"{_count(comments, 'comment line')} skipped")
    rows = split("\n".join(lines[start:]), delimiter)
    no_header = reading.no_header
    if no_header is None:
        no_header = not first_row_has_names(rows)
        if no_header:
            notes.append(NO_NAMES)
    names = None if no_header else _column_names(rows[0], shown)
    if names and 2 * sum(map(is_number, names)) > len(names):
        notes.append("its first line holds numbers: pass --no-header if it is a row")
    if reading.delimiter is None and len(rows[0]) == 1 and _is_aligned(lines[start:]):
        notes.append("it has one column: pass --delimiter if it has more")
    comma = reading.decimal == "," if reading.decimal else has_decimal_commas(rows[1:] if names else rows, delimiter)
    if comma and reading.decimal is None:
        notes.append("numbers have decimal commas")
    return Dialect(delimiter, comma, names, start, notes=tuple(notes))


_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_DELIMITER_WORDS = {"\t": "tabs", " ": "spaces"}


def _delimiter(lines: Sequence[str], reading: Reading, named: str | None, notes: list[str]) -> str:
    """Return the delimiter: of `--delimiter`, else the one the file names, else the one that fits its first lines."""
    asked = {"\\t": "\t", "tab": "\t"}.get(reading.delimiter or "", reading.delimiter)
    if asked is not None and (len(asked.encode()) != 1 or asked in '"\r\n'):
        raise ParameterError(f"--delimiter must be one character and no quotation mark, got {asked!r} instead.")
    if delimiter := asked or named:
        return delimiter
    found = find_delimiter("\n".join(lines), has_header=not reading.no_header)
    if found != ",":
        notes.append(f"columns are separated by {_DELIMITER_WORDS.get(found, repr(found))}")
    return found


def _first_lines(path: Path, shown: str) -> list[str]:
    """Return whole lines from the start of a file; at least the first line, however long it is."""
    with open(path, "rb") as file:
        head = file.readline(MAX_FIRST_LINE)
        if len(head) == MAX_FIRST_LINE and not head.endswith(b"\n"):
            raise TableError(f"{shown} is not a table: its first line is longer than {MAX_FIRST_LINE:,} bytes.")
        head += file.read(DIALECT_BYTES) + file.readline(MAX_FIRST_LINE)
    return head.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n")


def _table_start(lines: Sequence[str], first: int) -> int:
    """Return the index of the first line that is neither blank nor a comment."""
    filled = (i for i in range(first, len(lines)) if lines[i].strip())
    uncommented = (i for i in range(first, len(lines)) if lines[i].strip() and not lines[i].startswith("#"))
    return next(uncommented, next(filled, len(lines)))


def _title_lines(lines: Sequence[str], delimiter: str) -> int:
    """Return how many lines before the column names are a title, or blank lines after one."""
    n_rows = n_title_rows(split("\n".join(lines), delimiter))
    if not n_rows:
        return 0
    filled = [i for i, line in enumerate(lines) if line.strip()]
    return filled[n_rows] if n_rows < len(filled) else 0


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}{'s' * (n != 1)}"


def _with_marked_header(lines: Sequence[str], first: int, start: int, delimiter: str) -> int:
    """Return the index of the line of column names, which may begin with #, as in `#id,amount`."""
    width = len(split(lines[start], delimiter)[0])
    for i in range(first, start):
        if lines[i].startswith("#") and len(split(lines[i], delimiter)[0]) == width:
            return i
    return start


def split(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows that are not blank; if a row cannot be read, the rows before it."""
    rows: list[list[str]] = []
    with long_fields():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        with suppress(csv.Error):
            rows.extend(islice(reader, HEAD_ROWS))  # keeps the rows before the error
    return [row for row in rows if row] or [[]]


@contextmanager
def long_fields() -> Iterator[None]:
    """Let the csv module read longer fields than 128 KiB, its own limit."""
    before = csv.field_size_limit(MAX_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def find_delimiter(text: str, *, has_header: bool) -> str:
    """Return the delimiter that splits the column names and most rows into the same number of fields.

    If several do, the comma comes last, and among the others the one with most fields comes first. If none does, the
    first lines may be a title, as in "Orders, March 2026": then the one that does so after it. Else the delimiter that
    gives most rows the same number of fields: the reader then names the line that does not fit.
    """
    best, fits = _best_delimiter(text, has_header=has_header)
    for _ in range(MAX_TITLE_LINES if has_header else 0):
        text = text.partition("\n")[2]
        if fits and (best != "," or _LONE_COMMA.search(text)):
            return best
        below, fits_below = _best_delimiter(text, has_header=True)
        if fits_below and below not in (best, " "):
            return below
    return best


_LONE_COMMA = re.compile(r"(?<!\d),|,(?!\d)")
"""A comma that is not within a number."""


def _best_delimiter(text: str, *, has_header: bool) -> tuple[str, bool]:
    """Return the delimiter that fits best, and whether it fits the first line too."""
    best, best_score = ",", (False, False, False, 0.0, 0)
    for delimiter in DELIMITERS:
        rows = split(text, delimiter)
        width, fraction, fits = _widths(rows, has_header=has_header)
        fits = fits and fraction >= MIN_SAME_WIDTH
        score = (fits, fits and delimiter != ",", len(rows[0]) > 1, round(fraction, 1), width)
        if width > 1 and score > best_score:
            best, best_score = delimiter, score
    if not best_score[0]:
        rows = split(text, " ")
        width, fraction, fits = _widths(rows, has_header=has_header)
        # A line of words without a number is text, not columns.
        if fits and width > 1 and fraction == 1.0 and any(is_number(cell) for row in rows[1:] for cell in row):
            return " ", True
    return best, best_score[0]


def _widths(rows: Sequence[Sequence[str]], *, has_header: bool) -> tuple[int, float, bool]:
    """Return the most common number of fields, the fraction of rows that have it, and whether the first row has it."""
    body = rows[1:] if has_header and len(rows) > 1 else rows
    width, times = Counter(map(len, body)).most_common(1)[0]
    return width, times / len(body), len(rows[0]) == width


def _is_aligned(lines: Sequence[str]) -> bool:
    """Return whether spaces split all lines into the same number of fields, as in columns aligned by spaces."""
    widths = {len(line.split()) for line in lines[:HEAD_ROWS] if line.strip()}
    return len(widths) == 1 and widths != {1}


def _column_names(names: Sequence[str], shown: str) -> tuple[str, ...]:
    """Return the names. A column without a name is called by its place, as in a file without column names."""
    names = [name or f"column_{j}" for j, name in enumerate(names)]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise TableError(
            f"{shown} has column names that repeat, {repeated[:3]}: rename them, or pass --no-header if its first line "
            "is a row."
        )
    return tuple(names)
