"""Scores: those of each branch and of the relations, and the anomaly score made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._arrays import Float64s

if TYPE_CHECKING:  # the command line needs scores before it needs a model, which takes SciPy along
    from .model import Model

BEFORE_GAPS = 0.005
"""Rows with a new gap come after the rows that score above 1 minus this: a row that is far from all others is mostly
more unusual than a row that only misses a value."""
TOP_FRACTION, FEWEST_BEFORE, MOST_BEFORE = 0.0095, 0.002, 0.004
"""Rows that break a relation come after the most isolated rows, which score above 1 - `before`. Both together should
fit into the top hundredth of a table. So `before` is `TOP_FRACTION` less the fraction of the training rows that break a
relation, but at least `FEWEST_BEFORE` and at most `MOST_BEFORE`."""
RELATION_SPAN = 0.02
"""Rows that break a relation stay together, in the order of their relation scores: the places that these give them are
at most this far apart."""


class BranchScores(NamedTuple):
    """The parts of an anomaly score. Global and local score are ranks in (0, 1), higher is more anomalous; a branch
    without views has None."""

    global_score: Float64s | None
    local_score: Float64s | None
    relation_score: Float64s | None = None
    """In [0, 1): 0 for a row that breaks no relation. For the others, the fraction of the training rows that break no
    relation, or have less evidence. None if the model has no relations."""
    gap_score: Float64s | None = None
    """In [0, 1): 0 for a row without a new gap (a missing value in a column where no training value was missing). For
    the others, the fraction of new rows that are expected to have no new gap, if they are like the training rows. None
    if no row can have one, as in arrays."""
    date_score: Float64s | None = None
    """In [0, 1): 0 for a row whose dates are natural. For the others, the least anomaly score that a date of another
    age gives them (`_table/far_dates.py`). None if no row can have one."""


def anomaly_score(scores: BranchScores, model: Model) -> Float64s:
    """Return the anomaly score of each row: the weighted mean of its branch scores, or the score of the only branch.

    Three kinds of rows get at least a certain score:

    - a row that breaks a relation: 1 - (before + RELATION_SPAN (1 - relation score)), see `TOP_FRACTION` for `before`;
    - a row with a new gap: 1 - (BEFORE_GAPS + 1 - gap score);
    - a row with a date of another age: its date score, which may be the highest of all.

    All other rows keep the order that the branches give them.
    """
    score = _branch_mean(scores.global_score, scores.local_score, model.local_weight)
    if scores.gap_score is not None:
        # Up to half of the rest is left to the branches, which keep the order of such rows.
        place = 1.0 - (BEFORE_GAPS + 1.0 - scores.gap_score) * (1.0 - 0.5 * score)
        score = np.where(scores.gap_score > 0.0, np.maximum(score, place), score)
    if scores.date_score is not None:
        score = np.maximum(score, scores.date_score)
    relation_score = scores.relation_score
    if relation_score is None or model.relations is None:
        return score
    before = min(max(TOP_FRACTION - model.relations.broken_fraction, FEWEST_BEFORE), MOST_BEFORE)
    place = 1.0 - (before + RELATION_SPAN * (1.0 - relation_score))
    return np.where(relation_score > 0.0, np.maximum(score, place), score)


def _branch_mean(global_score: Float64s | None, local_score: Float64s | None, local_weight: float) -> Float64s:
    if global_score is None:
        assert local_score is not None, "check_parameters refuses a detector without a branch"
        return local_score
    if local_score is None:
        return global_score
    return (1.0 - local_weight) * global_score + local_weight * local_score
