"""Scores: those of each branch and of the relations, and the anomaly score made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._arrays import Float64s

if TYPE_CHECKING:  # the command line needs scores before it needs a model, which takes SciPy along
    from .model import Model

MOST_ISOLATED = 0.005
"""A row with a new gap does not come before the rows whose score is above 1 minus this: it is seldom more unusual than
a row that is far from all others."""
TOP, FEWEST_BEFORE, MOST_BEFORE = 0.0095, 0.002, 0.004
"""Rows that break a relation come after the most isolated rows, as many of them as leave room in the top hundredth: the
first fraction, less the fraction of training rows that break a relation; not below the second, nor above the third."""
P_WEIGHT = 0.02
"""Keeps the order among the rows that break a relation, and keeps them together."""


class BranchScores(NamedTuple):
    """The parts of an anomaly score. Global and local score are ranks in (0, 1), higher is more anomalous; a branch
    without views has None."""

    global_score: Float64s | None
    local_score: Float64s | None
    relation_score: Float64s | None = None
    """In [0, 1): 0 for a row that breaks no relation. For the others, the fraction of the training rows that break none
    of this kind, or one less surprisingly. None without relations."""
    gap_score: Float64s | None = None
    """In [0, 1): 0 for a row without a gap that is new, which is a missing value in a column where no training row
    missed one. For the others, the fraction of rows like the training rows that are expected to have none. None if no
    row can have one, as in arrays."""
    date_score: Float64s | None = None
    """In [0, 1): 0 for a row whose dates are natural. For the others, the least anomaly score that a date of another
    age gives them (`_table/far_dates.py`). None if no row can have one."""


def anomaly_score(scores: BranchScores, model: Model) -> Float64s:
    """Return the weighted mean of the branch scores, of one branch its score. A row that breaks a relation gets at
    least 1 - (before + P_WEIGHT p), where p is 1 - relation score and `before` is said at TOP. A row with a new gap
    gets at least 1 - (MOST_ISOLATED + p), where p is 1 - gap score. A row with a date of another age gets at least its
    date score, which may be the highest of all.

    So such rows come into the top hundredth, and the order of all other rows is that of the branches.
    """
    score = _branch_mean(scores.global_score, scores.local_score, model.local_weight)
    if scores.gap_score is not None:
        # Up to half of the rest is left to the branches, which keep the order of such rows.
        place = 1.0 - (MOST_ISOLATED + 1.0 - scores.gap_score) * (1.0 - 0.5 * score)
        score = np.where(scores.gap_score > 0.0, np.maximum(score, place), score)
    if scores.date_score is not None:
        score = np.maximum(score, scores.date_score)
    relation_score = scores.relation_score
    if relation_score is None or model.relations is None:
        return score
    before = min(max(TOP - model.relations.broken_fraction, FEWEST_BEFORE), MOST_BEFORE)
    place = 1.0 - (before + P_WEIGHT * (1.0 - relation_score))
    return np.where(relation_score > 0.0, np.maximum(score, place), score)


def _branch_mean(global_score: Float64s | None, local_score: Float64s | None, local_weight: float) -> Float64s:
    if global_score is None:
        assert local_score is not None, "check_parameters refuses a detector without a branch"
        return local_score
    if local_score is None:
        return global_score
    return (1.0 - local_weight) * global_score + local_weight * local_score
