"""The evaluation protocol, exactly as the published numbers were made.

In: a labelled table and a seed. Out: a split, and the two measures of a detector's scores on it.

`paper`: seed both global generators. A table of fewer than 1000 rows is resampled with replacement to 1000 rows, a
table of more than 10,000 rows is subsampled without replacement to 10,000. Split: 70 % to train, stratified. Min-max
scaling by the training part. Seed the generators again; fit and score. The split and some detectors (LODA) draw from
NumPy's global generator, so the order of these calls is part of the protocol.

`full`: the whole table is fitted and scored as it is.

`clean`: ODDBench's own. The first `n_train` rows hold no anomalies and are for training, the others are scored. At most
10,000 rows of each part, drawn by the seed. Columns get mean 0 and variance 1 by the training part.
"""

import random
from typing import NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .._arrays import Floats, Integers

PROTOCOLS = ("paper", "full", "clean")
MIN_STUDY_ROWS, MAX_STUDY_ROWS = 1000, 10_000
"""By the paper's protocol, shorter tables are resampled and longer ones cut."""
TEST_FRACTION = 0.3


class Split(NamedTuple):
    """Rows to fit a detector on, rows to score, and the labels of the rows to score."""

    train: Floats
    test: Floats
    labels: Integers


class Measures(NamedTuple):
    """AUROC and average precision, in percent."""

    auroc: float
    auprc: float


def split(X: Floats, y: Integers, seed: int, protocol: str = "paper", n_train: int | None = None) -> Split:
    """Return the split of a table under a protocol; `clean` needs `n_train`."""
    seed_globally(seed)
    if protocol == "clean":
        assert n_train is not None, "only ODDBench's tables say which rows are clean"
        return _clean_split(X, y, seed, n_train)
    if protocol == "full":
        return Split(X, X, y)
    rows = _resampled_rows(len(y), seed)
    X, y = X[rows], y[rows]
    train, test, _, labels = train_test_split(X, y, test_size=TEST_FRACTION, shuffle=True, stratify=y)
    scaler = MinMaxScaler().fit(train)
    return Split(scaler.transform(train), scaler.transform(test), labels)


def _clean_split(X: Floats, y: Integers, seed: int, n_train: int) -> Split:
    rng = np.random.default_rng(seed)
    parts = [np.arange(n_train), np.arange(n_train, len(y))]
    train, test = (
        rng.choice(rows, MAX_STUDY_ROWS, replace=False) if len(rows) > MAX_STUDY_ROWS else rows for rows in parts
    )
    scaler = StandardScaler().fit(X[train])
    return Split(scaler.transform(X[train]), scaler.transform(X[test]), y[test])


def seed_globally(seed: int) -> None:
    """Seed the global generators: before a split, and again before a detector is fitted.

    The published numbers come from NumPy's legacy global generator. Another generator would give other splits, and
    other scores of LODA.
    """
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def _resampled_rows(n_rows: int, seed: int) -> Integers | slice:
    if MIN_STUDY_ROWS <= n_rows <= MAX_STUDY_ROWS:
        return slice(None)
    seed_globally(seed)
    if n_rows < MIN_STUDY_ROWS:
        return np.random.choice(n_rows, MIN_STUDY_ROWS)  # noqa: NPY002
    return np.random.choice(n_rows, MAX_STUDY_ROWS, replace=False)  # noqa: NPY002


def measure(labels: Integers, scores: Floats) -> Measures:
    """Return AUROC and average precision of scores; a higher score is more anomalous. Infinite scores rank first or
    last."""
    finite = np.nan_to_num(
        scores.astype(np.float64), nan=np.nan, posinf=np.finfo(float).max, neginf=np.finfo(float).min
    )
    return Measures(100.0 * roc_auc_score(labels, finite), 100.0 * average_precision_score(labels, finite))
