"""The figures of docs/certainty.md: how p-values and selections do on tables where the truth is known.

    python benchmarks/certainty.py                            # prints every table, a few minutes
    python benchmarks/certainty.py --only power contaminated  # some of them
    python benchmarks/certainty.py --page docs/certainty.md   # and writes them into the page

In: nothing but seeds and a dataset of scikit-learn. Out: markdown tables. Every draw has a seed of its own, so that a
second run gives the same figures.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from rgld import RGLD
from rgld._fit.sampling import split_rows
from rgld._params import Parameters

D = 10
PRESETS = {"RGLD.plus()": RGLD.plus, "RGLD()": RGLD}
RATES = (0.05, 0.1, 0.2)
Rows = NDArray[np.float64]


class Source(NamedTuple):
    """Where rows come from."""

    ordinary: Callable[[np.random.Generator, int], Rows]
    anomalous: Callable[[np.random.Generator, int], Rows]


def normal(rng: np.random.Generator, n: int) -> Rows:
    """Ten normal columns of variance 1 that share a factor: correlation 0.5."""
    return np.sqrt(0.5) * (rng.normal(size=(n, D)) + rng.normal(size=(n, 1)))


def shifted(rng: np.random.Generator, n: int) -> Rows:
    """Normal rows with three columns moved by four standard deviations, up or down."""
    X = normal(rng, n)
    for row in X:
        row[rng.choice(D, 3, replace=False)] += 4.0 * rng.choice([-1.0, 1.0], 3)
    return X


def clusters(rng: np.random.Generator, n: int) -> Rows:
    """Rows around three centers, of different width."""
    which = rng.integers(0, 3, n)
    centers = np.array([[0.0], [6.0], [12.0]]) * np.where(np.arange(D) % 2, 1.0, -1.0)
    return centers[which] + rng.normal(size=(n, D)) * np.array([0.5, 1.0, 1.5])[which, None]


def scattered(rng: np.random.Generator, n: int) -> Rows:
    """Rows anywhere in the box of the clusters."""
    low, high = np.where(np.arange(D) % 2, 0.0, -12.0), np.where(np.arange(D) % 2, 12.0, 0.0)
    return rng.uniform(low - 2.0, high + 2.0, size=(n, D))


def skewed(rng: np.random.Generator, n: int) -> Rows:
    """Ten log-normal columns."""
    return np.exp(normal(rng, n))


def skewed_shifted(rng: np.random.Generator, n: int) -> Rows:
    """Log-normal rows, three columns moved by four standard deviations of the logarithm."""
    return np.exp(shifted(rng, n))


SOURCES = {
    "normal": Source(normal, shifted),
    "clusters": Source(clusters, scattered),
    "skewed": Source(skewed, skewed_shifted),
}


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def seeds(n: int) -> Iterator[tuple[int, np.random.Generator]]:
    """Yield the seeds of n draws and their generators."""
    for seed in range(n):
        yield seed, np.random.default_rng(seed)


def mean(values: list[float], digits: int = 1) -> str:
    """Return a mean in percent with its standard error."""
    error = 100 * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{100 * np.mean(values):.{digits}f} ± {error:.{digits}f}"


def uniform() -> str:
    """Share of fresh ordinary rows with p <= t; 199 calibration rows, 200 draws of everything, 200 fresh rows each."""
    levels = (0.01, 0.05, 0.1, 0.2)
    rows = []
    for name, source in SOURCES.items():
        for preset, make in PRESETS.items():
            shares: list[list[float]] = []
            for seed, rng in seeds(200):
                detector = make(calibration_fraction=0.2, random_state=seed).fit(source.ordinary(rng, 995))
                p = detector.p_values(source.ordinary(rng, 200))
                shares.append([float(np.mean(p <= t)) for t in levels])
            rows.append([name, preset, *(mean(list(column), 2) for column in zip(*shares, strict=True))])
    return markdown(["rows", "detector", *(f"p ≤ {t:g}" for t in levels)], rows)


def outcome(selected: NDArray[np.bool_], n_ordinary: int) -> tuple[float, float]:
    """Return the share of false ones among the selected, and the share of anomalies that are selected."""
    return selected[:n_ordinary].sum() / max(1, selected.sum()), float(selected[n_ordinary:].mean())


def auroc(detector: RGLD, new: Rows, n_ordinary: int) -> float:
    """Return how well the scores alone tell the anomalies, which come last."""
    return float(roc_auc_score(np.arange(len(new)) >= n_ordinary, detector.anomaly_score(new)))


def by_rate(draws: list[list[tuple[float, float]]]) -> list[str]:
    """Return "false discoveries / power" for each rate."""
    cells = []
    for of_rate in zip(*draws, strict=True):
        false, found = (list(column) for column in zip(*of_rate, strict=True))
        cells += [mean(false), mean(found)]
    return cells


RATE_HEAD = [f"{what} at {rate:g}" for rate in RATES for what in ("false", "found")]


def power() -> str:
    """1,000 new rows, 50 of them anomalies; fitted on 4,995 clean rows of which 999 calibrate; 100 draws. For the real
    table: 257 benign biopsies of which 103 calibrate, 100 other benign and 20 malignant ones as new rows."""
    rows = []
    for name, source in SOURCES.items():
        for preset, make in PRESETS.items():
            draws, aurocs = [], []
            for seed, rng in seeds(100):
                detector = make(calibration_fraction=0.2, random_state=seed).fit(source.ordinary(rng, 4995))
                new = np.vstack([source.ordinary(rng, 950), source.anomalous(rng, 50)])
                draws.append([outcome(detector.select(new, fdr=rate), 950) for rate in RATES])
                aurocs.append(auroc(detector, new, 950))
            rows.append([name, preset, mean(aurocs), *by_rate(draws)])
    X, y = load_breast_cancer(return_X_y=True)
    benign, malignant = X[y == 1], X[y == 0]
    for preset, make in PRESETS.items():
        draws, aurocs = [], []
        for seed, rng in seeds(100):
            shuffled = rng.permutation(benign)
            detector = make(calibration_fraction=0.4, random_state=seed).fit(shuffled[:257])
            new = np.vstack([shuffled[257:], rng.permutation(malignant)[:20]])
            draws.append([outcome(detector.select(new, fdr=rate), 100) for rate in RATES])
            aurocs.append(auroc(detector, new, 100))
        rows.append(["breast cancer", preset, mean(aurocs), *by_rate(draws)])
    return markdown(["rows", "detector", "AUROC", *RATE_HEAD], rows)


def contaminated() -> str:
    """As `power`, normal rows and RGLD.plus(), but with anomalies among the rows fitted on."""
    source = SOURCES["normal"]
    rows = []
    for share in (0.0, 0.002, 0.005, 0.01, 0.02, 0.05):
        draws, low = [], []
        for seed, rng in seeds(100):
            n_bad = round(4995 * share)
            X = np.vstack([source.ordinary(rng, 4995 - n_bad), source.anomalous(rng, n_bad)])
            detector = RGLD.plus(calibration_fraction=0.2, random_state=seed).fit(X)
            new = np.vstack([source.ordinary(rng, 950), source.anomalous(rng, 50)])
            low.append(float(np.mean(detector.p_values(new)[:950] <= 0.05)))
            draws.append([outcome(detector.select(new, fdr=rate), 950) for rate in RATES])
        rows.append([f"{100 * share:g} %", mean(low), *by_rate(draws)])
    return markdown(["anomalies in the table", "ordinary rows with p ≤ 0.05", *RATE_HEAD], rows)


def calibration_size() -> str:
    """As `power`, normal rows and RGLD.plus(), 3,996 rows to learn from, by the number of calibration rows."""
    source = SOURCES["normal"]
    rows = []
    for h in (99, 199, 499, 999, 1999, 4999):
        draws = []
        for seed, rng in seeds(100):
            X = source.ordinary(rng, 3996 + h)
            detector = RGLD.plus(calibration_fraction=h / len(X), random_state=seed).fit(X)
            assert len(detector.model_.calibration) == h
            new = np.vstack([source.ordinary(rng, 950), source.anomalous(rng, 50)])
            draws.append([outcome(detector.select(new, fdr=rate), 950) for rate in RATES])
        needed = " / ".join(f"{int(np.ceil(round(1000 / (rate * (h + 1)), 9))):,}" for rate in RATES)
        rows.append([f"{h:,}", f"{1 / (h + 1):g}", needed, *by_rate(draws)])
    return markdown(["h", "smallest p", "rows needed at " + " / ".join(f"{r:g}" for r in RATES), *RATE_HEAD], rows)


def conditional() -> str:
    """Exact, no draws: the false-positive rate of "p <= t" given the calibration rows is Beta(k, h + 1 - k) with
    k = floor(t (h + 1)); and the largest level at which it stays below t with probability 0.95."""
    rows = []
    for t in (0.01, 0.05):
        for h in (99, 999, 9_999, 49_999):
            k = int(np.floor(t * (h + 1) + 1e-9))
            low, high = beta.ppf([0.05, 0.95], k, h + 1 - k)
            safe = max((j for j in range(1, k + 1) if beta.ppf(0.95, j, h + 1 - j) <= t), default=0)
            level = f"p ≤ {safe / (h + 1):.4g}" if safe else "none"
            rows.append([f"{t:g}", f"{h:,}", f"{100 * low:.2f} % to {100 * high:.2f} %", level])
    return markdown(["t", "h", "rate in nine of ten calibrations", "level that is safe in 95 of 100"], rows)


def training_rows() -> str:
    """Share of rows with p <= 0.05: rows learned from, held out, fresh. Normal rows, half held out, 200 draws."""
    rows = []
    for n in (40, 200, 2000):
        for preset, make in PRESETS.items():
            shares = []
            for seed, rng in seeds(200):
                X = normal(rng, n)
                detector = make(calibration_fraction=0.5, random_state=seed).fit(X)
                held_out = split_rows(len(X), X.shape[1], Parameters.of(detector), seed)[1]
                groups = (np.delete(X, held_out, axis=0), X[held_out], normal(rng, n))
                shares.append([float(np.mean(detector.p_values(group) <= 0.05)) for group in groups])
            rows.append([f"{n:,}", preset, *(mean(list(column)) for column in zip(*shares, strict=True))])
    return markdown(["rows in the table", "detector", "learned from", "held out", "fresh"], rows)


def automatic() -> str:
    """Share of training rows with a score above 0.95; 2,000 ordinary rows, 20 draws, and a real table once."""
    rows = []
    makers = {"RGLD()": RGLD, "RGLD.fast()": RGLD.fast, "RGLD.plus()": RGLD.plus}
    for name, source in SOURCES.items():
        cells = []
        for make in makers.values():
            shares = [
                np.mean(make(random_state=s).fit_predict(source.ordinary(rng, 2000)) == -1) for s, rng in seeds(20)
            ]
            cells.append(f"{100 * np.mean(shares):.1f} %")
        rows.append([name, *cells])
    X = load_breast_cancer().data
    rows.append(
        [
            "breast cancer",
            *(f"{100 * np.mean(make(random_state=0).fit_predict(X) == -1):.1f} %" for make in makers.values()),
        ]
    )
    return markdown(["rows", *makers], rows)


TABLES = {
    f.__name__: f for f in (uniform, power, contaminated, calibration_size, conditional, training_rows, automatic)
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the figures of docs/certainty.md.")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--page", type=Path, help="the page to write them into, each after its <!-- name --> mark")
    options = parser.parse_args()
    for name in options.only:
        table = TABLES[name]()
        print(f"{name}: {' '.join((TABLES[name].__doc__ or '').split())}\n\n{table}\n", flush=True)
        if options.page:
            page = options.page.read_text()
            pattern = rf"(<!-- {name} -->\n)(\n(\|.*\n)+)?"
            if not re.search(pattern, page):
                raise SystemExit(f"{options.page} has no mark <!-- {name} -->.")
            options.page.write_text(re.sub(pattern, lambda mark, table=table: f"{mark[1]}\n{table}\n", page, count=1))


if __name__ == "__main__":
    main()
