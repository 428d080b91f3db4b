"""`rgld score`: which rows are anomalous, why, and how sure."""

import json
import sys
from typing import Annotated, Any

import typer

from rgld.exceptions import ParameterError

from . import _options as options
from ._files import open_table
from ._output import check_out, write_table
from ._scoring import MOST_REASONS, Scored, fewest_selected, result_frame, score_any
from ._show import print_columns, print_top, top_lines


def score(
    table: options.TablePath,
    model: options.ModelPath = None,
    out: options.Out = None,
    top: options.Top = 10,
    fdr: Annotated[
        float | None, typer.Option("--fdr", help="Select rows at this false-discovery rate; needs --model.")
    ] = None,
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
    """Score every row of a table: by a model file, or by a detector fitted on the table itself.

    The output has a line per row of the table, in its order: its id (or row number), score, rank, p-value and, for the
    1000 most anomalous rows, the reasons.
    """
    check_out(out, force=force)
    if fdr is not None and not 0.0 < fdr < 1.0:
        raise ParameterError(f"--fdr must be between 0 and 1, got {fdr:g} instead.")
    if fdr is not None and model is None:
        raise ParameterError(
            "--fdr needs --model: rows are selected against other rows than those the model was fitted on; "
            "fit with `rgld fit`, then score new rows."
        )
    asked = options.asked_for(
        id=id, label=label, inf=inf, preset=preset, seed=seed, column=column, jobs=jobs, model=model
    )
    n_top = max(top, MOST_REASONS if out is not None else 0)
    with open_table(table, options.read_options(delimiter, encoding, decimal, no_header)) as file:
        for note in file.notes:
            options.say(f"{file.shown}: {note}", quiet or json_)
        with options.progress("scoring", quiet=quiet) as tell:
            scored = score_any(file, asked, model, n_top, tell)
    for note in scored.notes:
        options.say(f"{file.shown}: {note}", quiet or json_)
    lines = top_lines(scored, n_top)
    frame = result_frame(scored, fdr, ["; ".join(line.reasons) for line in lines])
    if out is not None:
        write_table(frame, out)
    summary = _summary(scored, fdr, frame)
    if json_:
        summary["top"] = [line.as_dict() for line in lines[:top]]
        print(json.dumps(summary, indent=1), file=sys.stderr if out == "-" else sys.stdout)
    elif not quiet:
        where = sys.stderr if out == "-" else sys.stdout
        print_columns(scored.detector, file=where)
        print_top(lines[:top], scored, summary, file=where)
        if out is not None and out != "-":
            print(f"\n{len(scored.scores):,} rows written to {out}", file=where)


def _summary(scored: Scored, fdr: float | None, frame: Any) -> dict[str, Any]:
    threshold = -scored.detector.offset_
    summary: dict[str, Any] = {
        "rows": len(scored.scores),
        "columns": scored.detector.n_features_in_,
        "threshold": threshold,
        "above_threshold": int((scored.scores > threshold).sum()),
    }
    if fdr is not None:
        summary |= {"fdr": fdr, "selected": int(frame["selected"].sum()), "fewest": fewest_selected(scored, fdr)}
    if scored.labels is not None:
        from sklearn.metrics import average_precision_score, roc_auc_score

        summary["anomalies"] = int(scored.labels.sum())
        summary["auroc"] = float(roc_auc_score(scored.labels, scored.scores))
        summary["auprc"] = float(average_precision_score(scored.labels, scored.scores))
    return summary
