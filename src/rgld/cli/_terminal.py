"""Text on the terminal: messages, progress, and values of a table without control characters."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer


def printable(text: str) -> str:
    """Return the text with control characters replaced: a cell must not move the cursor or color the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def as_json(content: Any) -> str:
    """Return JSON. Numbers that JSON does not have (NaN, infinity) are null."""
    return json.dumps(_finite(content), indent=1, allow_nan=False, default=str)


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _finite(value) for name, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def say_notes(shown: str, notes: Sequence[str], *, quiet: bool) -> None:
    """Print what was noticed about a file, on standard error: standard output is for results."""
    for note in () if quiet else notes:
        print(printable(f"{shown}: {note}"), file=sys.stderr)


@contextmanager
def progress(what: str, *, quiet: bool) -> Iterator[Callable[[str | int], None]]:
    """Yield a function that shows progress: a message, or the number of rows done. It shows it on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console

    console = Console(file=sys.stderr)  # this stream, also while `sys.stderr` is another one
    with console.status(what) as status:
        yield lambda done: status.update(done if isinstance(done, str) else f"{what}: {done:,} rows")


def print_help(context: typer.Context) -> None:
    """Print the help text if no command was given."""
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)
