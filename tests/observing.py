"""What tests see of a call from outside: which kernels it runs on, and whether threads worked."""

import contextlib
import time
from dataclasses import dataclass

import pytest

from rgld import _kernels


@contextlib.contextmanager
def on_kernels(kernels):
    """Within, the package runs on these kernels."""
    with pytest.MonkeyPatch.context() as patch:
        for name in _kernels.__all__:
            patch.setattr(_kernels, name, getattr(kernels, name))
        yield


@dataclass
class CpuTimes:
    """Processor seconds of the process, and those that threads other than the calling one took."""

    total: float = 0.0
    of_other_threads: float = 0.0


@contextlib.contextmanager
def cpu_times():
    """Measure what runs within. Times of threads that have ended count too, so that threads of the core are seen."""
    times = CpuTimes()
    total, own = time.process_time(), time.thread_time()
    yield times
    times.total = time.process_time() - total
    times.of_other_threads = times.total - (time.thread_time() - own)


def assert_threads_worked(times):
    assert times.of_other_threads > 0.05 * times.total, times


def assert_no_other_thread_worked(times):
    assert times.of_other_threads < 0.02 * times.total, times
