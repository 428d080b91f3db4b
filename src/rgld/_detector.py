"""The estimator: the paper's Algorithm 1 in scikit-learn's contract.

In: a table. Out: scores and decisions. No maths here: each step is a call into the module that has it.
"""

from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from . import _kernels
from ._global import draw_global, draw_pairs, fit_global
from ._local import draw_local, fit_local
from ._model import GlobalBranch, LocalBranch, Model
from ._params import check_parameters
from ._persist import load_detector, save_detector
from ._preprocess import UNIT_KINDS, Scaling, choose_preprocessing, fit_scaling, quantiles_for, unit_part, with_moments
from ._random import root_seed
from ._ranks import BranchRanks
from ._table import read_matrix
from ._threads import n_threads
from ._threshold import fit_offset
from ._views import ViewShape, view_shape

SHORT_TABLE = 768
"""Up to this many rows are not worth a second thread, nor the question how many there may be."""

Scores = NDArray[np.float64]


class BranchScores(NamedTuple):
    """The two halves of an anomaly score: ranks in (0, 1), higher is more anomalous; None for a branch
    without views."""

    global_score: Scores | None
    local_score: Scores | None


class RGLD(OutlierMixin, BaseEstimator):
    """Randomized global-local density estimation: an unsupervised anomaly detector for numeric tables.

    Many cheap random views of the table (some of the columns, randomly projected) each answer two questions
    about a row: is it in a broadly thin region (global branch), and is it far from its nearest sampled
    neighbours (local branch). The answers are compared with the training rows' and averaged. The defaults
    are those of the paper (arXiv 2606.28970); `RGLD.plus()` is more accurate.

    A fitted detector is frozen: a row's score depends on the row and the fitted model only, to the bit, not
    on the other rows scored with it, their order or `n_jobs`.

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
        Row pairs that median is taken over.
    n_references : int, default=400
        Training rows sampled per local view, at most all of them.
    n_neighbors : int, default=10
        Nearest references whose distances count (root mean square); below `n_references`.
    feature_fraction : float or tuple of float, default=0.3
        Share of the columns a view looks at; of several shares, the views take turns.
    min_features : int, default=3
        Columns a view looks at in any case (all, if the table has fewer).
    projection_dim : int or "auto", default="auto"
        Dimensions a view projects to; "auto" is the paper's rule: 2, 5, 8, 12, 16 for up to 3, 20, 40, 100
        and more columns; for an orthogonal projection twice that, at most 16 and as many as the view has columns.
    projection : {"gaussian", "orthogonal"}, default="gaussian"
        The law of the projections: independent normal entries, or orthogonal directions, which keep distances better.
    preprocessing : str or tuple of str, default="auto"
        Scaling of the columns: "standard", "robust", "quantile", "arcsinh" or "arcsinh-standard"; of several, the views
        take turns. "auto" chooses one of the first three by the training columns, see `preprocessing_`.
    aggregation : {"rank", "standard"}, default="rank"
        What view scores are made comparable by before they are averaged over a branch: their rank among the training
        rows, or their distance from the training rows' mean in standard deviations (of the logarithm of a local
        view's distance), at most 8: that keeps how far out a row is, where ranks end at 1. Rows beyond 8 in every view
        tie.
    local_weight : float in (0, 1), default=0.5
        Weight of the local branch in the anomaly score; the global one has the rest.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of the training rows to call outliers. "auto" calls a row an outlier where its anomaly score is above
        0.95: 0.5 % to 5 % of the training rows with two branches, about 5 % with one, none in a table of up
        to 10 rows.
    random_state : int, RandomState, Generator or None, default=None
        Seed of everything random. The same integer gives the same model; None gives a new one each time.
    n_jobs : int or None, default=None
        Threads, by joblib's convention; None is all cores the process may use, and one inside a worker of joblib,
        Dask or multiprocessing. The result does not depend on it.

    Attributes
    ----------
    preprocessing_ : str or tuple of str
        The scaling used, or the scalings.
    offset_ : float
        `decision_function` is `score_samples` minus this.
    n_features_in_ : int
        Columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if the table had any.
    model_ : Model
        The frozen arrays.

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

    def __init__(
        self,
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
        projection_dim: int | str = "auto",
        projection: str = "gaussian",
        preprocessing: str | tuple[str, ...] = "auto",
        aggregation: str = "rank",
        local_weight: float = 0.5,
        contamination: float | str = "auto",
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_global_views = n_global_views
        self.n_local_views = n_local_views
        self.n_random_features = n_random_features
        self.bandwidth_multipliers = bandwidth_multipliers
        self.n_bandwidth_pairs = n_bandwidth_pairs
        self.n_references = n_references
        self.n_neighbors = n_neighbors
        self.feature_fraction = feature_fraction
        self.min_features = min_features
        self.projection_dim = projection_dim
        self.projection = projection
        self.preprocessing = preprocessing
        self.aggregation = aggregation
        self.local_weight = local_weight
        self.contamination = contamination
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def fast(cls, **parameters: Any) -> Self:
        """Return the paper's RGLD-Fast: half the views, random features and references. Keywords override
        its settings.

        >>> RGLD.fast(random_state=0)
        RGLD(n_global_views=20, n_local_views=5, n_random_features=5, n_references=200,
             random_state=0)
        """
        settings = {"n_global_views": 20, "n_local_views": 5, "n_random_features": 5, "n_references": 200}
        return cls(**{**settings, **parameters})

    @classmethod
    def plus(cls, **parameters: Any) -> Self:
        """Return the most accurate configuration, see docs/plus.md: four scalings spread over many cheap views, on
        all and on some of the columns; how far out a row is counts, not its rank. Keywords override its settings.

        >>> RGLD.plus(random_state=0).n_local_views
        64
        """
        settings = {
            "n_global_views": 0,
            "n_local_views": 64,
            "n_references": 100,
            "feature_fraction": (1.0, 0.3),
            "projection": "orthogonal",
            "preprocessing": ("standard", "arcsinh", "arcsinh-standard", "quantile"),
            "aggregation": "standard",
        }
        return cls(**{**settings, **parameters})

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the model from a table of at least two rows.

        Parameters
        ----------
        X : table of shape (n, d)
            Numbers, all finite: a NumPy array, a list of rows, a pandas or polars frame.
        y : ignored
            There are no labels.
        """
        self._fit(X)
        return self

    def _fit(self, X: ArrayLike) -> Scores:
        """Fit, and return the training rows' anomaly scores. A fit that fails leaves the detector as it was."""
        before = dict(vars(self))
        try:
            return self._learn(X)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn(self, X: ArrayLike) -> Scores:
        check_parameters(self.get_params(deep=False))
        matrix = read_matrix(self, X, fitting=True)
        seed = root_seed(self.random_state)
        scaling = self._fit_scaling(matrix)
        rows = self._rows(matrix, scaling, keep=True)
        global_branch, global_ranks, global_score = self._fit_global(rows, seed)
        local_branch, local_ranks, local_score = self._fit_local(rows, seed)
        self.model_ = Model(scaling, global_branch, global_ranks, local_branch, local_ranks, float(self.local_weight))
        anomaly_score = _mean_of_branches(BranchScores(global_score, local_score), self.local_weight)
        self.offset_ = fit_offset(self.contamination, anomaly_score)
        return anomaly_score

    def _fit_scaling(self, matrix: NDArray[np.floating]) -> Scaling:
        threads = self._threads(len(matrix))
        kinds = () if self.preprocessing == "auto" else _several(self.preprocessing)
        asked = quantiles_for(kinds, len(matrix))
        statistics = _kernels.column_statistics(matrix, threads, asked)
        kinds = kinds or (choose_preprocessing(statistics),)
        needed = quantiles_for(kinds, len(matrix))
        if needed > asked:
            statistics = _kernels.column_statistics(matrix, threads, needed)
        scaling = fit_scaling(kinds, statistics)
        if not set(kinds).isdisjoint(UNIT_KINDS):
            rows = _kernels.Rows(matrix, unit_part(scaling), threads)
            scaling = with_moments(scaling, *_kernels.column_moments(rows))
        self.preprocessing_ = kinds if isinstance(self.preprocessing, (tuple, list)) else kinds[0]
        return scaling

    def _fit_global(
        self, rows: _kernels.Rows, seed: int
    ) -> tuple[GlobalBranch | None, BranchRanks | None, Scores | None]:
        if not self.n_global_views:
            return None, None, None
        drawn = draw_global(seed, self.n_global_views, self._view_shape(), self.n_random_features)
        pairs = draw_pairs(seed, rows.n_rows, self.n_bandwidth_pairs)
        branch = fit_global(rows, drawn, pairs, self.bandwidth_multipliers)
        return branch, *_kernels.fit_ranks(rows, branch, self.aggregation)

    def _fit_local(
        self, rows: _kernels.Rows, seed: int
    ) -> tuple[LocalBranch | None, BranchRanks | None, Scores | None]:
        if not self.n_local_views:
            return None, None, None
        drawn = draw_local(seed, self.n_local_views, self._view_shape(), rows.n_rows, self.n_references)
        branch = fit_local(rows, drawn, self.n_neighbors)
        return branch, *_kernels.fit_ranks(rows, branch, self.aggregation)

    def _view_shape(self) -> ViewShape:
        shape = (self.n_features_in_, self.feature_fraction, self.min_features, self.projection_dim)
        return view_shape(*shape, n_scalings=len(_several(self.preprocessing)), projection=self.projection)

    def _rows(self, matrix: NDArray[np.floating], scaling: Scaling, *, keep: bool) -> _kernels.Rows:
        return _kernels.Rows(matrix, scaling, self._threads(len(matrix)), keep)

    def _threads(self, n_rows: int) -> int:
        return n_threads(self.n_jobs) if n_rows > SHORT_TABLE else 1

    def branch_scores(self, X: ArrayLike) -> BranchScores:
        """Return the two halves of the anomaly score: `global_score` and `local_score`, each a rank in (0, 1).

        High `global_score`: the row lies in a broadly thin region. High `local_score`: it is far from its nearest
        sampled neighbours. `anomaly_score` is their mean, weighted by `local_weight`; None stands for a branch without
        views, as the global one of `RGLD.plus()`.
        """
        check_is_fitted(self)
        model: Model = self.model_
        rows = self._rows(read_matrix(self, X, fitting=False), model.scaling, keep=False)
        return BranchScores(*_kernels.branch_scores(rows, model))

    def anomaly_score(self, X: ArrayLike) -> Scores:
        """Return the anomaly score s(x) in (0, 1) of each row, higher is more anomalous."""
        return _mean_of_branches(self.branch_scores(X), self.model_.local_weight)

    def score_samples(self, X: ArrayLike) -> Scores:
        """Return the negative anomaly score of each row: scikit-learn's sign, lower is more anomalous."""
        return -self.anomaly_score(X)

    def decision_function(self, X: ArrayLike) -> Scores:
        """Return `score_samples` minus `offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return -1 for each row that is an outlier, 1 for the others."""
        return _decide(self.decision_function(X))

    def fit_predict(self, X: ArrayLike, y: object = None, **kwargs: Any) -> NDArray[np.int64]:
        """Return `fit(X).predict(X)`, without scoring the training rows twice."""
        return _decide(-self._fit(X) - self.offset_)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted detector to a file that `rgld.load` reads; an existing file is replaced only when
        the new one is whole.

        The file holds numbers and text, no code. It contains projected training rows (the references of the
        local branch) and the column names: treat it as you treat the training table.
        """
        check_is_fitted(self)
        save_detector(self, path)


def _several(one_or_several: Any) -> tuple[Any, ...]:
    return tuple(one_or_several) if isinstance(one_or_several, (tuple, list)) else (one_or_several,)


def _mean_of_branches(scores: BranchScores, local_weight: float) -> Scores:
    if scores.global_score is None:
        assert scores.local_score is not None, "check_parameters lets no detector without a branch through"
        return scores.local_score
    if scores.local_score is None:
        return scores.global_score
    return (1.0 - local_weight) * scores.global_score + local_weight * scores.local_score


def _decide(decision: Scores) -> NDArray[np.int64]:
    return np.where(decision < 0, -1, 1)


def load(path: str | PathLike[str]) -> RGLD:
    """Return the fitted detector that `RGLD.save` wrote; it scores bit-identically.

    Raises
    ------
    ModelFileError
        For a damaged, truncated, foreign or hostile file. Nothing in a file is ever executed.
    """
    saved = load_detector(path)
    detector = RGLD(**saved.parameters)
    detector.n_features_in_ = saved.n_columns
    if saved.feature_names is not None:
        detector.feature_names_in_ = np.array(saved.feature_names, dtype=object)
    kinds = saved.model.scaling.kinds
    several = isinstance(saved.parameters["preprocessing"], tuple)
    detector.preprocessing_ = kinds if several else kinds[0]
    detector.offset_ = saved.offset
    detector.model_ = saved.model
    return detector
