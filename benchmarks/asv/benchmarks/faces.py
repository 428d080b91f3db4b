"""Files, frames and the command."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from rgld import RGLD, load

N_ROWS = 5000


def mixed_frame() -> pl.DataFrame:
    """Return a frame with numbers, categories, dates, text and missing values."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2026-01-01") + rng.integers(0, 365, N_ROWS)
    return pl.DataFrame(
        {
            "amount": np.where(rng.random(N_ROWS) < 0.05, np.nan, rng.lognormal(size=N_ROWS)),
            "count": rng.integers(0, 9, N_ROWS),
            "shop": rng.choice(["north", "south", "east"], N_ROWS),
            "day": days.astype("datetime64[ms]"),
            "note": [f"order {i % 700}" for i in range(N_ROWS)],
        }
    )


class Frames:
    """A table of columns of all kinds."""

    def setup(self):
        self.frame = mixed_frame()

    def time_fit_mixed_columns(self):
        RGLD(random_state=0, n_jobs=1).fit(self.frame)


class Files:
    """The model file."""

    def setup(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "model.rgld"
        self.detector = RGLD.plus(random_state=0).fit(mixed_frame())
        self.detector.save(self.path)

    def teardown(self):
        self.folder.cleanup()

    def time_save(self):
        self.detector.save(self.path)

    def time_load(self):
        load(self.path)


class Command:
    """A process from its start to its end."""

    timeout = 120

    def setup(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "table.csv"
        mixed_frame().head(300).write_csv(self.path)

    def teardown(self):
        self.folder.cleanup()

    def time_import(self):
        subprocess.run([sys.executable, "-c", "from rgld import RGLD"], check=True)

    def time_score_a_small_file(self):
        command = "from rgld.cli import main; main()"
        arguments = [sys.executable, "-c", command, "score", str(self.path)]
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
