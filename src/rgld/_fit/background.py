"""Work beside other work: one step of a fit on a thread of its own.

NumPy and the core let other threads run while they compute, so that a second core does half of the work.
"""

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

from .._kernels import Team
from .._kernels.threads import ONE_BLAS_THREAD

Result = TypeVar("Result")

MIN_CELLS = 2**16
"""Cells of a table for which work beside other work pays off: in smaller ones, steps in Python are most of both, and of
these only one runs at a time."""


def begin(work: Callable[[], Result], team: Team | None, n_cells: int) -> Callable[[], Result]:
    """Begin work on a core that the team lends; return a function that waits for it and returns its result, or raises
    what it raised. Without a team, or for a table of few cells, the function does the work.

    The thread does not keep Python from exiting, nor Ctrl-C from ending the fit: it ends when its work is done.
    """
    if team is None or n_cells < MIN_CELLS:
        return work
    results: list[Result] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            team.borrow()
            with ONE_BLAS_THREAD.held():
                results.append(work())
        except BaseException as failure:  # raised in the thread that asks for the result
            failures.append(failure)
        finally:
            team.take_back()

    team.lend()
    thread = Thread(target=run, name="rgld", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # the system has no more threads
        team.take_back()
        return work

    def result() -> Result:
        thread.join()
        if failures:
            raise failures[0]
        return results[0]

    return result
