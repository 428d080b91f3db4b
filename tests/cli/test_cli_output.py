"""Where results go: devices, pipes, files that are there, files that others write in the meantime."""

import os
import stat
import subprocess
import sys
from functools import partial

import numpy as np
import polars as pl
import pytest

from rgld import load

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from .command import COMMAND, installed_rgld, rgld

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="devices of POSIX")

COMMANDS = {
    "score": ["score", "t.csv", "-o"],
    "explain": ["explain", "t.csv", "-o"],
    "fit": ["fit", "t.csv", "-m"],
    "report": ["report", "t.csv", "-o"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("output")
    rng = np.random.default_rng(0)
    pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)}).write_csv(folder / "t.csv")
    return folder


@pytest.fixture
def guarded(monkeypatch):
    """Let a defect fail, not remove a device."""

    def unless_device(rename, source, target):
        assert os.path.realpath(target) != os.devnull, "a device would have been replaced"
        rename(source, target)

    for name in ("replace", "rename", "link"):
        monkeypatch.setattr(os, name, partial(unless_device, getattr(os, name)))


@pytest.mark.usefixtures("guarded")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_results_to_the_null_device(folder, command):
    before = os.stat(os.devnull)
    code, _, error = rgld(*command, os.devnull, folder=folder)
    assert (code, error) == (0, "")
    after = os.stat(os.devnull)
    assert stat.S_ISCHR(after.st_mode) and (after.st_ino, after.st_rdev) == (before.st_ino, before.st_rdev)


@pytest.mark.parametrize("path", ["/dev/stdout", pytest.param("/dev/fd/1", marks=pytest.mark.exhaustive)])
def test_results_to_standard_output_by_name(folder, path):
    """They are those of `--out -`, and messages go to standard error."""
    if not os.path.exists(path):
        pytest.skip(f"there is no {path} here")
    code, out, error = installed_rgld("score", "t.csv", "--out", path, folder=folder)
    expected = rgld("score", "t.csv", "--out", "-", folder=folder)
    assert (code, out, error) == expected
    assert out.startswith("line,score,rank") and len(out.splitlines()) == 61 and "60 rows" in error


def test_a_model_to_standard_output(folder, tmp_path):
    with open(tmp_path / "m.rgld", "wb") as file:
        subprocess.run([COMMAND, "fit", "t.csv", "-m", "/dev/stdout"], cwd=folder, stdout=file, check=True)
    assert load(tmp_path / "m.rgld").n_features_in_ == 2


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_pipe_is_not_replaced(folder, tmp_path, command):
    os.mkfifo(tmp_path / "pipe.csv")
    for force in ([], ["--force"]):
        code, out, error = rgld(*command, tmp_path / "pipe.csv", *force, folder=folder)
        assert code == 2 and out == "" and "is a device, a pipe or a socket, expected the name of a file" in error
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe.csv").st_mode)


def test_a_loop_of_links(folder, tmp_path):
    os.symlink("loop.csv", tmp_path / "loop.csv")
    code, _, error = rgld("score", "t.csv", "-o", tmp_path / "loop.csv", folder=folder)
    assert code == 2 and "a link that leads to itself" in error and len(error.splitlines()) == 1


@pytest.mark.parametrize("path", ["a\0b.csv", "x" * 256 + ".csv"], ids=["null character", "too long"])
def test_a_path_that_no_file_can_have(folder, path):
    code, _, error = rgld("score", "t.csv", "-o", path, folder=folder)
    assert code == 2 and len(error.splitlines()) == 1 and "defect" not in error
    code, _, error = rgld("score", "t.csv", "-m", path, folder=folder)
    assert code == 2 and len(error.splitlines()) == 1 and "defect" not in error


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_appears_in_the_meantime_stays(folder, tmp_path, monkeypatch, name):
    """Of several runs at once that write one new file, one succeeds: the others find it when they are done."""
    path = tmp_path / "new.csv"

    def check_out(*_, **__):
        path.write_text("mine")  # after the check

    monkeypatch.setattr(f"rgld.cli.{name}.check_out", check_out)
    code, _, error = rgld(*COMMANDS[name], path, folder=folder)
    assert code == 2 and "exists already: name another file, or pass --force" in error
    assert path.read_text() == "mine" and os.listdir(tmp_path) == ["new.csv"]
    assert rgld(*COMMANDS[name], path, "--force", folder=folder)[0] == 0
    assert path.read_bytes() != b"mine"


@pytest.mark.parametrize("n_runs", [2, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_runs_at_once_to_one_new_file(folder, tmp_path, n_runs):
    command = [COMMAND, "score", "t.csv", "-o", tmp_path / "new.csv", "--quiet"]
    runs = [subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) for _ in range(n_runs)]
    errors = [run.communicate(timeout=300)[1].decode() for run in runs]
    assert sorted(run.returncode for run in runs) == [0] + [2] * (n_runs - 1)
    assert all("exists already" in error for error in errors if error)
    assert os.listdir(tmp_path) == ["new.csv"]


def test_a_forced_file_keeps_who_may_read_it(folder, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("private")
    path.chmod(0o600)
    assert rgld("score", "t.csv", "-o", path, "--force", folder=folder)[0] == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_text().startswith("line,score")
