"""Notebooks: an explanation as a small HTML table.

In: an explanation. Out: HTML. Names and values of the table are text: everything that comes from it is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .explanation import Explanation

MAX_NOTEBOOK_BARS = 4
"""Columns of a row that are shown with a bar."""
CELL_STYLE = "text-align:left;vertical-align:top;padding:3px 14px 3px 0;white-space:"
BAR = "display:inline-block;height:.6em;margin-right:.5em;background:#d6480b;border-radius:2px"


def as_html(explanation: Explanation, rows: Sequence[int]) -> str:
    """Return a table of some rows: score, reasons and the columns that contributed most."""
    shares = explanation.shares()
    lines = []
    for row in rows:
        reasons = "<br>".join(escape(reason) for reason in explanation.reasons(row)) or "nothing unusual"
        order = sorted(range(len(explanation.columns)), key=lambda j: -shares[row, j])[:MAX_NOTEBOOK_BARS]
        bars = "<br>".join(_bar(explanation.columns[j], float(shares[row, j])) for j in order if shares[row, j] > 0)
        lines.append(_line("td", (f"{row:,}", f"{explanation.anomaly_score[row]:.4f}", reasons, bars)))
    heads = _line("th", ("row", "score", "why", "share of the evidence"))
    n = len(explanation)
    size = f"{n:,} row{'s' * (n != 1)}, {len(explanation.columns):,} columns"
    which = f"; the {len(rows)} with the highest scores" if n > len(rows) else ""
    return f"<p>Explanation of {size}{which}</p><table>{heads}{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[str]) -> str:
    """Return a line of the table; only the reasons, its third cell, may take several lines."""
    wraps = ("nowrap", "nowrap", "normal", "nowrap")
    parts = (f'<{tag} style="{CELL_STYLE}{wrap}">{cell}</{tag}>' for wrap, cell in zip(wraps, cells, strict=True))
    return f"<tr>{''.join(parts)}</tr>"


def _bar(name: str, share: float) -> str:
    shown = name if len(name) <= 40 else name[:39] + "…"
    return f'<span style="{BAR};width:{6 * share:.2f}em"></span>{escape(shown)} {100 * share:.0f} %'
