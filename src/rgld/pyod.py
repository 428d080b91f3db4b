"""PyOD: the same detector with PyOD's attributes and methods.

In: a table. Out: scores and labels by PyOD's conventions: a higher score and the label 1 are anomalous. The scores are
those of `rgld.RGLD`, to the bit; threshold, labels, `predict_proba` and `predict_confidence` are PyOD's own. This is
the only module of the library that imports PyOD: `pip install 'rgld[pyod]'`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from . import _detector, _estimator
from ._arrays import Float64s
from ._explain.explanation import Explanation
from ._params import CONSTRAINTS
from .exceptions import ParameterError

try:
    from pyod.models.base import BaseDetector
except ModuleNotFoundError as error:
    raise ImportError("rgld.pyod needs PyOD, which is not installed: pip install 'rgld[pyod]'") from error

__all__ = ["RGLD"]


class RGLD(BaseDetector):
    """`rgld.RGLD` as a PyOD detector.

    Parameters
    ----------
    contamination : float in (0, 0.5] or thresholder, default=0.1
        Fraction of the training rows to label 1, or a thresholder of PyThresh (`pyod.models.thresholds`).
    n_global_views, n_local_views, ..., n_jobs
        As in `rgld.RGLD`, with the same defaults: the paper's. `RGLD.plus()` is more accurate.

    Attributes
    ----------
    decision_scores_ : ndarray of shape (n,)
        Anomaly scores of the training rows, in (0, 1): higher is more anomalous.
    threshold_ : float
        A row with a score above this gets the label 1 (a thresholder has a scale of its own).
    labels_ : ndarray of shape (n,)
        0 or 1 for each training row.
    detector_ : rgld.RGLD
        The fitted `rgld.RGLD`, for what PyOD does not have: `p_values`, `select`, `save`.

    Examples
    --------
    >>> import numpy as np
    >>> from rgld.pyod import RGLD
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> X[7] = 6.0
    >>> detector = RGLD.plus(contamination=0.02, random_state=0).fit(X)
    >>> int(detector.decision_scores_.argmax()), int(detector.labels_.sum())
    (7, 10)
    >>> detector.predict(np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 9.0, 0.0, 0.0]]))
    array([0, 1])
    """

    def __init__(
        self,
        contamination: Any = 0.1,
        *,
        n_global_views: int = 40,
        n_local_views: int = 10,
        n_random_features: int = 10,
        bandwidth_multipliers: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0),
        n_bandwidth_pairs: int = 8192,
        n_references: int = 400,
        n_neighbors: int = 10,
        feature_fraction: float | tuple[float, ...] = 0.3,
        min_features: int = 3,
        max_features: int | None = None,
        projection_dim: int | str = "auto",
        projection: str = "gaussian",
        preprocessing: str | tuple[str, ...] = "auto",
        aggregation: str = "rank",
        global_score: str = "support",
        ridge: float = 0.02,
        whitening: float | tuple[float, ...] = 0.0,
        trim: float = 0.0,
        max_training_rows: int | None = None,
        relations: bool = False,
        local_weight: float = 0.5,
        columns: Mapping[str, str] | None = None,
        na_values: Mapping[str, Sequence[str | float]] | Sequence[str | float] | None = None,
        calibration_fraction: float = 0.0,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(contamination=contamination)
        self.n_global_views = n_global_views
        self.n_local_views = n_local_views
        self.n_random_features = n_random_features
        self.bandwidth_multipliers = bandwidth_multipliers
        self.n_bandwidth_pairs = n_bandwidth_pairs
        self.n_references = n_references
        self.n_neighbors = n_neighbors
        self.feature_fraction = feature_fraction
        self.min_features = min_features
        self.max_features = max_features
        self.projection_dim = projection_dim
        self.projection = projection
        self.preprocessing = preprocessing
        self.aggregation = aggregation
        self.global_score = global_score
        self.ridge = ridge
        self.whitening = whitening
        self.trim = trim
        self.max_training_rows = max_training_rows
        self.relations = relations
        self.local_weight = local_weight
        self.columns = columns
        self.na_values = na_values
        self.calibration_fraction = calibration_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def fast(cls, **parameters: Any) -> Self:
        """Return the paper's RGLD-Fast, see `rgld.RGLD.fast`. Keywords overrule its settings."""
        return cls._preset(_estimator.RGLD.fast(), parameters)

    @classmethod
    def plus(cls, **parameters: Any) -> Self:
        """Return the most accurate configuration, see `rgld.RGLD.plus`. Keywords overrule its settings."""
        return cls._preset(_estimator.RGLD.plus(), parameters)

    @classmethod
    def novelty(cls, **parameters: Any) -> Self:
        """Return the configuration for training tables without anomalies, see `rgld.RGLD.novelty`. Keywords
        overrule its settings."""
        return cls._preset(_estimator.RGLD.novelty(), parameters)

    @classmethod
    def _preset(cls, preset: _estimator.RGLD, parameters: dict[str, Any]) -> Self:
        settings = preset.get_params()
        del settings["contamination"]  # the default is PyOD's, not the preset's
        return cls(**{**settings, **parameters})

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the model from a table of at least two rows: any table that `rgld.RGLD.fit` reads.

        `y` is not used; PyOD warns if it is given.
        """
        fraction = self._fraction()
        settings = {name: value for name, value in self.get_params(deep=False).items() if name != "contamination"}
        detector = _estimator.RGLD(**settings, contamination="auto" if fraction is None else fraction)
        scores = _detector.fit_and_score(detector, X)
        self._set_n_classes(y)
        self.decision_scores_ = scores
        self._process_decision_scores()
        if fraction is not None:
            # PyOD's threshold also counts the rows held out for calibration. Both detectors must decide alike.
            detector.offset_ = -float(self.threshold_)
        self.detector_ = detector
        return self

    def _fraction(self) -> float | None:
        """Return the contamination, or None for a thresholder. It is checked before the fit; PyOD checks it after."""
        # As in PyOD, anything that is neither a float nor an int is a thresholder.
        if isinstance(self.contamination, (float, int)):
            if CONSTRAINTS["contamination"].holds(self.contamination):
                return float(self.contamination)
        elif hasattr(self.contamination, "fit"):
            return None
        raise ParameterError(
            "contamination must be a float in (0, 0.5] or a thresholder of PyThresh, "
            f"got {self.contamination!r} instead."
        )

    def decision_function(self, X: ArrayLike) -> Float64s:
        """Return the anomaly score of each row, in (0, 1): higher is more anomalous. See `rgld.RGLD.anomaly_score`."""
        check_is_fitted(self, "detector_")
        return self.detector_.anomaly_score(X)

    def explain(self, X: ArrayLike) -> Explanation:
        """Return why each row stands out: what each column contributed, and reasons in words. See
        `rgld.RGLD.explain`."""
        check_is_fitted(self, "detector_")
        return self.detector_.explain(X)

    def predict_proba(self, X: Any, method: str = "linear", return_confidence: bool = False) -> Any:
        """Return PyOD's rescaled scores, shape (n, 2): one column for normal, one for anomalous; each row sums to 1.

        The name is PyOD's, but these are not probabilities. They are scores moved into [0, 1] by their training range
        ("linear") or by their mean and spread ("unify"). Scores alone cannot tell how likely a row is an anomaly. For
        a statement with a guarantee, fit with `calibration_fraction=0.2` and use `detector_.p_values(X)`.
        """
        # PyOD needs the shape, which a list of rows does not have.
        return super().predict_proba(X if hasattr(X, "shape") else np.asarray(X), method, return_confidence)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
