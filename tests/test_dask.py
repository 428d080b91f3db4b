"""Tables on a Dask cluster: the same detector as in batches, whatever the partitions, and whoever dies."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.exceptions import NotFittedError

pytest.importorskip("dask.distributed", reason="Dask is not installed")

import dask
import dask.array as da
import dask.dataframe as dd
from dask.distributed import Client, LocalCluster, wait

import rgld.dask
from rgld import RGLD
from rgld.exceptions import ParameterError, TableError

pytestmark = [
    pytest.mark.own_process,
    # Clusters that end while a worker is killed leave sockets to the collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

SMALL = {"n_global_views": 6, "n_local_views": 3, "random_state": 0}


def table(n=40_000, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    frame["kind"] = rng.choice(["x", "y"], n)
    frame.loc[frame.index[-20:], "kind"] = "rare"
    frame.loc[frame.index[::50], "b"] = np.nan
    return frame


@pytest.fixture(scope="module")
def cluster():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


def in_batches(frame, **parameters):
    return RGLD(**{**SMALL, **parameters}).fit_batches([frame[:15_000], frame[15_000:]])


def assert_alike(one, other, rows):
    difference = np.abs(one.anomaly_score(rows) - other.anomaly_score(rows))
    assert difference.max() < 2e-3 and np.median(difference) < 1e-5


# ---- without a cluster


def test_partitions_make_no_difference():
    frame = table()
    batches = in_batches(frame)
    for bounds in ([0, 39_999], [0, 1, 2, 20_000, 39_999], [*range(0, 40_000, 3333), 39_999]):
        data = dd.from_pandas(frame, npartitions=1).repartition(divisions=bounds)
        found = rgld.dask.fit(data, **SMALL)
        assert found.columns_ == batches.columns_
        assert_alike(found, batches, frame)


def test_a_short_table_is_learned_as_in_memory():
    frame = table(3000)
    found = rgld.dask.fit(dd.from_pandas(frame, npartitions=5), **SMALL)
    assert np.array_equal(found.anomaly_score(frame), RGLD(**SMALL).fit(frame).anomaly_score(frame))


def test_scores_are_lazy_and_those_of_pandas():
    frame = table(2000)
    frame.index = frame.index * 3 + 7
    detector = RGLD(**SMALL).fit(frame)
    data = dd.from_pandas(frame, npartitions=3)
    scores = rgld.dask.anomaly_score(detector, data)
    assert isinstance(scores, dd.Series)
    expected = pd.Series(detector.anomaly_score(frame), index=frame.index, name="anomaly_score")
    pd.testing.assert_series_equal(scores.compute(), expected, check_exact=True)
    assert len(rgld.dask.anomaly_score(detector, data[data["a"] > 100]).compute()) == 0


def test_empty_partitions_and_other_categories():
    frame = table()
    frame["kind"] = frame["kind"].astype("category")
    pieces = [frame[:100], frame[:0], frame[100:30_000], frame[:0], frame[30_000:]]
    for piece in pieces:  # each partition knows its own categories
        assert piece["kind"].cat.categories.tolist() == ["rare", "x", "y"]
    own = [piece.assign(kind=piece["kind"].cat.remove_unused_categories()) for piece in pieces]
    data = dd.from_delayed([dask.delayed(piece) for piece in own], meta=frame.iloc[:0], verify_meta=False)
    found = rgld.dask.fit(data, **SMALL)
    assert_alike(found, in_batches(frame), frame)
    kind = found.columns_[-1]
    assert dict(zip(kind.values, kind.counts, strict=True)) == frame["kind"].value_counts().to_dict()


@pytest.mark.parametrize("preset", [RGLD, RGLD.plus])
def test_arrays(preset):
    X = np.random.default_rng(0).normal(size=(40_000, 5)).astype(np.float32)
    detector = preset(random_state=0, n_local_views=8, calibration_fraction=0.1, contamination=0.02)
    data = da.from_array(X, chunks=(9000, 2))
    found = rgld.dask.fit(data, detector)
    assert found is detector
    assert len(found.model_.calibration) == 4000
    scores = rgld.dask.anomaly_score(found, data)
    assert isinstance(scores, da.Array) and scores.shape == (40_000,)
    assert np.array_equal(scores.compute(), found.anomaly_score(X))
    in_memory = preset(random_state=0, n_local_views=8, calibration_fraction=0.1).fit(X)
    assert spearmanr(scores.compute(), in_memory.anomaly_score(X))[0] > 0.999
    assert (found.predict(X) == -1).mean() == pytest.approx(0.02, abs=0.002)
    unknown = data[data[:, 0] > -100.0]  # Dask does not know how many rows are left
    again = rgld.dask.fit(unknown, preset(random_state=0, n_local_views=8, calibration_fraction=0.1))
    assert np.array_equal(again.anomaly_score(X), scores.compute())


def test_parquet_files(tmp_path):
    frame = table()
    for i, piece in enumerate(np.array_split(np.arange(len(frame)), 4)):
        frame.iloc[piece].to_parquet(tmp_path / f"{i}.parquet", row_group_size=3000)
    data = dd.read_parquet(tmp_path, split_row_groups=True)
    assert data.npartitions > 8
    assert_alike(rgld.dask.fit(data, **SMALL), in_batches(frame), frame)


def test_tables_with_tasks_in_common():
    frame = table()
    data = dd.from_pandas(frame, npartitions=4).shuffle("kind")
    found = rgld.dask.fit(data, **SMALL)
    assert spearmanr(found.anomaly_score(frame), in_batches(frame).anomaly_score(frame))[0] > 0.9  # other references


def test_what_is_wrong():
    frame = table(100)
    with pytest.raises(TableError, match=r"got DataFrame: use RGLD\.fit"):
        rgld.dask.fit(frame)
    with pytest.raises(TableError, match="got 1 dimensions"):
        rgld.dask.fit(da.ones(5))
    data = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ParameterError, match="not both"):
        rgld.dask.fit(data, RGLD(), random_state=0)
    with pytest.raises(TableError, match="partitions without any"):
        rgld.dask.fit(data[data["a"] > 100])
    detector = RGLD(**SMALL).fit(frame)
    before = detector.anomaly_score(frame)
    with pytest.raises(TableError, match="infinity"):
        rgld.dask.fit(dd.from_pandas(frame.assign(a=np.inf), npartitions=2), detector)
    assert np.array_equal(detector.anomaly_score(frame), before)


def test_an_unfitted_detector_is_refused_at_once():
    with pytest.raises(NotFittedError):
        rgld.dask.anomaly_score(RGLD(), dd.from_pandas(table(10), npartitions=1))


def test_a_cluster_without_workers_yet():
    class Waiting:
        def nthreads(self):
            return {}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rgld.dask, "_client", Waiting)
        chains = rgld.dask._chains([None] * 40)
    assert sorted(i for _, chain in chains for i in chain) == list(range(40))


def test_a_table_that_changes():
    calls = iter(range(100))

    def load():
        return pd.DataFrame({"a": np.arange(50_000.0 + next(calls))})

    data = dd.from_delayed([dask.delayed(load, pure=False)()], meta={"a": "f8"})
    with dask.config.set(scheduler="synchronous"), pytest.raises(TableError, match="`persist` it if it is random"):
        rgld.dask.fit(data, **SMALL)


# ---- on a cluster


def test_workers_make_no_difference(cluster):
    frame = table()
    data = dd.from_pandas(frame, npartitions=7)
    with cluster.as_current():
        found = rgld.dask.fit(data, **SMALL)
        scores = rgld.dask.anomaly_score(found, data).compute()
        moved = sum(
            cluster.run(lambda dask_worker: sum(t["total"] for t in dask_worker.transfer_incoming_log)).values()
        )
        persisted = data.persist()
        wait(persisted)
        again = rgld.dask.fit(persisted, **SMALL)
    assert_alike(found, in_batches(frame), frame)
    assert_alike(again, found, frame)
    assert np.array_equal(scores, found.anomaly_score(frame))
    assert 0 < moved < 50 * 2**20


def load_or_die(i, folder, at):
    """Return a partition; the load of the given number kills the process, once."""
    folder = Path(folder)
    (folder / f"{i}-{os.getpid()}-{len(os.listdir(folder))}").touch()
    if len(os.listdir(folder)) == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return table(8000, seed=i)


@pytest.mark.parametrize("at", [9, 20])
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_killed_worker_changes_nothing(cluster, tmp_path, at):
    def data(folder, at):
        folder.mkdir()
        parts = [dask.delayed(load_or_die, pure=False)(i, str(folder), at) for i in range(6)]
        return dd.from_delayed(parts, meta=table(2), verify_meta=False)

    with cluster.as_current():
        undisturbed = rgld.dask.fit(data(tmp_path / "whole", -1), **SMALL)
        before = set(cluster.run(os.getpid).values())
        disturbed = rgld.dask.fit(data(tmp_path / "killed", at), **SMALL)
        cluster.wait_for_workers(2)
        assert set(cluster.run(os.getpid).values()) != before  # one died
    rows = table(8000)
    assert np.array_equal(undisturbed.anomaly_score(rows), disturbed.anomaly_score(rows))
    assert undisturbed.columns_ == disturbed.columns_
