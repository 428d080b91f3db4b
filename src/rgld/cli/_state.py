"""State files: what `rgld check --state` carries from run to run.

In: a path and a model. Out: the bets so far and the last tables' summaries, as JSON. The file is written whole beside
its place and renamed. A lock, which the system lets go when a process dies, keeps two runs from using the same file at
once.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rgld._drift.sequence import MAX_POOL, Watch
from rgld._modelfile.atomic import write_whole
from rgld._modelfile.tensors import parse_json
from rgld.exceptions import ModelFileError, ParameterError

if TYPE_CHECKING:
    from rgld._detector import Detector

STATE_SCHEMA, STATE_VERSION = "rgld-watch", 1
MAX_RUNS = 1000
"""Tables whose summaries are kept, the last ones."""
MAX_BYTES = 2**23
"""A larger file is not one of ours."""
MAX_WAIT_SECONDS = 60.0
"""How long a run waits for another one to finish with the file."""
WAIT_STEP_SECONDS = 0.1
MAX_RUN_REASONS = 5
MAX_WATCHED_ROWS = 2**53
"""Rows of all tables together: from here on, a float cannot count one by one."""
MAX_LOG_WEALTH = 1e12
"""Logarithms of a wealth are between minus this and this. No run comes near it, and no sum of them overflows."""


@dataclass
class State:
    """The content of a state file."""

    model: str
    """What tells the model from others: a hash of its held-out scores."""
    watch: Watch | None = None
    runs: list[dict[str, Any]] = field(default_factory=list)
    """A summary of each table, the last one last."""

    def as_json(self) -> str:
        """Return the content of the file."""
        watch = None if self.watch is None else asdict(self.watch)
        return json.dumps(
            {"schema": STATE_SCHEMA, "version": STATE_VERSION, "model": self.model, "watch": watch, "runs": self.runs}
        )


def fingerprint(detector: "Detector") -> str:
    """Return what tells a model from others."""
    model = detector.model_
    digest = hashlib.sha256(model.calibration.tobytes())
    digest.update(repr([model.encoding.n_rows, [column.name for column in model.encoding.columns]]).encode())
    return digest.hexdigest()[:32]


def now() -> str:
    """Return the time, as a state file writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Hold the lock of a state file; wait for another run that holds it."""
    try:
        import fcntl
    except ImportError as error:  # Windows
        raise ParameterError("--state needs file locks, which this system does not have: leave it out.") from error
    with _lock_file(path) as lock:
        until = time.monotonic() + MAX_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > until:
                    raise ParameterError(
                        f"--state {path} is in use by another run for over {MAX_WAIT_SECONDS:.0f} seconds: wait for it."
                    ) from None
                time.sleep(WAIT_STEP_SECONDS)
        yield


def _lock_file(path: str) -> IO[bytes]:
    """Return the open lock file beside a state file. Opening never waits, as it would at a pipe of that name."""
    folder, name = os.path.split(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise ParameterError(f"--state {path}: there is no folder {os.path.dirname(path)}: make it first.")
    if not name or os.path.isdir(path):
        raise ParameterError(f"--state {path} is a folder, expected the name of a file.")
    lock = os.path.join(folder, f"{name}.lock")
    file = os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666), "rb+", buffering=0)
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ParameterError(f"--state {path}: its lock, {lock}, is not a regular file: remove it.")
    return file


def read_state(path: str, model: str | None) -> State | None:
    """Return the content of a state file; None if there is no file yet. It must belong to the model, if one is
    given."""
    target = Path(path)
    if not target.exists():
        return None
    if not target.is_file() or target.stat().st_size > MAX_BYTES:
        raise _refused(path)
    try:
        content = parse_json(target.read_bytes())
        state = State(content["model"], _watch_of(content["watch"]), content["runs"])
        if (content["schema"], content["version"]) != (STATE_SCHEMA, STATE_VERSION) or not _are_runs(state.runs):
            raise _refused(path)
    except (ModelFileError, KeyError, TypeError, ValueError) as error:
        raise _refused(path) from error
    if model is not None and state.model != model:
        raise ParameterError(
            f"--state {path} belongs to another model: name another file, or remove this one to begin anew."
        )
    return state


def write_state(path: str, state: State) -> None:
    """Write a state file, whole or not at all."""
    state.runs = state.runs[-MAX_RUNS:]
    write_whole(path, state.as_json())


def _refused(path: str) -> ParameterError:
    return ParameterError(f"--state {path} is not a state file of `rgld check`: name another file, or remove it.")


def _watch_of(content: Any) -> Watch | None:
    """Return the bets, if a run can have written them."""
    if content is None:
        return None
    if set(content) != {one.name for one in fields(Watch)}:
        raise ValueError("other fields")
    watch = Watch(**{**content, "pool": tuple(content["pool"]), "shares": tuple(content["shares"])})
    numbers = (*watch.pool, *watch.shares, watch.log_wealth, watch.highest)
    is_possible = (
        all(type(number) is float for number in numbers)
        and type(watch.n_rows) is int
        and type(watch.highest_at) is int
        and 0 <= watch.highest_at <= watch.n_rows <= MAX_WATCHED_ROWS
        and abs(watch.log_wealth) <= MAX_LOG_WEALTH
        and watch.highest <= MAX_LOG_WEALTH
        and all(0.0 <= score <= 1.0 for score in watch.pool)
        and 0 < len(watch.pool) <= MAX_POOL
        and all(low <= high for low, high in zip(watch.pool, watch.pool[1:], strict=False))
        and len(watch.shares) == len(Watch(()).shares)
        and all(0.0 <= share <= 1.0 for share in watch.shares)
        and abs(sum(watch.shares) - 1.0) < 1e-6
        and watch.highest >= max(0.0, watch.log_wealth) - 1e-9
    )
    if not is_possible:
        raise ValueError("other values")
    return watch


RUN_FIELDS: dict[str, type | tuple[type, ...]] = {
    "time": str,
    "table": str,
    "rows": int,
    "verdict": str,
    "above_threshold": float,
    "log10_wealth": (float, type(None)),
    "reasons": list,
    "scores": str,
}
"""What is kept of a table, and its types; `scores` is a hash, by which a table that comes twice is known."""


def _are_runs(runs: Any) -> bool:
    return (
        isinstance(runs, list)
        and len(runs) <= MAX_RUNS
        and all(isinstance(run, dict) and set(run) == set(RUN_FIELDS) for run in runs)
        and all(isinstance(run[name], kind) for run in runs for name, kind in RUN_FIELDS.items())
        and all(isinstance(reason, str) for run in runs for reason in run["reasons"])
        and all(_are_numbers_of_a_run(**run) for run in runs)
    )


def _are_numbers_of_a_run(rows: int, above_threshold: float, log10_wealth: float | None, **others: Any) -> bool:
    return (
        0 <= rows <= MAX_WATCHED_ROWS
        and 0.0 <= above_threshold <= 1.0
        and (log10_wealth is None or abs(log10_wealth) <= MAX_LOG_WEALTH)
    )
