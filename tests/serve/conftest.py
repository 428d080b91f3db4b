"""One model and one server for all tests of a module."""

import numpy as np
import polars as pl
import pytest

from rgld import RGLD

for name in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(name, reason="the extra 'serve' is not installed")

from .servers import running  # noqa: E402


def trips(n, seed):
    rng = np.random.default_rng(seed)
    distance = rng.gamma(2.0, 2.0, n).round(2)
    return pl.DataFrame(
        {
            "trip": np.arange(10_000, 10_000 + n),
            "distance": distance,
            "fare": (3.0 + 2.5 * distance + rng.normal(0.0, 1.0, n)).round(2),
            "payment": rng.choice(["card", "cash", "other"], n, p=[0.7, 0.25, 0.05]),
            "pickup": [f"2024-01-{1 + i % 28:02d} {rng.integers(0, 24):02d}:00:00" for i in range(n)],
            "tip": np.where(rng.random(n) < 0.3, np.nan, rng.random(n).round(3)),
        }
    ).with_columns(pl.col("tip").fill_nan(None))


@pytest.fixture(scope="session")
def detector():
    return RGLD.plus(calibration_fraction=0.2, random_state=0).fit(trips(1500, 0))


@pytest.fixture(scope="session")
def model(tmp_path_factory, detector):
    path = tmp_path_factory.mktemp("models") / "trips.rgld"
    detector.save(path)
    return path


@pytest.fixture(scope="module")
def server(model):
    with running("--model", model) as server:
        yield server
