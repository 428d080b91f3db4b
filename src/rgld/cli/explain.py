"""`rgld explain`: which columns made rows stand out, and by how much."""

import json
import sys
from dataclasses import replace
from typing import Annotated

import numpy as np
import polars as pl
import typer

from rgld.exceptions import ParameterError

from . import _options as options
from ._files import open_table
from ._output import check_out, write_table
from ._scoring import Scored, id_name, score_any
from ._show import printable

BAR = 24
"""Characters of the longest bar."""


def explain(
    table: options.TablePath,
    model: options.ModelPath = None,
    row: Annotated[
        list[str] | None, typer.Option("--row", help="A row to explain, by its --id or its number from 0; repeatable.")
    ] = None,
    top: options.Top = 5,
    out: options.Out = None,
    id: options.Id = None,
    label: options.Label = None,
    preset: options.PresetOption = None,
    seed: options.Seed = None,
    column: options.Columns = None,
    inf: options.Inf = options.Infinity.error,
    json_: options.Json = False,
    quiet: options.Quiet = False,
    force: options.Force = False,
    jobs: options.Jobs = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> None:
    """Explain rows: what each column contributed, in numbers and in words.

    Without --row, the --top most anomalous rows. With --out, the contributions of all columns go to a file, one line
    per explained row.
    """
    check_out(out, force=force)
    asked = options.asked_for(
        id=id,
        label=label,
        inf=inf,
        preset=preset,
        seed=seed,
        column=column,
        jobs=jobs,
        model=model,
        rows=tuple(row or ()),
    )
    with (
        open_table(table, options.read_options(delimiter, encoding, decimal, no_header)) as file,
        options.progress("scoring", quiet=quiet) as tell,
    ):
        scored = score_any(file, asked, model, top, tell)
    scored = _only(scored, row) if row else scored
    explanation = scored.explain() if len(scored.top_rows) else None
    if explanation is None:
        return
    if out is not None:
        ids = scored.ids[scored.top_rows]
        columns = {
            f"contribution of {name}": values
            for name, values in zip(explanation.columns, explanation.contributions.T, strict=True)
        }
        name = id_name(ids, ["score", *columns])
        write_table(pl.DataFrame({name: ids, "score": explanation.anomaly_score, **columns}), out)
    shares = explanation.shares()
    reasons = [explanation.reasons(place) for place in range(len(scored.top_rows))]
    if json_:
        content = [
            {
                "id": str(scored.ids[int(number)]),
                "score": float(explanation.anomaly_score[i]),
                "kind": explanation.kind(i),
                "reasons": reasons[i],
                "contributions": dict(zip(explanation.columns, map(float, explanation.contributions[i]), strict=True)),
            }
            for i, number in enumerate(scored.top_rows)
        ]
        print(json.dumps(content, indent=1), file=sys.stderr if out == "-" else sys.stdout)
    elif not quiet:
        where = sys.stderr if out == "-" else sys.stdout
        for i, number in enumerate(scored.top_rows):
            name = printable(f"{scored.ids.name} {scored.ids[int(number)]}")
            print(f"{name}: score {explanation.anomaly_score[i]:.4f}, {explanation.kind(i)}", file=where)
            if not shares[i].any():
                print("  nothing unusual", file=where)
                continue
            for reason in reasons[i]:
                print(f"  {printable(reason)}", file=where)
            for j in np.argsort(-shares[i], kind="stable")[:6]:
                bar = "#" * max(1, round(BAR * shares[i, j] / shares[i].max()))
                print(
                    f"    {printable(explanation.columns[j])[:30]:<30} {100 * shares[i, j]:3.0f} %  {bar}", file=where
                )
            print(file=where)


def _only(scored: Scored, rows: list[str]) -> Scored:
    """Keep the rows asked for, in that order."""
    names: dict[str, int] = {}
    for place, number in enumerate(scored.top_rows):
        names.setdefault(str(scored.ids[int(number)]), place)
    what = "their number, from 0" if scored.ids.name == "row" else f"the column {scored.ids.name!r}"
    missing = [name for name in rows if name not in names]
    if missing:
        raise ParameterError(f"--row {missing[0]}: there is no such row; rows are named by {what}.")
    places = np.array([names[name] for name in rows])
    return replace(scored, top_rows=scored.top_rows[places], top=scored.top[places])
