"""Layout: which arrays a model file holds, by name.

In: a model, or a header. Out: the model's arrays by name, or the type and shape that each array of a file must have.
All of it follows from the descriptions beside the fields of the model (`_model/fields.py`); the order of the arrays in
a file is that of `ARRAY_GROUPS` and of the fields.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from .._fit.scaling import quantiles_for
from .._model.fields import OPEN_DIMENSIONS, Array, ArrayField, array_fields
from .._model.model import GlobalBranch, KeptRows, LeverageBranch, LocalBranch, Model
from .._model.ranks import BranchRanks, CdfKnots
from .._model.relations import (
    CurveRelations,
    DeterminedRelations,
    HeldOutBreaks,
    Levels,
    NumberRelations,
    OrderRelations,
    PairRelations,
    Spans,
    TrainingEvidence,
)
from .._model.scaling import Scaling
from .._model.views import Views
from .._table.encoding import Encoding
from .._table.profiles import Profiles
from ..exceptions import ModelFileError
from .sizes import Sizes
from .tensors import DTYPES, Arrays, ArraySpec, Specs


class ArrayGroup(NamedTuple):
    """The arrays of one object of a model."""

    prefix: str
    """What their names begin with in a file."""
    cls: type
    """The class that describes them."""
    of: Callable[[Model], Any]
    """Returns the object that holds them; None if the model has no such object."""


def _branch_groups(prefix: str, cls: type, field: str) -> tuple[ArrayGroup, ...]:
    """Return the groups of a branch, if the field `{field}_branch` of a model holds a branch of this class."""

    def branch(model: Model) -> Any:
        found = getattr(model, f"{field}_branch")
        return found if isinstance(found, cls) else None

    def ranks(model: Model) -> Any:
        return branch(model) and getattr(model, f"{field}_ranks")

    views = (ArrayGroup(prefix, Views, lambda model: branch(model) and branch(model).views),)
    return (
        ArrayGroup(prefix, BranchRanks, ranks),
        *(views if cls is not LeverageBranch else ()),  # its views follow from its own arrays
        ArrayGroup(prefix, CdfKnots, lambda model: ranks(model) and CdfKnots.of(ranks(model).cdfs)),
        ArrayGroup(prefix, cls, branch),
    )


RELATION_GROUPS = {
    "numbers": NumberRelations,
    "curves": CurveRelations,
    "orders": OrderRelations,
    "pairs": PairRelations,
    "determined": DeterminedRelations,
    "levels": Levels,
    "spans": Spans,
    "evidence": TrainingEvidence,
    "held_out": HeldOutBreaks,
}
"""The fields of `Relations` that hold arrays."""
RELATION_PREFIX = "relations."


def _relation_group(field: str, cls: type) -> ArrayGroup:
    return ArrayGroup(
        f"{RELATION_PREFIX}{field}", cls, lambda model: model.relations and getattr(model.relations, field)
    )


ARRAY_GROUPS = (
    ArrayGroup("scaling", Scaling, attrgetter("scaling")),
    ArrayGroup("encoding", Encoding, attrgetter("encoding")),
    ArrayGroup("sample", KeptRows, attrgetter("kept_rows")),  # the format fixes this name: the kept rows were a sample
    ArrayGroup("", Model, lambda model: model),
    ArrayGroup("profile", Profiles, attrgetter("profiles")),
    *_branch_groups("global", GlobalBranch, "global"),
    *_branch_groups("leverage", LeverageBranch, "global"),
    *_branch_groups("local", LocalBranch, "local"),
    *(_relation_group(field, cls) for field, cls in RELATION_GROUPS.items()),
)

SIZE_NAMES = {
    "columns": "n_columns",
    "m": "n_features",
    "r": "projection_dim",
    "D": "n_random_features",
    "M": "n_bandwidths",
    "C": "n_references",
    "q": "leverage_dim",
    "F": "n_cosines",
    "kept_rows": "n_sample_rows",
    "kept_views": "n_sample_views",
    "held_out": "n_calibration",
}
"""The size that is the length of a dimension ... (The format fixes the names of sizes: `n_sample_rows` and
`n_sample_views` are those of the kept rows.)"""
BRANCH_SIZES = {"global": "n_global_views", "leverage": "n_leverage_views", "local": "n_local_views"}
"""... and the size that is the length of T in the arrays of a branch."""


def full_name(prefix: str, field: ArrayField) -> str:
    """Return the name of an array in a file."""
    return f"{prefix}.{field.name}" if prefix else field.name


def arrays_of(model: Model) -> Arrays:
    """Return the arrays of a model by name, in the order of a file."""
    arrays: Arrays = {}
    for group in ARRAY_GROUPS:
        holder = group.of(model)
        for field in array_fields(group.cls) if holder is not None else ():
            array = getattr(holder, field.name)
            if len(array) or not field.array.is_optional:
                arrays[full_name(group.prefix, field)] = array
    return arrays


def group_of(arrays: Arrays, cls: type, prefix: str) -> Arrays:
    """Return the arrays of one group by the names of their fields: arguments to make the object again."""
    return {field.name: arrays[name] for field in array_fields(cls) if (name := full_name(prefix, field)) in arrays}


def sizes_of(model: Model, arrays: Arrays) -> Sizes:
    """Return the sizes of a model: lengths of its arrays, and numbers that no array shows."""
    ranks = model.global_ranks or model.local_ranks
    assert ranks is not None and ranks.branch is not None, "a model has a branch, and a branch has ranks"
    found = {
        "n_rows": model.encoding.n_rows,
        "n_ranked_rows": ranks.branch.n_rows,
        "n_neighbors": model.local_branch.n_neighbors if model.local_branch else 0,
        "n_relation_rows": model.relations.n_rows if model.relations else 0,
    }
    for group in ARRAY_GROUPS:
        names = {**SIZE_NAMES, "T": BRANCH_SIZES.get(group.prefix, "")}
        for field in array_fields(group.cls):
            shape = arrays[name].shape if (name := full_name(group.prefix, field)) in arrays else ()
            found |= {names[d]: length for d, length in zip(field.dimensions, shape, strict=False) if d in names}
    return Sizes(**{name: found.get(name, 0) for name in Sizes._fields})


class FileArray(NamedTuple):
    """An array that a file must hold."""

    name: str
    description: Array
    spec: ArraySpec
    lengths: Mapping[str, int]
    """The length of each dimension."""


def expected_arrays(sizes: Sizes, kinds: Sequence[str], aggregation: str, specs: Specs) -> Iterator[FileArray]:
    """Yield the arrays of a model of these sizes and scalings, as the newest version of a file holds them."""
    for group in ARRAY_GROUPS:
        lengths = _lengths(group.prefix, sizes, kinds, aggregation)
        if group.prefix in BRANCH_SIZES and not lengths["T"]:
            continue
        if group.prefix.startswith(RELATION_PREFIX) and not sizes.n_relation_rows:
            continue
        for field in array_fields(group.cls):
            name = full_name(group.prefix, field)
            spec = expected_spec(field, lengths, specs.get(name))
            if spec.shape[0] or not field.array.is_optional:
                yield FileArray(name, field.array, spec, lengths)


def _lengths(prefix: str, sizes: Sizes, kinds: Sequence[str], aggregation: str) -> dict[str, int]:
    """Return the length of each dimension that is not open."""
    n_views = getattr(sizes, BRANCH_SIZES[prefix]) if prefix in BRANCH_SIZES else 0
    n_ranked = n_views if aggregation == "rank" else 0
    return {
        **{dimension: getattr(sizes, name) for dimension, name in SIZE_NAMES.items()},
        "T": n_views,
        "P": sizes.leverage_dim + sizes.n_cosines,
        "scalings": len(kinds),
        "scaled_columns": len(kinds) * sizes.n_columns,
        "quantiles": quantiles_for(kinds, sizes.n_ranked_rows),
        "kept_references": sizes.n_references if sizes.n_sample_views else 0,
        "distributions": n_ranked + 1,
        "standardized": n_views - n_ranked,
    }


def expected_spec(field: ArrayField, lengths: dict[str, int], found: ArraySpec | None) -> ArraySpec:
    """Return the type and shape that an array must have. The first array with an open dimension sets its length."""
    dimensions = field.dimensions
    if found is None or len(found.shape) != len(dimensions):
        found = ArraySpec(DTYPES["F64"], (0,) * len(dimensions))
    for dimension, length in zip(dimensions, found.shape, strict=True):
        if dimension in OPEN_DIMENSIONS:
            lengths.setdefault(dimension, length)
    shape = tuple(int(d) if d.isdigit() else lengths[d] for d in dimensions)
    either_float = DTYPES["F32"] if found.dtype == DTYPES["F32"] else DTYPES["F64"]
    return ArraySpec(field.dtype or either_float, shape)


def require_specs(expected: Mapping[str, ArraySpec], found: Specs) -> None:
    """Raise if a file does not hold exactly the arrays that it must hold."""
    if set(found) != set(expected):
        different = sorted(set(found) ^ set(expected))[0]
        raise ModelFileError(
            f"The model file's arrays do not fit its parameters: {different[:40]!r} is missing or unexpected."
        )
    for name, spec in expected.items():
        if found[name] != spec:
            raise ModelFileError(f"The model file's array {name!r} is {_words(found[name])}, expected {_words(spec)}.")


def _words(spec: ArraySpec) -> str:
    return f"{spec.dtype} of shape {spec.shape}"
