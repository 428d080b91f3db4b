"""Detectors by name: one small file each.

A file defines `NAME`, `GROUP` and `make(seed, **settings)`, which returns an object with `fit(X)` and
`decision_function(X)`, higher being more anomalous. `NEEDS` maps modules that must be importable to what
installs them; `WARM` says that its first fit imports or compiles much, which is then done before the clock
starts: once for the "study", or in every "run". To add a detector, add a file.
"""

import contextlib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import numpy as np

from ...exceptions import ParameterError
from ..specs import parse_spec

GROUPS = ("rgld", "statistical", "deep", "anchor", "reference")
"""The paper's own two; its other statistical and its deep detectors; stronger ones beyond it; variants for
checking."""


@cache
def registry() -> dict[str, ModuleType]:
    """Return the detector modules by name, by group and then alphabetically."""
    modules = (
        import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__) if not info.name.startswith("_")
    )
    return {m.NAME: m for m in sorted(modules, key=lambda m: (GROUPS.index(m.GROUP), m.NAME.lower()))}


def known_detectors(names: list[str]) -> list[str]:
    """Return the names, with groups and "all" spelled out; an unknown one is an error that lists what there is."""
    result: list[str] = []
    for name in names:
        if name == "all":
            result.extend(registry())
        elif name in GROUPS:
            result.extend(n for n, module in registry().items() if name == module.GROUP)
        elif parse_spec(name).name in registry():
            result.append(name)
        else:
            known = ", ".join(["all", *GROUPS, *registry()])
            raise ParameterError(f"Expected the name of a detector, got {name!r}; known are: {known}.")
    return list(dict.fromkeys(result))


def what_to_install(name: str) -> str | None:
    """Return one line that says what a detector lacks, or None if it can run."""
    needs: dict[str, str] = getattr(registry()[parse_spec(name).name], "NEEDS", {})
    for module, command in needs.items():
        if find_spec(module) is None:
            return f"{name} needs the package {module!r}, which is not installed: {command}"
    return None


def warmth(name: str) -> str | None:
    """Return when a detector wants a first fit before it is timed: once for the "study", in every "run", or
    not at all."""
    return getattr(registry()[parse_spec(name).name], "WARM", None)


def warm_up(name: str) -> None:
    """Fit a detector on a tiny table. What fails here fails again in the run, where it is recorded."""
    tiny = np.random.default_rng(0).random((60, 4))
    with contextlib.suppress(Exception):
        make_detector(name, 0).fit(tiny).decision_function(tiny)


def make_detector(name: str, seed: int) -> Any:
    """Return an unfitted detector. Its randomness comes from the seed unless the spec sets it."""
    spec = parse_spec(name)
    return registry()[spec.name].make(seed, **spec.settings)
