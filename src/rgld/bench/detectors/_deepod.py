"""What the detectors from DeepOD have in common.

DeepOD 0.4.1 asks for an old PyTorch, and importing the package also imports time-series models, which need more
packages. Therefore it is installed without its dependencies, and only the tabular module that is needed is imported.
"""

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

NEEDS = {
    "torch": "pip install 'rgld[deep]' (or a CPU build of torch)",
    "deepod": "pip install --no-deps deepod",
}


class DeepOD:
    """One of DeepOD's tabular models, on the CPU, without output."""

    def __init__(self, module: str, name: str, seed: int, settings: dict[str, Any]) -> None:
        model = getattr(import_tabular(module), name)
        self._model = model(**{"device": "cpu", "verbose": 0, "random_state": seed, **settings})

    def fit(self, X: Any) -> "DeepOD":
        self._model.fit(X)
        return self

    def decision_function(self, X: Any) -> Any:
        return self._model.decision_function(X)


def import_tabular(module: str) -> ModuleType:
    """Return the module deepod.models.tabular.MODULE, imported without the imports of its packages."""
    for package in ("deepod", "deepod.models", "deepod.models.tabular"):
        if package not in sys.modules:
            bare = ModuleType(package)
            bare.__spec__ = ModuleSpec(package, None)  # `find_spec` asks for it
            if package == "deepod":
                spec = importlib.util.find_spec(package)
                assert spec is not None and spec.submodule_search_locations, "NEEDS was checked before"
                bare.__path__ = list(spec.submodule_search_locations)
            else:
                parent, _, name = package.rpartition(".")
                bare.__path__ = [f"{sys.modules[parent].__path__[0]}/{name}"]
            sys.modules[package] = bare
    return importlib.import_module(f"deepod.models.tabular.{module}")
