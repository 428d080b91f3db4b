"""What a person reads on the terminal: rows with reasons, how columns were read. Values of the table are plain text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from ._scoring import Scored

if TYPE_CHECKING:
    from rgld import RGLD

MOST_DROPPED = 6
"""Dropped columns that are named one by one."""


@dataclass(frozen=True)
class TopLine:
    """A row that stands out."""

    id: Any
    score: float
    rank: int
    p_value: float | None
    kind: str
    reasons: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the line as JSON has it."""
        plain = self.id if isinstance(self.id, (int, float, str)) or self.id is None else str(self.id)
        return {**asdict(self), "id": plain}


def top_lines(scored: Scored, n: int) -> list[TopLine]:
    """Return the most anomalous rows with their reasons, the most anomalous first."""
    rows = scored.top_rows[:n]
    if not len(rows):
        return []
    explanation = scored.explain()
    reasons = [explanation.reasons(place) for place in range(len(rows))]
    ranks = scored.ranks
    return [
        TopLine(
            scored.ids[int(row)],
            float(scored.scores[row]),
            int(ranks[row]),
            None if scored.p_values is None else float(scored.p_values[row]),
            explanation.kind(place),
            reasons[place],
        )
        for place, row in enumerate(rows)
    ]


def printable(text: str) -> str:
    """Return the text without control characters: a cell must not move the cursor or colour the terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def print_columns(detector: RGLD, file: TextIO) -> None:
    """Say how the columns were read."""
    kinds: dict[str, int] = {}
    for column in detector.columns_:
        kinds[column.kind] = kinds.get(column.kind, 0) + 1
    names = {"number": "numbers", "boolean": "truth values", "time": "dates", "duration": "durations"}
    names |= {"category": "categories", "dropped": "left out"}
    parts = ", ".join(f"{names[kind]} {count}" for kind, count in kinds.items())
    n = len(detector.columns_)
    print(f"{n} column{'s' * (n != 1)}: {parts}", file=file)
    noted = [column for column in detector.columns_ if column.note]
    for column in noted[:MOST_DROPPED]:
        what = "left out: " if column.kind == "dropped" else ""
        print(f"  {printable(column.name)}: {what}{printable(column.note)}", file=file)
    if len(noted) > MOST_DROPPED:
        print(f"  and {len(noted) - MOST_DROPPED} more (rgld info shows all of a model)", file=file)


def print_top(lines: list[TopLine], scored: Scored, summary: dict[str, Any], file: TextIO) -> None:
    """Print the summary and the most anomalous rows, each with its reasons."""
    share = summary["above_threshold"] / summary["rows"]
    print(
        f"{summary['rows']:,} rows; {summary['above_threshold']:,} ({100 * share:.1f} %) score above the automatic "
        f"threshold of {summary['threshold']:.2f}",
        file=file,
    )
    if "selected" in summary:
        print(f"{summary['selected']:,} rows selected at a false-discovery rate of {summary['fdr']:g}", file=file)
        if not summary["selected"] and summary["fewest"] > 1:
            print(
                f"  (with so few calibration rows fewer than {summary['fewest']:,} rows cannot be selected: "
                "calibrate on more, or score fewer rows)",
                file=file,
            )
    if "auroc" in summary:
        found = f"AUROC {100 * summary['auroc']:.2f}, AUPRC {100 * summary['auprc']:.2f}"
        print(f"{found} (labelled anomalies: {summary['anomalies']:,}; labels were not used otherwise)", file=file)
    if not lines:
        return
    name = scored.ids.name
    width = max(len(printable(str(name))), *(len(printable(str(line.id))) for line in lines))
    width = int(np.clip(width, 3, 40))
    print(f"\n{'rank':>5}  {printable(str(name)):<{width}}  {'score':>7}  {'p':>8}  why", file=file)
    for line in lines:
        p_value = "" if line.p_value is None else f"{line.p_value:.2g}"
        head = f"{line.rank:>5}  {printable(str(line.id))[:40]:<{width}}  {line.score:7.4f}  {p_value:>8}  "
        for place, reason in enumerate(line.reasons):
            print((head if place == 0 else " " * len(head)) + printable(reason), file=file)
