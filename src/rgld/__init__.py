"""RGLD: randomized global-local density estimation, an unsupervised anomaly detector for tables."""

from typing import TYPE_CHECKING, Any

from .exceptions import CalibrationError, ModelFileError, ParameterError, RGLDError, TableError, TableWarning

if TYPE_CHECKING:
    from ._drift.verdict import Check
    from ._estimator import RGLD, load
    from ._explain.explanation import Explanation
    from ._model.scores import BranchScores

__version__ = "0.1.0"

__all__ = [
    "RGLD",
    "BranchScores",
    "CalibrationError",
    "Check",
    "Explanation",
    "ModelFileError",
    "ParameterError",
    "RGLDError",
    "TableError",
    "TableWarning",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    """Load the detector, and scikit-learn with it, when it is first asked for: `import rgld` alone takes no time."""
    if name in __all__:
        from . import _detector, _estimator

        return getattr(_estimator if name in ("RGLD", "load") else _detector, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
