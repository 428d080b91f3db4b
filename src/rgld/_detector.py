"""The detector: the paper's Algorithm 1 as an object with methods.

In: a table. Out: scores and decisions. This module holds docstrings and thin methods only: parameters are in
`_params`, the fit is in `_fit/algorithm.py`, scores are in `_kernels`, explanations in `_explain`, files in
`_modelfile`.

`_estimator.py` makes a scikit-learn estimator of it, which is what users have. The command uses `Detector` itself:
scikit-learn takes a second to import.
"""

from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import Bools, Float64s, Int64s
from ._drift.sequence import Watch
from ._drift.verdict import Check, check_alpha, check_table
from ._explain.explanation import Explanation, explain_rows
from ._explain.relations import Relation, relation_checks, relations_of
from ._fit.algorithm import Fitted, fit_parts, fit_stream, fit_table
from ._fit.batches import Batches
from ._fit.in_passes import Executor
from ._fit.randomness import root_seed
from ._fit.stream import Stream, extended_stream
from ._kernels.scoring import score_part, score_rows, table_scores
from ._model.model import Model
from ._model.scores import BranchScores, anomaly_score
from ._modelfile.model import SavedDetector, load_detector, save_detector
from ._params import CONSTRAINTS, Configured, Parameters
from ._table.frames import collected, origin_of, with_columns
from ._table.schema import Schema, read_training_table
from ._threshold import check_fdr, conformal_p_values, require_calibration, select_by_fdr

AnyDetector = TypeVar("AnyDetector", bound="Detector")


class Detector(Configured):
    """`rgld.RGLD` without scikit-learn's base class: the same parameters, methods and scores."""

    _stream: Stream | None = None
    """What `partial_fit` keeps between calls; None after other fits."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn the model from a table of at least two rows.

        Parameters
        ----------
        X : table of shape (n, d)
            A NumPy array or a list of rows: numbers, NaN where missing. Or a pandas, polars or Arrow table or a DuckDB
            relation: numbers, bools, dates, categories and text; values may be missing. docs/tables.md says how each
            column is read, and `columns_` how it was read. Infinite numbers are an error.
        y : ignored
            There are no labels.
        """
        fit_in_memory(self, X)
        return self

    def fit_batches(
        self,
        batches: Callable[[], Iterable[ArrayLike]] | Iterable[ArrayLike],
        *,
        on_rows: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Learn the model from a table that is larger than memory, in several passes over its batches.

        The model is that of `fit` on the whole table: to the bit for up to 32,768 rows (in tables of up to 128
        columns), and up to small errors of ranks for more rows: see docs/scale.md.

        Parameters
        ----------
        batches : function that returns an iterable of tables, or a list of tables
            The table in parts. Each is a table that `fit` takes, and all have the same columns. The function is called
            once per pass and must give the same rows in the same order every time.
        on_rows : function or None
            Called after each batch with the number of the pass and the number of rows that this pass has seen.

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
        fit_in_passes(self, Batches(batches, on_rows))
        return self

    def partial_fit(self, X: ArrayLike, y: object = None, *, half_life: float | None = None) -> Self:
        """Learn from new rows as well as from all earlier ones.

        The detector keeps a uniform sample of all rows it was ever given (32,768 rows in tables of up to 128 columns),
        and every call fits it on the sample again: give it batches of thousands of rows. As long as all rows are in the
        sample, the detector is the one that `fit` makes of all rows, to the bit. `save` keeps the sample; `fit` and
        `fit_batches` end the stream. Errors name a row by its index in the stream, from 0.

        Parameters
        ----------
        X : table
            New rows, as `fit` takes them, with the same columns as in the first call.
        y : ignored
            There are no labels.
        half_life : float or None, default=None
            For data that drifts: a row is half as likely to be in the sample as a row that comes `half_life` rows
            later. The sample then has at most `half_life` rows. None gives all rows the same chance. It must be the
            same in every call.
        """
        parameters = Parameters.of(self)
        schema, stream = extended_stream(self._stream, X, self, parameters, half_life)
        self._keep(schema, fit_stream(stream, parameters), stream)
        return self

    def _keep(self, schema: Schema, fitted: Fitted | None, stream: Stream | None = None) -> None:
        """Set the attributes of a fit. This comes last: a fit that fails leaves the detector unchanged."""
        self.n_features_in_ = schema.n_columns
        if schema.names is not None:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._stream = stream
        if fitted is None:  # a stream of one row has columns, but no model yet: that of an earlier fit is not its own
            for name in ("model_", "offset_", "columns_", "preprocessing_"):
                self.__dict__.pop(name, None)
            return
        self.model_ = fitted.model
        self.offset_ = fitted.offset
        self.columns_ = fitted.model.encoding.columns
        kinds = fitted.model.scaling.kinds
        self.preprocessing_ = kinds if isinstance(self.preprocessing, (tuple, list)) else kinds[0]

    @property
    def relations_(self) -> tuple[Relation, ...]:
        """The relations between columns, the strongest first; see docs/relations.md."""
        require_fitted(self)
        return relations_of(self.model_)

    def branch_scores(self, X: ArrayLike) -> BranchScores:
        """Return the parts of the anomaly score.

        `global_score` is high for a row in a sparse region, `local_score` for a row far from its nearest references:
        ranks in (0, 1), or None without views. `anomaly_score` is their mean, weighted by `local_weight`.
        `relation_score`, in [0, 1), is 0 for a row that breaks no relation (docs/relations.md), and None if the model
        has none. A row that breaks one has an anomaly score of at least 0.996 - 0.02 (1 - relation_score). `gap_score`,
        in [0, 1), is above 0 for a row with a missing value where none was in training (docs/tables.md). Its anomaly
        score is at least 0.995 - (1 - gap_score). `date_score` is above 0 for a row with a date of another age, such as
        2042 in a table of 2024, and the least anomaly score that such a row gets.
        """
        require_fitted(self)
        return score_part(self, X)

    def anomaly_score(self, X: ArrayLike) -> Float64s:
        """Return the anomaly score s(x) of each row, in (0, 1): higher is more anomalous."""
        return anomaly_score(self.branch_scores(X), self.model_)

    def score_samples(self, X: ArrayLike) -> Float64s:
        """Return the negative anomaly score of each row: lower is more anomalous, as scikit-learn expects."""
        return -self.anomaly_score(X)

    def decision_function(self, X: ArrayLike) -> Float64s:
        """Return `score_samples` minus `offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> Int64s:
        """Return -1 for each outlier and 1 for each other row."""
        return _decide(self.decision_function(X))

    def fit_predict(self, X: ArrayLike, y: object = None, **kwargs: Any) -> Int64s:
        """Return `fit(X).predict(X)`, without scoring the training rows twice."""
        return _decide(-fit_and_score(self, X) - self.offset_)

    def p_values(self, X: ArrayLike, *, random_state: int | np.random.Generator | None = None) -> Float64s:
        """Return the conformal p-value of each row: small for a row unlike the training rows.

        It is the fraction of the rows held out in `fit` (`calibration_fraction`) whose score is at least as high, with
        the row itself counted among them. For a row drawn as the training rows were, P(p <= t) <= t for every t,
        whatever the distribution and however good the model; see docs/certainty.md.

        Parameters
        ----------
        X : table
            New rows. The p-values of rows that the detector was fitted on mean nothing.
        random_state : int, Generator or None
            If it is given, ties are broken at random: p-values of ordinary rows are then exactly uniform.
        """
        require_fitted(self)
        calibration = require_calibration(self.model_.calibration)
        rng = None if random_state is None else np.random.default_rng(random_state)
        return conformal_p_values(calibration, self.anomaly_score(X), rng)

    def select(self, X: ArrayLike, *, fdr: float = 0.05) -> Bools:
        """Return which rows are anomalies at a false-discovery rate: True for selected rows.

        Of the selected rows, a fraction of at most `fdr` is expected to be ordinary rows (Benjamini and Hochberg's
        procedure on `p_values`).
        """
        check_fdr(fdr)
        return select_by_fdr(self.p_values(X), float(fdr))

    def with_scores(self, X: ArrayLike) -> Any:
        """Return the table with its scores as columns: `anomaly_score`, `outlier` (bool) and, after a fit with
        `calibration_fraction`, `p_value`.

        The result is of the same library as the table: a pandas frame keeps its index, a list of dictionaries stays a
        list. All other methods return NumPy arrays.

        >>> import pandas as pd
        >>> from rgld import RGLD
        >>> table = pd.DataFrame({"a": np.arange(100.0) ** 2, "b": np.arange(100.0) % 7})
        >>> detector = RGLD(random_state=0).fit(table)
        >>> detector.with_scores(pd.DataFrame({"a": [-9e5], "b": [3.0]}, index=["x"]))["outlier"]
        x    True
        Name: outlier, dtype: bool
        """
        X = collected(X)
        scores = self.anomaly_score(X)
        columns: dict[str, Any] = {"anomaly_score": scores, "outlier": -scores - self.offset_ < 0}
        if len(self.model_.calibration):
            columns["p_value"] = conformal_p_values(self.model_.calibration, scores)
        return with_columns(X, columns)

    def check(self, X: ArrayLike, *, alpha: float = 0.01, watch: Watch | None = None) -> Check:
        """Return whether a table is still like the training table: a verdict, and what has changed, in words.

        If nothing has changed, the verdict is an alarm with probability `alpha` at most. Columns are always compared,
        scores only if the fit held rows out (`calibration_fraction`). See `rgld.Check` and docs/drift.md.

        Parameters
        ----------
        X : table
            New rows, in the order they came in. If this is the order of a column of dates, the bets take them in
            random order.
        alpha : float in (0, 1), default=0.01
            Probability of a false alarm.
        watch : Watch or None
            The `watch` of the check of the table before this one, to go on betting where it stopped.

        Examples
        --------
        >>> from rgld import RGLD
        >>> X = np.random.default_rng(0).normal(size=(2000, 3))
        >>> detector = RGLD.fast(calibration_fraction=0.2, random_state=0).fit(X)
        >>> detector.check(X[:500] + [0, 0, 3]).reasons[0]
        'column 2: median 2.99 instead of -0.01718'
        """
        require_fitted(self)
        check_alpha(alpha)
        model: Model = self.model_
        table = Schema.of_fitted(self).read(X, unused=model.encoding.dropped)
        scores, relations = table_scores(model, table, self.n_jobs), relation_checks(model, table)
        return check_table(model.encoding, model.profiles, model.calibration, table, scores, alpha, watch, relations)

    def explain(self, X: ArrayLike) -> Explanation:
        """Return an explanation of each row: what each column contributed to its score, and reasons in words.

        See `rgld.Explanation` and docs/explanations.md for what a contribution is.

        >>> from rgld import RGLD
        >>> X = np.random.default_rng(0).normal(size=(500, 4))
        >>> explanation = RGLD.plus(random_state=0).fit(X).explain([[0.0, 9.0, 0.0, 0.0]])
        >>> explanation.top(1)
        array([[1]])
        >>> explanation.reasons(0, n_columns=1)
        ['column 1 = 9 is far above usual (usually -1.921 to 1.636)']
        """
        require_fitted(self)
        model: Model = self.model_
        table = Schema.of_fitted(self).read(X, shown=model.encoding.dropped)
        matrix = table.encode(model.encoding)
        scores = score_rows(model, table, matrix, self.n_jobs)
        return explain_rows(model, table, matrix, scores, self.n_jobs, -self.offset_, origin_of(X))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted detector to a file that `rgld.load` reads.

        An existing file is replaced only after the new one is complete. The file holds no code, but some training rows,
        column names and the values of categories: treat it as you treat the training table.
        """
        require_fitted(self)
        schema = Schema.of_fitted(self)
        save_detector(SavedDetector(given_parameters(self), schema, self.offset_, self.model_, self._stream), path)


def fit_and_score(detector: Detector, X: ArrayLike) -> Float64s:
    """Fit a detector and return the anomaly scores of the training rows. A fit that ranks all rows has them already;
    others score the rows afterwards."""
    scores = fit_in_memory(detector, X, with_scores=True).scores
    assert scores is not None, "they were asked for"
    return scores


def fit_in_memory(detector: Detector, X: ArrayLike, with_scores: bool = False) -> Fitted:
    """Fit a detector on a table in memory."""
    parameters = Parameters.of(detector)
    schema, table = read_training_table(X, unused=parameters.dropped_columns)
    fitted = fit_table(table, parameters, root_seed(parameters.random_state), with_scores=with_scores)
    detector._keep(schema, fitted)
    return fitted


def fit_in_passes(detector: Detector, executor: Executor) -> None:
    """Fit a detector on a table in parts, in passes that an executor runs: batch by batch, or on a cluster."""
    parameters = Parameters.of(detector)
    schema = Schema.of(executor.example())
    detector._keep(schema, fit_parts(executor, schema, parameters, root_seed(parameters.random_state)))


def _decide(decision: Float64s) -> Int64s:
    return np.where(decision < 0, -1, 1)


def require_fitted(detector: Detector) -> None:
    """Raise scikit-learn's `NotFittedError` if a detector is not fitted."""
    if not hasattr(detector, "model_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(detector)


def given_parameters(detector: Detector) -> dict[str, Any]:
    """Return the parameters as they were given, by name in alphabetical order; scikit-learn's `get_params`."""
    return {name: getattr(detector, name) for name in sorted(CONSTRAINTS)}


def load(path: str | PathLike[str]) -> Detector:
    """Return the fitted detector of a model file; `rgld.load` returns it as an estimator."""
    return restored(Detector, path)


def restored(kind: type[AnyDetector], path: str | PathLike[str]) -> AnyDetector:
    """Return the fitted detector of a model file as a detector of this class."""
    saved = load_detector(path)
    detector = kind(**saved.parameters)
    detector._keep(saved.schema, Fitted(saved.model, saved.offset), saved.stream)
    return detector
