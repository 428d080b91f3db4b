"""Work beside other work."""

import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_info

from rgld import RGLD
from rgld._fit import algorithm, background


def begin(work, team):
    return background.begin(work, team, n_cells=background.MIN_CELLS)


class Team:
    """Counts what it lends."""

    n_lent = 0

    def lend(self):
        self.n_lent += 1

    def borrow(self):
        assert self.n_lent, "a core is lent before it is borrowed"

    def take_back(self):
        self.n_lent -= 1


def test_the_result_comes_from_another_thread():
    assert begin(threading.get_ident, Team())() != threading.get_ident()
    assert begin(threading.get_ident, None)() == threading.get_ident()


def test_small_tables_have_no_work_beside_other_work():
    assert background.begin(threading.get_ident, Team(), background.MIN_CELLS - 1)() == threading.get_ident()


def test_a_core_is_lent_as_long_as_the_work_takes():
    team, hold = Team(), threading.Event()
    result = begin(lambda: hold.wait(30), team)
    assert team.n_lent == 1
    hold.set()
    assert result() and team.n_lent == 0
    with pytest.raises(ZeroDivisionError):
        begin(lambda: 1 / 0, team)()
    assert team.n_lent == 0


def test_a_system_without_threads_does_the_work_later(monkeypatch):
    def fail(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    team = Team()
    assert begin(threading.get_ident, team)() == threading.get_ident() and team.n_lent == 0


def test_both_run_at_the_same_time():
    here, there = threading.Event(), threading.Event()

    def work():
        there.set()
        return here.wait(30)

    result = begin(work, Team())
    assert there.wait(30)
    here.set()
    assert result()


def test_what_the_work_raises_is_raised_by_who_asks():
    def fail():
        raise ValueError("no relation")

    result = begin(fail, Team())
    with pytest.raises(ValueError, match="no relation"):
        result()


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_matrix_products_use_one_thread_beside_other_work():
    before = blas_threads()
    if not before or max(before) == 1:
        pytest.skip("NumPy's matrix products have one thread here")
    for _ in range(2):  # the second time on another thread
        first, second, hold = threading.Event(), threading.Event(), threading.Event()

        def work(began, until=hold):
            began.set()
            return until.wait(30)

        results = [begin(partial(work, began), Team()) for began in (first, second)]
        assert first.wait(30) and second.wait(30)
        assert set(blas_threads()) == {1}
        hold.set()
        assert [result() for result in results] == [True, True]
        assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        begin(lambda: 1 / 0, Team())()
    assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_relations_are_the_same_beside_the_views(n_jobs, monkeypatch):
    monkeypatch.setattr(background, "MIN_CELLS", 1)
    rng = np.random.default_rng(0)
    fare, tip = rng.gamma(2.0, 9.0, 900).round(2), rng.gamma(1.0, 3.0, 900).round(2)
    city = rng.choice(["Bern", "Zug"], 900)
    frame = pd.DataFrame(
        {"fare": fare, "tip": tip, "total": fare + tip, "city": city, "zip": np.where(city == "Zug", 6300, 3000)}
    )
    expected = RGLD.plus(random_state=0, n_jobs=1).fit(frame)
    detector = RGLD.plus(random_state=0, n_jobs=n_jobs).fit(frame)
    assert len(detector.model_.relations.numbers.target)
    rows = frame[:50].assign(total=1.0)
    assert np.array_equal(detector.anomaly_score(rows), expected.anomaly_score(rows))


@pytest.mark.parametrize("min_cells", [1, 10_000])
def test_a_fit_fails_with_its_relations(monkeypatch, min_cells):
    def fail(*arguments):
        raise RuntimeError("relations fail")

    monkeypatch.setattr(algorithm, "fit_relations", fail)
    monkeypatch.setattr(background, "MIN_CELLS", min_cells)
    with pytest.raises(RuntimeError, match="relations fail"):
        RGLD.plus(n_jobs=2, random_state=0).fit(np.random.default_rng(0).normal(size=(900, 3)))
