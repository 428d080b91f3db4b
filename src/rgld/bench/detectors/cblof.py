"""Cluster-based local outlier factor."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "CBLOF"
GROUP = "statistical"
WARM = "study"


class _CBLOF:
    """PyOD's CBLOF. On some tables it cannot divide its 8 clusters into small and large ones; it then gets 10."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    def fit(self, X: Any) -> "_CBLOF":
        from pyod.models.cblof import CBLOF

        try:
            self._model = CBLOF(**self._settings).fit(X)
        except ValueError:
            if "n_clusters" in self._settings:
                raise
            self._model = CBLOF(n_clusters=10, **self._settings).fit(X)
        return self

    def decision_function(self, X: Any) -> Any:
        return self._model.decision_function(X)


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    return _CBLOF({"random_state": seed, **settings})
