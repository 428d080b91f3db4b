"""`rgld fit`, `score`, `explain`, `info`, `demo`: what they print and write."""

import gzip
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rgld import RGLD, load
from rgld.exceptions import TableError

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from rgld.cli import demo

from .command import COMMAND, installed_rgld, rgld

README = Path(__file__).parents[2] / "README.md"


def payments(n=400, seed=0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "id": [f"P{i}" for i in range(n)],
            "amount": rng.lognormal(3.0, 0.4, n).round(2),
            "city": rng.choice(["Bonn", "Köln", "Trier"], n),
            "when": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(n)],
            "age": [None if i % 17 == 0 else int(a) for i, a in enumerate(rng.normal(40, 9, n))],
        }
    )
    return frame


WAYS = {"by-model": ["--model", "m.rgld"], "by-itself": []}
"""A table is scored by a model file, or by a detector fitted on it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table of payments, number 7 very large, as CSV and in other formats, and a model of them."""
    folder = tmp_path_factory.mktemp("cli")
    frame = payments()
    frame[7, "amount"] = 99_999.0
    frame.write_csv(folder / "t.csv")
    frame.write_parquet(folder / "t.parquet")
    frame.write_ipc(folder / "t.arrow")
    frame.write_csv(folder / "semicolons.csv", separator=";")
    frame.write_csv(folder / "tabs.tsv", separator="\t")
    (folder / "latin.csv").write_bytes((folder / "t.csv").read_bytes().decode().encode("windows-1252"))
    (folder / "utf16.csv").write_bytes((folder / "t.csv").read_bytes().decode().encode("utf-16"))
    (folder / "bom.csv").write_bytes(b"\xef\xbb\xbf" + (folder / "t.csv").read_bytes())
    (folder / "t.csv.gz").write_bytes(gzip.compress((folder / "t.csv").read_bytes()))
    decimal = (folder / "semicolons.csv").read_text().replace(".", ",")
    (folder / "decimal.csv").write_text(decimal)
    code, _, error = rgld("fit", folder / "t.csv", "--model", folder / "m.rgld", "--id", "id", "--quiet")
    assert code == 0, error
    for name, arguments in WAYS.items():
        rgld("score", folder / "t.csv", *arguments, "--id", "id", "-q", "--out", f"{name}.csv", folder=folder)
    return folder


def scores_of(path):
    return pl.read_csv(path)["score"].to_numpy()


def test_one_command_from_a_file_to_rows_with_reasons(folder, tmp_path):
    code, out, error = installed_rgld("score", folder / "t.csv", "--id", "id", "--out", tmp_path / "s.csv", "--top", 3)
    assert code == 0, error
    assert "amount 99,999 is far above usual" in out and "P7" in out
    result = pl.read_csv(tmp_path / "s.csv")
    assert result.columns == ["id", "score", "rank", "top_share", "reasons"]
    assert result["id"].to_list() == payments()["id"].to_list()
    assert result.row(7, named=True)["rank"] == 1
    assert result.row(7, named=True)["top_share"] == pytest.approx(1 / 400)
    assert result.row(7, named=True)["reasons"].startswith("amount 99,999 is far above usual")
    assert sorted(result["rank"].to_list())[:2] == [1, 2]


def test_the_command_scores_as_the_library_does(folder, tmp_path):
    rgld("score", folder / "t.parquet", "--id", "id", "--out", tmp_path / "s.parquet", "--seed", 3, "--preset", "fast")
    X = pl.read_parquet(folder / "t.parquet").drop("id")
    expected = RGLD.fast(random_state=3).fit(X).anomaly_score(X)
    np.testing.assert_array_equal(pl.read_parquet(tmp_path / "s.parquet")["score"].to_numpy(), expected)


NAMES = ["t.parquet", "t.arrow", "semicolons.csv", "tabs.tsv", "latin.csv", "utf16.csv", "bom.csv"]
NAMES += ["t.csv.gz", "decimal.csv"]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_scores_from_any_file(folder, tmp_path, name):
    for way, arguments in WAYS.items():
        out = tmp_path / f"{way}.csv"
        code, _, error = rgld("score", name, *arguments, "--id", "id", "-q", "--out", out, folder=folder)
        assert code == 0, error
        np.testing.assert_array_equal(scores_of(out), scores_of(folder / f"{way}.csv"))


def test_standard_input_and_output(folder):
    table = (folder / "t.csv").read_bytes()
    arguments = ["score", "-", "--model", folder / "m.rgld", "--id", "id", "--out", "-"]
    code, out, error = installed_rgld(*arguments, stdin=table)
    assert code == 0, error
    assert len(pl.read_csv(out.encode())) == 400 and "P7" in error
    code, out, _ = rgld("score", "-", "-q", "--out", "-", stdin=(folder / "t.parquet").read_bytes())
    assert code == 0 and pl.read_csv(out.encode()).columns[0] == "row"


def test_npz(tmp_path, rng):
    X = rng.normal(size=(200, 3))
    y = np.zeros(200, int)
    X[5], y[5] = 9.0, 1
    np.savez(tmp_path / "t.npz", X=X, y=y)
    code, out, error = rgld("score", tmp_path / "t.npz", "--label", "y", "--json")
    assert code == 0, error
    found = json.loads(out)
    assert found["auroc"] == 1.0 and found["anomalies"] == 1 and found["top"][0]["id"] == 5


def test_labels_are_only_measured_with(folder, tmp_path):
    frame = pl.read_csv(folder / "t.csv").with_columns(fraud=pl.int_range(pl.len()) == 7)
    frame.write_csv(tmp_path / "labelled.csv")
    code, out, error = rgld(
        "score", tmp_path / "labelled.csv", "--id", "id", "--label", "fraud", "--out", tmp_path / "s.csv"
    )
    assert code == 0, error
    assert "AUROC 100.00, AUPRC 100.00 (labelled anomalies: 1" in out
    np.testing.assert_array_equal(scores_of(tmp_path / "s.csv"), scores_of(folder / "by-itself.csv"))


def test_a_model_gives_p_values_and_a_selection(folder, tmp_path):
    new = payments(300, seed=1)
    new[3, "amount"] = 50_000.0
    new[4, "city"] = "Atlantis"
    new.write_csv(tmp_path / "new.csv")
    code, out, error = rgld(
        "score", tmp_path / "new.csv", "-m", folder / "m.rgld", "--id", "id", "--fdr", 0.5, "-o", tmp_path / "s.csv"
    )
    assert code == 0, error
    result = pl.read_csv(tmp_path / "s.csv")
    detector = load(folder / "m.rgld")
    X = new.drop("id")
    np.testing.assert_array_equal(result["p_value"].to_numpy(), detector.p_values(X))
    np.testing.assert_array_equal(result["selected"].to_numpy(), detector.select(X, fdr=0.5))
    assert "selected at a false-discovery rate of 0.5" in out
    assert "city 'Atlantis' was never seen in" in result["reasons"][4]


def test_only_a_calibrated_model_gives_p_values(folder, tmp_path):
    """The rank of a row in its own table is no p-value: also in noise some row is the first of 400."""
    noise = pl.DataFrame(np.random.default_rng(1).normal(size=(400, 3)), schema=["a", "b", "c"])
    noise.write_csv(tmp_path / "noise.csv")
    rgld("fit", "noise.csv", "--calibrate", 0, "-m", "plain.rgld", "-q", folder=tmp_path)
    for arguments in ([], ["-m", "plain.rgld"]):
        code, out, _ = rgld("score", "noise.csv", *arguments, "--json", folder=tmp_path)
        first = json.loads(out)["top"][0]
        assert code == 0 and first["top_share"] == 1 / 400 and "p_value" not in first
        _, out, _ = rgld("score", "noise.csv", *arguments, "--top", 1, folder=tmp_path)
        assert "top share  why" in out and "   0.2 %  " in out and "p-value" not in out
        where = "the training table" if arguments else "any table"
        assert f"  (in {where} about 0.6 % to 5 % do, even without anomalies)\n" in out
    _, out, _ = rgld("score", folder / "t.csv", "-m", folder / "m.rgld", "--id", "id", "--json")
    assert "top_share" not in json.loads(out)["top"][0] and json.loads(out)["top"][0]["p_value"] <= 0.05
    _, out, _ = rgld("score", folder / "t.csv", "-m", folder / "m.rgld", "--id", "id")
    assert "p-value  why" in out and "top share" not in out


def test_columns_in_another_order_and_more_of_them(folder, tmp_path):
    frame = pl.read_csv(folder / "t.csv")
    frame.select(frame.columns[::-1]).with_columns(extra=pl.lit("x")).write_csv(tmp_path / "other.csv")
    rgld("score", tmp_path / "other.csv", "-m", folder / "m.rgld", "--id", "id", "-q", "-o", tmp_path / "s.csv")
    np.testing.assert_array_equal(scores_of(tmp_path / "s.csv"), scores_of(folder / "by-model.csv"))


def test_a_word_among_numbers_is_a_gap(folder, tmp_path):
    text = (folder / "t.csv").read_text().replace("99999.0", "unknown")
    (tmp_path / "t.csv").write_text(text)
    code, _, error = rgld("score", tmp_path / "t.csv", "-m", folder / "m.rgld", "--id", "id", "-o", tmp_path / "s.csv")
    assert code == 0, error
    frame = pl.read_csv(folder / "t.csv").with_columns(
        amount=pl.when(pl.col("id") == "P7").then(None).otherwise(pl.col("amount"))
    )
    expected = load(folder / "m.rgld").anomaly_score(frame.drop("id"))
    np.testing.assert_array_equal(scores_of(tmp_path / "s.csv"), expected)


def test_batches_give_the_same_scores(folder, tmp_path, monkeypatch):
    from rgld.cli import _files
    from rgld.cli._options import Reading, Scoring
    from rgld.cli._scoring import score_any

    payments(5000, seed=2).write_csv(tmp_path / "big.csv")
    payments(5000, seed=2).write_parquet(tmp_path / "big.parquet")
    scoring = Scoring(id="id", model=str(folder / "m.rgld"))
    found = []
    for cells in (10**9, 5000):
        monkeypatch.setattr(_files, "BATCH_CELLS", cells)
        for name in ("big.csv", "big.parquet"):
            with _files.open_table(str(tmp_path / name), Reading()) as file:
                found.append(score_any(file, scoring, 20, lambda rows: None))
    for other in found[1:]:
        np.testing.assert_array_equal(other.scores, found[0].scores)
        np.testing.assert_array_equal(other.top_rows, found[0].top_rows)
        assert other.top["amount"].to_list() == found[0].top["amount"].to_list()
        assert other.ids.to_list() == found[0].ids.to_list()


def test_errors_of_a_batch_name_the_row_of_the_file(folder, tmp_path, monkeypatch):
    from rgld.cli import _files
    from rgld.cli._options import Reading, Scoring
    from rgld.cli._scoring import score_any

    monkeypatch.setattr(_files, "BATCH_CELLS", 5000)
    frame = payments(5000, seed=2)
    frame[3210, "amount"] = np.inf
    frame.write_parquet(tmp_path / "big.parquet")
    with (
        _files.open_table(str(tmp_path / "big.parquet"), Reading()) as file,
        pytest.raises(TableError, match=r"^Column 'amount' holds infinity \(inf\) in row 3210,"),
    ):
        score_any(file, Scoring(id="id", model=str(folder / "m.rgld")), 20, lambda rows: None)


def test_explain_names_the_column(folder, tmp_path):
    code, out, error = rgld("explain", folder / "t.csv", "--id", "id", "--row", "P7", "--row", "P8")
    assert code == 0, error
    first = out.splitlines()[0]
    assert first.startswith("id P7: score 0.99") and "times as far away" in first
    assert out.index("amount 99,999 is far above usual") < out.index("id P8")
    code, out, error = rgld(
        "explain",
        folder / "t.csv",
        "-m",
        folder / "m.rgld",
        "--id",
        "id",
        "--top",
        2,
        "--json",
        "-o",
        tmp_path / "e.csv",
    )
    assert code == 0, error
    found = json.loads(out)
    assert found[0]["id"] == "P7" and max(found[0]["contributions"], key=found[0]["contributions"].get) == "amount"
    assert pl.read_csv(tmp_path / "e.csv").columns[:3] == ["id", "score", "contribution of amount"]


def test_info_prints_how_columns_are_read(folder):
    code, out, error = rgld("info", folder / "m.rgld")
    assert code == 0, error
    assert "fitted on 320 rows, p-values from 80 more" in out
    assert "city" in out and "category" in out and "3 values (" in out
    assert "sine of the" in out
    code, out, _ = rgld("info", folder / "m.rgld", "--json")
    columns = json.loads(out)["columns"]
    assert [c["name"] for c in columns] == ["amount", "city", "when", "age"]
    assert sum(columns[1]["values"].values()) == 320


def test_columns_can_be_read_otherwise(folder, tmp_path):
    code, _, error = rgld(
        "fit", folder / "t.csv", "-m", tmp_path / "m.rgld", "--column", "age=category", "--column", "id=drop"
    )
    assert code == 0, error
    kinds = {column.name: column.kind for column in load(tmp_path / "m.rgld").columns_}
    assert kinds == {"id": "dropped", "amount": "number", "city": "category", "when": "time", "age": "category"}


def test_infinities_are_clipped_on_request(tmp_path, rng):
    frame = pl.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    frame[3, "a"] = np.inf
    frame.write_parquet(tmp_path / "t.parquet")
    code, _, error = rgld("fit", tmp_path / "t.parquet", "-m", tmp_path / "m.rgld")
    assert code == 2 and "'a' holds infinity (inf) in row 3" in error
    for arguments in (["fit", tmp_path / "t.parquet", "-m", tmp_path / "m.rgld"], ["score", tmp_path / "t.parquet"]):
        code, _, error = rgld(*arguments, "--inf", "clip")
        assert code == 0, error
    code, _, error = rgld("score", tmp_path / "t.parquet", "-m", tmp_path / "m.rgld", "--inf", "clip")
    assert code == 0, error


def test_infinities_change_no_other_row(folder, tmp_path):
    frame = pl.read_csv(folder / "t.csv").with_columns(pl.col("amount").cast(pl.String))
    for name, cells in (("numbers", {9: "inf"}), ("words", {9: "-inf", 11: "unknown"})):
        for row, cell in cells.items():
            frame[row, "amount"] = cell
        frame.write_csv(tmp_path / f"{name}.csv")
        out = tmp_path / f"s-{name}.csv"
        arguments = ["-m", folder / "m.rgld", "--id", "id", "--inf", "clip", "-o", out]
        code, text, error = rgld("score", tmp_path / f"{name}.csv", *arguments)
        assert code == 0, error
        assert "amount 99,999 is far above usual" in text
        others = np.setdiff1d(np.arange(400), list(cells))
        np.testing.assert_array_equal(scores_of(out)[others], scores_of(folder / "by-model.csv")[others])
    assert "amount: 1 values cannot be read and count as missing, such as 'unknown'" in error


def test_a_model_of_an_array_scores_files(tmp_path, rng):
    X = rng.normal(size=(100, 2))
    X[5] = 9.0
    detector = RGLD.fast(random_state=0).fit(X)
    detector.save(tmp_path / "m.rgld")
    pl.DataFrame(X, schema=["a", "b"]).write_csv(tmp_path / "t.csv")
    code, _, error = rgld("score", tmp_path / "t.csv", "-m", tmp_path / "m.rgld", "-o", tmp_path / "s.csv")
    assert code == 0, error
    np.testing.assert_array_equal(scores_of(tmp_path / "s.csv"), detector.anomaly_score(X))


def test_rows_are_explained_by_id(tmp_path, rng):
    x = np.append(rng.normal(size=59), 30.0)
    frame = pl.DataFrame(
        {"score": ["twice" if i in (0, 59) else f"r{i}" for i in range(60)], "x": x, "y": rng.normal(size=60)}
    )
    frame.write_csv(tmp_path / "t.csv")
    code, out, error = rgld(
        "explain", tmp_path / "t.csv", "--id", "score", "--row", "twice", "--row", "r30", "-o", tmp_path / "e.csv"
    )
    assert code == 0, error
    assert "x 30 is far above usual" in out, "of two rows of this name, the more anomalous one"
    assert pl.read_csv(tmp_path / "e.csv")["id_score"].to_list() == ["twice", "r30"]


def test_an_error_moves_no_cursor(tmp_path):
    (tmp_path / "t.csv").write_text("\x1b[31mred,b\n1,2\n3,4\n")
    code, _, error = rgld("score", tmp_path / "t.csv", "--id", "nope")
    assert code == 2 and "\x1b" not in error


FORMULAS = ["=1+1", "+cmd", "-cmd", "@SUM(A1)", "\tx", '=HYPERLINK("http://x")']


def test_no_formula_reaches_a_spreadsheet(tmp_path, rng):
    n = 60
    frame = pl.DataFrame(
        {
            "=id": (FORMULAS * 10)[:n],
            "x": rng.normal(size=n),
            "=note": ["=2+2" if i % 2 else "plain" for i in range(n)],
            "small": ["-5" if i % 3 else "6" for i in range(n)],
        }
    )
    frame.write_csv(tmp_path / "t.csv")
    code, _, error = rgld("score", tmp_path / "t.csv", "--id", "=id", "-o", tmp_path / "s.csv")
    assert code == 0, error
    text = (tmp_path / "s.csv").read_text()
    rows = list(pl.read_csv(tmp_path / "s.csv").iter_rows())
    starts = ("=", "+", "-", "@", "\t", "\r")
    assert all(not str(cell).startswith(starts) for row in rows for cell in row)
    assert text.startswith("'=id,")
    assert any(row[0] == "'=1+1" for row in rows)


def test_control_characters_do_not_reach_the_terminal(tmp_path, rng):
    n = 60
    names = [f"row\x1b[31m{i}" for i in range(n)]
    pl.DataFrame({"id": names, "x": rng.normal(size=n)}).write_csv(tmp_path / "t.csv")
    code, out, error = rgld("score", tmp_path / "t.csv", "--id", "id")
    assert code == 0, error
    assert "\x1b" not in out


def test_quiet_prints_nothing(folder, tmp_path):
    assert rgld("score", folder / "t.csv", "-q", "-o", tmp_path / "s.csv") == (0, "", "")


def test_force_replaces(folder, tmp_path):
    (tmp_path / "s.csv").write_text("mine")
    arguments = ("score", folder / "t.csv", "-q", "-o", tmp_path / "s.csv")
    code, _, error = rgld(*arguments)
    assert code == 2 and "exists already" in error and (tmp_path / "s.csv").read_text() == "mine"
    assert rgld(*arguments, "--force")[0] == 0
    assert len(scores_of(tmp_path / "s.csv")) == 400


def test_demo(tmp_path):
    code, out, error = installed_rgld("demo", tmp_path / "demo")
    assert code == 0, error
    assert "amount from 640 to 9,940, far above usual" in out and "items 120 is far above usual" in out
    ranks = [int(rank) for rank in re.findall(r"^ *(\d+)  P\d{5}   \w", out, re.MULTILINE)]  # docs/tables.md has these
    assert len(ranks) == 7 and ranks[:3] == [1, 2, 3] and ranks[4] < 40 and 90 < ranks[5] <= ranks[6] < 130
    assert (tmp_path / "demo" / "report.html").stat().st_size > 10_000
    assert rgld("demo", tmp_path / "demo")[0] == 2


@pytest.mark.skipif(not README.exists(), reason="the tests run outside the repository")
def test_the_table_of_the_demo_gives_what_the_readme_shows(tmp_path):
    demo.payments(seed=0).write_csv(tmp_path / "payments.csv")
    block = README.read_text(encoding="utf-8").partition("    $ ")[2].partition("\n\n")[0]
    command, *shown = block.splitlines()
    code, out, error = rgld(*command.split()[1:], folder=tmp_path)
    assert code == 0, error
    printed = [line.strip() for line in out.splitlines()]
    places = [printed.index(line.strip()) for line in shown if line.strip() != "..."]
    assert len(places) >= 5 and places == list(range(places[0], places[0] + len(places))), "as printed, line by line"


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_an_interrupt_leaves_nothing_behind(tmp_path):
    pipe = subprocess.PIPE
    command = [COMMAND, "score", "-", "-o", tmp_path / "s.csv"]
    with subprocess.Popen(command, stdin=pipe, stderr=pipe, stdout=pipe, start_new_session=True) as process:
        process.stdin.write(b"a,b\n1,2\n")
        process.stdin.flush()
        time.sleep(2.0)  # it has begun to read, and waits for more
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr.read() == b"interrupted\n"
    assert list(tmp_path.iterdir()) == []
