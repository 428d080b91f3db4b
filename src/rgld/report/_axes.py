"""Axes: positions of values on an axis, and ticks with labels.

In: values. Out: positions, and ticks as pairs (position, label). A position is the value itself or, for values of very
different sizes, its logarithm. The page draws positions; it does not know scales.
"""

import math
from datetime import UTC, datetime, timedelta

import numpy as np

from .._arrays import Float64s
from .._table.encoding import DAY
from .._table.shown import shown

Ticks = list[tuple[float, str]]

MIN_TAIL = 1e-9
"""Ranks closer to 1 than this are drawn at this distance from it."""
TAIL_RANKS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)

HOUR = 3600.0
TIME_STEPS = tuple(step * HOUR for step in (0.25, 1, 3, 6, 12)) + tuple(step * DAY for step in (1, 2, 7, 14))
MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
MONTH = 30.44 * DAY
MAX_STEPS = 5
"""An axis has about this many steps from tick to tick."""
MIN_STEP = 1e-322
"""Smaller powers of ten are zero in floating point."""
MIN_UNITS_PER_BIN = 100
"""Neighbouring floating-point numbers that a bin must hold, so that rounding does not change the order of the edges."""
MAX_LABEL = 12
"""Characters of a label. An axis with longer labels has only two ticks."""
FIRST_SECOND, LAST_SECOND = -6.2e10, 2e11
"""Python's first and last date lie close to these, in seconds since 1970."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Dates are computed from here, because some systems refuse timestamps before 1970."""


def tail(ranks: Float64s) -> Float64s:
    """Return -log10(1 - rank): ranks 0.9, 0.99, 0.999 are at 1, 2, 3. This spreads the highest ranks."""
    position: Float64s = -np.log10(np.maximum(1.0 - ranks, MIN_TAIL))
    return position


def tail_ticks(high: float) -> Ticks:
    """Return ticks for ranks, at their positions by `tail`, up to `high`."""
    return [(float(tail(np.array([r]))[0]), f"{r:g}") for r in TAIL_RANKS if tail(np.array([r]))[0] <= high]


def linear_ticks(low: float, high: float) -> Ticks:
    """Return ticks at round numbers.

    >>> linear_ticks(0.0, 10.0)
    [(0.0, '0'), (2.0, '2'), (4.0, '4'), (6.0, '6'), (8.0, '8'), (10.0, '10')]
    """
    step = _round_step(max((high - low) / MAX_STEPS, _unit(low, high)))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    ticks = [(i * step, _label(i * step, step)) for i in range(first, min(last, first + 2 * MAX_STEPS) + 1)]
    is_long = any(len(label) > MAX_LABEL for _, label in ticks)
    return ticks[:: max(1, len(ticks) - 1)] if is_long else ticks


def bin_edges(low: float, high: float, n_bins: int) -> Float64s:
    """Return the edges of at most about `n_bins` equal bins that hold the numbers from low to high.

    Where floating point has few numbers between low and high, each bin holds the same number of them.
    """
    unit = _unit(low, high)
    n_units = (high - low) / unit
    if n_units >= MIN_UNITS_PER_BIN * n_bins:
        return np.linspace(low, high, n_bins + 1)
    width = max(1, math.ceil(n_units / n_bins))
    edges: Float64s = low - unit + unit * width * np.arange(math.ceil((n_units + 2) / width) + 1.0)
    return edges


def _unit(low: float, high: float) -> float:
    """Return the distance of neighbouring floating-point numbers at the larger end of an axis."""
    return math.ulp(max(abs(low), abs(high)))


def _round_step(least: float) -> float:
    """Return the smallest number of the form 1, 2 or 5 times a power of ten that is at least `least`."""
    power = 10.0 ** math.floor(math.log10(max(least, MIN_STEP)))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least * (1 - 1e-9))


def _label(value: float, step: float) -> str:
    """Return the label of a tick: as many digits as the step needs, large numbers in k, M, B."""
    digits = max(3, math.ceil(math.log10(abs(value) / step)) + 1) if value else 1
    if abs(value) >= 1e15:
        return f"{value:.{digits}g}"
    for size, letter in ((1e12, "e12"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size and step >= size / 1000 and abs(value) >= 1e4:
            return f"{value / size:.12g}{letter}"
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{decimals}f}" if decimals <= 6 else f"{value:.{digits}g}"


def duration_ticks(low: float, high: float) -> Ticks:
    """Return ticks at round numbers of seconds, minutes, hours or days, for positions that are seconds.

    >>> duration_ticks(0.0, 7200.0)
    [(0.0, '0 min'), (3000.0, '50 min'), (6000.0, '100 min')]
    """
    most = max(abs(low), abs(high))
    unit, word = next(((u, w) for u, w in ((DAY, "d"), (HOUR, "h"), (60.0, "min")) if most > 2 * u), (1.0, "s"))
    return [(position * unit, f"{label} {word}") for position, label in linear_ticks(low / unit, high / unit)]


def log_ticks(low: float, high: float) -> Ticks:
    """Return ticks for positions that are decimal logarithms: powers of ten and, on a short axis, numbers between them.

    >>> log_ticks(0.0, 2.0)
    [(0.0, '1'), (1.0, '10'), (2.0, '100')]
    """
    powers = range(math.floor(low), math.ceil(high) + 1)
    step = max(1, math.ceil(len(powers) / (MAX_STEPS + 2)))
    factors = (1, 1.5, 2, 3, 5, 7) if high - low <= 0.8 else (1, 2, 5) if high - low <= 1.5 else (1,)
    ticks = [(p + math.log10(f), _power_label(f, p)) for p in powers if p % step == 0 for f in factors]
    return [(position, label) for position, label in ticks if low - 1e-9 <= position <= high + 1e-9]


def _power_label(factor: float, power: int) -> str:
    if not -5 <= power <= 14:
        return f"{factor:g}e{power}"
    value = factor * 10.0**power
    if factor == 1.5:
        return f"{value:.{max(0, 1 - power)}f}"
    return _label(value, value) if power >= 0 else f"{value:.{-power}f}"


def time_ticks(low: float, high: float) -> Ticks:
    """Return ticks at round times, for positions that are seconds since 1970."""
    least = (high - low) / MAX_STEPS
    if low < FIRST_SECOND or high > LAST_SECOND:
        return [(low, f"{low:.3g} s"), (high, f"{high:.3g} s")]
    if least <= TIME_STEPS[-1]:
        step = next(step for step in TIME_STEPS if step >= least)
        starts = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step
        if step < HOUR and len(starts) < 2:
            return [(low, shown("time", low)), (high, shown("time", high))]
        form = "%d %b" if step >= DAY else "%d %b %H:%M"
        return [(float(s), (EPOCH + timedelta(seconds=float(s))).strftime(form).lstrip("0")) for s in starts]
    months = next((m for m in MONTH_STEPS if m * MONTH >= least), MONTH_STEPS[-1])
    first = EPOCH + timedelta(seconds=low)
    ticks: Ticks = []
    for month in range((first.year * 12 + first.month - 1) // months * months, 9999 * 12, months):
        date = datetime(max(month // 12, 1), month % 12 + 1, 1, tzinfo=UTC)
        position = date.timestamp()
        if position > high:
            break
        if position >= low:
            ticks.append((position, date.strftime("%Y") if months >= 12 else date.strftime("%b %Y")))
    return ticks
