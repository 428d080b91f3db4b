"""The runner of the study and its commands: broken detectors, kills, bad arguments."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("pyod", reason="the study needs the extra 'bench'")
pytest.importorskip("pandas", reason="the study needs the extra 'bench'")

import pandas as pd

from rgld.bench import lines, synthetic
from rgld.bench.runner import run_study
from rgld.exceptions import RGLDError

from ..cli.command import COMMAND, installed_rgld, rgld
from .study_tasks import task

BROKEN = """
import os, time
import numpy as np
NAME, GROUP = "{name}", "reference"
class D:
    def fit(self, X):
        {action}
        return self
    def decision_function(self, X):
        return np.full(len(X), {score})
def make(seed): return D()
"""
BROKEN_DETECTORS = {
    "Crashes": ("raise RuntimeError('no good')", "0.5"),
    "Dies": ("os._exit(3)", "0.5"),
    "Hangs": ("time.sleep(60)", "0.5"),
    "Eats": ("self.x = np.ones((60_000, 60_000))", "0.5"),
    "NaNs": ("pass", "np.nan"),
    "Works": ("pass", "0.5"),
}


def test_a_broken_detector_is_recorded_and_the_study_goes_on(tmp_path):
    """Run in a copy of the package with broken detectors dropped in: one small file each is all it takes to add one."""
    script = tmp_path / "study.py"
    folder = tmp_path / "extra"
    folder.mkdir()
    for name, (action, score) in BROKEN_DETECTORS.items():
        (folder / f"x_{name.lower()}.py").write_text(BROKEN.format(name=name, action=action, score=score))
    script.write_text(
        f"""
import rgld.bench.detectors as d
d.__path__.append({str(folder)!r})
from pathlib import Path
from rgld.bench.runner import run_study
from rgld.bench.study import Study
from rgld.bench.worker import Task
if __name__ == "__main__":
    names = {list(BROKEN_DETECTORS)}
    tasks = [Task("paper", "mixture(n=1000, d=3)", n, 1, None, None, None, 1, 4 * 2**30) for n in names]
    run_study(tasks, Path({str(tmp_path / "out")!r}), jobs=2, time_limit=4)
"""
    )
    subprocess.run([sys.executable, str(script)], check=True, timeout=120)
    found = {line["detector"]: line["error"] for line in lines.read_lines(tmp_path / "out")}
    assert found["Works"] is None
    assert found["Crashes"].startswith("RuntimeError: no good (x_crashes.py:")
    assert found["Dies"] == "the process died (exit code 3)"
    assert found["Hangs"] == "stopped at the time limit of 4 s"
    assert found["Eats"].startswith("MemoryError")
    assert found["NaNs"] == "300 of 300 scores are NaN"


def test_lines_hold_what_a_reader_needs(tmp_path):
    (line,) = run_study([task(detector="RGLD-Fast")], tmp_path)
    assert {
        "auroc",
        "auprc",
        "fit_seconds",
        "score_seconds",
        "cpu_seconds",
        "peak_memory_mb",
        "versions",
        "threads",
    } <= set(line)
    assert (
        line["versions"]["rgld"]
        and line["error"] is None
        and line["preprocessing"] in ("standard", "robust", "quantile")
    )


@pytest.mark.exhaustive
def test_detectors_with_compiled_code_survive_the_fork(tmp_path):
    """HBOS is warmed up once, in the process that runs are forked from; SOD's parallel kernels must be in their own.

    In a process of its own: the server that forks is started once in a process, warm for the first study's detectors.
    """
    names = ("--detectors", "HBOS", "--detectors", "SOD", "--datasets", "sparse_subspace(n=300, d=6)", "--seeds", "1")
    code, _, error = installed_rgld("bench", "run", *names, "--out", tmp_path)
    assert code == 0, error
    found = {line["detector"]: line["error"] for line in lines.read_lines(tmp_path)}
    assert found == {"HBOS": None, "SOD": None}


def test_a_study_resumes_after_a_kill_and_loses_and_repeats_nothing(tmp_path):
    """The installed command on two tiny datasets: killed in the middle, run again, then tables."""
    for name in ("14_glass", "45_wine"):
        X, y = synthetic.sparse_subspace(n=300, d=5, share=0.05, seed=len(name))
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    out = tmp_path / "out"
    command = [COMMAND, "bench", "run", "--data", str(tmp_path), "--out", str(out)]
    asked = {"--detectors": ("RGLD", "RGLD-Fast", "IForest", "ADERH"), "--datasets": ("glass", "wine"), "--seeds": "12"}
    command += [word for option, names in asked.items() for name in names for word in (option, name)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    path = out / lines.LINES
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and not (path.exists() and path.read_bytes().count(b"\n") >= 3):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = path.read_text()
    finished = [json.loads(text) for text in before.splitlines(keepends=True) if text.endswith("\n")]
    assert 3 <= len(finished) < 16
    path.write_text("".join(json.dumps(line) + "\n" for line in finished) + '{"protocol": "pa')  # a torn line

    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "16 runs" in result.stderr
    found = [json.loads(text) for text in path.read_text().splitlines()]
    assert found[: len(finished)] == finished, "finished lines are kept as they were"
    assert len(found) == len({lines.key_of(line) for line in found}) == 16, "none is repeated"

    code, _, error = rgld("bench", "tables", out, "--out", tmp_path / "tables")
    assert code == 0, error
    assert "| RGLD |" in (tmp_path / "tables" / "main.md").read_text()
    code, _, error = rgld("bench", "results", out, "--out", tmp_path / "results.md")
    assert code == 0, error
    assert "## Head to head" in (tmp_path / "results.md").read_text()


def test_two_studies_cannot_write_to_one_folder(tmp_path):
    with (
        lines.appended_lines(tmp_path),
        pytest.raises(RGLDError, match="Another study"),
        lines.appended_lines(tmp_path),
    ):
        pass


RUN = b'{"protocol": "paper", "dataset": "glass", "detector": "RGLD", "seed": 1'


@pytest.mark.parametrize(
    "line",
    [b'{"a": 1}', b"[]", b"\xff\xfe{", b"[" * 100_000, RUN + b"}", RUN + b', "error": null, "auroc": "high"}'],
    ids=["no run", "a list", "not UTF-8", "deeply nested", "no measures", "text for a measure"],
)
def test_a_damaged_line_is_named(tmp_path, line):
    (tmp_path / lines.LINES).write_bytes(line + b"\n")
    with pytest.raises(RGLDError, match=r"Line 1 of lines.jsonl"):
        lines.read_lines(tmp_path)


def test_own_table_through_the_command(tmp_path):
    X, y = synthetic.sparse_subspace(n=1000, d=4)
    pd.DataFrame(X, columns=list("abcd")).assign(bad=y).to_csv(tmp_path / "mine.csv", index=False)
    table = ("--table", tmp_path / "mine.csv", "--label", "bad", "--protocol", "full")
    names = ("--detectors", "RGLD", "--detectors", "IForest", "--seeds", "1")
    code, _, error = rgld("bench", "run", *table, *names, "--out", tmp_path / "out")
    assert code == 0, error
    found = lines.read_lines(tmp_path / "out")
    assert {(line["dataset"], line["protocol"], line["n_train"]) for line in found} == {("mine", "full", 1000)}
    assert min(line["auroc"] for line in found) > 90
    for command in ("tables", "figures"):
        code, _, error = rgld("bench", command, tmp_path / "out", "--out", tmp_path / command)
        assert code == 0, error
    table = pd.read_csv(tmp_path / "tables" / "main.csv", index_col=0)
    assert (tmp_path / "figures" / "pareto_auroc.png").stat().st_size > 10_000
    assert (tmp_path / "figures" / "pareto_auroc.svg").exists()
    assert set(table.index) == {"RGLD", "IForest"}
    assert list(table["datasets"]) == [1, 1]


BAD_COMMANDS = {
    ("bench", "run"): "Missing option '--out'",
    ("bench", "run", "--out", "x", "--detectors", "nope"): "Expected the name of a detector, got 'nope'",
    ("bench", "run", "--out", "x", "--datasets", "nope"): "Expected the name of a dataset, got 'nope'",
    ("bench", "run", "--out", "x", "--protocol", "nope"): "--protocol must be one of",
    ("bench", "run", "--out", "x", "--table", "t.csv"): "--table and --label go together",
    ("bench", "run", "--out", "x", "--table", "t.csv", "--label", "y"): "t.csv",
    ("bench", "run", "--out", "x", "--jobs", "0"): "--jobs",
    ("bench", "run", "--out", "x", "--datasets", "glass"): "Nothing to run",
    ("bench", "tables", "nowhere", "--out", "x"): "nowhere",
    ("bench", "speed", "--from-lines", "--lines", "nowhere"): "--from-lines needs --lines FILE",
    ("bench", "speed", "--from-lines", "--lines", __file__): "does not hold what was measured before",
    ("bench", "nope"): "No such command 'nope'",
}


@pytest.mark.parametrize(
    ("arguments", "message"), BAD_COMMANDS.items(), ids=[" ".join(arguments) for arguments in BAD_COMMANDS]
)
def test_bad_commands_are_one_line_and_exit_code_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.delenv("RGLD_DATA", raising=False)
    code, _, error = rgld(*arguments, folder=tmp_path)
    assert code == 2
    assert message in error and "Traceback" not in error
    assert error.rstrip().splitlines()[-1].startswith("rgld: ")


def test_control_characters_of_a_line_are_not_printed(tmp_path):
    folder = tmp_path / "\x1b[31m"
    folder.mkdir()
    (folder / lines.LINES).write_bytes(RUN + b', "error": "failed"}\n')
    _, _, error = rgld("bench", "tables", folder, "--out", tmp_path / "\x1b[31mout")
    assert error and "\x1b" not in error
