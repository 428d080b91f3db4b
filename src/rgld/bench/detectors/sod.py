"""Subspace outlier degree."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "SOD"
GROUP = "statistical"
WARM = "run"  # its parallel Numba kernels do not work after a fork


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.sod import SOD

    return SOD(**{**settings})
