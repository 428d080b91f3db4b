"""Models: the detectors that are served, by name, and how a new file takes the place of an old one.

In: model files, or a folder of them. Out: `Served` models. A file that is replaced on disk is loaded beside the old
model and takes its place when it is whole; requests under way go on with the old one. A file that cannot be read
changes nothing.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Float64s
from .._detector import Detector, load
from .._drift.sequence import ORDER_SEED, Watch
from .._drift.verdict import Check, check_table
from .._explain.explanation import Explanation, explain_rows
from .._explain.relations import relation_checks
from .._kernels.scoring import score_rows, table_scores
from .._model.model import Model
from .._table.table import Table
from ..exceptions import ModelFileError, ParameterError, RGLDError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Names of models: letters, digits, points, underscores and hyphens."""
SUFFIX = ".rgld"
MAX_MODELS = 100
MAX_SERIAL_ROWS = 256
"""Up to this many rows one thread is faster than several."""
WATCHED_ROWS = 32
"""Rows of a request that are bet against, chosen at random: not by what they score, so that the bets stay fair, and not
the first ones, which are the oldest if a client sends its rows in the order of their dates ..."""
BET_ROWS = 64
"""... and as many are bet against together."""


@dataclass(eq=False)
class Served:
    """A model that answers requests."""

    name: str
    detector: Detector
    version: str
    """What tells this file from another one: a part of its hash."""
    watch: Watch | None = None
    _waiting: list[float] = field(default_factory=list)

    @property
    def model(self) -> Model:
        """The frozen model."""
        found: Model = self.detector.model_
        return found

    @property
    def threshold(self) -> float:
        """Rows that score higher are called anomalous."""
        return -float(self.detector.offset_)

    @cached_property
    def has_names(self) -> bool:
        """Whether the training table had column names."""
        return hasattr(self.detector, "feature_names_in_")

    @cached_property
    def columns(self) -> list[tuple[str, bool]]:
        """The names of the columns, and whether the model uses them."""
        return [(column.name, column.kind != "dropped") for column in self.model.encoding.columns]

    def scores(self, table: Table) -> Float64s:
        """Return the scores of rows: those of `RGLD.anomaly_score`, to the bit."""
        n_jobs = 1 if len(table) <= MAX_SERIAL_ROWS else self.detector.n_jobs
        return table_scores(self.model, table, n_jobs)

    def explained(self, table: Table) -> Explanation:
        """Return the explanations of rows."""
        matrix = table.encode(self.model.encoding)
        return explain_rows(self.model, table, matrix, score_rows(self.model, table, matrix, 1), 1)

    def check(self, table: Table, scores: Float64s, alpha: float) -> Check:
        """Return whether a table with these scores is still like the training table."""
        model = self.model
        relations = relation_checks(model, table)
        return check_table(model.encoding, model.profiles, model.calibration, table, scores, alpha, None, relations)

    def bet(self, scores: Float64s) -> None:
        """Bet against some rows of a request, in random order."""
        if self.watch is not None:
            if len(scores) > 1:
                rng = np.random.default_rng([ORDER_SEED, self.watch.n_rows + len(self._waiting)])
                scores = rng.choice(scores, min(len(scores), WATCHED_ROWS), replace=False)
            self._waiting += scores.tolist()
            if len(self._waiting) >= BET_ROWS:
                self.settle()

    def settle(self) -> None:
        """Bring the bets up to date."""
        if self.watch is not None and self._waiting:
            waiting, self._waiting = self._waiting, []
            self.watch, _ = self.watch.followed(np.array(waiting))


@dataclass(frozen=True)
class FileMark:
    """What changes when a file is replaced."""

    changed: int
    size: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> "FileMark":
        """Return the mark of a file."""
        found = path.stat()
        return cls(found.st_mtime_ns, found.st_size, found.st_ino)


def load_served(name: str, path: Path, n_jobs: int | None) -> Served:
    """Return the model of a file."""
    detector = load(path)
    detector.n_jobs = n_jobs
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    calibration = detector.model_.calibration
    return Served(name, detector, digest, Watch.begin(calibration) if len(calibration) else None)


class Models:
    """All models that are served."""

    def __init__(self, files: dict[str, Path], folder: Path | None, n_jobs: int | None) -> None:
        """Take the files by name, or a folder whose files are served."""
        self._files = files
        self._folder = folder
        self._n_jobs = n_jobs
        self._marks: dict[str, FileMark] = {}
        self._refused: dict[str, FileMark] = {}
        self.served: dict[str, Served] = {}

    @classmethod
    def of(cls, model: str | None, folder: str | None, n_jobs: int | None) -> "Models":
        """Return the models of a file or of a folder; raise if one cannot be loaded."""
        if (model is None) == (folder is None):
            raise ParameterError("Expected one of --model FILE and --models FOLDER.")
        if folder is not None and not Path(folder).is_dir():
            raise ParameterError(f"--models {folder}: there is no such folder.")
        files = {}
        if model is not None:
            stem = re.sub(r"[^A-Za-z0-9._-]", "-", Path(model).stem).lstrip("._-")[:64] or "model"
            files[stem] = Path(model)
        models = cls(files, None if folder is None else Path(folder), n_jobs)
        for name, path in models._found().items():
            mark = FileMark.of(path)
            models.served[name] = load_served(name, path, n_jobs)
            models._marks[name] = mark
        if not models.served:
            raise ParameterError(f"--models {folder}: expected files NAME{SUFFIX}, found none.")
        return models

    def _found(self) -> dict[str, Path]:
        """Return the files to serve, by name."""
        if self._folder is None:
            return self._files
        found = {path.stem: path for path in sorted(self._folder.glob(f"*{SUFFIX}")) if NAME.fullmatch(path.stem)}
        return dict(list(found.items())[:MAX_MODELS])

    def get(self, name: str | None) -> Served | None:
        """Return a model by name, or the only one; None if there is none of this name."""
        if name is None and len(self.served) == 1:
            return next(iter(self.served.values()))
        return self.served.get(name or "")

    def look(self, tell: Callable[[str, dict[str, Any]], None]) -> None:
        """Load files that are new or were replaced; `tell` is told of each. May run beside requests."""
        found = self._found()
        for name, path in found.items():
            try:
                mark = FileMark.of(path)
            except OSError:  # it is gone, or a link that leads nowhere
                continue
            if mark in (self._marks.get(name), self._refused.get(name)):
                continue
            try:
                new = load_served(name, path, self._n_jobs)
                if FileMark.of(path) != mark:  # it changed while it was read: look again later
                    continue
            except FileNotFoundError:
                continue
            except (RGLDError, OSError, MemoryError) as error:
                self._refused[name] = mark
                kind = "not a model file" if isinstance(error, ModelFileError) else type(error).__name__
                tell("model refused", {"model": name, "reason": kind})
                continue
            self._marks[name] = mark
            self.served = {**self.served, name: new}  # one assignment: a request sees the old models or the new ones
            tell("model loaded", {"model": name, "version": new.version})
        gone = set(self.served) - set(found)
        if gone and self._folder is not None:
            self.served = {name: one for name, one in self.served.items() if name not in gone}
            for name in gone:
                self._marks.pop(name, None)
                tell("model removed", {"model": name})
