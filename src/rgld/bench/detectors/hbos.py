"""Histogram-based outlier score."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "HBOS"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.hbos import HBOS

    return HBOS(**{**settings})
