"""Batches: a table larger than memory that is read batch by batch, once in every pass.

In: a function that returns the batches, beginning with the first. Out: an `Executor`. Only one batch is in memory at a
time.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from ..exceptions import ParameterError, TableError
from .in_passes import Executor
from .steps import State, Step

BatchSource = Callable[[], Iterable[Any]] | Iterable[Any]


class Batches(Executor):
    """Runs passes batch by batch, in the order of the batches."""

    def __init__(self, source: BatchSource, on_rows: Callable[[int, int], None] | None = None) -> None:
        """Take the batches. `on_rows(number, rows)` is called after each batch with the number of the pass and the
        number of rows that this pass has seen."""
        if isinstance(source, Iterator):
            raise ParameterError(
                "Expected batches that can be read several times, got an iterator, which can be read only once: "
                "pass a function that returns a new iterator, or a list."
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
        self._n_rows_seen = 0
        self._begun: Iterable[Any] | None = None

    def example(self) -> Any:
        """Return the first batch that has rows. The first pass does not ask the source for it again."""
        looked_at, parts = [], iter(self._parts())
        for part in parts:
            looked_at.append(part)
            if n_rows_of_part(part):
                self._begun = chain(looked_at, parts)
                return part
        raise TableError("Expected at least one batch with rows, got no rows: check where the batches come from.")

    def run(self, step: Step[State]) -> State:
        """Return the state of a step after one pass over all batches."""
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
        if self.n_passes > 1 and first_row != self._n_rows_seen:
            raise TableError(
                f"The batches had {self._n_rows_seen:,} rows in the first pass and {first_row:,} in a later one: the "
                "function must return the same batches each time it is called, beginning with the first."
            )
        self._n_rows_seen = first_row
        assert state is not None, "example() found a batch with rows"
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
