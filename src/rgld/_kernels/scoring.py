"""Scoring: the scores of rows by a finished model."""

from .. import _kernels
from .._arrays import Floats
from .._model.model import Model
from .._model.scores import BranchScores
from .._table.gaps import gap_score
from .._table.table import Table
from .relations import Cells, cells_of, relation_score
from .threads import threads_for


def score_rows(model: Model, table: Table, matrix: Floats, n_jobs: int | None) -> BranchScores:
    """Return the scores of rows as they were read, and encoded, shape (n, e)."""
    rows = _kernels.Rows(matrix, model.scaling, threads_for(len(matrix), n_jobs))
    scores = BranchScores(*_kernels.branch_scores(rows, model), gap_score=gap_score(model.encoding, table, matrix))
    return with_relations(model, scores, table, matrix)


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
