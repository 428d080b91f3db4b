"""The header of a model file: what it must say, and which arrays follow from it.

In: the metadata and array specs of a file. Out: a `Header`, or a `ModelFileError`. All shapes follow from the
`Sizes`: a file whose arrays do not have the types and shapes its sizes imply is refused before an array is read.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ._cells import LONGEST_TEXT, TIME_FORMATS
from ._encoding import CYCLES, KINDS, LISTED_VALUES, Column
from ._kernels.blocks import SMALLEST_BLOCK
from ._local import LARGEST_SAMPLE
from ._params import AGGREGATIONS, CONSTRAINTS, MOST_TURNS, PREPROCESSINGS, check_parameters
from ._preprocess import N_QUANTILES
from ._ranks import EXACT_CDF_SIZE
from ._streamfile import stream_specs
from ._tensorfile import DIGEST, ArraySpec, Specs, parse_json
from .exceptions import ModelFileError, ParameterError

FORMAT = "rgld-model"
VERSION = "2"
MODEL_SETTINGS = {"aggregation": "rank", "local_weight": 0.5}
PARAMETERS_OF_VERSION_2 = {"projection": "gaussian", **MODEL_SETTINGS, "columns": None, "calibration_fraction": 0.0}
"""What files of version 1 do not have, at the value that they mean."""

MAX_ROWS = 2**40
"""More training rows than any table has; far beyond, ranks would round to 1."""
MAX_SIZE = 2**31 - 1
"""Any other size."""
MAX_COLUMNS = 2**22
"""Columns of a table: a header cannot name more."""
MAX_PROJECTION_DIM = 1024
"""The parameter's limit."""
MAX_DERIVED = 2**26
"""Numbers in the largest array that scoring makes of a file's sizes: a small file must not take much memory."""

F64, F32, I64, I32 = (np.dtype(kind) for kind in ("<f8", "<f4", "<i8", "<i4"))

NOT_SAVED = ("n_jobs",)
"""The reader's machine decides on threads, not the file."""


LONGEST_NOTE = 400
"""Characters in what is said about a column."""


class Sizes(NamedTuple):
    """The numbers that all shapes of a model follow from. A branch without views has zeros."""

    n_columns: int
    """Encoded columns."""
    n_rows: int
    n_features: int
    projection_dim: int
    n_global_views: int
    n_random_features: int
    n_bandwidths: int
    n_local_views: int
    n_references: int
    n_neighbors: int
    n_sample_rows: int
    n_sample_views: int
    n_calibration: int


SIZES_OF_VERSION_2 = {"n_sample_rows": 0, "n_sample_views": 0, "n_calibration": 0}


@dataclass(frozen=True)
class Header:
    """The metadata of a model file, checked, with every parameter and size in range."""

    parameters: dict[str, Any]
    sizes: Sizes
    columns: list[Column]
    feature_names: list[str] | None
    preprocessing: list[str]
    aggregation: str
    local_weight: float
    offset: float
    stream: Any
    """Of `_streamfile`, checked with the arrays' shapes; None for most."""


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
    header = _parse_detector(_from_version_1(content, specs) if metadata["version"] == "1" else content)
    expected = _expected_specs(header, specs, metadata["version"])
    if set(specs) != set(expected):
        different = sorted(set(specs) ^ set(expected))[0]
        raise ModelFileError(
            f"The model file's arrays do not fit its parameters: {different[:40]!r} is missing or unexpected."
        )
    for name, spec in expected.items():
        if specs[name] != spec:
            raise ModelFileError(f"The model file's array {name!r} is {_words(specs[name])}, expected {_words(spec)}.")
    return header


def _from_version_1(content: Any, specs: Specs) -> Any:
    """Return the content as version 2 has it, as far as it can be told apart: what is wrong with it is found later."""
    if not isinstance(content, dict):
        return content
    own, sizes = content.get("parameters"), content.get("sizes")
    if not isinstance(own, dict) or not isinstance(sizes, dict):
        return content
    parameters, sizes = {**own, **PARAMETERS_OF_VERSION_2}, {**sizes, **SIZES_OF_VERSION_2}
    if len(parameters) != len(own) + len(PARAMETERS_OF_VERSION_2):
        raise ModelFileError("The model file has parameters that its version does not know.")
    names, n_columns = content.get("feature_names"), sizes.get("n_columns")
    center = specs.get("scaling.center")
    # A column is described at length: none for which the file has no numbers.
    if type(n_columns) is not int or n_columns < 1 or center is None or center.shape != (n_columns,):
        raise ModelFileError("The model file gives sizes that no fitted model has.")
    names = names if isinstance(names, list) else [f"column {j}" for j in range(n_columns)]
    columns = [{**_PLAIN_COLUMN, "name": name} for name in names]
    new = {
        "parameters": parameters,
        "sizes": sizes,
        "columns": columns,
        "preprocessing": [content.get("preprocessing")],
    }
    return {**content, **MODEL_SETTINGS, **new, "stream": None}


def _words(spec: ArraySpec) -> str:
    return f"{spec.dtype} of shape {spec.shape}"


def _parse_detector(content: Any) -> Header:
    if not isinstance(content, dict) or set(content) != set(Header.__dataclass_fields__):
        raise ModelFileError("The model file does not describe a detector.")
    sizes = _parse_sizes(content["sizes"])
    columns = _parse_columns(content["columns"], sizes)
    parameters, names, offset = content["parameters"], content["feature_names"], content["offset"]
    weight = content["local_weight"]
    checks = {
        "feature_names": _are_names(names, columns),
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
    rest = (content["preprocessing"], content["aggregation"], weight, offset, content["stream"])
    return Header(parameters, sizes, columns, names, *rest)


_PLAIN_COLUMN = asdict(Column("", "number"))

COLUMN_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "name": lambda v: isinstance(v, str),
    "kind": lambda v: isinstance(v, str) and v in KINDS,
    "note": lambda v: isinstance(v, str) and len(v) <= LONGEST_NOTE,
    "gap_share": lambda v: type(v) is float and (v == 0.0 or 1.0 / MAX_ROWS <= v < 1.0),
    "time_format": lambda v: v == "" or v in TIME_FORMATS,
    "cycles": lambda v: _are_different(v, len(CYCLES)) and all(cycle in CYCLES for cycle in v),
    "values": lambda v: _are_different(v, LISTED_VALUES) and all(len(value) <= LONGEST_TEXT for value in v),
    "counts": lambda v: isinstance(v, (list, tuple)) and all(type(n) is int and 0 < n <= MAX_ROWS for n in v),
    "rest": lambda v: type(v) is float and 0.0 <= v <= MAX_ROWS,
}


def _are_different(values: Any, most: int) -> bool:
    if not isinstance(values, (list, tuple)) or len(values) > most or not all(isinstance(v, str) for v in values):
        return False
    return len(set(values)) == len(values)


def _parse_columns(content: Any, sizes: Sizes) -> list[Column]:
    """Return how columns are read, if that is a reading that a fit could have made of them."""
    if not isinstance(content, list) or not 0 < len(content) <= MAX_COLUMNS:
        raise ModelFileError("The model file does not say how columns are read.")
    columns = []
    for part in content:
        if not isinstance(part, dict) or set(part) != set(COLUMN_CHECKS):
            raise ModelFileError("The model file does not say how a column is read.")
        for name, holds in COLUMN_CHECKS.items():
            if not holds(part[name]):
                raise ModelFileError(f"The model file's reading of a column has a {name} that no fit gives it.")
        lists = {name: tuple(part[name]) for name in ("cycles", "values", "counts")}
        column = Column(**{**part, **lists})
        is_category = column.kind == "category"
        if len(column.values) != len(column.counts) or is_category != bool(column.values):
            raise ModelFileError("The model file's values of a category do not fit their counts.")
        if sum(column.counts) > sizes.n_rows or column.rest > sizes.n_rows:
            raise ModelFileError("The model file counts more rows of a category than the training table had.")
        columns.append(column)
    if sum(len(column.parts) for column in columns) != sizes.n_columns:
        raise ModelFileError("The model file's columns do not fit its sizes.")
    return columns


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
        and (sizes.n_sample_rows == 0 or 2 <= sizes.n_sample_rows <= sizes.n_rows)
        and sizes.n_sample_views <= sizes.n_local_views
        and (sizes.n_sample_views > 0) == (has_local and sizes.n_sample_rows > 0)
        and sizes.n_sample_rows * sizes.n_columns <= max(LARGEST_SAMPLE, 2 * sizes.n_columns * sizes.n_references)
        and sizes.n_columns <= MAX_COLUMNS
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


def _are_names(names: Any, columns: list[Column]) -> bool:
    """A table without names is an array: its columns are numbers, named by their place."""
    if names is None:
        numbers = all(column.kind in ("number", "dropped") for column in columns)
        return numbers and [column.name for column in columns] == [f"column {j}" for j in range(len(columns))]
    return isinstance(names, list) and names == [column.name for column in columns]


def _expected_specs(header: Header, specs: Specs, version: str) -> dict[str, ArraySpec]:
    """Return type and shape of every array. The knots of the CDFs may have any number up to their bound."""
    d, n_rows, m, r, n_global, n_random, n_bandwidths, n_local, n_references, _, *_ = header.sizes
    n_quantiles = min(N_QUANTILES, n_rows) if "quantile" in header.preprocessing else 0
    n_scaled = len(header.preprocessing) * d
    names = ("center", "scale") if version == "1" else ("center", "scale", "shift", "unit")
    expected = {
        **{f"scaling.{name}": ArraySpec(F64, (n_scaled,)) for name in names},
        "scaling.quantiles": ArraySpec(F64, (d, n_quantiles)),
        DIGEST: ArraySpec(np.dtype("u1"), (32,)),
    }
    if version != "1":
        n_sample, n_views, n_calibration = header.sizes[-3:]
        expected |= {
            "encoding.fill": ArraySpec(F64, (d,)),
            "sample.rows": ArraySpec(F64, (n_sample, d)),
            "sample.places": ArraySpec(I32, (n_views, n_references if n_views else 0)),
            "calibration": ArraySpec(F64, (n_calibration,)),
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
    expected |= stream_specs(header.stream, specs, len(header.columns), header.feature_names is not None)
    if n_local:
        expected["local.references"] = ArraySpec(F32, (n_local, r, n_references))
    return expected
