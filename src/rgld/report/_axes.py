"""Axes: where a number lies on a line, and which places of the line carry a label.

In: values. Out: positions, and ticks as pairs (position, label). A position is the value itself or, where values spread
over orders of magnitude, its logarithm; the page draws positions and knows nothing of scales.
"""

import math
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from .._words import shown

Floats = NDArray[np.float64]
Ticks = list[tuple[float, str]]

SMALLEST_TAIL = 1e-9
"""Ranks nearer to 1 than this are drawn at this distance."""
TAIL_RANKS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999)

HOUR, DAY = 3600.0, 86_400.0
TIME_STEPS = tuple(step * HOUR for step in (0.25, 1, 3, 6, 12)) + tuple(step * DAY for step in (1, 2, 7, 14))
MONTH_STEPS = (1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200)
MONTH = 30.44 * DAY
MOST_TICKS = 5
FIRST_SECOND, LAST_SECOND = -6.2e10, 2e11
"""Times beyond are no dates that a calendar of Python has."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Times are counted from here: some machines know no timestamps before it."""


def tail(ranks: Floats) -> Floats:
    """Return -log10(1 - rank): ranks 0.9, 0.99, 0.999 lie at 1, 2, 3, so that the highest ranks do not pile up."""
    position: Floats = -np.log10(np.maximum(1.0 - ranks, SMALLEST_TAIL))
    return position


def tail_ticks(high: float) -> Ticks:
    """Return ticks of ranks at `tail` positions up to `high`."""
    return [(float(tail(np.array([r]))[0]), f"{r:g}") for r in TAIL_RANKS if tail(np.array([r]))[0] <= high]


def linear_ticks(low: float, high: float) -> Ticks:
    """Return ticks at round numbers.

    >>> linear_ticks(0.0, 10.0)
    [(0.0, '0'), (2.0, '2'), (4.0, '4'), (6.0, '6'), (8.0, '8'), (10.0, '10')]
    """
    step = _round_step((high - low) / MOST_TICKS)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [(i * step, _label(i * step, step)) for i in range(first, min(last, first + 2 * MOST_TICKS) + 1)]


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below."""
    power = 10.0 ** math.floor(math.log10(max(least, 1e-300)))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least * (1 - 1e-9))


def _label(value: float, step: float) -> str:
    """Return a tick's value with the digits its step needs; long numbers in thousands, millions, billions."""
    for size, letter in ((1e12, "e12"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 1e15:
            return f"{value:.3g}"
        if abs(value) >= size and step >= size / 1000 and abs(value) >= 1e4:
            return f"{value / size:.12g}{letter}"
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{value:,.{digits}f}" if digits <= 6 else f"{value:.3g}"


def duration_ticks(low: float, high: float) -> Ticks:
    """Return ticks at round numbers of seconds, minutes, hours or days, for positions that are seconds.

    >>> duration_ticks(0.0, 7200.0)
    [(0.0, '0 min'), (3000.0, '50 min'), (6000.0, '100 min')]
    """
    most = max(abs(low), abs(high))
    unit, word = next(((u, w) for u, w in ((DAY, "d"), (HOUR, "h"), (60.0, "min")) if most > 2 * u), (1.0, "s"))
    return [(position * unit, f"{label} {word}") for position, label in linear_ticks(low / unit, high / unit)]


def log_ticks(low: float, high: float) -> Ticks:
    """Return ticks for positions that are decimal logarithms: powers of ten or, of few, also twice and five times them.

    >>> log_ticks(0.0, 2.0)
    [(0.0, '1'), (1.0, '10'), (2.0, '100')]
    """
    powers = range(math.floor(low), math.ceil(high) + 1)
    step = max(1, math.ceil(len(powers) / (MOST_TICKS + 2)))
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
    least = (high - low) / MOST_TICKS
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
