"""Algorithm 1 of the paper: the fit, from top to bottom.

`fit_model` is the algorithm. Every way to fit ends in it:

    fit          -> fit_table -> fit_model                  all rows in memory
    partial_fit  -> fit_stream -> fit_table -> fit_model    a sample of a stream
    fit_batches  -> fit_parts -> fit_model                  several passes over batches on disk
    dask.fit     -> fit_parts -> fit_model                  the same passes on a Dask cluster
    spark.fit    -> fit_parts -> fit_model                  the same passes on a Spark cluster

In: rows and parameters. Out: a `Fitted` model. `training_rows.py` lists what the algorithm asks of the training rows;
`in_passes.py` answers it for rows that do not fit into memory.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .. import _kernels
from .._arrays import Float64s, Int64s
from .._kernels.relations import cells_of, n_broken_rows
from .._kernels.scoring import score_rows, with_relations
from .._kernels.threads import ONE_BLAS_THREAD
from .._model.model import GlobalBranch, LeverageBranch, Model
from .._model.relations import HeldOutBreaks
from .._model.scores import BranchScores, anomaly_score
from .._params import Parameters
from .._table.encoding import Encoding
from .._table.far_dates import date_score
from .._table.infer import with_medians
from .._table.profiles import Profiles, knot_places, profile_table, whole_profiles
from .._table.schema import Schema
from .._table.table import MIN_ROWS, Table, require_rows
from .._threshold import MAX_CALIBRATION_ROWS, fit_offset
from .background import begin
from .global_branch import draw_global, draw_pairs, finish_global, unfinished_global
from .in_memory import RowsInMemory, SomeRows
from .in_passes import Executor, RowsInPasses
from .inner_rows import inner_rows
from .leverage_branch import fit_leverage
from .local_branch import draw_kept_rows, draw_local, fit_local
from .relations import FittedRelations, fit_relations
from .sampling import key_limit_for, n_held_out, sample_size, split_rows, viewed_rows
from .scaling import fit_inner_scaling, fit_scaling
from .steps import PassContext, SurveyStep
from .stream import Stream
from .training_rows import TrainingRows
from .views import view_shape
from .whitening import whitened


@dataclass(frozen=True)
class Fitted:
    """The result of a fit."""

    model: Model
    offset: float
    """A row is an outlier if its negative anomaly score is below this."""
    scores: Float64s | None = None
    """Anomaly scores of all training rows, including held-out rows; None unless asked for, and all rows in memory."""


def fit_model(
    rows: TrainingRows, encoding: Encoding, parameters: Parameters, seed: int
) -> tuple[Model, BranchScores | None]:
    """Return the model by Algorithm 1, and the branch scores of the rows that it ranked: of all training rows if they
    are in memory, of some for `SomeRows`; None if they are in parts."""
    # 1. Preprocess: one scaling, or several for the views to take in turn.
    scaling, medians = fit_scaling(rows, encoding, parameters)

    # The branches learn from the inner rows of the sample: all of them, unless anomalous rows are trimmed (not in the
    # paper).
    inner = inner_rows(rows, scaling, encoding, parameters, seed)
    if parameters.trim:
        scaling = fit_inner_scaling(scaling, rows, inner.of_local, encoding)
    scaled = rows.scaled(scaling)

    # 2. Views: how many features S_t a view draws, and how many dimensions its projection R_t has.
    shape = view_shape(encoding, parameters, n_scalings=len(scaling.kinds))

    # 3. Global density branch: bandwidths from row pairs, then mean embeddings over all rows. Or leverage views.
    global_branch: GlobalBranch | LeverageBranch | None = None
    if parameters.n_global_views:
        pairs = draw_pairs(seed, inner.of_global, parameters.n_bandwidth_pairs)
        if parameters.global_score == "leverage":
            global_branch = fit_leverage(scaled.sample, inner.of_global, pairs, scaling, encoding, parameters, seed)
        else:
            drawn = draw_global(seed, parameters.n_global_views, shape, parameters.n_random_features)
            unfinished = unfinished_global(scaled.sample, drawn, pairs, parameters.bandwidth_multipliers)
            global_branch = finish_global(unfinished, scaled.embedding_sums(unfinished))

    # 4. Local neighbour branch: reference rows C_t, projected.
    local_branch = references = None
    if parameters.n_local_views:
        references = draw_local(seed, parameters.n_local_views, shape, inner.of_local, parameters.n_references)
        references = references._replace(views=whitened(references.views, scaled.sample, inner.of_local, shape, seed))
        local_branch = fit_local(scaled.sample, references, parameters.n_neighbors)

    # 5. Ranks: the frozen distributions of view scores and of branch scores over the training rows.
    branches = [branch for branch in (global_branch, local_branch) if branch is not None]
    fitted = scaled.fit_ranks(branches, parameters.aggregation)
    global_ranks = global_score = local_ranks = local_score = None
    if global_branch is not None:
        global_ranks, global_score = fitted[0]
    if local_branch is not None:
        local_ranks, local_score = fitted[-1]  # the second of two branches, or the only one

    del scaled  # of a wide table, these rows and the kept ones are most of the memory
    model = Model(
        with_medians(encoding, medians),
        scaling,
        global_branch,
        global_ranks,
        local_branch,
        local_ranks,
        float(parameters.local_weight),
        draw_kept_rows(seed, rows.sample, inner.of_local, references),
        calibration=np.empty(0),
    )
    scores = BranchScores(global_score, local_score)
    return model, scores if any(part is not None for part in scores) else None


def fit_table(
    table: Table,
    parameters: Parameters,
    seed: int,
    n_spanned: int | None = None,
    row_indices: Int64s | None = None,
    *,
    with_scores: bool = False,
) -> Fitted:
    """Return the fit on rows in memory. The rows of a stream are a sample: `n_spanned` rows lie between its first and
    last row, and `row_indices` are their indices in the stream."""
    learned, held_out, sampled = split_rows(len(table), table.n_columns, parameters, seed)
    training = table if held_out is None else table.take(learned)
    encoding = training.infer_encoding(parameters.columns, n_rows=n_spanned, na_values=parameters.na_values)
    matrix = table.encode(encoding, row_indices)  # all rows, so that an error names the row of the user's table
    sample = None if sampled is None else matrix[sampled]
    is_plain = sampled is None and encoding.is_plain
    places = knot_places(len(training), training.n_columns) if is_plain else None
    rows = RowsInMemory(matrix if held_out is None else matrix[learned], sample, parameters.n_jobs, places)
    sample_table = training if sampled is None else table.take(sampled)
    relating = partial(fit_relations, sample_table, encoding, rows.sample)
    viewed = viewed_rows(len(rows.sample), parameters, seed)
    cells, scores, needs_scores = None, np.empty(0), with_scores or not isinstance(parameters.contamination, str)
    # Threads of NumPy's matrix products, which are small here, would go on looking for work on the cores of the team.
    with ONE_BLAS_THREAD.held(), _kernels.team(rows.n_threads) as team:
        related = begin(relating, team, rows.matrix.size) if parameters.relations else None  # beside the views
        model, branch_scores = fit_model(rows if viewed is None else SomeRows(rows, viewed), encoding, parameters, seed)
        profiles = whole_profiles(len(training), *rows.knots) if rows.knots else _profiles(sample_table, encoding, rows)
        model = replace(model, profiles=profiles)
        if related is not None:
            fitted = related()
            model = _related(model, fitted)
            cells = fitted.cells if fitted is not None and sampled is None else None
        if viewed is not None:  # the fit has scored some rows only
            branch_scores = score_rows(model, training, rows.matrix, parameters.n_jobs) if needs_scores else None
        elif needs_scores:
            assert branch_scores is not None, "rows in memory have scores"
            branch_scores = with_relations(model, branch_scores, training, rows.matrix, cells)
            branch_scores = branch_scores._replace(date_score=date_score(model.encoding, training, rows.matrix))
    if needs_scores and branch_scores is not None:
        scores = anomaly_score(branch_scores, model)
    offset = fit_offset(parameters.contamination, scores)
    held_out_scores = np.empty(0)
    if held_out is not None:
        model, held_out_scores = _calibrated(model, table.take(held_out), parameters)
    if not with_scores:
        return Fitted(model, offset)
    every = np.empty(len(table))
    every[learned] = scores
    if held_out is not None:
        every[held_out] = held_out_scores
    return Fitted(model, offset, every)


def fit_stream(stream: Stream, parameters: Parameters) -> Fitted | None:
    """Return the fit on the sample of a stream; None if the stream has too few rows yet."""
    if stream.n_rows < MIN_ROWS:
        return None
    return fit_table(stream.table, parameters, stream.seed, stream.n_spanned, stream.row_indices)


def fit_parts(executor: Executor, schema: Schema, parameters: Parameters, seed: int) -> Fitted:
    """Return the fit on a table in parts, in several passes. A short table is fitted in memory after the first pass."""
    size = sample_size(schema.n_columns, parameters.n_references)
    n_drawn = size + (MAX_CALIBRATION_ROWS if parameters.calibration_fraction else 0)
    key_limit = np.inf if executor.n_rows is None else key_limit_for(executor.n_rows, n_drawn)
    unused, categories = parameters.dropped_columns, parameters.category_columns
    survey = executor.run(SurveyStep(schema, seed, n_drawn, unused, categories, parameters.na_values, key_limit))
    if survey.n_rows <= size:
        require_rows(survey.n_rows)
        return fit_table(survey.sample.table, parameters, seed)
    held_out, sample = survey.sample.split(n_held_out(survey.n_rows, parameters), size)
    summaries = survey.summaries_without(held_out.table)
    encoding = sample.table.infer_encoding(parameters.columns, summaries, na_values=parameters.na_values)
    context = PassContext(
        schema, encoding, held_out.indices, seed, survey.n_rows - len(held_out.indices), parameters.n_jobs
    )
    rows = RowsInPasses(executor, context, sample.table.encode(encoding, sample.indices))
    viewed = viewed_rows(len(rows.sample), parameters, seed)
    with ONE_BLAS_THREAD.held():  # as in memory
        model, _ = fit_model(rows if viewed is None else SomeRows(rows, viewed), encoding, parameters, seed)
        model = replace(model, profiles=_profiles(sample.table, encoding, rows))
        if parameters.relations:
            model = _related(model, fit_relations(sample.table, model.encoding, rows.sample))
    if isinstance(parameters.contamination, str):
        offset = fit_offset(parameters.contamination, np.empty(0))
    else:
        offset = -rows.scaled(model.scaling).score_at_rank(model, sample.table, 1.0 - parameters.contamination)
    if len(held_out.indices):
        model, _ = _calibrated(model, held_out.table, parameters, held_out.indices)
    return Fitted(model, offset)


def _profiles(table: Table, encoding: Encoding, rows: TrainingRows) -> Profiles:
    return profile_table(table, encoding, partial(_kernels.column_knots, n_threads=rows.n_threads))


def _related(model: Model, fitted: FittedRelations | None) -> Model:
    return model if fitted is None else replace(model, relations=fitted.relations)


def _calibrated(
    model: Model, table: Table, parameters: Parameters, row_indices: Int64s | None = None
) -> tuple[Model, Float64s]:
    """Return a finished model with what it must know of the held-out rows, and their anomaly scores."""
    matrix = table.encode(model.encoding, row_indices)
    scores = anomaly_score(score_rows(model, table, matrix, parameters.n_jobs), model)
    relations = model.relations
    if relations is not None:
        cells = cells_of(relations, model.encoding, table, matrix)
        relations = replace(relations, held_out=HeldOutBreaks(n_broken_rows(relations, cells)))
    return replace(model, calibration=np.sort(scores), relations=relations), scores
