"""The hot path behind one switch.

`RGLD_KERNELS=numpy` (the only implementation so far) selects the readable NumPy twin. Every kernel takes
columns (d, b): a block of b scaled rows, feature by feature, and gives a result per row that depends on that
row alone, to the bit.
"""

import os

from . import numpy_kernels

IMPLEMENTATIONS = {"numpy": numpy_kernels}


def _selected() -> str:
    name = os.environ.get("RGLD_KERNELS", "numpy")
    if name not in IMPLEMENTATIONS:
        raise ImportError(f"RGLD_KERNELS must be one of {sorted(IMPLEMENTATIONS)}, got {name!r} instead.")
    return name


name = _selected()
project = IMPLEMENTATIONS[name].project
random_features = IMPLEMENTATIONS[name].random_features
support = IMPLEMENTATIONS[name].support
neighbor_distance = IMPLEMENTATIONS[name].neighbor_distance
