"""Memory stays safe when another thread changes the array during a call.

The numbers may then be anything, or the call raises an error of the package. `make check-native` runs this file under
the address sanitizer, which sees every access out of bounds; without it, only a crash is seen.
"""

import contextlib
import sys
import threading
import time

import numpy as np
import pytest

from rgld import RGLD, _kernels
from rgld._kernels import native_kernels
from rgld.exceptions import RGLDError

pytest.importorskip("rgld._kernels._core", reason="rgld was installed without its compiled core")

SMALL = {"n_global_views": 3, "n_local_views": 2, "n_references": 60, "random_state": 0}
MODELS = {
    "ranks": {},
    "standards, all scalings": {
        "aggregation": "standard",
        "preprocessing": ("standard", "robust", "quantile", "arcsinh", "arcsinh-standard"),
        "n_neighbors": 17,
    },
    "quantiles": {"preprocessing": "quantile"},
    "leverage, trimmed and whitened": {
        "aggregation": "standard",
        "global_score": "leverage",
        "preprocessing": ("arcsinh", "arcsinh-standard", "quantile"),
        "projection": "orthogonal",
        "trim": 0.3,
        "whitening": (0.0, 0.1),
    },
}
N_DONE = 10  # calls that get past the check of their input, for each model and layout: hundreds in all
MAX_SECONDS = 60.0  # calls may be many times as fast as the writer
CALLS = ("fit", "fit_batches", "anomaly_score", "explain")
LAYOUTS = {
    "rows, float64": lambda X: np.ascontiguousarray(X),
    "columns, float64": np.asfortranarray,
    "rows, float32": lambda X: np.ascontiguousarray(X, dtype=np.float32),
}


def bad_values(rng, shape, dtype):
    """Values of all kinds: numbers, infinities, missing ones, and random bits."""
    bits = rng.integers(0, 2 ** (8 * dtype.itemsize), size=shape, dtype=f"u{dtype.itemsize}").view(dtype)
    special = rng.choice(np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 5e-324]), size=shape)
    with np.errstate(over="ignore"):
        return np.where(rng.random(shape) < 0.5, special.astype(dtype), bits)


def call(name, detector, X, n_jobs):
    parameters = {**detector.get_params(), "n_jobs": n_jobs}
    with np.errstate(all="ignore"):  # sums of random bits overflow
        if name == "fit":
            RGLD(**parameters).fit(X)
        elif name == "fit_batches":
            # A whole array in column order reaches the counting of scores without a copy.
            RGLD(**parameters).fit_batches(lambda: iter((X, X[: len(X) // 2])))
        else:
            getattr(detector, name)(X if name == "anomaly_score" else X[:20])


class Writer(threading.Thread):
    """Writes bad values into an array and takes them back, in turns, until it is stopped."""

    def __init__(self, X, seed):
        super().__init__(daemon=True)
        self.X, self.good = X, X.copy()
        self.rng = np.random.default_rng(seed)
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.is_set():
            time.sleep(self.rng.uniform(0.0, 0.01))
            for _ in range(20):
                rows = self.rng.integers(len(self.X), size=50)
                self.X[rows] = bad_values(self.rng, self.X[rows].shape, self.X.dtype)
            self.X[:] = self.good

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.join()


@pytest.fixture
def _quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def normal_table(layout, n_rows=1500):
    return LAYOUTS[layout](np.random.default_rng(0).normal(size=(n_rows, 4)))


@pytest.mark.usefixtures("_quick_switches")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_a_thread_may_write_into_the_array(name, layout, model):
    X = normal_table(layout)
    detector = RGLD(**SMALL, **MODELS[model]).fit(X)
    n_done, deadline = 0, time.monotonic() + MAX_SECONDS
    with Writer(X, seed=0):
        while n_done < N_DONE and time.monotonic() < deadline:
            with contextlib.suppress(RGLDError):  # there were infinities already when the array was checked
                call(name, detector, X, n_jobs=2)
                n_done += 1
    assert n_done == N_DONE


@pytest.mark.parametrize("n_rows", [40, 1500, 9000])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_each_kernel_may_find_other_values(name, layout, model, n_rows, monkeypatch):
    """The same without chance: the array is good when it is checked and bad whenever a kernel runs."""
    X = normal_table(layout, n_rows)
    good = X.copy()
    detector = RGLD(**SMALL, **MODELS[model]).fit(X)
    rng = np.random.default_rng(1)
    n_calls = 0

    def on_bad_values(kernel):
        def call_kernel(*arguments, **options):
            nonlocal n_calls
            n_calls += 1
            is_bad = rng.random(X.shape) < rng.choice([0.01, 0.5, 1.0])
            X[is_bad] = bad_values(rng, X.shape, X.dtype)[is_bad]
            try:
                return kernel(*arguments, **options)
            finally:
                X[:] = good

        return call_kernel

    for kernel in _kernels.__all__:
        if kernel not in ("Distances", "Rows"):
            monkeypatch.setattr(_kernels, kernel, on_bad_values(getattr(native_kernels, kernel)))
    monkeypatch.setattr(native_kernels.Rows, "__init__", on_bad_values(native_kernels.Rows.__init__))
    for _ in range(2):
        call(name, detector, X, n_jobs=1)
    assert n_calls >= 4
