"""A real table from a file to an answer: which rows, why, how good.

Writes a table that ships inside scikit-learn (569 biopsies, 30 measurements, the diagnosis) to a CSV file and runs the
command on it, as you would on a file of your own. The diagnosis is left out of the model; it only measures the result.
"""

import subprocess
import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer

FOLDER = Path("build/demo")
FOLDER.mkdir(parents=True, exist_ok=True)

data = load_breast_cancer()
lines = [",".join(["biopsy", *(name.replace(" ", "_") for name in data.feature_names), "diagnosis"])]
for number, (values, target) in enumerate(zip(data.data, data.target, strict=True)):
    lines.append(",".join([f"B{number:03d}", *map(repr, map(float, values)), str(data.target_names[target])]))
(FOLDER / "biopsies.csv").write_text("\n".join(lines) + "\n")

rgld = str(Path(sys.executable).with_name("rgld"))
columns = ["--id", "biopsy", "--label", "diagnosis"]
for arguments in (
    ["score", "biopsies.csv", *columns, "--top", "5"],
    ["report", "biopsies.csv", *columns, "--out", "report.html", "--force"],
):
    print(f"\n$ rgld {' '.join(arguments)}\n", flush=True)
    subprocess.run([rgld, *arguments], cwd=FOLDER, check=True)
print(f"\nOpen {FOLDER / 'report.html'} in a browser.")
