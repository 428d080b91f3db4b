"""The fuzzers themselves: the corpus breaks nothing, inputs reach what they are meant for, and findings are found."""

import random
import re
from collections import Counter

import pytest

pytest.importorskip("pandas", reason="the fuzzers need pandas")
pytest.importorskip("pyarrow", reason="the fuzzers need Arrow")
pytest.importorskip("polars", reason="the fuzzers need the extra 'cli'")
pytest.importorskip("resource", reason="the fuzzers need a system that counts memory")

from . import broken, runner
from .__main__ import TARGETS
from .mutations import forged_model

GOOD_FIRST = next(seed for seed in range(99) if broken.Broken().make(random.Random(seed)) == b"fine")
"""A seed with which the first input breaks nothing."""
FILES = [(name, path) for name, target in TARGETS.items() for path in target().corpus]


@pytest.mark.parametrize(("name", "path"), FILES, ids=[f"{name}/{path}" for name, path in FILES])
def test_the_corpus_breaks_nothing(name, path, tmp_path):
    target = TARGETS[name]()
    found = target.check(target.corpus[path], tmp_path)
    # A model file that is refused reaches nothing: after a change of the format, `make_corpus.py` writes them again.
    may_be_refused = name not in ("models", "streams") or path.startswith("found-")
    assert found == "scored" or (found == "refused" and may_be_refused)


@pytest.mark.parametrize("name", TARGETS)
def test_a_seed_gives_the_same_inputs(name):
    target = TARGETS[name]()
    first, second = random.Random(3), random.Random(3)
    assert [target.make(first) for _ in range(20)] == [target.make(second) for _ in range(20)]


@pytest.mark.parametrize("name", ["models", "streams"])
def test_forged_files_pass_the_checksum(name, tmp_path):
    """Else the fuzzer would try the checksum again and again."""
    target, rng, outcomes = TARGETS[name](), random.Random(0), Counter()
    for i in range(60):
        (tmp_path / str(i)).mkdir()
        outcomes[target.check(forged_model(rng, target.pick(rng)), tmp_path / str(i))] += 1
    assert outcomes["scored"] >= 3 and outcomes["refused"] >= 20


@pytest.mark.own_process
@pytest.mark.parametrize(
    ("target", "what"),
    [
        (broken.Raises, "ValueError in broken.py:N: broken in line N"),
        (broken.Crashes, "the process ended by signal N"),
        (broken.Waits, "took more than N s"),
        (broken.Grows, "took more than N MB"),
    ],
)
def test_whatever_breaks_is_found(target, what, tmp_path):
    result = runner.attack(target, 0.2, GOOD_FIRST, tmp_path / "found")
    (finding,) = result.findings.values()
    assert re.sub(r"\d+", "N", finding.what) == what
    assert finding.path.read_bytes() == b"bad"
    assert finding.path.with_suffix(".txt").read_text() == f"{finding.what}\n"
    assert result.outcomes["broke"] == finding.times and result.outcomes["fine"] > 0


@pytest.mark.own_process
def test_a_crash_that_a_guard_catches_is_no_finding(tmp_path):
    result = runner.attack(broken.IsGuarded, 0.2, 0, tmp_path / "found")
    assert result.outcomes["guarded"] > 0 and not result.findings
