"""The report: one self-contained HTML page about a table and what a detector finds in it.

In: a fitted detector and a table. Out: a file that needs no network and no server. `_gather.py` decides what is on the
page, `_charts.py`, `_columns.py` and `_axes.py` turn it into numbers to draw, `_page.py` puts them into the page, which
is `page.html`, `page.css`, `charts.js` and `page.js`.
"""

from ._gather import report_data
from ._page import write_report

__all__ = ["report_data", "write_report"]
