"""Files as people have them, read for the command line: delimiters, decimal commas, blank lines, strange formats."""

import contextlib
import csv
import gzip
import io
import json
import os
import threading
import time
import zipfile

import numpy as np
import polars as pl
import pytest

from rgld.exceptions import ParameterError, TableError

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from rgld.cli import _arrays, _copies
from rgld.cli._files import NotANumberError, open_table
from rgld.cli._options import Reading


@contextlib.contextmanager
def opened(tmp_path, content, **options):
    """Open a file of this content."""
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with open_table(str(path), Reading(**options)) as file:
        yield file


def rows_of(tmp_path, content, **options):
    """Return names and rows, which are the same read at once and in batches."""
    with opened(tmp_path, content, **options) as file:
        frame = file.read()
        numbers = {name: pl.Float64 for name, kind in frame.schema.items() if kind.is_numeric()}
        batches = pl.concat(file.batches(None, numbers))
        assert file.columns() == batches.columns == frame.columns
        for name in frame.columns:
            assert batches[name].cast(frame.schema[name]).to_list() == frame[name].to_list()
            picked = pl.concat(file.batches([name], numbers))
            assert picked.columns == [name] and picked[name].to_list() == batches[name].to_list()
    return frame.columns, frame.rows()


def notes_of(tmp_path, content, **options):
    with opened(tmp_path, content, **options) as file:
        return " / ".join(file.notes)


def error_of(tmp_path, content, **options):
    with pytest.raises(TableError) as caught, opened(tmp_path, content, **options) as file:
        file.read()
    message = str(caught.value)
    assert "\n" not in message
    return message


DELIMITED = {
    "decimal commas in all columns": ("Betrag;Menge;Ort\n1,5;2,25;3,5\n4,5;5,25;6,5\n", ";", (1.5, 2.25, 3.5)),
    "a decimal comma and a text": ("amount;city\n12,50;Bonn\n13,75;Köln\n", ";", (12.5, "Bonn")),
    "a number and a decimal comma": ("Nr;Betrag\n1;12,50\n2;13,75\n", ";", (1, 12.5)),
    "a comma in a name": ("name;value\nMeyer, Hans;1.2\nKlein, Eva;1.3\n", ";", ("Meyer, Hans", 1.2)),
    "commas in names of columns too": ("Name, Vorname;x\nMeyer, Hans;1.2\nKlein, Eva;1.3\n", ";", ("Meyer, Hans", 1.2)),
    "thousands with points": ("a;b\n50.123,50;1\n40.123,75;2\n", ";", (50123.5, 1)),
    "thousands with spaces": ("a;b\n50 123,50;1\n40 123,75;2\n", ";", (50123.5, 1)),
    "one column of decimal commas": ("a;b\n1,5;2,5\n", ";", (1.5, 2.5)),
    "tabs beside commas": ("a\tb\n1,5\t2,5\n3,5\t4,5\n", "\t", (1.5, 2.5)),
    "a delimiter at the end of rows": ("a;b\n1,5;2,5;\n3,5;4,5;\n", ";", None),
    "bars": ("a|b\nx, y|2\nz, y|3\n", "|", ("x, y", 2)),
    "commas, semicolons in a text": ("a,b\nx;y,1\nz;w,2\n", ",", ("x;y", 1)),
    "quoted commas": ('a,b\n"x, y",1\n"z, y",2\n', ",", ("x, y", 1)),
    "spaces": ("a b c\n1 2 3\n4 5 6\n", " ", (1, 2, 3)),
    "one column of words": ("name\nhello, world\nhello\nfoo\n" + "bar\n" * 30, ",", None),
    "one column of two words": ("full name\nHans Meyer\nEva Klein\n", ",", ("Hans Meyer",)),
}


@pytest.mark.parametrize(("content", "delimiter", "first"), DELIMITED.values(), ids=DELIMITED.keys())
def test_delimiter(tmp_path, content, delimiter, first):
    with opened(tmp_path, content) as file:
        assert file.csv.delimiter == delimiter
    if first is not None:
        assert rows_of(tmp_path, content)[1][0] == first


def test_delimiter_without_column_names(tmp_path):
    assert rows_of(tmp_path, "1,5;2,5\n3,5;4,5\n", no_header=True) == (
        ["column_0", "column_1"],
        [(1.5, 2.5), (3.5, 4.5)],
    )
    assert rows_of(tmp_path, "1,2.5\n3,4.5\n", no_header=True)[1] == [(1, 2.5), (3, 4.5)]


def test_a_ragged_line_does_not_change_the_delimiter(tmp_path):
    assert "line 22 has 3 fields, expected 2" in error_of(tmp_path, "a;b\n" + "1,5;2\n" * 20 + "1;2;3\n")


def test_aligned_columns_are_pointed_out(tmp_path):
    assert "it has one column: pass --delimiter" in notes_of(tmp_path, "a    b\n1    2\n10   3\n")
    assert notes_of(tmp_path, "a\n1\n2\n") == ""


def test_dirty_cells_among_decimal_commas(tmp_path):
    cells = [
        "101,257",
        "98.765,43",
        "n/a",
        "-4,64",
        "98'765,43",
        "1.234.567,8",
        "1.234",
        "12,5 €",
        "7",
        "x,5",
        "01.02.2024",
    ]
    read = ["101.257", "98765.43", "n/a", "-4.64", "98765.43", "1234567.8", "1234", "12.5€", "7", "x,5", "01.02.2024"]
    content = "a;b\n" + "".join(f"{cell};{i},25\n" for i, cell in enumerate(cells))
    names, rows = rows_of(tmp_path, content)
    assert names == ["a", "b"]
    assert [row[0] for row in rows] == read
    assert [row[1] for row in rows] == [i + 0.25 for i in range(len(cells))]


NUMBERS = {"1,5E+03": 1500, ",5": 0.5, "-€ 1.234,5": "-€1234.5", "(1.234,5)": "(1234.5)", "50\u00a0123,5": 50123.5}


@pytest.mark.parametrize("cell", NUMBERS)
def test_ways_to_write_a_number(tmp_path, cell):
    assert rows_of(tmp_path, f"a;b\n{cell};1,5\n")[1] == [(NUMBERS[cell], 1.5)]


def test_numbers_of_a_model_are_numbers_in_batches(tmp_path):
    with opened(tmp_path, "a;b\n1.234,5;x\n1.234;y\n") as file:
        (frame,) = file.batches(["a"], {"a": pl.Float64})
        assert frame["a"].to_list() == [1234.5, 1234.0]
    with opened(tmp_path, "a;b\n1.234,5;x\nn/a;y\n") as file, pytest.raises(TableError):
        list(file.batches(["a"], {"a": pl.Float64}))  # the caller then reads the column as text


def test_quoted_decimal_commas_between_commas(tmp_path):
    content = 'a,b\n"98,50",1\n"1.097,25",2\n'
    assert rows_of(tmp_path, content) == (["a", "b"], [(98.5, 1), (1097.25, 2)])
    assert "decimal commas" in notes_of(tmp_path, content)
    thousands = 'a,b\n"98,500",1\n"97,250",2\n'
    assert rows_of(tmp_path, thousands)[1][0] == ("98,500", 1)
    assert rows_of(tmp_path, thousands, decimal=",")[1][0] == (98.5, 1)
    assert rows_of(tmp_path, 'a,b\n"98,50",1.5\n"97,25",2.5\n')[1][0] == ("98,50", 1.5)


def test_thousands_are_no_decimal_commas(tmp_path):
    assert rows_of(tmp_path, "a\tb\n101,257\tx\n99,000\ty\n")[1][0] == ("101,257", "x")
    assert rows_of(tmp_path, "a;b\n1,101,257;x\n99,000;y\n")[1][1] == ("99,000", "y")
    assert rows_of(tmp_path, "a;b\n1,101.25;x\n99,000;y\n")[1][1] == ("99,000", "y")
    assert rows_of(tmp_path, "a;b\n1,5;x\n", decimal=".")[1] == [("1,5", "x")]
    with pytest.raises(ParameterError, match="--decimal must be"):
        rows_of(tmp_path, "a;b\n1,5;x\n", decimal=";")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_empty_lines_are_no_rows(tmp_path, end):
    content = "a,b\n1,2\n\n,\n3,4\n\n \n".replace("\n", end)
    _, rows = rows_of(tmp_path, content)
    assert [(float(a), float(b)) for a, b in rows] == [(1, 2), (3, 4)]
    assert notes_of(tmp_path, content) == "4 empty lines skipped"
    assert notes_of(tmp_path, "a,b\n1,2\n,".replace("\n", end)) == "1 empty line skipped"
    assert notes_of(tmp_path, "a,b\n1,2\n".replace("\n", end)) == ""


def test_gaps_and_paragraphs_are_not_empty_lines(tmp_path):
    content = 'a,b\n1,"x\n\ny"\n,3\n4,\n'
    assert len(rows_of(tmp_path, content)[1]) == 3
    assert notes_of(tmp_path, content) == ""
    assert len(rows_of(tmp_path, "a\n1\n\n2\n")[1]) == 3  # a gap, in a table of one column


def test_a_file_without_rows(tmp_path):
    assert "has no rows" in error_of(tmp_path, "\n\n  \n")
    assert "has column names but no rows: expected" in error_of(tmp_path, "a,b\n")
    assert "no rows: it has no value in any of its lines" in error_of(tmp_path, "a,b\n,\n\n")
    assert "t.csv is empty" in error_of(tmp_path, "")


def test_names_are_those_of_the_csv_module(tmp_path):
    content = '"the ""amount"" €","two\nlines","a, b"\n1,2,x\n3,4,y\n'
    names, rows = rows_of(tmp_path, content)
    assert names == next(csv.reader(io.StringIO(content, newline=""))) == ['the "amount" €', "two\nlines", "a, b"]
    assert rows == [(1, 2, "x"), (3, 4, "y")]


def test_columns_without_a_name(tmp_path):
    assert rows_of(tmp_path, "a,,\n1,2,3\n") == (["a", "column_1", "column_2"], [(1, 2, 3)])


def test_the_line_that_tells_the_delimiter(tmp_path):
    content = "sep=;\r\na;b\r\nx, y;1,5\r\nz, y;2,5\r\n"
    assert rows_of(tmp_path, content) == (["a", "b"], [("x, y", 1.5), ("z, y", 2.5)])
    assert "names the delimiter" in notes_of(tmp_path, content)
    assert rows_of(tmp_path, "\ufeffsep=\t\na\tb\n1\t2\n") == (["a", "b"], [(1, 2)])


def test_comments_before_the_table(tmp_path):
    content = '# made by "hand\n\n# with care, and, time\na,b\n1,2\n\n'
    assert rows_of(tmp_path, content) == (["a", "b"], [(1, 2)])
    assert "2 comment lines skipped" in notes_of(tmp_path, content)
    assert rows_of(tmp_path, "#id,b\n1,2\n") == (["#id", "b"], [(1, 2)])
    assert "line 4 has 3 fields" in error_of(tmp_path, "# note\na,b\n1,2\n1,2,3\n")


def test_a_first_line_of_numbers_is_pointed_out(tmp_path):
    assert "pass --no-header if it is a row" in notes_of(tmp_path, "1.5,2,x\n3.5,4,y\n")
    assert "no-header" not in notes_of(tmp_path, "1.5,2,x\n3.5,4,y\n", no_header=True)
    assert "no-header" not in notes_of(tmp_path, "id,2019,x\n3.5,4,y\n")


def test_very_many_columns(tmp_path):
    names = [f"column number {j}" for j in range(20_000)]
    with opened(tmp_path, ";".join(names) + "\n" + ";".join(["1,5"] * 20_000) + "\n") as file:
        assert file.columns() == names
        assert file.read().row(0) == (1.5,) * 20_000
    repeated = ",".join([*names, names[7]]) + "\n" + ",".join(["1"] * 20_001) + "\n"
    assert "column names that repeat, ['column number 7']" in error_of(tmp_path, repeated)


def test_a_first_line_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("rgld.cli._csv.MAX_FIRST_LINE", 1000)
    assert "its first line is longer than 1,000 bytes" in error_of(tmp_path, "x" * 2000)


def test_very_long_cells(tmp_path):
    before = csv.field_size_limit()
    content = "a;b\n" + f"1,5;{'x' * 200_000}\n" + "2,5;y\n"
    assert rows_of(tmp_path, content)[1][1] == (2.5, "y")
    assert csv.field_size_limit() == before


def test_cells_of_nothing_but_blanks_take_no_time(tmp_path):
    content = "a;b\n" + f"{' ' * 20_000}x;1,5\n"  # cubic time if all of it were tried as a number
    before = time.perf_counter()
    assert rows_of(tmp_path, content)[1][0][1] == 1.5
    assert time.perf_counter() - before < 10


def test_a_word_among_numbers_does_not_search_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("rgld.cli._csvread.fault", lambda path, dialect: pytest.fail("searched"))
    for content in ("a,b\n1,2\nx,3\n", "a;b\n1,5;2\nx;3\n"):
        with opened(tmp_path, content) as file, pytest.raises(NotANumberError, match=r"[`'\"]x"):
            list(file.batches(["a"], {"a": pl.Float64}))


def test_rows_before_a_fault_tell_the_delimiter(tmp_path):
    content = "a;b\n1,5;x\n2,5;y\rz\n"  # the csv module stops at a carriage return in a cell
    assert rows_of(tmp_path, content) == (["a", "b"], [(1.5, "x"), (2.5, "y\rz")])


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_pipes_are_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a,b\n1,2\n3,4\n",))
    writer.start()
    with open_table(str(pipe), Reading()) as file:
        assert file.read().rows() == file.read().rows() == [(1, 2), (3, 4)]
        assert file.shown == str(pipe) and file.path.exists()
    writer.join()
    assert not file.path.exists()


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="a device without end")
def test_devices_are_not_read():
    with pytest.raises(TableError, match="is a device"), open_table("/dev/zero", Reading()):
        pass


FOREIGN = {
    "JSON": (b'{"a": [1, 2]}', "is JSON, expected"),
    "a JSON list": (b' [\n {"a": 1}]', "is JSON, expected"),
    "JSON lines with a broken line": (b'{"a": 1}\n{"a": 2\n{"a": 3}\n', "it cannot be read as JSONL"),
    "bzip2": (b"BZh91AY&SY", "is a bzip2 file, expected"),
    "xz": (b"\xfd7zXZ\0\0", "is an xz file, expected"),
    "a damaged zstd file": (b"\x28\xb5\x2f\xfd\x04" + bytes(40), "a damaged zstd file"),
    "SQLite": (b"SQLite format 3\0" + bytes(100), "is an SQLite database, expected"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "is an HDF5 file, expected"),
    "HTML": (b"<!DOCTYPE html><table>", "is HTML or XML, expected"),
    "gzip in gzip": (gzip.compress(gzip.compress(b"a,b\n1,2\n")), "a gzip file in a gzip file: unpack it first"),
    "JSON in gzip": (gzip.compress(b'[{"a": 1}]'), "is JSON, expected"),
    "a cut Arrow stream": (b"\xff\xff\xff\xff\x10\0\0\0", "it cannot be read as STREAM"),
    "a damaged gzip file": (gzip.compress(os.urandom(1000))[:-300] + bytes(300), "a damaged gzip file"),
}


@pytest.mark.parametrize(("content", "message"), FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_not_a_table_is_named(tmp_path, content, message):
    assert message in error_of(tmp_path, content)


def test_names_that_look_like_other_formats(tmp_path):
    for name in ("PAR1", "ARROW1", "FEA1", "BZh9", "[kg]", "{m}"):
        assert rows_of(tmp_path, f"{name},b\n1,2\n") == ([name, "b"], [(1, 2)])


def test_brackets_are_not_always_json(tmp_path):
    assert rows_of(tmp_path, "[kg],{m}\n1,2\n") == (["[kg]", "{m}"], [(1, 2)])


def test_arrow_streams_and_arrays(tmp_path):
    frame = pl.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    content = io.BytesIO()
    frame.write_ipc_stream(content)
    assert rows_of(tmp_path, content.getvalue()) == (["a", "b"], [(1.5, "x"), (2.5, "y")])
    assert rows_of(tmp_path, gzip.compress(content.getvalue()))[1] == [(1.5, "x"), (2.5, "y")]
    array = io.BytesIO()
    np.save(array, np.array([[1, 2], [3, 4]]))
    assert rows_of(tmp_path, array.getvalue()) == (["x0", "x1"], [(1, 2), (3, 4)])
    array = io.BytesIO()
    np.save(array, np.arange(3))
    assert "expected a numeric array with rows and columns" in error_of(tmp_path, array.getvalue())


def test_a_quotation_without_end(tmp_path):
    assert "line 3 opens a quotation that never ends" in error_of(
        tmp_path, 'a,b\n1,"x\ny"\n2,"y\n3,z\n'.replace("\ny", "")
    )
    message = error_of(tmp_path, 'a,b\n1,"x\n2\n3"\n' + "1,2\n" * 5 + '2,"y\n' + "3,z\n" * 1000)
    assert "line 10 opens a quotation that never ends" in message


def test_column_names_in_a_quotation_without_end(tmp_path):
    assert "line 1 opens a quotation that never ends" in error_of(tmp_path, '"a,b\n1,2\n3,4\n')


@pytest.mark.parametrize("delimiter", ["", "||", '"', "\n", "€"])
def test_what_is_no_delimiter(tmp_path, delimiter):
    with pytest.raises(ParameterError, match="--delimiter must be one character"):
        rows_of(tmp_path, "a,b\n1,2\n", delimiter=delimiter)


def test_lines_that_end_in_carriage_returns(tmp_path):
    assert rows_of(tmp_path, "a,b\r1,2\r3,4\r") == (["a", "b"], [(1, 2), (3, 4)])


def test_a_line_separator_in_a_text_ends_no_line(tmp_path):
    assert rows_of(tmp_path, "a;b\nx\u2028y;1,5\nx\x0by;2,5\n")[1] == [("x\u2028y", 1.5), ("x\x0by", 2.5)]


def test_files_that_grow_beyond_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(_arrays, "ALWAYS_UNPACKED_BYTES", 2**20)
    monkeypatch.setattr(_copies, "COPY_BYTES", 2**18)
    table = "a,b\n" + "".join(f"{i},2\n" for i in range(2**18))
    assert len(table) > 2**21
    with opened(tmp_path, gzip.compress(table.encode())) as file:
        assert len(file.read()) == 2**18
    assert "more than 1000 times its size" in error_of(tmp_path, gzip.compress(bytes(2**22)))
    np.savez_compressed(tmp_path / "zeros.npz", X=np.zeros((2**19, 1)))
    assert "more than 1000 times its size" in error_of(tmp_path, (tmp_path / "zeros.npz").read_bytes())


def npy_of(shape, data):
    """Return an NPY file that claims a shape."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return content.getvalue() + data


def npz_of(**members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return content.getvalue()


@pytest.mark.parametrize("shape", [(10**9, 10**3), (2**40, 2**40), (-1, 2), (3, 2)])
def test_arrays_that_claim_more_than_there_is(tmp_path, shape):
    false = npy_of(shape, bytes(8))
    for content, kind in ((false, "NPY"), (npz_of(X=false), "NPZ")):
        message = error_of(tmp_path, content)
        assert f"it cannot be read as {kind}" in message and "claims an array" in message
    with pytest.raises(TableError), opened(tmp_path, npz_of(X=false)) as file:
        file.columns()


def test_only_arrays_of_the_table_are_loaded(tmp_path):
    """An array that is not part of the table may be anything: it is not read."""
    good = npy_of((2, 2), np.array([[1.0, 2.0], [3.0, 4.0]]).tobytes())
    label = npy_of((2,), np.array([0.0, 1.0]).tobytes())
    content = npz_of(X=good, y=label, other=npy_of((10**12,), b""))
    assert rows_of(tmp_path, content) == (["x0", "x1", "y"], [(1, 2, 0), (3, 4, 1)])


def test_too_little_memory_is_one_sentence(tmp_path, monkeypatch):
    def read(path, dialect):
        raise MemoryError

    monkeypatch.setattr("rgld.cli._csvread.read", read)
    assert "does not fit into memory" in error_of(tmp_path, "a,b\n1,2\n")


def test_values_are_never_more_than_text(tmp_path):
    names = ["=1+1", json.dumps({"a": 1})]
    content = io.StringIO(newline="")
    csv.writer(content).writerows([["f", "x"], *[[name, "1"] for name in names]])
    assert [row[0] for row in rows_of(tmp_path, content.getvalue())[1]] == names
