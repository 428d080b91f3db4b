"""RGLD: randomized global-local density estimation, an unsupervised anomaly detector for tables."""

from ._detector import RGLD, BranchScores, load
from .exceptions import ModelFileError, ParameterError, RGLDError, TableError

__version__ = "0.1.0"

__all__ = ["RGLD", "BranchScores", "ModelFileError", "ParameterError", "RGLDError", "TableError", "__version__", "load"]
