"""Tables for the tests of the report: one as people have it, one as an attacker would write it."""

import numpy as np
import polars as pl

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "<img src=x onerror='window.hacked = 3'>",
    "<!--<script>",
    "\"'><svg onload=window.hacked=4>",
    "=cmd|' /C calc'!A0",
    "‮gnp.exe",
    "line\nbreak\ttab\x00nul\u2028separator",
    "x" * 10_000,
    "{{7*7}}${7*7}@@DATA@@@@SCRIPT@@",
    "אבג دهـ",
    "&lt;b&gt; &amp;",
)


def payments(n=3000, seed=0):
    """Return payments of a shop: an id, a date, numbers, categories, gaps, and a few rows that stand out."""
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3.2, 0.7, n).round(2)
    merchant = rng.choice([f"shop {i:02d}" for i in range(40)], n, p=_zipf(40))
    country = rng.choice(["DE", "FR", "NL", "AT", "PL"], n, p=[0.5, 0.2, 0.15, 0.1, 0.05])
    hour = rng.normal(14, 3, n).clip(7, 22)
    day = rng.integers(0, 120, n)
    items = rng.poisson(3, n) + 1
    weight = items * 0.4 + rng.normal(0, 0.1, n)
    age = rng.normal(44, 12, n).round().clip(18, 90)
    amount[7], hour[7], country[7] = 9940.0, 3.2, "KY"
    weight[11], items[11] = 14.0, 1
    age[19], amount[19] = 8.0, 2210.0
    time = np.datetime64("2024-03-01") + (day * 86400 + (hour * 3600)).astype("timedelta64[s]")
    gaps = rng.random(n) < 0.03
    return pl.DataFrame(
        {
            "payment_id": [f"P{100_000 + 7 * i}" for i in range(n)],
            "time": time.astype("datetime64[us]"),
            "amount": amount,
            "merchant": merchant,
            "country": country,
            "items": items,
            "weight_kg": pl.Series([None if gap else float(w) for gap, w in zip(gaps, weight.round(2), strict=True)]),
            "customer_age": age,
            "returning": rng.random(n) < 0.8,
            "currency": ["EUR"] * n,
        }
    )


def _zipf(n):
    weights = 1.0 / np.arange(1, n + 1)
    return weights / weights.sum()


def hostile(n=400, seed=0):
    """Return a table whose names and cells attack whoever shows them."""
    rng = np.random.default_rng(seed)
    columns = {}
    for j, name in enumerate(HOSTILE):
        if j % 2:
            columns[name] = rng.normal(size=n)
        else:
            texts = ["ordinary", "usual", "common"] * n
            columns[name] = [HOSTILE[(i + j) % len(HOSTILE)] if i < len(HOSTILE) else texts[i] for i in range(n)]
    columns["amount"] = rng.normal(size=n)
    columns["amount"][: len(HOSTILE)] = 50.0
    return pl.DataFrame(columns)


def hostile_ids(n=400):
    return [HOSTILE[i % len(HOSTILE)] for i in range(n)]
