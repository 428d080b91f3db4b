"""What the documentation site adds to the pages."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="`make docs` installs it")
pytest.importorskip("typer", reason="the command needs the extra 'cli'")

HOOKS = Path(__file__).parents[1] / "docs/.site/hooks.py"


@pytest.fixture(scope="module")
def options():
    spec = importlib.util.spec_from_file_location("hooks", HOOKS)
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    return [line.split(" | ")[0] for line in hooks.options_table("score").splitlines() if line.startswith("| ")]


@pytest.mark.parametrize(
    "shown",
    [
        "| `TABLE`",
        "| <code>--quiet</code>, <code>-q</code>",
        "| <code>--out TEXT</code>, <code>-o</code>",
        "| <code>--table NAME</code>",
        "| <code>--with-table</code>",
        "| <code>--inf error&#124;clip</code>",
        "| <code>--id TEXT</code>, repeatable",
    ],
)
def test_options_are_named_as_the_command_reads_them(options, shown):
    """Not as the parameter of the function is called (`from_table`, `with_table`), and with all their names."""
    assert shown in options
