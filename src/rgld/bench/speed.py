"""Time and memory of RGLD and of other detectors, measured in one run.

In: the folder of the datasets. Out: what was measured, as JSON; `speedpage.py` makes `docs/speed.md` from it. On each
split, every detector runs a few times in a row, after one run that is not counted. Times are medians; compare them only
within one run. Every detector has its own defaults: RGLD uses all cores that the process may use, most others use one.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._arrays import Float32s
from .detectors import make_detector, what_to_install
from .protocol import split
from .worker import peak_memory_mb

OURS = ("RGLD", "RGLD, one thread", "RGLD-Fast", "RGLD-plus", "RGLD-novelty")
OTHERS = ("HBOS", "PCA", "CBLOF", "LODA", "ECOD", "COPOD", "KNN", "LOF", "IForest", "isotree", "ADERH")
FOREST = "IForest"
"""scikit-learn's isolation forest with 100 trees: the other detectors are compared with it."""

N_COLUMNS = 20
ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = (3, 20, 100, 500, 768, 2000)
ROWS_OF_WIDE_TABLES = 2000
MAX_SECONDS_TO_GROW = 10.0
"""A detector that took longer is not tried on a larger table."""
MAX_SECONDS = 900.0
"""A process that takes longer is stopped."""
ENOUGH_SECONDS = 1.0
"""Fits and scorings are not repeated any more after this long."""
COLD_REPEATS = 3
SETTLE_SECONDS = 0.3
"""Pause before a measurement: BLAS threads keep spinning for a while after a call, and would take a core from a
detector that uses all cores."""


class _SklearnForest:
    """scikit-learn's isolation forest, without PyOD around it."""

    def __init__(self, seed: int) -> None:
        from sklearn.ensemble import IsolationForest

        self._model = IsolationForest(random_state=seed)

    def fit(self, X: Any) -> None:
        self._model.fit(X)

    def decision_function(self, X: Any) -> Any:
        return -self._model.score_samples(X)


class _IsotreeForest:
    """isotree's isolation forest with scikit-learn's settings: 100 trees of 256 rows, one column per split."""

    def __init__(self, seed: int) -> None:
        from isotree import IsolationForest

        self._model = IsolationForest(ntrees=100, sample_size=256, ndim=1, missing_action="fail", random_seed=seed)

    def fit(self, X: Any) -> None:
        self._model.fit(X)

    def decision_function(self, X: Any) -> Any:
        return self._model.predict(X)


def make(name: str, seed: int = 0) -> Any:
    """Return a detector with `fit` and `decision_function`."""
    if name == FOREST:
        return _SklearnForest(seed)
    if name == "isotree":
        return _IsotreeForest(seed)
    if name == "RGLD, one thread":
        return make_detector("RGLD(n_jobs=1)", seed)
    return make_detector(name, seed)


def available(names: Iterable[str]) -> list[str]:
    """Return the detectors whose packages are installed."""
    packages = {FOREST: "RGLD", "isotree": "EIF", "RGLD, one thread": "RGLD"}
    return [name for name in names if what_to_install(packages.get(name, name)) is None]


def warm_seconds(name: str, train: NDArray[Any], test: NDArray[Any], repeats: int) -> float:
    """Return the median time of a fit and a scoring, right after one that is not counted.

    It first waits `SETTLE_SECONDS`, until the threads of other libraries have stopped.
    """
    time.sleep(SETTLE_SECONDS)
    times = []
    for _ in range(repeats + 1):
        detector = make(name)
        start = time.perf_counter()
        detector.fit(train)
        detector.decision_function(test)
        times.append(time.perf_counter() - start)
        if sum(times[1:]) > ENOUGH_SECONDS:
            break
    return float(np.median(times[1:]))


def normal_table(n_rows: int, n_columns: int) -> Float32s:
    """Return a float32 table of normal numbers; 1 % of its rows are shifted."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    X[::100, : max(1, n_columns // 5)] += 4.0
    return X


Tell = Callable[[str], None]


def on_splits(tables: dict[str, tuple[NDArray[Any], NDArray[Any]]], repeats: int, tell: Tell) -> dict[str, Any]:
    """Return the median seconds of every detector on the protocol's split (seed 1) of every table."""
    names = available((*OURS, *OTHERS))
    result: dict[str, Any] = {}
    for table, (X, y) in tables.items():
        train, test, _ = split(X, y, 1)
        medians = {name: warm_seconds(name, train, test, repeats) for name in names}
        result[table] = {"rows": len(train), "columns": train.shape[1], "seconds": medians}
        tell(f"{table}: RGLD {1000 * medians['RGLD']:.0f} ms, IForest {1000 * medians[FOREST]:.0f} ms")
    return result


def growth(names: Iterable[str], shapes: Iterable[tuple[int, int]], tell: Tell) -> list[dict[str, Any]]:
    """Return times and memory on tables of growing size, each detector in a process of its own. A detector that takes
    longer than `MAX_SECONDS_TO_GROW` is not tried on larger tables."""
    lines: list[dict[str, Any]] = []
    names = available(names)
    for n_rows, n_columns in shapes:
        for name in list(names):
            line = _in_process("grow", name, str(n_rows), str(n_columns))
            lines.append({"detector": name, "rows": n_rows, "columns": n_columns, **line})
            took = line.get("fit", 0.0) + line.get("score", 0.0)
            tell(f"{name} on {n_rows} x {n_columns}: {line.get('error') or f'{took:.2f} s'}")
            if line.get("error") or (took > MAX_SECONDS_TO_GROW and name not in OURS):
                names.remove(name)
    return lines


def _in_process(*arguments: str) -> dict[str, Any]:
    return _run_python("-m", __name__, *arguments)


def _run_python(*arguments: str) -> dict[str, Any]:
    """Return the last line that a new process prints, read as JSON."""
    command = [sys.executable, "-W", "ignore", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MAX_SECONDS)
    except subprocess.TimeoutExpired:
        return {"error": f"stopped after {MAX_SECONDS:.0f} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["killed"])[-1][:200]}
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return line


def _grow(name: str, n_rows: int, n_columns: int) -> dict[str, float]:
    """Return times and memory of one fit and scoring. It runs in a process of its own, because a process's peak memory
    never shrinks."""
    X = normal_table(n_rows, n_columns)
    detector = make(name)
    detector.fit(X[:1000])  # imports and compiles what the first call needs
    before = peak_memory_mb() or 0.0
    start = time.perf_counter()
    detector = make(name)
    detector.fit(X)
    fitted = time.perf_counter()
    detector.decision_function(X)
    scored = time.perf_counter()
    return {"fit": fitted - start, "score": scored - fitted, "added_mb": (peak_memory_mb() or 0.0) - before}


COLD_PROGRAM = """
import json, time
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((5000, {columns}))
start = time.perf_counter()
{imports}
detector = {make}
made = time.perf_counter()
detector.fit(X[:3500])
detector.{score}(X[3500:])
print(json.dumps({{"imports": made - start, "first": time.perf_counter() - made}}))
"""
"""A user's program. It makes the table first, so NumPy is imported before the clock starts."""

COLD = {
    "RGLD": ("from rgld import RGLD", "RGLD(random_state=0)", "anomaly_score"),
    "RGLD-Fast": ("from rgld import RGLD", "RGLD.fast(random_state=0)", "anomaly_score"),
    "RGLD-plus": ("from rgld import RGLD", "RGLD.plus(random_state=0)", "anomaly_score"),
    "RGLD-novelty": ("from rgld import RGLD", "RGLD.novelty(random_state=0)", "anomaly_score"),
    FOREST: ("from sklearn.ensemble import IsolationForest", "IsolationForest(random_state=0)", "score_samples"),
    "isotree": (
        "from isotree import IsolationForest",
        "IsolationForest(ntrees=100, sample_size=256, ndim=1)",
        "predict",
    ),
    "ADERH": ("from rgld.bench.detectors.aderh import make", "make(0)", "decision_function"),
    # Ours, because PyOD's fails on some tables with its default number of clusters.
    "CBLOF": ("from rgld.bench.detectors.cblof import make", "make(0)", "decision_function"),
    **{
        name: (f"from pyod.models.{name.lower()} import {name}", f"{name}()", "decision_function")
        for name in ("HBOS", "PCA", "LODA", "ECOD", "COPOD", "KNN", "LOF")
    },
}
"""For each detector: the import, the expression that makes it, the method that scores."""


def cold(names: Iterable[str], tell: Tell) -> dict[str, Any]:
    """Return the time of the imports and of the first fit and scoring in a new process."""
    result = {}
    for name in available(names):
        imports, made, score = COLD[name]
        program = COLD_PROGRAM.format(columns=N_COLUMNS, imports=imports, make=made, score=score)
        runs = [_run_python("-c", program) for _ in range(COLD_REPEATS)]
        if any("error" in run for run in runs):
            tell(f"cold {name}: failed")
            continue
        result[name] = {key: float(np.median([run[key] for run in runs])) for key in ("imports", "first")}
        tell(f"cold {name}: {result[name]['imports']:.2f} s of imports, {1000 * result[name]['first']:.0f} ms")
    return result


def small_costs(tell: Tell) -> dict[str, float]:
    """Return the time of one row scored by a loaded model, and of `import rgld`."""
    import tempfile

    from rgld import RGLD, load

    X = normal_table(10_000, N_COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        RGLD(random_state=0).fit(X).save(Path(folder) / "model.rgld")
        detector = load(Path(folder) / "model.rgld")
    rows = [X[i : i + 1] for i in range(1000)]
    detector.anomaly_score(rows[0])
    times = []
    for row in rows:
        start = time.perf_counter()
        detector.anomaly_score(row)
        times.append(time.perf_counter() - start)
    result = {"one_row": float(np.median(times)), "one_row_99": float(np.quantile(times, 0.99))}
    for name, statement in (("import", "import rgld"), ("import_class", "from rgld import RGLD")):
        program = f"import time; s = time.perf_counter(); {statement}; print(time.perf_counter() - s)"
        seconds = [float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5)]
        result[name] = float(np.median(seconds))
    tell(f"one row {1e6 * result['one_row']:.0f} us, import {1000 * result['import']:.0f} ms")
    return result


STAGES = {
    "column_statistics": "column statistics",
    "Rows": "scaling",
    "pair_distances": "bandwidths",
    "embedding_sums": "sums of the random features",
    "project_rows": "references",
    "fit_ranks": "view scores, sorting, ranks",
    "column_knots": "profiles of the columns",
    "branch_scores": "scoring the test rows",
}


PROFILED = ((10_000, N_COLUMNS), (1_000, N_COLUMNS), (2_000, 500))
"""Tables (rows, columns) whose fit and scoring are profiled: as large as the protocol's largest, small, and wide."""


def stages(tell: Tell) -> dict[str, dict[str, float]]:
    """Return the seconds of each stage of a fit and a scoring, by table and number of threads."""
    return {
        f"{n_rows} x {n_columns}, {words}": _stages_of(n_rows, n_columns, n_jobs, tell)
        for n_rows, n_columns in PROFILED
        for n_jobs, words in ((1, "one thread"), (None, "all cores"))
    }


def _stages_of(n_rows: int, n_columns: int, n_jobs: int | None, tell: Tell) -> dict[str, float]:
    from rgld import RGLD, _kernels

    X = normal_table(n_rows, n_columns).astype(np.float64)
    n_train = 7 * n_rows // 10
    spent: dict[str, list[float]] = {name: [] for name in (*STAGES, "all")}

    def timed(name: str, function: Any) -> Any:
        def call(*arguments: Any, **more: Any) -> Any:
            start = time.perf_counter()
            result = function(*arguments, **more)
            spent[name][-1] += time.perf_counter() - start
            return result

        return call

    original = {name: getattr(_kernels, name) for name in STAGES}
    try:
        for name, function in original.items():
            setattr(_kernels, name, timed(name, function))
        for _ in range(30):
            for times in spent.values():
                times.append(0.0)
            start = time.perf_counter()
            RGLD(random_state=0, n_jobs=n_jobs).fit(X[:n_train]).anomaly_score(X[n_train:])
            spent["all"][-1] = time.perf_counter() - start
    finally:
        for name, function in original.items():
            setattr(_kernels, name, function)
    medians = {name: float(np.median(times[5:])) for name, times in spent.items()}
    result = {words: medians[name] for name, words in STAGES.items()}
    result["drawing, checking and the rest, in Python"] = medians["all"] - sum(result.values())
    tell(f"stages of {n_rows} x {n_columns}: {1000 * medians['all']:.1f} ms in all")
    return result


def both_kernels(data: str | None, names: list[str], tell: Tell) -> dict[str, Any]:
    """Return RGLD's AUROC and time on the splits, with the compiled core and with the NumPy kernels."""
    result = {}
    for kernels in ("native", "numpy"):
        command = [sys.executable, "-W", "ignore", "-m", __name__, "kernels", data or "", *names]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "RGLD_KERNELS": kernels}
        )
        result[kernels] = json.loads(done.stdout.splitlines()[-1])
        tell(f"{kernels} kernels: mean AUROC {np.mean(result[kernels]['auroc']):.2f}")
    return result


def _with_kernels(data: str, names: list[str]) -> dict[str, list[float]]:
    from .datasets import load_dataset
    from .protocol import measure as measured

    auroc, times = [], []
    for name in names:
        train, test, labels = split(*load_dataset(name, Path(data) if data else None), 1)
        for state in range(3):
            detector = make("RGLD", state)
            start = time.perf_counter()
            detector.fit(train)
            scores = detector.decision_function(test)
            times.append(time.perf_counter() - start)
            auroc.append(measured(labels, scores).auroc)
    return {"auroc": auroc, "seconds": times}


def roofline(tell: Tell) -> dict[str, Any]:
    """Return the operations and bytes per row of the two branches, their measured rate on one thread, and the limits of
    the machine."""
    from rgld import RGLD, _kernels

    if _kernels.name != "native":
        return {}
    from rgld._kernels import _core

    n_rows = 16_384
    X = normal_table(n_rows, N_COLUMNS)
    model = RGLD(random_state=0).fit(X).model_
    rows = _kernels.Rows(X, model.scaling, 1, True)
    limit = max(_core.fused_rate(20_000_000) for _ in range(5))
    target = np.empty_like(big := normal_table(2_000_000, N_COLUMNS))
    copies = []
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(target, big)
        copies.append(time.perf_counter() - start)
    stages = {}
    for name, branch in (("global", model.global_branch), ("local", model.local_branch)):
        assert branch is not None, "the paper's settings have both"
        times = []
        for _ in range(9):
            start = time.perf_counter()
            _kernels.view_scores(rows, branch)
            times.append(time.perf_counter() - start)
        stages[name] = {"operations": _operations(branch), "seconds_per_row": min(times) / n_rows}
        tell(f"{name}: {stages[name]['operations'] / stages[name]['seconds_per_row'] / limit:.0%} of the limit")
    memory = 2 * big.nbytes / min(copies)
    return {"fused_per_second": limit, "bytes_per_second": memory, "bytes_per_row": 4 * N_COLUMNS, "stages": stages}


def _operations(branch: Any) -> int:
    """Return the number of arithmetic operations per row in core/kernels.cpp; a fused multiply-add counts as one."""
    n_views, m, r = branch.views.projection.shape
    if hasattr(branch, "references"):
        n_references = branch.references.shape[2]
        distance = 2 * r  # a difference and a fused square
        selection = (19 * 2 + 8 + 17 * 2) / 8  # sorting 8 distances, merging them into the 11 nearest
        return int(n_views * (2 * m * r + n_references * (distance + selection)))
    n_random_features, n_bandwidths = branch.phases.shape[1], len(branch.multipliers)
    wave = 1 + 10 + 6 + 2  # quartering, polynomials, two doublings, the test for far rows
    return int(n_views * n_random_features * (m + wave + 3 * (n_bandwidths - 1) + 2 * n_bandwidths))


def machine() -> dict[str, Any]:
    """Return a description of the machine and the versions that the figures depend on."""
    from rgld import __version__, _kernels

    instruction_set = ""
    if _kernels.name == "native":
        from rgld._kernels import _core

        instruction_set = _core.instruction_set()
    import sklearn

    return {
        "cpu": _cpu_model(),
        "versions": f"Python {platform.python_version()}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": platform.machine(),
        "kernels": _kernels.name,
        "instruction_set": instruction_set,
        "rgld": __version__,
    }


def _cpu_model() -> str:
    """Return the processor's name, or "unknown" if the system does not tell it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def measure(
    data: str | None, names: list[str], *, quick: bool, tell: Tell, keep: Callable[[dict[str, Any]], None]
) -> None:
    """Measure everything, and call `keep` with all results so far after each part. `quick` leaves out what takes
    minutes."""
    from .datasets import load_dataset

    tables = {name: load_dataset(name, Path(data) if data else None) for name in names}
    n_rows = ROWS[:2] if quick else ROWS
    n_columns = COLUMNS[:2] if quick else COLUMNS
    detectors = (
        ("RGLD", "RGLD-Fast", "HBOS", FOREST) if quick else ("RGLD", "RGLD-Fast", "RGLD-plus", "RGLD-novelty", *OTHERS)
    )
    parts: dict[str, Callable[[], Any]] = {
        "machine": machine,
        "small": lambda: small_costs(tell),
        "stages": lambda: stages(tell),
        "roofline": lambda: roofline(tell),
        "kernels": lambda: both_kernels(data, names, tell),
        "splits": lambda: on_splits(tables, 1 if quick else 3, tell),
        "cold": lambda: cold(detectors, tell),
        "columns": lambda: growth(detectors, [(ROWS_OF_WIDE_TABLES, d) for d in n_columns], tell),
        "rows": lambda: growth(detectors, [(n, N_COLUMNS) for n in n_rows], tell),
    }
    found: dict[str, Any] = {}
    for name, part in parts.items():
        found[name] = part()
        keep(found)


if __name__ == "__main__":
    _what, *_arguments = sys.argv[1:]
    if _what == "grow":
        print(json.dumps(_grow(_arguments[0], *map(int, _arguments[1:]))))
    else:
        print(json.dumps(_with_kernels(_arguments[0], _arguments[1:])))
