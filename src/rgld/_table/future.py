"""Dates after the training rows: time goes on, which is not an anomaly.

In: the dates of the training rows. Out: until when a later date is natural, and where such a date is put among the
training dates. docs/tables.md says why.
"""

import numpy as np

from .._arrays import Float64s, Floats
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


def spread(values: Floats, knots: tuple[float, ...], until: float, *, are_years: bool = False) -> Floats:
    """Return dates, with those after the training dates and up to `until` put among the training dates.

    Later dates stay where they are. If such dates are rare in training, they move farther away, at first slowly: by the
    square of the spans that they lie beyond `until`. So a model that is used a little too long does not fail at once,
    and the year 2042 in a table of 2024 stands out, although a date counts half in the views.

    Where among them depends on the seconds since the latest training date, and is spread over all of them. So new
    rows are as early or late as training rows are, and their scores say nothing of their dates. (At the latest training
    date they would lie at the edge of the training rows, where neighbours are fewer.) A year becomes a training year.
    """
    first, latest = knots[0], knots[-1]
    later = values > latest
    if not later.any():
        return values
    result = values.copy()
    natural = later & (values <= until)
    if until >= _natural_until(first, latest):
        far = values > until
        result[far] = values[far] + (values[far] - until) ** 2 / (latest - first)
    steps = np.floor(values[natural] - latest)
    if are_years:
        places = np.mod(FIRST_YEAR_PLACE + (steps - 1.0) * STEP, 1.0)
        result[natural] = np.asarray(knots)[np.rint(places * (len(knots) - 1)).astype(np.intp)]
    else:
        result[natural] = np.interp(np.mod(steps * STEP, 1.0), np.linspace(0.0, 1.0, len(knots)), knots)
    return result
