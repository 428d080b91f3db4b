"""The detectors behind the frozen files of this folder: how each is fitted, and the rows each scores.

`python tests/files/house/cases.py` writes the files anew. They are those of version 2 of the format, written before the
package was divided into rooms, so write them again only for a new version of the format, and keep the old ones.

Long tables have no model file, which would be large: `long.npz` holds their results, by the code of the same commit.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from rgld import RGLD

FOLDER = Path(__file__).parent


def numbers(n, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.lognormal(size=d)
    X[:, 2] = np.round(X[:, 2])
    X[::40] += 9.0
    return X


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(3.0, 0.5, n).round(2),
            "city": rng.choice(["Bonn", "Paris", "Rome", None], n, p=[0.5, 0.3, 0.1, 0.1]),
            "shop": rng.choice([f"shop {i}" for i in range(40)], n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n).round()),
            "paid": rng.random(n) < 0.8,
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90 * 24, n), unit="h"),
            "took": pd.to_timedelta(rng.gamma(2.0, 300.0, n).round(), unit="s"),
            "price": [f"{x:,.2f} €" for x in rng.lognormal(6.0, 1.0, n)],
            "id": np.arange(n) + 1000,
        }
    )
    frame.loc[n // 2, "amount"] = 9940.0
    return frame


def stream():
    detector = RGLD.fast(n_global_views=6, n_local_views=4, random_state=3)
    for seed in range(4):
        detector.partial_fit(numbers(120, seed=seed), half_life=250.0)
    return detector


FIRST_EDITION = {
    "n_global_views": 0,
    "n_local_views": 64,
    "n_references": 100,
    "feature_fraction": (1.0, 0.3),
    "projection": "orthogonal",
    "preprocessing": ("standard", "arcsinh", "arcsinh-standard", "quantile"),
    "aggregation": "standard",
}
"""`RGLD.plus()` as it was then."""

DETECTORS = {
    "paper": lambda: RGLD(random_state=0).fit(numbers(150)),
    "fast": lambda: RGLD.fast(random_state=1, contamination=0.05).fit(numbers(150).astype(np.float32)),
    "plus": lambda: RGLD(**FIRST_EDITION, random_state=2, calibration_fraction=0.25).fit(numbers(400)),
    "mixed": lambda: RGLD(n_global_views=8, n_local_views=6, n_references=60, random_state=4).fit(mixed(300)),
    "stream": stream,
}


def long_parts():
    """Return a table that is longer than a sample, in parts of different lengths."""
    return np.split(numbers(40_000, 3, seed=6), [1, 700, 17_000, 38_000])


LONG = {
    "ranked": lambda: RGLD(
        n_global_views=4, n_local_views=3, calibration_fraction=0.1, contamination=0.1, random_state=7
    ).fit_batches(long_parts),
    "standardized": lambda: RGLD(
        **{**FIRST_EDITION, "n_local_views": 8}, calibration_fraction=0.2, contamination=0.1, random_state=8
    ).fit_batches(long_parts),
    "in memory": lambda: RGLD(
        n_global_views=4, n_local_views=3, calibration_fraction=0.1, contamination=0.1, random_state=7
    ).fit(np.concatenate(long_parts())),
}
"""Tables of 40,000 rows: only a sample of them is in memory during a pass, and scores are counted at knots."""


def new_rows(name):
    """Return rows to score: ordinary ones, far ones and, of a mixed table, values that were never seen."""
    if name == "mixed":
        new = mixed(200, seed=9)
        new["city"] = new["city"].where(np.arange(len(new)) % 50 > 0, "Atlantis")
        return new
    if name in LONG:
        return np.concatenate((numbers(300, 3, seed=9), 1e4 * numbers(5, 3, seed=10)))
    return np.concatenate((numbers(200, seed=9), 1e4 * numbers(5, seed=10)))


PARTS = ("global_score", "local_score", "relation_score")
"""Branch scores that there were then."""


def results(detector, rows):
    """Return what a detector says of rows, as arrays by name."""
    branches = detector.branch_scores(rows)
    found = {"score": detector.anomaly_score(rows), "decision": detector.decision_function(rows)}
    found |= {part: scores for part, scores in branches._asdict().items() if scores is not None and part in PARTS}
    if len(detector.model_.calibration):
        found["p_value"] = detector.p_values(rows)
    explanation = detector.explain(rows)
    found["contributions"] = explanation.contributions
    found["reasons"] = np.array(["; ".join(explanation.reasons(row)) for row in range(0, len(rows), 7)])
    return found


def main():
    arrays = {}
    for name, fit in DETECTORS.items():
        detector = fit()
        detector.save(FOLDER / f"{name}.rgld")
        arrays |= {f"{name}.{key}": value for key, value in results(detector, new_rows(name)).items()}
    np.savez_compressed(FOLDER / "results.npz", **arrays)
    np.savez_compressed(FOLDER / "long.npz", **long_results())


def long_results():
    """Return what the detectors of long tables say, as arrays by name."""
    return {
        f"{name}.{key}": value for name, fit in LONG.items() for key, value in results(fit(), new_rows(name)).items()
    }


if __name__ == "__main__":
    main()
