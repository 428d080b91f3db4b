"""The report: one self-contained HTML page about a table and what a detector finds in it.

In: a fitted detector and a table. Out: a file that needs no network and no server. `_gather.py` collects what the page
shows; `_charts.py`, `_columns.py` and `_axes.py` compute what is drawn; `_summary.py` and `_text.py` make the words;
`_page.py` writes the page from `page.html`, `page.css`, `charts.js` and `page.js`.
"""

from ._gather import report_data
from ._page import policy_hashes, report_page, write_report

__all__ = ["policy_hashes", "report_data", "report_page", "write_report"]
