"""Packing: a state as bytes, without code in them.

In: a state. Out: bytes, from which another process makes the same state. Spark moves states between its processes as
bytes. Pickle could do this too, but then anyone who can change the bytes on their way can run code. Here only numbers,
strings and arrays in dataclasses of this package are packed, and only these can come out.
"""

import json
import struct
from collections import Counter
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from .._arrays import Objects
from .._table.columns import RawColumn
from .._table.summary import ColumnSummary
from .._table.table import ColumnTable, MatrixTable
from .column_sums import ColumnSums
from .counts import ScoreCounts, ScoreMoments
from .global_branch import EmbeddingSums
from .sampling import RowSample
from .steps import PerBranch
from .survey import Survey

CLASSES: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *(ColumnSums, EmbeddingSums, PerBranch, ScoreCounts, ScoreMoments, Survey),
        *(RowSample, ColumnTable, MatrixTable, RawColumn, ColumnSummary),
    )
}
"""What may be packed: the states, and what they hold."""
PLAIN_DTYPE_KINDS = "biuf"
"""NumPy's letters for arrays of bools and numbers, which are packed as they lie in memory."""


def pack(value: Any) -> bytes:
    """Return a state, or None, as bytes: the length of a tree in JSON, the tree, and the arrays that it names."""
    arrays: list[np.ndarray[Any, Any]] = []
    tree = json.dumps(_packed(value, arrays)).encode()
    return b"".join([struct.pack("<q", len(tree)), tree, *(array.tobytes() for array in arrays)])


def unpack(content: bytes) -> Any:
    """Return the state that was packed."""
    (length,) = struct.unpack_from("<q", content)
    return _Reader(content, 8 + length).read(json.loads(content[8 : 8 + length]))


def _packed(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Return a value as JSON holds it. Arrays go to `arrays`, in the order in which they come."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return {"objects": [_packed(cell, arrays) for cell in value.tolist()]}
        if value.dtype.kind not in PLAIN_DTYPE_KINDS:
            raise TypeError(f"an array of {value.dtype} cannot be packed")
        in_columns = value.ndim > 1 and value.flags.f_contiguous and not value.flags.c_contiguous
        arrays.append(value.T if in_columns else value)
        return {"array": value.dtype.str, "shape": value.shape, "in_columns": in_columns}
    if isinstance(value, np.generic):
        return _packed(value.item(), arrays)
    if isinstance(value, Counter):
        return {"counts": list(value.items())}
    if isinstance(value, (tuple, list)):
        return [_packed(item, arrays) for item in value]
    if is_dataclass(value) and CLASSES.get(type(value).__name__) is type(value):
        held = {field.name: _packed(getattr(value, field.name), arrays) for field in fields(value)}
        return {"class": type(value).__name__, "fields": held}
    raise TypeError(f"a {type(value).__name__} cannot be packed")


class _Reader:
    """Makes values of a tree and of the arrays behind it, which are read one after the other."""

    def __init__(self, content: bytes, start: int) -> None:
        self.content, self.place = content, start

    def read(self, tree: Any) -> Any:
        """Return the value of a tree."""
        if isinstance(tree, list):
            return tuple(map(self.read, tree))
        if not isinstance(tree, dict):
            return tree
        if "class" in tree:
            return CLASSES[tree["class"]](**{name: self.read(held) for name, held in tree["fields"].items()})
        if "counts" in tree:
            return Counter(dict(tree["counts"]))
        if "objects" in tree:
            cells: Objects = np.empty(len(tree["objects"]), dtype=object)
            cells[:] = [self.read(cell) for cell in tree["objects"]]
            return cells
        return self._array(np.dtype(tree["array"]), tree["shape"], tree["in_columns"])

    def _array(self, dtype: np.dtype[Any], shape: list[int], in_columns: bool) -> np.ndarray[Any, Any]:
        count = int(np.prod(shape))
        flat = np.frombuffer(self.content, dtype, count, self.place)
        self.place += flat.nbytes
        return flat.reshape(shape[::-1]).T if in_columns else flat.reshape(shape)
