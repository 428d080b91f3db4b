"""The code of the tutorials runs, and prints what the pages show. `make tutorials` writes new output into them."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.pages import BLOCK, differences, write

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for page in ROOT.glob("docs/tutorials/*.md") if page.name != "index.md")
pytestmark = [
    pytest.mark.own_process,
    pytest.mark.skipif(not PAGES, reason="the tests run outside the repository"),
    pytest.mark.skipif(sys.platform == "win32", reason="the pages call commands of POSIX, such as head and cut"),
]
NEEDS = {
    "analyst": ["polars"],
    "data-scientist": ["pandas", "matplotlib"],
    "engineer": ["starlette", "duckdb", "dask"],
    "researcher": ["pyod"],
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_page_shows_what_comes_out(page, tmp_path, monkeypatch):
    for name in NEEDS[page.stem]:
        pytest.importorskip(name)
    if "$ curl" in page.read_text() and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("COLUMNS", "100")
    found = differences(page, tmp_path)
    assert not found, "`make tutorials` writes the new output:\n" + "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_block_is_run(page):
    """A block of another kind would not be tried: cluster code that needs more than a test has is marked `py`."""
    text = page.read_text()
    assert len(BLOCK.findall(text)) + text.count("```py\n") + text.count("```yaml\n") == text.count("```") / 2
    for kind, block in BLOCK.findall(text):
        assert ("$ " if kind == "console" else ">>> ") in block


def test_a_page_with_wrong_output_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ echo one\ntwo\n$ printf 'a 1.5\\nb\\nc 3\\n'\na 1.7\n...\nc 4\n```\n"
        "```python\n>>> x = 'six'\n>>> x + x\n'six'\n>>> 7\n8\n```\n"
    )
    first, second = differences(page, tmp_path)  # digits may differ
    assert "got:\none" in first and "got:\n'sixsix'" in second
    write(page)
    assert "one\n$ printf" in page.read_text() and "\na 1.5\n...\nc 3\n```" in page.read_text()
