"""The study: protocol, datasets, runner, tables, as a user runs them."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("pyod", reason="the study needs the extra 'bench'")
pytest.importorskip("pandas", reason="the study needs the extra 'bench'")

import pandas as pd
from sklearn.metrics import average_precision_score, roc_auc_score

from rgld.bench import datasets, detectors, figures, lines, protocol, specs, synthetic, tables
from rgld.bench.runner import run_study
from rgld.bench.study import Study
from rgld.bench.worker import Task, run
from rgld.exceptions import ParameterError, RGLDError, TableError

RGLD_COMMAND = Path(sys.executable).with_name("rgld")
ADBENCH = Path(os.environ.get("RGLD_DATA") or Path(__file__).parents[2] / "shared" / "data" / "adbench")
needs_data = pytest.mark.skipif(not ADBENCH.is_dir(), reason="the datasets are not here (RGLD_DATA)")


def task(dataset="sparse_subspace(n=300, d=6)", detector="HBOS", seed=1, protocol="paper", memory=0, data=None):
    return Task(protocol, dataset, detector, seed, data, None, None, 1, memory)


def rgld(*arguments, **keywords):
    return subprocess.run([RGLD_COMMAND, *arguments], capture_output=True, text=True, check=False, **keywords)


# Protocol


def test_small_tables_are_resampled_and_large_ones_cut():
    rng = np.random.default_rng(0)
    for n, expected in ((200, 1000), (1000, 1000), (5000, 5000), (30_000, 10_000)):
        X, y = rng.random((n, 3)), (np.arange(n) % 10 == 0).astype(int)
        train, test, labels = protocol.split(X, y, 1)
        assert len(train) + len(test) == expected
        assert len(labels) == len(test) == round(0.3 * expected)
        assert train.min() == 0 and train.max() == pytest.approx(1)


def test_the_full_protocol_leaves_the_table_alone():
    X, y = np.random.default_rng(0).random((50, 2)), np.arange(50) % 2
    train, test, labels = protocol.split(X, y, 1, "full")
    assert train is X and test is X and labels is y


def test_infinite_scores_rank_first():
    labels = np.array([0, 0, 1])
    assert protocol.measure(labels, np.array([0.0, 1.0, np.inf])).auroc == 100.0
    assert protocol.measure(labels, np.array([0.0, np.inf, 1.0])).auroc == 50.0


def test_measures_are_scikit_learns():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, 100), rng.random(100)
    expected = (100 * roc_auc_score(labels, scores), 100 * average_precision_score(labels, scores))
    assert protocol.measure(labels, scores) == pytest.approx(expected)


REPRODUCED = (
    *("glass", "wine", "WBC", "Hepatitis", "Lymphography", "vertebral", "Pima", "WPBC", "Stamps", "breastw"),
    *("vowels", "yeast", "Wilt", "thyroid"),
)


@needs_data
@pytest.mark.parametrize("detector", ["COPOD", "HBOS", "LOF", "LODA"])
def test_published_figures_are_reproduced(detector):
    """Under this protocol the paper's AUROC comes out to 0.02 points, on at least ten datasets."""
    published = tables.paper_results().set_index(["dataset", "method"])["auroc"]
    same = []
    for name in REPRODUCED:
        aurocs = [run(task(name, detector, seed, data=str(ADBENCH)))["auroc"] for seed in (1, 2, 3)]
        same.append(abs(np.mean(aurocs) - published[name, detector]) <= 0.02)
    assert sum(same) >= 10


# Datasets


def test_registry():
    assert len(datasets.registry()) == 47
    assert [entry.number for entry in datasets.registry().values()] == list(range(1, 48))
    assert sum(not entry.sha256 for entry in datasets.registry().values()) == 4


@needs_data
def test_registry_describes_the_files():
    for name in ("glass", "Wilt", "satimage-2"):
        X, y = datasets.load_dataset(name, ADBENCH)
        entry = datasets.registry()[name]
        assert (*X.shape, y.sum()) == (entry.rows, entry.columns, entry.anomalies)


def test_unknown_names_are_refused_with_what_there_is():
    with pytest.raises(ParameterError, match=r"got 'nope'; known are: ALOI"):
        datasets.known_datasets(["nope"])
    with pytest.raises(ParameterError, match=r"got 'nope'; known are: all"):
        detectors.known_detectors(["nope"])


def test_pickled_arrays_are_never_loaded(tmp_path):
    np.savez(tmp_path / "14_glass.npz", X=np.array([{"a": 1}], dtype=object), y=np.array([0]))
    line = run(task("glass", data=str(tmp_path)))
    assert "allow_pickle" in line["error"]


class Server(http.server.SimpleHTTPRequestHandler):
    """A file server that knows ranges and can break off in the middle."""

    break_after = None
    ranges: ClassVar[list] = []

    def do_GET(self):
        content = (Path(self.directory) / self.path.lstrip("/")).read_bytes()
        start = 0
        if "Range" in self.headers:
            start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
            self.ranges.append(start)
            self.send_response(206 if start < len(content) else 416)
        else:
            self.send_response(200)
        rest = content[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if type(self).break_after is not None:
            rest, type(self).break_after = rest[: self.break_after], None
        self.wfile.write(rest)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    class Own(Server):
        ranges: ClassVar[list] = []

    folder = tmp_path / "served"
    folder.mkdir()
    instance = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Own(*a, directory=str(folder)))
    threading.Thread(target=instance.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{instance.server_port}", Own
    instance.shutdown()
    instance.server_close()


@needs_data
def test_fetch_verifies_resumes_and_keeps_nothing_wrong(server, tmp_path):
    folder, address, handler = server
    content = (ADBENCH / "14_glass.npz").read_bytes()
    (folder / "14_glass.npz").write_bytes(content)
    target, said = tmp_path / "data", []

    handler.break_after = 1000
    assert datasets.fetch(["glass"], target, address, said.append) == ["glass"]
    if (target / "14_glass.npz.part").exists():
        assert (target / "14_glass.npz.part").stat().st_size <= 1000
    assert datasets.fetch(["glass"], target, address, said.append) == []
    assert (target / "14_glass.npz").read_bytes() == content
    assert datasets.fetch(["glass"], target, address, said.append) == []
    assert "already there" in said[-1]

    (folder / "14_glass.npz").write_bytes(content[:-1] + b"x")
    (target / "14_glass.npz").unlink()
    assert datasets.fetch(["glass"], target, address, said.append) == ["glass"]
    assert "checksum" in said[-1]
    assert os.listdir(target) == []


@needs_data
def test_fetch_goes_on_where_it_stopped(server, tmp_path):
    folder, address, handler = server
    content = (ADBENCH / "14_glass.npz").read_bytes()
    (folder / "14_glass.npz").write_bytes(content)
    (tmp_path / "14_glass.npz.part").write_bytes(content[:700])
    assert datasets.fetch(["glass"], tmp_path, address, lambda text: None) == []
    assert handler.ranges == [700]
    assert (tmp_path / "14_glass.npz").read_bytes() == content


def test_fetch_from_nowhere_is_one_line(tmp_path):
    result = rgld("bench", "fetch", str(tmp_path), "--datasets", "glass", "--address", "http://127.0.0.1:9")
    assert result.returncode == 2
    assert "could not be fetched: glass" in result.stderr and "Traceback" not in result.stderr


def test_own_table(tmp_path):
    X, y = synthetic.sparse_subspace(n=400, d=4)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(fraud=np.where(y == 1, "yes", "no"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    np.savez(tmp_path / "t.npz", X=X, fraud=y)
    for name in ("t.csv", "t.parquet", "t.npz"):
        loaded, labels = datasets.load_table(tmp_path / name, "fraud")
        np.testing.assert_allclose(loaded, X)
        np.testing.assert_array_equal(labels, y)
    with pytest.raises(TableError, match="column 'nope'"):
        datasets.load_table(tmp_path / "t.csv", "nope")
    with pytest.raises(TableError, match="two values"):
        datasets.load_table(tmp_path / "t.csv", "a")
    frame.assign(e="text").to_csv(tmp_path / "text.csv", index=False)
    with pytest.raises(TableError, match="Column 'e'"):
        datasets.load_table(tmp_path / "text.csv", "fraud")


@pytest.mark.parametrize("name", synthetic.GENERATORS)
def test_generators(name):
    X, y = synthetic.GENERATORS[name](n=500, seed=3)
    assert len(X) == len(y) == 500 and set(y) == {0, 1} and np.isfinite(X).all()
    np.testing.assert_array_equal(X, synthetic.GENERATORS[name](n=500, seed=3)[0])
    assert 0.005 < y.mean() < 0.1


def test_specs():
    assert specs.parse_spec("RGLD(n_local_views=0)") == ("RGLD", {"n_local_views": 0})
    for bad in ("RGLD(", "RGLD(1)", "RGLD(x=__import__('os'))", "RGLD(x=1) + 1"):
        with pytest.raises(ParameterError):
            specs.parse_spec(bad)


# Detectors


@pytest.mark.parametrize("name", [n for n, m in detectors.registry().items() if m.GROUP != "deep"])
def test_every_detector_finds_plain_outliers(name):
    # SOD looks for rows that are far in some columns and near in others.
    informative = 1 if name == "SOD" else 4
    X, y = synthetic.sparse_subspace(n=120, d=4, informative=informative, shift=9.0, share=0.04)
    detector = detectors.make_detector(name, 1)
    detector.fit(X)
    assert roc_auc_score(y, detector.decision_function(X)) > (0.8 if name == "SOD" else 0.95)


DEEP = [n for n, m in detectors.registry().items() if m.GROUP == "deep"]


@pytest.mark.parametrize("name", DEEP)
def test_deep_detectors_run_or_say_what_to_install(name):
    message = detectors.what_to_install(name)
    if message:
        assert message.startswith(f"{name} needs the package") and "pip install" in message and "\n" not in message
        return
    X, y = synthetic.sparse_subspace(n=200, d=4, informative=4, shift=7.0, share=0.05)
    detector = detectors.make_detector(f"{name}(epochs=2)", 1)
    detector.fit(X)
    assert np.isfinite(detector.decision_function(X)).all() and len(y) == 200


def test_dagmm_is_trained():
    torch = pytest.importorskip("torch")
    X, _ = synthetic.sparse_subspace(n=300, d=4)
    models = [detectors.make_detector(f"DAGMM(epochs={n})", 1).fit(X) for n in (1, 30)]
    rows = torch.as_tensor(X.astype(np.float32))
    errors = [float(model._latent(rows)[1].mean()) for model in models]
    assert errors[1] < 0.9 * errors[0]


@needs_data
def test_the_script_variant_of_aderh_reproduces_published_figures():
    published = tables.paper_results().set_index(["dataset", "method"])["auroc"]
    for name in ("glass", "WBC", "breastw"):
        aurocs = [run(task(name, "ADERH-script", seed, data=str(ADBENCH)))["auroc"] for seed in (1, 2, 3)]
        assert np.mean(aurocs) == pytest.approx(published[name, "ADERH"], abs=0.1)


# Runner


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


def test_detectors_with_compiled_code_survive_the_fork(tmp_path):
    """HBOS is warmed up once, in the process that runs are forked from; SOD's parallel kernels must be in their own."""
    found = run_study([task(detector="HBOS"), task(detector="SOD")], tmp_path)
    assert [line["error"] for line in found] == [None, None]


def test_a_study_resumes_after_a_kill_and_loses_and_repeats_nothing(tmp_path):
    """The installed command on two tiny datasets: killed in the middle, run again, then tables and figures."""
    for name in ("14_glass", "45_wine"):
        X, y = synthetic.sparse_subspace(n=300, d=5, share=0.05, seed=len(name))
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    out = tmp_path / "out"
    command = [
        RGLD_COMMAND,
        "bench",
        "run",
        "--detectors",
        "RGLD",
        "RGLD-Fast",
        "HBOS",
        "ADERH",
        "--datasets",
        "glass",
        "wine",
    ]
    command += ["--seeds", "1", "2", "3", "--data", str(tmp_path), "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    path = out / lines.LINES
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and not (path.exists() and path.read_bytes().count(b"\n") >= 3):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = path.read_text()
    finished = [json.loads(text) for text in before.splitlines(keepends=True) if text.endswith("\n")]
    assert 3 <= len(finished) < 24
    path.write_text("".join(json.dumps(line) + "\n" for line in finished) + '{"protocol": "pa')  # a torn line

    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "24 runs" in result.stderr
    found = [json.loads(text) for text in path.read_text().splitlines()]
    assert found[: len(finished)] == finished, "finished lines are kept as they were"
    assert len(found) == len({lines.key_of(line) for line in found}) == 24, "none is repeated"

    for what in ("tables", "figures"):
        result = rgld("bench", what, str(out), "--out", str(tmp_path / what))
        assert result.returncode == 0, result.stderr
    assert "| RGLD |" in (tmp_path / "tables" / "main.md").read_text()
    assert (tmp_path / "figures" / "pareto_auroc.png").stat().st_size > 10_000
    assert (tmp_path / "figures" / "pareto_auroc.svg").exists()
    result = rgld("bench", "results", str(out), "--out", str(tmp_path / "results.md"))
    assert result.returncode == 0, result.stderr
    assert "## Head to head" in (tmp_path / "results.md").read_text()


def test_two_studies_cannot_write_to_one_folder(tmp_path):
    with (
        lines.appended_lines(tmp_path),
        pytest.raises(RGLDError, match="Another study"),
        lines.appended_lines(tmp_path),
    ):
        pass


def test_a_damaged_line_is_named(tmp_path):
    (tmp_path / lines.LINES).write_text('{"a": 1}\n')
    with pytest.raises(RGLDError, match=r"Line 1 of lines.jsonl"):
        lines.read_lines(tmp_path)


def test_own_table_through_the_command(tmp_path):
    X, y = synthetic.sparse_subspace(n=1000, d=4)
    pd.DataFrame(X, columns=list("abcd")).assign(bad=y).to_csv(tmp_path / "mine.csv", index=False)
    arguments = [
        "bench",
        "run",
        "--table",
        str(tmp_path / "mine.csv"),
        "--label",
        "bad",
        "--detectors",
        "RGLD",
        "--detectors",
        "HBOS",
        "--seeds",
        "1",
    ]
    result = rgld(*arguments, "--protocol", "full", "--out", str(tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    found = lines.read_lines(tmp_path / "out")
    assert {(line["dataset"], line["protocol"], line["n_train"]) for line in found} == {("mine", "full", 1000)}
    assert min(line["auroc"] for line in found) > 90
    for command in ("tables", "figures"):
        result = rgld("bench", command, str(tmp_path / "out"), "--out", str(tmp_path / command))
        assert result.returncode == 0, result.stderr
    table = pd.read_csv(tmp_path / "tables" / "main.csv", index_col=0)
    assert set(table.index) == {"RGLD", "HBOS"}
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
    ("bench", "nope"): "No such command 'nope'",
}


@pytest.mark.parametrize(
    ("arguments", "message"), BAD_COMMANDS.items(), ids=[" ".join(arguments) for arguments in BAD_COMMANDS]
)
def test_bad_commands_are_one_line_and_exit_code_2(arguments, message, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "RGLD_DATA"}
    result = rgld(*arguments, cwd=tmp_path, env=environment)
    assert result.returncode == 2
    assert message in result.stderr and "Traceback" not in result.stderr
    assert result.stderr.rstrip().splitlines()[-1].startswith("rgld: ")


# Tables


def test_the_papers_main_table_and_tests_follow_from_its_figures():
    """Our conventions (wins, ranks, coverage, Wilcoxon) are the paper's: its main table follows from its others."""
    published = tables.paper_results()
    methods, names = list(dict.fromkeys(published["method"])), list(dict.fromkeys(published["dataset"]))
    values = {m: tables.wide(published, m).reindex(index=names, columns=methods) for m in tables.MEASURES}
    found = tables.Cells(values, values["auroc"].isna())
    ours, theirs = tables.main_table(found), tables.paper_main().set_index("method")
    for column, tolerance in (("auroc", 0.006), ("auprc", 0.006), ("rank", 0.011), ("time", 0.006)):
        np.testing.assert_allclose(ours.loc[theirs.index, column], theirs[column], atol=tolerance)
    for column in ("auroc_wins", "auprc_wins"):
        np.testing.assert_array_equal(ours.loc[theirs.index, column], theirs[column])
    assert ours.loc["DAGMM", "datasets"] == 40
    p_values = tables.head_to_head(found, "RGLD", "ADERH")["p_value"]
    np.testing.assert_allclose(p_values, [0.162, 0.228, 2.39e-9], rtol=0.005)


def line_of(dataset, detector, seed, auroc, error=None):
    measured = (
        {} if error else {"auroc": auroc, "auprc": auroc / 2, "fit_seconds": 1.0, "score_seconds": 0.5, "n_infinite": 0}
    )
    return {"protocol": "paper", "dataset": dataset, "detector": detector, "seed": seed, "error": error, **measured}


def test_wide_takes_the_mean_over_states_then_seeds():
    frame = tables.frame_of(
        [
            line_of("glass", "RGLD(random_state=0)", 1, 10.0),
            line_of("glass", "RGLD(random_state=1)", 1, 20.0),
            line_of("glass", "RGLD(random_state=0)", 2, 40.0),
            line_of("glass", "HBOS", 1, 50.0, error="failed"),
        ]
    )
    assert tables.wide(frame, "auroc").at["glass", "RGLD"] == pytest.approx((15 + 40) / 2)
    assert "HBOS" not in tables.wide(frame, "auroc")


def test_paper_figures_stand_in_where_told_and_are_marked():
    frame = tables.frame_of(
        [line_of("glass", "RGLD", 1, 80.0), line_of("glass", "DIF", 1, 60.0), line_of("wine", "RGLD", 1, 70.0)]
    )
    found = tables.cells(frame, ["RGLD", "DIF"], ["glass", "wine"], fill_from_paper=["DIF"])
    assert found.values["auroc"].at["glass", "DIF"] == 60.0
    published = tables.paper_results().set_index(["dataset", "method"])["auroc"]
    assert found.values["auroc"].at["wine", "DIF"] == published["wine", "DIF"]
    assert found.from_paper["DIF"].tolist() == [False, True]
    assert tables.main_table(found).loc["DIF", "from_paper"] == 1


def test_ties_count_as_wins_for_each():
    table = pd.DataFrame({"a": [1.0, 3.0], "b": [1.0, 2.0], "c": [0.0, np.nan]})
    assert tables.wins(table).to_dict() == {"a": 2, "b": 1, "c": 0}
    assert tables.average_rank(table).to_dict() == {"a": 1.25, "b": 1.75, "c": 3.0}


def test_effect_size_is_one_where_one_side_always_wins():
    a = pd.Series([1.0, 2.0, 3.0, 4.0, 5.0])
    result = tables.paired_test("auroc", a + 1, a)
    assert (result.effect, result.better, result.worse) == (1.0, 5, 0)
    assert tables.paired_test("seconds", a + 1, a).effect == -1.0


def test_markdown():
    text = tables.markdown(pd.DataFrame({"x": [1.234, np.nan], "n": [3, 4]}, index=["a", "b"]), 2, "name")
    assert text.splitlines() == ["| name | x | n |", "|---|---|---|", "| a | 1.23 | 3 |", "| b | N/A | 4 |"]


def test_tables_by_dataset_have_the_papers_figures_beside_ours():
    study = Study([line_of("glass", "HBOS", 1, 80.0), line_of("glass", "MCD", 1, 70.0)])
    table = tables.beside_paper(study.cells, "auroc")
    published = tables.wide(tables.paper_results(), "auroc").at["glass", "HBOS"]
    assert table.at["glass", "HBOS"] == 80.0
    assert table.at["glass", "HBOS (paper)"] == published
    assert "MCD (paper)" not in table, "the paper does not have it"


def test_figures_are_the_same_files_for_the_same_lines(tmp_path):
    methods, sets = ("RGLD", "HBOS", "ADERH", "IForest"), ("glass", "wine", "WBC", "Pima", "yeast", "thyroid")
    found = [line_of(d, m, s, 60.0 + i + s) for i, m in enumerate(methods) for d in sets for s in (1, 2)]
    main = tables.main_table(Study(found).cells)
    for name in ("one", "two"):
        figures.save(figures.pareto(main), tmp_path / name)
        figures.save(
            figures.critical_difference(Study(found).cells.values["auroc"][list(methods)]), tmp_path / f"cd-{name}"
        )
    for first, second in (("one", "two"), ("cd-one", "cd-two")):
        assert (tmp_path / f"{first}.svg").read_bytes() == (tmp_path / f"{second}.svg").read_bytes()
        assert (tmp_path / f"{first}.png").stat().st_size > 10_000
