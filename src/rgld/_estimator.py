"""The estimator: the detector in scikit-learn's contract, and as users know it."""

from os import PathLike
from typing import Any

from sklearn.base import BaseEstimator, OutlierMixin

from ._detector import Detector, restored


class RGLD(Detector, OutlierMixin, BaseEstimator):
    """Randomized global-local density estimation: an unsupervised anomaly detector for tables.

    The detector looks at the table through many random views, projections of some of the columns. A view asks whether
    a row is in a sparse region (global branch), or whether it is far from its nearest reference rows (local branch).
    The answers are ranked among those of the training rows, and averaged. The defaults are those of the paper (arXiv
    2606.28970); `RGLD.plus()` is more accurate. A row's score depends only on the row and the fitted model, to the bit:
    not on the other rows scored with it, on their order or on `n_jobs`.

    Parameters
    ----------
    n_global_views : int, default=40
        Views of the global density branch; 0 leaves the branch out.
    n_local_views : int, default=10
        Views of the local neighbour branch; 0 leaves the branch out.
    n_random_features : int, default=10
        Random cosine features per view and bandwidth.
    bandwidth_multipliers : tuple of float, default=(0.25, 0.5, 1.0, 2.0)
        Kernel bandwidths, as multiples of the median distance between rows in the view.
    n_bandwidth_pairs : int, default=8192
        Number of row pairs for that median.
    n_references : int, default=400
        Reference rows of each local view: training rows chosen at random. If fewer rows are learned from, all of these.
    n_neighbors : int, default=10
        Nearest references whose distances count (root mean square); below `n_references`.
    feature_fraction : float or tuple of float, default=0.3
        Fraction of the columns that a view looks at; of several fractions, the views take turns.
    min_features : int, default=3
        A view looks at no fewer columns than this (at all columns, if the table has fewer).
    max_features : int or None, default=None
        A view looks at no more columns than this (leverage views look at all): bounds the time for wide tables.
    projection_dim : int or "auto", default="auto"
        Dimensions that a view projects to. "auto" is the paper's rule: 2, 5, 8, 12, 16 for up to 3, 20, 40, 100
        and more columns; for an orthogonal projection twice that, but not more than 16 or the view's columns.
    projection : {"gaussian", "orthogonal"}, default="gaussian"
        Kind of random projection: independent normal entries, or orthogonal directions, which keep distances better.
    preprocessing : str or tuple of str, default="auto"
        Scaling of the columns: "standard", "robust", "quantile", "arcsinh" or "arcsinh-standard"; of several, the views
        take turns. "auto" chooses one of the first three from the training columns, see `preprocessing_`.
    aggregation : {"rank", "standard"}, default="rank"
        How view scores are made comparable before they are averaged. "rank": by their rank among the training rows.
        "standard": in standard deviations from the training rows' mean, clipped to [-4, 8] (in local views, of the
        logarithm of the distance). Unlike a rank, this says how far out a row is.
    global_score : {"support", "leverage"}, default="support"
        What a global view asks. "support": the paper's density estimate by random features. "leverage": whether the
        random features of a row, computed from all columns, are unusual given how they vary together.
    ridge : float, default=0.02
        Of leverage views: added to the variance of every feature.
    whitening : float or tuple of float, default=0.0
        Of local views: makes projected coordinates uncorrelated, so that a row which breaks a dependency between
        columns is far from others. The value is a ridge, as a fraction of the mean variance; 0 leaves a view as it is.
        Of several values, the views take turns.
    trim : float in [0, 0.9], default=0.0
        Fraction of the training rows, the most anomalous ones by a first cheap pass, that the local branch does not
        learn from; for the global branch half of it. 0 for tables without anomalies.
    max_training_rows : int or None, default=None
        Views and distributions are learned from at most this many training rows, drawn at random: bounds the time of a
        fit. None: from all rows. How columns are read and scaled is still learned from all rows.
    relations : bool, default=False
        Whether relations between columns are learned (docs/relations.md): sums and products of numbers, the order of
        two dates, which value goes with which. A row that clearly breaks one gets a high score.
    local_weight : float in (0, 1), default=0.5
        Weight of the local branch in the anomaly score; the weight of the global branch is 1 minus this.
    columns : dict of str to {"number", "category", "time", "drop"} or None, default=None
        How to read columns, by name. All other columns are read by the rules of docs/tables.md.
    na_values : list of str or number, dict of str to such lists, or None, default=None
        Values that mean missing, in all columns or by column name, such as `{"height": [-999]}`; only for tables with
        column names. New rows are read in the same way.
    calibration_fraction : float in [0, 0.9], default=0.0
        Fraction of the training rows (at most 50,000 rows) held out of the model to calibrate `p_values` and `select`.
        With 0, these two methods raise an error.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Fraction of the training rows to call outliers. "auto": rows with an anomaly score above 0.95, which are 0.5 %
        to 5 % of the training rows with two branches, about 5 % with one, and none in a table of up to 10 rows.
    random_state : int, RandomState, Generator or None, default=None
        Seed of everything random. The same integer gives the same model; None gives a new model each time.
    n_jobs : int or None, default=None
        Number of threads, as in joblib. None means all cores that the process may use, but one inside a worker of
        joblib, Dask, Spark or multiprocessing. The result does not depend on it.

    Attributes
    ----------
    preprocessing_ : str or tuple of str
        The scaling, or the scalings, that were used.
    offset_ : float
        `decision_function` is `score_samples` minus this.
    n_features_in_ : int
        Number of columns of the training table.
    feature_names_in_ : ndarray of str
        Names of these columns, if the table had names.
    columns_ : tuple of Column
        How each column is read: its name, kind and note.
    relations_ : tuple of Relation
        The relations between columns that the model has, the strongest first; empty without `relations`.
    model_ : Model
        The frozen model.

    Examples
    --------
    >>> import numpy as np
    >>> from rgld import RGLD
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> X[7] = 6.0
    >>> detector = RGLD(random_state=0).fit(X)
    >>> int(detector.anomaly_score(X).argmax())
    7
    >>> int(detector.predict(X)[7])
    -1
    """

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # a stream of one row has columns, but no model yet

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def load(path: str | PathLike[str]) -> RGLD:
    """Return the fitted detector that `RGLD.save` wrote. Its scores are the same to the bit.

    Raises
    ------
    ModelFileError
        If the file is damaged, cut, not a model file, or hostile. Nothing in a file is ever executed.
    """
    return restored(RGLD, path)
