"""`rgld score`: which rows are anomalous, why, and how sure."""

import sys
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer

from rgld._threshold import fraction_above
from rgld.exceptions import ParameterError

from ._checking import warning
from ._files import open_table
from ._options import Reading, Scoring, TableOutput, TablePath, Top, with_groups
from ._output import check_out, is_stdout, write_table
from ._reading import print_columns, reading_as_dicts
from ._relations import print_relations, relations_as_dicts
from ._results import MAX_REASONS, min_selected, result_frame, selected
from ._scoring import Scored, score_any
from ._show import MAX_GROUPED_ROWS, Findings, print_groups, print_summary, print_top
from ._terminal import as_json, printable, progress, say_notes

Flat = Annotated[bool, typer.Option("--flat", help="Print rows one by one, also if they share their reasons.")]
WithTable = Annotated[
    bool, typer.Option("--with-table", help="Write the table's own columns to --out too, before the results.")
]
Sort = Annotated[bool, typer.Option("--sort", help="Write the rows to --out in the order of their rank.")]
Fdr = Annotated[float | None, typer.Option("--fdr", help="Select rows at this false-discovery rate; needs --model.")]


@with_groups
def score(
    table: TablePath,
    *,
    top: Top = 10,
    flat: Flat = False,
    fdr: Fdr = None,
    with_table: WithTable = False,
    sort: Sort = False,
    output: TableOutput,
    scoring: Scoring,
    reading: Reading,
) -> None:
    """Score every row of a table: by a model file, or by a detector fitted on the table itself.

    The output has one line per row, in the order of the table: its id (or the line of the file), score, rank, p-value
    (without a calibrated model: top share) and, for the 1000 most anomalous rows, the reasons and the
    relation that the row breaks.
    """
    check_out(output.out, force=output.force, source=table, from_table=reading.from_table)
    if output.out is None and (with_table or sort):
        raise ParameterError(f"{'--with-table' if with_table else '--sort'} is for --out: name a file to write.")
    _check_fdr(fdr, scoring)
    quiet = output.quiet or output.json_
    n_reasons = max(top, MAX_REASONS if output.out is not None else 0)
    n_kept = n_reasons if flat or not top else max(n_reasons, MAX_GROUPED_ROWS)
    with open_table(table, reading) as file:
        say_notes(file.shown, file.notes, quiet=quiet)
        with progress("scoring", quiet=output.quiet) as tell:
            scored = score_any(file, scoring, n_kept, tell)
            original = pl.concat(file.batches(None, {})) if with_table else None
    say_notes(file.shown, scored.notes, quiet=quiet)
    if scored.sample is not None and (changed := warning(scored)):
        say_notes(file.shown, [changed], quiet=output.quiet)
    findings = Findings(scored)
    lines = findings.lines(n_reasons if flat or output.json_ or output.out is not None else 0)
    broken = [line.broken_relations[0]["words"] if line.broken_relations else "" for line in lines]
    has_relations = scored.detector.model_.relations is not None
    reasons = ["; ".join(line.reasons) for line in lines]
    frame = result_frame(scored, fdr, reasons, broken if has_relations else None, original)
    if output.out is not None:
        ordered = frame[np.argsort(scored.ranks, kind="stable")] if sort else frame
        write_table(ordered, output.out, force=output.force, source=table)
    summary = _summary(scored, fdr)
    where = sys.stderr if is_stdout(output.out) else sys.stdout
    if output.json_:
        summary["read_as"] = reading_as_dicts(scored.detector)
        summary["top"] = [line.as_dict() for line in lines[:top]]
        if not flat:
            summary["groups"] = [group.as_dict() for group in findings.groups(top)]
        summary["relations"] = relations_as_dicts(scored.detector)
        print(as_json(summary), file=where)
    elif not output.quiet:
        print_columns(scored.detector, file=where)
        print_relations(scored.detector, file=where)
        print_summary(summary, "any table" if scoring.model is None else "the training table", file=where)
        if flat:
            print_top(lines[:top], scored.ids.name, file=where)
        else:
            print_groups(findings.groups(top), scored.ids.name, file=where)
        if output.out is not None and where is sys.stdout:
            print(f"\n{len(scored.scores):,} rows written to {printable(output.out)}", file=where)


def _check_fdr(fdr: float | None, scoring: Scoring) -> None:
    if fdr is None:
        return
    if not 0.0 < fdr < 1.0:
        raise ParameterError(f"--fdr must be between 0 and 1, got {fdr:g} instead.")
    if scoring.model is None:
        raise ParameterError(
            "--fdr needs --model: rows are compared with rows that the model was not fitted on; fit with `rgld fit`, "
            "then score new rows."
        )


def _summary(scored: Scored, fdr: float | None) -> dict[str, Any]:
    detector = scored.detector
    model, threshold = detector.model_, -detector.offset_
    summary: dict[str, Any] = {
        "rows": len(scored.scores),
        "columns": detector.n_features_in_,
        "threshold": threshold,
        "above_threshold": int((scored.scores > threshold).sum()),
        "by_definition": list(fraction_above(detector.contamination, model.local_weight, model.n_branches)),
    }
    if fdr is not None:
        summary |= {"fdr": fdr, "selected": int(selected(scored, fdr).sum()), "fewest": min_selected(scored, fdr)}
    if scored.labels is not None:
        from sklearn.metrics import average_precision_score, roc_auc_score

        summary["anomalies"] = int(scored.labels.sum())
        summary["auroc"] = float(roc_auc_score(scored.labels, scored.scores))
        summary["auprc"] = float(average_precision_score(scored.labels, scored.scores))
    return summary
