"""JSON lines: one record a line, as a frame.

In: a path. Out: a frame with a column for each key. A record need not have all keys, so a small file can be a large
table: keys and lines are counted before memory is allocated.
"""

import re
from pathlib import Path

import polars as pl

from rgld.exceptions import TableError

from ._memory import GIB, require_memory

BYTES_PER_CELL = 8
ALWAYS_READ_BYTES = GIB
"""A table of at most this size is always read."""
MAX_BYTES_PER_BYTE = 250
"""A larger one may be at most this many times the size of its file."""
JSON_READ_BYTES = 2**22
"""Bytes that are read at once."""
STRING = re.compile(rb'"([^"\\\n]*(?:\\.[^"\\\n]*)*)"?\s*(:?)')
"""A string, and the colon after it if it is a key. It matches at every quotation mark, so that no part of a hostile
file is looked at twice."""


def read_json_lines(path: Path, shown: str, allowed: int) -> pl.DataFrame:
    """Return the records of a file, which may take `allowed` bytes of memory."""
    n_lines, n_keys = _size(path)
    n_bytes = BYTES_PER_CELL * n_lines * n_keys
    if n_bytes > max(ALWAYS_READ_BYTES, MAX_BYTES_PER_BYTE * path.stat().st_size):
        raise TableError(
            f"{shown} has {n_lines:,} lines with {n_keys:,} different keys, of which each line has few: write the same "
            "keys in every line, or a CSV or Parquet file."
        )
    require_memory(n_bytes, allowed, shown)
    return pl.read_ndjson(path, infer_schema_length=None)


def _size(path: Path) -> tuple[int, int]:
    """Return the number of lines of a file, and about how many different keys it has, those of nested records too.

    The keys are not told apart if the table is small even if all are different.
    """
    n_lines, n_colons = 0, 0
    with open(path, "rb") as file:
        while chunk := file.read(JSON_READ_BYTES):
            n_lines += chunk.count(b"\n")
            n_colons += chunk.count(b":")
        n_lines += 1
        if BYTES_PER_CELL * n_lines * n_colons <= ALWAYS_READ_BYTES:
            return n_lines, n_colons
        file.seek(0)
        keys: set[bytes] = set()
        while chunk := file.read(JSON_READ_BYTES) + file.readline():
            keys.update(string for string, colon in STRING.findall(chunk) if colon)
    return n_lines, len(keys)
