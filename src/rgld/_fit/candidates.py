"""Candidates: relations that may be kept, and how strong they are."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Float64s, Indices

MIN_LIFT = 30.0
"""A relation is kept if independent columns would break it in at least 30 (k + 1) rows, where k rows break it. The one
is added because 0 broken rows may be chance."""


class Candidate(NamedTuple):
    """A relation that may be kept."""

    expected: float
    """E: how many rows would break it if the columns were independent."""
    relation: dict[str, Any]
    """Its element of each array of its class."""
    broken: Indices
    """The k rows of the sample that break it."""
    decades: Float64s | None = None
    """Of relations of numbers: how far beyond the limit each of these rows is."""
    lift: float = MIN_LIFT
    """How many times as many rows would have to break it."""

    @property
    def strength(self) -> float:
        """log10(E / (k + 1))."""
        return _logarithm(self.expected / (len(self.broken) + 1.0))

    @property
    def strength_without(self) -> float:
        """log10(E / k): the strength if one of the rows that break it had not been in the training table."""
        return _logarithm(self.expected / max(len(self.broken), 1))

    @property
    def is_strong(self) -> bool:
        """Whether the relation is kept."""
        return self.expected >= self.lift * (len(self.broken) + 1.0)

    def evidence_without(self) -> Float64s:
        """Return the evidence of the rows that break it, as if each were new."""
        most = np.full(len(self.broken), self.strength_without)
        return most if self.decades is None else np.minimum(most, self.decades)


@lru_cache(maxsize=8)
def evenly_spaced(n_rows: int, most: int) -> Indices:
    """Return the indices of at most `most` rows, evenly spaced."""
    return np.linspace(0, n_rows - 1, most).astype(np.intp) if n_rows > most else np.arange(n_rows)


def may_be_kept(expected: float, n_broken: int, lift: float = MIN_LIFT) -> bool:
    """Tell whether a relation is strong, at least without one of the rows that break it."""
    return expected >= lift * max(n_broken, 1)


def _logarithm(lift: float) -> float:
    return round(float(np.log10(max(lift, 1.0))), 6)
