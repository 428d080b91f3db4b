"""Times and peak memory of the commands on large files: the table in docs/cli.md.

python benchmarks/cli.py [FOLDER for the files]
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

RGLD = str(Path(sys.executable).with_name("rgld"))

READ_AND_WRITE = """
import sys, polars as pl
pl.read_csv(sys.argv[1], infer_schema_length=None).write_csv(sys.argv[2])
"""
FIT_AND_SCORE = """
import sys, time, polars as pl
from rgld import RGLD
X = pl.read_csv(sys.argv[1], infer_schema_length=None).drop("id")
start = time.perf_counter()
RGLD.plus(random_state=0).fit_predict(X)
print(time.perf_counter() - start)
"""
PEAK = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
sys.exit(code)
"""


def mixed(n_rows: int, n_columns: int, seed: int = 0) -> pl.DataFrame:
    """Return a table of ids, numbers, two categories and a date: n_columns columns beside the id."""
    rng = np.random.default_rng(seed)
    columns: dict[str, object] = {"id": np.arange(n_rows)}
    columns |= {f"x{j}": rng.normal(size=n_rows).round(4) for j in range(n_columns - 3)}
    columns["city"] = rng.choice(["Bonn", "Paris", "Rome", "Wien"], n_rows)
    columns["shop"] = rng.choice([f"shop {i}" for i in range(300)], n_rows)
    columns["day"] = np.datetime64("2024-01-01") + rng.integers(0, 365, n_rows)
    return pl.DataFrame(columns)


def timed(*command: str) -> tuple[float, float]:
    """Return seconds and peak MiB of a command in a process of its own."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr}")
    return seconds, float(done.stdout.splitlines()[-1])


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        folder = Path(name)
        table, out = str(folder / "million.csv"), str(folder / "out.csv")
        mixed(1_000_000, 20).write_csv(table)
        print(f"a CSV file of 1,000,000 rows and 20 columns beside the id, {Path(table).stat().st_size / 1e6:.0f} MB")
        copy, _ = timed(sys.executable, "-c", READ_AND_WRITE, table, out)
        print(f"polars reads and writes it:     {copy:6.1f} s")
        done = subprocess.run([sys.executable, "-c", FIT_AND_SCORE, table], capture_output=True, text=True, check=True)
        scoring = float(done.stdout)
        print(f"fit and scores in Python:       {scoring:6.1f} s")
        seconds, peak = timed(RGLD, "score", table, "--id", "id", "--out", out, "--force", "--quiet")
        limit = 3 * copy + scoring
        print(f"rgld score:                     {seconds:6.1f} s, {peak:5.0f} MiB (limit {limit:.1f} s, 1536 MiB)")
        model = str(folder / "m.rgld")
        seconds, peak = timed(RGLD, "fit", table, "--id", "id", "--model", model, "--quiet")
        print(f"rgld fit:                       {seconds:6.1f} s, {peak:5.0f} MiB")
        seconds, peak = timed(RGLD, "score", table, "--id", "id", "--model", model, "--out", out, "--force", "--quiet")
        print(f"rgld score --model:             {seconds:6.1f} s, {peak:5.0f} MiB")
        wide = str(folder / "wide.csv")
        mixed(50_000, 30).write_csv(wide)
        page = str(folder / "report.html")
        seconds, peak = timed(RGLD, "report", wide, "--id", "id", "--out", page, "--quiet")
        size = Path(page).stat().st_size / 1e6
        print(
            f"rgld report, 50,000 x 30:       {seconds:6.1f} s, {peak:5.0f} MiB, a page of {size:.1f} MB (limit 20 s)"
        )
    peak_self = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"(this program itself: {peak_self:.0f} MiB)")


if __name__ == "__main__":
    main()
