"""Inner rows: the rows that the branches learn from, without the most anomalous training rows.

In: a sample of the training rows. Out: its inner rows. A first, cheap pass of local views scores the rows; the fraction
`trim` with the highest scores is left out. Anomalies then are not each other's neighbours, and they do not widen the
scale that they are measured by. Not in the paper, see docs/plus.md.
"""

from typing import NamedTuple

import numpy as np

from .. import _kernels
from .._arrays import Bools, Float64s, Int64s
from .._model.scaling import Scaling
from .._params import Parameters
from .._table.encoding import Encoding
from . import randomness
from .in_memory import RowsInMemory
from .local_branch import draw_local, fit_local
from .scaling import fit_scaling
from .training_rows import TrainingRows
from .views import view_shape

N_VIEWS, N_REFERENCES, N_NEIGHBORS = 36, 25, 3
"""The local views of the first pass. With few references, a clump of anomalies hardly has one of its own."""

GLOBAL_TRIM_FRACTION = 0.5
"""Global views leave out this fraction of the rows that local views leave out. A few anomalies hardly change a mean
over all inner rows, but a single one among the references hides others like it. And a covariance without the rows at
the edge of the data would be too small."""


class InnerRows(NamedTuple):
    """Indices of the inner rows in the sample, increasing."""

    of_global: Int64s
    """What global views learn from; `of_local` and more."""
    of_local: Int64s
    """What local views and scalings learn from."""


def inner_rows(
    rows: TrainingRows, scaling: Scaling, encoding: Encoding, parameters: Parameters, seed: int
) -> InnerRows:
    """Return the rows of the sample that are not trimmed.

    They depend on the sample alone, so that they are the same wherever a long table is fitted: its scaling is not used.
    """
    sample = rows.sample
    if not parameters.trim:
        return InnerRows(np.arange(len(sample)), np.arange(len(sample)))
    if not rows.is_whole:
        scaling, _ = fit_scaling(RowsInMemory(sample, None, parameters.n_jobs), encoding, parameters)
    shape = view_shape(encoding, parameters, n_scalings=len(scaling.kinds))
    shape = shape._replace(n_features=tuple(dict.fromkeys(shape.n_features)))
    drawn = draw_local(seed, N_VIEWS, shape, np.arange(len(sample)), N_REFERENCES, branch=randomness.FIRST_PASS)
    scaled = _kernels.Rows(sample, scaling, rows.n_threads, keep=True, features=drawn.views.features)
    _, scores = _kernels.fit_ranks(scaled, fit_local(scaled, drawn, N_NEIGHBORS), "standard")
    trims = GLOBAL_TRIM_FRACTION * parameters.trim, parameters.trim
    return InnerRows(*(np.flatnonzero(is_inner(scores, trim)) for trim in trims))


def is_inner(scores: Float64s, trim: float) -> Bools:
    """Return which rows stay: the ceil((1 - trim) n) with the lowest scores, at least 2, and all rows that tie with the
    last of them."""
    n_inner = min(len(scores), max(2, int(np.ceil((1.0 - trim) * len(scores)))))
    inner: Bools = scores <= np.partition(scores, n_inner - 1)[n_inner - 1]
    return inner
