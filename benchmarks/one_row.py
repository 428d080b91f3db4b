"""One row: how long a loaded model takes to score and to explain a single row, as a server does.

The table is generated: 20,000 rows, 14 columns (a date, a time of day, seven numbers of which one has gaps, four
categories, a bool). Prints milliseconds for each way a row may come in: the median of 300 calls, and in brackets the
fastest tenth, which other programs on the machine disturb less.

    python benchmarks/one_row.py
"""

import tempfile
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

import rgld

N_ROWS, N_CALLS = 20_000, 300


def table(seed: int = 0) -> pl.DataFrame:
    """Return rides: columns of every kind."""
    rng = np.random.default_rng(seed)
    start = datetime(2024, 1, 1)
    minutes = rng.integers(0, 24 * 60, N_ROWS)
    ages = np.where(rng.random(N_ROWS) < 0.1, np.nan, rng.normal(40.0, 9.0, N_ROWS).round())
    return pl.DataFrame(
        {
            "day": [start + timedelta(seconds=int(s)) for s in rng.integers(0, 90 * 86_400, N_ROWS)],
            "booked_at": [f"{m // 60:02d}:{m % 60:02d}" for m in minutes],
            "fare": rng.lognormal(3.0, 0.5, N_ROWS).round(2),
            "tip": rng.gamma(1.0, 2.0, N_ROWS).round(2),
            "distance": rng.gamma(2.0, 3.0, N_ROWS),
            "speed": rng.normal(50.0, 9.0, N_ROWS),
            "wait": rng.exponential(4.0, N_ROWS),
            "passengers": rng.integers(1, 6, N_ROWS),
            "age": pl.Series(ages, nan_to_null=True),
            "city": rng.choice(["Bonn", "Paris", "Rome"], N_ROWS),
            "zone": rng.choice([f"zone {i}" for i in range(200)], N_ROWS),
            "payment": rng.choice(["card", "cash", "account", "voucher"], N_ROWS, p=[0.6, 0.25, 0.1, 0.05]),
            "vehicle": rng.choice(["car", "van"], N_ROWS),
            "shared": rng.random(N_ROWS) < 0.2,
        }
    )


def milliseconds(call: Callable[[], Any]) -> str:
    """Return the median of many calls and, in brackets, the fastest tenth."""
    for _ in range(5):
        call()
    times = []
    for _ in range(N_CALLS):
        begin = perf_counter()
        call()
        times.append(1e3 * (perf_counter() - begin))
    fastest, median = np.quantile(times, [0.1, 0.5])
    return f"{median:.2f} ({fastest:.2f})"


def print_times(name: str, detector: rgld.RGLD, rows: Any) -> None:
    """Print how long it takes to score rows, to explain them, and to say the reasons of the first."""
    calls = (
        lambda: detector.anomaly_score(rows),
        lambda: detector.explain(rows),
        lambda: detector.explain(rows).reasons(0),
    )
    print(f"{name:<46}" + "".join(f"{milliseconds(call):>14}" for call in calls))


def main() -> None:
    """Print the times."""
    rides = table()
    row = rides[17].with_columns(fare=pl.lit(940.0))
    ways = {"list of one dict": row.to_dicts(), "polars frame": row, "pandas frame": row.to_pandas()}
    print(f"{'milliseconds for one row of 14 mixed columns':<46}{'score':>14}{'explain':>14}{'with reasons':>14}")
    for preset, maker in (("plus", rgld.RGLD.plus), ("paper", rgld.RGLD)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rides.rgld"
            maker(random_state=0).fit(rides).save(path)
            detector = rgld.load(path)
        for name, rows in ways.items():
            print_times(f"{preset}, {name}", detector, rows)
    numbers = np.random.default_rng(0).normal(size=(N_ROWS, 14))
    print_times("plus, NumPy row of 14 numbers", rgld.RGLD.plus(random_state=0).fit(numbers), numbers[:1])


if __name__ == "__main__":
    main()
