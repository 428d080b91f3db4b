"""The estimator: the paper's Algorithm 1 in scikit-learn's contract.

In: a table. Out: scores and decisions. No maths here: each step is a call into the module that has it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Real
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.utils.validation import check_is_fitted

from . import _kernels, _random
from ._batches import Batches
from ._contributions import contributions
from ._encoding import Encoding
from ._explain import Explanation
from ._global import draw_global, draw_pairs, finish_global, unfinished_global
from ._local import draw_local, draw_sample, fit_local
from ._model import GlobalBranch, LocalBranch, Model, Sample
from ._params import check_parameters
from ._persist import load_detector, save_detector
from ._preprocess import (
    UNIT_KINDS,
    Scaling,
    choose_preprocessing,
    fit_scaling,
    leave_as_they_are,
    quantiles_for,
    unit_part,
    with_moments,
)
from ._random import root_seed
from ._reading import fit_encoding, fit_plain_encoding, with_medians
from ._sampling import key_bound, n_rows_of, read_alone, sample_size, sampled_rows, take_rows
from ._stream import Stream
from ._survey import ColumnSummary, columns_of
from ._table import SMALLEST_TABLE, Table, read_like, read_names, read_table, require_rows
from ._threshold import MOST_CALIBRATION_ROWS, conformal_p_values, fit_offset, select_by_fdr
from ._training import InMemory, InPasses, Passes, SurveyStep, Training, encoded, mean_of_branches, threads_for
from ._views import ViewShape, view_shape
from .exceptions import CalibrationError, ModelFileError, ParameterError

Scores = NDArray[np.float64]


class BranchScores(NamedTuple):
    """The two halves of an anomaly score: ranks in (0, 1), higher is more anomalous; None for a branch
    without views."""

    global_score: Scores | None
    local_score: Scores | None


class RGLD(OutlierMixin, BaseEstimator):
    """Randomized global-local density estimation: an unsupervised anomaly detector for tables.

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
    columns : dict of str to {"number", "category", "time", "drop"} or None, default=None
        How to read columns that the rules of docs/tables.md would read otherwise, by name.
    calibration_fraction : float in [0, 0.9], default=0.0
        Share of the training rows (at most 50,000) held out of the model to calibrate `p_values` and `select`; 0 holds
        out none, and these two are not available.
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
    columns_ : tuple of Column
        How each column is read: its name, kind and note.
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

    _stream: Stream | None = None
    """What `partial_fit` goes on from."""

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
        columns: Mapping[str, str] | None = None,
        calibration_fraction: float = 0.0,
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
        self.columns = columns
        self.calibration_fraction = calibration_fraction
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
            A NumPy array or a list of rows: numbers, NaN where missing. Or a pandas, polars or Arrow table, a DuckDB
            relation: numbers, truth values, dates, categories and texts, with gaps; how each column is read is in
            docs/tables.md and, after the fit, in `columns_`. Infinities are refused.
        y : ignored
            There are no labels.
        """
        self._fit(X)
        return self

    def fit_batches(
        self,
        batches: Callable[[], Iterable[ArrayLike]] | Iterable[ArrayLike],
        *,
        on_rows: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Learn from a table that is larger than memory, in several passes over its batches.

        The result is that of `fit` on the whole table, to the bit for up to 32,768 rows (of tables of up to 128
        columns), and up to small errors of ranks beyond: see docs/scale.md.

        Parameters
        ----------
        batches : function that returns an iterable of tables, or a list of tables
            The table in parts, each as `fit` takes it, of the same columns. The function is called once per pass and
            must give the same rows in the same order every time.
        on_rows : function or None
            Called after each batch with the number of the pass and of the rows it has seen.

        Examples
        --------
        >>> from rgld import RGLD
        >>> def batches():
        ...     for seed in range(50):
        ...         yield np.random.default_rng(seed).normal(size=(1000, 4))
        >>> detector = RGLD.fast(random_state=0).fit_batches(batches)
        >>> detector.model_.encoding.n_rows
        50000
        """
        with self._fitting():
            passes = Batches(batches, on_rows)
            read_names(self, passes.first())
            self._learn_in_passes(passes)
        return self

    def partial_fit(self, X: ArrayLike, y: object = None, *, half_life: float | None = None) -> Self:
        """Go on learning from new rows.

        The detector keeps a uniform sample of all rows it was ever given (32,768 rows of tables of up to 128 columns)
        and is fitted anew on it by every call: give it batches of thousands of rows rather than row by row. Up to the
        size of the sample it is the detector that `fit` makes of all rows, to the bit. `save` keeps the sample, so
        that a loaded detector goes on where it was. `fit` and `fit_batches` keep none: after them, it begins anew.

        Parameters
        ----------
        X : table
            New rows, as `fit` takes them, of the same columns as in the first call.
        y : ignored
            There are no labels.
        half_life : float or None, default=None
            For data that drifts: a row is half as likely to be in the sample as one so many rows after it, and the
            sample has no more rows than this. None weighs all rows alike. The same in every call.
        """
        with self._fitting(anew=False):
            if self._stream is None:
                read_names(self, X)
                self._stream = Stream.begin(root_seed(self.random_state), self._sample_size, half_life)
            self._stream = self._stream.extended(read_like(self, X, self._unused), half_life)
            if self._stream.n_rows >= SMALLEST_TABLE:
                self._learn(self._stream.table, self._stream.seed, self._stream.n_spanned)
        return self

    def _fit(self, X: ArrayLike) -> Scores:
        """Fit, and return the training rows' anomaly scores."""
        with self._fitting():
            return self._learn(read_table(self, X, fitting=True, unused=self._unused), root_seed(self.random_state))

    @contextmanager
    def _fitting(self, *, anew: bool = True) -> Iterator[None]:
        """A fit that fails leaves the detector as it was."""
        before = dict(vars(self))
        try:
            check_parameters(self.get_params(deep=False))
            if anew:
                self._stream = None
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    @property
    def _unused(self) -> frozenset[str]:
        """Columns that a user wants to be dropped need not be readable."""
        return frozenset(name for name, reading in (self.columns or {}).items() if reading == "drop")

    def _learn(self, table: Table, seed: int, n_rows: int | None = None) -> Scores:
        """Learn from rows in memory, which may be a sample of so many."""
        rows, held_out, sampled = self._split(table, seed)
        encoding = self._fit_encoding(rows, n_rows=n_rows)
        matrix = encoded(encoding, table)  # all of it, so that an error names the row of the table
        sample = None if sampled is None else matrix[sampled]
        if held_out is not None:
            matrix = np.delete(matrix, held_out, axis=0)
        training = InMemory(matrix, sample, self.n_jobs)
        self._set_model(self._fit_model(training, encoding, seed))
        global_score, local_score = training.branch_scores
        scores = mean_of_branches(global_score, local_score, self.local_weight)
        self.offset_ = fit_offset(self.contamination, scores)
        if held_out is None:
            return scores
        held_out_scores = self._calibrate(take_rows(table, held_out))
        every = np.empty(len(scores) + len(held_out_scores))
        every[np.setdiff1d(np.arange(len(every)), held_out)], every[held_out] = scores, held_out_scores
        return every

    def _learn_in_passes(self, passes: Passes, n_rows: int | None = None) -> None:
        """Learn from rows that are gone through part by part; names and number of columns must be known, the number of
        rows may be."""
        seed, reader = root_seed(self.random_state), self._reader()
        size, most_held_out = self._sample_size, MOST_CALIBRATION_ROWS if self.calibration_fraction else 0
        below = np.inf if n_rows is None else key_bound(n_rows, size + most_held_out)
        as_categories = frozenset(name for name, reading in (self.columns or {}).items() if reading == "category")
        survey = passes.run(SurveyStep(reader, seed, size + most_held_out, self._unused, as_categories, below))
        if survey.n_rows <= size:
            require_rows(survey.n_rows)
            self._learn(survey.sample.table, seed)
            return
        held_out, sample = survey.sample.split(self._n_held_out(survey.n_rows), size)
        encoding = self._fit_encoding(
            sample.table,
            [column.without(rows) for column, rows in zip(survey.columns, columns_of(held_out.table), strict=True)],
        )
        training = InPasses(
            passes,
            encoded(encoding, sample.table),
            survey.n_rows - len(held_out.numbers),
            reader,
            encoding,
            held_out.numbers,
            seed,
            self.n_jobs,
        )
        self._set_model(self._fit_model(training, encoding, seed))
        if isinstance(self.contamination, str):
            self.offset_ = fit_offset(self.contamination, np.empty(0))
        else:
            self.offset_ = -training.score_at(self.model_, 1.0 - self.contamination)
        if len(held_out.numbers):
            self._calibrate(held_out.table)

    def _reader(self) -> BaseEstimator:
        """Return a detector without a model, which knows the columns."""
        reader = clone(self)
        reader.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            reader.feature_names_in_ = self.feature_names_in_
        return reader

    @property
    def _sample_size(self) -> int:
        return sample_size(self.n_features_in_, self.n_references)

    def _n_held_out(self, n_rows: int) -> int:
        return max(0, min(round(self.calibration_fraction * n_rows), MOST_CALIBRATION_ROWS, n_rows - 2))

    def _split(self, table: Table, seed: int) -> tuple[Table, NDArray[np.intp] | None, NDArray[np.intp] | None]:
        """Return the rows to learn from, which rows are held out to calibrate p-values, and which are the sample of a
        long table."""
        n_columns = table.shape[1] if isinstance(table, np.ndarray) else len(table)
        n, size = n_rows_of(table), sample_size(n_columns, self.n_references)
        n_held_out = self._n_held_out(n)
        held_out = sampled = None
        if n > size:
            held_out, sampled = sampled_rows(seed, n, n_held_out, size)
        elif n_held_out:
            rng = _random.child(seed, _random.LOCAL, _random.HELD_OUT)
            held_out = np.sort(rng.choice(n, n_held_out, replace=False))
        if held_out is None or not n_held_out:
            return table, None, sampled
        return read_alone(take_rows(table, np.setdiff1d(np.arange(n), held_out))), held_out, sampled

    def _fit_encoding(
        self, table: Table, summaries: Sequence[ColumnSummary] | None = None, n_rows: int | None = None
    ) -> Encoding:
        if isinstance(table, np.ndarray):
            if self.columns:
                raise ParameterError(
                    "columns names columns, but the table has no names: pass a frame, or leave it out."
                )
            return fit_plain_encoding(table, summaries)
        return fit_encoding(table, self.columns, summaries, n_rows)

    def _fit_model(self, training: Training, encoding: Encoding, seed: int) -> Model:
        """Algorithm 1: scaling, views, both branches, ranks."""
        scaling, medians = self._fit_scaling(training, encoding.is_indicator)
        sample = training.scale(scaling)
        shape = self._view_shape(encoding)
        global_branch = self._fit_global(training, sample, shape, seed)
        local_branch, kept_rows = self._fit_local(training, sample, shape, seed)
        global_ranks, local_ranks = training.fit_ranks((global_branch, local_branch), self.aggregation)
        return Model(
            with_medians(encoding, medians),
            scaling,
            global_branch,
            global_ranks,
            local_branch,
            local_ranks,
            float(self.local_weight),
            kept_rows,
            calibration=np.empty(0),
        )

    def _set_model(self, model: Model) -> None:
        self.columns_ = model.encoding.columns
        self.model_ = model

    def _calibrate(self, held_out: Table) -> Scores:
        """Score rows that were held out, for p-values."""
        scores = self._score(held_out)
        self.model_ = replace(self.model_, calibration=np.sort(scores))
        return scores

    def _fit_scaling(self, training: Training, is_indicator: NDArray[np.bool_]) -> tuple[Scaling, NDArray[np.float64]]:
        """Return the scaling, and the columns' medians."""
        n_rows = len(training.sample)
        kinds = () if self.preprocessing == "auto" else _several(self.preprocessing)
        asked = quantiles_for(kinds, n_rows)
        statistics = training.column_statistics(asked)
        kinds = kinds or (choose_preprocessing(statistics, ~is_indicator),)
        needed = quantiles_for(kinds, n_rows)
        if needed > asked:
            statistics = training.column_statistics(needed)
        scaling = fit_scaling(kinds, statistics)
        if not set(kinds).isdisjoint(UNIT_KINDS):
            scaling = with_moments(scaling, *training.moments(unit_part(scaling)))
        if is_indicator.any():
            scaling = leave_as_they_are(scaling, is_indicator)
        self.preprocessing_ = kinds if isinstance(self.preprocessing, (tuple, list)) else kinds[0]
        return scaling, statistics.median

    def _fit_global(
        self, training: Training, sample: _kernels.Rows, shape: ViewShape, seed: int
    ) -> GlobalBranch | None:
        if not self.n_global_views:
            return None
        drawn = draw_global(seed, self.n_global_views, shape, self.n_random_features)
        pairs = draw_pairs(seed, sample.n_rows, self.n_bandwidth_pairs)
        branch = unfinished_global(sample, drawn, pairs, self.bandwidth_multipliers)
        return finish_global(branch, training.embedding_sums(branch))

    def _fit_local(
        self, training: Training, sample: _kernels.Rows, shape: ViewShape, seed: int
    ) -> tuple[LocalBranch | None, Sample]:
        if not self.n_local_views:
            return None, draw_sample(seed, training.sample, None)
        drawn = draw_local(seed, self.n_local_views, shape, sample.n_rows, self.n_references)
        return fit_local(sample, drawn, self.n_neighbors), draw_sample(seed, training.sample, drawn)

    def _view_shape(self, encoding: Encoding) -> ViewShape:
        return view_shape(
            len(encoding.fill),
            self.feature_fraction,
            self.min_features,
            self.projection_dim,
            n_scalings=len(_several(self.preprocessing)),
            projection=self.projection,
            weights=None if encoding.is_plain else encoding.weights,
        )

    def branch_scores(self, X: ArrayLike) -> BranchScores:
        """Return the two halves of the anomaly score: `global_score` and `local_score`, each a rank in (0, 1).

        High `global_score`: the row lies in a broadly thin region. High `local_score`: it is far from its nearest
        sampled neighbours. `anomaly_score` is their mean, weighted by `local_weight`; None stands for a branch without
        views, as the global one of `RGLD.plus()`.
        """
        check_is_fitted(self)
        table = read_table(self, X, fitting=False, unused=self.model_.encoding.dropped)
        return self._branch_scores(self._encode(table))

    def _encode(self, table: Table) -> NDArray[np.floating]:
        return encoded(self.model_.encoding, table)

    def _branch_scores(self, matrix: NDArray[np.floating]) -> BranchScores:
        model: Model = self.model_
        rows = _kernels.Rows(matrix, model.scaling, threads_for(len(matrix), self.n_jobs))
        return BranchScores(*_kernels.branch_scores(rows, model))

    def _score(self, table: Table) -> Scores:
        return mean_of_branches(*self._branch_scores(self._encode(table)), self.model_.local_weight)

    def anomaly_score(self, X: ArrayLike) -> Scores:
        """Return the anomaly score s(x) in (0, 1) of each row, higher is more anomalous."""
        return mean_of_branches(*self.branch_scores(X), self.model_.local_weight)

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

    def p_values(self, X: ArrayLike, *, random_state: int | np.random.Generator | None = None) -> Scores:
        """Return the conformal p-value of each row: small for a row unlike the training rows.

        The share of the rows held out in `fit` (`calibration_fraction`) whose score is at least as high, counting the
        row itself. For a row drawn as the training rows were, P(p <= t) <= t for every t, whatever the
        distribution and however good the model; see docs/certainty.md.

        Parameters
        ----------
        X : table
            New rows. For rows the detector was fitted on, p-values say nothing.
        random_state : int, Generator or None
            Given one, ties are broken at random: p-values of ordinary rows are then exactly uniform.
        """
        check_is_fitted(self)
        calibration = self.model_.calibration
        if not len(calibration):
            raise CalibrationError(
                "p-values need rows held out of the fit, and this detector held out none: fit it with "
                "calibration_fraction=0.2, for example, on a table with rows to spare."
            )
        rng = None if random_state is None else np.random.default_rng(random_state)
        return conformal_p_values(calibration, self.anomaly_score(X), rng)

    def select(self, X: ArrayLike, *, fdr: float = 0.05) -> NDArray[np.bool_]:
        """Return which rows are anomalies at a false-discovery rate: of the rows selected, a share of at most `fdr` is
        expected to be ordinary rows (Benjamini and Hochberg, on `p_values`).
        """
        if not (isinstance(fdr, Real) and 0.0 < fdr < 1.0):
            raise ParameterError(f"fdr must be a number in (0, 1), got {fdr!r} instead.")
        return select_by_fdr(self.p_values(X), float(fdr))

    def explain(self, X: ArrayLike) -> Explanation:
        """Return for each row what each column contributed to its score, and reasons in words.

        See `rgld.Explanation` and docs/explanations.md for what a contribution is.

        >>> X = np.random.default_rng(0).normal(size=(500, 4))
        >>> explanation = RGLD.plus(random_state=0).fit(X).explain([[0.0, 9.0, 0.0, 0.0]])
        >>> explanation.top(1)
        array([[1]])
        >>> explanation.reasons(0, n_columns=1)
        ['column 1 = 9 is far above usual (usually -1.921 to 1.636)']
        """
        check_is_fitted(self)
        model: Model = self.model_
        if not len(model.sample.rows):
            raise ModelFileError(
                "The model file was written by a release whose models cannot be explained: fit again and save."
            )
        table = read_table(self, X, fitting=False, shown=model.encoding.dropped)
        matrix = self._encode(table)
        branches = self._branch_scores(matrix)
        found = contributions(model, matrix, threads_for(len(matrix), self.n_jobs))
        return Explanation(
            tuple(column.name for column in model.encoding.columns),
            found.by_column,
            mean_of_branches(*branches, model.local_weight),
            *branches,
            found.distance_ratio,
            model,
            table,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # a stream of one row has names and no model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted detector to a file that `rgld.load` reads; an existing file is replaced only when
        the new one is whole.

        The file holds numbers and text, no code. It contains some training rows (the references of the local branch),
        column names and the values of categories: treat it as you treat the training table.
        """
        check_is_fitted(self)
        save_detector(self, path)


def _several(one_or_several: Any) -> tuple[Any, ...]:
    return tuple(one_or_several) if isinstance(one_or_several, (tuple, list)) else (one_or_several,)


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
    detector.n_features_in_ = len(saved.model.encoding.columns)
    if saved.feature_names is not None:
        detector.feature_names_in_ = np.array(saved.feature_names, dtype=object)
    kinds = saved.model.scaling.kinds
    several = isinstance(saved.parameters["preprocessing"], tuple)
    detector.preprocessing_ = kinds if several else kinds[0]
    detector.offset_ = saved.offset
    detector.columns_ = saved.model.encoding.columns
    detector.model_ = saved.model
    detector._stream = saved.stream
    return detector
