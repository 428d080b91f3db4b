"""Streams: rows that keep coming.

In: new rows. Out: a `Stream`, a sample of all rows so far that a detector is fitted on. The sample is the one that
`_sampling` draws of a table of the same rows; with a half-life, later rows are more likely to be in it.
"""

from dataclasses import dataclass, replace
from numbers import Real

from ._sampling import RowSample, n_rows_of, sample_part
from ._table import Table
from .exceptions import ParameterError

SHORTEST_HALF_LIFE, LONGEST_HALF_LIFE = 100.0, 2.0**40
"""A detector needs some rows to learn from; and no stream is longer."""


@dataclass(frozen=True)
class Stream:
    """All that is kept of a stream."""

    seed: int
    size: int
    """Rows of the sample, at most."""
    half_life: float | None
    n_rows: int = 0
    """Rows so far."""
    sample: RowSample | None = None

    @classmethod
    def begin(cls, seed: int, size: int, half_life: float | None) -> "Stream":
        """Begin a stream. With a half-life, a sample of more rows would be one of nearly all of the latest."""
        is_number = isinstance(half_life, Real) and not isinstance(half_life, bool)
        if half_life is not None and not (is_number and SHORTEST_HALF_LIFE <= half_life <= LONGEST_HALF_LIFE):
            raise ParameterError(
                f"half_life must be None or a number of rows from {SHORTEST_HALF_LIFE:.0f} to 2^40, got {half_life!r} "
                "instead."
            )
        if half_life is None:
            return cls(seed, size, None)
        return cls(seed, min(size, int(half_life)), float(half_life))

    def extended(self, table: Table, half_life: float | None) -> "Stream":
        """Return the stream with new rows."""
        if half_life != self.half_life:
            raise ParameterError(
                f"half_life must be the same in every call, got {half_life!r} after {self.half_life!r}: begin with a "
                "new detector to change it."
            )
        new = sample_part(table, self.n_rows, self.seed, self.size, self.half_life)
        sample = new if self.sample is None else self.sample.merge(new)
        return replace(self, n_rows=self.n_rows + n_rows_of(table), sample=sample)

    @property
    def n_spanned(self) -> int | None:
        """From the first to the last sampled row, if rows between them are not in the sample."""
        assert self.sample is not None, "a stream is begun with rows"
        spanned = int(self.sample.numbers[-1] - self.sample.numbers[0]) + 1
        return spanned if spanned > len(self.sample.numbers) else None

    @property
    def table(self) -> Table:
        """The sampled rows, in the order they came in."""
        assert self.sample is not None, "a stream is begun with rows"
        return self.sample.table
