"""Results on the terminal: a summary, and rows with reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, TextIO

from rgld._table.shown import fine_percent

from ._output import printed_cell
from ._relations import broken_as_dicts
from ._scoring import Scored
from ._terminal import printable

MAX_GROUPED_ROWS = 500
"""Rows above the threshold that are put into groups, the most anomalous ones."""
MAX_GROUP_ROWS = 3
"""Rows of a group that are printed."""
MAX_ID_WIDTH = 40
"""Characters printed of an id."""


@dataclass(frozen=True)
class TopLine:
    """A row that stands out."""

    id: Any
    score: float
    rank: int
    p_value: float | None
    """None unless a calibrated model scored the row."""
    top_share: float
    """The fraction of the rows with a score at least as high."""
    kind: str
    reasons: list[str]
    broken_relations: list[dict[str, Any]]
    """The relations that the row breaks, as data: see `broken_as_dict`."""

    def as_dict(self) -> dict[str, Any]:
        """Return the line for JSON: with its p-value if it has one, else with its top share."""
        plain = self.id if isinstance(self.id, (int, float, str)) or self.id is None else printed_cell(self.id)
        unknown = "p_value" if self.p_value is None else "top_share"
        return {name: value for name, value in {**asdict(self), "id": plain}.items() if name != unknown}


@dataclass(frozen=True)
class TopGroup:
    """Rows that stand out for the same reasons."""

    n_rows: int
    rows: list[TopLine]
    """The strongest rows, at most `MAX_GROUP_ROWS`."""
    reasons: list[str]

    @property
    def breaks_relation(self) -> bool:
        """Whether the rows break a relation."""
        return bool(self.rows[0].broken_relations)

    def as_dict(self) -> dict[str, Any]:
        """Return the group for JSON."""
        return {
            "rows": self.n_rows,
            "reasons": self.reasons,
            "strongest": [{k: v for k, v in line.as_dict().items() if k != "reasons"} for line in self.rows],
        }


class Findings:
    """The most anomalous rows of a table as lines, and in groups."""

    def __init__(self, scored: Scored) -> None:
        self._scored = scored
        self._explanation = scored.explain() if len(scored.top_rows) else None
        self._ranks, self._top_share = scored.ranks, scored.top_share

    def lines(self, n: int) -> list[TopLine]:
        """Return rows with their reasons, the most anomalous first."""
        return [self._line(place, with_reasons=True) for place in range(min(n, len(self._scored.top_rows)))]

    def groups(self, n: int) -> list[TopGroup]:
        """Return groups of the rows above the threshold (at most `MAX_GROUPED_ROWS`, at least n if there are so many):
        up to n groups of rows that break a relation, which are mostly errors, then up to n others. Those of the most
        anomalous rows come first."""
        if self._explanation is None:
            return []
        scores = self._scored.scores[self._scored.top_rows]
        n_above = int((scores > -self._scored.detector.offset_).sum())
        grouped = self._explanation.groups(range(min(len(scores), max(n, min(n_above, MAX_GROUPED_ROWS)))))
        found = [
            TopGroup(
                len(group),
                [self._line(place, with_reasons=False) for place in group.rows[:MAX_GROUP_ROWS]],
                list(group.reasons),
            )
            for group in grouped
        ]
        breaking = [group for group in found if group.breaks_relation]
        return [*breaking[:n], *[group for group in found if not group.breaks_relation][:n]]

    def _line(self, place: int, *, with_reasons: bool) -> TopLine:
        assert self._explanation is not None
        scored, row = self._scored, int(self._scored.top_rows[place])
        return TopLine(
            scored.ids[row],
            float(scored.scores[row]),
            int(self._ranks[row]),
            None if scored.p_values is None else float(scored.p_values[row]),
            float(self._top_share[row]),
            self._explanation.kind(place),
            self._explanation.reasons(place) if with_reasons else [],
            broken_as_dicts(self._explanation, place),
        )


def _range(low: float, high: float) -> str:
    return fine_percent(low) if low == high else f"{fine_percent(low)} to {fine_percent(high)}"


def print_summary(summary: dict[str, Any], where: str, file: TextIO) -> None:
    """Print how many rows are above the threshold, how many are selected, and how well labels agree. `where` is
    the table in which a fraction of the rows is above the threshold, anomalies or not."""
    fraction = summary["above_threshold"] / summary["rows"]
    print(
        f"{summary['rows']:,} rows; {summary['above_threshold']:,} ({100 * fraction:.1f} %) score above the threshold "
        f"of {summary['threshold']:.2f}\n  (in {where} about {_range(*summary['by_definition'])} do, even without "
        "anomalies)",
        file=file,
    )
    if "selected" in summary:
        print(f"{summary['selected']:,} rows selected at a false-discovery rate of {summary['fdr']:g}", file=file)
        if not summary["selected"] and summary["fewest"] > 1:
            print(
                f"  (with so few calibration rows a selection has at least {summary['fewest']:,} rows: calibrate on "
                "more rows, or score fewer)",
                file=file,
            )
    if "auroc" in summary:
        found = f"AUROC {100 * summary['auroc']:.2f}, AUPRC {100 * summary['auprc']:.2f}"
        print(f"{found} (labelled anomalies: {summary['anomalies']:,}; the model did not use the labels)", file=file)


def print_groups(groups: list[TopGroup], name: str, file: TextIO) -> None:
    """Print groups of rows: on the left the strongest rows, on the right what the rows of the group share; `name` is
    the heading of the ids."""
    if not groups:
        return
    heads = _heads([line for group in groups for line in group.rows], name)
    n_breaking = sum(group.breaks_relation for group in groups)
    print(f"\n{next(heads)}  why" + ("  (rows that break a relation come first)" if n_breaking else ""), file=file)
    for place, group in enumerate(groups):
        if n_breaking and place == n_breaking:
            print(file=file)
        left = [next(heads) for _ in group.rows]
        if group.n_rows > len(left):
            left.append(f"  and {group.n_rows - len(left):,} more")
        shared = [f"{group.n_rows:,} rows like these:"] if group.n_rows > 1 else []
        right = [*shared, *(("  " if shared else "") + printable(reason) for reason in group.reasons)]
        for head, words in zip_longest(left, right, fillvalue=""):
            print(f"{head:<{len(left[0])}}  {words}".rstrip(), file=file)


def print_top(lines: list[TopLine], name: str, file: TextIO) -> None:
    """Print the most anomalous rows, each with its reasons; `name` is the heading of the ids."""
    if not lines:
        return
    heads = _heads(lines, name)
    print(f"\n{next(heads)}  why", file=file)
    for line, head in zip(lines, heads, strict=True):
        for place, reason in enumerate(line.reasons or [line.kind]):
            print(f"{head if place == 0 else ' ' * len(head)}  {printable(reason)}".rstrip(), file=file)


def _heads(lines: list[TopLine], name: str) -> Iterator[str]:
    """Yield the headings of rank, id, score and certainty, then these columns for each line."""
    ids = [printable(printed_cell(line.id))[:MAX_ID_WIDTH] for line in lines]
    width = min(max(3, *(len(text) for text in (printable(name), *ids))), MAX_ID_WIDTH)
    certainty = "top share" if lines[0].p_value is None else "p-value"
    yield f"{'rank':>5}  {printable(name):<{width}}  {'score':>7}  {certainty:>9}"
    for line, id in zip(lines, ids, strict=True):
        certainty = fine_percent(line.top_share) if line.p_value is None else f"{line.p_value:.2g}"
        yield f"{line.rank:>5}  {id:<{width}}  {line.score:7.4f}  {certainty:>9}"
