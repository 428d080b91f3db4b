"""The page: the data of a report as one HTML file.

In: the data of a report. Out: a file that refers to nothing outside it. The data is a block of JSON, which a browser
does not execute; the page's script inserts it as text. A content security policy allows this script and this style
sheet by their hashes and nothing else, so that even a value that became markup could not run or load anything.
"""

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from numpy.typing import ArrayLike

from .._arrays import Float64s
from .._detector import Detector
from .._drift.verdict import Check
from .._modelfile.atomic import written_beside
from .._table.table import Table
from ._gather import report_data

ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""Characters that could end the block of JSON or a line of it. Escaped, they mean the same in JSON."""


def write_report(
    detector: Detector,
    table: ArrayLike,
    path: str | os.PathLike[str],
    *,
    source: str = "table.csv",
    ids: Sequence[str] | None = None,
    id_name: str | None = None,
    p_values: ArrayLike | None = None,
    command: str = "",
    check: Check | None = None,
) -> None:
    """Write a report about a table as one self-contained HTML file.

    The file contains column names and values of the rows shown: protect it as you protect the table. An existing file
    is replaced only when the new one is complete.

    Parameters
    ----------
    detector : RGLD
        A fitted detector.
    table : table of shape (n, d)
        As for `RGLD.explain`.
    path : str or path
        The file to write.
    source : str
        Name of the table on the page.
    ids : sequence of str, shape (n,), or None
        Names of the rows on the page; None: their indices, from 0.
    id_name : str or None
        Name of the column of ids.
    p_values : array of shape (n,) or None
        Shown beside the scores; the page says how many rows they select at a false-discovery rate of 5 %. See
        `RGLD.p_values`.
    command : str
        The command that writes the same report again.
    check : Check or None
        What `RGLD.check` says of the table: the page then begins with what has changed.
    """
    data = report_data(
        detector, table, source=source, ids=ids, id_name=id_name, p_values=p_values, command=command, check=check
    )
    with written_beside(path) as beside:
        beside.write_bytes(page(data))


def report_page(detector: Detector, table: Table, p_values: Float64s | None, check: Check) -> bytes:
    """Return the page of a table that was read already, with what has changed."""
    return page(report_data(detector, table, source="table", p_values=p_values, check=check))


def page(data: dict[str, Any]) -> bytes:
    """Return the HTML file that shows the data."""
    style, script = _parts()
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPES)
    html = files(__package__).joinpath("page.html").read_text("utf-8")
    # The data comes last, so that nothing in it is replaced.
    parts = {"STYLE_HASH": _hash(style), "SCRIPT_HASH": _hash(script), "STYLE": style, "SCRIPT": script, "DATA": text}
    for name, part in parts.items():
        html = html.replace(f"@@{name}@@", part, 1)
    return html.encode("utf-8", "replace")  # half a surrogate pair, which a Python string may hold, is not UTF-8


def _parts() -> tuple[str, str]:
    """Return the style sheet and the script of the page."""
    folder = files(__package__)
    style = folder.joinpath("page.css").read_text("utf-8")
    return style, "\n".join(folder.joinpath(name).read_text("utf-8") for name in ("charts.js", "page.js"))


def policy_hashes() -> tuple[str, str]:
    """Return the hashes of the style sheet and of the script, for the policy of a page that opens a report."""
    style, script = _parts()
    return _hash(style), _hash(script)


def _hash(content: str) -> str:
    """Return a hash in the words of a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
