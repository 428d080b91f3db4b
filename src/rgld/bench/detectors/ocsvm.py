"""One-class support vector machine."""

from typing import Any

from ._pyod import NEEDS as NEEDS

NAME = "OCSVM"
GROUP = "statistical"
WARM = "study"


def make(seed: int, **settings: Any) -> Any:
    """Return PyOD's detector with its defaults."""
    from pyod.models.ocsvm import OCSVM

    return OCSVM(**{**settings})
