"""`rgld check`: exit codes, the gate, the state file, the page."""

import json
import os
import signal
import subprocess
import threading

import numpy as np
import polars as pl
import pytest

from rgld.cli._state import read_state
from tests.cli.command import COMMAND, installed_rgld, rgld


def trips(n, seed):
    rng = np.random.default_rng(seed)
    distance = rng.gamma(2.0, 2.0, n).round(2)
    fare = (3.0 + 2.5 * distance + rng.normal(0.0, 1.0, n)).round(2)
    return pl.DataFrame({"trip": np.arange(n), "distance": distance, "fare": fare, "zone": rng.choice(list("abc"), n)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    trips(2000, 0).write_csv(folder / "past.csv")
    trips(600, 1).write_csv(folder / "new.csv")
    trips(600, 2).write_csv(folder / "later.csv")
    trips(600, 3).with_columns((pl.col("fare") * 100).round(0)).write_csv(folder / "cents.csv")
    code, _, error = rgld("fit", folder / "past.csv", "--model", folder / "m.rgld", "--id", "trip")
    assert code == 0, error
    return folder


def check(folder, *arguments):
    return rgld("check", *arguments, "--model", "m.rgld", folder=folder)


def test_fine_is_0(folder):
    code, out, error = check(folder, "new.csv")
    assert (code, error) == (0, "")
    assert out.startswith("fine: new.csv (600 rows) is like the table that the model was fitted on\n  bets against")


def test_an_alarm_is_3_and_what_changed_comes_first(folder):
    code, out, _ = check(folder, "cents.csv", "--id", "trip")
    assert code == 3
    first, second, *rest = out.splitlines()
    assert first == "DRIFT: cents.csv (600 rows) is not like the table that the model was fitted on"
    assert second.startswith("  fare: median 1,") and second.endswith("100 times as high: another unit?")
    assert any(line.split()[:2] == ["rank", "trip"] for line in rest)


def test_errors_are_2(folder):
    for arguments, words in (
        (("missing.csv",), "There is no file missing.csv"),
        (("new.csv", "--alpha", "2"), "--alpha must be between 0 and 1"),
        (("new.csv", "--fail-if", "drifts"), "--fail-if drifts: expected drift, columns, rows:PERCENT"),
        (("new.csv", "--fail-if", "rows"), "--fail-if rows: expected"),
        (("new.csv", "--fail-if", "rows:x"), "--fail-if rows:x: expected"),
        (("new.csv", "--state", "nowhere/s.json"), "there is no folder nowhere"),
        (("--history",), "--history needs --state"),
        ((), "Expected a table and a model"),
    ):
        code, out, error = check(folder, *arguments)
        assert (code, out) == (2, "") and words in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("table", "conditions", "code"),
    [
        ("cents.csv", "never", 0),
        ("cents.csv", "columns", 3),
        ("cents.csv", "rows:50", 3),
        ("cents.csv", "fdr", 3),
        ("new.csv", "drift,columns,rows:50", 0),
        ("new.csv", "rows:0", 3),
        ("new.csv", "fdr:0.01", 0),
    ],
)
def test_the_gate(folder, table, conditions, code):
    assert check(folder, table, "--fail-if", conditions, "--quiet") == (code, "", "")


def test_json(folder):
    code, out, _ = check(folder, "cents.csv", "--json", "--top", "2", "--fail-if", "drift,rows:5")
    content = json.loads(out)
    assert code == 3
    assert (content["schema"], content["version"], content["verdict"]) == ("rgld-check", 1, "drift")
    assert content["alarms"][0] == "drift" and content["alarms"][1].startswith("rows: 100.0 % are above")
    assert len(content["top"]) == 2 and content["above_threshold"] == 600
    drifted = [column["name"] for column in content["columns"] if column["drifted"]]
    assert drifted == ["fare"]


def test_score_warns_in_one_line(folder):
    code, _, error = rgld("score", "cents.csv", "--model", "m.rgld", folder=folder)
    assert code == 0 and error.count("\n") == 1
    assert error.startswith("cents.csv: not like the training table: fare: median 1,")
    assert rgld("score", "new.csv", "--model", "m.rgld", folder=folder)[2] == ""
    assert rgld("score", "cents.csv", "--model", "m.rgld", "--quiet", folder=folder)[2] == ""


def test_a_page_with_what_changed(folder):
    code, out, _ = check(folder, "cents.csv", "--report", "page.html", "--force")
    assert code == 3 and "page written to page.html" in out
    page = (folder / "page.html").read_text()
    assert '"drift":{"title":"Not like the training table"' in page


def test_state_goes_on_from_run_to_run(folder, tmp_path):
    state = tmp_path / "s.json"
    assert check(folder, "new.csv", "--state", state)[0] == 0
    assert check(folder, "later.csv", "--state", state)[0] == 0
    kept = read_state(str(state), None)
    assert kept.watch.n_rows == 1200 and [run["rows"] for run in kept.runs] == [600, 600]
    code, _, error = check(folder, "later.csv", "--state", state)
    assert code == 0 and "the last run checked the same rows already" in error
    assert read_state(str(state), None).watch.n_rows == 1200
    assert check(folder, "cents.csv", "--state", state)[0] == 3
    code, out, _ = check(folder, "new.csv", "--state", state)
    assert code == 3 and "in an earlier table" in out
    code, out, _ = rgld("check", "--history", "--state", state)
    assert code == 0
    lines = out.splitlines()
    assert lines[0].startswith("4 tables, 2,400 rows; the bets against them stand at over a million to 1")
    assert [line.split()[2] for line in lines if "csv" in line] == ["new.csv", "later.csv", "cents.csv", "new.csv"]
    assert len(json.loads(rgld("check", "--history", "--state", state, "--json")[1])["runs"]) == 4


def test_state_of_another_model(folder, tmp_path):
    state = tmp_path / "s.json"
    assert check(folder, "new.csv", "--state", state)[0] == 0
    rgld("fit", folder / "new.csv", "--model", tmp_path / "other.rgld", "--preset", "fast")
    code, _, error = rgld("check", folder / "new.csv", "--model", tmp_path / "other.rgld", "--state", state)
    assert code == 2 and "belongs to another model" in error


def _with(content, part, **changes):
    """A state with other values; strings that look like numbers are written as numbers."""
    old = content["watch"] if part == "watch" else content["runs"][0]
    new = {**content, part: {**old, **changes}} if part == "watch" else {**content, part: [{**old, **changes}] * 3}
    return json.dumps(new).replace('"1e999"', "1e999").replace('"-1e999"', "-1e999")


WRONG_STATES = {
    "infinite money": lambda content: _with(content, "watch", log_wealth="1e999", highest="1e999"),
    "no money at all": lambda content: _with(content, "watch", log_wealth="-1e999"),
    "an infinite score": lambda content: _with(content, "watch", pool=["1e999"]),
    "more rows than a float counts": lambda content: _with(content, "watch", n_rows=10**400),
    "a run of infinite money": lambda content: _with(content, "runs", log10_wealth="1e999"),
    "a run of much money": lambda content: _with(content, "runs", log10_wealth=-1e308),
    "a run of more rows than can be said": lambda content: _with(content, "runs", rows=10**4299 * 9),
    "a run of more than all rows": lambda content: _with(content, "runs", above_threshold=2.0),
    "no JSON": lambda content: "{",
    "a list": lambda content: "[]",
    "another schema": lambda content: json.dumps({**content, "schema": "x"}),
    "a later version": lambda content: json.dumps({**content, "version": 2}),
    "NaN": lambda content: json.dumps({**content, "watch": {**content["watch"], "log_wealth": float("nan")}}),
    "an empty pool": lambda content: json.dumps({**content, "watch": {**content["watch"], "pool": []}}),
    "a pool of text": lambda content: json.dumps({**content, "watch": {**content["watch"], "pool": ["a"]}}),
    "more money than there is": lambda content: json.dumps(
        {**content, "watch": {**content["watch"], "shares": [1.0] * 6}}
    ),
    "a run of another kind": lambda content: json.dumps({**content, "runs": [{"rows": "many"}]}),
    "too many bytes": lambda content: " " * 2**24,
    "deep": lambda content: "[" * 100_000,
}


@pytest.mark.parametrize("wrong", WRONG_STATES)
def test_a_wrong_state_file_is_refused(folder, tmp_path, wrong):
    state = tmp_path / "s.json"
    check(folder, "new.csv", "--state", state)
    state.write_text(WRONG_STATES[wrong](json.loads(state.read_text())))
    before = state.read_text()
    code, out, error = check(folder, "later.csv", "--state", state)
    assert (code, out) == (2, "") and "is not a state file of `rgld check`" in error
    assert state.read_text() == before
    code, out, error = rgld("check", "--history", "--state", state)
    assert (code, out) == (2, "") and "is not a state file of `rgld check`" in error


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_a_state_that_is_no_file(folder, tmp_path):
    """Nothing waits, and nothing is replaced."""
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "s.json.lock")
    for name, message in [
        ("loop", "a link that leads to itself"),
        ("pipe", "is not a state file"),
        ("s.json", "is not a regular file: remove it"),
        (".", "is a folder"),
        ("none/s.json", "there is no folder"),
    ]:
        code, out, error = check(folder, "new.csv", "--state", tmp_path / name)
        assert (code, out) == (2, "") and message in error, name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loop", "loop.lock", "pipe", "pipe.lock", "s.json.lock"]


def test_two_runs_at_once_both_count(folder, tmp_path):
    state = tmp_path / "s.json"
    codes = []

    def run(table):
        codes.append(installed_rgld("check", table, "-m", "m.rgld", "--state", state, "--quiet", folder=folder)[0])

    threads = [threading.Thread(target=run, args=(table,)) for table in ("new.csv", "later.csv")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]
    assert read_state(str(state), None).watch.n_rows == 1200


@pytest.mark.own_process
def test_a_killed_run_leaves_a_whole_file_and_no_lock(folder, tmp_path):
    state = tmp_path / "s.json"
    check(folder, "new.csv", "--state", state)
    for seconds in (0.3, 0.9, 1.5):
        process = subprocess.Popen(
            [COMMAND, "check", "later.csv", "-m", "m.rgld", "--state", str(state)],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert read_state(str(state), None).watch.n_rows in (600, 1200)
    assert check(folder, "later.csv", "--state", state)[0] == 0


def test_a_long_file_is_checked_in_batches(folder, tmp_path, monkeypatch):
    from rgld.cli import _files, _scoring

    monkeypatch.setattr(_files, "MIN_BATCH_ROWS", 100)
    monkeypatch.setattr(_files, "BATCH_CELLS", 400)
    monkeypatch.setattr(_scoring, "MAX_CHECK_SAMPLE", 150)
    monkeypatch.setattr(_scoring, "MIN_CHECK_SAMPLE", 150)
    code, out, _ = check(folder, "cents.csv")
    assert code == 3 and "fare: median 1," in out
    assert check(folder, "new.csv")[0] == 0


def test_the_sample_of_a_long_file_is_in_the_order_of_the_file(monkeypatch):
    """Otherwise nobody would see that a long file is sorted by its dates."""
    from rgld._fit.randomness import row_keys
    from rgld.cli import _scoring

    monkeypatch.setattr(_scoring, "MAX_CHECK_SAMPLE", 150)
    monkeypatch.setattr(_scoring, "MIN_CHECK_SAMPLE", 150)
    sample, start = _scoring._Sample(), 0
    for n in (100, 90, 400, 10, 700):
        sample.add(pl.DataFrame({"row": np.arange(start, start + n)}), start)
        start += n
    smallest = np.argsort(row_keys(_scoring.SAMPLE_SEED, np.arange(start), None))[:150]
    assert sample.frame()["row"].to_list() == sorted(smallest)
