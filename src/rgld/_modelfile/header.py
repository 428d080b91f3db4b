"""The header of a model file: what it says of a detector, apart from its arrays.

In: the metadata of a file, and the types and shapes of its arrays. Out: a `Header`, or a `ModelFileError`. The sizes
come first: what a file holds must have the lengths that they imply before anything else is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._params import AGGREGATIONS, CONSTRAINTS, MAX_TURNS, PREPROCESSINGS, check_parameters
from .._table.encoding import Column
from ..exceptions import ModelFileError, ParameterError
from .columns import are_names_of, numeric_columns, parse_columns
from .layout import FileArray, expected_arrays, require_specs
from .sizes import Sizes, check_explaining_budget, check_stream_budget, parse_sizes
from .stream import STREAM_PREFIX, expected_stream_specs
from .tensors import DIGEST, DIGEST_SPEC, Specs, parse_json

FORMAT = "rgld-model"
VERSION = 5
"""The version that is written; it and all before it are read."""

NOT_SAVED = ("n_jobs",)
"""Parameters that the reader's machine decides on, not the file."""

HEADER_KEYS = {
    "parameters",
    "sizes",
    "columns",
    "feature_names",
    "preprocessing",
    "aggregation",
    "local_weight",
    "offset",
    "stream",
}
"""What a header says of a detector."""

SETTINGS_BEFORE_2 = {"aggregation": "rank", "local_weight": 0.5}
PARAMETERS_BEFORE_2 = {"projection": "gaussian", **SETTINGS_BEFORE_2, "columns": None, "calibration_fraction": 0.0}
SIZES_BEFORE_2 = {"n_sample_rows": 0, "n_sample_views": 0, "n_calibration": 0}
"""What files of version 1 do not hold, with the values that these files stand for."""

PARAMETERS_BEFORE_3 = {"max_features": None, "global_score": "support", "ridge": 0.02, "whitening": 0.0, "trim": 0.0}
SIZES_BEFORE_3 = {"n_leverage_views": 0, "leverage_dim": 0, "n_cosines": 0}
"""The same for files of versions 1 and 2."""

PARAMETERS_BEFORE_4 = {"relations": False}
SIZES_BEFORE_4 = {"n_relation_rows": 0}
"""The same for files of versions 1 to 3."""
PARAMETERS_BEFORE_5: dict[str, Any] = {"max_training_rows": None}
"""The same for files of versions 1 to 4. Their distributions are of all training rows."""
OPTIONAL_PARAMETERS = {"na_values": None}
"""What a file of any version may leave out, with the value that it then stands for."""


@dataclass(frozen=True)
class Header:
    """The header of a model file, checked: every parameter and size is in its range."""

    version: int
    parameters: dict[str, Any]
    sizes: Sizes
    columns: list[Column]
    feature_names: list[str] | None
    preprocessing: list[str]
    aggregation: str
    local_weight: float
    offset: float
    stream: Any
    """What `stream.py` writes; None for most detectors."""
    arrays: list[FileArray]
    """The arrays of the model, as the newest version holds them."""


def parse_header(metadata: Mapping[str, str], specs: Specs) -> Header:
    """Check the header, and that the file's arrays have the types and shapes that follow from it."""
    version = _parse_version(metadata)
    content = parse_json(metadata.get("detector", "null"))
    if version == 1:
        content = _of_version_2(content)
    if version <= 2:
        content = _with_defaults(content, PARAMETERS_BEFORE_3, SIZES_BEFORE_3)
    if version <= 3:
        content = _with_defaults(content, PARAMETERS_BEFORE_4, SIZES_BEFORE_4)
    if version <= 4:
        content = _of_version_5(content)
    if isinstance(content, dict) and isinstance(content.get("parameters"), dict):
        content = {**content, "parameters": {**OPTIONAL_PARAMETERS, **content["parameters"]}}
    if not isinstance(content, dict) or set(content) != HEADER_KEYS:
        raise ModelFileError("The model file does not describe a detector.")
    sizes = parse_sizes(content["sizes"])
    _check_settings(content)
    check_explaining_budget(sizes, len(content["preprocessing"]))
    arrays = list(expected_arrays(sizes, content["preprocessing"], content["aggregation"], specs))
    expected = {array.name: array.spec for array in arrays if array.description.since <= version}
    stream_specs = {name: spec for name, spec in specs.items() if name.startswith(STREAM_PREFIX)}
    model_specs = {name: spec for name, spec in specs.items() if name not in stream_specs}
    require_specs({**expected, DIGEST: DIGEST_SPEC}, model_specs)
    # From here on, the file is known to hold as many numbers as its sizes say.
    names = content["feature_names"]
    columns = numeric_columns(names, sizes) if version == 1 else parse_columns(content["columns"], sizes)
    _require("feature_names", are_names_of(names, columns))
    require_specs(expected_stream_specs(content["stream"], stream_specs, len(columns), names is not None), stream_specs)
    if content["stream"] is not None:
        check_stream_budget(content["parameters"], sizes.n_columns, content["stream"]["size"])
    return Header(**{**content, "version": version, "sizes": sizes, "columns": columns, "arrays": arrays})


def _parse_version(metadata: Mapping[str, str]) -> int:
    if metadata.get("format") != FORMAT:
        raise ModelFileError("This is not an RGLD model file: its header names another format or none.")
    version = str(metadata.get("version"))
    if version not in map(str, range(1, VERSION + 1)):
        raise ModelFileError(
            f"The model file has format version {version[:20]!r}, this release reads versions 1 to {VERSION}: use the "
            "release that wrote it, or fit again."
        )
    return int(version)


def _of_version_2(content: Any) -> Any:
    """Return the content of a file of version 1 as version 2 has it. What is wrong with it is found later."""
    content = _with_defaults(content, PARAMETERS_BEFORE_2, SIZES_BEFORE_2)
    if not isinstance(content, dict):
        return content
    new = {"preprocessing": [content.get("preprocessing")], "columns": None, "stream": None}
    return {**content, **SETTINGS_BEFORE_2, **new}


def _of_version_5(content: Any) -> Any:
    """Return the content of a file of an earlier version as version 5 has it."""
    sizes = content.get("sizes") if isinstance(content, dict) else None
    n_rows = sizes.get("n_rows") if isinstance(sizes, dict) else None
    return _with_defaults(content, PARAMETERS_BEFORE_5, {"n_ranked_rows": n_rows})


def _with_defaults(content: Any, parameters: Mapping[str, Any], sizes: Mapping[str, Any]) -> Any:
    """Return the content with parameters and sizes that its version does not know."""
    if not isinstance(content, dict):
        return content
    own, own_sizes = content.get("parameters"), content.get("sizes")
    if not isinstance(own, dict) or not isinstance(own_sizes, dict):
        return content
    if set(own) & set(parameters) or set(own_sizes) & set(sizes):
        raise ModelFileError("The model file has parameters or sizes that its version does not know.")
    return {**content, "parameters": {**own, **parameters}, "sizes": {**own_sizes, **sizes}}


def _check_settings(content: dict[str, Any]) -> None:
    """Check all that is neither a size nor a column nor the stream."""
    parameters, weight, offset = content["parameters"], content["local_weight"], content["offset"]
    _require("preprocessing", _are_scalings(content["preprocessing"]))
    _require("aggregation", content["aggregation"] in AGGREGATIONS)
    _require("local_weight", type(weight) is float and 0.0 < weight < 1.0)
    _require("offset", type(offset) is float and -1.0 <= offset <= 1.0)
    _require("parameters", isinstance(parameters, dict) and set(parameters) == set(CONSTRAINTS) - set(NOT_SAVED))
    try:
        check_parameters({**parameters, **dict.fromkeys(NOT_SAVED)})
    except ParameterError as error:
        raise ModelFileError(f"The model file's parameters are out of range: {error}") from error


def _are_scalings(kinds: Any) -> bool:
    return isinstance(kinds, list) and 1 <= len(kinds) <= MAX_TURNS and all(kind in PREPROCESSINGS for kind in kinds)


def _require(name: str, holds: bool) -> None:
    if not holds:
        raise ModelFileError(f"The model file's {name} is not what a detector has.")
