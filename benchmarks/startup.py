"""Where the start of `rgld score` goes: CPU seconds of a process for each thing it imports, the smallest of several.

    python benchmarks/startup.py [REPEATS]

CPU time, not wall time, and the smallest of several: so a busy machine changes little. A line contains
all that it imports itself: NumPy is in most of them.
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

N_REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 10
NO_PANDAS = "import sys; sys.modules['pandas'] = None; "
IMPORTS = {
    "Python alone": "pass",
    "NumPy": "import numpy",
    "polars": "import polars",
    "the commands (Typer), with NumPy and polars": "import rgld.cli._app",
    "the detector of the command": "import rgld._detector",
    "`scipy.special`: normal quantiles": "import numpy, scipy.special",
    "`scipy.stats`: Sobol points": "import numpy, scipy.stats",
    "`rgld.RGLD`, scikit-learn's estimator, pandas not installed": NO_PANDAS + "import rgld; rgld.RGLD",
    "`rgld.RGLD`, pandas installed": "import rgld; rgld.RGLD",
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
    print(f"| | CPU seconds, smallest of {N_REPEATS} |\n|---|---|")
    for name, code in IMPORTS.items():
        print(f"| {name} | {cpu_seconds([sys.executable, '-c', code]):.2f} |", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "small.csv"
        rows = np.random.default_rng(0).normal(size=(300, 4))
        np.savetxt(table, rows, delimiter=",", header="a,b,c,d", comments="")
        rgld, model = str(Path(sys.executable).parent / "rgld"), str(Path(folder) / "small.rgld")
        subprocess.run([rgld, "fit", str(table), "--model", model, "--quiet"], check=True)
        for arguments in (
            ["--help"],
            ["info", model],
            ["score", str(table), "--model", model],
            ["score", str(table)],
            ["report", str(table), "--out", str(Path(folder) / "page.html"), "--force"],
        ):
            shown = " ".join(word.replace(f"{folder}/", "") for word in arguments)
            print(f"| `rgld {shown}` | {cpu_seconds([rgld, *arguments]):.2f} |", flush=True)


if __name__ == "__main__":
    main()
