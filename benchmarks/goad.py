"""Our GOAD against its authors' figure on thyroid: F1 74.5, trained on half of the normal rows, scored on the rest.

    python benchmarks/goad.py --data FOLDER      # ADBench's files; needs torch

As many rows are called anomalous as there are anomalies, so F1 is the fraction of anomalies among these.
"""

import argparse
from pathlib import Path

import numpy as np

from rgld.bench.datasets import load_dataset
from rgld.bench.detectors.goad import make

N_SEEDS = 8


def f1(X: np.ndarray, y: np.ndarray, seed: int) -> float:
    normal = np.random.default_rng(seed).permutation(np.flatnonzero(y == 0))
    half = len(normal) // 2
    test = np.concatenate([normal[half:], np.flatnonzero(y == 1)])
    scores = make(seed).fit(X[normal[:half]]).decision_function(X[test])
    called = np.argsort(scores)[-int(y.sum()) :]
    return 100.0 * float(y[test][called].mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    X, y = load_dataset("thyroid", parser.parse_args().data)
    found = [f1(X, y, seed) for seed in range(N_SEEDS)]
    print(f"F1 {np.mean(found):.1f}, standard deviation {np.std(found):.1f} over {N_SEEDS} seeds; published 74.5")


if __name__ == "__main__":
    main()
