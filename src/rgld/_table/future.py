"""Dates after the training rows: time goes on, which is not an anomaly.

In: the dates of the training rows. Out: until when a later date is natural, where the dates of a later row are put
among the training dates, and how far dates of another age are off. docs/tables.md says why.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Bools, Float64s, Floats, Indices
from .names import says_year

NATURAL_SPANS = 1.25
"""Dates are natural for as long after the training dates as these span, and a quarter longer: a table of three weeks
ends in the evening of its last day."""
FENCE_QUARTILES = 3.0
"""A training date farther above the upper quartile than this many times the distance between the quartiles is not one
of the dates that go on: one mistyped year must not make the following years natural."""
MAX_FAR_FRACTION = 0.01
"""Dates far out are rare if at most this fraction of the training dates are."""
N_DATE_KNOTS = 33
"""Quantiles of the training dates that are kept."""
FIRST_YEAR, LAST_YEAR = 1500.0, 2100.0
"""Whole numbers in this range under a name that says year are years."""
FIRST_PLAIN_YEAR, MIN_YEAR_ROWS = 1950.0, 10
"""Whole numbers under another name are years if they are all later than the first, and each comes in so many rows, on
average."""
FIRST_YEAR_PLACE = 0.5 + 12.0**-0.5
"""Fraction of the training years below the one that the next year is put at: one standard deviation above the mean of
even years. All rows of a table may be of that year, so it must be neither the middle nor the edge."""
SECONDS_A_DAY = 86_400.0
STEP = (53_398.0 + 0.5 * (5.0**0.5 - 1.0)) / SECONDS_A_DAY
"""Fraction of the training dates from one second to the next, so that seconds, hours and days all spread evenly. A day
moves by the golden section, of which consecutive multiples never come close together."""


def natural_range(values: Float64s, max_far: float = MAX_FAR_FRACTION) -> tuple[tuple[float, ...], float]:
    """Return quantiles of the training dates, without those far out, and until when later dates are natural: up to
    `NATURAL_SPANS` spans later, or up to the first training date that is far out.

    There are no quantiles if no later date is natural. If a larger fraction than `max_far` is far out, `until` is a
    little less: `spread` then leaves dates beyond it where they are.
    """
    ordered = np.sort(values)
    low, high = np.quantile(ordered, (0.25, 0.75), method="nearest")
    reach = FENCE_QUARTILES * (high - low)
    first, end = np.searchsorted(ordered, low - reach), np.searchsorted(ordered, high + reach, side="right")
    usual = ordered[first:end]
    latest = usual[-1]
    until = _natural_until(usual[0], latest)
    if end < len(ordered):
        until = min(until, np.nextafter(ordered[end], -np.inf))
    if len(ordered) - end > max_far * len(ordered):  # they are known
        until = min(until, np.nextafter(_natural_until(usual[0], latest), -np.inf))
    if until <= latest:
        return (), 0.0
    knots = np.quantile(usual, np.linspace(0.0, 1.0, N_DATE_KNOTS), method="nearest")
    return tuple(knots.tolist()), float(until)


def _natural_until(first: float, latest: float) -> float:
    return latest + NATURAL_SPANS * (latest - first)


def are_years(name: str, values: Float64s) -> bool:
    """Return whether the numbers of a column are years, by its name or, without one, because they look like years: a
    few whole numbers of these times, without a gap between them, each in several rows."""
    low, high = values.min(), values.max()
    if not FIRST_YEAR <= low < high <= LAST_YEAR or np.any(values % 1.0):
        return False
    if says_year(name):
        return True
    n_years = len(np.unique(values))
    return n_years == high - low + 1.0 and MIN_YEAR_ROWS * n_years <= len(values) and low >= FIRST_PLAIN_YEAR


class DateRange(NamedTuple):
    """The training dates of a column, as far as later dates are compared with them."""

    knots: Float64s
    """Quantiles of the training dates."""
    until: float
    """Dates up to this one are natural."""
    periods: tuple[float, ...]
    """Seconds. A date that is put back by whole periods keeps its place in the cycles of the column."""
    are_years: bool
    """Whether the dates are numbers of years, not seconds."""

    def place(self, fractions: Float64s) -> Float64s:
        """Return the training dates below which these fractions of the training dates lie. If there are few different
        dates (days, months, years), it is one of them."""
        if np.any(self.knots[1:] == self.knots[:-1]) or self.are_years:
            return np.asarray(self.knots[np.rint(fractions * (len(self.knots) - 1)).astype(np.intp)])
        return np.interp(fractions, np.linspace(0.0, 1.0, len(self.knots)), self.knots)

    def fraction(self, dates: Float64s, side: str) -> Float64s:
        """Return the fraction of the training dates below dates; equal ones count on the right side only."""
        if np.any(self.knots[1:] == self.knots[:-1]):
            below = self.knots.searchsorted(dates, side="left" if side == "left" else "right") - (side == "right")
            return np.clip(below / (len(self.knots) - 1), 0.0, 1.0)
        return np.interp(dates, self.knots, np.linspace(0.0, 1.0, len(self.knots)))


def are_late(dates: Float64s, ranges: Sequence[DateRange]) -> Bools:
    """Return which dates, shape (n, c), are later than the training dates by no more than is natural."""
    latest = np.array([own.knots[-1] for own in ranges])
    return (dates > latest) & (dates <= np.array([own.until for own in ranges]))


def put_back(dates: Float64s, ranges: Sequence[DateRange], draws: Float64s) -> Float64s:
    """Return the dates of rows, shape (n, c), NaN where missing; rows with late dates are put back in time.

    All dates of a row move by the same time, so that a journey takes as long as it did, and by whole days (weeks,
    years), so that it begins at the same hour (on the same weekday, in the same season). `draws`, uniform in [0, 1),
    one for each row, decide where the row arrives: rows spread over all training dates. So new rows are as early or
    late as training rows are, and their scores say nothing of their dates. (At the latest training date they would lie
    at the edge of the training rows, where neighbours are fewer.)

    Of the late columns, the one whose training dates span the shortest time leads. Dates that cannot follow it, because
    they would leave their own training dates, do not move; if they are late, each is put among its training dates by
    itself. Dates that are not natural stay where they are.
    """
    late = are_late(dates, ranges)
    rows = np.flatnonzero(late.any(axis=1))
    if not len(rows):
        return dates
    result = dates.copy()
    result[rows] = _put_back(dates[rows], late[rows], ranges, draws[rows])
    return result


def _put_back(dates: Float64s, late: Bools, ranges: Sequence[DateRange], draws: Float64s) -> Float64s:
    first, latest = (np.array([own.knots[end] for own in ranges]) for end in (0, -1))
    until = np.array([own.until for own in ranges])
    in_seconds = np.array([not own.are_years for own in ranges])
    order = np.argsort(np.where(in_seconds, latest - first, np.inf), kind="stable")
    leading = order[late[:, order].argmax(axis=1)]  # of each row, its late column with the shortest span
    least, most = dates - latest, dates - first
    least_of_leading, most_of_leading = (limit[np.arange(len(dates)), leading, None] for limit in (least, most))
    moving = (dates >= first) & (dates <= until) & in_seconds
    moving &= (least <= most_of_leading) & (most >= least_of_leading)
    least = np.where(moving, least, -np.inf).max(axis=1)
    most = np.where(moving, most, np.inf).min(axis=1)
    fits = (least <= most) & in_seconds[leading]
    places, shifts = draws.copy(), np.zeros(len(dates))
    periods = sorted({period for own in ranges for period in own.periods})
    for j in np.unique(leading[fits]):
        rows: Indices = np.flatnonzero(fits & (leading == j))
        places[rows], shifts[rows] = _shifts(dates[rows, j], least[rows], most[rows], ranges[j], periods, draws[rows])
    result = np.where(moving & fits[:, None], dates - shifts[:, None], dates)
    for j, own in enumerate(ranges):
        alone = late[:, j] & ~(fits & moving[:, j])
        result[alone, j] = own.place(places[alone])
    return result


def _shifts(
    dates: Float64s, least: Float64s, most: Float64s, own: DateRange, periods: Sequence[float], draws: Float64s
) -> tuple[Float64s, Float64s]:
    """Return the fraction of the training dates before the place of each row, and how far the row goes back."""
    low, high = own.fraction(dates - most, "left"), own.fraction(dates - least, "right")
    shifts = wanted = dates - own.place(low + draws * np.maximum(high - low, 0.0))
    for period in periods:  # the longest one of which a multiple fits decides
        fewest, greatest = np.ceil(least / period), np.floor(most / period)
        whole = np.clip(np.rint(wanted / period), fewest, np.maximum(fewest, greatest)) * period
        shifts = np.where(fewest <= greatest, whole, shifts)
    return own.fraction(dates - shifts, "right"), shifts


def beyond(values: Floats, knots: tuple[float, ...], until: float) -> Floats:
    """Return dates, with those after `until` moved farther away if such dates are rare in training: at first slowly, by
    the square of the spans that they lie beyond it.

    So a model that is used a little too long does not fail at once, and the year 2042 in a table of 2024 stands out,
    although a date counts half in the views.
    """
    first, latest = knots[0], knots[-1]
    far = values > until
    if until < _natural_until(first, latest) or not far.any():
        return values
    result = values.copy()
    result[far] = values[far] + (values[far] - until) ** 2 / (latest - first)
    return result


def natural_limits(knots: tuple[float, ...]) -> tuple[float, float]:
    """Return the earliest and the latest date that are natural beside training dates: dates outside are of another
    age."""
    return knots[0] - NATURAL_SPANS * (knots[-1] - knots[0]), _natural_until(knots[0], knots[-1])


def far_shares(values: Float64s, knots: tuple[float, ...]) -> tuple[float, ...]:
    """Return the fractions of the training dates that are of an earlier and of a later age; () without knots."""
    if not knots:
        return ()
    low, high = natural_limits(knots)
    return float(np.mean(values < low)), float(np.mean(values > high))


def spread(values: Floats, knots: tuple[float, ...], until: float, *, are_years: bool = False) -> Floats:
    """Return dates as models of older releases take them: each late date is put among the training dates by itself, by
    the seconds since the latest of them, and a year becomes a training year."""
    latest = knots[-1]
    later = values > latest
    if not later.any():
        return values
    natural = later & (values <= until)
    result = beyond(values, knots, until).copy()
    steps = np.floor(values[natural] - latest)
    if are_years:
        places = np.mod(FIRST_YEAR_PLACE + (steps - 1.0) * STEP, 1.0)
        result[natural] = np.asarray(knots)[np.rint(places * (len(knots) - 1)).astype(np.intp)]
    else:
        result[natural] = np.interp(np.mod(steps * STEP, 1.0), np.linspace(0.0, 1.0, len(knots)), knots)
    return result
