"""Scoring: a file's rows with their scores, ranks, p-values and the cells of the most anomalous ones.

In: a file and options. Out: a `Scored` table, and the frame that is written of it. No printing here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import rgld
from rgld._cells import MISSING_WORDS
from rgld._threshold import conformal_p_values, select_by_fdr
from rgld.exceptions import ParameterError, TableError

from ._files import NotANumberError, TableFile
from ._fitting import Asked, Infinity, clip_infinities, make_detector, read_training, require_columns

if TYPE_CHECKING:
    from rgld import RGLD, Explanation

MOST_REASONS = 1000
"""Rows that get reasons in the output, the most anomalous ones: words for a million rows are read by no one."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """All rows of a table with their scores, and the most anomalous ones with all their cells."""

    detector: RGLD
    scores: Floats
    p_values: Floats | None
    ids: pl.Series
    """The id column, or the row numbers."""
    labels: NDArray[np.bool_] | None
    top_rows: NDArray[np.intp]
    """Numbers of the most anomalous rows, first the most anomalous."""
    top: pl.DataFrame
    """Their cells."""
    notes: tuple[str, ...] = ()
    """What could not be read."""

    @property
    def ranks(self) -> NDArray[np.int64]:
        """1 for the most anomalous row; equal scores share the better rank."""
        return count_at_least(self.scores, ties="min")

    def explain(self) -> Explanation:
        """Explain the most anomalous rows."""
        return self.detector.explain(_as_fitted(self.detector, self.top))


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
    p_values = count_at_least(scores, ties="max") / len(scores)
    ids = frame[asked.id] if asked.id else _row_numbers(len(frame))
    labels = read_labels(frame[asked.label]) if asked.label else None
    rows = _kept(asked, scores, ids, n_top)
    return Scored(detector, scores, p_values, ids, labels, rows, features[rows])


def score_with_model(file: TableFile, asked: Asked, model: str, n_top: int, tell: Any) -> Scored:
    """Score a file by a model file, in batches: memory does not grow with the table but for scores and ids."""
    detector = rgld.load(model)
    detector.n_jobs = asked.jobs
    names = _model_columns(detector, file)
    require_columns(file, file.columns(), asked)
    numbers = {
        name: pl.Float64 for name, column in zip(names, detector.columns_, strict=True) if column.kind == "number"
    }
    try:
        return _score_batches(file, asked, detector, names, numbers, n_top, tell)
    except NotANumberError:  # all columns as text, then, and the model's rules decide what a cell is
        return _score_batches(file, asked, detector, names, {}, n_top, tell)


def _score_batches(
    file: TableFile, asked: Asked, detector: RGLD, names: list[str], numbers: dict[str, Any], n_top: int, tell: Any
) -> Scored:
    wanted = list(dict.fromkeys([*names, *(name for name in (asked.id, asked.label) if name)]))
    scores: list[Floats] = []
    ids: list[pl.Series] = []
    labels: list[pl.Series] = []
    unread: dict[str, tuple[int, str]] = {}
    top, top_rows, top_scores = None, np.empty(0, np.intp), np.empty(0)
    done = 0
    for frame in file.batches(wanted, numbers):
        features = frame.select(names)
        if asked.inf is Infinity.clip:
            features = clip_infinities(features, detector)
        count_unread(detector, features, unread)
        scores.append(detector.anomaly_score(_as_fitted(detector, features)))
        ids.append(frame[asked.id] if asked.id else _row_numbers(len(frame)) + done)
        if asked.label:
            labels.append(frame[asked.label])
        best = _kept(asked, scores[-1], ids[-1], n_top)
        candidates = features[best] if top is None else pl.concat([top, features[best]])
        rows = np.concatenate([top_rows, best + done])
        values = np.concatenate([top_scores, scores[-1][best]])
        order = most_anomalous(values, len(values) if asked.rows else n_top)
        top, top_rows, top_scores = candidates[order], rows[order], values[order]
        done += len(frame)
        tell(done)
    assert top is not None, "batches of a table have rows"
    every = np.concatenate(scores)
    calibration = detector.model_.calibration
    return Scored(
        detector,
        every,
        conformal_p_values(calibration, every) if len(calibration) else None,
        pl.concat(ids),
        read_labels(pl.concat(labels)) if labels else None,
        top_rows,
        top,
        tuple(
            f"{name}: {n:,} values cannot be read and count as missing, such as {x!r}"
            for name, (n, x) in unread.items()
        ),
    )


def _as_fitted(detector: RGLD, features: pl.DataFrame) -> Any:
    """Return rows as the detector was fitted: a frame with its names, or a plain array."""
    if hasattr(detector, "feature_names_in_"):
        return features
    return features.cast(pl.Float64, strict=False).to_numpy()


def count_unread(detector: RGLD, features: pl.DataFrame, unread: dict[str, tuple[int, str]]) -> None:
    """Add up the texts that a model cannot read as what their column holds, by column, with an example."""
    from rgld._encoding import read_texts

    for name, column in zip(features.columns, detector.columns_, strict=True):
        if column.kind in ("category", "dropped") or features[name].dtype != pl.String:
            continue
        counts = features[name].drop_nulls().value_counts()
        texts = [text for text in counts[name] if text.strip() not in MISSING_WORDS]
        is_bad = np.isnan(read_texts(column, texts)) if texts else np.zeros(0, bool)
        if is_bad.any():
            bad = [text for text, holds in zip(texts, is_bad, strict=True) if holds]
            n = int(counts.filter(pl.col(name).is_in(bad))["count"].sum())
            before, example = unread.get(name, (0, min(bad)[:40]))
            unread[name] = (before + n, example)


def _kept(asked: Asked, scores: Floats, ids: pl.Series, n_top: int) -> NDArray[np.intp]:
    """Return the rows whose cells are kept: those asked for, or the most anomalous ones."""
    if not asked.rows:
        return most_anomalous(scores, n_top)
    named = np.flatnonzero(ids.cast(pl.String).is_in(asked.rows).to_numpy())
    # Of rows with the same name, the most anomalous one.
    order: NDArray[np.intp] = named[np.argsort(-scores[named], kind="stable")]
    first: NDArray[np.intp] = order[ids[order].cast(pl.String).is_first_distinct().to_numpy()]
    return first


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
        raise TableError(
            f"{file.shown} lacks columns that the model needs: {', '.join(missing[:3])}{more}; score a table "
            "with the columns it was fitted on."
        )
    return [str(name) for name in names]


def most_anomalous(scores: Floats, n: int) -> NDArray[np.intp]:
    """Return the rows with the n highest scores, highest first; equal scores in the order of the table."""
    return np.argsort(-scores, kind="stable")[:n]


def count_at_least(scores: Floats, ties: str) -> NDArray[np.int64]:
    """Return how many rows score at least as high as each row; of equal scores one ("min") or all ("max") count."""
    from scipy.stats import rankdata

    counts: NDArray[np.int64] = rankdata(-scores, method=ties).astype(np.int64)
    return counts


def _row_numbers(n: int) -> pl.Series:
    return pl.Series("row", np.arange(n))


def read_labels(labels: pl.Series) -> NDArray[np.bool_]:
    """Return which rows are labelled anomalies: of two values the rarer one."""
    from rgld.bench.datasets import binary_labels

    if labels.null_count():
        raise TableError(
            f"The label column {labels.name!r} must have two values and no gaps, it has {labels.null_count()} gaps: "
            "--label is for rows that are known to be ordinary or not."
        )
    return binary_labels(labels.to_numpy(), labels.name).astype(bool)


def id_name(ids: pl.Series, taken: Sequence[str]) -> str:
    """Return a name for the column of ids that no other column has."""
    name = ids.name
    while name in taken:
        name = f"id_{name}"
    return name


def result_frame(scored: Scored, fdr: float | None, reasons: Sequence[str]) -> pl.DataFrame:
    """Return the output: id, score, rank, p-value, whether selected, reasons of the most anomalous rows."""
    words = np.full(len(scored.scores), "", dtype=object)
    words[scored.top_rows[: len(reasons)]] = reasons
    columns: dict[str, Any] = {"score": scored.scores, "rank": scored.ranks}
    if scored.p_values is not None:
        columns["p_value"] = scored.p_values
    if fdr is not None:
        columns["selected"] = selected(scored, fdr)
    name = id_name(scored.ids, [*columns, "reasons"])
    return pl.DataFrame({name: scored.ids, **columns, "reasons": pl.Series(words.tolist(), dtype=pl.String)})


def fewest_selected(scored: Scored, fdr: float) -> int:
    """Return how many rows a selection has at least, if it has any: the smallest p-value is 1 / (h + 1)."""
    return math.ceil(len(scored.scores) / ((len(scored.detector.model_.calibration) + 1) * fdr))


def selected(scored: Scored, fdr: float) -> NDArray[np.bool_]:
    """Return the selection at a false-discovery rate."""
    if scored.p_values is None:
        raise ParameterError("--fdr needs a calibrated model: fit it with `rgld fit --calibrate 0.2`.")
    return select_by_fdr(scored.p_values, fdr)
