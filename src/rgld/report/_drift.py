"""Drift: what has changed since the training table, as words and charts.

In: a `Check`. Out: plain data: sentences, and for each column that has changed its two distributions.
"""

from typing import Any

import numpy as np

from .._arrays import Float64s
from .._drift.columns import ColumnCheck
from .._drift.verdict import Check
from .._table.profiles import MAX_KNOTS, Profile
from ._axes import duration_ticks, linear_ticks, log_ticks
from ._text import LONGEST_LABEL, LONGEST_REASON, visible

MAX_DRAWN = 12
"""Columns whose distributions are drawn: those that have changed most surely."""
MAX_SENTENCES = 20
N_DRIFT_BINS = 40
ENDS = (0.01, 0.99)
"""Quantiles between which both distributions are drawn; what lies beyond is drawn at the ends."""
WIDE = 20.0
"""Positive values that differ by more than this factor are drawn on a logarithmic axis."""


def drift_section(check: Check) -> dict[str, Any]:
    """Return what the page says of a check."""
    changed = check.drifted_columns
    title = "Not like the training table" if check.drifted else "Still like the training table"
    said = [*check.reasons[:MAX_SENTENCES], *check.notes]
    if not check.drifted:
        said.insert(
            0, f"No change was found in {check.n_rows:,} rows, at a probability of false alarm of {check.alpha:g}."
        )
    drawn = [chart for column in changed[:MAX_DRAWN] if (chart := _chart(column, check.level)) is not None]
    return {"title": title, "sentences": [visible(text, LONGEST_REASON) for text in said], "columns": drawn}


def _chart(column: ColumnCheck, level: float) -> dict[str, Any] | None:
    text = visible("; ".join(column.said(level)), LONGEST_REASON)
    head = {"name": visible(column.name), "text": text}
    if column.kind == "category":
        names = [visible(value, LONGEST_LABEL) if value else "(missing)" for value, _, _ in column.frequencies]
        return {**head, "type": "bars", "bars": names, **_pair(*np.array([f[1:] for f in column.frequencies]).T)}
    if column.training is None or column.new is None or not column.training.n_present:
        return None
    now, before = column.new, column.training
    if column.kind == "boolean":
        shares = [np.diff(_below(profile, np.array([-0.5, 0.5, 1.5]))) for profile in (now, before)]
        return {**head, "type": "bars", "bars": ["false", "true"], **_pair(*shares)}
    ends = np.array([profile.quantile(rank) for profile in (now, before) if profile.n_present for rank in ENDS])
    low, high = float(ends.min()), float(ends.max())
    logarithmic = column.kind == "number" and low > 0 and high > WIDE * low
    low, high = (float(np.log10(low)), float(np.log10(high))) if logarithmic else (low, high)
    margin = 0.02 * (high - low) or 0.5
    edges = np.linspace(low - margin, high + margin, N_DRIFT_BINS + 1)
    positions = 10.0**edges if logarithmic else edges
    shares = [np.diff(_below(profile, positions), prepend=0.0)[1:] for profile in (now, before)]
    ticks = log_ticks if logarithmic else {"duration": duration_ticks}.get(column.kind, linear_ticks)
    axis = {"low": float(edges[0]), "high": float(edges[-1]), "ticks": ticks(float(edges[0]), float(edges[-1]))}
    return {**head, "type": "histogram", **axis, **_pair(*shares)}


def _pair(now: Float64s, before: Float64s) -> dict[str, list[float]]:
    return {"new": [round(float(s), 5) for s in now], "training": [round(float(s), 5) for s in before]}


def _below(profile: Profile, at: Float64s) -> Float64s:
    """Return the fraction of a profile's values at or below each of some values."""
    if not profile.n_present:
        return np.zeros(len(at))
    fractions = np.append(0, profile.counts) / profile.n_present
    if len(profile.knots) < MAX_KNOTS:  # all values are knots
        return fractions[np.searchsorted(profile.knots, at, side="right")]
    below: Float64s = np.interp(at, profile.knots, fractions[1:], left=0.0, right=1.0)
    return below
