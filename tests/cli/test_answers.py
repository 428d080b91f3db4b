"""Answers people can use: how columns were read, rows in groups, the table with its results, reports by a model."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from rgld import RGLD, __version__, load

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from rgld.cli._reading import print_columns

from .command import rgld


def claims(n=600, seed=0):
    """Return claims of which 20 are thefts in one night: one finding, not twenty. Row 5 has a strange amount."""
    rng = np.random.default_rng(seed)
    theft = np.arange(n) % 30 == 7
    return pl.DataFrame(
        {
            "policy": [f"=P{i}" for i in range(n)],
            "kind": np.where(theft, "theft", rng.choice(["glass", "crash"], n)),
            "police": np.where(theft, "yes", "no"),
            "amount": np.where(np.arange(n) == 5, 99_999.0, rng.lognormal(6.0, 0.3, n)).round(2),
            "zip": rng.integers(0, 400, n).astype(str),
            "score": rng.integers(1, 6, n),
            "note": "",
        }
    ).with_columns(zip=pl.col("zip").str.zfill(5))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    claims().write_csv(folder / "t.csv")
    code, _, error = rgld("fit", "t.csv", "-m", "m.rgld", "--id", "policy", "-q", folder=folder)
    assert code == 0, error
    return folder


# How columns were read.


@pytest.mark.parametrize("command", [["score"], ["score", "-m", "m.rgld"], ["fit", "-m", "new.rgld", "--force"]])
def test_every_column_is_named_with_how_it_was_read(folder, command):
    code, out, error = rgld(command[0], "t.csv", "--id", "policy", *command[1:], folder=folder)
    assert code == 0, error
    lines = out.splitlines()
    assert lines[0] == "6 columns, read as"
    read = {line[2:17].strip(): line[17:] for line in lines[1:5]}
    assert read["categories"].startswith("kind (3), police (2), zip (")
    assert set(read["numbers"].split(", ")) == {"amount", "score"}
    assert read["left out"] == "note: all its values are missing"


def test_quiet_is_quiet_and_json_says_it_too(folder):
    assert rgld("score", "t.csv", "-q", folder=folder)[1:] == ("", "")
    found = json.loads(rgld("score", "t.csv", "--json", folder=folder)[1])
    assert {column["name"]: column["kind"] for column in found["read_as"]}["kind"] == "category"
    assert found["read_as"][-1] == {"name": "note", "kind": "dropped", "note": "all its values are missing"}


def test_hints_are_printed_and_are_not_part_of_the_model(capsys, tmp_path):
    table = pl.DataFrame({"temperature": [20.0, 21.0, -200.0] * 20, "x": np.arange(60.0) % 7})
    detector = RGLD.fast(random_state=0).fit(table)
    hint = "-200 repeats far outside the rest: pass --na temperature=-200 if it means missing"
    columns = (replace(detector.columns_[0], hint=hint), *detector.columns_[1:])
    assert columns == detector.columns_
    detector.columns_ = columns
    print_columns(detector, None)
    assert f"  hint           temperature: {hint}\n" in capsys.readouterr().out
    detector.save(tmp_path / "m.rgld")
    assert load(tmp_path / "m.rgld").columns_[0].hint == ""


def test_columns_with_the_same_hint_share_a_line(capsys):
    rng = np.random.default_rng(0)
    table = {f"s{j}": np.where(np.arange(300) < 10 + 5 * j, -200.0, rng.normal(20, 3, 300)) for j in range(5)}
    print_columns(RGLD.fast(random_state=0).fit(pl.DataFrame(table)), None)
    hints = [line for line in capsys.readouterr().out.splitlines() if "-200" in line]
    assert hints == [
        "  hint           s0, s1, s2 and 2 more: -200 comes in 10 to 30 rows, far below the others: "
        "if it means missing, pass --na -200"
    ]


def test_wide_tables_are_cut(capsys):
    table = pl.DataFrame(
        {f"a rather long name of column {j}": np.random.default_rng(j).normal(size=20) for j in range(90)}
    )
    print_columns(RGLD.fast(random_state=0).fit(table), None)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 13 and lines[-1].strip() == "and more: 90 in all (`rgld info` lists all columns of a model)"
    assert max(map(len, lines)) <= 100


def test_names_are_printed_without_control_characters(capsys):
    print_columns(RGLD.fast(random_state=0).fit(pl.DataFrame({"\x1b[31mred": np.arange(9.0) ** 2})), None)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "[31mred" in out


# Rows that share their reasons.


def test_rows_that_share_their_reasons_are_one_group(folder):
    code, out, error = rgld("score", "t.csv", "--id", "policy", "--column", "score=drop", "--top", 4, folder=folder)
    assert code == 0, error
    assert "20 rows like these:" in out and "  and 17 more" in out and "kind 'theft' seen 20 times in 600 rows" in out
    _, flat, _ = rgld("score", "t.csv", "--id", "policy", "--column", "score=drop", "--flat", "--top", 4, folder=folder)
    assert "like these" not in flat and flat.count("\n    ") >= 4
    assert sum(line[:5].strip().isdigit() for line in flat.splitlines()) == 4


def test_groups_in_json(folder):
    arguments = ["score", "t.csv", "--id", "policy", "--column", "score=drop", "--top", 3, "--json"]
    found = json.loads(rgld(*arguments, folder=folder)[1])
    sizes = [group["rows"] for group in found["groups"]]
    assert 20 in sizes and len(found["top"]) == 3 and len(sizes) <= 3
    thefts = found["groups"][sizes.index(20)]
    assert len(thefts["strongest"]) == 3 and thefts["reasons"][0].startswith(("kind 'theft'", "police 'yes'"))
    assert "groups" not in json.loads(rgld(*arguments, "--flat", folder=folder)[1])


# The table with its results.


@pytest.mark.parametrize("arguments", [[], ["-m", "m.rgld"]], ids=["by-itself", "by-model"])
def test_the_table_with_its_results(folder, tmp_path, arguments):
    out = tmp_path / "out.csv"
    code, _, error = rgld(
        "score", "t.csv", "--id", "policy", *arguments, "--with-table", "--sort", "-q", "-o", out, folder=folder
    )
    assert code == 0, error
    result = pl.read_csv(out, infer_schema=False)
    certainty = "p_value" if arguments else "top_share"
    assert result.columns == [*claims().columns, "rgld_score", "rank", certainty, "reasons"]
    ranks = result["rank"].cast(int).to_list()
    assert ranks == sorted(ranks) and ranks[0] == 1
    assert result["policy"].str.starts_with("'=P").all(), "no formula for a spreadsheet"
    back = result.sort(pl.col("policy").str.slice(3).cast(int))
    assert back["zip"].to_list() == claims()["zip"].to_list(), "as they stand in the file, with leading zeros"
    plain = tmp_path / "plain.csv"
    rgld("score", "t.csv", "--id", "policy", *arguments, "-q", "-o", plain, folder=folder)
    assert back["rgld_score"].to_list() == pl.read_csv(plain, infer_schema=False)["score"].to_list()


def test_without_ids_the_lines_stand_first(folder):
    _, out, _ = rgld("score", "t.csv", "--with-table", "-q", "-o", "-", folder=folder)
    result = pl.read_csv(out.encode())
    assert result.columns[:2] == ["line", "policy"] and result["line"].to_list() == list(range(2, 602))


@pytest.mark.parametrize("option", ["--with-table", "--sort"])
def test_what_is_for_a_file_needs_a_file(folder, option):
    code, out, error = rgld("score", "t.csv", option, folder=folder)
    assert (code, out) == (2, "") and error == f"rgld: {option} is for --out: name a file to write.\n"


# Reports by a model; the version.


def data_of(path):
    text = path.read_text()
    begin = text.index('id="data">') + len('id="data">')
    return json.loads(text[begin : text.index("</script>", begin)])


def test_a_report_by_a_model(folder, tmp_path):
    new = claims(300, seed=1)
    new[11, "amount"] = 50_000.0
    new.write_csv(tmp_path / "new.csv")
    page = tmp_path / "r.html"
    code, _, error = rgld("report", tmp_path / "new.csv", "-m", folder / "m.rgld", "--id", "policy", "-o", page, "-q")
    assert code == 0, error
    data = data_of(page)
    detector = load(folder / "m.rgld")
    scores = detector.anomaly_score(new.drop("policy"))
    assert data["rows"][0]["id"] in [f"=P{i}" for i in np.flatnonzero(scores == scores.max())]
    assert data["has_p_values"] and data["n_rows"] == 300 and data["facts"][0]["note"] == "fitted on 480"
    code, _, error = rgld("report", tmp_path / "new.csv", "-m", folder / "m.rgld", "--seed", 3, "-o", page)
    assert code == 2 and "the model file is already fitted" in error


def test_a_report_names_rows_by_their_lines(folder, tmp_path):
    page = tmp_path / "r.html"
    rgld("report", "t.csv", "-o", page, "-q", folder=folder)
    data = data_of(page)
    line = next(row["id"] for row in data["rows"] if row["reasons"][0].startswith("amount 99,999"))
    assert data["row_name"] == "line" and line == "7"


def test_the_version():
    assert rgld("--version") == (0, f"{__version__}\n", "")
    assert rgld("version") == (0, f"{__version__}\n", "")
