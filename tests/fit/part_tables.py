"""Tables in parts, for the tests of batches and of streams."""

from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from rgld import RGLD
from rgld._fit import sampling

PRESETS = {
    "paper": RGLD,
    "fast": RGLD.fast,
    "plus": partial(RGLD.plus, max_training_rows=None),
    "novelty": RGLD.novelty,
}
"""Plus learns from all rows here, in all passes; `test_training_rows.py` has it as it is."""


@pytest.fixture
def small_samples(monkeypatch):
    """Let tables of more than 2000 rows be long ones."""
    monkeypatch.setattr(sampling, "MAX_SAMPLE_ROWS", 2000)
    monkeypatch.setattr(sampling, "MIN_SAMPLE_ROWS", 2000)


def ordinary(n=6000, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1)
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(n) < 0.01] += 12.0
    return X


def table_of_all_kinds(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    rare = np.where(np.arange(n) == n - 5, "odd", "usual")
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "skewed": rng.lognormal(sigma=2, size=n),
            "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "one_gap": np.where(np.arange(n) == n // 2, np.nan, rng.normal(size=n)),
            "nearly_constant": np.where(np.arange(n) == 17, 5.0, 1.0),
            "constant": 3.0,
            "flag": rng.random(n) < 0.3,
            "city": rng.choice(["Bonn", "Paris", "Rome"], n, p=[0.7, 0.2, 0.1]),
            "shop": pd.Categorical(rng.choice([f"shop {i}" for i in range(300)], n)),
            "rare": rare,
            "typed": [f"{x:.2f} €" for x in rng.normal(size=n)],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "row": np.arange(n),
            "user_id": rng.permutation(10 * n)[:n],
            "name": [f"name {i}" for i in range(n)],
        }
    )
    frame.loc[3, "city"] = None
    return frame


def parts_of(table, sizes):
    bounds = np.cumsum([0, *sizes])
    part = (lambda a, b: table.iloc[a:b]) if isinstance(table, pd.DataFrame) else (lambda a, b: table[a:b])
    return [part(a, b) for a, b in pairwise(bounds)] + [part(bounds[-1], len(table))]
