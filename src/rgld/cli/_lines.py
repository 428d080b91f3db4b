"""Lines: where the rows of a CSV file, or of JSON lines, are, as an editor shows them.

In: a file. Out: the line on which each row begins, from 1; the line of column names counts too. A row may span several
lines, if a quoted value holds a line break.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from rgld._arrays import Bools, Int64s
from rgld.exceptions import ParameterError

from ._csv import Dialect
from ._files import TableFile

LINE_BLOCK_BYTES = 2**22
"""Bytes of the file that are looked at together."""
NEWLINE, QUOTE = ord("\n"), ord('"')


class RowIds:
    """What names the rows of a file if no column does: their lines in a text file, else their indices from 0."""

    def __init__(self, file: TableFile | None) -> None:
        self._lines: Int64s | None = None
        if file is not None and file.csv:
            self._lines = row_lines(file.path, file.csv)
        elif file is not None and file.kind == "jsonl":
            self._lines = filled_lines(file.path)

    def of(self, start: int, n: int) -> pl.Series:
        """Return the names of n rows, of which the first has the index `start`."""
        if self._lines is None or start + n > len(self._lines):
            return pl.Series("row", np.arange(start, start + n))
        return pl.Series("line", self._lines[start : start + n])

    def of_all(self, n_rows: int, *, are_asked_for: bool = False) -> pl.Series:
        """Return the names of all rows. They are indices if the lines do not give as many rows as were read; if the
        user named rows by their lines, this is an error."""
        if self._lines is not None and len(self._lines) != n_rows:
            if are_asked_for:
                raise ParameterError("--row: the rows of this file cannot be told by their lines: pass --id as well.")
            self._lines = None
        return self.of(0, n_rows)


def filled_lines(path: Path) -> Int64s:
    """Return the lines of a file that are not blank: those of JSON lines hold a row each."""
    with open(path, "rb") as stream:
        return np.array([number for number, line in enumerate(stream, 1) if line.strip()], np.int64)


def row_lines(path: Path, dialect: Dialect) -> Int64s:
    """Return the lines on which the rows of a file begin, without those of empty rows that are skipped."""
    blocks = list(_records(path, dialect))
    lines = np.concatenate([np.empty(0, np.int64), *(lines for lines, _ in blocks)])
    empty = np.concatenate([np.empty(0, bool), *(empty for _, empty in blocks)])
    first = 0 if dialect.names is None else 1
    rows: Int64s = lines[first:][~empty[first:]]
    return rows


def _records(path: Path, dialect: Dialect) -> Iterator[tuple[Int64s, Bools]]:
    """Yield the lines on which records begin (after the lines that are skipped), and which records are to be skipped
    because they are empty, block by block of the file."""
    is_open, is_blank, first, rest = False, True, 1 + dialect.skip_lines, 0
    line = first
    with open(path, "rb") as stream:
        for _ in range(dialect.skip_lines):
            stream.readline()
        while content := stream.read(LINE_BLOCK_BYTES):
            block = np.frombuffer(content, np.uint8)
            breaks = np.flatnonzero(block == NEWLINE)
            in_quotes, was_open = np.full(len(breaks), is_open), is_open
            if b'"' in content:  # within a quotation, the number of quotation marks so far is odd
                marks = np.cumsum(block == QUOTE, dtype=np.int32) + was_open
                in_quotes, is_open = marks[breaks] % 2 == 1, bool(marks[-1] % 2)
            after = line + 1 + np.flatnonzero(~in_quotes)
            line += len(breaks)
            at = np.concatenate(([0], breaks[~in_quotes] + 1))
            are_blank, rest_is_blank = _blanks(block, at, dialect)
            if len(after):
                are_blank[:1] &= is_blank
                yield np.concatenate(([first], after[:-1])), are_blank
                first, is_blank = int(after[-1]), True
            is_blank = is_blank and rest_is_blank
            rest = len(block) - int(at[-1])
    if rest:  # the last record does not end with its line
        yield np.array([first]), np.array([is_blank and dialect.empty_rows > 0])


def _blanks(block: np.ndarray[tuple[int], np.dtype[np.uint8]], at: Int64s, dialect: Dialect) -> tuple[Bools, bool]:
    """Return which records of a block are empty, given where they begin, and whether the rest after the last is."""
    if not dialect.empty_rows:
        return np.zeros(len(at) - 1, bool), False
    blank = np.zeros(256, bool)
    blank[np.frombuffer(b' \t\r\n"' + dialect.delimiter.encode(), np.uint8)] = True
    filled = np.concatenate(([0], np.cumsum(~blank[block], dtype=np.int32)))
    return filled[at[1:]] == filled[at[:-1]], bool(filled[-1] == filled[at[-1]])
