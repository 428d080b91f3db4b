"""The evaluation protocol, exactly as the published numbers were made.

In: a labelled table and a seed. Out: a split, and the two measures of a detector's scores on it.

`paper`: seed both global generators; a table of fewer than 1000 rows is resampled with replacement to 1000, one of
more than 10,000 subsampled without replacement to 10,000; 70 % train, stratified; min-max scaling by the training
part; seed the generators again; fit and score. The split and some detectors (LODA) draw from NumPy's global
generator, so the order of these calls is part of the protocol. `full`: the whole table is fitted and scored,
as it is.
"""

import random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

PROTOCOLS = ("paper", "full")
FEWEST_ROWS, MOST_ROWS = 1000, 10_000
TEST_SHARE = 0.3


class Split(NamedTuple):
    """What a detector is given: rows to fit on, rows to score, and the labels of the latter."""

    train: NDArray[np.floating]
    test: NDArray[np.floating]
    labels: NDArray[np.integer]


class Measures(NamedTuple):
    """Both in percent."""

    auroc: float
    auprc: float


def split(X: NDArray[np.floating], y: NDArray[np.integer], seed: int, protocol: str = "paper") -> Split:
    """Return the split of a table under a protocol."""
    seed_globally(seed)
    if protocol == "full":
        return Split(X, X, y)
    rows = _resampled_rows(len(y), seed)
    X, y = X[rows], y[rows]
    train, test, _, labels = train_test_split(X, y, test_size=TEST_SHARE, shuffle=True, stratify=y)
    scaler = MinMaxScaler().fit(train)
    return Split(scaler.transform(train), scaler.transform(test), labels)


def seed_globally(seed: int) -> None:
    """Seed the global generators: before a split and again before a detector is fitted.

    The published numbers come from NumPy's legacy global generator; another one gives other splits, and another LODA.
    """
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def _resampled_rows(n_rows: int, seed: int) -> NDArray[np.integer] | slice:
    if FEWEST_ROWS <= n_rows <= MOST_ROWS:
        return slice(None)
    seed_globally(seed)
    if n_rows < FEWEST_ROWS:
        return np.random.choice(n_rows, FEWEST_ROWS)  # noqa: NPY002
    return np.random.choice(n_rows, MOST_ROWS, replace=False)  # noqa: NPY002


def measure(labels: NDArray[np.integer], scores: NDArray[np.floating]) -> Measures:
    """Return AUROC and average precision of scores, higher being more anomalous. Infinite scores rank first
    or last."""
    finite = np.nan_to_num(
        scores.astype(np.float64), nan=np.nan, posinf=np.finfo(float).max, neginf=np.finfo(float).min
    )
    return Measures(100.0 * roc_auc_score(labels, finite), 100.0 * average_precision_score(labels, finite))
