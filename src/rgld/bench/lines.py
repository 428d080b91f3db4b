"""Results as lines: one JSON object per run, appended and never changed.

In: a folder. Out: its lines. A line is on disk before the next run is taken; a line torn by a kill is cut
off when the study resumes.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from ..exceptions import RGLDError

LINES = "lines.jsonl"
KEY = ("protocol", "dataset", "detector", "seed")

Line = dict[str, Any]


def key_of(line: Line) -> tuple[Any, ...]:
    """Return what makes a run the same run."""
    return tuple(line[name] for name in KEY)


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file, or of every *.jsonl in a folder; the last of equal runs counts."""
    paths = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    found: dict[tuple[Any, ...], Line] = {}
    for one in paths:
        for number, text in enumerate(one.read_text().splitlines(), 1):
            try:
                line = json.loads(text)
                found[key_of(line)] = line
            except (ValueError, KeyError, TypeError) as error:
                raise RGLDError(f"Line {number} of {one.name} is not a result: delete it and run again.") from error
    return list(found.values())


@contextmanager
def appended_lines(folder: Path) -> Iterator[tuple[list[Line], "LineWriter"]]:
    """Open a folder's lines for a study: what is there already, and a writer. Only one study may write at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LINES
    with open(path, "a+") as file:
        _lock(file, folder)
        _cut_torn_line(path)
        yield read_lines(path), LineWriter(file)


class LineWriter:
    """Appends lines, each on disk before the call returns."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: Line) -> None:
        """Append one line."""
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _lock(file: TextIO, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this platform
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RGLDError(f"Another study is writing to {folder}: wait for it or choose another folder.") from error


def _cut_torn_line(path: Path) -> None:
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        os.truncate(path, content.rfind(b"\n") + 1)
