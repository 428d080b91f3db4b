"""Views: which features each view looks at, and how it projects them."""

from dataclasses import dataclass
from typing import Annotated

from .._arrays import Float32s, Int32s
from .fields import Array


@dataclass(frozen=True)
class Views:
    """T views, each of at most m features, projected to r dimensions."""

    features: Annotated[Int32s, Array("T m", index_of="scaled_columns")]
    """S_t, indices of scaled columns."""
    projection: Annotated[Float32s, Array("T m r", -100.0, 100.0)]
    """R_t. A view of fewer than m features is padded with zeros."""
