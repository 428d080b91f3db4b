"""Time and size of `rgld report`, as installed: a CSV file in, a page out.

    python benchmarks/report.py

Prints, for each table, the seconds of the whole command, those of `write_report` alone, and the size of the page.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from rgld import RGLD
from rgld.report import write_report

SIZES = ((50_000, 30), (100_000, 50))
COMMAND = Path(sys.executable).with_name("rgld")


def mixed_table(n, d):
    """Return a table whose columns are, in turn, numbers, skewed numbers, categories, many-valued texts and times."""
    rng = np.random.default_rng(0)
    start = np.datetime64("2024-01-01T00:00:00", "us")
    kinds = (
        lambda: rng.normal(size=n),
        lambda: rng.lognormal(3.0, 1.0, n).round(2),
        lambda: rng.choice(["red", "green", "blue", "black"], n, p=[0.6, 0.3, 0.09, 0.01]),
        lambda: np.char.add("shop ", rng.zipf(1.6, n).clip(1, 5000).astype(str)),
        lambda: start + rng.integers(0, 10**7, n).astype("timedelta64[s]"),
    )
    return pl.DataFrame({f"column_{j:02d}": kinds[j % len(kinds)]() for j in range(d)})


def main():
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        for n, d in SIZES:
            table = mixed_table(n, d)
            source, page = Path(folder) / "table.csv", Path(folder) / "report.html"
            table.write_csv(source)
            started = time.perf_counter()
            subprocess.run([COMMAND, "report", source, "-o", page, "--force", "--quiet"], check=True)
            whole = time.perf_counter() - started
            size = page.stat().st_size
            detector = RGLD.plus(random_state=0).fit(table)
            started = time.perf_counter()
            write_report(detector, table, page)
            alone = time.perf_counter() - started
            print(f"{n:,} x {d}: rgld report {whole:.1f} s, write_report {alone:.1f} s, page {size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
