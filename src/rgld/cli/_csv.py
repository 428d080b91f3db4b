"""CSV files: what a file's first lines say about it.

In: a UTF-8 file and what a user said of it. Out: a `Dialect`. Nothing is decided from one line alone: the delimiter
must split the column names and the rows alike.
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

HEAD_BYTES = 2**18
HEAD_ROWS = 200
LONGEST_LINE = 2**24
"""A first line of more bytes than this is no list of column names."""
DELIMITERS = (";", "\t", "|", ",")
"""The comma is last: it is also in numbers and in texts, where the others are rare."""
ALIKE_SHARE = 0.9
"""A delimiter fits if it splits this share of the rows into as many fields as the column names."""


@dataclass(frozen=True)
class ReadOptions:
    """What a user says about a file instead of leaving it to be found out."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    has_header: bool = True


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    delimiter: str
    decimal_comma: bool
    names: tuple[str, ...] | None
    """The column names, or None for a file without."""
    skip_lines: int = 0
    """Lines before the column names: comments, blank lines, `sep=;`."""
    empty_rows: int = 0
    """Rows without any value, which are left out."""
    notes: tuple[str, ...] = ()
    """What was found out."""


def sniff(path: Path, shown: str, options: ReadOptions) -> Dialect:
    """Return how a file is written."""
    if options.decimal not in (None, ".", ","):
        raise ParameterError(f"--decimal must be '.' or ',', got {options.decimal!r} instead.")
    lines = _first_lines(path, shown)
    notes: list[str] = []
    told = _SEPARATOR_LINE.fullmatch(lines[0])
    delimiter = {"\\t": "\t", "tab": "\t"}.get(options.delimiter or "", options.delimiter)
    if told:
        delimiter = delimiter or told[1]
        notes.append("its first line tells the delimiter")
    first, start = int(bool(told)), _table_start(lines, int(bool(told)))
    if start == len(lines):
        raise TableError(f"{shown} has no rows: all of its lines are empty.")
    body = "\n".join(lines[start:])
    if delimiter is None:
        delimiter = find_delimiter(body, has_header=options.has_header)
        if delimiter != ",":
            notes.append(f"columns are separated by {_DELIMITER_WORDS.get(delimiter, repr(delimiter))}")
    elif len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise ParameterError(f"--delimiter must be one character and no quotation mark, got {delimiter!r} instead.")
    start = _with_marked_header(lines, first, start, delimiter)
    if comments := sum(line.startswith("#") for line in lines[first:start]):
        notes.append(f"{comments} comment {'line' if comments == 1 else 'lines'} skipped")
    rows = split("\n".join(lines[start:]), delimiter)
    names = _column_names(rows[0], shown) if options.has_header else None
    if names and 2 * sum(map(is_number, names)) > len(names):
        notes.append("its first line holds numbers: pass --no-header if it is a row")
    if options.delimiter is None and len(rows[0]) == 1 and _is_aligned(lines[start:]):
        notes.append("it has one column: pass --delimiter if it has more")
    comma = options.decimal == "," if options.decimal else has_decimal_commas(rows[1:] if names else rows, delimiter)
    if comma and options.decimal is None:
        notes.append("numbers have decimal commas")
    return Dialect(delimiter, comma, names, start, notes=tuple(notes))


_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_DELIMITER_WORDS = {"\t": "tabs", " ": "spaces"}


def _first_lines(path: Path, shown: str) -> list[str]:
    """Return the lines at the start of a file, whole ones, the first one however long it is."""
    with open(path, "rb") as file:
        head = file.readline(LONGEST_LINE)
        if len(head) == LONGEST_LINE and not head.endswith(b"\n"):
            raise TableError(f"{shown} is not a table: its first line is longer than {LONGEST_LINE:,} bytes.")
        head += file.read(HEAD_BYTES) + file.readline(LONGEST_LINE)
    return head.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").split("\n")


def _table_start(lines: Sequence[str], first: int) -> int:
    """Return the number of the first line that is neither blank nor a comment."""
    filled = (i for i in range(first, len(lines)) if lines[i].strip())
    uncommented = (i for i in range(first, len(lines)) if lines[i].strip() and not lines[i].startswith("#"))
    return next(uncommented, next(filled, len(lines)))


def _with_marked_header(lines: Sequence[str], first: int, start: int, delimiter: str) -> int:
    """Return where the table starts if the names may stand in a line that begins with #, as in `#id,amount`."""
    width = len(split(lines[start], delimiter)[0])
    for i in range(first, start):
        if lines[i].startswith("#") and len(split(lines[i], delimiter)[0]) == width:
            return i
    return start


def split(text: str, delimiter: str) -> list[list[str]]:
    """Return the first rows of a text that are not blank; those before a fault if there is one."""
    rows: list[list[str]] = []
    with any_field_size():
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        with suppress(csv.Error):
            rows.extend(islice(reader, HEAD_ROWS))  # which keeps those before the error
    return [row for row in rows if row] or [[]]


@contextmanager
def any_field_size() -> Iterator[None]:
    """Let the csv module read fields of more than its 128 KiB."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def find_delimiter(text: str, *, has_header: bool) -> str:
    """Return the delimiter that splits the column names and most rows alike.

    Of several, any but the comma, and of those the one with most fields. Where none fits, the one that splits most rows
    alike: the reader then names the line that does not fit.
    """
    best, best_score = ",", (False, False, False, 0.0, 0)
    for delimiter in DELIMITERS:
        rows = split(text, delimiter)
        width, share, fits = _widths(rows, has_header=has_header)
        fits = fits and share >= ALIKE_SHARE
        score = (fits, fits and delimiter != ",", len(rows[0]) > 1, round(share, 1), width)
        if width > 1 and score > best_score:
            best, best_score = delimiter, score
    if not best_score[0]:
        rows = split(text, " ")
        width, share, fits = _widths(rows, has_header=has_header)
        # Without a number among its words a line of words is a text.
        if fits and width > 1 and share == 1.0 and any(is_number(cell) for row in rows[1:] for cell in row):
            return " "
    return best


def _widths(rows: Sequence[Sequence[str]], *, has_header: bool) -> tuple[int, float, bool]:
    """Return the common number of fields, the share of rows that have it, and whether the first row has it."""
    body = rows[1:] if has_header and len(rows) > 1 else rows
    width, times = Counter(map(len, body)).most_common(1)[0]
    return width, times / len(body), len(rows[0]) == width


def _is_aligned(lines: Sequence[str]) -> bool:
    """Tell whether blanks split all lines alike, as in columns aligned by spaces."""
    widths = {len(line.split()) for line in lines[:HEAD_ROWS] if line.strip()}
    return len(widths) == 1 and widths != {1}


def _column_names(names: Sequence[str], shown: str) -> tuple[str, ...]:
    """Return the names; a column without is called by its place, as it would be in a file without names."""
    names = [name or f"column_{j}" for j, name in enumerate(names)]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise TableError(f"{shown} has column names that repeat, {repeated[:3]}: rename or drop them.")
    return tuple(names)


LONGEST_NUMBER = 60
"""Longer cells are not tried as numbers: a cell of nothing but blanks would take the patterns very long."""
_SIGNED = r"\s*\(?[+-]?\s*[€$£¥]?\s*[+-]?{}\s*[€$£¥%]?\)?\s*"
_COMMA_NUMBER = _SIGNED.format(r"([0-9]*|[1-9][0-9]{0,2}([.'’ \u00a0\u202f][0-9]{3})+),[0-9]+([eE][+-]?[0-9]+)?")
_DOTTED_NUMBER = _SIGNED.format(r"[1-9][0-9]{0,2}(\.[0-9]{3})+")
COMMA_NUMBER = f"^(?:{_COMMA_NUMBER}|{_DOTTED_NUMBER})$"
"""A number in a file with decimal commas: 4,64 or 98.765,43 or 98 765,43; and 1.234, a point being no decimal mark."""
_COMMA = re.compile(_COMMA_NUMBER)
_DOTTED = re.compile(_DOTTED_NUMBER)
_POINT = re.compile(_SIGNED.format(r"([0-9]+|[0-9]{1,3}(,[0-9]{3})+)?\.[0-9]+"))
_THOUSANDS = re.compile(_SIGNED.format(r"[1-9][0-9]{0,2}(,[0-9]{3})+"))
_NUMBER = re.compile(_SIGNED.format(r"([0-9]+([.,][0-9]*)?|[.,][0-9]+)([eE][+-]?[0-9]+)?"))


def is_number(text: str) -> bool:
    """Tell whether a cell is a number in any common way of writing."""
    return len(text) <= LONGEST_NUMBER and _NUMBER.fullmatch(text) is not None


def has_decimal_commas(rows: Sequence[Sequence[str]], delimiter: str) -> bool:
    """Tell whether commas are decimal marks: some number has one, none has a decimal point.

    A number such as 101,257 alone may be a hundred thousand. It counts between semicolons, which are used where commas
    are decimal marks.
    """
    cells = [cell for row in rows for cell in row if len(cell) <= LONGEST_NUMBER]
    if any(_POINT.fullmatch(cell) and not _DOTTED.fullmatch(cell) for cell in cells):
        return False
    if any(_THOUSANDS.fullmatch(cell) and cell.count(",") > 1 for cell in cells):
        return False
    return any(_COMMA.fullmatch(cell) and (delimiter == ";" or not _THOUSANDS.fullmatch(cell)) for cell in cells)
