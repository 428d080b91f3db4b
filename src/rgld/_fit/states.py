"""States: what a pass has learned from some rows.

Every state merges: two states of different rows become the state of all these rows. Dask knows the size of a state by
this class (`dask.py`).
"""

from abc import ABC, abstractmethod
from typing import Self


class Mergeable(ABC):
    """A state: what a pass has learned from some rows."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Return the state for the rows of both."""
