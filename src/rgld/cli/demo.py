"""`rgld demo`: a generated table, its anomalous rows with reasons, and a report."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer

from rgld._arrays import Float64s
from rgld.exceptions import ParameterError

from ._options import Force
from ._output import written_out
from .report import report
from .score import score

N_ROWS = 5000
START = datetime(2024, 3, 1)
MERCHANTS = ("Grocer", "Bakery", "Fuel", "Cafe", "Books", "Pharmacy", "Market", "Cinema", "Florist", "Shoes", "Toys")
TYPICAL = (42.0, 6.5, 55.0, 7.5, 21.0, 18.0, 30.0, 14.0, 25.0, 68.0, 33.0)


def demo(
    folder: Annotated[Path, typer.Argument(help="Where to put the table and the report.")] = Path("rgld-demo"),
    force: Force = False,
) -> None:
    """Generate a table of 5000 payments with seven strange ones, score it, and write a report.

    The strange rows are known, so the command can tell at which rank each of them comes.
    """
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder} is a file, expected a folder.")
    table, scores, page = folder / "payments.csv", folder / "scores.csv", folder / "report.html"
    if not force and any(file.exists() for file in (table, scores, page)):
        raise ParameterError(f"{folder} already holds a demo: name another folder, or pass --force to replace it.")
    folder.mkdir(parents=True, exist_ok=True)
    generated = payments(seed=0)
    with written_out(str(table), force=force) as beside:
        generated.write_csv(beside)
    print(f"{N_ROWS:,} generated payments written to {table}; the column 'planted' says which are strange, and why.\n")
    print(f"$ rgld score {table} --id payment --column planted=drop --out {scores}\n")
    score(table=str(table), id="payment", column=["planted=drop"], out=str(scores), force=force)
    _print_ranks(generated, pl.read_csv(scores))
    print(f"\n$ rgld report {table} --id payment --column planted=drop --out {page}\n")
    report(table=str(table), out=str(page), force=force, id="payment", column=["planted=drop"])


def _print_ranks(table: pl.DataFrame, scores: pl.DataFrame) -> None:
    """Print at which rank each strange row comes."""
    strange = table.filter(pl.col("planted") != "").join(scores, on="payment").sort("rank")
    print(f"\nWhere the strange rows come among {len(table):,}:\n\n rank  payment")
    for rank, payment, words in strange.select("rank", "payment", "planted").iter_rows():
        print(f"{rank:5,}  {payment}   {words}")
    print("\nA merchant or a country that is seen once stands out less than a number far outside (docs/tables.md).")


def payments(seed: int) -> pl.DataFrame:
    """Return card payments: ordinary ones, and seven strange ones that the last column describes."""
    rng = np.random.default_rng(seed)
    shop = rng.choice(len(MERCHANTS), N_ROWS, p=_merchant_fractions(len(MERCHANTS)))
    amount = np.array(TYPICAL)[shop] * rng.lognormal(0.0, 0.2, N_ROWS)
    hour = np.clip(rng.normal(14.0, 3.0, N_ROWS), 7.0, 22.0)
    day = rng.integers(0, 92, N_ROWS)
    times = [START + timedelta(days=int(d), seconds=int(3600 * h)) for d, h in zip(day, hour, strict=True)]
    ages = rng.normal(44.0, 13.0, N_ROWS).clip(18, 90)
    columns: dict[str, Any] = {
        "payment": [f"P{i:05d}" for i in range(N_ROWS)],
        "time": times,
        "merchant": [MERCHANTS[s] for s in shop],
        "amount": amount.round(2),
        "items": 1 + rng.binomial(6, np.clip(amount / 150.0, 0.0, 0.6)),
        "country": rng.choice(["DE", "FR", "NL", "BE", "AT"], N_ROWS, p=[0.6, 0.2, 0.1, 0.06, 0.04]),
        "card": rng.choice(["chip", "contactless", "online"], N_ROWS, p=[0.3, 0.55, 0.15]),
        "age": [None if gap else int(age) for gap, age in zip(rng.random(N_ROWS) < 0.08, ages, strict=True)],
    }
    # Ids follow the time.
    frame = pl.DataFrame(columns).sort("time").with_columns(payment=pl.Series(columns["payment"]))
    return _with_strange_rows(frame)


def _with_strange_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the payments with seven changed ones, and a column that says what is strange about them."""
    cells = {name: frame[name].to_list() for name in frame.columns}
    planted = [""] * len(frame)
    strange: dict[int, tuple[str, dict[str, Any]]] = {
        311: ("a very large amount", {"amount": 9940.0}),
        902: ("a merchant that is seen once", {"merchant": "Casino Royale"}),
        1555: ("coffee for the price of a fridge", {"merchant": "Cafe", "amount": 640.0}),
        2210: ("a date in the far future", {"time": cells["time"][2210].replace(year=2042)}),
        2987: ("a hundred items for almost nothing", {"items": 120, "amount": 4.2}),
        3640: ("a customer of 930 years", {"age": 930}),
        4444: ("a country that is seen once", {"country": "ZZ"}),
    }
    for row, (words, changes) in strange.items():
        planted[row] = words
        for name, value in changes.items():
            cells[name][row] = value
    return pl.DataFrame({**cells, "planted": planted})


def _merchant_fractions(n: int) -> Float64s:
    """Return how often each merchant occurs: the first most often."""
    weights = np.arange(1.0, n + 1.0) ** -0.7
    fractions: Float64s = weights / weights.sum()
    return fractions
