"""The commands' help texts."""

import re

import pytest

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from .command import rgld

COMMANDS = [(), ("fit",), ("score",), ("explain",), ("report",), ("check",), ("serve",), ("demo",), ("bench", "run")]


def help_text(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERMINAL_WIDTH", "200")  # Typer's own name for it
    code, shown, errors = rgld(*command, "--help")
    assert (code, errors) == (0, "")
    return shown


@pytest.mark.parametrize("command", COMMANDS, ids=lambda names: "-".join(names) or "rgld")
def test_flags_show_no_type(command, monkeypatch):
    """`--help <bool>` would ask for a value that the flag does not take."""
    shown = help_text(command, monkeypatch)
    assert "--help" in shown
    assert not re.search("bool", shown, re.IGNORECASE)


def test_options_with_a_value_show_what_they_take(monkeypatch):
    (line,) = [line for line in help_text(("score",), monkeypatch).splitlines() if "--fdr" in line]
    assert re.search(r"--fdr\s+<?float>?\s+Select rows", line, re.IGNORECASE)


def test_a_paragraph_is_broken_by_the_terminal_only(monkeypatch):
    """The docstring's second paragraph has three lines of at most 120 characters."""
    lines = [line.strip() for line in help_text(("score",), monkeypatch).splitlines()]
    (first,) = [line for line in lines if line.startswith("The output has one line per row")]
    assert len(first) > 150
