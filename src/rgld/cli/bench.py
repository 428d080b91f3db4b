"""`rgld bench`: run the study, fetch its data, make its tables and figures."""

import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from rgld.exceptions import ParameterError

app = typer.Typer(no_args_is_help=True, help="The study: run it, fetch its data, make its tables and figures.")

Data = Annotated[Path | None, typer.Option(help="Folder of the datasets; RGLD_DATA if not given.")]
Lines = Annotated[list[Path], typer.Argument(help="Folders or files of result lines.")]


def _say(text: str) -> None:
    print(text, file=sys.stderr)


@app.command("list")
def list_names(data: Data = None) -> None:
    """List the detectors and the datasets, and what is missing of them."""
    from rgld.bench import datasets, detectors

    for name, module in detectors.registry().items():
        print(f"{name:<14} {module.GROUP:<12} {detectors.what_to_install(name) or ''}".rstrip())
    missing = set(datasets.missing_datasets(datasets.registry(), datasets.data_folder(data)))
    for entry in datasets.registry().values():
        share = 100 * entry.anomalies / entry.rows
        size = f"{entry.rows:>7} x {entry.columns:<5} {share:5.2f} %"
        print(f"{entry.name:<17} {size}  {entry.category:<13} {'missing' if entry.name in missing else ''}".rstrip())


@app.command()
def fetch(
    folder: Annotated[Path, typer.Argument(help="Where to put the files.")],
    datasets: Annotated[list[str] | None, typer.Option(help="Names of datasets; all if not given.")] = None,
    address: Annotated[str | None, typer.Option(help="Another address of ADBench's folder 'Classical'.")] = None,
) -> None:
    """Download datasets from ADBench's public repository; resumes, and verifies checksums where they are known."""
    from rgld.bench import datasets as data

    names = [name for name in data.known_datasets(datasets or ["all"]) if name in data.registry()]
    if failed := data.fetch(names, folder, address or data.ADBENCH_ADDRESS, _say):
        raise ParameterError(f"{len(failed)} of {len(names)} datasets could not be fetched: {', '.join(failed)}.")


@app.command()
def run(
    out: Annotated[Path, typer.Option(help="Folder for the result lines; a study that was stopped goes on there.")],
    detectors: Annotated[list[str] | None, typer.Option(help="Names, groups or NAME(setting=value).")] = None,
    datasets: Annotated[list[str] | None, typer.Option(help="Names, or a generator such as 'mixture(n=1000)'.")] = None,
    seeds: Annotated[list[int] | None, typer.Option(help="Split seeds.")] = None,
    data: Data = None,
    table: Annotated[Path | None, typer.Option(help="A labelled table of your own: CSV, Parquet or NPZ.")] = None,
    label: Annotated[str | None, typer.Option(help="Its label column; the rarer of two values is the anomaly.")] = None,
    protocol: Annotated[
        str, typer.Option(help="'paper' (resample, split, scale) or 'full' (the table as it is).")
    ] = "paper",
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads a run may use.")] = 1,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds a run may take.")] = 600.0,
    memory_limit: Annotated[float, typer.Option(min=0, help="GiB of memory a run may take; 0 for no limit.")] = 8.0,
    retry_errors: Annotated[bool, typer.Option(help="Run again what failed before.")] = False,
) -> None:
    """Run detectors on datasets: each (dataset, detector, seed) in a process of its own, one JSON line per run."""
    from rgld.bench import datasets as known_data
    from rgld.bench import detectors as known
    from rgld.bench.protocol import PROTOCOLS
    from rgld.bench.runner import run_study
    from rgld.bench.worker import Task

    if protocol not in PROTOCOLS:
        raise ParameterError(f"--protocol must be one of {PROTOCOLS}, got {protocol!r} instead.")
    if (table is None) != (label is None):
        raise ParameterError("--table and --label go together: the file, and its column of labels.")
    names = known.known_detectors(detectors or ["rgld", "statistical"])
    names = [name for name in names if not _told(known.what_to_install(name))]
    folder = known_data.data_folder(data)
    if table is not None and label is not None:
        known_data.load_table(table, label)  # what is wrong with it is said once, before anything runs
        sets = [table.stem]
    else:
        sets = known_data.known_datasets(datasets or ["all"])
        missing = known_data.missing_datasets(sets, folder)
        if missing:
            where = folder or "no folder was named"
            _say(f"missing, skipped: {', '.join(missing)} ({where}; --data DIR, RGLD_DATA or `rgld bench fetch DIR`)")
        sets = [name for name in sets if name not in missing]
    if not names or not sets:
        raise ParameterError("Nothing to run: no detector or no dataset is left.")
    limit = int(memory_limit * 2**30)
    paths = (str(folder) if folder else None, str(table) if table else None, label)
    tasks = [
        Task(protocol, s, n, seed, *paths, threads, limit) for s in sets for seed in seeds or [1, 2, 3] for n in names
    ]
    with _progress() as progress:
        lines = run_study(tasks, out, jobs=jobs, time_limit=time_limit, retry_errors=retry_errors, progress=progress)
    failed = [line for line in lines if line["error"]]
    _say(f"{len(lines)} runs in {out}, {len(failed)} of them failed")


def _told(message: str | None) -> bool:
    if message:
        _say(message)
    return message is not None


@contextmanager
def _progress() -> Any:
    """Yield a progress callback: a bar with an estimate on a terminal, a line now and then elsewhere."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=None)

            def show(done: int, total: int, line: dict[str, Any] | None) -> None:
                bar.update(task, completed=done, total=total, description=_words(line))

            yield show
    else:

        def tell(done: int, total: int, line: dict[str, Any] | None) -> None:
            if line and (line["error"] or done == total or done % max(1, total // 20) == 0):
                _say(f"{done} of {total}: {_words(line)}")

        yield tell


def _words(line: dict[str, Any] | None) -> str:
    if line is None:
        return ""
    result = line["error"] or f"AUROC {line['auroc']:.2f}"
    return f"{line['detector']} on {line['dataset']}, seed {line['seed']}: {result}"


@app.command()
def tables(
    lines: Lines,
    out: Annotated[Path, typer.Option(help="Folder for Markdown and CSV files.")],
) -> None:
    """Make the tables: main table, per-dataset tables, head-to-head tests, ablations."""
    _make("tables", lines, out, "write_tables")


@app.command()
def figures(
    lines: Lines,
    out: Annotated[Path, typer.Option(help="Folder for PNG and SVG files.")],
) -> None:
    """Make the figures: Pareto front, critical differences, sensitivity, scaling, motivating examples."""
    _make("figures", lines, out, "write_figures")


@app.command()
def results(
    lines: Lines,
    out: Annotated[Path, typer.Option(help="The page to write; figures go into a folder beside it.")],
) -> None:
    """Make the results page with its tables and figures."""
    _make("results", lines, out, "write_page")


@app.command()
def speed(
    out: Annotated[Path, typer.Option(help="The page to write; plots go into a folder beside it.")] = Path("speed.md"),
    data: Data = None,
    lines: Annotated[Path | None, typer.Option(help="Keep what was measured here, as JSON.")] = None,
    from_lines: Annotated[bool, typer.Option(help="Measure nothing: make the page from --lines.")] = False,
    quick: Annotated[bool, typer.Option(help="Small sizes, few detectors and one repeat.")] = False,
) -> None:
    """Measure time and memory against other detectors, in one run, and write a page."""
    import json

    from rgld.bench import datasets as known_data
    from rgld.bench import speed as measuring
    from rgld.bench import speedpage

    if from_lines:
        if lines is None or not lines.exists():
            raise ParameterError("--from-lines needs --lines FILE with what was measured before.")
        found = json.loads(lines.read_text())
    else:
        folder = known_data.data_folder(data)
        names = known_data.known_datasets(["all"])
        missing = set(known_data.missing_datasets(names, folder))
        if missing:
            _say(f"missing, skipped: {', '.join(sorted(missing))}")
        names = [name for name in names if name not in missing]
        names = names[:2] if quick else names
        if not names:
            names = ["mixture(n=10000, d=20)", "mixture(n=1000, d=6)"]
            _say("no datasets: synthetic mixtures instead (--data DIR or RGLD_DATA)")
        found = {}

        def keep(parts: dict[str, Any]) -> None:
            found.update(parts)
            if lines is not None:
                lines.write_text(json.dumps(parts, indent=1) + "\n")

        measuring.measure(str(folder) if folder else None, names, quick=quick, tell=_say, keep=keep)
    speedpage.write_page(found, out)
    _say(f"written to {out}")


def _make(what: str, lines: list[Path], out: Path, function: str) -> None:
    from rgld.bench import pages
    from rgld.bench.lines import read_lines

    found = [line for path in lines for line in read_lines(path)]
    if not found:
        raise ParameterError(f"No result lines in {', '.join(map(str, lines))}: run `rgld bench run` first.")
    make: Callable[[list[dict[str, Any]], Path], None] = getattr(pages, function)
    make(found, out)
    _say(f"{what} from {len(found)} lines written to {out}")
