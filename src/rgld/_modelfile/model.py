"""The model file: how a fitted detector is written, and read again.

In: a fitted detector, or a path. Out: a file, or a `SavedDetector`. `tensors.py` writes and reads named arrays,
`layout.py` says which arrays a model has, `header.py` and `checks.py` check what a file says and holds. Old versions of
the format stay readable: frozen files of versions 1, 2 and 4 are in the tests.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np

from .._fit.stream import Stream
from .._model.model import GlobalBranch, KeptRows, LeverageBranch, LocalBranch, Model
from .._model.ranks import BranchRanks, CdfKnots
from .._model.relations import Relations, filled
from .._model.scaling import Scaling
from .._model.views import Views
from .._params import check_parameters
from .._table.encoding import Encoding
from .._table.profiles import Profiles
from .._table.schema import Schema
from ..exceptions import ModelFileError
from .checks import check_angles, check_values
from .columns import describe_column
from .header import FORMAT, NOT_SAVED, VERSION, Header, parse_header
from .layout import RELATION_GROUPS, RELATION_PREFIX, arrays_of, group_of, sizes_of
from .relations import check_relations
from .stream import describe_stream, stream_arrays, stream_of
from .tensors import Arrays, open_tensors, specs_of, write_tensors

NOTICE = (
    "This file contains training rows (the references of the local branch), column statistics, column names and values "
    "of categories: treat it as you treat the training table. It contains no code."
)


@dataclass(frozen=True)
class SavedDetector:
    """What a model file holds: the model as it was fitted, and the parameters as they were when it was written."""

    parameters: dict[str, Any]
    schema: Schema
    offset: float
    model: Model
    stream: Stream | None


def save_detector(detector: SavedDetector, path: str | PathLike[str]) -> None:
    """Write a fitted detector."""
    check_parameters(detector.parameters)
    model, names = detector.model, detector.schema.names
    arrays = arrays_of(model)
    is_standardized = any(name.endswith(".standards") for name in arrays)
    content = {
        "parameters": {name: _as_json(value) for name, value in detector.parameters.items() if name not in NOT_SAVED},
        "sizes": sizes_of(model, arrays)._asdict(),
        "columns": [describe_column(column) for column in model.encoding.columns],
        "feature_names": None if names is None else [str(name) for name in names],
        "preprocessing": list(model.scaling.kinds),
        "aggregation": "standard" if is_standardized else "rank",
        "local_weight": model.local_weight,
        "offset": float(detector.offset),
        "stream": describe_stream(detector.stream),
    }
    metadata = {"format": FORMAT, "version": str(VERSION), "notice": NOTICE, "detector": json.dumps(content)}
    arrays |= stream_arrays(detector.stream)
    try:
        parse_header(metadata, specs_of(arrays))
    except ModelFileError as error:
        raise ModelFileError(f"This detector cannot be saved, its file could not be read again: {error}") from error
    write_tensors(path, metadata, arrays)


def _as_json(value: Any) -> Any:
    """Return a parameter as JSON has it. A generator given as `random_state` becomes null: the fitted model does not
    need it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, (tuple, list, np.ndarray)):
        return [_as_json(v) for v in value]
    if isinstance(value, Mapping):
        return {str(name): _as_json(v) for name, v in value.items()}
    return None


def load_detector(path: str | PathLike[str]) -> SavedDetector:
    """Read and check a model file.

    Raises
    ------
    ModelFileError
        For a file that is not a whole, unchanged model file of a known version.
    """
    with open_tensors(path) as tensors:
        header = parse_header(tensors.metadata, tensors.specs)
        arrays = tensors.read()
    _add_newer_arrays(header, arrays)
    check_values(header, arrays)
    model = _model_of(header, arrays)
    if isinstance(model.global_branch, GlobalBranch):
        check_angles(model.global_branch)
    parameters = {name: tuple(v) if isinstance(v, list) else v for name, v in header.parameters.items()}
    stream = stream_of(header.stream, arrays, header.feature_names)
    names = None if header.feature_names is None else tuple(header.feature_names)
    return SavedDetector(parameters, Schema(len(header.columns), names), header.offset, model, stream)


def _add_newer_arrays(header: Header, arrays: Arrays) -> None:
    """Add the arrays that a file of an old version does not hold, with the values that it stands for."""
    for array in header.arrays:
        if array.description.since > header.version:
            arrays[array.name] = np.full(array.spec.shape, array.description.before, array.spec.dtype.newbyteorder("="))
    if header.version == 1:  # it knew no gaps: a missing value in a row to score counts as the center
        arrays["encoding.fill"] = arrays["scaling.center"]


def _model_of(header: Header, arrays: Arrays) -> Model:
    """Put the model together."""
    sizes, group = header.sizes, partial(group_of, arrays)
    global_branch: GlobalBranch | LeverageBranch | None = None
    global_ranks = local_branch = local_ranks = None
    if sizes.n_leverage_views:
        global_branch = LeverageBranch(**group(LeverageBranch, "leverage"))
        global_ranks = _ranks_of("leverage", header, arrays)
    if sizes.n_global_views:
        global_branch = GlobalBranch(views=Views(**group(Views, "global")), **group(GlobalBranch, "global"))
        global_ranks = _ranks_of("global", header, arrays)
    if sizes.n_local_views:
        views = Views(**group(Views, "local"))
        local_branch = LocalBranch(views=views, n_neighbors=sizes.n_neighbors, **group(LocalBranch, "local"))
        local_ranks = _ranks_of("local", header, arrays)
    return Model(
        encoding=Encoding(columns=tuple(header.columns), n_rows=sizes.n_rows, **group(Encoding, "encoding")),
        scaling=Scaling(kinds=tuple(header.preprocessing), **group(Scaling, "scaling")),
        global_branch=global_branch,
        global_ranks=global_ranks,
        local_branch=local_branch,
        local_ranks=local_ranks,
        local_weight=header.local_weight,
        kept_rows=KeptRows(**group(KeptRows, "sample")),
        profiles=Profiles(**{**vars(Profiles.none()), **group(Profiles, "profile")}),
        **group(Model, ""),
        relations=_relations_of(header, arrays),
    )


def _relations_of(header: Header, arrays: Arrays) -> Relations | None:
    if not header.sizes.n_relation_rows:
        return None
    parts = {
        field: filled(cls, group_of(arrays, cls, f"{RELATION_PREFIX}{field}")) for field, cls in RELATION_GROUPS.items()
    }
    relations = Relations(**parts, n_rows=header.sizes.n_relation_rows)
    check_relations(relations, header.columns, header.sizes.n_calibration)
    return relations


def _ranks_of(branch: str, header: Header, arrays: Arrays) -> BranchRanks:
    knots = CdfKnots(**group_of(arrays, CdfKnots, branch))
    *views, branch_cdf = knots.cdfs(header.sizes.n_ranked_rows)
    return BranchRanks(views=views, branch=branch_cdf, **group_of(arrays, BranchRanks, branch))
