"""Tables on a real Spark cluster of two processes: the same detector and the same scores, whoever dies."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.exceptions import NotFittedError

pytest.importorskip("pyspark", reason="PySpark is not installed")

import pyspark

import rgld.spark
from rgld import RGLD
from rgld.exceptions import ParameterError, TableError

HOME = os.environ.get("JAVA_HOME")  # Spark looks nowhere else if it is set
JAVA = shutil.which("java", path=f"{HOME}/bin" if HOME else None)
pytestmark = [
    pytest.mark.skipif(JAVA is None, reason="PySpark needs Java: no java in JAVA_HOME or on the PATH"),
    pytest.mark.own_process,
    pytest.mark.exhaustive,  # a cluster starts for minutes; `.ci/run` runs it
    pytest.mark.filterwarnings(
        "ignore:PySpark does not yet fully support pandas:FutureWarning", "ignore::ResourceWarning"
    ),
]
SMALL = {"n_global_views": 4, "n_local_views": 2, "random_state": 0}
PARTS = 10
"""More than the driver merges: states are merged on the executors too."""


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(Path(pyspark.__file__).parent))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("SPARK_LOCAL_HOSTNAME", "localhost")
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
            "spark.sql.session.timeZone": "UTC",
            "spark.executor.memory": "512m",
            "spark.task.maxFailures": "2",
            "spark.log.level": "OFF",
        }
        session = SparkSession.builder.master("local-cluster[2,1,768]").config(map=settings).getOrCreate()
        gateway = session.sparkContext._gateway
        yield session
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # Java ends with its input
        gateway.proc.wait(60)


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["x", "y", "rare"], n, p=[0.5, 0.499, 0.001]).astype(object)
    kind[::50] = None
    columns = {
        "id": pa.array(np.arange(n)),
        "a": pa.array(np.where(rng.random(n) < 0.02, None, rng.normal(size=n))),
        "b": pa.array(rng.lognormal(size=n)),
        "kind": pa.array(kind, pa.string()),
        "when": pa.array(rng.integers(1_600_000_000, 1_700_000_000, n), pa.timestamp("s")).cast(
            pa.timestamp("us", "UTC")
        ),
        "paid": pa.array(rng.random(n) < 0.3),
    }
    return pa.table(columns)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A short table, and one longer than the sample, in Parquet files of uneven lengths, one of them without rows."""
    folder = tmp_path_factory.mktemp("spark")
    for name, n, parts in (("short", 5000, 3), ("long", 50_000, PARTS)):
        (folder / name).mkdir()
        table, cuts = rows(n), sorted({0, *np.random.default_rng(1).integers(0, n, parts - 2).tolist(), n})
        for i, (start, stop) in enumerate([(0, 0), *pairwise(cuts)]):
            pa.parquet.write_table(table.slice(start, stop - start), folder / name / f"part-{i:02}.parquet")
    return folder


@pytest.fixture(scope="module")
def frames(spark, folder):
    spark.conf.set("spark.sql.files.openCostInBytes", str(2**27))  # one partition for each file
    return {name: spark.read.parquet(f"{folder}/{name}") for name in ("short", "long")}


@pytest.fixture(scope="module")
def long_detector(frames):
    return rgld.spark.fit(frames["long"].drop("id"), **SMALL)


def features(df):
    """Return the rows as Spark numbers them: partition after partition."""
    return pa.table(df.drop("id").toArrow())


def assert_same(one, other, table):
    np.testing.assert_array_equal(one.anomaly_score(table), other.anomaly_score(table))
    assert one.columns_ == other.columns_ and one.offset_ == other.offset_


def test_a_short_table_gives_the_detector_of_memory(frames):
    table = features(frames["short"])
    found = rgld.spark.fit(frames["short"].drop("id"), RGLD(**SMALL, calibration_fraction=0.1, contamination=0.05))
    expected = RGLD(**SMALL, calibration_fraction=0.1, contamination=0.05).fit(table)
    assert_same(found, expected, table)
    np.testing.assert_array_equal(found.model_.calibration, expected.model_.calibration)
    assert [column.kind for column in found.columns_] == ["number", "number", "category", "time", "boolean"]


def test_a_long_table_gives_the_detector_of_batches(frames, long_detector):
    assert frames["long"].rdd.getNumPartitions() > rgld.spark.MAX_STATES_AT_DRIVER
    table = features(frames["long"])
    expected = RGLD(**SMALL).fit_batches([table.slice(0, 20_000), table.slice(20_000)])
    difference = np.abs(long_detector.anomaly_score(table) - expected.anomaly_score(table))
    assert difference.max() < 2e-3 and np.median(difference) < 1e-5
    assert long_detector.columns_ == expected.columns_ and long_detector.model_.encoding.n_rows == 50_000


def test_an_executor_that_dies_changes_no_bit(spark, frames, long_detector, monkeypatch):
    killed = []
    application = spark.sparkContext.applicationId
    run = rgld.spark.SparkTable.run

    def kill():
        time.sleep(0.2)
        killed.append(executors(application)[0])
        os.kill(killed[0], signal.SIGKILL)

    def run_and_kill(self, step):
        if type(step).__name__ == "ViewScoresStep":
            threading.Thread(target=kill).start()
        return run(self, step)

    monkeypatch.setattr(rgld.spark.SparkTable, "run", run_and_kill)
    found = rgld.spark.fit(frames["long"].drop("id"), **SMALL)
    assert killed and killed[0] not in executors(application)
    assert_same(found, long_detector, features(frames["long"]))


def executors(application):
    """Return the processes of an application's executors."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and application.encode() in words:
            found.append(int(path.parent.name))
    return found


def test_scores_have_the_bits_of_the_detector(frames, long_detector):
    scored = rgld.spark.anomaly_score(long_detector, frames["long"].select("paid", "id", "when", "kind", "b", "a"))
    assert scored.columns == ["paid", "id", "when", "kind", "b", "a", "anomaly_score"]
    found = pa.table(scored.toArrow()).sort_by("id")
    expected = long_detector.anomaly_score(rows(50_000).drop_columns("id"))
    np.testing.assert_array_equal(found["anomaly_score"], expected)


def test_reasons_are_those_of_the_detector(frames, long_detector):
    top = rgld.spark.anomaly_score(long_detector, frames["short"]).orderBy("anomaly_score", ascending=False).limit(5)
    found = pa.table(rgld.spark.explain(long_detector, top.drop("anomaly_score")).toArrow())
    expected = long_detector.explain(found.select(list(long_detector.feature_names_in_)))
    assert found["reasons"].to_pylist() == [expected.reasons(i) for i in range(5)]
    assert any(found["reasons"].to_pylist())
    np.testing.assert_array_equal(found["anomaly_score"], expected.anomaly_score)


ON_CONNECT = """
import sys
from pyspark.sql import SparkSession
import pyarrow.parquet, rgld.spark

folder = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
df = spark.read.parquet(f"{folder}/short")
assert "connect" in type(df).__module__, type(df)
detector = rgld.spark.fit(df.drop("id"), n_global_views=4, n_local_views=2, random_state=0)
detector.save(f"{folder}/connect.rgld")
pyarrow.parquet.write_table(df.toArrow(), f"{folder}/rows.parquet")
pyarrow.parquet.write_table(rgld.spark.anomaly_score(detector, df).toArrow(), f"{folder}/scores.parquet")
few = rgld.spark.explain(detector, df.filter("id < 3")).orderBy("id")
pyarrow.parquet.write_table(few.toArrow(), f"{folder}/reasons.parquet")
try:
    rgld.spark.fit(spark.sql("SELECT IF(id = 3, double('inf'), id) AS a FROM range(9)").coalesce(1))
except rgld.TableError as error:
    print(error)
spark.stop()
"""


@pytest.mark.skipif(find_spec("grpc") is None, reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
def test_connect(folder):
    environment = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", ON_CONNECT, str(folder)],
        env={**os.environ, **environment, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Column 'a' holds infinity (inf) in row 3" in done.stdout
    table = pa.parquet.read_table(folder / "rows.parquet").drop_columns("id")
    found = rgld.load(folder / "connect.rgld")
    assert_same(found, RGLD(**SMALL).fit(table), table)
    scored = pa.parquet.read_table(folder / "scores.parquet").sort_by("id")
    features = scored.drop_columns(["id", "anomaly_score"])
    np.testing.assert_array_equal(scored["anomaly_score"], found.anomaly_score(features))
    expected = found.explain(features.slice(0, 3))
    reasons = pa.parquet.read_table(folder / "reasons.parquet")["reasons"].to_pylist()
    assert reasons == [expected.reasons(i) for i in range(3)]


def test_a_table_that_changes_is_refused(spark):
    def shuffled(batches):
        for batch in batches:
            yield batch.take(pa.array(np.random.default_rng().permutation(batch.num_rows)))

    df = (
        spark.range(3000)
        .selectExpr("double(id) AS a", "id % 7 AS b")
        .repartition(2)
        .mapInArrow(shuffled, "a double, b long")
    )
    with pytest.raises(TableError, match=r"had other rows when they were counted.*`persist` it"):
        rgld.spark.fit(df, **SMALL)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT 1.0 AS a WHERE false", "Expected a table with rows, got only empty partitions"),
        ("SELECT IF(id = 3, double('inf'), id) AS a FROM range(9)", r"Column 'a' holds infinity \(inf\) in row 3"),
        ("SELECT array(id) AS a FROM range(9)", "'a': it holds List"),
        ("SELECT 1 AS a, 2 AS a", "Column names must be unique"),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(spark, sql, message):
    with pytest.raises(TableError, match=message):
        rgld.spark.fit(spark.sql(sql).coalesce(1), **SMALL)


def test_what_cannot_be_fitted_or_scored(spark, frames, long_detector):
    df = frames["short"]
    with pytest.raises(ParameterError, match="a detector or its parameters, not both"):
        rgld.spark.fit(df, RGLD(), random_state=0)
    with pytest.raises(ParameterError, match="n_references"):
        rgld.spark.fit(df, n_references=-1)
    with pytest.raises(TableError, match="Expected a Spark DataFrame, got Table: use"):
        rgld.spark.fit(rows(10))
    with pytest.raises(NotFittedError):
        rgld.spark.anomaly_score(RGLD(), df)
    with pytest.raises(TableError, match="has no column 'kind', which the detector was fitted on"):
        rgld.spark.anomaly_score(long_detector, df.drop("kind"))
    with pytest.raises(TableError, match="has a column 'anomaly_score' already"):
        rgld.spark.explain(long_detector, df.withColumn("anomaly_score", df["a"]))
    with pytest.raises(TableError, match="fitted without column names"):
        rgld.spark.anomaly_score(RGLD(**SMALL).fit(np.arange(10.0)[:, None]), df)
    with pytest.raises(TableError, match="got a stream"):
        rgld.spark.fit(spark.readStream.format("rate").load(), **SMALL)
