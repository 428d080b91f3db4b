"""`rgld fit` on several files, on patterns, on tables larger than its memory, on a Dask cluster."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from rgld import RGLD, load

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

COMMAND = Path(sys.executable).parent / "rgld"


def rgld(*arguments, folder):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, cwd=folder, check=False, timeout=180)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def rows(n, seed):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "id": [f"r{seed}-{i}" for i in range(n)],
            "a": rng.normal(size=n).round(4),
            "b": rng.lognormal(size=n).round(4),
            "city": rng.choice(["Bonn", "Köln", "Trier"], n),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    for i, n in enumerate((30_000, 1, 25_000)):
        rows(n, i).write_parquet(folder / f"part-{i}.parquet")
        rows(n, i).write_csv(folder / f"part-{i}.csv")
    whole(folder).write_parquet(folder / "whole.parquet")
    rows(5, 0)[:0].write_parquet(folder / "empty.parquet")
    rows(100, 9).drop("b").write_parquet(folder / "narrow.parquet")
    rows(100, 9).with_columns(pl.lit(float("inf")).alias("a")).write_csv(folder / "infinite.csv")
    dirty = rows(20_000, 8).with_columns(pl.col("b").cast(pl.String))
    dirty[19_000, "b"] = "unknown"
    pl.concat([dirty, dirty]).write_csv(folder / "dirty.csv")
    return folder


def whole(folder):
    return pl.concat([pl.read_parquet(folder / f"part-{i}.parquet") for i in range(3)])


def test_several_files_are_one_table(folder):
    table = whole(folder).drop("id")
    expected = RGLD.plus(random_state=0, calibration_fraction=0.2).fit(table)
    for how in (["part-*.parquet"], ["part-0.parquet", "part-1.parquet", "part-2.parquet"], ["part-*.csv"]):
        code, out, err = rgld("fit", *how, "--id", "id", "--model", "m.rgld", "--force", folder=folder)
        assert (code, err) == (0, ""), err
        assert "fitted on 44,001 rows, 11,000 held out" in out
        found = load(folder / "m.rgld")
        assert [column.kind for column in found.columns_] == ["number", "number", "category"]
        assert spearmanr(found.anomaly_score(table), expected.anomaly_score(table))[0] > 0.999


def test_a_file_larger_than_memory(folder):
    table = whole(folder).drop("id")
    for memory in (0, 4):
        arguments = ("--calibrate", 0, "--memory", memory, "--model", f"{memory}.rgld", "--quiet")
        assert rgld("fit", "whole.parquet", "--id", "id", *arguments, folder=folder) == (0, "", "")
    small, large = (load(folder / f"{memory}.rgld") for memory in (0, 4))
    assert spearmanr(small.anomaly_score(table), large.anomaly_score(table))[0] > 0.999
    assert not np.array_equal(small.anomaly_score(table), large.anomaly_score(table))  # it did go through in batches


def test_files_without_rows_and_files_named_twice(folder):
    files = ("empty.parquet", "part-0.parquet", "part-[0-2].parquet", "--calibrate", 0, "--preset", "fast")
    code, out, err = rgld("fit", *files, "--id", "id", "--model", "e.rgld", folder=folder)
    assert (code, err) == (0, "") and "fitted on 55,001 rows" in out


def test_a_late_word_among_numbers(folder):
    code, _, err = rgld(
        "fit", "dirty.csv", "--memory", 0, "--calibrate", 0, "--id", "id", "--model", "d.rgld", folder=folder
    )
    assert (code, err) == (0, "")
    column = load(folder / "d.rgld").columns_[1]
    assert column.kind == "number" and "2 values are no numbers and count as missing, such as 'unknown'" in column.note


def test_a_short_pattern_is_the_table_in_memory(folder, tmp_path):
    for i in range(3):
        rows(300, i).write_csv(tmp_path / f"{i}.csv")
    assert rgld("fit", "?.csv", "--id", "id", "--model", "m.rgld", "--quiet", folder=tmp_path)[0] == 0
    pl.concat([rows(300, i) for i in range(3)]).write_csv(tmp_path / "all.csv")
    assert rgld("fit", "all.csv", "--id", "id", "--model", "a.rgld", "--quiet", folder=tmp_path)[0] == 0
    assert (tmp_path / "m.rgld").read_bytes() == (tmp_path / "a.rgld").read_bytes()


BAD = {
    "no match": (["nothing-*.csv"], "There is no file that matches nothing-*.csv"),
    "a missing file": (["part-0.csv", "missing.csv"], "There is no file missing.csv"),
    "other columns": (["part-0.parquet", "narrow.parquet"], "narrow.parquet has no column 'b'"),
    "no such id": (["part-*.csv", "--id", "key"], "--id key: part-0.csv has no such column"),
    "infinity": (["part-1.csv", "infinite.csv"], "Column 'a' holds infinity (inf)"),
    "clipped batches": (["part-*.csv", "--inf", "clip"], "--inf clip needs a single table in memory"),
    "no scheduler": (["part-0.parquet", "--dask", "tcp://127.0.0.1:9"], "There is no Dask scheduler at"),
    "no address": (["part-0.parquet", "--dask", "nowhere:x:y"], "There is no Dask scheduler at nowhere:x:y"),
    "other formats": (["part-0.parquet", "part-0.csv", "--dask", "tcp://127.0.0.1:9"], "got part-0.csv: convert it"),
    "a delimiter for a cluster": (["part-0.parquet", "--delimiter", ";", "--dask", "x"], "--dask reads Parquet files"),
    "clipped on a cluster": (["part-0.parquet", "--inf", "clip", "--dask", "x"], "--inf clip does not go together"),
    "a missing file on a cluster": (["missing.parquet", "--dask", "tcp://127.0.0.1:9"], "There is no file missing"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong(folder, what):
    arguments, expected = BAD[what]
    code, out, err = rgld("fit", *arguments, "--model", "bad.rgld", folder=folder)
    assert (code, out) == (2, "")
    assert expected in err and len(err.splitlines()) == 1
    assert not (folder / "bad.rgld").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster(folder):
    distributed = pytest.importorskip("dask.distributed", reason="Dask is not installed")
    table = whole(folder).drop("id")
    expected = RGLD.fast(random_state=0).fit(table)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        address = ("--dask", cluster.scheduler_address, "--id", "id", "--calibrate", 0, "--preset", "fast")
        code, out, err = rgld("fit", "part-*.parquet", *address, "--model", "c.rgld", folder=folder)
        assert code == 0, err
        assert "fitted on 55,001 rows" in out
        found = load(folder / "c.rgld")
        assert spearmanr(found.anomaly_score(table), expected.anomaly_score(table))[0] > 0.999
        code, _, err = rgld("fit", "part-0.parquet", *address[:2], "--id", "key", "--model", "x.rgld", folder=folder)
        assert code == 2 and "--id key: the files have no such column" in err
        (folder / "damaged.parquet").write_bytes((folder / "part-0.parquet").read_bytes()[:-100])
        code, _, err = rgld("fit", "damaged.parquet", *address[:2], "--model", "x.rgld", folder=folder)
        assert code == 2 and "The workers cannot read the files as Parquet" in err and len(err.splitlines()) == 1
