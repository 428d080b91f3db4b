"""The second study: ODDBench's tables, its clean split, its page."""

import numpy as np
import pytest

pytest.importorskip("pyod", reason="the study needs the extra 'bench'")
pytest.importorskip("pandas", reason="the study needs the extra 'bench'")

from rgld.bench import oddbench, synthetic, tables
from rgld.bench.lines import KEY, LINE_MEASURES, LINES, read_lines
from rgld.bench.protocol import MAX_STUDY_ROWS, split

from ..cli.command import rgld


def write_table(path, n=1200, n_train=500, seed=0):
    """Write a table as ODDBench has them: clean rows first."""
    X, y = synthetic.sparse_subspace(n=n, d=5, share=0.05, seed=seed)
    order = np.argsort(y, kind="stable")
    np.savez(path, X=X[order].astype(np.float32), y=y[order].astype(np.int8), n_train=n_train)


def test_the_clean_split_trains_on_the_first_rows_and_scores_the_others():
    rng = np.random.default_rng(0)
    X, y = rng.normal(3.0, 5.0, size=(300, 4)), np.repeat([0, 1], [250, 50])
    train, test, labels = split(X, y, 1, "clean", 200)
    assert train.shape == (200, 4) and test.shape == (100, 4)
    np.testing.assert_array_equal(labels, y[200:])
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(train.std(axis=0), 1)
    np.testing.assert_allclose(test, (X[200:] - X[:200].mean(axis=0)) / X[:200].std(axis=0))


def test_long_tables_are_cut_on_both_sides_without_mixing_them():
    n = MAX_STUDY_ROWS
    X = np.arange(4.0 * n)[:, None]
    y = np.repeat([0, 1], [3 * n, n])
    train, test, labels = split(X, y, 1, "clean", n + 5)
    assert len(train) == len(test) == len(labels) == n
    assert len(np.unique(train)) == len(np.unique(test)) == n, "drawn without replacement"
    assert train.max() < test.min()


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Both protocols on three small tables, by the command."""
    folder = tmp_path_factory.mktemp("oddbench")
    (folder / "tables").mkdir()
    for seed, name in enumerate(("One", "Two", "Three")):
        write_table(folder / "tables" / f"{name}.npz", seed=seed)
    names = [word for name in ("KNN", "ECOD", "RGLD", "RGLD-plus") for word in ("--detectors", name)]
    code, _, error = rgld("bench", "run", "--tables", folder / "tables", *names, "--brief", "--out", folder / "lines")
    assert code == 0, error
    return folder


def test_lines_have_both_protocols_and_are_brief(study):
    found = read_lines(study / "lines")
    assert len(found) == 3 * 2 * 4
    assert {line["protocol"] for line in found} == {"paper", "clean"}
    assert all(set(line) == {*KEY, *LINE_MEASURES, "error"} for line in found)
    assert min(line["auroc"] for line in found if line["detector"] == "RGLD") > 80


def test_a_second_run_has_nothing_to_do(study):
    before = (study / "lines" / LINES).read_bytes()
    code, _, error = rgld(
        *("bench", "run", "--tables", study / "tables", "--detectors", "KNN", "--brief", "--out", study / "lines")
    )
    assert code == 0, error
    assert (study / "lines" / LINES).read_bytes() == before


def test_the_page(study):
    code, _, error = rgld("bench", "oddbench", study / "lines", "--out", study / "page.md")
    assert code == 0, error
    text = (study / "page.md").read_text()
    assert "Here are 3 of its 790" in text and "Published, not measured by us" in text
    for protocol in ("paper", "clean"):
        assert f"](page/{protocol}_ranks_auroc.png)" in text
        assert (study / "page" / f"{protocol}_ranks_auroc.png").stat().st_size > 10_000
        assert len((study / "page" / f"{protocol}_auroc.csv").read_text().splitlines()) == 4


def line_of(dataset, detector, auroc):
    measured = {"auroc": auroc, "auprc": auroc / 2, "fit_seconds": 1.0, "score_seconds": 0.5}
    return {"protocol": "paper", "dataset": dataset, "detector": detector, "seed": 1, "error": None, **measured}


def test_the_summary_counts_only_tables_that_all_have():
    found = [line_of("a", "KNN", 60.0), line_of("b", "KNN", 70.0), line_of("c", "KNN", 0.0)]
    found += [line_of("a", "RGLD-plus", 70.0), line_of("b", "RGLD-plus", 84.0)]
    table = oddbench.summary(tables.frame_of(found), "RGLD-plus")
    assert table.at["KNN", "AUROC"] == 65.0
    assert table.at["KNN", "± AUROC"] == pytest.approx(5.0), "the deviation of 60 and 70, by the root of 2"
    assert table.at["KNN", "AUROC minus RGLD-plus"] == "-12.00 ± 2.00"
    assert table.at["RGLD-plus", "rank, AUROC"] == 1.0
    assert list(table.index) == ["RGLD-plus", "KNN"]


def without_n_train(path):
    np.savez(path, X=np.ones((4, 2)), y=np.ones(4))


def with_too_long_n_train(path):
    np.savez(path, X=np.ones((4, 2)), y=np.ones(4), n_train=4)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (None, "There is no table"),
        (without_n_train, "Expected arrays X, y and n_train"),
        (with_too_long_n_train, "Expected arrays X, y and n_train"),
        (lambda path: path.write_bytes(b"nothing"), "cannot be read"),
    ],
)
def test_a_bad_folder_is_one_sentence(tmp_path, write, message):
    if write:
        write(tmp_path / "bad.npz")
    code, _, error = rgld("bench", "run", "--tables", tmp_path, "--out", tmp_path / "out")
    assert code == 2 and message in error and "Traceback" not in error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--protocol", "clean"), "--protocol clean needs --tables DIR"),
        (("--tables", ".", "--datasets", "glass"), "--tables takes the place of"),
    ],
)
def test_options_that_do_not_go_together(arguments, message, tmp_path):
    code, _, error = rgld("bench", "run", *arguments, "--out", tmp_path / "out", folder=tmp_path)
    assert code == 2 and message in error
