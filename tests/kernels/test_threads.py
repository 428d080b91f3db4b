"""How many threads a call may use, and the threads that the calls of a fit share."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest

from rgld import RGLD, _kernels
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


# A team: the threads of one fit.

needs_core = pytest.mark.skipif(_kernels.name != "native", reason="only the compiled core has threads")
needs_tasks = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")


def fitted_model(**settings):
    return RGLD(random_state=0, **settings).fit(np.random.default_rng(0).normal(size=(900, 5)))


FITS = """
import os, time
import numpy as np
from rgld import RGLD, _kernels

X = np.random.default_rng(0).normal(size=(900, 5))
n_running = lambda: len(os.listdir("/proc/self/task"))
RGLD(random_state=0, n_jobs=1).fit(X)
before = n_running()

def have_ended():  # a thread that was joined may be listed for another moment
    deadline = time.monotonic() + 10
    while n_running() > before and time.monotonic() < deadline:
        time.sleep(0.001)
    return n_running() == before

RGLD(random_state=0, n_jobs=4).fit(X)
assert have_ended(), "threads end with the fit"
during = []

def fail(*arguments):
    during.append(n_running() - before)
    raise RuntimeError("no ranks")

_kernels.fit_ranks = fail
try:
    RGLD(random_state=0, n_jobs=4).fit(X)
except RuntimeError:
    assert during == [3] and have_ended(), "threads end with a fit that fails"
else:
    raise AssertionError("the fit does not fail")
"""


@needs_core
@needs_tasks
def test_threads_end_with_the_fit():
    subprocess.run([sys.executable, "-c", FITS], check=True)  # a process of its own: other tests leave threads


@needs_core
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")  # Python warns of a fork with threads
def test_a_fork_in_the_middle_of_a_team():
    expected = fitted_model(n_jobs=1).score_samples(np.zeros((1, 5)))
    with _kernels.team(3):
        fitted_model(n_jobs=3)
        time.sleep(0.01)  # the threads sleep
        child = os.fork()
        if not child:  # has no threads of the team: it starts its own, and does not wait for the others
            code = 1
            with contextlib.suppress(Exception):
                code = 0 if fitted_model(n_jobs=3).score_samples(np.zeros((1, 5))) == expected else 2
    if not child:
        os._exit(code)
    deadline = time.monotonic() + 60
    while (status := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if status == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert status == (child, 0)


@needs_core
@needs_tasks
def test_threads_may_use_all_cores_once_they_run():
    """They are not tied to the core that they begin on."""
    allowed = os.sched_getaffinity(0)
    with _kernels.team(3) as team:
        time.sleep(0.05)  # they have begun, and wait for work
        tasks = [int(task) for task in os.listdir("/proc/self/task")]
        team.lend()
        team.borrow()
        assert len(tasks) > 2
        assert all(os.sched_getaffinity(task) == allowed for task in tasks) and os.sched_getaffinity(0) == allowed
        team.take_back()


@needs_core
def test_teams_may_be_nested_and_are_entered_once():
    from rgld._kernels import _core

    with _kernels.team(2), _kernels.team(3):
        assert np.isfinite(fitted_model(n_jobs=2).offset_)
    team = _core.Team(2)
    with team, pytest.raises(ValueError, match="entered once"), team:
        pass


@needs_core
def test_a_lent_thread_changes_nothing():
    rows = np.random.default_rng(1).normal(size=(50, 5))
    expected = fitted_model(n_jobs=1).score_samples(rows)
    for n_lent in (1, 2, 5):
        with _kernels.team(3) as team:
            for _ in range(n_lent):
                team.lend()
            assert np.array_equal(fitted_model(n_jobs=3).score_samples(rows), expected)
    team.take_back()  # work may end after its fit


@needs_core
def test_fits_on_several_threads_have_their_own_teams():
    rows = np.random.default_rng(1).normal(size=(50, 5))
    expected = fitted_model(n_jobs=1).score_samples(rows)
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: fitted_model(n_jobs=3).score_samples(rows), range(6)):
            assert np.array_equal(found, expected)
