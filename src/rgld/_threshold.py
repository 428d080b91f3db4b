"""Thresholds: from scores to decisions, and how sure these are.

In: scores. Out: the offset that scikit-learn's `decision_function` subtracts; conformal p-values; the rows that can be
selected at a false-discovery rate. Knows nothing of views.
"""

from numbers import Real

import numpy as np

from ._arrays import Bools, Float64s
from .exceptions import CalibrationError, ParameterError

AUTO_THRESHOLD = 0.95
"""`contamination="auto"`: a row is an outlier if its anomaly score, the mean of its two branch ranks, is above this.

If both branches rank the rows alike, these are 5 % of the training rows; if the two ranks are independent, 0.5 %. So
the more the branches agree, the more rows are called outliers."""


def fit_offset(contamination: str | float, anomaly_scores: Float64s) -> float:
    """Return the offset: a row is an outlier if -anomaly_score < offset."""
    if isinstance(contamination, str):
        return -AUTO_THRESHOLD
    return float(np.percentile(-anomaly_scores, 100.0 * float(contamination)))


def fraction_above(contamination: str | float, local_weight: float, n_branches: int) -> tuple[float, float]:
    """Return about how small and how large a fraction of the training rows scores above the threshold by definition,
    whether the table holds anomalies or not.

    With two branches, "auto" gives the largest fraction if both rank the rows alike, and the smallest if the two ranks
    are independent.
    """
    if not isinstance(contamination, str):
        return float(contamination), float(contamination)
    most = 1.0 - AUTO_THRESHOLD
    if n_branches == 1:
        return most, most
    return min(most, most**2 / (2.0 * local_weight * (1.0 - local_weight))), most


MAX_CALIBRATION_ROWS = 50_000
"""At most this many rows are held out of a fit; they give p-values down to 2e-5."""


def require_calibration(calibration: Float64s) -> Float64s:
    """Return the scores of the held-out rows; raise if there are none."""
    if not len(calibration):
        raise CalibrationError(
            "p-values need rows that were held out of the fit, but this detector held out no rows: fit it again, for "
            "example with calibration_fraction=0.2, on a table with enough rows."
        )
    return calibration


def conformal_p_values(
    calibration: Float64s,
    scores: Float64s,
    rng: np.random.Generator | None = None,
) -> Float64s:
    """Return p = (1 + number of calibration scores at least as high) / (h + 1) for each score.

    If a row is exchangeable with the h calibration rows, then P(p <= t) <= t for every t. With a generator, ties (among
    them the row's tie with itself) are broken at random, and P(p <= t) = t.
    """
    h = len(calibration)
    above = h - np.searchsorted(calibration, scores, side="right")
    tied = h - above - np.searchsorted(calibration, scores, side="left")
    if rng is None:
        return (1.0 + above + tied) / (h + 1.0)
    return (above + (1.0 - rng.random(len(scores))) * (1.0 + tied)) / (h + 1.0)


def check_fdr(fdr: float) -> None:
    """Raise if a false-discovery rate is not a number between 0 and 1."""
    if not (isinstance(fdr, Real) and 0.0 < float(fdr) < 1.0):
        raise ParameterError(f"fdr must be a number in (0, 1), got {fdr!r} instead.")


def select_by_fdr(p_values: Float64s, fdr: float) -> Bools:
    """Return which rows Benjamini and Hochberg's procedure selects: the rows with the k smallest p-values, for the
    largest k such that the k-th smallest p-value is at most fdr k / n."""
    from scipy.stats import false_discovery_control  # imported here: it takes long, and only this function needs it

    if not len(p_values):
        return np.zeros(0, bool)
    selected: Bools = false_discovery_control(p_values, method="bh") <= fdr
    return selected
