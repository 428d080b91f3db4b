"""What can be wrong with a file, an option or a model: one line, exit code 2, no traceback, nothing half-written."""

import zipfile

import numpy as np
import polars as pl
import pytest

from rgld import RGLD

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from .command import installed_rgld, rgld

RNG = np.random.default_rng(0)
NUMBERS = pl.DataFrame({"a": RNG.normal(size=60), "b": RNG.normal(size=60)})
CSV = NUMBERS.write_csv()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All the bad files, and a good table and model beside them."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "good.csv").write_text(CSV)
    RGLD.fast(random_state=0).fit(NUMBERS).save(folder / "good.rgld")
    RGLD.fast(random_state=0).fit(NUMBERS.to_numpy()).save(folder / "plain.rgld")
    (folder / "empty.csv").write_text("")
    (folder / "header.csv").write_text("a,b\n")
    (folder / "one-row.csv").write_text("a,b\n1,2\n")
    (folder / "ragged.csv").write_text("a,b\n" + "1,2\n" * 30 + "1,2,3\n" + "4,5\n" * 30)
    (folder / "duplicate.csv").write_text("a,b,a\n" + "1,2,3\n4,5,6\n" * 30)
    (folder / "constant.csv").write_text("a,b\n" + "1,2\n" * 30)
    (folder / "blank.csv").write_text("a,b\n" + ",\n" * 30)
    (folder / "words.csv").write_text("id\n" + "".join(f"word number {i}\n" for i in range(60)))
    (folder / "infinite.csv").write_text(CSV + "inf,1\n")
    (folder / "other.csv").write_text(CSV.replace("a,b", "a,c"))
    (folder / "narrow.csv").write_text("a\n1\n2\n3\n")
    (folder / "three-labels.csv").write_text("a,y\n" + "1,x\n2,y\n3,z\n" * 20)
    (folder / "gap-label.csv").write_text("a,y\n" + "1,x\n2,y\n3,\n" * 20)
    (folder / "binary.csv").write_bytes(bytes(range(256)) * 20)
    (folder / "image.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    (folder / "cut.parquet").write_bytes(b"PAR1" + bytes(100))
    NUMBERS.write_parquet(folder / "good.parquet")
    (folder / "damaged.parquet").write_bytes((folder / "good.parquet").read_bytes()[:-30] + bytes(30))
    (folder / "cut.arrow").write_bytes(b"ARROW1\0\0" + bytes(50))
    (folder / "cut.npz").write_bytes(b"PK\x03\x04" + bytes(50))
    (folder / "cut.csv.gz").write_bytes(b"\x1f\x8b" + bytes(50))
    np.savez(folder / "no-x.npz", y=np.zeros(3))
    np.savez(folder / "text.npz", X=np.array([["a", "b"]]))
    np.savez(folder / "objects.npz", X=np.array([[{}, 1]], dtype=object))
    with zipfile.ZipFile(folder / "book.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")
    with zipfile.ZipFile(folder / "files.zip", "w") as archive:
        archive.writestr("t.csv", CSV)
        archive.writestr("u.csv", CSV)
    (folder / "nothing").mkdir()
    pl.DataFrame({"a": [[1, 2], [3, 4]] * 10, "b": range(20)}).write_parquet(folder / "nested.parquet")
    (folder / "model.rgld").write_bytes(b"not a model")
    (folder / "cut.rgld").write_bytes((folder / "good.rgld").read_bytes()[:1000])
    (folder / "exists.csv").write_text("mine")
    return folder


BAD = {
    "no such file": (["score", "nope.csv"], "There is no file nope.csv"),
    "a folder without files": (["score", "nothing"], "nothing is a folder without files"),
    "an empty file": (["score", "empty.csv"], "empty.csv is empty: expected a table"),
    "column names only": (["score", "header.csv"], "has column names but no rows"),
    "column names only, with a model": (["score", "header.csv", "-m", "good.rgld"], "but no rows"),
    "one row": (["score", "one-row.csv"], "at least 2 rows"),
    "a line with more fields": (["score", "ragged.csv"], "line 32 has 3 fields, expected 2"),
    "a name twice": (["score", "duplicate.csv"], "column names that repeat, ['a']"),
    "all columns constant": (["score", "constant.csv"], "'a': it is constant; 'b': it is constant"),
    "no value at all": (["score", "blank.csv"], "it has no value in any of its lines"),
    "nothing but ids": (["fit", "words.csv", "-m", "new.rgld"], "it is an id or free text"),
    "an infinity": (["fit", "infinite.csv", "-m", "new.rgld"], "Column 'a' holds infinity (inf) in row 60"),
    "binary data": (["score", "binary.csv"], "not a table"),
    "an image": (["score", "image.png"], "not a table"),
    "a cut Parquet file": (["score", "cut.parquet"], "cut.parquet: it cannot be read as PARQUET"),
    "a damaged Parquet file": (["score", "damaged.parquet"], "cannot be read as PARQUET"),
    "a cut Arrow file": (["score", "cut.arrow"], "cannot be read as ARROW"),
    "a cut NPZ file": (["score", "cut.npz"], "damaged zip file"),
    "a cut gzip file": (["score", "cut.csv.gz"], "damaged gzip file"),
    "an NPZ file without X": (["score", "no-x.npz"], "expected a numeric array X"),
    "an NPZ file of texts": (["score", "text.npz"], "expected a numeric array X"),
    "an NPZ file of objects": (["score", "objects.npz"], "objects.npz: it cannot be read as NPZ"),
    "a damaged Excel workbook": (["score", "book.xlsx"], "book.xlsx: it cannot be read as XLSX"),
    "a zip archive": (["score", "files.zip"], "zip archive of 2 files, expected one table: unpack it first"),
    "nested values": (["score", "nested.parquet"], "'a': it holds List(Int64)"),
    "no model file": (["score", "good.csv", "-m", "nope.rgld"], "nope.rgld"),
    "not a model": (["score", "good.csv", "-m", "model.rgld"], "model file"),
    "a cut model": (["info", "cut.rgld"], "model file"),
    "a table instead of a model": (["info", "good.csv"], "'good.csv' is not a model file"),
    "a column is missing": (["score", "other.csv", "-m", "good.rgld"], "lacks columns that the model needs: b"),
    "too few columns": (["score", "narrow.csv", "-m", "plain.rgld"], "has 1 columns, the model needs 2"),
    "no id column": (["score", "good.csv", "--id", "nope"], "--id nope: good.csv has no such column; it has a, b"),
    "an id column in capitals": (
        ["score", "good.csv", "--id", "A"],
        "--id A: good.csv has no such column; did you mean a?",
    ),
    "no label column": (["score", "good.csv", "--label", "y"], "--label y: good.csv has no such column"),
    "three labels": (
        ["score", "three-labels.csv", "--label", "y"],
        "Expected two values in the label column 'y', got 3",
    ),
    "labels with gaps": (["score", "gap-label.csv", "--label", "y"], "it has 20 missing"),
    "an unknown preset": (["score", "good.csv", "--preset", "best"], "'best' is not one of"),
    "an unknown option": (["score", "good.csv", "--colour", "red"], "No such option"),
    "an unknown command": (["scores", "good.csv"], "No such command"),
    "no table": (["score"], "Missing argument"),
    "no model to write": (["fit", "good.csv"], "Missing option"),
    "a model on standard output": (["fit", "good.csv", "-m", "-"], "must be the name of a file"),
    "a negative seed": (["score", "good.csv", "--seed", "-1"], "--seed"),
    "a seed that is no number": (["score", "good.csv", "--seed", "x"], "--seed"),
    "no threads": (["score", "good.csv", "--jobs", "0"], "--jobs must be"),
    "an fdr above 1": (["score", "good.csv", "-m", "good.rgld", "--fdr", "2"], "--fdr must be between 0 and 1"),
    "an fdr without a model": (["score", "good.csv", "--fdr", "0.1"], "--fdr needs --model"),
    "an fdr without calibration": (["score", "good.csv", "-m", "good.rgld", "--fdr", "0.1"], "rgld fit --calibrate"),
    "too much calibration": (["fit", "good.csv", "-m", "x.rgld", "--calibrate", "2"], "calibration_fraction must be"),
    "a reading without a kind": (["score", "good.csv", "--column", "a"], "expects NAME=KIND"),
    "an unknown kind": (
        ["score", "good.csv", "--column", "a=blob"],
        "a column can be number, category, time, drop, not 'blob'",
    ),
    "a reading of no column": (["score", "good.csv", "--column", "z=drop"], "There is no column 'z'"),
    "a preset with a model": (["score", "good.csv", "-m", "good.rgld", "--preset", "fast"], "--preset is for fitting"),
    "a seed with a model": (["score", "good.csv", "-m", "good.rgld", "--seed", "1"], "--seed is for fitting"),
    "a report on standard output": (["report", "good.csv", "-o", "-"], "--out must be the name of a file"),
    "no such model": (["info", "nope.rgld"], "There is no file nope.rgld"),
    "a model that exists": (["fit", "good.csv", "-m", "good.rgld"], "--model good.rgld exists already"),
    "a reading with a model": (
        ["score", "good.csv", "-m", "good.rgld", "--column", "a=drop"],
        "--column is for fitting",
    ),
    "a long delimiter": (["score", "good.csv", "--delimiter", "||"], "--delimiter must be one character"),
    "an unknown encoding": (["score", "good.csv", "--encoding", "klingon"], "--encoding 'klingon' is not known"),
    "the wrong encoding": (["score", "binary.csv", "--encoding", "utf-16"], "is not utf-16"),
    "an unknown decimal mark": (["score", "good.csv", "--decimal", ";"], "--decimal must be '.' or ','"),
    "an output of no known kind": (["score", "good.csv", "-o", "out.docx"], "expected a name that ends in .csv"),
    "an output in no folder": (["score", "good.csv", "-o", "nope/out.csv"], "there is no folder nope"),
    "an output that is a folder": (["report", "good.csv", "-o", "."], "is a folder"),
    "an output that exists": (["score", "good.csv", "-o", "exists.csv"], "exists already"),
    "a row that is not there": (["explain", "good.csv", "--row", "99"], "--row 99: there is no such row"),
    "an unknown infinity": (["score", "good.csv", "--inf", "drop"], "'drop' is not one of"),
}


INSTALLED = ("no such file", "a damaged Parquet file", "an unknown option", "not a model")
"""These also run as the installed command."""


@pytest.mark.parametrize("what", BAD)
def test_one_line_and_exit_code_2(folder, what):
    arguments, message = BAD[what]
    before = sorted(path.name for path in folder.iterdir())
    for run in (rgld, installed_rgld) if what in INSTALLED else (rgld,):
        code, out, error = run(*arguments, folder=folder)
        assert code == 2, (out, error)
        lines = error.strip().splitlines()
        assert message in error and lines[-1].startswith("rgld: ")
        assert len(lines) <= 2 and "Traceback" not in error
    assert sorted(path.name for path in folder.iterdir()) == before
    assert (folder / "exists.csv").read_text() == "mine"


def test_there_are_enough_cases():
    assert len(BAD) >= 40


def test_no_terminal_input_is_waited_for():
    code, _, error = installed_rgld("score", "-", stdin=b"")
    assert code == 2 and "standard input is empty" in error
