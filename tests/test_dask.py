"""Tables on a Dask cluster: the same detector as in batches, whatever the partitions, and whoever dies."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

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
from dask.sizeof import sizeof

import rgld.dask
from rgld import RGLD
from rgld._fit.global_branch import EmbeddingSums
from rgld._fit.steps import PerBranch
from rgld.exceptions import ParameterError, RGLDError, TableError

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


def in_batches(frame, **parameters):
    return RGLD(**{**SMALL, **parameters}).fit_batches([frame[:15_000], frame[15_000:]])


def assert_alike(one, other, rows):
    difference = np.abs(one.anomaly_score(rows) - other.anomaly_score(rows))
    assert difference.max() < 2e-3 and np.median(difference) < 1e-5


def assert_same(one, other, rows):
    assert one.columns_ == other.columns_
    assert np.array_equal(one.anomaly_score(rows), other.anomaly_score(rows))


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


@pytest.mark.parametrize("preset", [RGLD, RGLD.plus, RGLD.novelty])
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
    with pytest.raises(ParameterError, match=r"seconds, 0 or more, got -1\."):
        rgld.dask.fit(data, worker_timeout=-1)
    with pytest.raises(TableError, match="only empty partitions"):
        rgld.dask.fit(data[data["a"] > 100])
    detector = RGLD(**SMALL).fit(frame)
    before = detector.anomaly_score(frame)
    frame.loc[frame.index[70], "a"] = np.inf
    with pytest.raises(TableError, match=r"^Column 'a' holds infinity \(inf\) in row 70,"):
        rgld.dask.fit(dd.from_pandas(frame, npartitions=2), detector)
    frame = table(100)
    assert np.array_equal(detector.anomaly_score(frame), before)


def test_an_unfitted_detector_is_refused_at_once():
    with pytest.raises(NotFittedError):
        rgld.dask.anomaly_score(RGLD(), dd.from_pandas(table(10), npartitions=1))


def test_a_table_that_changes():
    calls = iter(range(100))

    def load():
        return pd.DataFrame({"a": np.arange(50_000.0 + next(calls))})

    data = dd.from_delayed([dask.delayed(load, pure=False)()], meta={"a": "f8"})
    with dask.config.set(scheduler="synchronous"), pytest.raises(TableError, match="`persist` it if it is random"):
        rgld.dask.fit(data, **SMALL)


def test_tasks_that_dask_has_left_lying():
    class Cluster:
        def __init__(self, *processing):
            self.tasks = processing

        async def processing(self):
            return {"b": self.tasks}

    def left_lying(offered_to, present, *processing, done=False):
        future = SimpleNamespace(done=lambda: done)
        return asyncio.run(rgld.dask._left_lying(Cluster(*processing), [future], offered_to, present))

    assert not left_lying({"a", "b"}, {"a", "b", "c"})
    assert left_lying({"a"}, {"b"}, "a task of others")  # all are gone
    assert left_lying({"a", "b"}, {"b"})  # one is gone, and nothing goes on
    assert not left_lying({"a", "b"}, {"b"}, "a task")
    assert not left_lying({"a"}, {"b"}, done=True)
    assert not left_lying(set(), {"b"})


# ---- on a cluster


@contextlib.contextmanager
def local_cluster(n_workers):
    """Yield a client of processes that nannies start again when they are killed."""
    with (
        # On a busy machine a nanny may need more than the 15 seconds after which the cluster gives up on it.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "120s"}),
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def two_workers():
    with local_cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def one_worker():
    with local_cluster(1) as client:
        yield client


def processes(client, n):
    """Return the processes of so many workers, once they are there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # a worker that died a moment ago
            found = list(client.run(os.getpid).values())
            if len(found) == n:
                return found
        time.sleep(0.05)
    raise TimeoutError(f"not {n} workers after a minute")


def kill(client, n):
    for nanny in list(client.cluster.workers.values())[:n]:
        os.kill(nanny.pid, signal.SIGKILL)


def fit_on(client, data, seconds=120, **parameters):
    """Return the detector; a fit that takes longer than so many seconds is one that waits for ever."""
    outcome = []

    def fit():
        with client.as_current():
            try:
                outcome.append(rgld.dask.fit(data, **{**SMALL, **parameters}))
            except Exception as error:
                outcome.append(error)

    fitting = threading.Thread(target=fit, daemon=True)
    fitting.start()
    fitting.join(seconds)
    assert outcome, f"no end after {seconds} seconds"
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def load(i, folder, gate=None, slow=0, n_rows=8000):
    """Return a partition; loads from number `gate` on wait for a file, and those of a slow process take long."""
    loads = Path(folder) / "loads"
    (loads / f"{time.monotonic_ns()}-{i}-{os.getpid()}").touch()
    while gate is not None and len(os.listdir(loads)) >= gate and not (loads.parent / "open").exists():
        time.sleep(0.02)
    if slow:
        time.sleep(1.5 if os.getpid() == slow else 0.1)
    return table(n_rows, seed=i)


def loaded(folder, n=6, **options):
    (folder / "loads").mkdir()
    parts = [dask.delayed(load, pure=False)(i, str(folder), **options) for i in range(n)]
    return dd.from_delayed(parts, meta=table(2), verify_meta=False)


def at_gate(folder, *actions):
    """Run each function once so many partitions were loaded, then open the gate."""

    def run():
        for number, action in actions:
            while not (folder / "loads").exists() or len(os.listdir(folder / "loads")) < number:
                time.sleep(0.02)
            action()
        (folder / "open").touch()

    threading.Thread(target=run, daemon=True).start()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The detector that this process makes of the same partitions."""
    return rgld.dask.fit(loaded(tmp_path_factory.mktemp("whole")), **SMALL)


def test_workers_make_no_difference(two_workers):
    frame = table()
    data = dd.from_pandas(frame, npartitions=7)
    here = rgld.dask.fit(data, **SMALL)
    found = fit_on(two_workers, data)
    received = two_workers.run(lambda dask_worker: sum(t["total"] for t in dask_worker.transfer_incoming_log))
    with two_workers.as_current():
        scores = rgld.dask.anomaly_score(found, data).compute()
        persisted = data.persist()
        wait(persisted)
    assert_same(found, here, frame)
    assert_same(fit_on(two_workers, persisted), here, frame)
    assert_alike(here, in_batches(frame), frame)
    assert np.array_equal(scores, found.anomaly_score(frame))
    assert 0 < sum(received.values()) < 25 * 2**20


def test_arrays_in_memory(two_workers):
    X = np.random.default_rng(0).normal(size=(3000, 5))
    with two_workers.as_current():
        persisted = da.from_array(X, chunks=(700, 5)).persist()
        wait(persisted)
    assert_same(fit_on(two_workers, persisted), RGLD(**SMALL).fit(X), X)


def test_a_slow_worker_is_not_waited_for(two_workers, tmp_path):
    slow, _ = processes(two_workers, 2)
    fit_on(two_workers, loaded(tmp_path, n=16, slow=slow, n_rows=100))  # a short table: one pass
    loads = sorted(os.listdir(tmp_path / "loads"))
    assert len(loads) == 32  # the rows are counted first
    # Of the eight that it was offered, it has not done all. How many depends on what else the machine does.
    assert 1 <= sum(name.endswith(f"-{slow}") for name in loads[16:]) <= 6


@pytest.mark.parametrize(("at", "n"), [(9, 1), pytest.param(20, 2, marks=pytest.mark.exhaustive)])
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_killed_workers_change_nothing(two_workers, undisturbed, tmp_path, at, n):
    processes(two_workers, 2)
    at_gate(tmp_path, (at, lambda: kill(two_workers, n)))
    assert_same(fit_on(two_workers, loaded(tmp_path, gate=at)), undisturbed, table(8000))


def test_a_fit_in_a_task(two_workers):
    def fit(frame):
        return rgld.dask.fit(dd.from_pandas(frame, npartitions=3), **SMALL)

    frame = table(1000)
    # Each worker has one thread, which the task that fits leaves to those it waits for.
    assert_same(two_workers.submit(fit, frame).result(timeout=60), RGLD(**SMALL).fit(frame), frame)


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_the_only_worker_killed_changes_nothing(one_worker, undisturbed, tmp_path):
    at_gate(tmp_path, (20, lambda: kill(one_worker, 1)))
    assert_same(fit_on(one_worker, loaded(tmp_path, gate=20)), undisturbed, table(8000))


@pytest.mark.exhaustive
def test_clusters_that_shrink_and_grow(undisturbed, tmp_path):
    with local_cluster(0) as client:

        def scale(n):
            client.cluster.scale(n)
            processes(client, n)

        data = loaded(tmp_path, gate=20)
        start = time.monotonic()
        with pytest.raises(RGLDError, match=r"no worker for 1\.5 seconds: start workers\.$"):
            fit_on(client, data, worker_timeout=1.5)
        assert 1.5 <= time.monotonic() - start < 10
        assert not os.listdir(tmp_path / "loads")
        threading.Timer(1, scale, [2]).start()
        at_gate(tmp_path, (8, lambda: scale(1)), (14, lambda: scale(2)))
        assert_same(fit_on(client, data), undisturbed, table(8000))
        assert len({name.split("-")[-1] for name in os.listdir(tmp_path / "loads")}) == 3  # one left, one came


def test_dask_knows_the_size_of_states_and_steps():
    sums = EmbeddingSums(5, np.zeros((2, 3, 4)), np.zeros((2, 3, 4, 4)))
    assert sizeof(sums) >= sums.phi.nbytes + sums.phi_phi.nbytes
    assert sizeof(PerBranch((sums, sums))) >= 2 * sums.phi_phi.nbytes
