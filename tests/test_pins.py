"""What the project takes from others is named exactly: versions in the lock file, commits of actions."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))


def names_of(requirements):
    return {re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-") for requirement in requirements}


@pytest.mark.skipif(not LOCK.exists(), reason="the tests run outside the repository")
def test_the_lock_file_names_versions_and_no_places():
    lines = [line for line in LOCK.read_text().splitlines() if not line.startswith("#")]
    assert len(lines) > 50
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)
    locked = names_of(lines)
    assert not locked & {"torch", "rgld"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    asked += [
        requirement
        for name in ("cli", "bench", "dask", "duckdb", "sql", "spark", "pyod", "serve")
        for requirement in extras[name]
    ]
    assert names_of(asked) - {"rgld"} <= locked, "run `make lock`"


@pytest.mark.skipif(not WORKFLOWS, reason="the tests run outside the repository")
@pytest.mark.parametrize("workflow", WORKFLOWS, ids=[path.name for path in WORKFLOWS])
def test_actions_are_named_by_commit_and_may_read_only(workflow):
    text = workflow.read_text()
    used = [action for action in re.findall(r"uses: (.*)", text) if not action.startswith("./")]
    assert used and all(re.match(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+\b", action) for action in used)
    written = re.findall(r"^ +([\w-]+): write\b", text, re.M)
    assert "\npermissions:\n  contents: read\n" in text
    # Only a release proves who it is, and writes the page of the release.
    assert written == (["id-token", "contents"] if workflow.name == "release.yml" else [])
