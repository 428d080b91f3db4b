"""Sizes: the lengths that all arrays of a model follow from, and how large they may be.

In: the sizes that a file gives. Out: `Sizes`, or a `ModelFileError`. A file is refused before an array is read or made
if scoring with its model, or going on with its stream, would take too much memory.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from .._fit.global_branch import MAX_PAIR_ROWS
from .._fit.local_branch import MAX_KEPT_CELLS
from .._fit.views import LARGEST_PROJECTION_DIM, n_view_features, projection_dim
from .._fit.whitening import MAX_COVARIANCE_ROWS
from .._kernels.blocks import SMALLEST_BLOCK
from .._params import PREPROCESSINGS
from .._threshold import MAX_CALIBRATION_ROWS
from ..exceptions import ModelFileError

MAX_ROWS = 2**40
"""Training rows: more than any table has. With far more, ranks would round to 1."""
MAX_SIZE = 2**31 - 1
"""The largest value of any other size."""
MAX_COLUMNS = 2**20
"""Columns of a table. A header has no room to name more, and a column without a name takes memory too."""
MAX_PROJECTION_DIM = 1024
"""The largest `projection_dim` that a detector takes."""
MAX_NUMBERS = 2**26
"""Numbers in the largest array that scoring or `partial_fit` makes: 512 MiB. A small file must not take more memory."""
MIN_NUMBERS_PER_VIEW = 2**12
"""In a fit, a view counts as at least this many numbers: drawing it takes time."""


class Sizes(NamedTuple):
    """The lengths that the shapes of all arrays follow from. A branch without views has zeros."""

    n_columns: int
    """Encoded columns."""
    n_rows: int
    """Training rows."""
    n_ranked_rows: int
    """Training rows that views and distributions were learned from; at least as many as quantiles of a column."""
    n_features: int
    projection_dim: int
    n_global_views: int
    n_random_features: int
    n_bandwidths: int
    n_local_views: int
    n_references: int
    n_neighbors: int
    n_sample_rows: int
    """Kept rows."""
    n_sample_views: int
    """Local views whose references are among the kept rows."""
    n_calibration: int
    n_leverage_views: int
    leverage_dim: int
    n_cosines: int
    n_relation_rows: int
    """Training rows that relations were learned from; 0 without relations."""


def parse_sizes(content: Any) -> Sizes:
    """Return the sizes, if a fitted model can have them and scoring with it takes little memory."""
    if not isinstance(content, dict) or set(content) != set(Sizes._fields):
        raise ModelFileError("The model file does not give the sizes of a model.")
    sizes = Sizes(**content)
    if not all(type(size) is int for size in sizes) or not _are_possible(sizes):
        raise ModelFileError("The model file gives sizes that no fitted model has.")
    _check_budget(_scoring_numbers(sizes))
    return sizes


def _check_budget(n_numbers: int) -> None:
    if n_numbers > MAX_NUMBERS:
        raise ModelFileError(
            f"The model file's sizes would need arrays of {min(n_numbers, 10**30)} numbers, expected at most "
            f"{MAX_NUMBERS}: use fewer views, random features, bandwidths, references or scalings."
        )


def _are_possible(sizes: Sizes) -> bool:
    """Check the sizes against their limits and against each other."""
    has_global, has_local, has_leverage = (
        n_views > 0 for n_views in (sizes.n_global_views, sizes.n_local_views, sizes.n_leverage_views)
    )
    return (
        all(0 <= size <= MAX_SIZE for size in sizes._replace(n_rows=0, n_ranked_rows=0))
        and 2 <= sizes.n_ranked_rows <= sizes.n_rows <= MAX_ROWS
        and 1 <= sizes.n_columns <= MAX_COLUMNS
        and sizes.n_features <= sizes.n_columns
        and sizes.projection_dim <= MAX_PROJECTION_DIM
        and (has_global or has_local) == (sizes.n_features > 0) == (sizes.projection_dim > 0)
        and (has_global or has_local or has_leverage)
        and not (has_global and has_leverage)
        and has_leverage == (sizes.leverage_dim > 0) == (sizes.n_cosines > 0)
        and sizes.leverage_dim <= min(sizes.n_columns, LARGEST_PROJECTION_DIM)
        and has_global == (sizes.n_random_features > 0) == (sizes.n_bandwidths > 0)
        and has_local == (sizes.n_neighbors > 0)
        and (sizes.n_neighbors < sizes.n_references <= sizes.n_ranked_rows or not has_local)
        and sizes.n_calibration <= MAX_CALIBRATION_ROWS
        and sizes.n_relation_rows <= sizes.n_rows
        and _are_possible_kept_rows(sizes)
    )


def _are_possible_kept_rows(sizes: Sizes) -> bool:
    has_rows = sizes.n_sample_rows > 0
    return (
        (2 <= sizes.n_sample_rows <= sizes.n_ranked_rows or not has_rows)
        and sizes.n_sample_views <= sizes.n_local_views
        and (sizes.n_sample_views > 0) == (sizes.n_local_views > 0 and has_rows)
        and sizes.n_sample_rows * sizes.n_columns <= max(MAX_KEPT_CELLS, 2 * sizes.n_columns * sizes.n_references)
    )


def _scoring_numbers(sizes: Sizes) -> int:
    """Return the length of the largest array that scoring makes."""
    n_angles = sizes.n_global_views * sizes.n_random_features
    n_projected = max(sizes.n_global_views, sizes.n_local_views) * sizes.projection_dim
    n_phi = sizes.n_leverage_views * (sizes.leverage_dim + sizes.n_cosines)
    per_row = max(n_angles, n_projected, n_phi, sizes.n_references)
    n_leverage_features = sizes.n_leverage_views * sizes.n_columns
    return max(n_angles * sizes.n_features, n_leverage_features, per_row * SMALLEST_BLOCK)


def check_explaining_budget(sizes: Sizes, n_scalings: int) -> None:
    """Raise if the kept rows would take much more memory in explanations, which hold them in all scalings.

    There are five different scalings. A forged file may repeat one 64 times.
    """
    if n_scalings > len(PREPROCESSINGS):
        _check_budget(n_scalings * sizes.n_sample_rows * sizes.n_columns)


def check_stream_budget(parameters: Mapping[str, Any], n_columns: int, n_rows: int) -> None:
    """Raise if `partial_fit` with these parameters and a sample of `n_rows` rows would take too much memory."""
    m = max(
        n_view_features(n_columns, fraction, parameters["min_features"], parameters["max_features"])
        for fraction in _several(parameters["feature_fraction"])
    )
    r = projection_dim(n_columns, m, parameters["projection_dim"], parameters["projection"])
    D, M = parameters["n_random_features"], len(parameters["bandwidth_multipliers"])
    C = min(parameters["n_references"], n_rows)
    n_global, n_local = parameters["n_global_views"], parameters["n_local_views"]
    per_view = max(m * r, n_columns, n_rows, MIN_NUMBERS_PER_VIEW)
    if parameters["global_score"] == "leverage":
        q = min(n_columns, LARGEST_PROJECTION_DIM)
        P = q + M * D
        per_global_view = max(per_view, n_columns * q, P * P, P * SMALLEST_BLOCK)
    else:
        per_global_view = max(per_view, D * m, D * r, D * D * M, D * SMALLEST_BLOCK)
    per_local_view = max(per_view, C * r)
    if any(_several(parameters["whitening"])):
        per_local_view = max(per_local_view, r * r, min(n_rows, MAX_COVARIANCE_ROWS) * r)
    n_pair_rows = min(n_rows, MAX_PAIR_ROWS)
    n_pairs = min(parameters["n_bandwidth_pairs"], n_pair_rows * (n_pair_rows // 2))
    _check_budget(max(n_global * per_global_view, n_local * per_local_view, n_rows * SMALLEST_BLOCK, n_pairs * r))


def _several(value: Any) -> list[float]:
    """Return a parameter that the views take turns with as a list."""
    return value if isinstance(value, list) else [value]
