"""Streams: rows that keep coming.

In: new rows. Out: a `Stream` with a sample of all rows so far, on which the detector is fitted. It is the sample that
`sampling.py` draws from a table of the same rows. With a half-life, later rows are more likely to be in it.
"""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from .._arrays import Int64s
from .._params import Parameters
from .._table.frames import collected
from .._table.schema import Schema
from .._table.table import Table
from ..exceptions import ParameterError
from .randomness import root_seed
from .sampling import RowSample, sample_part, sample_size

MIN_HALF_LIFE, MAX_HALF_LIFE = 100.0, 2.0**40
"""In rows. A detector needs some rows to learn from, and no stream has more than 2^40."""


@dataclass(frozen=True)
class Stream:
    """What is kept of a stream."""

    seed: int
    size: int
    """The sample has at most this many rows."""
    half_life: float | None
    """In rows; None if all rows count alike."""
    n_rows: int = 0
    """Number of rows so far."""
    sample: RowSample | None = None

    @classmethod
    def begin(cls, n_columns: int, parameters: Parameters, half_life: float | None) -> "Stream":
        """Return a new stream. With a half-life, the sample has at most that many rows: a larger one would hold nearly
        all of the latest rows."""
        is_number = isinstance(half_life, Real) and not isinstance(half_life, bool)
        if half_life is not None and not (is_number and MIN_HALF_LIFE <= half_life <= MAX_HALF_LIFE):
            raise ParameterError(
                f"half_life must be None or a number of rows from {MIN_HALF_LIFE:.0f} to 2^40, got {half_life!r} "
                "instead."
            )
        seed, size = root_seed(parameters.random_state), sample_size(n_columns, parameters.n_references)
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
        return replace(self, n_rows=self.n_rows + len(table), sample=sample)

    @property
    def n_spanned(self) -> int | None:
        """Number of rows from the first to the last sampled row; None if the sample holds all of them."""
        assert self.sample is not None, "a stream is begun with rows"
        spanned = int(self.sample.indices[-1] - self.sample.indices[0]) + 1
        return spanned if spanned > len(self.sample.indices) else None

    @property
    def row_indices(self) -> Int64s:
        """Indices of the sampled rows in the stream: the first row ever has index 0."""
        assert self.sample is not None, "a stream is begun with rows"
        return self.sample.indices

    @property
    def table(self) -> Table:
        """The sampled rows, in the order they came in."""
        assert self.sample is not None, "a stream is begun with rows"
        return self.sample.table


def extended_stream(
    stream: Stream | None, X: Any, detector: Any, parameters: Parameters, half_life: float | None
) -> tuple[Schema, Stream]:
    """Return the schema of a stream, and the stream with new rows; `stream` is None if these are its first. Later rows
    must have the columns that the detector was fitted on."""
    if stream is None:
        X = collected(X)  # read twice: its columns, then its rows
        schema = Schema.of(X)
        stream = Stream.begin(schema.n_columns, parameters, half_life)
    else:
        schema = Schema.of_fitted(detector)
    part = schema.read_part(X, stream.n_rows, unused=parameters.dropped_columns)
    return schema, stream.extended(part, half_life)
