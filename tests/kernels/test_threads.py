"""How many threads a call may use."""

import joblib
import pytest

from rgld._kernels.threads import n_threads

CORES = 6


@pytest.fixture
def _six_cores(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: CORES)


def threads_of_a_worker(n_jobs=None):
    """What a call gets inside a worker on a machine with six cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joblib, "cpu_count", lambda: CORES)
        return n_threads(n_jobs)


@pytest.mark.usefixtures("_six_cores")
@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(None, CORES), (1, 1), (4, 4), (-1, CORES), (-2, CORES - 1), (-99, 1)]
)
def test_threads_of_a_call(n_jobs, expected):
    assert n_threads(n_jobs) == expected


@pytest.mark.usefixtures("_six_cores")
def test_joblibs_configuration_is_heard():
    with joblib.parallel_config(n_jobs=3):
        assert n_threads(None) == 3
        assert n_threads(2) == 2
    with joblib.parallel_config(backend="threading", n_jobs=-1):
        assert n_threads(None) == CORES


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_a_worker_of_joblib_has_one_thread(backend):
    parallel = joblib.Parallel(n_jobs=2, backend=backend)
    assert parallel(joblib.delayed(threads_of_a_worker)() for _ in range(3)) == [1, 1, 1]
    assert parallel(joblib.delayed(threads_of_a_worker)(2) for _ in range(3)) == [2, 2, 2]


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_a_task_of_dask_has_one_thread(scheduler):
    dask = pytest.importorskip("dask", reason="dask is not installed")
    tasks = [dask.delayed(threads_of_a_worker)() for _ in range(3)]
    assert dask.compute(*tasks, scheduler=scheduler, num_workers=2) == (1, 1, 1)
    assert threads_of_a_worker() == CORES, "only inside a task"


def test_a_task_of_dasks_scheduler_has_one_thread():
    pytest.importorskip("distributed", reason="dask's distributed scheduler is not installed")
    from distributed import Client

    with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as client:
        assert client.submit(threads_of_a_worker, pure=False).result() == 1
