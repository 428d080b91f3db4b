"""Thresholds: from a score to a decision.

In: training scores and `contamination`. Out: the offset that scikit-learn's `decision_function` subtracts.
Knows nothing of views.
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
