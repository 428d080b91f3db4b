"""Descriptions of the model's arrays: each is described once, beside the field that holds it.

::

    phases: Annotated[Float32s, Array("T D", low=0.0, high=6.2832)]

gives the type, the shape and the range of the values. Everything that a model file does with the array follows from
this: what a file must hold, what is checked, what is saved and how the model is put together again
(`_modelfile/layout.py`). **To add an array to the model, add such a field.**

A range is wider than the values of any fit, and so narrow that no float32 sum or square of the values overflows: scores
are never NaN, whatever a file holds.
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from .._arrays import Array

__all__ = ["DIMENSIONS", "OPEN_DIMENSIONS", "Array", "ArrayField", "array_fields"]

DIMENSIONS = {
    "T": "views of the branch",
    "m": "features of the widest view",
    "r": "dimensions that a view projects to",
    "D": "random features of a global view",
    "M": "bandwidths of a global view",
    "C": "references of a local view",
    "q": "dimensions that a leverage view projects to",
    "F": "cosines of a leverage view",
    "P": "features of a leverage view: q + F",
    "scalings": "scalings of the columns",
    "columns": "encoded columns of the table",
    "scaled_columns": "the encoded columns, once for each scaling",
    "quantiles": "quantiles of a column; 0 without a quantile scaling",
    "kept_rows": "training rows kept for explanations",
    "kept_views": "local views whose references are among the kept rows",
    "kept_references": "references of such a view; 0 without such views",
    "held_out": "rows held out of the fit for p-values",
    "distributions": "one for each view whose scores are ranked, and one of the branch score",
    "knots": "knots of all distributions of a branch",
    "standardized": "views whose scores are standardized: T, or 0 if they are ranked",
    "profiled_columns": "columns of the table; 0 without profiles",
    "profile_knots": "knots of the profiles of all columns",
    "table_columns": "columns of the table",
    "stream_rows": "sampled rows of a stream",
    "strings": "different strings of all columns of these rows",
    "bytes": "bytes of these strings",
    "numbers": "relations of numbers",
    "curves": "relations of curves",
    "orders": "relations of order",
    "pairs": "pairs of values that never meet",
    "determined": "columns whose values follow from those of another",
    "expectations": "values of which these relations say what goes with them",
    "levels": "different numbers of the columns that are also read as values",
    "spans": "pairs of dates",
    "broken": "training rows that break a relation",
    "all_relations": "relations of all kinds; 0 without held-out rows",
}
"""The names of dimensions; single letters are the paper's. A dimension may also be a number."""

RELATION_DIMENSIONS = (
    *("numbers", "curves", "orders", "pairs", "determined", "expectations", "levels", "spans", "broken"),
    "all_relations",
)
OPEN_DIMENSIONS = (
    "knots",
    "profiled_columns",
    "profile_knots",
    "stream_rows",
    "strings",
    "bytes",
    *RELATION_DIMENSIONS,
)
"""The lengths of these dimensions are known from the arrays only. All other lengths follow from a file's header."""


@dataclass(frozen=True)
class ArrayField:
    """A field of a class that holds an array."""

    name: str
    dtype: np.dtype[Any] | None
    """None means float32 or float64."""
    array: Array

    @property
    def dimensions(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return tuple(self.array.shape.split())


@cache
def array_fields(cls: type) -> tuple[ArrayField, ...]:
    """Return the described arrays of a class, in the order of its fields."""
    found = []
    for name, hint in get_type_hints(cls, include_extras=True).items():
        if get_origin(hint) is Annotated:
            array_type, *notes = get_args(hint)
            found += [ArrayField(name, _dtype(array_type), note) for note in notes if isinstance(note, Array)]
    for field in found:
        unknown = [name for name in field.dimensions if name not in DIMENSIONS and not name.isdigit()]
        if unknown:
            raise TypeError(f"{cls.__name__}.{field.name} has the dimension {unknown[0]!r}: add it to DIMENSIONS.")
    return tuple(found)


def _dtype(array_type: Any) -> np.dtype[Any] | None:
    """Return the type of the numbers of `NDArray[...]`: an alias of its own since NumPy 2.5, before that
    `ndarray[shape, dtype[...]]`."""
    *_, numbers = get_args(array_type)
    (scalar,) = get_args(numbers) or (numbers,)
    return None if scalar is np.floating else np.dtype(scalar).newbyteorder("<")
