"""Compares the seconds of the study with those of a quiet run of all detectors on a few datasets (`quiet.jsonl`).

python benchmarks/quiet.py

The quiet run was this, with nothing else on the machine, one run at a time:

    rgld bench run --data FOLDER --detectors NAME ... --datasets wine ... --seeds 1 --out quiet
"""

from pathlib import Path

import pandas as pd

from rgld.bench.lines import read_lines
from rgld.bench.tables import frame_of

HERE = Path(__file__).parent
KEYS = ["method", "dataset"]


def seconds_of(path: Path) -> pd.DataFrame:
    frame = frame_of(read_lines(path))
    chosen = (frame["seed"] == 1) & (frame["protocol"] == "paper")
    return frame[chosen].groupby(KEYS)[["seconds"]].mean()  # of all random states


def main() -> None:
    ratio = (seconds_of(HERE / "quiet.jsonl") / seconds_of(HERE / "results"))["seconds"].dropna()
    print(ratio.groupby("method").agg(["count", "median", "min", "max"]).sort_values("median").round(2).to_string())
    low, middle, high = ratio.quantile([0.05, 0.5, 0.95])
    print(
        f"{len(ratio)} runs: the quiet one takes {middle:.2f} times as long ({low:.2f} to {high:.2f} in 90 % of them)"
    )


if __name__ == "__main__":
    main()
