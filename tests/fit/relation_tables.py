"""A table with a relation of every kind, and rows that break them."""

import numpy as np
import polars as pl


def related(n=1500, seed=0, broken=True):
    """Fares: total = fare + tip, amount = price * quantity, pickup <= dropoff, zone determines borough; where payment
    is cash, no tip and never refused. The first rows break these, two for each, if `broken`."""
    rng = np.random.default_rng(seed)
    fare = rng.gamma(3.0, 5.0, n).round(2)
    payment = rng.choice(["card", "cash"], n, p=[0.6, 0.4])
    tip = np.where(payment == "cash", 0.0, (0.2 * fare + rng.gamma(1.0, 1.0, n)).round(2))
    price, quantity = rng.lognormal(2.0, 0.8, n).round(2), rng.integers(1, 60, n)
    zone = rng.integers(0, 12, n)
    pickup = np.datetime64("2024-01-01", "us") + rng.integers(0, 10**8, n).astype("m8[s]")
    minutes = rng.gamma(3.0, 300.0, n).astype("m8[s]")
    columns = {
        "fare": fare,
        "tip": tip,
        "total": (fare + tip).round(2),
        "price": price,
        "quantity": quantity.astype(float),
        "amount": (price * quantity).round(4),
        "payment": payment,
        "state": np.where((payment == "card") & (rng.random(n) < 0.7), "refused", "paid"),
        "zone": np.array([f"zone {z}" for z in zone]),
        "borough": np.array([f"borough {z % 4}" for z in zone]),
        "pickup": pickup,
        "dropoff": pickup + minutes,
        "noise": rng.normal(size=n),
    }
    if broken:
        columns["total"][:2] += 40.0
        columns["amount"][2:4] *= 3.0
        columns["pickup"][4:6], columns["dropoff"][4:6] = columns["dropoff"][4:6].copy(), columns["pickup"][4:6].copy()
        columns["borough"][6:8] = [f"borough {(z + 1) % 4}" for z in zone[6:8]]
        cash = np.flatnonzero(payment == "cash")
        cash = cash[cash >= 8][:4]
        columns["tip"][cash[:2]] += 5.0
        columns["total"][cash[:2]] += 5.0
        columns["state"][cash[2:]] = "refused"
    return pl.DataFrame(columns)


def broken_rows(n=1500, seed=0):
    """The indices of the rows that `related` breaks."""
    cash = np.flatnonzero(related(n, seed, broken=False)["payment"].to_numpy() == "cash")
    return [*range(8), *cash[cash >= 8][:4].tolist()]
