"""Relations: what the values of a row must have in common, frozen.

Five kinds of relation are learned from the training rows (`_fit/relations.py`):

- *number*: a number follows from others, x = constant + sum of weight * partner, as it is or after logarithms (a
  product); or, under a condition (`when` is a column that has the value `when_code`), it keeps near a constant;
- *curve*: a number keeps near what is usual beside another number, where the distance that is usual may change with
  that number;
- *order*: of two dates or two numbers, the first is never above the second;
- *pair*: two values of two columns, both frequent, never meet;
- *determined*: the value of one column follows from the value of another.

A relation names columns by their index in the table, and values by their *code*: the place of a category's value in
`Column.values`, or of a number in `levels`, for numbers of few different values.

The *strength* of a relation is log10(E / (k + 1)): k of the training rows break it, and E would if the columns were
independent. It is the same unit for all kinds. The *evidence* of a row is 0 if it breaks no relation, else the largest
strength of those that it breaks (`_kernels/relations.py`).
"""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from .._arrays import Float64s, Int32s, Int64s
from .fields import Array, array_fields

MAX_TERMS = 10
"""A number follows from at most this many partners: nobody would read the sentence about a longer sum."""
LARGEST_CELL = 1e100
"""Numbers of a table are cut to this size before they are related: no sum or product overflows."""
MISSING, UNLISTED = -1, -2
"""Codes of a missing number, and of a value that was never seen or is too rare to be listed. (In a category, a missing
value is a value as any other.)"""
NUMBER_KINDS = ("number", "boolean", "time", "duration")
"""Kinds of columns whose cells are numbers."""
GIVEN = 0
"""Code of a number, date or duration that is not missing, in a column without levels."""
MAX_RELATIONS = 128
"""At most this many relations of each class below."""
SUM, LOGARITHMS, PRODUCT = 0, 1, 2
"""Forms of a relation of numbers."""
N_KNOTS = 12
"""Knots of a curve."""
MAX_SPANS = 6
"""At most this many pairs of dates."""
LARGEST_STRENGTH = 20.0
"""Largest strength of a relation: 10 to this power is more than the number of rows of any table."""


@dataclass(frozen=True, eq=False)
class NumberRelations:
    """Numbers that follow from others: |x - constant - sum of weight * partner| is at most `limit`; of a product,
    |x - exp(...)|."""

    target: Annotated[Int32s, Array("numbers", 0, is_optional=True, since=4)]
    """The column x."""
    form: Annotated[Int32s, Array("numbers", 0, 2, is_optional=True, since=4)]
    """`SUM`; or a product, the sum of logarithms, which is compared with x by `LOGARITHMS` or as it is (`PRODUCT`).
    Partners that are values stay 0 or 1."""
    when: Annotated[Int32s, Array("numbers", -1, is_optional=True, since=4)]
    """The column of the condition; -1 if there is none."""
    when_code: Annotated[Int32s, Array("numbers", MISSING, is_optional=True, since=4)]
    """The value that this column must have."""
    partner: Annotated[Int32s, Array(f"numbers {MAX_TERMS}", -1, is_optional=True, since=4)]
    """Columns; -1 after the last."""
    partner_code: Annotated[Int32s, Array(f"numbers {MAX_TERMS}", UNLISTED, is_optional=True, since=4)]
    """If the partner is a value of a category: its code. `UNLISTED` if the partner is a number."""
    weight: Annotated[Float64s, Array(f"numbers {MAX_TERMS}", -1e100, 1e100, is_optional=True, since=4)]
    constant: Annotated[Float64s, Array("numbers", -1e200, 1e200, is_optional=True, since=4)]
    within: Annotated[Float64s, Array("numbers", 0.0, 1e200, is_optional=True, since=4)]
    """99 % of the training rows are this near; for words only."""
    limit: Annotated[Float64s, Array("numbers", 1e-200, 1e250, is_optional=True, since=4)]
    """Rows farther away break the relation."""
    decade: Annotated[Float64s, Array("numbers", 1e-200, 1e250, is_optional=True, since=4)]
    """The distance over which the fraction of rows that are so far off falls to a tenth. The evidence of a row is its
    distance beyond the limit in this unit, and at most the strength of the relation."""
    strength: Annotated[Float64s, Array("numbers", 0.0, LARGEST_STRENGTH, is_optional=True, since=4)]
    n_rows: Annotated[Int64s, Array("numbers", 1, 2.0**40, is_optional=True, since=4)]
    """Training rows that the relation speaks of ..."""
    n_broken: Annotated[Int64s, Array("numbers", 0, 2.0**40, is_optional=True, since=4)]
    """... and how many of them break it. The same fields of the other kinds mean the same."""


@dataclass(frozen=True, eq=False)
class CurveRelations:
    """Numbers beside another number: |x - center(p)| is at most `limit` times above(p), or below(p) if x is below the
    center. The three are interpolated at the partner's number p, and constant beyond the first and the last knot."""

    target: Annotated[Int32s, Array("curves", 0, is_optional=True, since=4)]
    """The column x."""
    partner: Annotated[Int32s, Array("curves", 0, is_optional=True, since=4)]
    knot: Annotated[Float64s, Array(f"curves {N_KNOTS}", -1e100, 1e100, is_optional=True, since=4)]
    """Numbers of the partner, increasing."""
    center: Annotated[Float64s, Array(f"curves {N_KNOTS}", -1e100, 1e100, is_optional=True, since=4)]
    """The median of x there."""
    below: Annotated[Float64s, Array(f"curves {N_KNOTS}", 1e-160, 1e101, is_optional=True, since=4)]
    """A tenth of the rows is farther below the center than this, ..."""
    above: Annotated[Float64s, Array(f"curves {N_KNOTS}", 1e-160, 1e101, is_optional=True, since=4)]
    """... and a tenth is farther above it than this."""
    limit: Annotated[Float64s, Array("curves", 1e-200, 1e250, is_optional=True, since=4)]
    decade: Annotated[Float64s, Array("curves", 1e-200, 1e250, is_optional=True, since=4)]
    strength: Annotated[Float64s, Array("curves", 0.0, LARGEST_STRENGTH, is_optional=True, since=4)]
    n_rows: Annotated[Int64s, Array("curves", 1, 2.0**40, is_optional=True, since=4)]
    n_broken: Annotated[Int64s, Array("curves", 0, 2.0**40, is_optional=True, since=4)]


@dataclass(frozen=True, eq=False)
class OrderRelations:
    """Columns of which the first is never above the second."""

    low: Annotated[Int32s, Array("orders", 0, is_optional=True, since=4)]
    high: Annotated[Int32s, Array("orders", 0, is_optional=True, since=4)]
    strength: Annotated[Float64s, Array("orders", 0.0, LARGEST_STRENGTH, is_optional=True, since=4)]
    n_rows: Annotated[Int64s, Array("orders", 1, 2.0**40, is_optional=True, since=4)]
    n_broken: Annotated[Int64s, Array("orders", 0, 2.0**40, is_optional=True, since=4)]


@dataclass(frozen=True, eq=False)
class PairRelations:
    """Values that never meet: the first column's `first_code` and the second column's `second_code`."""

    first: Annotated[Int32s, Array("pairs", 0, is_optional=True, since=4)]
    first_code: Annotated[Int32s, Array("pairs", MISSING, is_optional=True, since=4)]
    second: Annotated[Int32s, Array("pairs", 0, is_optional=True, since=4)]
    second_code: Annotated[Int32s, Array("pairs", MISSING, is_optional=True, since=4)]
    usual_code: Annotated[Int32s, Array("pairs", UNLISTED, is_optional=True, since=4)]
    """What the second column has most often where the first has its value ..."""
    usual_rows: Annotated[Int64s, Array("pairs", 0, 2.0**40, is_optional=True, since=4)]
    """... and in how many rows."""
    strength: Annotated[Float64s, Array("pairs", 0.0, LARGEST_STRENGTH, is_optional=True, since=4)]
    n_rows: Annotated[Int64s, Array("pairs", 1, 2.0**40, is_optional=True, since=4)]
    """Rows in which the first column has its value."""
    n_broken: Annotated[Int64s, Array("pairs", 0, 2.0**40, is_optional=True, since=4)]


@dataclass(frozen=True, eq=False)
class DeterminedRelations:
    """Columns whose value follows from the value of another column."""

    by: Annotated[Int32s, Array("determined", 0, is_optional=True, since=4)]
    column: Annotated[Int32s, Array("determined", 0, is_optional=True, since=4)]
    strength: Annotated[Float64s, Array("determined", 0.0, LARGEST_STRENGTH, is_optional=True, since=4)]
    n_rows: Annotated[Int64s, Array("determined", 1, 2.0**40, is_optional=True, since=4)]
    n_broken: Annotated[Int64s, Array("determined", 0, 2.0**40, is_optional=True, since=4)]
    n_values: Annotated[Int64s, Array("determined", 1, 2.0**20, is_optional=True, since=4)]
    """How many values of `by` say what to expect."""
    by_code: Annotated[Int32s, Array("expectations", MISSING, is_optional=True, since=4)]
    """These values, of all relations one after the other; increasing within a relation ..."""
    expected_code: Annotated[Int32s, Array("expectations", MISSING, is_optional=True, since=4)]
    """... and what `column` has with each."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Numbers of few different values, which are also read as values: the place of a number is its code."""

    column: Annotated[Int32s, Array("levels", 0, is_optional=True, since=4)]
    """Of each level its column, increasing."""
    number: Annotated[Float64s, Array("levels", is_optional=True, since=4)]
    """Increasing within a column."""

    @cached_property
    def by_column(self) -> dict[int, Float64s]:
        """The levels of each column that has some."""
        columns, starts = np.unique(self.column, return_index=True)
        return dict(zip(columns.tolist(), np.split(self.number, starts[1:]), strict=True)) if len(columns) else {}


@dataclass(frozen=True, eq=False)
class Spans:
    """Times between two dates, which are related as numbers are. Span k counts as column d + k of a table of d
    columns."""

    begin: Annotated[Int32s, Array("spans", 0, is_optional=True, since=4)]
    end: Annotated[Int32s, Array("spans", 0, is_optional=True, since=4)]


@dataclass(frozen=True, eq=False)
class TrainingEvidence:
    """What the evidence of a row is ranked among."""

    of_rows: Annotated[Float64s, Array("broken", 0.0, LARGEST_STRENGTH, is_sorted=True, is_optional=True, since=4)]
    """The evidence of the training rows that break a relation, each as if the row were new; increasing."""


@dataclass(frozen=True, eq=False)
class HeldOutBreaks:
    """How many of the rows held out of the fit break each relation. The relations were not learned from these rows, so
    rows of a new table should break them as often."""

    n_broken: Annotated[Int64s, Array("all_relations", 0, 2.0**40, is_optional=True, since=4)]
    """Relations of numbers first, then curves, orders, pairs, determined; empty if it is not known."""


@dataclass(frozen=True, eq=False)
class Relations:
    """All relations of a table."""

    numbers: NumberRelations
    curves: CurveRelations
    orders: OrderRelations
    pairs: PairRelations
    determined: DeterminedRelations
    levels: Levels
    spans: Spans
    evidence: TrainingEvidence
    n_rows: int
    """Training rows that the relations were learned from: those of the sample."""
    held_out: HeldOutBreaks = HeldOutBreaks(np.empty(0, np.int64))

    @property
    def broken_fraction(self) -> float:
        """The fraction of the training rows that break a relation."""
        return len(self.evidence.of_rows) / self.n_rows

    def __len__(self) -> int:
        return sum(len(part.n_rows) for part in (self.numbers, self.curves, self.orders, self.pairs, self.determined))


def filled(cls: type, arrays: dict[str, Any]) -> Any:
    """Return an object of one of the classes above, with empty arrays where none are given."""
    types = {field.name: field for field in array_fields(cls)}
    given = {}
    for field in fields(cls):
        described = types[field.name]
        width = [int(name) for name in described.dimensions[1:]]
        dtype = described.dtype.newbyteorder("=") if described.dtype is not None else np.float64
        given[field.name] = np.asarray(arrays.get(field.name, []), dtype=dtype).reshape(-1, *width)
    return cls(**given)
