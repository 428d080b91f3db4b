"""Thresholds: from a score to a decision, and how sure it is.

In: scores. Out: the offset that scikit-learn's `decision_function` subtracts; conformal p-values; which rows can be
selected at a false-discovery rate. Knows nothing of views.
"""

import numpy as np
from numpy.typing import NDArray

AUTO_THRESHOLD = 0.95
"""`contamination="auto"`: a row is an outlier where its anomaly score, the mean of its two branch ranks, is
above this.

If both branches ranked rows alike that would be 5 % of the training rows; if they were unrelated, 0.5 %: the
more the two kinds of evidence agree on a set of rows, the more of them are called outliers."""


def fit_offset(contamination: str | float, anomaly_scores: NDArray[np.float64]) -> float:
    """Return the offset such that a row is an outlier where -anomaly_score < offset."""
    if isinstance(contamination, str):
        return -AUTO_THRESHOLD
    return float(np.percentile(-anomaly_scores, 100.0 * float(contamination)))


MOST_CALIBRATION_ROWS = 50_000
"""Rows held out of a fit at most: p-values down to 2e-5."""


def conformal_p_values(
    calibration: NDArray[np.float64],
    scores: NDArray[np.float64],
    rng: np.random.Generator | None = None,
) -> NDArray[np.float64]:
    """Return p = (1 + number of calibration scores at least as high) / (h + 1) for each score.

    If a row is exchangeable with the h calibration rows, its p-value is at most t with probability at most t, for
    every t. With a generator, ties (the row itself among them) are broken at random, and the probability is t.
    """
    h = len(calibration)
    above = h - np.searchsorted(calibration, scores, side="right")
    tied = h - above - np.searchsorted(calibration, scores, side="left")
    if rng is None:
        return (1.0 + above + tied) / (h + 1.0)
    return (above + (1.0 - rng.random(len(scores))) * (1.0 + tied)) / (h + 1.0)


def select_by_fdr(p_values: NDArray[np.float64], fdr: float) -> NDArray[np.bool_]:
    """Return Benjamini and Hochberg's selection: the rows with the k smallest p-values, for the largest k whose k-th
    smallest is at most fdr k / n."""
    from scipy.stats import false_discovery_control  # takes long to load, and thresholds are wanted without it

    if not len(p_values):
        return np.zeros(0, bool)
    selected: NDArray[np.bool_] = false_discovery_control(p_values, method="bh") <= fdr
    return selected
