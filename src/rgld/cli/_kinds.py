"""Kinds of files: what a file is, by its first bytes.

In: a path. Out: "csv", "parquet", "arrow", "stream" (of Arrow), "zip" (also NPZ and Excel), "npy", "jsonl" (JSON
lines), "gzip" or "zstd". A file that is known not to be a table gives an error that names what it is.
"""

import codecs
import re
from pathlib import Path

from rgld.exceptions import TableError

HEAD_BYTES = 2**18
"""Bytes at the start of a file that decide what it is."""

MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "stream",
    b"PK\x03\x04": "zip",
    b"\x93NUMPY": "npy",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
}
UNPACK = "unpack it first"
FORMATS = "CSV, Parquet, Arrow, Excel, JSON lines or NPZ"
EXPORT = "write the table to a CSV or Parquet file first"
FOREIGN = {
    b"\xfd7zXZ\0": ("an xz file", UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", UNPACK),
    b"SQLite format 3\0": ("an SQLite database", "name it sqlite:///FILE, with --table"),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", EXPORT),
    b"FEA1": ("a Feather file of the first version", EXPORT),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "save the sheet as CSV first"),
    b"%PDF-": ("a PDF document", EXPORT),
    **{b"BZh%d1AY&SY" % level: ("a bzip2 file", UNPACK) for level in range(1, 10)},
}
"""Files that are sometimes mistaken for tables: what they are, and what to do."""
JSON_START = re.compile(rb'\s*(\{\s*("|\})|\[\s*[\[{"])')
HTML = re.compile(rb"\s*<(!doctype|html|\?xml)", re.IGNORECASE)


def kind_of(path: Path, shown: str) -> tuple[str, bytes]:
    """Return the kind of a file, and its first bytes."""
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise TableError(f"{shown} is empty: expected a table.")
    kind = next((name for magic, name in MAGIC.items() if _starts_with(head, magic)), "csv")
    what, cure = next((words for magic, words in FOREIGN.items() if _starts_with(head, magic)), ("", ""))
    text = head.removeprefix(codecs.BOM_UTF8)
    if JSON_START.match(text):
        if _is_json_lines(text):
            return "jsonl", head
        what, cure = "JSON", "write one record a line (JSON lines), or a CSV or Parquet file first"
    elif HTML.match(text):
        what, cure = "HTML or XML", EXPORT
    if what:
        raise TableError(f"{shown} is {what}, expected {FORMATS}: {cure}.")
    return kind, head


def _is_json_lines(text: bytes) -> bool:
    """Return whether a file holds a record a line. A single record of lists, as in {"a": [1, 2]}, is a table by column
    instead."""
    first, _, rest = text.strip().partition(b"\n")
    if not first.startswith(b"{") or not (first.rstrip().endswith(b"}") or len(text) >= HEAD_BYTES):
        return False
    return rest.lstrip().startswith(b"{") or (not rest and b": [" not in first and b":[" not in first)


def _starts_with(head: bytes, magic: bytes) -> bool:
    """Return whether a file begins with these bytes. Letters count in binary files only: a name may be PAR1."""
    return head.startswith(magic) and (not magic.isalnum() or b"\0" in head)
