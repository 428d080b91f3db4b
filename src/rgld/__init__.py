"""RGLD: randomized global-local density estimation, an unsupervised anomaly detector for tables."""

from typing import TYPE_CHECKING, Any

from .exceptions import CalibrationError, ModelFileError, ParameterError, RGLDError, TableError

if TYPE_CHECKING:
    from ._detector import RGLD, BranchScores, load
    from ._explain import Explanation

__version__ = "0.1.0"

__all__ = [
    "RGLD",
    "BranchScores",
    "CalibrationError",
    "Explanation",
    "ModelFileError",
    "ParameterError",
    "RGLDError",
    "TableError",
    "__version__",
    "load",
]


def __getattr__(name: str) -> Any:
    """Load the detector, and scikit-learn with it, when it is first asked for: `import rgld` alone takes no time."""
    if name in __all__:
        from . import _detector, _explain

        return getattr(_explain if name == "Explanation" else _detector, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
