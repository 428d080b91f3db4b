"""`rgld explain`: which columns made rows stand out, and by how much."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import numpy as np
import polars as pl
import typer

from rgld._arrays import Float64s
from rgld.exceptions import ParameterError

from ._files import open_table
from ._options import Reading, Scoring, TableOutput, TablePath, Top, with_groups
from ._output import check_out, is_stdout, printed_cell, write_table
from ._relations import broken_as_dicts
from ._results import id_name
from ._scoring import Scored, score_any
from ._terminal import as_json, printable, progress

if TYPE_CHECKING:
    from rgld import Explanation

MAX_BAR_LENGTH = 24
"""Characters of the longest bar."""
MAX_PRINTED_BARS = 6
"""Columns of a row that are printed with a bar."""

RowNames = Annotated[
    list[str] | None,
    typer.Option(
        "--row",
        help="A row to explain: its --id, else its line in a text file, its index from 0 in others; repeatable.",
    ),
]


@with_groups
def explain(
    table: TablePath, *, row: RowNames = None, top: Top = 5, output: TableOutput, scoring: Scoring, reading: Reading
) -> None:
    """Explain rows: what each column contributed, in numbers and in words.

    Without --row, the --top most anomalous rows. With --out, the contributions of all columns go to a file, one line
    per explained row.
    """
    check_out(output.out, force=output.force, source=table, from_table=reading.from_table)
    with open_table(table, reading) as file, progress("scoring", quiet=output.quiet) as tell:
        scored = score_any(file, scoring, top, tell, rows=tuple(row or ()))
    if row:
        scored = _only(scored, row, has_ids=scoring.id is not None)
    if not len(scored.top_rows):
        return
    explanation = scored.explain()
    if output.out is not None:
        write_table(_contributions(scored, explanation), output.out, force=output.force, source=table)
    where = sys.stderr if is_stdout(output.out) else sys.stdout
    if output.json_:
        print(as_json(_as_dicts(scored, explanation)), file=where)
    elif not output.quiet:
        for i, shares in enumerate(explanation.shares()):
            _print_row(scored, explanation, i, shares, where)


def _contributions(scored: Scored, explanation: "Explanation") -> pl.DataFrame:
    """Return the table of `--out`: id, score and the contribution of each column."""
    ids = scored.ids[scored.top_rows]
    columns = {
        f"contribution of {name}": values
        for name, values in zip(explanation.columns, explanation.contributions.T, strict=True)
    }
    name = id_name(ids, ["score", *columns])
    return pl.DataFrame({name: ids, "score": explanation.anomaly_score, **columns})


def _as_dicts(scored: Scored, explanation: "Explanation") -> list[dict[str, Any]]:
    return [
        {
            "id": printed_cell(scored.ids[int(row)]),
            "score": float(explanation.anomaly_score[i]),
            "kind": explanation.kind(i),
            "reasons": explanation.reasons(i),
            "broken_relations": broken_as_dicts(explanation, i),
            "contributions": dict(zip(explanation.columns, map(float, explanation.contributions[i]), strict=True)),
        }
        for i, row in enumerate(scored.top_rows)
    ]


def _print_row(scored: Scored, explanation: "Explanation", i: int, shares: Float64s, file: TextIO) -> None:
    """Print the reasons of a row, and a bar for each column that contributed most."""
    name = printable(f"{scored.ids.name} {printed_cell(scored.ids[int(scored.top_rows[i])])}")
    print(f"{name}: score {explanation.anomaly_score[i]:.4f}, {explanation.kind(i)}", file=file)
    reasons = explanation.reasons(i)
    if not shares.any() and not reasons:
        print("  nothing unusual", file=file)
        return
    for reason in reasons:
        print(f"  {printable(reason)}", file=file)
    for j in np.argsort(-shares, kind="stable")[:MAX_PRINTED_BARS]:
        bar = "#" * max(1, round(MAX_BAR_LENGTH * shares[j] / shares.max()))
        print(f"    {printable(explanation.columns[j])[:30]:<30} {100 * shares[j]:3.0f} %  {bar}", file=file)
    print(file=file)


def _only(scored: Scored, rows: list[str], *, has_ids: bool) -> Scored:
    """Return the scored rows of these names, in this order."""
    places: dict[str, int] = {}
    for place, row in enumerate(scored.top_rows):
        places.setdefault(printed_cell(scored.ids[int(row)]), place)
    what = f"the column {scored.ids.name!r}"
    if not has_ids:
        what = "their index, from 0" if scored.ids.name == "row" else "their line in the file, from 1"
    missing = [name for name in rows if name not in places]
    if missing:
        raise ParameterError(f"--row {missing[0]}: there is no such row; rows are named by {what}.")
    order = np.array([places[name] for name in rows])
    return replace(scored, top_rows=scored.top_rows[order], top=scored.top[order])
