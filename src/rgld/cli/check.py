"""`rgld check`: is a table still like the one that a model was fitted on?"""

import hashlib
import shlex
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from rgld._threshold import select_by_fdr
from rgld.exceptions import ParameterError

from ._addresses import masked
from ._checking import check_scored
from ._files import TableFile, open_table
from ._fitting import row_names
from ._options import (
    TABLE_HELP,
    Force,
    Id,
    Inf,
    Infinity,
    Jobs,
    Json,
    ModelFile,
    Quiet,
    Reading,
    Scoring,
    Top,
    with_groups,
)
from ._output import check_out, printed_cell, written_out
from ._scoring import Scored, read_for_model, score_any
from ._show import Findings, print_top
from ._state import MAX_RUN_REASONS, State, fingerprint, locked, now, read_state, write_state
from ._terminal import as_json, printable, progress, say_notes

if TYPE_CHECKING:
    from rgld import Check
    from rgld._drift.sequence import Watch

ALARM = 3
"""The exit code if a condition of `--fail-if` holds."""
DEFAULT_FDR = 0.05
MAX_REASONS_SHOWN = 12
MAX_BAR = 24
"""Characters of the longest bar of the history."""

NewTable = Annotated[str | None, typer.Argument(help=f"The new table: {TABLE_HELP}")]
Alpha = Annotated[float, typer.Option("--alpha", help="Probability of a false alarm.")]
FailIf = Annotated[
    str,
    typer.Option(
        "--fail-if",
        help="What gives exit code 3, separated by commas: drift; columns, if a column or a relation has changed; "
        "rows:PERCENT, if more rows score above the threshold; fdr or fdr:RATE, if rows are selected at this "
        "false-discovery rate; or never.",
    ),
]
StateFile = Annotated[
    str | None, typer.Option("--state", help="File that keeps the state of the bets and a history between runs.")
]
History = Annotated[bool, typer.Option("--history", help="Print the history of --state, and check no table.")]
Page = Annotated[str | None, typer.Option("--report", help="Also write an HTML page that shows what changed.")]


@with_groups
def check(
    table: NewTable = None,
    *,
    model: ModelFile = None,
    alpha: Alpha = 0.01,
    fail_if: FailIf = "drift",
    state: StateFile = None,
    history: History = False,
    top: Top = 5,
    report: Page = None,
    force: Force = False,
    json_: Json = False,
    quiet: Quiet = False,
    id: Id = None,
    inf: Inf = Infinity.error,
    jobs: Jobs = None,
    reading: Reading,
) -> None:
    """Tell whether a new table is still like the one that a model was fitted on, and what has changed.

    Exit code 0: fine. 3: alarm. 2: error. If nothing has changed, an alarm has probability --alpha at most.
    """
    if history:
        _print_history(state, json_=json_)
        return
    conditions = parse_conditions(fail_if)
    if table is None or model is None:
        raise ParameterError("Expected a table and a model: rgld check new.csv --model model.rgld.")
    if not 0.0 < alpha < 1.0:
        raise ParameterError(f"--alpha must be between 0 and 1, got {alpha:g} instead.")
    check_out(report, force=force, tables=False, option="--report")
    scoring = Scoring(id=id, inf=inf, jobs=jobs, model=model)
    with open_table(table, reading) as file:
        say_notes(file.shown, file.notes, quiet=quiet or json_)
        with progress("scoring", quiet=quiet) as tell:
            scored = score_any(file, scoring, top, tell)
        found = _checked(scored, alpha, state, file.shown)
        alarms = [text for condition in conditions if (text := condition(found, scored))]
        if report is not None:
            _write_report(file, scoring, scored, found, report, force=force)
    lines = Findings(scored).lines(top)
    if json_:
        print(
            as_json(
                {
                    **found.as_dict(),
                    **_rows_as_dict(scored),
                    "alarms": alarms,
                    "top": [line.as_dict() for line in lines],
                }
            )
        )
    elif not quiet:
        _print_check(file.shown, found, scored, alarms)
        print_top(lines, scored.ids.name, file=sys.stdout)
        if report is not None:
            print(f"\npage written to {printable(report)}")
    if alarms:
        raise typer.Exit(ALARM)


def _checked(scored: Scored, alpha: float, path: str | None, shown: str) -> "Check":
    """Return the check of the scored rows. With a state file, the bets go on where the last run stopped."""
    if path is None:
        return check_scored(scored, alpha)
    hashed = hashlib.sha256(scored.scores.tobytes()).hexdigest()[:32]
    with locked(path):
        state = read_state(path, fingerprint(scored.detector)) or State(fingerprint(scored.detector))
        found = check_scored(scored, alpha, state.watch)
        if state.runs and state.runs[-1]["scores"] == hashed:
            print(
                printable(f"{shown}: the last run checked the same rows already; they are not counted twice"),
                file=sys.stderr,
            )
            return found
        state.watch = found.watch
        state.runs.append(_run(scored, found, shown, hashed))
        write_state(path, state)
    return found


def _run(scored: Scored, found: "Check", shown: str, hashed: str) -> dict[str, Any]:
    return {
        "time": now(),
        "table": Path(shown).name,
        "rows": found.n_rows,
        "verdict": "drift" if found.drifted else "fine",
        "above_threshold": _above(scored) / found.n_rows,
        "log10_wealth": None if found.watch is None else found.watch.log_wealth / float(np.log(10.0)),
        "reasons": found.reasons[:MAX_RUN_REASONS],
        "scores": hashed,
    }


def _above(scored: Scored) -> int:
    return int((scored.scores > -scored.detector.offset_).sum())


def _rows_as_dict(scored: Scored) -> dict[str, Any]:
    return {"threshold": -scored.detector.offset_, "above_threshold": _above(scored)}


Condition = Callable[["Check", Scored], str]
"""Why a check is an alarm; "" if it is none."""


def parse_conditions(text: str) -> list[Condition]:
    """Return what `--fail-if` asks for."""
    conditions: list[Condition] = []
    for part in text.split(","):
        name, _, value = part.strip().partition(":")
        try:
            number = float(value) if value else None
        except ValueError:
            number = -1.0
        if name == "drift" and not value:
            conditions.append(_drift_alarm)
        elif name == "columns" and not value:
            conditions.append(_columns_alarm)
        elif name == "rows" and number is not None and 0.0 <= number < 100.0:
            conditions.append(partial(_rows_alarm, number))
        elif name == "fdr" and (number is None or 0.0 < number < 1.0):
            conditions.append(partial(_fdr_alarm, number or DEFAULT_FDR))
        elif name != "never" or value:
            raise ParameterError(
                f"--fail-if {part.strip()}: expected drift, columns, rows:PERCENT, fdr, fdr:RATE or never, with commas "
                "between them."
            )
    return conditions


def _drift_alarm(found: "Check", scored: Scored) -> str:
    return "drift" if found.drifted else ""


def _columns_alarm(found: "Check", scored: Scored) -> str:
    return "columns" if found.drifted_columns or found.drifted_relations else ""


def _rows_alarm(most: float, found: "Check", scored: Scored) -> str:
    percent = 100.0 * _above(scored) / len(scored.scores)
    return f"rows: {percent:.1f} % are above the threshold, at most {most:g} % were allowed" if percent > most else ""


def _fdr_alarm(rate: float, found: "Check", scored: Scored) -> str:
    if scored.p_values is None:
        raise ParameterError("--fail-if fdr needs a calibrated model: fit it with `rgld fit --calibrate 0.2`.")
    n = int(select_by_fdr(scored.p_values, rate).sum())
    return f"fdr: {n:,} rows are selected at a false-discovery rate of {rate:g}" if n else ""


def _print_check(shown: str, found: "Check", scored: Scored, alarms: list[str]) -> None:
    """Print the verdict and what changed, then what the rows are."""
    n = f"{found.n_rows:,} row{'s' * (found.n_rows != 1)}"
    if found.drifted:
        print(printable(f"DRIFT: {shown} ({n}) is not like the table that the model was fitted on"))
    else:
        print(printable(f"fine: {shown} ({n}) is like the table that the model was fitted on"))
    for reason in found.reasons[:MAX_REASONS_SHOWN]:
        print(f"  {printable(reason)}")
    if len(found.reasons) > MAX_REASONS_SHOWN:
        print(f"  and {len(found.reasons) - MAX_REASONS_SHOWN} more (--json lists all)")
    for note in found.notes:
        print(f"  {printable(note)}")
    if found.rows is not None and not found.drifted:
        highest = float(np.exp(found.rows.highest))
        print(f"  bets against the rows have reached {highest:,.3g} to 1 (alarm at {1.0 / found.level:,.0f} to 1)")
    above = _above(scored)
    share, threshold = 100 * above / found.n_rows, -scored.detector.offset_
    print(f"{above:,} rows ({share:.1f} %) score above the threshold of {threshold:.2f}")
    for alarm in alarms:
        if ":" in alarm:
            print(f"alarm: {alarm}")


def _write_report(file: TableFile, scoring: Scoring, scored: Scored, found: "Check", out: str, *, force: bool) -> None:
    """Write the page about the table, as the model sees it."""
    from rgld.report import write_report

    _, frame, features = read_for_model(file, scoring)
    names = row_names(frame, scoring)
    with written_out(out, force=force, option="--report") as beside:
        write_report(
            scored.detector,
            features,
            beside,
            source=file.title,
            ids=None if names is None else [printed_cell(value) for value in names],
            id_name=None if names is None else names.name,
            p_values=scored.p_values,
            command=masked(shlex.join(["rgld", *sys.argv[1:]])),
            check=found,
        )


def _print_history(path: str | None, *, json_: bool) -> None:
    """Print the runs of a state file, one line each."""
    if path is None:
        raise ParameterError("--history needs --state, the file that the runs wrote.")
    state = read_state(path, None)
    if state is None:
        raise ParameterError(f"There is no file {path}: check the path, or run `rgld check` with this --state first.")
    if json_:
        print(as_json({"schema": "rgld-history", "version": 1, "runs": state.runs}))
        return
    print(f"{len(state.runs):,} tables, {sum(run['rows'] for run in state.runs):,} rows{_wealth(state.watch)}")
    width = max((len(printable(run["table"])) for run in state.runs), default=5)
    width = min(max(width, 5), 30)
    print(f"\n{'when':<19}  {'table':<{width}}  {'rows':>9}  {'above':>7}  verdict  bets against the rows")
    for run in state.runs:
        name = printable(run["table"])[:width]
        time = printable(run["time"])[:19].replace("T", " ")
        line = f"{time:<19}  {name:<{width}}  {run['rows']:>9,}  {100 * run['above_threshold']:>5.1f} %"
        verdict = "DRIFT" if run["verdict"] == "drift" else "fine"
        print(f"{line}  {verdict:<7}  {_bar(run['log10_wealth'])}")
        for reason in run["reasons"][:1]:
            print(f"{'':<19}  {printable(reason)}")


def _wealth(watch: "Watch | None") -> str:
    if watch is None:
        return ""
    stand, highest = (_money(log / float(np.log(10.0))) for log in (watch.log_wealth, watch.highest))
    return f"; the bets against them stand at {stand} to 1, their highest was {highest} to 1"


def _money(log10_wealth: float) -> str:
    return "over a million" if log10_wealth > 6.0 else f"{10.0**log10_wealth:,.3g}"


def _bar(log10_wealth: float | None) -> str:
    """Return the wealth as a bar from 1 : 1 on; four characters for a factor of ten."""
    if log10_wealth is None:
        return ""
    length = int(np.clip(round(4 * log10_wealth), 0, MAX_BAR))
    return f"{'#' * length} {_money(log10_wealth)}".strip()
