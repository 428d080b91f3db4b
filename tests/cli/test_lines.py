"""Rows are named by the lines of a CSV file, as an editor shows them."""

import csv
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from rgld import ParameterError
from rgld.cli import _lines
from rgld.cli._files import open_table
from rgld.cli._lines import RowIds, row_lines
from rgld.cli._options import Reading

from .command import rgld

CELLS = st.sampled_from(["1", "2.5", "a", 'say "hi"', "two\nlines", "x,y", ""])


def lines_by_the_csv_module(path):
    """The line on which each row that is not empty begins, without the column names."""
    with open(path, newline="") as file:
        reader, start, found = csv.reader(file), 1, []
        for row in reader:
            if any(cell.strip() for cell in row):
                found.append(start)
            start = reader.line_num + 1
    return found[1:]


@given(
    rows=st.lists(st.tuples(CELLS, st.sampled_from(["7", "8"])), min_size=1, max_size=12),
    blanks=st.sets(st.integers(0, 12)),
    ending=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    block=st.sampled_from([1, 3, 7, 64, 2**22]),
)
def test_lines_are_those_of_the_csv_module(tmp_path_factory, rows, blanks, ending, last, block):
    path = tmp_path_factory.mktemp("lines") / "t.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator=ending)
        writer.writerow(("a", "b"))
        for i, row in enumerate(rows):
            writer.writerow(row)
            if i in blanks and i < len(rows) - 1:
                file.write(ending)
    if not last:
        path.write_bytes(path.read_bytes().rstrip(b"\r\n"))
    before, _lines.LINE_BLOCK_BYTES = _lines.LINE_BLOCK_BYTES, block
    try:
        with open_table(str(path), Reading()) as file:
            found, n_rows = row_lines(file.path, file.csv), len(file.read())
    finally:
        _lines.LINE_BLOCK_BYTES = before
    assert found.tolist() == lines_by_the_csv_module(path) and len(found) == n_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A file with comments, an empty line and values of several lines; the strange row begins on line 104."""
    folder = tmp_path_factory.mktemp("lines")
    rng = np.random.default_rng(0)
    lines = ["# made by hand", "name,amount,note"]
    for i in range(60):
        lines.append(f'n{i % 3},{99_999 if i == 50 else rng.normal(30, 5):.2f},"two')
        lines.append('lines"')
        if i == 9:
            lines.append("")
    assert "99999" in lines[103]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    rgld("fit", "t.csv", "-m", "m.rgld", "-q", folder=folder)
    return folder


@pytest.mark.parametrize("arguments", [[], ["-m", "m.rgld"]], ids=["by-itself", "by-model"])
def test_the_line_of_a_row_leads_to_it(folder, arguments):
    code, out, error = rgld("score", "t.csv", *arguments, "--json", "--top", 1, folder=folder)
    assert code == 0, error
    line = json.loads(out)["top"][0]["id"]
    assert "99999" in (folder / "t.csv").read_text().splitlines()[line - 1]
    code, out, error = rgld("explain", "t.csv", *arguments, "--row", line, folder=folder)
    assert code == 0 and f"line {line}: score" in out and "amount 99,999 is far above usual" in out, error
    code, _, error = rgld("explain", "t.csv", *arguments, "--row", 1, folder=folder)
    assert code == 2 and "rows are named by their line in the file, from 1" in error


def test_other_files_have_row_indices(tmp_path):
    frame = pl.DataFrame({"a": np.random.default_rng(0).normal(size=50)})
    frame.write_parquet(tmp_path / "t.parquet")
    _, out, _ = rgld("score", tmp_path / "t.parquet", "--out", "-", "-q")
    assert pl.read_csv(out.encode())["row"].to_list() == list(range(50))


@pytest.mark.parametrize("block", [1, 2, 3, 2**22])
def test_a_row_whose_last_cell_is_empty_is_not_empty(tmp_path, monkeypatch, block):
    monkeypatch.setattr(_lines, "LINE_BLOCK_BYTES", block)
    (tmp_path / "t.csv").write_text("a,b\n1,\n,\n2,3\n")
    with open_table(str(tmp_path / "t.csv"), Reading()) as file:
        assert row_lines(file.path, file.csv).tolist() == [2, 4]


def test_a_file_without_column_names_begins_with_a_row(tmp_path):
    (tmp_path / "t.csv").write_text("1,2\n3,4\n5,6\n")
    with open_table(str(tmp_path / "t.csv"), Reading(no_header=True)) as file:
        assert row_lines(file.path, file.csv).tolist() == [1, 2, 3]


def test_rows_that_lines_cannot_tell_have_indices(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    with open_table(str(tmp_path / "t.csv"), Reading()) as file:
        ids = RowIds(file).of_all(2)
        assert ids.name == "line" and ids.to_list() == [2, 3]
        ids = RowIds(file).of_all(3)
        assert ids.name == "row" and ids.to_list() == [0, 1, 2]
        with pytest.raises(ParameterError, match="pass --id as well"):
            RowIds(file).of_all(3, are_asked_for=True)


def test_a_stray_quotation_mark_is_named_by_its_line(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b", *(f"{x:.3f},5{'' if i else chr(34)} inch" for i, x in enumerate(rng.normal(size=50)))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    code, _, error = rgld("score", tmp_path / "t.csv", "--out", "-", "-q")
    assert code == 2 and "line 2 has a quotation mark that does not belong there" in error and error.count("\n") == 1
