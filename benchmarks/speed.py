"""Time and memory against scikit-learn's IsolationForest, in one run: `python benchmarks/speed.py`.

Times vary with the machine and its load; the ratios within a run are what counts. Detectors take turns, so that a slow
moment hits all of them.
"""

import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.ensemble import IsolationForest

import rgld
from rgld import RGLD

N_TRAIN, N_TEST, N_COLUMNS, N_REPEATS = 7000, 3000, 20, 9
N_SCORED = 1_000_000

DETECTORS = {
    "IsolationForest()": lambda: IsolationForest(random_state=0),
    "RGLD()": lambda: RGLD(random_state=0),
    "RGLD.fast()": lambda: RGLD.fast(random_state=0),
    "RGLD(n_jobs=2)": lambda: RGLD(random_state=0, n_jobs=2),
}


def seconds(make, train, test):
    """Return the time of one fit and one scoring."""
    start = time.perf_counter()
    make().fit(train).score_samples(test)
    return time.perf_counter() - start


def speed():
    """Print the median time of each detector and its ratio to IsolationForest's."""
    X = np.random.default_rng(0).normal(size=(N_TRAIN + N_TEST, N_COLUMNS))
    times = {name: [] for name in DETECTORS}
    for _ in range(N_REPEATS):
        for name, make in DETECTORS.items():
            times[name].append(seconds(make, X[:N_TRAIN], X[N_TRAIN:]))
    medians = {name: np.median(values[1:]) for name, values in times.items()}  # the first round warms caches up
    print(f"fit {N_TRAIN} rows, score {N_TEST}, {N_COLUMNS} columns; median of {N_REPEATS - 1}")
    for name, median in medians.items():
        print(f"  {name:<20} {1000 * median:7.0f} ms   {median / medians['IsolationForest()']:5.2f} x IsolationForest")


def scoring_memory():
    """Score a million rows in this process and print what that added to its peak memory."""
    X = np.random.default_rng(0).standard_normal((N_SCORED, N_COLUMNS), dtype=np.float32)
    detector = RGLD(random_state=0).fit(X[:N_TRAIN])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    detector.score_samples(X)
    elapsed = time.perf_counter() - start
    added = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"score {N_SCORED} x {N_COLUMNS} float32 rows: {elapsed:.1f} s, {added:.0f} MB more than before")


if __name__ == "__main__":
    if sys.argv[1:] == ["memory"]:
        scoring_memory()
    else:
        print(f"rgld {rgld.__version__}, NumPy {np.__version__}")
        speed()
        subprocess.run([sys.executable, __file__, "memory"], check=True)  # a process of its own: peaks never shrink
