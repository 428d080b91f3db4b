"""Words: what has changed in a column, as a person would say it.

In: figures of the new rows and of the training rows. Out: half a sentence, which may contain values of the table, cut
to a bounded length and without control characters. Code that puts it on a page must escape it.
"""

from collections import Counter

import numpy as np

from .._arrays import Float64s
from .._table.encoding import KIND_SINGULARS, Column
from .._table.profiles import Profile
from .._table.shown import percent, short, shown

QUARTILES = (0.25, 0.5, 0.75)
UNITS = (10.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e9, 24.0, 60.0, 3600.0, 86_400.0, 1024.0, 1.609344, 2.20462, 2.54, 3.28084)
"""Factors between units that tables are written in: decimal prefixes, cents, times, bytes, miles, pounds, inches,
feet."""
UNIT_TOLERANCE = 0.1
"""A change counts as a factor of 10 or more if the ratio of each quartile differs from the factor by less than this
fraction of it. For smaller factors, a fifth of this is allowed."""
SAME_MEDIAN = 0.1
"""Two medians count as the same if they differ by less than this fraction of the distance between the quartiles."""
WIDER = 1.5
"""A distribution is called wider if its quartiles are this many times as far apart."""


def named(name: str) -> str:
    """Return the name of a column."""
    return short(name)


def gaps(fraction: float, before: float) -> str:
    """Say how many values are missing."""
    where = "in all rows" if fraction == 1.0 else f"in {percent(fraction)} of the rows" if fraction else "in no row"
    return f"empty {where} ({_before(before)})"


def _before(fraction: float) -> str:
    return f"{percent(fraction)} in training" if fraction else "never in training"


def unread(kind: str, n_unread: int, n: int, before: float, example: str) -> str:
    """Say how many values cannot be read."""
    such = f", such as '{short(example)}'" if example else ""
    return f"{percent(n_unread / n)} of the values are not {KIND_SINGULARS[kind]}{such} ({_before(before)})"


def unseen(values: Counter[str], n: int, column: Column) -> str:
    """Say which values of a category were never seen."""
    if not values:
        return "no value that was never seen"
    value, count = values.most_common(1)[0]
    like = next((known for known in column.values if known and known.strip().lower() == value.strip().lower()), None)
    hint = f", written '{short(like)}' in training" if like is not None else ""
    rows = "1 row" if count == 1 else f"{count:,} rows"
    such = f"such as '{short(value)}' ({rows}{hint})"
    return f"{percent(values.total() / n)} of the rows have a value never seen in training, {such}"


def frequency(value: str, fraction: float, before: float) -> str:
    """Say how often a value of a category is there."""
    if not fraction:
        return f"'{short(value)}' in no row ({_before(before)})"
    return f"'{short(value)}' in {percent(fraction)} of the rows instead of {percent(before)}"


def beyond(column: Column, is_below: bool, count: int, farthest: float, low: float, high: float) -> str:
    """Say how many values lie outside the range of the training values."""
    side, bound = ("below the lowest", low) if is_below else ("above the highest", high)
    reach = f"{'down' if is_below else 'up'} to {_text(column, farthest)}"
    rows = "1 value" if count == 1 else f"{count:,} values"
    return f"{rows} {side} of training, {_text(column, bound)}: {reach}"


def distribution(column: Column, new: Profile, training: Profile, place: int, fraction: float) -> str:
    """Say how a distribution has changed. At the knot at `place` it has changed most: `fraction` of the new values are
    at or below it."""
    if column.kind == "boolean":
        true, true_before = (_fraction_above(profile, 0.5) for profile in (new, training))
        return f"true in {percent(true)} of the rows instead of {percent(true_before)}"
    if len(new.knots) == 1 and len(training.knots) > 1:
        middle = _text(column, training.quantile(0.5))
        return f"always {_text(column, float(new.knots[0]))} (in training the median was {middle})"
    now, before = (np.array([profile.quantile(rank) for rank in QUARTILES]) for profile in (new, training))
    medians = f"median {_text(column, float(now[1]))} instead of {_text(column, float(before[1]))}"
    if unit := _another_unit(now, before):
        return f"{medians}, {unit}"
    width, width_before = float(now[2] - now[0]), float(before[2] - before[0])
    if abs(now[1] - before[1]) > SAME_MEDIAN * width_before and _text(column, now[1]) != _text(column, before[1]):
        return medians
    if width_before and not 1.0 / WIDER < width / width_before < WIDER:
        return f"spread {_times(width / width_before)} {'wide' if width > width_before else 'narrow'} as in training"
    at, share = _text(column, float(training.knots[place])), percent(training.counts[place] / training.n_present)
    return f"{percent(fraction)} of the values are at most {at}, instead of {share}"


def _fraction_above(profile: Profile, value: float) -> float:
    place = int(np.searchsorted(profile.knots, value))
    return 1.0 - (int(profile.counts[place - 1]) if place else 0) / max(1, profile.n_present)


def _another_unit(now: Float64s, before: Float64s) -> str:
    """Return by which factor all quartiles have changed, if it is one between two units; else ""."""
    if np.any(now == 0) or np.any(before == 0):
        return ""
    ratios = now / before
    if np.all(np.abs(now[::-1] / before + 1.0) < UNIT_TOLERANCE):  # it turns the order too
        return "the sign is turned"
    for factor in UNITS:
        tolerance = UNIT_TOLERANCE if factor >= 10.0 else UNIT_TOLERANCE / 5.0
        for ratio, way in ((ratios, "high"), (1.0 / ratios, "low")):
            if np.all(np.abs(ratio / factor - 1.0) < tolerance):
                return f"{factor:,.4g} times as {way}: another unit?"
    return ""


def _times(ratio: float) -> str:
    times = max(ratio, 1.0 / ratio) if ratio else np.inf
    return (
        f"{times:.1f} times as"
        if times < 10
        else f"{times:,.0f} times as"
        if times < 1e6
        else "over a million times as"
    )


def _text(column: Column, number: float) -> str:
    return shown(column.kind, float(number), column.name)


def higher_scores(distance: float, is_higher: bool, n_calibration: int, p_value: float) -> str:
    """Say how the scores of a table differ from those of held-out rows."""
    way = "more unusual" if is_higher else "less unusual"
    figures = f"distance {distance:.2f}, p {_p(p_value)}"
    return f"rows: they are {way} than the {n_calibration:,} rows held out in training ({figures})"


def _p(p_value: float) -> str:
    return f"= {p_value:.1g}" if p_value >= 1e-99 else "< 1e-99"


def sequence(row: int | None, highest: float, limit: float, sorted_by: str | None) -> str:
    """Say that the bets against the rows have won. The row is an index in this table, None if it was in an earlier
    one. Rows in the order of a column of dates were taken in random order."""
    reached = "over a million" if highest > np.log(1e6) else f"{np.exp(highest):,.0f}"
    if sorted_by is not None:
        order, where = "random order", f"the rows are in the order of {named(sorted_by)}"
    else:
        order, where = "their order", "already in an earlier table" if row is None else f"after row {row:,}"
    return f"rows: a bet against them in {order} has reached {reached} to 1 (alarm at {limit:,.0f} to 1, {where})"
