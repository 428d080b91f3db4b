"""Folders and patterns: which files they stand for, and what the names of folders say of the rows in them.

In: a path as the user gave it. Out: files; columns of a partitioned table, as in year=2024/month=03/part.parquet.
"""

import glob
from pathlib import Path, PurePath
from urllib.parse import unquote

from rgld.exceptions import TableError

NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The value of a row that has none, as Hive writes it."""


def files_of(path: str) -> list[str] | None:
    """Return the files of a folder or of a pattern such as `logs/*.parquet`, sorted by name; None for a single file."""
    folder = Path(path)
    if path == "-" or folder.is_file():
        return None
    if folder.is_dir():
        found = [str(file) for file in sorted(folder.rglob("*")) if file.is_file() and _is_data(file, folder)]
        if not found:
            raise TableError(f"{path} is a folder without files: expected tables in it.")
        return found
    if folder.exists() or not glob.has_magic(path):
        return None
    found = [file for file in sorted(glob.glob(path, recursive=True)) if not Path(file).is_dir()]
    if not found:
        raise TableError(f"There is no file that matches {path}: check the pattern.")
    return found


def _is_data(file: Path, folder: Path) -> bool:
    """Return whether a file of a folder is data: names of others begin with a point or an underscore (_SUCCESS)."""
    return not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def partitions_of(file: str, path: str) -> dict[str, int | str | None]:
    """Return the columns that the folders of a file stand for: year 2024 and month 03 for year=2024/month=03/a.csv. A
    value is a whole number if it is written as one.

    Only folders below the folder that the user gave count, or those of a pattern from its first * or ? on.
    """
    parts = PurePath(path).parts
    n_fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    found: dict[str, int | str | None] = {}
    for part in PurePath(file).parts[n_fixed:-1]:
        name, equals, value = part.partition("=")
        if equals and name:
            text = unquote(value)
            is_whole = text.isascii() and text.isdecimal() and (text == "0" or text[0] != "0") and len(text) < 16
            found[unquote(name)] = None if text == NO_PARTITION else int(text) if is_whole else text
    return found
