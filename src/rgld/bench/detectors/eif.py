"""Extended isolation forest of the isotree package: oblique splits."""

from typing import Any

NAME = "EIF"
GROUP = "anchor"
NEEDS = {"isotree": "pip install 'rgld[bench]'"}
WARM = "study"


class _EIF:
    def __init__(self, settings: dict[str, Any]) -> None:
        from isotree import IsolationForest

        self._model = IsolationForest(**settings)

    def fit(self, X: Any) -> "_EIF":
        self._model.fit(X)
        return self

    def decision_function(self, X: Any) -> Any:
        return self._model.predict(X)


def make(seed: int, **settings: Any) -> Any:
    """Return the extended isolation forest with the settings that its package documents: two columns per split, 100
    trees, all rows."""
    return _EIF({"ndim": 2, "ntrees": 100, "nthreads": 1, "random_seed": seed, **settings})
