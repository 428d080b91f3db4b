"""The figures of docs/drift.md: how often `check` gives a false alarm, and how soon it finds a change.

    python benchmarks/drift.py                         # prints every table, some minutes
    python benchmarks/drift.py --only delay            # one of them
    python benchmarks/drift.py --page docs/drift.md    # and writes them into the page

In: nothing but seeds. Out: markdown tables. Every draw has a seed of its own, so that a second run gives the same
figures.
"""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from rgld import RGLD, Check
from rgld._drift.sequence import Watch

N_TRAINING, N_NEW, N_MODELS, N_TABLES = 1000, 400, 200, 10
"""Every source has 200 models of 1,000 rows, each with 10 ordinary tables of 400 rows: 2,000 tables. The tables of a
model share its held-out rows: if these are unusual, many of them give an alarm. So many models count, not tables."""
ALPHA = 0.01
N_CHANGED = 100
"""Tables for each size of a change."""


def numbers(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Eight numbers that share a factor."""
    X = np.sqrt(0.5) * (rng.normal(size=(n, 8)) + rng.normal(size=(n, 1)))
    return pl.DataFrame(X, schema=[f"x{j}" for j in range(8)])


def mixed(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Trips: skewed and whole numbers with ties, categories with rare values, gaps."""
    distance = rng.gamma(2.0, 2.0, n).round(1)
    frame = pl.DataFrame(
        {
            "distance": distance,
            "fare": (3.0 + 2.5 * distance + rng.normal(0.0, 1.0, n)).round(1),
            "passengers": rng.integers(1, 5, n),
            "zone": [f"z{i}" for i in rng.zipf(1.7, n) % 400],
            "payment": rng.choice(["card", "cash", "other"], n, p=[0.7, 0.25, 0.05]),
            "tip": np.where(rng.random(n) < 0.3, np.nan, rng.exponential(size=n).round(2)),
        }
    )
    return frame.with_columns(pl.col("tip").fill_nan(None))


def coarse(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Few different rows: most scores tie."""
    return pl.DataFrame({f"x{j}": rng.integers(0, 3, n) for j in range(4)})


def related(rng: np.random.Generator, n: int) -> pl.DataFrame:
    """Columns that follow from each other, but for one row in 500: a sum, a product, an order, a value that determines
    another."""
    fare, tip = rng.gamma(3.0, 5.0, n).round(2), rng.gamma(1.0, 2.0, n).round(2)
    price, quantity, zone = rng.lognormal(2.0, 0.8, n).round(2), rng.integers(1, 60, n), rng.integers(0, 12, n)
    odd = [rng.random(n) < 0.002 for _ in range(3)]
    return pl.DataFrame(
        {
            "fare": fare,
            "tip": tip,
            "total": (fare + tip + np.where(odd[0], rng.normal(0.0, 9.0, n), 0.0)).round(2),
            "price": price,
            "quantity": quantity,
            "amount": (price * quantity * np.where(odd[1], 1.2, 1.0)).round(2),
            "zone": [f"zone {z}" for z in zone],
            "borough": [f"borough {z % 4}" for z in zone + odd[2]],
        }
    )


SOURCES = {"numbers": numbers, "mixed": mixed, "coarse": coarse, "related": related}


def fitted(source: str, seed: int) -> RGLD:
    rng = np.random.default_rng([1, seed])
    return RGLD.plus(calibration_fraction=0.3, random_state=seed, n_jobs=1).fit(SOURCES[source](rng, N_TRAINING))


def rate(alarms: list[bool], per_model: int = 1) -> str:
    """Return the percentage, and its standard error over models, each of which has so many tables."""
    shares = np.reshape(alarms, (-1, per_model)).mean(axis=1)
    return f"{100 * shares.mean():.2f} ± {100 * shares.std() / np.sqrt(len(shares)):.2f}"


def false_alarms(n_models: int = N_MODELS) -> list[list[str]]:
    """Ordinary tables: how many give an alarm, in percent. `alpha` is the most that is allowed."""
    lines = [
        [
            "rows",
            "tables",
            "any alarm (at most 1)",
            "sequence (0.33)",
            "batch (0.33)",
            "columns, relations (0.33)",
            "at alpha = 0.1 (10)",
        ]
    ]
    for source in SOURCES:
        found: list[tuple[bool, bool, bool, bool, bool]] = []
        for seed in range(n_models):
            detector = fitted(source, seed)
            for table in range(N_TABLES):
                check = detector.check(SOURCES[source](np.random.default_rng([2, seed, table]), N_NEW), alpha=ALPHA)
                looser = detector_check(check, 0.1)
                found.append((check.drifted, check.sequence_alarm, check.batch_alarm, _by_columns(check), looser))
        lines.append([source, f"{len(found):,}", *(rate(list(part), N_TABLES) for part in zip(*found, strict=True))])
    return lines


def _by_columns(check: Check) -> bool:
    return bool(check.drifted_columns or check.drifted_relations)


def detector_check(check: Check, alpha: float) -> bool:
    """Return the verdict of the same check at another alpha."""
    from dataclasses import replace

    return replace(check, alpha=alpha).drifted


def anytime(n_models: int = 400) -> list[list[str]]:
    """One long sequence of ordinary scores, looked at after every row: the fraction of sequences that ever reach 1 /
    alpha."""
    lines = [
        [
            "held-out rows",
            "rows",
            "ever 20 to 1 (at most 5)",
            "ever 100 to 1 (at most 1)",
            "ever 300 to 1 (at most 0.33)",
        ]
    ]
    for h, n in ((50, 2000), (500, 2000), (500, 20_000)):
        highest = []
        for seed in range(n_models):
            rng = np.random.default_rng([3, h, n, seed])
            highest.append(Watch.begin(rng.random(h)).followed(rng.random(n))[0].highest)
        lines.append(
            [f"{h:,}", f"{n:,}", *(rate([top >= np.log(limit) for top in highest]) for limit in (20, 100, 300))]
        )
    return lines


def shift_one(frame: pl.DataFrame, size: float) -> pl.DataFrame:
    return frame.with_columns(pl.col("x0") + size)


def shift_all(frame: pl.DataFrame, size: float) -> pl.DataFrame:
    return frame.with_columns(pl.all() + size)


def widen(frame: pl.DataFrame, size: float) -> pl.DataFrame:
    return frame.with_columns(pl.all() * (1.0 + size))


def unrelated(frame: pl.DataFrame, size: float) -> pl.DataFrame:
    """A part of the rows has each value from another row."""
    rng = np.random.default_rng(0)
    chosen = rng.permutation(len(frame))[: int(size * len(frame))]
    X = frame.to_numpy().copy()
    for column in X.T:
        column[chosen] = column[rng.permutation(chosen)]
    return pl.DataFrame(X, schema=frame.columns)


def wrong_sum(frame: pl.DataFrame, size: float) -> pl.DataFrame:
    """A part of the rows has the tip of another row in its total."""
    chosen = np.random.default_rng(0).permutation(len(frame))[: round(size * len(frame))]
    total = frame["total"].to_numpy().copy()
    total[chosen] += np.roll(frame["tip"].to_numpy()[chosen], 1) - frame["tip"].to_numpy()[chosen]
    return frame.with_columns(total=total.round(2))


CHANGES: dict[str, tuple[Callable[[pl.DataFrame, float], pl.DataFrame], tuple[float, ...]]] = {
    "one column moved by ... standard deviations": (shift_one, (0.25, 0.5, 1.0, 2.0)),
    "all columns moved by ... standard deviations": (shift_all, (0.25, 0.5, 1.0, 2.0)),
    "all columns wider by a factor of 1 + ...": (widen, (0.1, 0.25, 0.5, 1.0)),
    "a fraction of ... of the rows with values that do not belong together": (unrelated, (0.1, 0.25, 0.5, 1.0)),
}
WRONG_SUM = '"related": a fraction of ... of the rows with a wrong sum'


def delay() -> list[list[str]]:
    """Tables of 400 rows, all of them changed: of the source "numbers", the last ones of "related"."""
    lines = [
        ["change", "size", "found", "by sequence", "rows until then (median)", "by batch", "by columns, relations"]
    ]
    models = {source: [fitted(source, seed) for seed in range(10)] for source in ("numbers", "related")}
    for name, (change, sizes) in {**CHANGES, WRONG_SUM: (wrong_sum, (0.02, 0.05, 0.1, 0.25))}.items():
        source = "related" if name is WRONG_SUM else "numbers"
        for size in sizes:
            checks = []
            for seed in range(N_CHANGED):
                table = SOURCES[source](np.random.default_rng([4, seed]), N_NEW)
                checks.append(models[source][seed % 10].check(change(table, size), alpha=ALPHA))
            rows = [c.rows.alarm_row + 1 if c.sequence_alarm else N_NEW + 1 for c in checks]
            middle = f"{np.median(rows):.0f}" if np.median(rows) <= N_NEW else "over 400"
            parts = ([c.drifted for c in checks], [c.sequence_alarm for c in checks])
            rest = ([c.batch_alarm for c in checks], [_by_columns(c) for c in checks])
            found, by_sequence, by_batch, by_columns = (f"{100 * np.mean(part):.0f} %" for part in (*parts, *rest))
            lines.append([name, f"{size:g}", found, by_sequence, middle, by_batch, by_columns])
    return lines


TABLES = {"false_alarms": false_alarms, "anytime": anytime, "delay": delay}


def markdown(lines: list[list[str]]) -> str:
    head, *rest = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rest))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--page", type=Path, help="a page with a comment <!-- name --> where each table belongs")
    arguments = parser.parse_args()
    for name in arguments.only:
        table = markdown(TABLES[name]())
        print(f"\n## {name}\n\n{table}", flush=True)
        if arguments.page:
            text = arguments.page.read_text("utf-8")
            new, count = re.subn(rf"(<!-- {name} -->\n\n)(\|.*\n)*", lambda found, t=table: f"{found[1]}{t}\n", text)
            if count != 1:
                raise SystemExit(f"{arguments.page} has no place for {name}.")
            arguments.page.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
