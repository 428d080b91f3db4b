"""Time of the presets beside that of `RGLD()` and of scikit-learn's IsolationForest, on the study's splits.

    python benchmarks/presets.py --data FOLDER      # ADBench's files

It takes one to three minutes. All run in turn on each split (seed 1), each several times in a row, right after a fit
that is not counted. Printed are mean milliseconds to fit and score, over the 44 datasets and over all that are there,
and ratios. `rgld bench speed` measures much more.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest

from rgld import RGLD
from rgld.bench.datasets import load_dataset, registry
from rgld.bench.protocol import split
from rgld.bench.tables import OTHER_44

MAKERS: dict[str, Callable[[], Any]] = {
    "RGLD()": lambda: RGLD(random_state=0),
    "RGLD.fast()": lambda: RGLD.fast(random_state=0),
    "RGLD.plus()": lambda: RGLD.plus(random_state=0),
    "plus, no relations": lambda: RGLD.plus(random_state=0, relations=False),
    "RGLD.novelty()": lambda: RGLD.novelty(random_state=0),
    "IsolationForest": lambda: IsolationForest(random_state=0),
}
N_TIMES = 5
PAUSE_SECONDS = 0.1
"""Before each detector: threads of the one before may still look for work."""


def seconds(make: Callable[[], Any], train: np.ndarray, test: np.ndarray) -> float:
    time.sleep(PAUSE_SECONDS)
    times = []
    for _ in range(N_TIMES + 1):
        start = time.perf_counter()
        make().fit(train).score_samples(test)
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    folder = parser.parse_args().data
    found: dict[str, dict[str, float]] = {}
    for entry in registry().values():
        if not (folder / entry.file_name).exists():
            continue
        train, test, _ = split(*load_dataset(entry.name, folder), 1)
        found[entry.name] = {name: seconds(make, train, test) for name, make in MAKERS.items()}
    for title, names in (("the 44", [n for n in found if n not in OTHER_44]), ("all", list(found))):
        mean = {name: 1e3 * float(np.mean([found[n][name] for n in names])) for name in MAKERS}
        print(f"{title} ({len(names)} datasets)")
        for name, own in mean.items():
            ratio, forest = own / mean["RGLD()"], mean["IsolationForest"] / own
            print(f"  {name:20} {own:6.1f} ms  {ratio:5.2f} x RGLD()  {forest:5.2f} x as fast as the forest")


if __name__ == "__main__":
    main()
