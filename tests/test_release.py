"""What a release checks before it is published."""

import re
import runpy
from pathlib import Path

import pytest

import rgld

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "check_release.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the tests run outside the repository")


def test_version_citation_and_changelog_agree_now():
    assert runpy.run_path(str(SCRIPT))["faults"](f"v{rgld.__version__}") == []


def test_a_tag_of_another_version_is_refused():
    (fault,) = runpy.run_path(str(SCRIPT))["faults"]("v99.0.0")
    assert "v99.0.0" in fault and f"expected v{rgld.__version__}" in fault


def test_the_release_page_has_the_section_of_the_changelog():
    text = runpy.run_path(str(SCRIPT))["changes"](f"v{rgld.__version__}")
    assert text.startswith("- ") and "\n## " not in text and len(text) > 1000


def test_a_version_without_its_section_of_the_changelog_is_refused(tmp_path):
    (tmp_path / ".ci").mkdir()
    (tmp_path / "src" / "rgld").mkdir(parents=True)
    (tmp_path / "src" / "rgld" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.30\n")
    (tmp_path / "CITATION.cff").write_text("version: 1.2.2\n")
    copy = tmp_path / ".ci" / SCRIPT.name
    copy.write_text(SCRIPT.read_text())
    found = runpy.run_path(str(copy))["faults"]("v1.2.3")
    assert [fault.split()[0] for fault in found] == ["CHANGELOG.md", "CITATION.cff"]


def test_windows_runs_the_tests_of_the_numpy_kernels_that_make_test_runs():
    (listed,) = re.findall(r"^TWIN_TESTS := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    jobs = (ROOT / ".github" / "workflows" / "check.yml").read_text()
    job = jobs.partition("  windows:\n")[2].partition("  docs:\n")[0]
    tests = listed.replace("\\\n", " ").split()
    assert len(tests) > 5 and " ".join(tests) in " ".join(job.split())
