"""Relations: those that many more rows of a table break than rows before.

In: how many rows break a relation, of a new table and of the held-out rows. Out: a `RelationCheck`. The relations were
not learned from the held-out rows: if nothing has changed, rows of both kinds are equally likely to break one, and the
p-value of Fisher's exact test holds. (The training rows, which they were learned from, break fewer.)
"""

from dataclasses import dataclass

from .two_samples import shares_p_value

MIN_OFTEN_ROWS, MIN_OFTEN_FRACTION, MIN_OFTEN_FACTOR = 5, 0.01, 10.0
"""Without held-out rows, a relation is broken often if at least so many rows break it, which are at least this fraction
of the rows and at least so many times the fraction of the training rows."""

LONGEST_RELATION = 120
"""Characters of a relation in a reason: a longer sum is not read."""


@dataclass(frozen=True)
class RelationCheck:
    """A relation between columns that rows of a new table break."""

    columns: tuple[str, ...]
    relation: str
    """The relation in words."""
    n_broken: int
    """New rows that break it, of ..."""
    n_rows: int
    in_training: tuple[int, int]
    """Training rows that break it, of how many."""
    held_out: tuple[int, int] | None
    """Held-out rows that break it, of how many; None if that is not known."""
    p_value: float = 1.0

    @classmethod
    def of(
        cls,
        columns: tuple[str, ...],
        relation: str,
        new: tuple[int, int],
        in_training: tuple[int, int],
        held_out: tuple[int, int] | None,
    ) -> "RelationCheck":
        """Return the check of one relation, given pairs of rows that break it and all rows."""
        p_value = 1.0
        if held_out is not None and new[0] * held_out[1] > held_out[0] * new[1]:  # to be kept more often is no harm
            p_value = shares_p_value(*new, *held_out)
        return cls(columns, relation, *new, in_training, held_out, p_value)

    @property
    def is_often(self) -> bool:
        """Whether it is broken so much more often than in training that it is worth a word; no test."""
        before = (self.in_training[0] + 1) / (self.in_training[1] + 1)
        fraction = self.n_broken / self.n_rows
        return self.n_broken >= MIN_OFTEN_ROWS and fraction >= max(MIN_OFTEN_FRACTION, MIN_OFTEN_FACTOR * before)

    @property
    def words(self) -> str:
        """What has changed, in words."""
        broken, rows = self.held_out or self.in_training
        kind = "training" if self.held_out is None else "held-out"
        was = f"{broken:,} of the {rows:,}" if broken else f"none of the {rows:,}"
        said = self.relation if len(self.relation) <= LONGEST_RELATION else f"{self.relation[:LONGEST_RELATION]}..."
        return f"{said}; now {self.n_broken:,} of {self.n_rows:,} rows break it ({was} {kind} rows)"
