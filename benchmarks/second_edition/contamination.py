"""Novelty and plus, fitted to clean training rows with a few anomalies among them: from which share on is plus better?

    python benchmarks/second_edition/contamination.py --tables FOLDER
    python benchmarks/second_edition/contamination.py --tables FOLDER --shares 0 0.002 0.005 0.01 0.02

Prints the two tables of docs/plus.md. The smaller the largest share, the more tables have enough anomalies. FOLDER
holds the tables of `run.py`, name.npz with X, y and n_train.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import run
from joblib import Parallel, delayed
from sklearn.ensemble import IsolationForest

from rgld import RGLD
from rgld.bench.protocol import measure

MIN_LEFT = 10
"""Anomalies that must be left in the test part."""
NAMES = ("novelty", "plus", "IForest")


def lines_of(path: Path, shares: list[float]) -> list[dict[str, object]]:
    """Return the figures of one table; none if it has too few anomalies. The test part is the same for all shares, and
    a larger share has the anomalies of the smaller ones and more."""
    clean, test, labels = (np.asarray(part, np.float64) for part in run.clean_split(path))
    anomalies = np.random.default_rng(0).permutation(np.flatnonzero(labels))
    n_added = [round(len(clean) * share / (1.0 - share)) for share in shares]
    if len(anomalies) - max(n_added) < MIN_LEFT:
        return []
    taken = anomalies[: max(n_added)]
    added, kept = test[taken], np.delete(np.arange(len(test)), taken)
    lines: list[dict[str, object]] = []
    for share, n in zip(shares, n_added, strict=True):
        train = np.ascontiguousarray(np.vstack([clean, added[:n]]))
        scores = {
            "novelty": RGLD.novelty(random_state=0, n_jobs=1).fit(train).anomaly_score(test[kept]),
            "plus": RGLD.plus(random_state=0, n_jobs=1).fit(train).anomaly_score(test[kept]),
            "IForest": -IsolationForest(random_state=0, n_jobs=1).fit(train).score_samples(test[kept]),
        }
        for name in NAMES:
            auroc, auprc = measure(labels[kept].astype(int), scores[name])
            lines.append({"name": path.stem, "share": share, "detector": name, "auroc": auroc, "auprc": auprc})
    return lines


def report(lines: pd.DataFrame) -> str:
    """Return a line for each share: means over tables, and novelty minus plus."""
    rows = [("anomalies in training", *NAMES, "novelty minus plus")]
    for share in sorted(set(lines["share"])):
        own = lines[lines["share"] == share]
        of = {name: run.by_dataset(own[own["detector"] == name]) for name in NAMES}
        means = (run.pair(of[name].mean()) for name in NAMES)
        rows.append((f"{100 * share:g} %", *means, run.difference(of["novelty"], of["plus"])))
    return f"{lines['name'].nunique()} tables, AUROC / AUPRC\n\n{run.table(*rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True, help="folder of labelled tables, name.npz")
    shares = [0.0, 0.01, 0.02, 0.05, 0.1]
    parser.add_argument("--shares", type=float, nargs="+", default=shares, help="anomalies per training row")
    parser.add_argument("--every", type=int, default=1, help="only every such table, in alphabetical order")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    paths = sorted(arguments.tables.glob("*.npz"))[:: arguments.every]
    found = Parallel(n_jobs=arguments.jobs, batch_size=1)(delayed(lines_of)(path, arguments.shares) for path in paths)
    print(report(pd.DataFrame([line for lines in found for line in lines])))


if __name__ == "__main__":
    main()
