"""Batches: a table that comes in parts, again for every pass.

In: a function that returns the parts from the beginning. Out: `Passes`. Only one part is in memory at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from ._training import State, Step
from .exceptions import ParameterError, TableError

BatchSource = Callable[[], Iterable[Any]] | Iterable[Any]


class Batches:
    """Parts of a table in their order."""

    def __init__(self, source: BatchSource, on_rows: Callable[[int, int], None] | None = None) -> None:
        """Take the parts; `on_rows` is told the number of the pass and of the rows it has seen."""
        if isinstance(source, Iterator):
            raise ParameterError(
                "Expected batches that can be gone through several times, got an iterator, which ends after one: "
                "pass a function that returns a new one, or a list."
            )
        if hasattr(source, "shape"):
            raise ParameterError(
                f"Expected batches, got one table ({type(source).__name__}): use fit, or pass a list of tables."
            )
        if not callable(source) and (not isinstance(source, Iterable) or isinstance(source, (str, bytes, dict))):
            raise ParameterError(
                f"Expected a function that returns batches, or a list of them, got {type(source).__name__}."
            )
        self._source = source
        self._on_rows = on_rows or (lambda number, rows: None)
        self.n_passes = 0
        self.n_rows = 0
        self._begun: Iterable[Any] | None = None

    def first(self) -> Any:
        """Return the first part with rows; the first pass begins with what was looked at."""
        looked_at, parts = [], iter(self._parts())
        for part in parts:
            looked_at.append(part)
            if n_rows_of_part(part):
                self._begun = chain(looked_at, parts)
                return part
        raise TableError("Expected batches with rows, got none: check the source.")

    def run(self, step: Step[State]) -> State:
        """Go through the table once."""
        state: State | None = None
        first_row = 0
        self.n_passes += 1
        parts, self._begun = self._begun or self._parts(), None
        for part in parts:
            n_rows = n_rows_of_part(part)
            if n_rows:
                state = step.fold(state, part, first_row)
            first_row += n_rows
            self._on_rows(self.n_passes, first_row)
        if self.n_passes > 1 and first_row != self.n_rows:
            raise TableError(
                f"The batches had {self.n_rows:,} rows in the first pass and {first_row:,} in the next: the function "
                "that returns them must begin anew each time it is called, and give the same rows."
            )
        self.n_rows = first_row
        assert state is not None, "the first part was looked at before"
        return state

    def _parts(self) -> Iterable[Any]:
        parts = self._source() if callable(self._source) else self._source
        if not isinstance(parts, Iterable):
            raise ParameterError(
                f"Expected a function that returns batches, got one that returns {type(parts).__name__}."
            )
        return parts


def n_rows_of_part(part: Any) -> int:
    """Return the number of rows of a batch."""
    try:
        return len(part)
    except TypeError as error:
        raise TableError(
            f"Expected batches that are tables in memory, got {type(part).__name__}: collect or convert it first."
        ) from error
