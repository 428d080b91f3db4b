"""Results as lines: one JSON object per run, appended and never changed.

In: a folder. Out: its lines. A line is on disk before the next run starts. If a kill leaves half a line, it is removed
when the study continues.
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
LINE_MEASURES = ("fit_seconds", "score_seconds", "auroc", "auprc")
"""Numbers that the line of a run without an error has."""

Line = dict[str, Any]


def key_of(line: Line) -> tuple[Any, ...]:
    """Return the key of a run: two lines with the same key are of the same run."""
    return tuple(line[name] for name in KEY)


def read_lines(path: Path) -> list[Line]:
    """Return the lines of a file, or of every *.jsonl in a folder. If a run has several lines, the last one counts."""
    paths = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    found: dict[tuple[Any, ...], Line] = {}
    for one in paths:
        for number, text in enumerate(one.read_bytes().splitlines(), 1):
            try:
                line = json.loads(text)
                if not line.get("error"):
                    _check_measures(line)
                found[key_of(line)] = line
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise RGLDError(f"Line {number} of {one.name} is not a result: delete it and run again.") from error
    return list(found.values())


def _check_measures(line: Line) -> None:
    """Raise if a line of a run that did not fail has no measures."""
    for name in LINE_MEASURES:
        float(line[name])


@contextmanager
def appended_lines(folder: Path, brief: bool = False) -> Iterator[tuple[list[Line], "LineWriter"]]:
    """Open the lines of a folder for a study: give the lines that are there, and a writer. Only one study may write at
    a time."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LINES
    with open(path, "a+") as file:
        _lock(file, folder)
        _cut_torn_line(path)
        yield read_lines(path), LineWriter(file, brief)


class LineWriter:
    """Appends lines. Each is on disk before the call returns."""

    def __init__(self, file: TextIO, brief: bool = False) -> None:
        self._file = file
        self._brief = brief

    def write(self, line: Line) -> None:
        """Append one line; a brief one has what tables need and no more."""
        if self._brief:
            line = {name: line[name] for name in (*KEY, *LINE_MEASURES, "error") if name in line}
        self._file.write(json.dumps(line, separators=(",", ":") if self._brief else None) + "\n")
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
