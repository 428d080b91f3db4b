"""Check that a tag, the version, the citation and the changelog agree: `python .ci/check_release.py v1.2.3`. With
--changes, print the section of the changelog if they do."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def faults(tag: str) -> list[str]:
    """Return what does not agree, one sentence each."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "src/rgld/__init__.py").read_text())
    if version is None:
        return ["src/rgld/__init__.py has no __version__."]
    number = version[1]
    found = []
    if tag != f"v{number}":
        found.append(f"The tag is {tag!r}, but the version of the package is {number!r}: expected v{number}.")
    if not re.search(rf"^## {re.escape(number)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        found.append(f"CHANGELOG.md has no section '## {number}': write what has changed.")
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    if cited and cited[1].strip("\"'") != number:
        found.append(f"CITATION.cff has version {cited[1]}, expected {number}.")
    return found


def changes(tag: str) -> str:
    """Return the section of the changelog of a tag that agrees."""
    section = rf"^## {re.escape(tag.removeprefix('v'))}\b[^\n]*\n(.*?)(?=^## |\Z)"
    found = re.search(section, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE | re.DOTALL)
    return found[1].strip() if found else ""


if __name__ == "__main__":
    tag, *others = sys.argv[1:] or [""]
    if not tag or others not in ([], ["--changes"]):
        sys.exit("Expected one tag, such as v1.2.3, and --changes or nothing.")
    if found := faults(tag):
        sys.exit("\n".join(found))
    if others:
        print(changes(tag))
