"""Metrics: what Prometheus is told at `/metrics`."""

from collections.abc import Iterable
from functools import cache

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from .models import Served

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """Counters of one application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "rgld_requests", "Requests by endpoint and status.", ["endpoint", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "rgld_request_seconds",
            "Time from the request to its answer.",
            ["endpoint"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._rows = Counter("rgld_rows", "Rows scored.", ["model"], registry=self._registry)
        self._above = Counter(
            "rgld_rows_above_threshold", "Rows scored above the threshold.", ["model"], registry=self._registry
        )
        self._wealth = Gauge(
            "rgld_drift_log10_wealth",
            "Logarithm of the bets against the rows; they reach log10(1 / a) with probability a at most without drift.",
            ["model"],
            registry=self._registry,
        )
        self._highest = Gauge(
            "rgld_drift_log10_highest",
            "The highest that it was since the model was loaded.",
            ["model"],
            registry=self._registry,
        )

        # Kept here: to find a counter by its labels takes longer than to count.
        self._counter_of = cache(lambda endpoint, status: self._requests.labels(endpoint, str(status)))
        self._times_of = cache(self._seconds.labels)

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._counter_of(endpoint, status).inc()
        self._times_of(endpoint).observe(seconds)

    def scored(self, model: str, n_rows: int, n_above: int) -> None:
        """Count rows."""
        self._rows.labels(model).inc(n_rows)
        self._above.labels(model).inc(n_above)

    def text(self, models: Iterable[Served]) -> bytes:
        """Return all metrics."""
        for served in models:
            served.settle()
            if served.watch is not None:
                self._wealth.labels(served.name).set(served.watch.log_wealth / np.log(10.0))
                self._highest.labels(served.name).set(served.watch.highest / np.log(10.0))
        return generate_latest(self._registry)
