"""What the commands do with a table: fit, score, rank, give reasons.

In: a file and options. Out: a `Scored` table. No printing here. The detector, and scikit-learn with it, is loaded when
it is needed: a wrong path is said at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import rgld
from rgld._threshold import conformal_p_values, select_by_fdr
from rgld.exceptions import ParameterError, TableError

from ._files import TableFile
from ._options import Infinity, Preset

if TYPE_CHECKING:
    from rgld import RGLD, Explanation

MOST_REASONS = 1000
"""Rows that get reasons in the output, the most anomalous ones: words for a million rows are read by no one."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """What a user asked for."""

    id: str | None = None
    label: str | None = None
    inf: Infinity = Infinity.error
    preset: Preset = Preset.plus
    seed: int = 0
    columns: dict[str, str] | None = None
    jobs: int | None = None
    calibrate: float = 0.0


@dataclass(frozen=True)
class Scored:
    """All rows of a table with their scores, and the most anomalous ones with all their cells."""

    detector: RGLD
    own_model: bool
    """The detector was fitted on this very table."""
    scores: Floats
    p_values: Floats | None
    ids: pl.Series
    """The id column, or the row numbers."""
    labels: NDArray[np.bool_] | None
    top_rows: NDArray[np.intp]
    """Numbers of the most anomalous rows, first the most anomalous."""
    top: pl.DataFrame
    """Their cells."""

    @property
    def ranks(self) -> NDArray[np.int64]:
        """1 for the most anomalous row; equal scores share the better rank."""
        ordered = np.sort(-self.scores)
        return np.searchsorted(ordered, -self.scores, side="left").astype(np.int64) + 1

    def explain(self) -> Explanation:
        """Explain the most anomalous rows."""
        named = hasattr(self.detector, "feature_names_in_")
        return self.detector.explain(self.top if named else self.top.to_numpy())


def make_detector(asked: Asked) -> RGLD:
    """Return an unfitted detector."""
    makers: dict[Preset, Callable[..., RGLD]] = {
        Preset.paper: rgld.RGLD,
        Preset.fast: rgld.RGLD.fast,
        Preset.plus: rgld.RGLD.plus,
    }
    return makers[asked.preset](
        random_state=asked.seed,
        n_jobs=asked.jobs,
        columns=asked.columns,
        calibration_fraction=asked.calibrate,
    )


def read_training(file: TableFile, asked: Asked) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the whole table, and the columns of it that a model may see."""
    frame = file.read()
    _require_columns(file, frame.columns, asked)
    features = frame.drop([name for name in (asked.id, asked.label) if name is not None])
    if asked.inf is Infinity.clip:
        features = clip_infinities(features, None)
    return frame, features


def fit_file(file: TableFile, asked: Asked) -> RGLD:
    """Fit a detector on a file."""
    _, features = read_training(file, asked)
    return make_detector(asked).fit(features)


def score_any(file: TableFile, asked: Asked, model: str | None, n_top: int, tell: Any) -> Scored:
    """Score a file by a model file or, without one, by a detector fitted on the file itself."""
    return score_table(file, asked, n_top) if model is None else score_with_model(file, asked, model, n_top, tell)


def score_table(file: TableFile, asked: Asked, n_top: int) -> Scored:
    """Fit a detector on a file and score the same rows.

    The p-value of a row is the share of the table's rows with a score at least as high: the fit treats all rows alike,
    so that this is a valid p-value if they are exchangeable (and says no more than the rank).
    """
    frame, features = read_training(file, asked)
    detector = make_detector(asked)
    scores = detector._fit(features)
    p_values = 1.0 - np.searchsorted(np.sort(scores), scores, side="left") / len(scores)
    rows = most_anomalous(scores, n_top)
    ids = frame[asked.id] if asked.id else _row_numbers(len(frame))
    labels = read_labels(frame[asked.label]) if asked.label else None
    return Scored(detector, True, scores, p_values, ids, labels, rows, features[rows])


def score_with_model(file: TableFile, asked: Asked, model: str, n_top: int, tell: Any) -> Scored:
    """Score a file by a model file, in batches: memory does not grow with the table but for scores and ids."""
    detector = rgld.load(model)
    detector.n_jobs = asked.jobs
    names = _model_columns(detector, file)
    _require_columns(file, file.columns(), asked)
    wanted = list(dict.fromkeys([*names, *(name for name in (asked.id, asked.label) if name)]))
    numbers = {column.name: pl.Float64 for column in detector.columns_ if column.kind == "number"}
    try:
        return _score_batches(file, asked, detector, names, wanted, numbers, n_top, tell)
    except TableError:
        if file.kind != "csv":
            raise
        # A cell of a column of numbers is no number: read all of them as text, and let the model's rules decide.
        return _score_batches(file, asked, detector, names, wanted, {}, n_top, tell)


def _score_batches(
    file: TableFile,
    asked: Asked,
    detector: RGLD,
    names: list[str],
    wanted: list[str],
    numbers: dict[str, Any],
    n_top: int,
    tell: Any,
) -> Scored:
    scores: list[Floats] = []
    ids: list[pl.Series] = []
    labels: list[pl.Series] = []
    top, top_rows, top_scores = None, np.empty(0, np.intp), np.empty(0)
    done = 0
    for frame in file.batches(wanted, numbers):
        features = frame.select(names)
        if asked.inf is Infinity.clip:
            features = clip_infinities(features, detector)
        named = hasattr(detector, "feature_names_in_")
        scores.append(detector.anomaly_score(features if named else features.to_numpy()))
        if asked.id:
            ids.append(frame[asked.id])
        if asked.label:
            labels.append(frame[asked.label])
        best = most_anomalous(scores[-1], n_top)
        kept = features[best]
        candidates = kept if top is None else pl.concat([top, kept])
        rows = np.concatenate([top_rows, best + done])
        values = np.concatenate([top_scores, scores[-1][best]])
        order = most_anomalous(values, n_top)
        top, top_rows, top_scores = candidates[order], rows[order], values[order]
        done += len(frame)
        tell(done)
    assert top is not None, "batches of a table have rows"
    every = np.concatenate(scores)
    calibration = detector.model_.calibration
    return Scored(
        detector,
        False,
        every,
        conformal_p_values(calibration, every) if len(calibration) else None,
        pl.concat(ids) if ids else _row_numbers(len(every)),
        read_labels(pl.concat(labels)) if labels else None,
        top_rows,
        top,
    )


def _model_columns(detector: RGLD, file: TableFile) -> list[str]:
    """Return the names of the file's columns that the model needs, in its order."""
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
        raise TableError(f"{file.shown} lacks columns that the model needs: {', '.join(missing[:3])}{more}.")
    return [str(name) for name in names]


def _require_columns(file: TableFile, present: Sequence[str], asked: Asked) -> None:
    for option, name in (("--id", asked.id), ("--label", asked.label)):
        if name is not None and name not in present:
            few = ", ".join(present[:8]) + (", ..." if len(present) > 8 else "")
            raise ParameterError(f"{option} {name}: {file.shown} has no such column; it has {few}.")


def most_anomalous(scores: Floats, n: int) -> NDArray[np.intp]:
    """Return the rows with the n highest scores, highest first; equal scores in the order of the table."""
    n = min(n, len(scores))
    if n < len(scores):
        lowest = np.partition(scores, len(scores) - n)[len(scores) - n] if n else np.inf
        candidates = np.flatnonzero(scores >= lowest)
    else:
        candidates = np.arange(len(scores))
    return candidates[np.argsort(-scores[candidates], kind="stable")][:n]


def _row_numbers(n: int) -> pl.Series:
    return pl.Series("row", np.arange(n))


def read_labels(labels: pl.Series) -> NDArray[np.bool_]:
    """Return which rows are labelled anomalies: of two values the rarer one."""
    counts = labels.drop_nulls().value_counts(sort=True)
    if labels.null_count() or len(counts) != 2:
        raise TableError(
            f"The label column {labels.name!r} must have two values and no gaps, it has {len(counts)} values and "
            f"{labels.null_count()} gaps: --label is for rows that are known to be ordinary or not."
        )
    anomalous: NDArray[np.bool_] = (labels == counts[labels.name][1]).to_numpy()
    return anomalous


def clip_infinities(frame: pl.DataFrame, detector: RGLD | None) -> pl.DataFrame:
    """Return the frame with infinite numbers replaced by the column's largest and smallest finite ones: of this table
    or, for a fitted detector, of its training sample."""
    columns = []
    for name, dtype in frame.schema.items():
        if not dtype.is_float() or not frame[name].is_infinite().any():
            continue
        finite = frame[name].filter(frame[name].is_finite())
        if detector is not None:
            encoding = detector.model_.encoding
            place = [column.name for column in encoding.columns].index(name)
            if encoding.columns[place].kind == "dropped":
                continue
            finite = pl.Series(detector.model_.sample.rows[:, encoding.starts[place]])
        if not len(finite):
            raise TableError(f"Column {name!r} holds nothing but infinities: leave it out with --column {name}=drop.")
        values = finite.to_numpy()
        columns.append(pl.col(name).clip(float(values.min()), float(values.max())))
    return frame.with_columns(columns)


def result_frame(scored: Scored, fdr: float | None, reasons: Sequence[str]) -> pl.DataFrame:
    """Return the output: id, score, rank, p-value, whether selected, reasons of the most anomalous rows."""
    words = np.full(len(scored.scores), "", dtype=object)
    words[scored.top_rows[: len(reasons)]] = reasons
    columns: dict[str, Any] = {"score": scored.scores, "rank": scored.ranks}
    if scored.p_values is not None:
        columns["p_value"] = scored.p_values
    if fdr is not None:
        columns["selected"] = selected(scored, fdr)
    name = scored.ids.name
    while name in (*columns, "reasons"):
        name = f"id_{name}"
    return pl.DataFrame({name: scored.ids, **columns, "reasons": pl.Series(words.tolist(), dtype=pl.String)})


def selected(scored: Scored, fdr: float) -> NDArray[np.bool_]:
    """Return the selection at a false-discovery rate."""
    if scored.own_model:
        raise ParameterError(
            "--fdr needs a model of other rows: the rows a model was fitted on are unusual only among themselves; "
            "fit with `rgld fit`, then score new rows with --model."
        )
    if scored.p_values is None:
        raise ParameterError("--fdr needs a calibrated model: fit it with `rgld fit --calibrate 0.2`.")
    return select_by_fdr(scored.p_values, fdr)
