"""Types of arrays, named once; and how the arrays of a model are described."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
"""float32 or float64."""
Float64s = NDArray[np.float64]
Float32s = NDArray[np.float32]
Indices = NDArray[np.intp]
Integers = NDArray[np.integer]
"""Integers of any size."""
Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
UInt8s = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Objects = NDArray[np.object_]

LARGEST_FLOAT = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Array:
    """What an array of the model must look like. Its type is not repeated here: it is the type of the field."""

    shape: str
    """Names of `DIMENSIONS` (`_model/fields.py`), separated by blanks."""
    low: float = -LARGEST_FLOAT
    """The smallest value allowed. NaN is never allowed."""
    high: float = LARGEST_FLOAT
    """The largest value allowed."""
    index_of: str = ""
    """The values are indices along this dimension: from 0 to its length - 1."""
    is_sorted: bool = False
    """Values never decrease along the last dimension."""
    is_optional: bool = False
    """The file leaves the array out if it is empty."""
    since: int = 1
    """The first version of the model file that holds it ..."""
    before: float = 0.0
    """... and the value of all its elements in earlier versions."""


def normal_quantiles(levels: Any) -> Any:
    """Return the quantiles of the standard normal distribution at these levels."""
    from scipy.special import ndtri  # imported here: it takes long, and tables of numbers are scored without it

    return ndtri(levels)
