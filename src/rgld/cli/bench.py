"""`rgld bench`: run the study, fetch its data, make its tables and figures."""

import json
import sys
from collections.abc import Callable
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from rgld.exceptions import ParameterError

from ._help import Commands
from ._terminal import print_help, printable

app = typer.Typer(
    cls=Commands,
    help="The study: run it, fetch its data, make its tables and figures.",
    invoke_without_command=True,
    callback=print_help,
)

Data = Annotated[Path | None, typer.Option(help="Folder of the datasets; RGLD_DATA if not given.")]
Lines = Annotated[list[Path], typer.Argument(help="Folders or files of result lines.")]


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)


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
    datasets: Annotated[list[str] | None, typer.Option(help="Name of a dataset; repeatable; all if not given.")] = None,
    address: Annotated[str | None, typer.Option(help="Another address of ADBench's folder 'Classical'.")] = None,
) -> None:
    """Download datasets from ADBench's public repository; resumes, and verifies checksums where they are known."""
    from rgld.bench import datasets as data

    names = [name for name in data.known_datasets(datasets or ["all"]) if name in data.registry()]
    if failed := data.fetch(names, folder, address or data.ADBENCH_ADDRESS, _say):
        raise ParameterError(f"{len(failed)} of {len(names)} datasets could not be fetched: {', '.join(failed)}.")


Detectors = Annotated[
    list[str] | None,
    typer.Option(help="A name, a group or NAME(setting=value); repeatable."),
]
Datasets = Annotated[
    list[str] | None,
    typer.Option(help="A name, or a generator such as 'mixture(n=1000)'; repeatable."),
]
Seeds = Annotated[list[int] | None, typer.Option(help="Seed of a split; repeatable; 1, 2 and 3 if not given.")]
OwnTable = Annotated[Path | None, typer.Option(help="A labelled table of your own: CSV, Parquet or NPZ.")]
OwnLabel = Annotated[str | None, typer.Option(help="Its label column; the rarer of two values is the anomaly.")]
Tables = Annotated[Path | None, typer.Option(help="A folder of ODDBench's tables, instead of datasets.")]
Protocol = Annotated[
    list[str] | None,
    typer.Option(
        help="'paper' (resample, split, scale; if not given), 'full' (the table as it is) or 'clean' (with --tables: "
        "train on the clean rows); repeatable. With --tables: paper and clean if not given."
    ),
]


@app.command()
def run(
    out: Annotated[Path, typer.Option(help="Folder for the result lines; a study that was stopped continues there.")],
    detectors: Detectors = None,
    datasets: Datasets = None,
    seeds: Seeds = None,
    data: Data = None,
    table: OwnTable = None,
    label: OwnLabel = None,
    tables: Tables = None,
    protocol: Protocol = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads a run may use.")] = 1,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds a run may take.")] = 600.0,
    memory_limit: Annotated[float, typer.Option(min=0, help="GiB of memory a run may take; 0 for no limit.")] = 8.0,
    retry_errors: Annotated[bool, typer.Option(help="Repeat the runs that failed before.")] = False,
    brief: Annotated[bool, typer.Option(help="Short lines: measures and times, no versions and no memory.")] = False,
) -> None:
    """Run detectors on datasets: each (dataset, detector, seed) in a process of its own, one JSON line per run."""
    from rgld.bench.datasets import data_folder
    from rgld.bench.oddbench import DETECTORS
    from rgld.bench.runner import run_study
    from rgld.bench.worker import Task

    protocols = _known_protocols(protocol or (["paper", "clean"] if tables else ["paper"]), tables)
    if (table is None) != (label is None):
        raise ParameterError("--table and --label go together: the file, and its column of labels.")
    names = _detectors_here(detectors or (list(DETECTORS) if tables else ["rgld", "statistical"]))
    folder = data_folder(data)
    sources = _sources(tables, table, label, datasets, folder)
    if not names or not sources:
        raise ParameterError("Nothing to run: no detector or no dataset is left.")
    limit = int(memory_limit * 2**30)
    tasks = [
        Task(kind, name, detector, seed, str(folder) if folder else None, path, label, threads, limit)
        for name, path in sources
        for seed in seeds or ([1] if tables else [1, 2, 3])
        for kind in protocols
        for detector in names
    ]
    with _progress() as progress:
        lines = run_study(
            tasks, out, jobs=jobs, time_limit=time_limit, retry_errors=retry_errors, brief=brief, progress=progress
        )
    failed = [line for line in lines if line["error"]]
    _say(f"{len(lines)} runs in {out}, {len(failed)} of them failed")


def _known_protocols(names: list[str], tables: Path | None) -> list[str]:
    from rgld.bench.protocol import PROTOCOLS

    for name in names:
        if name not in PROTOCOLS:
            raise ParameterError(f"--protocol must be one of {PROTOCOLS}, got {name!r} instead.")
    if "clean" in names and tables is None:
        raise ParameterError("--protocol clean needs --tables DIR: only ODDBench's tables say which rows are clean.")
    return names


def _sources(
    tables: Path | None, table: Path | None, label: str | None, names: list[str] | None, folder: Path | None
) -> list[tuple[str, str | None]]:
    """Return the names of the datasets to run on, each with the file of its table if it has one of its own. A fault in
    a file is reported here, before anything runs."""
    from rgld.bench import datasets

    if tables is not None and (table is not None or names):
        raise ParameterError("--tables takes the place of --table and --datasets: give one of them.")
    if tables is not None:
        return [(path.stem, str(path)) for path in datasets.oddbench_tables(tables)]
    if table is not None and label is not None:
        datasets.load_table(table, label)
        return [(table.stem, str(table))]
    return [(name, None) for name in _datasets_here(names or ["all"], folder)]


def _detectors_here(names: list[str]) -> list[str]:
    """Return the detectors of these names and groups that can run here; say what is missing for the others."""
    from rgld.bench import detectors

    usable = []
    for name in detectors.known_detectors(names):
        if missing := detectors.what_to_install(name):
            _say(missing)
        else:
            usable.append(name)
    return usable


def _datasets_here(names: list[str], folder: Path | None) -> list[str]:
    """Return the datasets of these names that are in the folder; say which are missing."""
    from rgld.bench import datasets

    known = datasets.known_datasets(names)
    missing = datasets.missing_datasets(known, folder)
    if missing:
        where = folder or "no folder was named"
        _say(f"missing, skipped: {', '.join(missing)} ({where}; --data DIR, RGLD_DATA or `rgld bench fetch DIR`)")
    return [name for name in known if name not in missing]


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
    return printable(f"{line['detector']} on {line['dataset']}, seed {line['seed']}: {result}")


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
def oddbench(
    lines: Lines,
    out: Annotated[Path, typer.Option(help="The page to write; figures go into a folder beside it.")],
) -> None:
    """Make the page of the second study, ODDBench's tables, from the lines of `rgld bench run --tables DIR`."""
    _make("page", lines, out, "write_page", module="oddbench")


@app.command()
def speed(
    out: Annotated[Path, typer.Option(help="The page to write; plots go into a folder beside it.")] = Path("speed.md"),
    data: Data = None,
    lines: Annotated[Path | None, typer.Option(help="Keep what was measured here, as JSON.")] = None,
    from_lines: Annotated[bool, typer.Option(help="Measure nothing: make the page from --lines.")] = False,
    quick: Annotated[bool, typer.Option(help="Small sizes, few detectors and one repeat.")] = False,
) -> None:
    """Measure time and memory against other detectors, in one run, and write a page."""
    from rgld.bench import speedpage

    if not from_lines:
        speedpage.write_page(_measured(data, lines, quick=quick), out)
    elif lines is None or not lines.is_file():
        raise ParameterError("--from-lines needs --lines FILE with what was measured before.")
    else:
        try:
            speedpage.write_page(json.loads(lines.read_bytes()), out)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise ParameterError(f"{lines} does not hold what was measured before: measure again.") from error
    _say(f"written to {out}")


def _measured(data: Path | None, lines: Path | None, *, quick: bool) -> dict[str, Any]:
    """Measure time and memory; `lines` receives what was measured so far."""
    from rgld._modelfile.atomic import write_whole
    from rgld.bench import datasets, speed

    folder = datasets.data_folder(data)
    names = _datasets_here(["all"], folder)[: 2 if quick else None]
    if not names:
        names = ["mixture(n=10000, d=20)", "mixture(n=1000, d=6)"]
        _say("no datasets: synthetic mixtures instead (--data DIR or RGLD_DATA)")
    found: dict[str, Any] = {}

    def keep(parts: dict[str, Any]) -> None:
        found.update(parts)
        if lines is not None:
            write_whole(lines, json.dumps(parts, indent=1) + "\n")

    speed.measure(str(folder) if folder else None, names, quick=quick, tell=_say, keep=keep)
    return found


def _make(what: str, lines: list[Path], out: Path, function: str, module: str = "pages") -> None:
    from rgld.bench.lines import read_lines

    found = [line for path in lines for line in read_lines(path)]
    if not found:
        raise ParameterError(f"No result lines in {', '.join(map(str, lines))}: run `rgld bench run` first.")
    make: Callable[[list[dict[str, Any]], Path], None] = getattr(import_module(f"rgld.bench.{module}"), function)
    make(found, out)
    _say(f"{what} from {len(found)} lines written to {out}")
