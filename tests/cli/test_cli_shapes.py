"""Shapes of files: without column names, with a title, packed, workbooks, JSON lines, folders, partitions."""

import gzip
import json
import zipfile

import numpy as np
import polars as pl
import pytest

from rgld.cli._files import open_table
from rgld.cli._header import first_row_has_names, n_title_rows
from rgld.cli._options import Fitting, Reading
from rgld.exceptions import ParameterError, TableError

from .command import rgld

RNG = np.random.default_rng(0)
TABLE = pl.DataFrame(
    {
        "zip": RNG.choice(["01101", "02134", "10001"], 90),
        "amount": RNG.gamma(2, 30, 90).round(2),
        "city": RNG.choice(["Bonn", "Rome"], 90),
        "n": RNG.integers(0, 90, 90),
    }
)
CSV = TABLE.write_csv()


def read(path, **reading):
    with open_table(str(path), Reading(**reading)) as file:
        return file.read(), file.notes


def read_text(tmp_path, text, **reading):
    (tmp_path / "t.csv").write_text(text)
    return read(tmp_path / "t.csv", **reading)


def test_a_file_without_column_names(tmp_path):
    body = CSV.partition("\n")[2]
    frame, notes = read_text(tmp_path, body)
    assert frame.shape == (90, 4) and frame.columns == ["column_0", "column_1", "column_2", "column_3"]
    assert notes == (
        "no line of column names found: they are column_0, column_1, ...; pass --header if its first line has them",
    )
    assert read_text(tmp_path, body, no_header=False)[0].shape == (89, 4)
    asked, notes = read_text(tmp_path, body, no_header=True)
    assert asked.equals(frame) and notes == ()


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (["id", "age", "job"], True),
        (["7", "41", "admin"], False),
        (["7", "41", "pilot"], False),
        (["country", "2019", "2020"], True),
        (["x", "0", "1"], True),
        (["admin", "blue", "yes"], True),
    ],
)
def test_names_or_a_row(first, expected):
    body = [[str(i), str(20 + i % 40), "admin" if i % 2 else "services"] for i in range(30)]
    assert first_row_has_names([first, *body]) is expected


def test_texts_that_come_again_are_a_row():
    body = [["admin", "blue", "yes"], ["services", "red", "no"]] * 9
    assert not first_row_has_names([["admin", "red", "yes"], *body])
    assert first_row_has_names([["job", "colour", "paid"], *body])


def test_repeated_names_tell_of_no_header(tmp_path):
    with pytest.raises(TableError, match="or pass --no-header if its first line is a row"):
        read_text(tmp_path, "a,a\nx,y\nz,w\n")


@pytest.mark.parametrize(
    "title",
    [
        "Sales of 2024\n",
        "Sales of 2024\n\n",
        "Sales,,,\nby head office,,,\n",
        "Sales of spring, all shops\nby head office\n\n",
        "Sales, shops and prices of spring\n",
    ],
)
def test_title_lines(tmp_path, title):
    frame, notes = read_text(tmp_path, title + CSV)
    assert frame.equals(read_text(tmp_path, CSV)[0])
    assert notes[-1].endswith("skipped") and "title line" in notes[-1]
    assert read_text(tmp_path, "a,b,c\nd,e,f\n" + CSV, skip=2)[0].equals(frame)


def test_a_title_that_is_not_found_is_named_in_the_error(tmp_path):
    with pytest.raises(
        TableError, match="expected 2 as in the first line; fix the line, or pass --skip 2 if the lines"
    ):
        read_text(tmp_path, "from,to\n2024,2025\n" + CSV)
    frame, _ = read_text(tmp_path, "from,to\n2024,2025\n" + CSV, skip=2)
    assert frame.equals(read_text(tmp_path, CSV)[0])


def test_rows_of_json_lines_are_named_by_their_lines(tmp_path):
    lines = TABLE.write_ndjson().splitlines()
    odd = json.loads(lines[40]) | {"amount": 9999.0}
    (tmp_path / "t.jsonl").write_text("\n".join([*lines[:10], "", *lines[10:40], json.dumps(odd), *lines[41:]]) + "\n")
    code, _, error = rgld("score", "t.jsonl", "--out", "s.csv", folder=tmp_path)
    assert code == 0, error
    scores = pl.read_csv(tmp_path / "s.csv")
    assert scores.sort("rank")["line"][0] == 42 and scores["line"].to_list()[9:11] == [10, 12]
    assert "amount" in rgld("explain", "t.jsonl", "--row", "42", folder=tmp_path)[1]


def test_an_empty_sheet_names_the_others(tmp_path):
    workbook(tmp_path / "t.xlsx", {"Intro": [["hello"]], "Orders": [["x", "y"], [1, 2], [3, 4]]})
    with pytest.raises(TableError, match=r"no rows in the sheet 'Intro': .*; pass --sheet for another \(Orders\)"):
        read(tmp_path / "t.xlsx")


def test_what_is_no_title():
    assert n_title_rows([["a", "b"], ["x", "y", "z"], ["u", "v", "w"]]) == 0, "names of which the first is missing"
    assert n_title_rows([["a", "b"], ["1", "2"], ["3", "4"]]) == 0
    assert n_title_rows([["a", "", ""], ["1", "2", "3"], ["4", "5", "6"]]) == 0, "names of which some are missing"
    assert n_title_rows([["a"], ["b"], ["c"]]) == 0


def test_leading_zeros_are_kept(tmp_path):
    frame, _ = read_text(tmp_path, CSV)
    assert frame["zip"].dtype == pl.String and set(frame["zip"]) == {"01101", "02134", "10001"}
    assert frame["n"].dtype == pl.Int64 and frame.columns == TABLE.columns
    semicolons = CSV.replace(",", ";").replace(".", ",")
    assert set(read_text(tmp_path, semicolons)[0]["zip"]) == {"01101", "02134", "10001"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('"5" pipe,1', "line 32 has a quotation mark that does not belong there"),
        ('5" pipe,1', "line 32 has a quotation mark that does not belong there"),
        ('"pipe,1', "line 32 opens a quotation that never ends"),
    ],
)
def test_a_stray_quotation_mark_is_named_by_its_line(tmp_path, line, said):
    with pytest.raises(TableError, match=said) as caught:
        read_text(tmp_path, "a,b\n" + "x,1\n" * 30 + line + "\n" + "y,2\n" * 30)
    assert "polars" not in str(caught.value) and "dtype" not in str(caught.value)


def test_packed_files(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    plain, _ = read_text(tmp_path, CSV)
    (tmp_path / "t.zst").write_bytes(zstandard.compress(CSV[:50].encode()) + zstandard.compress(CSV[50:].encode()))
    (tmp_path / "t.gz").write_bytes(gzip.compress(CSV.encode()))
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data/t.csv", CSV)
        archive.writestr("__MACOSX/._t.csv", "x")
    for name in ("t.zst", "t.gz", "t.zip"):
        assert read(tmp_path / name)[0].equals(plain), name
    (tmp_path / "cut.zst").write_bytes((tmp_path / "t.zst").read_bytes()[:-9])
    with pytest.raises(TableError, match="damaged zstd file"):
        read(tmp_path / "cut.zst")
    (tmp_path / "twice.zst").write_bytes(zstandard.compress((tmp_path / "t.gz").read_bytes()))
    with pytest.raises(TableError, match="a gzip file in a zstd file: unpack it first"):
        read(tmp_path / "twice.zst")


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr("rgld.cli._arrays.ALWAYS_UNPACKED_BYTES", 2**20)


@pytest.mark.usefixtures("small_limits")
def test_files_that_grow_too_much_are_refused(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    zeros = bytes(2**26)
    (tmp_path / "t.zst").write_bytes(zstandard.compress(zeros))
    with zipfile.ZipFile(tmp_path / "t.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.csv", zeros)
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", zeros)
    for name in ("t.zst", "t.zip", "t.xlsx"):
        with pytest.raises(TableError, match="grows to more than 1000 times its size"):
            read(tmp_path / name)


def workbook(path, sheets):
    """Write a workbook of texts and numbers, as small as Excel would read it."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        numbered = list(enumerate(sheets, 1))
        namespace = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
        links = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
        names = "".join(f'<sheet name="{name}" sheetId="{i}" r:id="rId{i}"/>' for i, name in numbered)
        book.writestr("xl/workbook.xml", f"<workbook {namespace} {links}><sheets>{names}</sheets></workbook>")
        kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"
        targets = "".join(
            f'<Relationship Id="rId{i}" Type="{kind}" Target="worksheets/sheet{i}.xml"/>' for i, _ in numbered
        )
        package = "http://schemas.openxmlformats.org/package/2006/relationships"
        book.writestr("xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{package}">{targets}</Relationships>')
        top = f'<Relationship Id="rId1" Type="{kind.replace("worksheet", "officeDocument")}" Target="xl/workbook.xml"/>'
        book.writestr("_rels/.rels", f'<Relationships xmlns="{package}">{top}</Relationships>')
        for i, name in numbered:
            rows = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in sheets[name])
            book.writestr(
                f"xl/worksheets/sheet{i}.xml", f"<worksheet {namespace}><sheetData>{rows}</sheetData></worksheet>"
            )


def cell(value):
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
    return f"<c><v>{value}</v></c>"


def test_workbooks(tmp_path):
    pytest.importorskip("fastexcel")
    rows = [TABLE.columns, *TABLE.rows()]
    workbook(tmp_path / "t.xlsx", {"Orders": [["Orders of the year"], *rows], "Other": [["x", "y"], [1, 2], [3, 4]]})
    frame, notes = read(tmp_path / "t.xlsx")
    assert notes == ("sheet 'Orders' is read; pass --sheet for another of its 2 sheets", "1 title line skipped")
    assert frame.columns == TABLE.columns and frame["zip"].to_list() == TABLE["zip"].to_list()
    np.testing.assert_allclose(frame["amount"], TABLE["amount"])
    assert read(tmp_path / "t.xlsx", sheet="Other")[0].shape == (2, 2)
    with pytest.raises(ParameterError, match="has no such sheet; it has Orders, Other"):
        read(tmp_path / "t.xlsx", sheet="x")
    with pytest.raises(ParameterError, match="--sheet is for Excel workbooks"):
        read_text(tmp_path, CSV, sheet="x")


def test_json_lines(tmp_path):
    records = [{**record, "tags": ["a", "b"]} for record in TABLE.to_dicts()]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, records)))
    frame, _ = read(tmp_path / "t.jsonl")
    assert frame.drop("tags").equals(TABLE.cast(frame.drop("tags").schema))
    code, out, error = rgld("score", tmp_path / "t.jsonl")
    assert code == 0 and "tags: it holds List(String)" in out, error


def test_folders_patterns_and_partitions(tmp_path):
    for year in (2023, 2024):
        for month in ("01", "02"):
            part = tmp_path / "t" / f"year={year}" / f"month={month}"
            part.mkdir(parents=True)
            TABLE[:40].write_parquet(part / "part.parquet")
    (tmp_path / "t" / "_SUCCESS").touch()
    for path in (tmp_path / "t", tmp_path / "t" / "*" / "*" / "*.parquet"):
        frame, notes = read(path)
        assert frame.shape == (160, 6) and notes[0] == "4 files"
        assert frame["year"].to_list() == [2023] * 80 + [2024] * 80 and set(frame["month"]) == {"01", "02"}
    one, _ = read(tmp_path / "t" / "year=2023" / "month=01" / "part.parquet")
    assert one.columns == TABLE.columns, "a single file is what it is"
    model = tmp_path / "m.rgld"
    assert rgld("fit", tmp_path / "t", "-m", model)[0] == 0
    by_model, error = rgld("score", tmp_path / "t", "-m", model, "--json")[1:]
    assert json.loads(by_model)["rows"] == 160 and json.loads(by_model)["columns"] == 6, error
    assert rgld("report", tmp_path / "t", "-o", tmp_path / "r.html")[0] == 0
    (tmp_path / "t" / "other.csv").write_text("a,b\n1,2\n3,4\n5,7\n")
    with pytest.raises(TableError, match="has no column"):
        read(tmp_path / "t")


def test_two_columns_make_one_name(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    code, out, error = rgld("score", tmp_path / "t.csv", "--id", "zip", "--id", "n", "-o", "-", "-q")
    assert code == 0, error
    lines = out.splitlines()
    assert lines[0].startswith("zip n,score") and lines[1].startswith(f"{TABLE['zip'][0]} {TABLE['n'][0]},")
    assert "no such column" in rgld("score", tmp_path / "t.csv", "--id", "zip", "--id", "m")[2]


def test_values_that_mean_missing_are_in_the_model(tmp_path):
    text = CSV.replace("Rome", "nowhere")
    (tmp_path / "t.csv").write_text(text)
    assert rgld("fit", tmp_path / "t.csv", "-m", tmp_path / "m.rgld", "--na", "city=nowhere", "-q")[0] == 0
    columns = json.loads(rgld("info", tmp_path / "m.rgld", "--json")[1])["columns"]
    assert set(next(c for c in columns if c["name"] == "city")["values"]) == {"Bonn", ""}
    assert "already fitted" in rgld("score", tmp_path / "t.csv", "-m", tmp_path / "m.rgld", "--na", "x")[2]
    with pytest.raises(ParameterError, match="name the column in all of them"):
        Fitting(na=["-200", "a=-1"])
    assert Fitting(na=["-200"]).na_values() == ["-200"]
    assert Fitting(na=["a=b=-1", "a=b=-2"]).na_values() == {"a=b": ["-1", "-2"]}


def test_a_comma_in_a_title_is_no_delimiter(tmp_path):
    rows = "".join(f"A{i};{i % 7},5;{'Bonn' if i % 3 else 'Rome'}\n" for i in range(60))
    frame, _ = read_text(tmp_path, f"Orders, March 2026\nOrder;Amount;City\n{rows}")
    assert frame.columns == ["Order", "Amount", "City"] and len(frame) == 60
    texts = "".join(f"{i},red;green;{i}\n" for i in range(60))
    assert read_text(tmp_path, f"id,colours\n{texts}")[0].columns == ["id", "colours"]
    numbers = "".join(f"{i},{i * i}\n" for i in range(60))
    assert read_text(tmp_path, f"a,b\n{numbers}")[0].columns == ["a", "b"]
