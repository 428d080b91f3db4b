"""Writes the table of docs/study.md: seconds of all detectors in one quiet run, beside those of docs/results.md.

python benchmarks/quiet.py

`quiet.jsonl` holds the lines of that run. Nothing else ran on the machine, and one run at a time, on one core:

    rgld bench run --data FOLDER --detectors all --datasets wine --datasets Pima --datasets cardio --seeds 1 --out quiet

The fast ones also ran on thyroid, letter and fault, which count for the ratios.
"""

from pathlib import Path

import pandas as pd

from rgld.bench.lines import read_lines
from rgld.bench.tables import frame_of

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "study.md"
START, END = "<!-- benchmarks/quiet.py writes from here -->", "<!-- to here -->"
SHOWN = ["wine", "Pima", "cardio"]


def seconds_of(path: Path) -> pd.Series:
    """Return seconds by detector and dataset, means over random states."""
    frame = frame_of(read_lines(path))
    chosen = (frame["seed"] == 1) & (frame["protocol"] == "paper")
    return frame[chosen].groupby(["method", "dataset"])["seconds"].mean()


def main() -> None:
    quiet = seconds_of(HERE / "quiet.jsonl")
    ratio = (quiet / seconds_of(HERE / "results")).dropna()
    shown = quiet.unstack()[SHOWN]
    shown = shown.loc[shown.mean(axis=1).sort_values().index]
    lines = [f"| detector | {' | '.join(SHOWN)} | quiet / results, median |", "|---" * (len(SHOWN) + 2) + "|"]
    for name, seconds in shown.iterrows():
        cells = " | ".join(f"{value:.3f}" if value < 1 else f"{value:.1f}" for value in seconds)
        lines.append(f"| {name} | {cells} | {ratio[name].median():.2f} |")
    low, middle, high = ratio.quantile([0.05, 0.5, 0.95])
    said = f"{len(ratio)} runs; quiet, they take {middle:.2f} times as long ({low:.2f} to {high:.2f} in 90 % of them)."
    made = "\n".join([START, "", *lines, "", said, "", END])
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(START)
    PAGE.write_text(before + made + rest.split(END)[1], encoding="utf-8")
    print(made)


if __name__ == "__main__":
    main()
