"""Explanations: why rows stand out, for people.

In: contributions, scores, the model, the table. Out: an `Explanation`, which ranks columns and puts reasons into words.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import _words
from ._cells import RawColumn
from ._model import Model

Floats = NDArray[np.float64]

LEAST_PART = 0.1
"""Columns that contribute less than this part of what a row's first column does are no reason."""
HIGH = 0.95
"""A branch score above this stands out."""
SHOWN_ROWS = 5
"""Rows in a printed explanation."""


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why rows stand out; made by `RGLD.explain`."""

    columns: tuple[str, ...]
    """Names of the table's columns, d of them."""
    contributions: Floats
    """Shape (n, d), never negative: what each column adds to the evidence, see `_contributions` and
    docs/explanations.md. A row's sum is its mean evidence over all views."""
    anomaly_score: Floats
    """Shape (n,), as are the next three."""
    global_score: Floats | None
    """None for a detector without a global branch."""
    local_score: Floats | None
    distance_ratio: Floats | None
    """Distance to the nearest references, in distances typical of training rows."""
    _model: Model
    _table: list[RawColumn] | NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.contributions)

    def __repr__(self) -> str:
        """Return the size, and the reasons of the rows with the highest scores."""
        size = (
            f"{len(self):,} row{'s' * (len(self) != 1)}, {len(self.columns):,} column{'s' * (len(self.columns) != 1)}"
        )
        highest = np.argsort(-self.anomaly_score, kind="stable")[:SHOWN_ROWS]
        lines = []
        for row in highest:
            reasons = "; ".join(self.reasons(int(row))) or "nothing unusual"
            lines.append(f"  row {row:,}, score {self.anomaly_score[row]:.4f}: {reasons}")
        return "\n".join([f"Explanation of {size}" + (", highest scores first" * (len(self) > 1)), *lines])

    def top(self, n_columns: int = 3) -> NDArray[np.intp]:
        """Return the numbers of the columns that contribute most to each row, largest first, shape (n, n_columns)."""
        return np.argsort(-self.contributions, axis=1, kind="stable")[:, :n_columns]

    def shares(self) -> Floats:
        """Return the contributions of each row divided by their sum, shape (n, d); 0 in a row without evidence."""
        whole = self.contributions.sum(axis=1, keepdims=True)
        shares: Floats = np.divide(self.contributions, whole, out=np.zeros_like(self.contributions), where=whole > 0)
        return shares

    def reasons(self, row: int, n_columns: int = 3) -> list[str]:
        """Return what is unusual about a row, column by column, the most important first.

        None for a row that no view finds unusual; columns that contribute less than a tenth of the first are left out,
        and, in a row that does not stand out, values that are unusual only beside the others.
        """
        row = range(len(self))[row]
        model = self._model
        contributed = self.contributions[row]
        order = np.argsort(-contributed, kind="stable")[:n_columns]
        chosen = [int(j) for j in order if contributed[j] > 0 and contributed[j] >= LEAST_PART * contributed.max()]
        if not chosen:
            return []
        (values,) = _words.values_of(model.encoding, self._table, np.array([row]), chosen)
        found = [
            _words.reason(model.encoding, j, value, model.sample.rows) for j, value in zip(chosen, values, strict=True)
        ]
        n_used = sum(column.kind != "dropped" for column in model.encoding.columns)
        stands_out = n_used > 1 and any(
            scores is not None and scores[row] > HIGH for scores in (self.global_score, self.local_score)
        )
        return [reason for reason in found if stands_out or _words.BESIDE not in reason]

    def kind(self, row: int) -> str:
        """Return how a row stands out: in a broadly thin region, away from its nearest rows, both, or not clearly."""
        broad = self.global_score is not None and self.global_score[row] > HIGH
        apart = self.local_score is not None and self.local_score[row] > HIGH
        words = {(True, True): "broadly rare and locally isolated", (True, False): "broadly rare"}
        found = words.get((broad, apart), "locally isolated" if apart else "not clearly unusual")
        if self.distance_ratio is None:
            return found
        return f"{found}; {_words.isolation(float(self.distance_ratio[row]))}"
