"""PySpark: executors that load a saved model score as pandas does, to the bit, empty partitions too."""

import importlib
import os
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

import rgld

HOME = os.environ.get("JAVA_HOME")  # Spark looks nowhere else if it is set
JAVA = shutil.which("java", path=f"{HOME}/bin" if HOME else None)
MODULE = """
import functools
import pandas as pd
import rgld
from pyspark import SparkFiles

@functools.lru_cache
def model():
    return rgld.load(SparkFiles.get("model.rgld")).set_params(n_jobs=1)

def score(batches):
    for batch in batches:
        scores = model().anomaly_score(batch[list(model().feature_names_in_)])
        yield pd.DataFrame({"id": batch["id"], "anomaly_score": scores})

def look(batches):
    yield pd.DataFrame({"rows": [sum(map(len, batches))], "loads": model.cache_info().misses})
"""


@pytest.mark.own_process
@pytest.mark.skipif(JAVA is None, reason="PySpark needs Java: no java in JAVA_HOME or on the PATH")
@pytest.mark.filterwarnings("ignore:::pyspark")  # it does not know pandas 3 yet, and says so
def test_executors_score_as_pandas_does(tmp_path, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    (tmp_path / "rgld_scoring.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    scoring, rng = importlib.import_module("rgld_scoring"), np.random.default_rng(0)
    table = pd.DataFrame({"id": range(900), "amount": rng.lognormal(3, 1, 900)})
    table["shop"] = rng.choice(["a", "b", "c", None], 900)
    table["when"] = pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 10**7, 900), unit="s")
    local = {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
    with sql.SparkSession.builder.master("local[2]").config(map=local).getOrCreate() as spark:
        spark.createDataFrame(table).write.parquet(f"{tmp_path}/rows")
        detector = rgld.RGLD(random_state=0).fit(pd.read_parquet(tmp_path / "rows").drop(columns="id"))
        detector.save(tmp_path / "model.rgld")
        spark.sparkContext.addFile(f"{tmp_path}/model.rgld")
        spark.sparkContext.addPyFile(scoring.__file__)
        frame = spark.read.parquet(f"{tmp_path}/rows").select("when", "shop", "id", "amount").repartition(6, "shop")
        scored = frame.mapInPandas(scoring.score, "id long, anomaly_score double").toPandas().sort_values("id")
        seen = frame.mapInPandas(scoring.look, "rows long, loads long").toPandas()
    np.testing.assert_array_equal(scored["anomaly_score"], detector.anomaly_score(table.drop(columns="id")))
    assert sorted(seen["rows"])[0] == 0 and len(seen) == 6 and sum(seen["rows"]) == 900
    assert max(seen["loads"]) == 1, "a process loads the model once, for all its tasks"
