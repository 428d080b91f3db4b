"""Compare the time of fit and score in two source trees: `python benchmarks/compare.py OLD/src NEW/src`.

Each tree holds the package with its compiled core. Both run side by side in turns, so that what else the machine does
hits both. Reported are ratios of processor time, new / old: the median over the rounds, and of the fastest rounds.
"""

import argparse
import os
import statistics
import subprocess
import sys

WORKER = """
import sys, time
import numpy as np
from rgld import RGLD

n_rows, n_columns, n_jobs = map(int, sys.argv[1:])
X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
detector = RGLD(random_state=0, n_jobs=n_jobs)
n_calls = max(1, 20_000 // n_rows)
for _ in sys.stdin:
    start = time.process_time()
    for _ in range(n_calls):
        detector.fit(X)
    fitted = time.process_time()
    for _ in range(n_calls):
        detector.anomaly_score(X)
    print((fitted - start) / n_calls, (time.process_time() - fitted) / n_calls, flush=True)
"""


def start(source: str, arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments],
        env={**os.environ, "PYTHONPATH": source},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def measure(worker: subprocess.Popen[str]) -> list[float]:
    """Return the seconds of a fit and of a score."""
    assert worker.stdin is not None and worker.stdout is not None
    worker.stdin.write("\n")
    worker.stdin.flush()
    return [float(seconds) for seconds in worker.stdout.readline().split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rows", type=int, default=7_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    workers = [
        start(tree, [str(n) for n in (options.rows, options.columns, options.jobs)])
        for tree in (options.old, options.new)
    ]
    for worker in workers:
        measure(worker)  # imports, and fills caches
    rounds = [[measure(worker) for worker in workers] for _ in range(options.rounds)]
    for place, name in enumerate(("fit", "score")):
        old, new = ([seconds[tree][place] for seconds in rounds] for tree in (0, 1))
        ratio = statistics.median(b / a for a, b in zip(old, new, strict=True))
        print(
            f"{name} of {options.rows:,} x {options.columns}: old {min(old):.4f} s, new {min(new):.4f} s, "
            f"new / old {ratio:.3f} (median), {min(new) / min(old):.3f} (fastest)"
        )
    for worker in workers:
        worker.stdin.close()  # type: ignore[union-attr]
        worker.wait()


if __name__ == "__main__":
    main()
