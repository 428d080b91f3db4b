"""Scoring: a file's rows with their scores, ranks and p-values, and the cells of the most anomalous rows.

In: a file and options. Out: a `Scored` table. This module prints nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from rgld._arrays import Bools, Float64s, Indices, Int64s
from rgld._model.scores import anomaly_score
from rgld._table.cells import MISSING_WORDS
from rgld._threshold import conformal_p_values
from rgld.exceptions import TableError, TableWarning

from ._files import BATCH_CELLS, NotANumberError, TableFile
from ._fitting import clip_infinities, make_detector, read_training, require_columns, row_names
from ._lines import RowIds
from ._options import Infinity, Scoring
from ._output import printed_column

if TYPE_CHECKING:
    from rgld import Explanation
    from rgld._detector import Detector

MIN_CHECK_SAMPLE, MAX_CHECK_SAMPLE = 2**14, 2**17
"""Rows whose columns are compared with the training table: fewer in wide tables, but not fewer than the first."""
SAMPLE_SEED = 0
MAX_EXAMPLE = 40
"""Characters shown of a value that cannot be read."""


@dataclass(frozen=True)
class Scored:
    """All rows of a table with their scores, and the most anomalous ones with all their cells."""

    detector: Detector
    scores: Float64s
    p_values: Float64s | None
    """None unless a calibrated model scored the rows: the rank of a row in its own table is no p-value."""
    ids: pl.Series
    """The id column; without one, the lines of a CSV file or the row indices."""
    labels: Bools | None
    top_rows: Indices
    """Indices of the most anomalous rows, the most anomalous first."""
    top: pl.DataFrame
    """The cells of these rows."""
    notes: tuple[str, ...] = ()
    """Which values could not be read."""
    sample: pl.DataFrame | None = None
    """Cells of all rows, or of some of a long table, chosen at random, if the rows were scored by a model file."""

    @property
    def ranks(self) -> Int64s:
        """1 for the most anomalous row; equal scores share the better rank."""
        return count_at_least(self.scores, ties="min")

    @property
    def top_share(self) -> Float64s:
        """The fraction of the rows with a score at least as high: 0.01 for a row among the highest 1 %."""
        return count_at_least(self.scores, ties="max") / len(self.scores)

    def explain(self) -> Explanation:
        """Explain the most anomalous rows."""
        return self.detector.explain(as_fitted(self.detector, self.top))


def score_any(
    file: TableFile, scoring: Scoring, n_top: int, tell: Callable[[int], None], rows: Sequence[str] = ()
) -> Scored:
    """Score a file by a model file or, without one, by a detector fitted on the file itself.

    `top` holds the `n_top` most anomalous rows or, if `rows` names rows by their ids, these rows.
    """
    choose = _Chooser(n_top, tuple(rows))
    return score_table(file, scoring, choose) if scoring.model is None else _score_by_model(file, scoring, choose, tell)


def score_table(file: TableFile, scoring: Scoring, choose: _Chooser) -> Scored:
    """Fit a detector on a file and score the same rows. There are no p-values: no rows are held out."""
    from rgld._detector import fit_and_score  # not for `--help` and wrong paths: it takes a while to load

    frame, features = read_training(file, scoring)
    detector = make_detector(scoring)
    scores = fit_and_score(detector, features)
    names = row_names(frame, scoring)
    ids = RowIds(file).of_all(len(frame), are_asked_for=bool(choose.names)) if names is None else names
    labels = read_labels(frame[scoring.label]) if scoring.label else None
    rows = choose(scores, ids)
    return Scored(detector, scores, None, ids, labels, rows, features[rows])


@dataclass(frozen=True)
class _Chooser:
    """Chooses the rows whose cells are kept: rows named by their ids, else the most anomalous ones."""

    n_top: int
    names: tuple[str, ...]

    def __call__(self, scores: Float64s, ids: pl.Series) -> Indices:
        """Return indices of rows, the most anomalous first."""
        if not self.names:
            return most_anomalous(scores, self.n_top)
        named = np.flatnonzero(printed_column(ids).is_in(self.names).to_numpy())
        order: Indices = named[np.argsort(-scores[named], kind="stable")]
        # Of several rows with the same id, the most anomalous one.
        first: Indices = order[printed_column(ids[order]).is_first_distinct().to_numpy()]
        return first


def _score_by_model(file: TableFile, scoring: Scoring, choose: _Chooser, tell: Callable[[int], None]) -> Scored:
    """Score a file by a model file, in batches. Of all rows, memory holds only scores, ids and labels."""
    detector, names = _loaded(file, scoring)
    try:
        return _score_batches(file, scoring, detector, names, _number_columns(detector, names), choose, tell)
    except NotANumberError:  # read all columns as text: the model's rules decide what a cell is
        return _score_batches(file, scoring, detector, names, {}, choose, tell)


def read_for_model(file: TableFile, scoring: Scoring) -> tuple[Detector, pl.DataFrame, Any]:
    """Return the model of `--model`, the columns of a file that it needs and those of `--id` and `--label`, and the
    rows as the model reads them."""
    detector, names = _loaded(file, scoring)
    wanted = list(dict.fromkeys([*names, *scoring.set_aside]))
    try:
        frame = pl.concat(file.batches(wanted, _number_columns(detector, names)))
    except NotANumberError:  # read all columns as text: the model's rules decide what a cell is
        frame = pl.concat(file.batches(wanted, {}))
    features = frame.select(names)
    if scoring.inf is Infinity.clip:
        features = clip_infinities(features, detector)
    return detector, frame, as_fitted(detector, features)


def _loaded(file: TableFile, scoring: Scoring) -> tuple[Detector, list[str]]:
    """Return the model of `--model`, and the columns of a file that it reads."""
    from rgld._detector import load

    assert scoring.model is not None
    detector = load(scoring.model)
    detector.n_jobs = scoring.jobs
    names = model_columns(detector, file)
    require_columns(file, file.columns(), scoring)
    return detector, names


def _number_columns(detector: Detector, names: list[str]) -> dict[str, Any]:
    """Return the columns of a CSV file that are read as numbers. Those with a unit or a decimal comma are strings."""
    return {
        name: pl.Float64
        for name, column in zip(names, detector.columns_, strict=True)
        if column.kind == "number" and not (column.unit or column.decimal_comma)
    }


def _score_batches(
    file: TableFile,
    scoring: Scoring,
    detector: Detector,
    names: list[str],
    number_columns: dict[str, Any],
    choose: _Chooser,
    tell: Callable[[int], None],
) -> Scored:
    from rgld._kernels.scoring import score_part

    wanted = list(dict.fromkeys([*names, *scoring.set_aside]))
    gathered = _Gathered(choose)
    row_ids = RowIds(None if scoring.keys else file)
    unread: dict[str, tuple[int, str]] = {}
    labels: list[pl.Series] = []
    for frame in file.batches(wanted, number_columns):
        features = frame.select(names)
        if scoring.inf is Infinity.clip:
            features = clip_infinities(features, detector)
        count_unread(detector, features, unread)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)  # `count_unread` says it, once for all batches
            branch_scores = score_part(detector, as_fitted(detector, features), first_row=gathered.n_rows)
        scores = anomaly_score(branch_scores, detector.model_)
        own_names = row_names(frame, scoring)
        ids = row_ids.of(gathered.n_rows, len(frame)) if own_names is None else own_names
        if scoring.label:
            labels.append(frame[scoring.label])
        gathered.add(scores, ids, features)
        tell(gathered.n_rows)
    scores = np.concatenate(gathered.scores)
    calibration = detector.model_.calibration
    return Scored(
        detector,
        scores,
        conformal_p_values(calibration, scores) if len(calibration) else None,
        pl.concat(gathered.ids) if scoring.keys else row_ids.of_all(len(scores), are_asked_for=bool(choose.names)),
        read_labels(pl.concat(labels)) if labels else None,
        gathered.top_rows,
        pl.concat(gathered.top),
        tuple(
            f"{name}: {n:,} values cannot be read and count as missing, such as {example!r}"
            for name, (n, example) in unread.items()
        ),
        gathered.sample.frame(),
    )


class _Gathered:
    """What is kept of the batches scored so far: scores and ids of all rows, cells of the most anomalous rows."""

    def __init__(self, choose: _Chooser) -> None:
        self.choose = choose
        self.n_rows = 0
        self.scores: list[Float64s] = []
        self.ids: list[pl.Series] = []
        self.top: list[pl.DataFrame] = []
        self.top_rows: Indices = np.empty(0, np.intp)
        self._top_scores = np.empty(0)
        self.sample = _Sample()

    def add(self, scores: Float64s, ids: pl.Series, features: pl.DataFrame) -> None:
        """Add a batch."""
        best = self.choose(scores, ids)
        candidates = pl.concat([*self.top, features[best]])
        rows = np.concatenate([self.top_rows, best + self.n_rows])
        values = np.concatenate([self._top_scores, scores[best]])
        order = most_anomalous(values, len(values) if self.choose.names else self.choose.n_top)
        self.top, self.top_rows, self._top_scores = [candidates[order]], rows[order], values[order]
        self.scores.append(scores)
        self.ids.append(ids)
        self.sample.add(features, self.n_rows)
        self.n_rows += len(scores)


class _Sample:
    """A uniform sample of the rows, to compare their columns with the training table; all rows of a short table."""

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []
        self._keys = np.empty(0)

    def add(self, features: pl.DataFrame, first_row: int) -> None:
        """Add a batch."""
        from rgld._fit.randomness import row_keys

        self._frames.append(features)
        self._keys = np.append(self._keys, row_keys(SAMPLE_SEED, first_row + np.arange(len(features)), None))
        if len(self._keys) > 2 * self._size(features):
            chosen = self._chosen(features)
            self._frames, self._keys = [pl.concat(self._frames)[chosen]], self._keys[chosen]

    def frame(self) -> pl.DataFrame:
        """Return the rows with the smallest keys, in the order of the table."""
        frame = pl.concat(self._frames)
        return frame if len(frame) <= self._size(frame) else frame[self._chosen(frame)]

    def _chosen(self, frame: pl.DataFrame) -> Int64s:
        return np.sort(np.argsort(self._keys, kind="stable")[: self._size(frame)])

    @staticmethod
    def _size(frame: pl.DataFrame) -> int:
        return int(np.clip(BATCH_CELLS // max(1, frame.width), MIN_CHECK_SAMPLE, MAX_CHECK_SAMPLE))


def as_fitted(detector: Detector, features: pl.DataFrame) -> Any:
    """Return rows as the detector was fitted: a frame with its names, or a plain array."""
    if hasattr(detector, "feature_names_in_"):
        return features
    return features.cast(pl.Float64, strict=False).to_numpy()


def count_unread(detector: Detector, features: pl.DataFrame, unread: dict[str, tuple[int, str]]) -> None:
    """Add to `unread`, by column: how many strings the model cannot read as the column's kind, and an example."""
    from rgld._table.encoding import numbers_of_strings

    for name, column in zip(features.columns, detector.columns_, strict=True):
        if column.kind in ("category", "dropped") or features[name].dtype != pl.String:
            continue
        counts = features[name].drop_nulls().value_counts()
        strings = [string for string in counts[name] if string.strip() not in MISSING_WORDS]
        is_bad = np.isnan(numbers_of_strings(column, strings)) if strings else np.zeros(0, bool)
        if is_bad.any():
            bad = [string for string, holds in zip(strings, is_bad, strict=True) if holds]
            n = int(counts.filter(pl.col(name).is_in(bad))["count"].sum())
            before, example = unread.get(name, (0, min(bad)[:MAX_EXAMPLE]))
            unread[name] = (before + n, example)


def model_columns(detector: Detector, file: TableFile) -> list[str]:
    """Return the names of the file's columns that the model needs, in the model's order."""
    present = file.columns()
    names = getattr(detector, "feature_names_in_", None)
    if names is None:
        if len(present) < detector.n_features_in_:
            raise TableError(
                f"{file.shown} has {len(present)} columns, the model needs {detector.n_features_in_}: "
                "score a table like the one it was fitted on."
            )
        return present[: detector.n_features_in_]
    missing = [str(name) for name in names if name not in present]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise TableError(
            f"{file.shown} lacks columns that the model needs: {', '.join(missing[:3])}{more}; score a table "
            "with the columns it was fitted on."
        )
    return [str(name) for name in names]


def most_anomalous(scores: Float64s, n: int) -> Indices:
    """Return the indices of the n highest scores, highest first; equal scores in the order of the table."""
    return np.argsort(-scores, kind="stable")[:n]


def count_at_least(scores: Float64s, ties: str) -> Int64s:
    """Return how many rows score at least as high as each row; of equal scores one ("min") or all ("max") count."""
    below = np.searchsorted(np.sort(scores), scores, side="right" if ties == "min" else "left")
    counts: Int64s = len(scores) - below + (1 if ties == "min" else 0)
    return counts


def read_labels(labels: pl.Series) -> Bools:
    """Return which rows are labelled anomalies: of two values the rarer one."""
    if labels.null_count():
        raise TableError(
            f"The label column {labels.name!r} must have two values and no missing ones, it has "
            f"{labels.null_count():,} missing: --label is for rows that are known to be ordinary or anomalous."
        )
    values, counts = np.unique(labels.to_numpy(), return_counts=True)
    if len(values) != 2:
        raise TableError(f"Expected two values in the label column {labels.name!r}, got {len(values)}.")
    is_anomaly: Bools = labels.to_numpy() == values[counts.argmin()]
    return is_anomaly
