"""Summaries: which columns and relations make the rows of a table stand out."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import Float64s, Int64s
from .._table.frames import Origin, make_frame

MAX_SUMMED_COLUMNS = 10
"""Columns of a printed summary."""
MAX_SUMMED_NAME_LENGTH = 40
MAX_SHOWN_RELATIONS = 5
MAX_RELATION_LENGTH = 100
BAR_LENGTH = 24


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """The part of each column in what makes rows stand out, the largest first; made by `Explanation.summary`."""

    columns: tuple[str, ...]
    """Names of the d columns, that with the largest share first."""
    shares: Float64s
    """Shape (d,): the mean over the rows of the column's share of the contributions. They sum to 1, unless some rows
    have no evidence."""
    n_first: Int64s
    """Shape (d,): in how many rows the column contributed most."""
    n_rows: int
    """The number of rows."""
    relations: tuple[tuple[str, int], ...] = ()
    """The relations that rows break, in words, and how many rows break each, the most first."""

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        """Return the columns with the largest shares as a table."""
        rows = f"{self.n_rows:,} row{'s' * (self.n_rows != 1)}"
        shown = [_short(name) for name in self.columns[:MAX_SUMMED_COLUMNS]]
        width = max(map(len, shown), default=0)
        bar = "#" * BAR_LENGTH
        lengths = np.rint(BAR_LENGTH * self.shares / max(float(self.shares.max(initial=0.0)), 1e-12)).astype(int)
        lines = [
            f"  {name:<{width}}  {100 * share:3.0f} %  first in {first:>6,}  {bar[:length]}"
            for name, share, first, length in zip(shown, self.shares, self.n_first, lengths, strict=False)
        ]
        more = [f"  and {len(self) - len(shown):,} more columns"] if len(self) > len(shown) else []
        broken = [
            f"  {n:,} break: {_short(text, MAX_RELATION_LENGTH)}" for text, n in self.relations[:MAX_SHOWN_RELATIONS]
        ]
        heading = f"What makes {rows} stand out, by column"
        return "\n".join([heading, *(line.rstrip() for line in lines), *more, *broken])

    def to_frame(self) -> Any:
        """Return a pandas frame (polars, if pandas is not installed) with `column`, `share` and `n_first`."""
        return make_frame({"column": list(self.columns), "share": self.shares, "n_first": self.n_first}, Origin())


def summary_of(columns: tuple[str, ...], shares: Float64s, relations: Counter[str]) -> Summary:
    """Return the summary of rows, given the share of each column in each of them, shape (n, d), and how many of them
    break each relation."""
    mean = shares.mean(axis=0) if len(shares) else np.zeros(len(columns))
    with_evidence = shares[shares.any(axis=1)]
    n_first = np.bincount(with_evidence.argmax(axis=1), minlength=len(columns))
    order = np.argsort(-mean, kind="stable")
    names = tuple(columns[j] for j in order)
    return Summary(names, mean[order], n_first[order].astype(np.int64), len(shares), tuple(relations.most_common()))


def _short(text: str, length: int = MAX_SUMMED_NAME_LENGTH) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= length else plain[: length - 1] + "…"
