"""The header of a model file: what it must say, and which arrays follow from it.

In: the metadata and array specs of a file. Out: a `Header`, or a `ModelFileError`. All shapes follow from ten sizes:
a file whose arrays do not have the types and shapes its sizes imply is refused before an array is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._kernels.blocks import SMALLEST_BLOCK
from ._params import AGGREGATIONS, CONSTRAINTS, MOST_TURNS, PREPROCESSINGS, check_parameters
from ._preprocess import N_QUANTILES
from ._ranks import EXACT_CDF_SIZE
from ._tensorfile import DIGEST, ArraySpec, Specs, parse_json
from .exceptions import ModelFileError, ParameterError

FORMAT = "rgld-model"
VERSION = "2"
MODEL_SETTINGS = {"aggregation": "rank", "local_weight": 0.5}
PARAMETERS_OF_VERSION_2 = {"projection": "gaussian", **MODEL_SETTINGS}
"""What files of version 1 do not have, at the value that they mean."""

MAX_ROWS = 2**40
"""More training rows than any table has; far beyond, ranks would round to 1."""
MAX_SIZE = 2**31 - 1
"""Any other size."""
MAX_PROJECTION_DIM = 1024
"""The parameter's limit."""
MAX_DERIVED = 2**26
"""Numbers in the largest array that scoring makes of a file's sizes: a small file must not take much memory."""

F64, F32, I64, I32 = (np.dtype(kind) for kind in ("<f8", "<f4", "<i8", "<i4"))

NOT_SAVED = ("n_jobs",)
"""The reader's machine decides on threads, not the file."""


class Sizes(NamedTuple):
    """The numbers that all shapes of a model follow from. A branch without views has zeros."""

    n_columns: int
    n_rows: int
    n_features: int
    projection_dim: int
    n_global_views: int
    n_random_features: int
    n_bandwidths: int
    n_local_views: int
    n_references: int
    n_neighbors: int


@dataclass(frozen=True)
class Header:
    """The metadata of a model file, checked, with every parameter and size in range."""

    parameters: dict[str, Any]
    sizes: Sizes
    feature_names: list[str] | None
    preprocessing: list[str]
    aggregation: str
    local_weight: float
    offset: float


def check_header(metadata: Mapping[str, str], specs: Specs) -> Header:
    if metadata.get("format") != FORMAT:
        raise ModelFileError("This is not an RGLD model file: its header names another format or none.")
    if metadata.get("version") not in ("1", VERSION):
        found = str(metadata.get("version"))[:20]
        raise ModelFileError(
            f"The model file has format version {found!r}, this release reads versions '1' and {VERSION!r}: "
            "use the release that wrote it, or fit again."
        )
    content = parse_json(metadata.get("detector", "null"))
    header = _parse_detector(_from_version_1(content) if metadata["version"] == "1" else content)
    expected = _expected_specs(header, specs)
    if set(specs) != set(expected):
        different = sorted(set(specs) ^ set(expected))[0]
        raise ModelFileError(
            f"The model file's arrays do not fit its parameters: {different[:40]!r} is missing or unexpected."
        )
    for name, spec in expected.items():
        if specs[name] != spec:
            raise ModelFileError(f"The model file's array {name!r} is {_words(specs[name])}, expected {_words(spec)}.")
    return header


def _from_version_1(content: Any) -> Any:
    """Return the content as version 2 has it, as far as it can be told apart: what is wrong with it is found later."""
    if not isinstance(content, dict) or not isinstance(content.get("parameters"), dict):
        return content
    parameters = {**content["parameters"], **PARAMETERS_OF_VERSION_2}
    if len(parameters) != len(content["parameters"]) + len(PARAMETERS_OF_VERSION_2):
        raise ModelFileError("The model file has parameters that its version does not know.")
    return {**content, **MODEL_SETTINGS, "parameters": parameters, "preprocessing": [content.get("preprocessing")]}


def _words(spec: ArraySpec) -> str:
    return f"{spec.dtype} of shape {spec.shape}"


def _parse_detector(content: Any) -> Header:
    if not isinstance(content, dict) or set(content) != set(Header.__dataclass_fields__):
        raise ModelFileError("The model file does not describe a detector.")
    sizes = _parse_sizes(content["sizes"])
    parameters, names, offset = content["parameters"], content["feature_names"], content["offset"]
    weight = content["local_weight"]
    checks = {
        "feature_names": names is None or _are_names(names, sizes.n_columns),
        "preprocessing": _are_kinds(content["preprocessing"]),
        "aggregation": content["aggregation"] in AGGREGATIONS,
        "local_weight": type(weight) is float and 0.0 < weight < 1.0,
        "offset": type(offset) is float and -1.0 <= offset <= 1.0,
        "parameters": isinstance(parameters, dict) and set(parameters) == set(CONSTRAINTS) - set(NOT_SAVED),
    }
    for name, holds in checks.items():
        if not holds:
            raise ModelFileError(f"The model file's {name} is not what a detector has.")
    try:
        check_parameters({**parameters, **dict.fromkeys(NOT_SAVED)})
    except ParameterError as error:
        raise ModelFileError(f"The model file's parameters are out of range: {error}") from error
    return Header(parameters, sizes, names, content["preprocessing"], content["aggregation"], weight, offset)


def _parse_sizes(content: Any) -> Sizes:
    """Check the sizes against each other and against what scoring would have to allocate."""
    if not isinstance(content, dict) or set(content) != set(Sizes._fields):
        raise ModelFileError("The model file does not give the sizes of a model.")
    sizes = Sizes(**content)
    others = sizes._replace(n_rows=0)
    if not all(type(size) is int and 0 <= size <= MAX_SIZE for size in others):
        raise ModelFileError("The model file gives sizes that are not sizes.")
    has_global = sizes.n_global_views > 0
    has_local = sizes.n_local_views > 0
    consistent = (
        type(sizes.n_rows) is int
        and 2 <= sizes.n_rows <= MAX_ROWS
        and 1 <= sizes.n_features <= sizes.n_columns
        and 1 <= sizes.projection_dim <= MAX_PROJECTION_DIM
        and (has_global or has_local)
        and has_global == (sizes.n_random_features > 0) == (sizes.n_bandwidths > 0)
        and has_local == (sizes.n_neighbors > 0)
        and (sizes.n_neighbors < sizes.n_references <= sizes.n_rows or not has_local)
    )
    if not consistent:
        raise ModelFileError("The model file gives sizes that no fitted model has.")
    n_angles = sizes.n_global_views * sizes.n_random_features
    n_projected = max(sizes.n_global_views, sizes.n_local_views) * sizes.projection_dim
    per_row = max(n_angles, n_projected, sizes.n_references)
    derived = max(n_angles * sizes.n_features, per_row * SMALLEST_BLOCK)
    if derived > MAX_DERIVED:
        raise ModelFileError(
            f"The model file's sizes would need arrays of {derived} numbers, expected at most {MAX_DERIVED}."
        )
    return sizes


def _are_kinds(kinds: Any) -> bool:
    return isinstance(kinds, list) and 1 <= len(kinds) <= MOST_TURNS and all(kind in PREPROCESSINGS for kind in kinds)


def _are_names(names: Any, n_columns: int) -> bool:
    return isinstance(names, list) and len(names) == n_columns and all(isinstance(name, str) for name in names)


def _expected_specs(header: Header, specs: Specs) -> dict[str, ArraySpec]:
    """Return type and shape of every array. The knots of the CDFs may have any number up to their bound."""
    d, n_rows, m, r, n_global, n_random, n_bandwidths, n_local, n_references, _ = header.sizes
    n_quantiles = min(N_QUANTILES, n_rows) if "quantile" in header.preprocessing else 0
    n_scaled = len(header.preprocessing) * d
    names = ("center", "scale", "shift", "unit") if "scaling.shift" in specs else ("center", "scale")
    expected = {
        **{f"scaling.{name}": ArraySpec(F64, (n_scaled,)) for name in names},
        "scaling.quantiles": ArraySpec(F64, (d, n_quantiles)),
        DIGEST: ArraySpec(np.dtype("u1"), (32,)),
    }
    for branch, n_views in (("global", n_global), ("local", n_local)):
        if n_views:
            ranked = n_views if header.aggregation == "rank" else 0
            n_knots = specs.get(f"{branch}.cdf_values", ArraySpec(F64, (0,))).shape[:1]
            if not n_knots or n_knots[0] > (ranked + 1) * EXACT_CDF_SIZE:
                raise ModelFileError(
                    f"The model file's {branch} distributions are larger than any this version writes."
                )
            expected |= {
                f"{branch}.features": ArraySpec(I32, (n_views, m)),
                f"{branch}.projection": ArraySpec(F32, (n_views, m, r)),
                f"{branch}.cdf_sizes": ArraySpec(I64, (ranked + 1,)),
                f"{branch}.cdf_values": ArraySpec(F64, n_knots),
                f"{branch}.cdf_ranks": ArraySpec(F64, n_knots),
            }
            if not ranked:
                expected[f"{branch}.standards"] = ArraySpec(F32, (n_views, 3))
    if n_global:
        expected |= {
            "global.frequencies": ArraySpec(F32, (n_global, n_random, r)),
            "global.phases": ArraySpec(F32, (n_global, n_random)),
            "global.base_bandwidth": ArraySpec(F64, (n_global,)),
            "global.multipliers": ArraySpec(F64, (n_bandwidths,)),
            "global.mean_embedding": ArraySpec(F32, (n_global, n_bandwidths, n_random)),
            "global.support_mean": ArraySpec(F32, (n_global, n_bandwidths)),
            "global.support_std": ArraySpec(F32, (n_global, n_bandwidths)),
        }
    if n_local:
        expected["local.references"] = ArraySpec(F32, (n_local, r, n_references))
    return expected
