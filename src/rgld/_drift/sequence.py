"""The sequence: a bet against the rows, one after the other, that pays off when they change.

In: scores of new rows in the order they come, and those of held-out rows. Out: a `Watch`, whose wealth is large only
if the rows are not like the held-out rows. It can be carried on from table to table for months, and looked at after any
row.

**Pool.** A new score gets its rank in the pool: the held-out scores and the new scores before it, ties broken at
random. If all rows are exchangeable, these ranks are independent and uniform on (0, 1), exactly. (Ranks among the same
held-out scores would be uniform, but not independent.) Beyond `MAX_POOL` scores a random one leaves, which changes
nothing of this: see docs/drift.md.

**Bets.** Each bet multiplies its money by a function of the rank whose mean is 1. So the money never grows on average,
and P(it ever reaches 1 / alpha) <= alpha (Ville). Money not at stake lies in a reserve; a small part of it is bet anew
at every row.
"""

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

import numpy as np

from .._arrays import Float64s

MAX_POOL = 10_000
"""Scores in the pool: so many that a rank is as good as a probability, so few that a state file stays small."""
SEED = 17_291
"""Seed of what is drawn at random here: it is fixed, so that the same rows give the same verdict."""
ORDER_SEED = 17_292
"""Seed of the order of rows whose own order says something. It is another one: the draws know nothing of the order."""
BET_BLOCK_ROWS = 1024
"""Rows whose random numbers are drawn at once; they depend on the number of the row only."""
SLOPES = (-2.0, -1.0, 1.0, 2.0)
"""Bets of the form 1 + slope (p - 1/2): a negative slope bets on small ranks p, which are rows that score high."""
EXPONENT = 0.5
"""A bet of the form exponent p^(exponent - 1): on very small ranks, a few rows far out."""
STOP_RATE = 0.01
"""Part of the money of each bet that goes to the reserve after every row."""


@dataclass(frozen=True)
class Watch:
    """The state of the bets after some rows."""

    pool: tuple[float, ...]
    """Scores that a new score is ranked among, increasing."""
    n_rows: int = 0
    """New rows so far."""
    log_wealth: float = 0.0
    """Logarithm of the money of all bets and the reserve together. It begins with 1 ..."""
    shares: tuple[float, ...] = (1.0,) + (0.0,) * (len(SLOPES) + 1)
    """... and these are the parts of it: the reserve, then the bets."""
    highest: float = 0.0
    """The highest `log_wealth` so far ..."""
    highest_at: int = 0
    """... and the number of new rows that it was reached after."""

    @classmethod
    def begin(cls, calibration: Float64s) -> "Watch":
        """Return the state before the first row, given the scores of held-out rows."""
        if len(calibration) > MAX_POOL:
            calibration = np.random.default_rng(SEED).choice(calibration, MAX_POOL, replace=False)
        return cls(tuple(np.sort(calibration).tolist()))

    @property
    def p_value(self) -> float:
        """A p-value that holds at any time: 1 / the highest wealth so far."""
        return float(np.exp(-max(0.0, self.highest)))

    def followed(self, scores: Float64s) -> tuple["Watch", Float64s]:
        """Return the state after some more rows, and the logarithm of the wealth after each of them."""
        if not len(scores) or not self.pool:
            return self, np.full(len(scores), self.log_wealth)
        pool = list(self.pool)
        draws = self._draws(len(scores))
        ranks = [_rank(pool, score, *pair) for score, pair in zip(scores.tolist(), draws, strict=True)]
        steps, shares = _bets(ranks, self.n_rows, list(self.shares))
        path = np.cumsum(np.append(self.log_wealth, np.log(steps)))[1:]  # one sum, however the rows are split
        best = int(np.argmax(path))
        is_higher = path[best] > self.highest
        new = Watch(
            tuple(pool),
            self.n_rows + len(scores),
            float(path[-1]),
            tuple(shares),
            float(path[best]) if is_higher else self.highest,
            self.n_rows + best + 1 if is_higher else self.highest_at,
        )
        return new, path

    def _draws(self, n: int) -> list[tuple[float, float]]:
        """Return two random numbers in (0, 1] for each of the next n rows."""
        first, last = self.n_rows // BET_BLOCK_ROWS, (self.n_rows + n) // BET_BLOCK_ROWS
        blocks = [np.random.default_rng([SEED, block]).random((BET_BLOCK_ROWS, 2)) for block in range(first, last + 1)]
        start = self.n_rows - first * BET_BLOCK_ROWS
        return [(tie, leaving) for tie, leaving in (1.0 - np.concatenate(blocks)[start : start + n]).tolist()]


def _rank(pool: list[float], score: float, tie: float, leaving: float) -> float:
    """Return the fraction of the pool that scores higher, ties broken at random; the score joins the pool."""
    low, high = bisect_left(pool, score), bisect_right(pool, score)
    rank = (len(pool) - high + tie * (high - low + 1)) / (len(pool) + 1)
    insort(pool, score)
    if len(pool) > MAX_POOL:
        del pool[int((1.0 - leaving) * len(pool))]
    return rank


def _bets(ranks: list[float], n_before: int, shares: list[float]) -> tuple[list[float], list[float]]:
    """Return what each row multiplies the wealth by, and the parts of the wealth after the last row."""
    steps = []
    reserve, *bets = shares
    for number, rank in enumerate(ranks, n_before + 1):
        # Before row t, a part 1 / (t + 1) of the reserve is bet: what is left shrinks like 1 / t, not exponentially.
        begun = reserve / (number + 1) / len(bets)
        reserve += STOP_RATE * sum(bets) - begun * len(bets)
        factors = [1.0 + slope * (rank - 0.5) for slope in SLOPES]
        factors.append(EXPONENT * rank ** (EXPONENT - 1.0))
        bets = [((1.0 - STOP_RATE) * bet + begun) * factor for bet, factor in zip(bets, factors, strict=True)]
        total = reserve + sum(bets)
        steps.append(total)
        reserve /= total
        bets = [bet / total for bet in bets]
    return steps, [reserve, *bets]
