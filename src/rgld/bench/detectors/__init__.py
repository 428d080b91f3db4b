"""Detectors by name: one small file each.

A file defines `NAME`, `GROUP` and `make(seed, **settings)`, which returns an object with `fit(X)` and
`decision_function(X)`; a higher value is more anomalous. `NEEDS` maps modules that must be importable to the command
that installs them. `WARM` says that the first fit imports or compiles much; this is then done before the clock starts,
once for the "study" or in every "run". To add a detector, add a file.
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
"""The paper's two RGLDs and plus; the paper's other statistical detectors; its deep detectors; stronger detectors that
are not in the paper; variants to check against."""


@cache
def registry() -> dict[str, ModuleType]:
    """Return the detector modules by name, in the order of the groups, then alphabetically."""
    modules = (
        import_module(f"{__name__}.{info.name}") for info in iter_modules(__path__) if not info.name.startswith("_")
    )
    return {m.NAME: m for m in sorted(modules, key=lambda m: (GROUPS.index(m.GROUP), m.NAME.lower()))}


def known_detectors(names: list[str]) -> list[str]:
    """Return the names of detectors, with groups and "all" replaced by their names. An unknown name is an error that
    lists all."""
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
            raise ParameterError(f"Expected the name of a detector, got {name!r}: choose from {known}.")
    return list(dict.fromkeys(result))


def what_to_install(name: str) -> str | None:
    """Return one line that says which package a detector needs, or None if it can run."""
    needs: dict[str, str] = getattr(registry()[parse_spec(name).name], "NEEDS", {})
    for module, command in needs.items():
        if find_spec(module) is None:
            return f"{name} needs the package {module!r}, which is not installed: {command}"
    return None


def warmth(name: str) -> str | None:
    """Return when a detector is fitted once before it is timed: once for the "study", in every "run", or never
    (None)."""
    return getattr(registry()[parse_spec(name).name], "WARM", None)


def warm_up(name: str) -> None:
    """Fit a detector on a tiny table. Errors are ignored here: they come again in the run, which records them."""
    tiny = np.random.default_rng(0).random((60, 4))
    with contextlib.suppress(Exception):
        make_detector(name, 0).fit(tiny).decision_function(tiny)


def make_detector(name: str, seed: int) -> Any:
    """Return an unfitted detector. It is seeded with `seed`, unless its spec sets another random state."""
    spec = parse_spec(name)
    return registry()[spec.name].make(seed, **spec.settings)
