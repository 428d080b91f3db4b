"""Checks of the values of a model file's arrays.

In: the arrays of a file whose types and shapes are right. Out: nothing, or a `ModelFileError` for values that no fit
gives. What the description of an array says of its values is checked for all arrays alike; what several arrays must
have in common is checked here by name.
"""

from typing import Any

import numpy as np

from .._model.model import SMALLEST_STD, GlobalBranch
from .._model.ranks import SMALLEST_SCALE, CdfKnots
from .._model.scaling import LARGEST_VALUE
from .._table.profiles import Profiles
from ..exceptions import ModelFileError
from .header import Header
from .layout import group_of
from .tensors import Arrays

LARGEST_ANGLE = 1e37
"""The largest angle of a random feature, for the largest scaled values: float32 can still hold it."""

LARGEST_LOGARITHM = 100.0
"""The largest logarithm of a distance, positive or negative: no bandwidth is so small, and no reference so far."""

ROUNDED = 0.9
"""A fit keeps some values above a limit, then rounds them: in a file they must be above this fraction of the limit."""


def check_values(header: Header, arrays: Arrays) -> None:
    """Check the values as far as this is possible before the model is put together."""
    for name, described, _, lengths in header.arrays:
        array = arrays[name]
        _require(name, (array >= described.low) & (array <= described.high))  # false for NaN
        if described.index_of:
            _require(name, (array >= 0) & (array < lengths[described.index_of]))
        if described.is_sorted:
            _require(name, array[..., 1:] >= array[..., :-1])
    for branch in ("global", "leverage", "local"):
        if f"{branch}.cdf_sizes" in arrays:
            _check_cdfs(branch, arrays, header.sizes.n_ranked_rows)
            _check_standards(branch, arrays)
    if "profile.totals" in arrays:
        _check_profiles(header, arrays)
    if "leverage.root" in arrays:
        above = np.triu_indices(arrays["leverage.root"].shape[1], 1)
        _require("leverage.root", arrays["leverage.root"][:, above[0], above[1]] == 0)
    if "global.support_std" in arrays:
        std = arrays["global.support_std"]
        _require("global.support_std", (std == 0) | (std > ROUNDED * SMALLEST_STD))


def _check_cdfs(branch: str, arrays: Arrays, n_rows: int) -> None:
    """Values and ranks of a distribution increase, and ranks keep away from 0 and 1: no score may round to them."""
    knots = CdfKnots(**group_of(arrays, CdfKnots, branch))
    _require(f"{branch}.cdf_sizes", knots.cdf_sizes.sum() == len(knots.cdf_values))
    is_first = np.zeros(len(knots.cdf_values), bool)
    is_first[np.cumsum(knots.cdf_sizes)[:-1]] = True
    for name in ("cdf_values", "cdf_ranks"):
        _require(f"{branch}.{name}", is_first[1:] | _increases(getattr(knots, name)))
    edge = ROUNDED * 0.5 / n_rows
    _require(f"{branch}.cdf_ranks", (knots.cdf_ranks >= edge) & (knots.cdf_ranks <= 1.0 - edge))


def _check_standards(branch: str, arrays: Arrays) -> None:
    """Distances and leverages have logarithms, the scores of the paper's global views are taken as they are."""
    name = f"{branch}.standards"
    if name in arrays:
        smallest, center, scale = arrays[name].T
        is_branch = (smallest > 0) & (np.abs(center) <= LARGEST_LOGARITHM) if branch != "global" else smallest == 0
        _require(name, is_branch & (scale >= ROUNDED * SMALLEST_SCALE))


def _check_profiles(header: Header, arrays: Arrays) -> None:
    """Every column of the table has a profile. Within a column knots and counts increase, up to its number of
    values."""
    profiles = Profiles(**{**vars(Profiles.none()), **group_of(arrays, Profiles, "profile")})
    n_present, n_knots, counts = profiles.totals[:, 0], profiles.n_knots, profiles.counts
    _require("profile.totals", len(profiles.totals) == len(header.columns))
    _require("profile.n_knots", n_knots.sum() == len(counts) and np.array_equal(n_knots > 0, n_present > 0))
    last = np.cumsum(n_knots)[n_knots > 0] - 1
    is_last = np.zeros(len(counts), bool)
    is_last[last] = True
    for name in ("knots", "counts"):
        _require(f"profile.{name}", is_last[:-1] | _increases(getattr(profiles, name)))
    _require("profile.counts", counts[last] == n_present[n_knots > 0])


def check_angles(branch: GlobalBranch) -> None:
    """The angles of the farthest rows are finite."""
    largest = np.abs(branch.directions).max() * branch.views.features.shape[1] * LARGEST_VALUE
    _require("global.projection", largest / branch.multipliers.min() < LARGEST_ANGLE)


def _increases(values: Any) -> Any:
    """Return which values are followed by a larger one. Compared, not subtracted: a difference may overflow."""
    return values[1:] > values[:-1]


def _require(name: str, holds: Any) -> None:
    if not np.all(holds):
        raise ModelFileError(f"The model file's array {name!r} holds values that no fitted model has.")
