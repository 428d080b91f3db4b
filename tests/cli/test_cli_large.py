"""`rgld fit` on several files, on patterns, on tables larger than its memory, on a Dask cluster, on Spark."""

import shutil
import sys

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from rgld import RGLD, load

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from rgld.cli._files import open_table
from rgld.cli._options import Reading

from .command import installed_rgld, rgld


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


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "npy"])
def test_the_memory_that_a_fit_takes_grows_with_the_table(tmp_path, ending):
    """Of 50,000 more rows: 48 bytes for a number, 240 for a string; of CSV about that."""
    needed = []
    for n in (10_000, 60_000):
        table, path = rows(n, 0).drop("id"), tmp_path / f"{n}.{ending}"
        if ending == "npy":
            np.save(path, table.select("a", "b").to_numpy())
        else:
            getattr(table, {"arrow": "write_ipc"}.get(ending, f"write_{ending}"))(path)
        with open_table(str(path), Reading()) as file:
            needed.append(file.fit_bytes())
    by_hand = 50_000 * (2 * 48 + (0 if ending == "npy" else 240))
    assert needed[1] - needed[0] == pytest.approx(by_hand, rel=0.6 if ending == "csv" else 1e-3)


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
    assert column.kind == "number" and "2 values are not numbers and count as missing, such as 'unknown'" in column.note


def test_a_short_pattern_is_the_table_in_memory(folder, tmp_path):
    for i in range(3):
        rows(300, i).write_csv(tmp_path / f"{i}.csv")
    assert rgld("fit", "?.csv", "--id", "id", "--model", "m.rgld", "--quiet", folder=tmp_path)[0] == 0
    pl.concat([rows(300, i) for i in range(3)]).write_csv(tmp_path / "all.csv")
    assert rgld("fit", "all.csv", "--id", "id", "--model", "a.rgld", "--quiet", folder=tmp_path)[0] == 0
    assert (tmp_path / "m.rgld").read_bytes() == (tmp_path / "a.rgld").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_infinite_numbers_are_clipped_in_batches_as_in_memory(tmp_path, kind):
    infinite = pl.when(pl.col("id").str.ends_with("7")).then(float("inf")).when(pl.col("id").str.ends_with("13"))
    parts = [rows(400, i).with_columns(infinite.then(-float("inf")).otherwise("a").alias("a")) for i in range(2)]
    for name, frame in (("0", parts[0]), ("1", parts[1]), ("all", pl.concat(parts))):
        getattr(frame, f"write_{kind}")(tmp_path / f"{name}.{kind}")
    for table, model in ((f"[01].{kind}", "b.rgld"), (f"all.{kind}", "m.rgld")):
        code, _, err = rgld("fit", table, "--id", "id", "--inf", "clip", "-m", model, folder=tmp_path)
        assert (code, err) == (0, "")
    assert (tmp_path / "b.rgld").read_bytes() == (tmp_path / "m.rgld").read_bytes()


BAD = {
    "no match": (["nothing-*.csv"], "There is no file that matches nothing-*.csv"),
    "a missing file": (["part-0.csv", "missing.csv"], "There is no file missing.csv"),
    "other columns": (["part-0.parquet", "narrow.parquet"], "narrow.parquet has no column 'b'"),
    "no such id": (["part-*.csv", "--id", "key"], "--id key: part-0.csv has no such column"),
    "infinity": (["part-1.csv", "infinite.csv"], "Column 'a' holds infinity (inf)"),
    "nothing but infinity": (
        ["infinite.csv", "infinite.csv", "empty.parquet", "--inf", "clip"],
        "infinite numbers only",
    ),
    "no scheduler": (["part-0.parquet", "--dask", "tcp://127.0.0.1:9"], "There is no Dask scheduler at"),
    "no address": (["part-0.parquet", "--dask", "nowhere:x:y"], "There is no Dask scheduler at nowhere:x:y"),
    "a pipe for a cluster": (["-", "--dask", "tcp://127.0.0.1:9"], "--dask reads files, got -: fit without --dask"),
    "a database for a cluster": (["duckdb:///x", "--dask", "tcp://127.0.0.1:9"], "--dask reads files, got duckdb:///x"),
    "clipped on a cluster": (["part-0.parquet", "--inf", "clip", "--dask", "x"], "--inf clip does not go together"),
    "two clusters": (["part-0.parquet", "--dask", "x", "--spark", "local"], "--dask and --spark do not go together"),
    "no Spark": (
        ["part-0.parquet", "--spark", "spark://127.0.0.1:9"],
        "There is no Spark at spark://127.0.0.1:9: check",
    ),
    "no Connect server": (
        ["part-0.parquet", "--spark", "sc://127.0.0.1:9/;token=secret"],
        "at sc://127.0.0.1:9/: check",
    ),
    "CSV for Spark": (["part-0.csv", "--spark", "local"], "--spark reads Parquet files, got part-0.csv"),
    "a pipe for Spark": (["-", "--spark", "local"], "--spark reads files, got -: fit without --spark"),
    "clipped on Spark": (["part-0.parquet", "--inf", "clip", "--spark", "x"], "--inf clip does not go together"),
    "a missing file on Spark": (["missing.parquet", "--spark", "local"], "There is no file missing"),
    "a missing file on a cluster": (["missing.parquet", "--dask", "tcp://127.0.0.1:9"], "There is no file missing"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong(folder, what, monkeypatch):
    if "--spark" in BAD[what][0]:
        pytest.importorskip("pyspark", reason="PySpark is not installed")
    distributed = pytest.importorskip("dask.distributed", reason="Dask is not installed")
    client = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda *args, **more: client(*args, **{**more, "timeout": "1s"}))
    arguments, expected = BAD[what]
    code, out, err = rgld("fit", *arguments, "--model", "bad.rgld", folder=folder)
    assert (code, out) == (2, "")
    assert expected in err and len(err.splitlines()) == 1
    assert not (folder / "bad.rgld").exists()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask does not know the newest pandas yet
def test_a_cluster(folder):
    distributed = pytest.importorskip("dask.distributed", reason="Dask is not installed")
    table = whole(folder).drop("id")
    expected = RGLD.fast(random_state=0).fit(table)
    # The worker is a thread of this process, the command a process that finds it by its address.
    local = {"processes": False, "protocol": "tcp://", "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, **local) as cluster:
        address = ("--dask", cluster.scheduler_address, "--id", "id", "--calibrate", 0, "--preset", "fast")
        code, out, err = installed_rgld("fit", "part-*.parquet", *address, "--model", "c.rgld", folder=folder)
        assert code == 0, err
        assert "fitted on 55,001 rows" in out
        found = load(folder / "c.rgld")
        assert spearmanr(found.anomaly_score(table), expected.anomaly_score(table))[0] > 0.999
        code, _, err = rgld("fit", "part-*.csv", *address, "--model", "text.rgld", folder=folder)
        assert code == 0, err
        np.testing.assert_array_equal(load(folder / "text.rgld").anomaly_score(table), found.anomaly_score(table))
        # A file whose first rows are numbers and whose later ones are not: all columns are read again, as text.
        code, _, err = rgld("fit", "part-1.csv", "dirty.csv", *address, "--model", "dirty.rgld", folder=folder)
        assert code == 0, err
        assert "count as missing, such as 'unknown'" in load(folder / "dirty.rgld").columns_[1].note
        code, _, err = rgld("fit", "part-1.csv", "narrow.parquet", *address, "--model", "x.rgld", folder=folder)
        assert code == 2 and "has no column 'b', which the first file has" in err
        code, _, err = rgld("fit", "part-0.parquet", *address[:2], "--id", "key", "--model", "x.rgld", folder=folder)
        assert code == 2 and "--id key: the files have no such column" in err
        (folder / "damaged.parquet").write_bytes((folder / "part-0.parquet").read_bytes()[:-100])
        code, _, err = rgld("fit", "damaged.parquet", *address[:2], "--model", "x.rgld", folder=folder)
        assert code == 2 and "The workers cannot read the files: " in err and len(err.splitlines()) == 1


def test_spark_without_pyspark_or_java(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.delitem(sys.modules, "rgld.spark", raising=False)
    code, _, err = rgld("fit", "part-0.parquet", "--spark", "local", "--model", "x.rgld", folder=folder)
    assert (code, err) == (2, "rgld: --spark needs PySpark: pip install 'rgld[spark]'.\n")
    monkeypatch.undo()
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    monkeypatch.setenv("JAVA_HOME", str(folder))
    code, _, err = rgld("fit", "part-0.parquet", "--spark", "local", "--model", "x.rgld", folder=folder)
    assert (code, err) == (2, "rgld: --spark needs Java 17 or newer: install it, or set JAVA_HOME to where it is.\n")


@pytest.mark.exhaustive  # Java starts for a minute; `.ci/run` runs it
@pytest.mark.skipif(shutil.which("java") is None, reason="PySpark needs Java: no java on the PATH")
def test_spark(folder, monkeypatch):
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    table = whole(folder).drop("id")
    options = ("--spark", "local[2]", "--id", "id", "--calibrate", 0, "--preset", "fast")
    code, out, err = installed_rgld("fit", "part-*.parquet", *options, "--model", "spark.rgld", folder=folder)
    assert (code, err) == (0, "") and "fitted on 55,001 rows" in out
    expected = RGLD.fast(random_state=0).fit(table)
    found = load(folder / "spark.rgld")
    # Spark reads the largest file first: other rows are drawn than from the table in the order of the files.
    assert spearmanr(found.anomaly_score(table), expected.anomaly_score(table))[0] > 0.95
    (folder / "cut.parquet").write_bytes((folder / "part-0.parquet").read_bytes()[:-100])
    bad = {
        "--id key: the files have no such column": ("part-0.parquet", "--id", "key"),
        "Spark cannot read the files: ": ("cut.parquet",),
    }
    for message, arguments in bad.items():
        code, _, err = installed_rgld("fit", *arguments, *options[:2], "--model", "x.rgld", folder=folder)
        assert code == 2 and message in err and len(err.splitlines()) == 1, err
