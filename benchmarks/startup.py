"""Where the start of `rgld score` goes: CPU seconds of a process for each thing it imports, the smallest of ten.

    python benchmarks/startup.py

CPU time, not wall time, and the smallest of ten: so a busy machine changes little. Each line contains the ones that it
builds on.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

N_REPEATS = 10
NO_PANDAS = "import sys; sys.modules['pandas'] = None; "
IMPORTS = {
    "Python alone": "pass",
    "NumPy": "import numpy",
    "scipy.special": "import numpy, scipy.special",
    "scipy.stats": "import numpy, scipy.stats",
    "scikit-learn's base class, pandas not installed": NO_PANDAS + "import sklearn.base",
    "scikit-learn's base class, pandas installed": "import sklearn.base",
    "the detector, pandas not installed": NO_PANDAS + "import rgld._detector",
    "the detector, pandas installed": "import rgld._detector",
    "polars": "import polars",
    "the commands (Typer)": "import rgld.cli._app",
}


def cpu_seconds(command: list[str]) -> float:
    best = np.inf
    for _ in range(N_REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main() -> None:
    print("| | CPU seconds, smallest of ten |\n|---|---|")
    for name, code in IMPORTS.items():
        print(f"| {name} | {cpu_seconds([sys.executable, '-c', code]):.2f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "small.csv"
        rows = np.random.default_rng(0).normal(size=(300, 4))
        np.savetxt(table, rows, delimiter=",", header="a,b,c,d", comments="")
        command = [str(Path(sys.executable).parent / "rgld"), "score", str(table)]
        print(f"| `rgld score` of 300 rows | {cpu_seconds(command):.2f} |")
        print(f"| `rgld --help` | {cpu_seconds([command[0], '--help']):.2f} |")


if __name__ == "__main__":
    main()
