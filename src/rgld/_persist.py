"""The model file: what of a fitted detector is written, and what a file must hold to be read.

In: a fitted detector, or a path. Out: a file, or `SavedDetector`. The container is `_tensorfile`; this
module knows which arrays a model has, their shapes and their ranges. All shapes follow from the parameters,
the number of columns and the number of training rows, so a header is checked against them before an array is
read. Old versions of the format stay readable: frozen files of each are in the tests.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, Protocol

import numpy as np

from ._model import SMALLEST_BANDWIDTH, SMALLEST_STD, GlobalBranch, LocalBranch, Model
from ._params import CONSTRAINTS, PREPROCESSINGS, check_parameters
from ._preprocess import LARGEST_VALUE, N_QUANTILES, Scaling
from ._ranks import EXACT_CDF_SIZE, BranchRanks, Cdf
from ._tensorfile import DIGEST, Arrays, ArraySpec, Specs, open_tensors, parse_json, write_tensors
from ._views import Views, view_shape
from .exceptions import ModelFileError, ParameterError

FORMAT = "rgld-model"
VERSION = "1"
NOTICE = (
    "This file contains projected training rows (the references of the local branch), column statistics and column "
    "names: treat it as you treat the training table. It contains no code."
)

MAX_ROWS = 2**48
"""More training rows than any table has; beyond, ranks would round to 1."""

F64, F32, I64, I32 = (np.dtype(kind) for kind in ("<f8", "<f4", "<i8", "<i4"))
RANGES = {
    "scaling.center": (-np.finfo(F64).max, np.finfo(F64).max),
    "scaling.scale": (np.finfo(F64).smallest_subnormal, np.finfo(F64).max),
    "scaling.quantiles": (-LARGEST_VALUE, LARGEST_VALUE),
    "projection": (-100.0, 100.0),
    "frequencies": (-10.0, 10.0),
    "phases": (0.0, 6.2832),
    "base_bandwidth": (SMALLEST_BANDWIDTH, 1e15),
    "mean_embedding": (-1.5, 1.5),
    "support_mean": (-3.0, 3.0),
    "support_std": (0.0, 3.0),
    "references": (-1e18, 1e18),
    "cdf_values": (-1e30, 1e30),
    "cdf_ranks": (1e-18, 1.0 - 1e-16),
}
"""Wider than any fit can give, narrow enough that no float32 sum or square of them overflows: a score is
never NaN."""


class FittedDetector(Protocol):
    """What this module needs of a fitted detector."""

    n_features_in_: int
    preprocessing_: str
    offset_: float
    model_: Model

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


@dataclass(frozen=True)
class SavedDetector:
    """A model file's content, checked."""

    parameters: dict[str, Any]
    n_columns: int
    feature_names: list[str] | None
    offset: float
    model: Model


def save_detector(detector: FittedDetector, path: str | PathLike[str]) -> None:
    """Write a fitted detector."""
    names = getattr(detector, "feature_names_in_", None)
    model = detector.model_
    content = {
        "parameters": {name: _plain(value) for name, value in detector.get_params(deep=False).items()},
        "n_columns": int(detector.n_features_in_),
        "n_rows": _any_ranks(model).branch.n_rows,
        "feature_names": None if names is None else [str(name) for name in names],
        "preprocessing": model.scaling.kind,
        "offset": float(detector.offset_),
    }
    metadata = {"format": FORMAT, "version": VERSION, "notice": NOTICE, "detector": json.dumps(content)}
    write_tensors(path, metadata, _arrays_of(model))


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it. A generator given as `random_state` has no such form: the fitted
    model does not need it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, (tuple, list, np.ndarray)):
        return [float(v) for v in value]
    return None


def _any_ranks(model: Model) -> BranchRanks:
    ranks = model.global_ranks or model.local_ranks
    assert ranks is not None, "a model has at least one branch"
    return ranks


def _arrays_of(model: Model) -> Arrays:
    scaling = model.scaling
    arrays: Arrays = {
        "scaling.center": scaling.center,
        "scaling.scale": scaling.scale,
        "scaling.quantiles": scaling.quantiles,
    }
    if model.global_branch is not None and model.global_ranks is not None:
        branch = model.global_branch
        arrays |= _view_arrays("global", branch.views, model.global_ranks)
        arrays |= {f"global.{name}": getattr(branch, name) for name in GLOBAL_ARRAYS}
    if model.local_branch is not None and model.local_ranks is not None:
        arrays |= _view_arrays("local", model.local_branch.views, model.local_ranks)
        arrays["local.references"] = model.local_branch.references
    return arrays


GLOBAL_ARRAYS = ("frequencies", "phases", "base_bandwidth", "mean_embedding", "support_mean", "support_std")


def _view_arrays(branch: str, views: Views, ranks: BranchRanks) -> Arrays:
    cdfs = (*ranks.views, ranks.branch)
    return {
        f"{branch}.features": views.features,
        f"{branch}.projection": views.projection,
        f"{branch}.cdf_sizes": np.array([len(cdf.values) for cdf in cdfs], dtype=np.int64),
        f"{branch}.cdf_values": np.concatenate([cdf.values for cdf in cdfs]),
        f"{branch}.cdf_ranks": np.concatenate([cdf.ranks for cdf in cdfs]),
    }


def load_detector(path: str | PathLike[str]) -> SavedDetector:
    """Read and check a model file.

    Raises
    ------
    ModelFileError
        For a file that is not a whole, unchanged model file of a known version.
    """
    with open_tensors(path) as tensors:
        header = _check_header(tensors.metadata, tensors.specs)
        arrays = tensors.read()
    return _detector_of(header, arrays)


@dataclass(frozen=True)
class Header:
    """The metadata of a model file, checked, with every parameter in range."""

    parameters: dict[str, Any]
    n_columns: int
    n_rows: int
    feature_names: list[str] | None
    preprocessing: str
    offset: float


def _check_header(metadata: Mapping[str, str], specs: Specs) -> Header:
    if metadata.get("format") != FORMAT:
        raise ModelFileError("This is not an RGLD model file: its header names another format or none.")
    if metadata.get("version") != VERSION:
        found = str(metadata.get("version"))[:20]
        raise ModelFileError(
            f"The model file has format version {found!r}, this release reads version {VERSION!r}: "
            "use the release that wrote it, or fit again."
        )
    header = _parse_detector(parse_json(metadata.get("detector", "null")))
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


def _words(spec: ArraySpec) -> str:
    return f"{spec.dtype} of shape {spec.shape}"


def _parse_detector(content: Any) -> Header:
    fields = Header.__dataclass_fields__
    if not isinstance(content, dict) or set(content) != set(fields):
        raise ModelFileError("The model file does not describe a detector.")
    header = Header(**content)
    checks = {
        "n_columns": type(header.n_columns) is int and header.n_columns >= 1,
        "n_rows": type(header.n_rows) is int and 2 <= header.n_rows <= MAX_ROWS,
        "feature_names": header.feature_names is None or _are_names(header.feature_names, header.n_columns),
        "preprocessing": header.preprocessing in PREPROCESSINGS,
        "offset": type(header.offset) is float and math.isfinite(header.offset),
        "parameters": isinstance(header.parameters, dict) and set(header.parameters) == set(CONSTRAINTS),
    }
    for name, holds in checks.items():
        if not holds:
            raise ModelFileError(f"The model file's {name} is not what a detector has.")
    try:
        check_parameters(header.parameters)
    except ParameterError as error:
        raise ModelFileError(f"The model file's parameters are out of range: {error}") from error
    return header


def _are_names(names: Any, n_columns: int) -> bool:
    return isinstance(names, list) and len(names) == n_columns and all(isinstance(name, str) for name in names)


def _expected_specs(header: Header, specs: Specs) -> dict[str, ArraySpec]:
    """Return type and shape of every array. The knots of the CDFs may have any number up to their bound."""
    p, d, n_rows = header.parameters, header.n_columns, header.n_rows
    _, m, r = view_shape(d, p["feature_fraction"], p["min_features"], p["projection_dim"])
    n_quantiles = min(N_QUANTILES, n_rows) if header.preprocessing == "quantile" else 0
    expected = {
        "scaling.center": ArraySpec(F64, (d,)),
        "scaling.scale": ArraySpec(F64, (d,)),
        "scaling.quantiles": ArraySpec(F32, (d, n_quantiles)),
        DIGEST: ArraySpec(np.dtype("u1"), (32,)),
    }
    for branch, n_views in (("global", p["n_global_views"]), ("local", p["n_local_views"])):
        if n_views:
            n_knots = specs.get(f"{branch}.cdf_values", ArraySpec(F64, (0,))).shape[:1]
            if not n_knots or n_knots[0] > (n_views + 1) * EXACT_CDF_SIZE:
                raise ModelFileError(
                    f"The model file's {branch} distributions are larger than any this version writes."
                )
            expected |= {
                f"{branch}.features": ArraySpec(I32, (n_views, m)),
                f"{branch}.projection": ArraySpec(F32, (n_views, m, r)),
                f"{branch}.cdf_sizes": ArraySpec(I64, (n_views + 1,)),
                f"{branch}.cdf_values": ArraySpec(F64, n_knots),
                f"{branch}.cdf_ranks": ArraySpec(F64, n_knots),
            }
    if n_views := p["n_global_views"]:
        n_bandwidths, n_random_features = len(p["bandwidth_multipliers"]), p["n_random_features"]
        expected |= {
            "global.frequencies": ArraySpec(F32, (n_views, n_random_features, r)),
            "global.phases": ArraySpec(F32, (n_views, n_random_features)),
            "global.base_bandwidth": ArraySpec(F64, (n_views,)),
            "global.mean_embedding": ArraySpec(F32, (n_views, n_bandwidths, n_random_features)),
            "global.support_mean": ArraySpec(F32, (n_views, n_bandwidths)),
            "global.support_std": ArraySpec(F32, (n_views, n_bandwidths)),
        }
    if n_views := p["n_local_views"]:
        expected["local.references"] = ArraySpec(F32, (n_views, r, min(p["n_references"], n_rows)))
    return expected


def _detector_of(header: Header, arrays: Arrays) -> SavedDetector:
    p = header.parameters
    _require_ranges(arrays)
    _require("scaling.quantiles", np.diff(arrays["scaling.quantiles"], axis=1) >= 0)
    scaling = Scaling(header.preprocessing, *(arrays[f"scaling.{name}"] for name in ("center", "scale", "quantiles")))
    multipliers = tuple(p["bandwidth_multipliers"])
    global_branch = global_ranks = local_branch = local_ranks = None
    if p["n_global_views"]:
        learned = {name: arrays[f"global.{name}"] for name in GLOBAL_ARRAYS}
        _require("global.support_std", (learned["support_std"] == 0) | (learned["support_std"] > 0.9 * SMALLEST_STD))
        global_branch = GlobalBranch(
            _views_of("global", header, arrays), multipliers=np.array(multipliers, dtype=np.float64), **learned
        )
        global_ranks = _ranks_of("global", header, arrays)
    if p["n_local_views"]:
        references = arrays["local.references"]
        n_neighbors = min(p["n_neighbors"], references.shape[2] - 1)
        local_branch = LocalBranch(_views_of("local", header, arrays), references, n_neighbors)
        local_ranks = _ranks_of("local", header, arrays)
    model = Model(scaling, global_branch, global_ranks, local_branch, local_ranks)
    parameters = {**p, "bandwidth_multipliers": multipliers}
    return SavedDetector(parameters, header.n_columns, header.feature_names, header.offset, model)


def _require(name: str, holds: Any) -> None:
    if not np.all(holds):
        raise ModelFileError(f"The model file's array {name!r} holds values that no fitted model has.")


def _require_ranges(arrays: Arrays) -> None:
    for name, array in arrays.items():
        low, high = RANGES.get(name) or RANGES.get(name.split(".")[-1]) or (-math.inf, math.inf)
        _require(name, (array >= low) & (array <= high))  # false for NaN


def _views_of(branch: str, header: Header, arrays: Arrays) -> Views:
    features = arrays[f"{branch}.features"]
    _require(f"{branch}.features", (features >= 0) & (features < header.n_columns))
    return Views(features, arrays[f"{branch}.projection"])


def _ranks_of(branch: str, header: Header, arrays: Arrays) -> BranchRanks:
    sizes, values, ranks = (arrays[f"{branch}.cdf_{part}"] for part in ("sizes", "values", "ranks"))
    _require(f"{branch}.cdf_sizes", (sizes >= 1) & (sizes <= EXACT_CDF_SIZE))
    _require(f"{branch}.cdf_sizes", sizes.sum() == len(values))
    bounds = np.cumsum(sizes)[:-1]
    cdfs = [Cdf(v, r, header.n_rows) for v, r in zip(np.split(values, bounds), np.split(ranks, bounds), strict=True)]
    for cdf in cdfs:
        _require(f"{branch}.cdf_values", np.diff(cdf.values) > 0)
        _require(f"{branch}.cdf_ranks", np.diff(cdf.ranks) > 0)
    return BranchRanks(tuple(cdfs[:-1]), cdfs[-1])
