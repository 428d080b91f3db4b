"""Scoring: the scores of rows by a finished model."""

import warnings
from typing import Any

import numpy as np

from .. import _kernels
from .._arrays import Float64s, Floats
from .._model.model import Model
from .._model.scores import BranchScores, anomaly_score
from .._table.far_dates import date_score
from .._table.gaps import gap_score
from .._table.schema import Schema
from .._table.table import Table
from ..exceptions import TableWarning
from .relations import Cells, cells_of, relation_score
from .threads import threads_for


def score_rows(model: Model, table: Table, matrix: Floats, n_jobs: int | None) -> BranchScores:
    """Return the scores of rows as they were read, and encoded, shape (n, e)."""
    rows = _kernels.Rows(matrix, model.scaling, threads_for(len(matrix), n_jobs))
    scores = BranchScores(
        *_kernels.branch_scores(rows, model),
        gap_score=gap_score(model.encoding, table, matrix),
        date_score=date_score(model.encoding, table, matrix),
    )
    return with_relations(model, scores, table, matrix)


def table_scores(model: Model, table: Table, n_jobs: int | None) -> Float64s:
    """Return the anomaly scores of rows as they were read."""
    return anomaly_score(score_rows(model, table, table.encode(model.encoding), n_jobs), model)


def score_part(detector: Any, X: Any, first_row: int = 0) -> BranchScores:
    """Return the branch scores of rows by a fitted detector, of which only public attributes are asked. If the rows are
    a part of a longer table, errors name the row of that table."""
    model: Model = detector.model_
    table = Schema.of_fitted(detector).read(X, unused=model.encoding.dropped, first_row=first_row)
    row_indices = first_row + np.arange(len(table)) if first_row else None
    unread: list[str] = []
    matrix = table.encode(model.encoding, row_indices, unread)
    if unread:
        warnings.warn(" ".join(unread), TableWarning, stacklevel=3)
    return score_rows(model, table, matrix, detector.n_jobs)


def with_relations(
    model: Model, scores: BranchScores, table: Table, matrix: Floats, cells: Cells | None = None
) -> BranchScores:
    """Return the branch scores with the relation score, if the model has relations. `cells` are those of the table, if
    they were read already."""
    if model.relations is None:
        return scores
    if cells is None:
        cells = cells_of(model.relations, model.encoding, table, matrix)
    return scores._replace(relation_score=relation_score(model.relations, cells))
