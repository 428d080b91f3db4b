"""The heavy computing, in two implementations: the compiled core and its readable NumPy twin.

`RGLD_KERNELS=native` or `RGLD_KERNELS=numpy` selects one; without it, the core is used if it was built. In both, the
result of a row depends only on that row and the model, to the bit.
"""

import os
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING

IMPLEMENTATIONS = ("native", "numpy")


def _selected() -> str:
    name = os.environ.get("RGLD_KERNELS", "")
    if name not in ("", *IMPLEMENTATIONS):
        raise ImportError(f"RGLD_KERNELS must be one of {', '.join(IMPLEMENTATIONS)}, got {name!r} instead.")
    if name == "numpy" or find_spec(f"{__name__}._core") is not None:
        return name or "native"
    remedy = "install a C++ compiler (GCC or Clang) and reinstall rgld"
    if name == "native":
        raise ImportError(f"RGLD_KERNELS=native, but rgld was installed without its compiled core: {remedy}.")
    warnings.warn(
        "rgld was installed without its compiled core and runs on NumPy, several times slower: "
        f"{remedy}, or set RGLD_KERNELS=numpy to silence this.",
        RuntimeWarning,
        stacklevel=2,
    )
    return "numpy"


name = _selected()

if TYPE_CHECKING or name == "numpy":
    from . import numpy_kernels as chosen
else:
    from . import native_kernels as chosen

ColumnKnots = chosen.ColumnKnots
Distances = chosen.Distances
Rows = chosen.Rows
Team = chosen.Team
branch_means = chosen.branch_means
branch_scores = chosen.branch_scores
column_knots = chosen.column_knots
column_moments = chosen.column_moments
column_statistics = chosen.column_statistics
count_pairs = chosen.count_pairs
count_scores = chosen.count_scores
distances_at = chosen.distances_at
draw_without_replacement = chosen.draw_without_replacement
embedding_sums = chosen.embedding_sums
find_partners = chosen.find_partners
fit_ranks = chosen.fit_ranks
inverse_triangles = chosen.inverse_triangles
leverage_sums = chosen.leverage_sums
pair_distances = chosen.pair_distances
project_rows = chosen.project_rows
projected_covariances = chosen.projected_covariances
sorted_rows = chosen.sorted_rows
statistics_and_knots = chosen.statistics_and_knots
team = chosen.team
values_at = chosen.values_at
view_scores = chosen.view_scores

__all__ = [
    "ColumnKnots",
    "Distances",
    "Rows",
    "Team",
    "branch_means",
    "branch_scores",
    "column_knots",
    "column_moments",
    "column_statistics",
    "count_pairs",
    "count_scores",
    "distances_at",
    "draw_without_replacement",
    "embedding_sums",
    "find_partners",
    "fit_ranks",
    "inverse_triangles",
    "leverage_sums",
    "pair_distances",
    "project_rows",
    "projected_covariances",
    "sorted_rows",
    "statistics_and_knots",
    "team",
    "values_at",
    "view_scores",
]
