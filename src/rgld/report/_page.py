"""The page: data into one HTML file.

In: the data of a report. Out: a file without references to anything outside it. The data is a block of JSON, which no
browser executes; the page's script inserts it as text. A content security policy allows this one script and this one
style sheet by their hashes, and nothing else: not even a value that became markup could run or load anything.
"""

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from numpy.typing import ArrayLike

from .._atomic import written_beside
from .._detector import RGLD
from ._gather import report_data

ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}
"""What could end the block of JSON, or a line of it; escaped, it means the same to JSON."""


def write_report(
    detector: RGLD,
    table: ArrayLike,
    path: str | os.PathLike[str],
    *,
    source: str = "table.csv",
    ids: Sequence[str] | None = None,
    id_name: str | None = None,
    p_values: ArrayLike | None = None,
    command: str = "",
) -> None:
    """Write a report about a table as one self-contained HTML file.

    The file contains column names and values of the rows shown: treat it as you treat the table. An existing file is
    replaced only when the new one is whole.

    Parameters
    ----------
    detector : RGLD
        A fitted detector.
    table : table of shape (n, d)
        As for `RGLD.explain`.
    path : str or path
        The file to write.
    source : str
        What the table is called on the page.
    ids : sequence of str, shape (n,), or None
        What the rows are called on the page; None: by their numbers, counted from 0.
    id_name : str or None
        What the ids are called, as the name of their column.
    p_values : array of shape (n,) or None
        Shown beside the scores, and judged at a false-discovery rate of 5 %; see `RGLD.p_values`.
    command : str
        What to run to get the same report again.
    """
    data = report_data(detector, table, source=source, ids=ids, id_name=id_name, p_values=p_values, command=command)
    with written_beside(path) as beside:
        beside.write_bytes(page(data))


def page(data: dict[str, Any]) -> bytes:
    """Return the HTML file that shows the data."""
    folder = files(__package__)
    style = folder.joinpath("page.css").read_text("utf-8")
    script = "\n".join(folder.joinpath(name).read_text("utf-8") for name in ("charts.js", "page.js"))
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(ESCAPES)
    html = folder.joinpath("page.html").read_text("utf-8")
    # The data comes last: whatever it holds, nothing in it is replaced.
    parts = {"STYLE_HASH": _hash(style), "SCRIPT_HASH": _hash(script), "STYLE": style, "SCRIPT": script, "DATA": text}
    for name, part in parts.items():
        html = html.replace(f"@@{name}@@", part, 1)
    return html.encode("utf-8", "replace")  # half a surrogate pair, which a text from Python can hold, is no UTF-8


def _hash(content: str) -> str:
    """Return a hash in the words of a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
