"""The model file: what of a fitted detector is written, and what a file must hold to be read.

In: a fitted detector, or a path. Out: a file, or `SavedDetector`. The container is `_tensorfile`, the header
`_modelheader`; this module knows which arrays a model has and the range of their values. Old versions of the
format stay readable: frozen files of each are in the tests.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, Protocol

import numpy as np

from ._encoding import Encoding
from ._model import SMALLEST_BANDWIDTH, SMALLEST_STD, GlobalBranch, LocalBranch, Model, Sample
from ._modelheader import FORMAT, NOT_SAVED, VERSION, Header, Sizes, check_header
from ._params import check_parameters
from ._preprocess import LARGEST_RAW_VALUE, LARGEST_VALUE, Scaling
from ._ranks import EXACT_CDF_SIZE, SMALLEST_SCALE, BranchRanks, Cdf
from ._stream import Stream
from ._streamfile import describe_stream, stream_arrays, stream_of
from ._tensorfile import Arrays, open_tensors, write_tensors
from ._views import Views
from .exceptions import ModelFileError

NOTICE = (
    "This file contains training rows (the references of the local branch), column statistics, column names and values "
    "of categories: treat it as you treat the training table. It contains no code."
)

LARGEST_ANGLE = 1e37
"""Angles of random features, at the largest scaled values and the smallest bandwidth: below float32's infinity."""

LARGEST_LOGARITHM = 100.0
"""Logarithms of distances: wider than those of the smallest bandwidth and of the farthest reference."""

RANGES = {
    "encoding.fill": (-np.finfo(np.float64).max, np.finfo(np.float64).max),
    "sample.rows": (-np.finfo(np.float64).max, np.finfo(np.float64).max),
    "calibration": (1e-18, 1.0),
    "scaling.center": (-np.finfo(np.float64).max, np.finfo(np.float64).max),
    "scaling.scale": (np.finfo(np.float64).smallest_subnormal, np.finfo(np.float64).max),
    "scaling.shift": (-1e3, 1e3),
    "scaling.unit": (1e-12, 1e3),
    "scaling.quantiles": (-LARGEST_RAW_VALUE, LARGEST_RAW_VALUE),
    "projection": (-100.0, 100.0),
    "frequencies": (-10.0, 10.0),
    "phases": (0.0, 6.2832),
    "base_bandwidth": (SMALLEST_BANDWIDTH, 1e15),
    "multipliers": (1e-3, 1e3),
    "mean_embedding": (-1.5, 1.5),
    "support_mean": (-3.0, 3.0),
    "support_std": (0.0, 3.0),
    "references": (-1e17, 1e17),
    "standards": (-1e18, 1e18),
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
    _stream: Stream | None

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...


@dataclass(frozen=True)
class SavedDetector:
    """A model file's content, checked."""

    parameters: dict[str, Any]
    feature_names: list[str] | None
    offset: float
    model: Model
    stream: Stream | None


def save_detector(detector: FittedDetector, path: str | PathLike[str]) -> None:
    """Write a fitted detector: its model as it was fitted, and its parameters as they are now."""
    names = getattr(detector, "feature_names_in_", None)
    model = detector.model_
    parameters = detector.get_params(deep=False)
    check_parameters(parameters)
    content = {
        "parameters": {name: _plain(value) for name, value in parameters.items() if name not in NOT_SAVED},
        "sizes": _sizes_of(model)._asdict(),
        "columns": [asdict(column) for column in model.encoding.columns],
        "feature_names": None if names is None else [str(name) for name in names],
        "preprocessing": list(model.scaling.kinds),
        "aggregation": "standard" if _standardized(model) else "rank",
        "local_weight": model.local_weight,
        "offset": float(detector.offset_),
        "stream": describe_stream(detector._stream),
    }
    metadata = {"format": FORMAT, "version": VERSION, "notice": NOTICE, "detector": json.dumps(content)}
    write_tensors(path, metadata, {**_arrays_of(model), **stream_arrays(detector._stream)})


def _standardized(model: Model) -> bool:
    ranks = model.global_ranks or model.local_ranks
    return ranks is not None and len(ranks.standards) > 0


def _sizes_of(model: Model) -> Sizes:
    branch, local = model.global_branch, model.local_branch
    views, ranks = (branch.views, model.global_ranks) if branch else (local.views, model.local_ranks)  # type: ignore[union-attr]
    assert ranks is not None, "a branch has ranks"
    return Sizes(
        n_columns=model.scaling.n_inputs,
        n_rows=ranks.branch.n_rows,
        n_features=views.features.shape[1],
        projection_dim=views.projection.shape[2],
        n_global_views=len(branch.phases) if branch else 0,
        n_random_features=branch.phases.shape[1] if branch else 0,
        n_bandwidths=len(branch.multipliers) if branch else 0,
        n_local_views=len(local.references) if local else 0,
        n_references=local.references.shape[2] if local else 0,
        n_neighbors=local.n_neighbors if local else 0,
        n_sample_rows=len(model.sample.rows),
        n_sample_views=len(model.sample.places),
        n_calibration=len(model.calibration),
    )


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
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(v) for name, v in value.items()}
    return None


def _arrays_of(model: Model) -> Arrays:
    scaling = model.scaling
    arrays: Arrays = {f"scaling.{name}": getattr(scaling, name) for name in SCALING_ARRAYS}
    arrays |= {
        "encoding.fill": model.encoding.fill,
        "sample.rows": model.sample.rows,
        "sample.places": model.sample.places,
        "calibration": model.calibration,
    }
    if model.global_branch is not None and model.global_ranks is not None:
        branch = model.global_branch
        arrays |= _view_arrays("global", branch.views, model.global_ranks)
        arrays |= {f"global.{name}": getattr(branch, name) for name in GLOBAL_ARRAYS}
    if model.local_branch is not None and model.local_ranks is not None:
        arrays |= _view_arrays("local", model.local_branch.views, model.local_ranks)
        arrays["local.references"] = model.local_branch.references
    return arrays


SCALING_ARRAYS = ("center", "scale", "shift", "unit", "quantiles")
GLOBAL_ARRAYS = (
    "frequencies",
    "phases",
    "base_bandwidth",
    "multipliers",
    "mean_embedding",
    "support_mean",
    "support_std",
)


def _view_arrays(branch: str, views: Views, ranks: BranchRanks) -> Arrays:
    cdfs = ranks.cdfs
    standards = {f"{branch}.standards": ranks.standards} if len(ranks.standards) else {}
    return {
        **standards,
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
        header = check_header(tensors.metadata, tensors.specs)
        arrays = tensors.read()
    return _detector_of(header, arrays)


def _detector_of(header: Header, arrays: Arrays) -> SavedDetector:
    sizes = header.sizes
    _require_ranges(arrays)
    _require("scaling.quantiles", np.diff(arrays["scaling.quantiles"], axis=1) >= 0)
    if "scaling.shift" not in arrays:  # version 1 had no scaling with these
        arrays["scaling.shift"] = np.zeros_like(arrays["scaling.center"])
        arrays["scaling.unit"] = np.ones_like(arrays["scaling.center"])
    scaling = Scaling(tuple(header.preprocessing), *(arrays[f"scaling.{name}"] for name in SCALING_ARRAYS))
    global_branch = global_ranks = local_branch = local_ranks = None
    if sizes.n_global_views:
        learned = {name: arrays[f"global.{name}"] for name in GLOBAL_ARRAYS}
        _require("global.support_std", (learned["support_std"] == 0) | (learned["support_std"] > 0.9 * SMALLEST_STD))
        global_branch = GlobalBranch(_views_of("global", header, arrays), **learned)
        largest_angle = np.abs(global_branch.directions).max() * sizes.n_features * LARGEST_VALUE
        _require("global.projection", largest_angle / learned["multipliers"].min() < LARGEST_ANGLE)
        global_ranks = _ranks_of("global", header, arrays)
    if sizes.n_local_views:
        local_branch = LocalBranch(_views_of("local", header, arrays), arrays["local.references"], sizes.n_neighbors)
        local_ranks = _ranks_of("local", header, arrays)
    if "encoding.fill" not in arrays:  # version 1 knew no gaps and kept no rows
        arrays["encoding.fill"] = arrays["scaling.center"]
        arrays["sample.rows"] = np.empty((0, sizes.n_columns))
        arrays["sample.places"] = np.empty((0, 0), np.int32)
        arrays["calibration"] = np.empty(0)
    places = arrays["sample.places"]
    _require("sample.places", (places >= 0) & (places < sizes.n_sample_rows))
    _require("calibration", np.diff(arrays["calibration"]) >= 0)
    model = Model(
        Encoding(tuple(header.columns), arrays["encoding.fill"], sizes.n_rows),
        scaling,
        global_branch,
        global_ranks,
        local_branch,
        local_ranks,
        header.local_weight,
        Sample(arrays["sample.rows"], places),
        arrays["calibration"],
    )
    parameters = {name: tuple(v) if isinstance(v, list) else v for name, v in header.parameters.items()}
    stream = stream_of(header.stream, arrays, header.feature_names)
    return SavedDetector(parameters, header.feature_names, header.offset, model, stream)


def _require(name: str, holds: Any) -> None:
    if not np.all(holds):
        raise ModelFileError(f"The model file's array {name!r} holds values that no fitted model has.")


def _require_ranges(arrays: Arrays) -> None:
    for name, array in arrays.items():
        if name.startswith("stream."):  # may have gaps; checked where it is put together
            continue
        low, high = RANGES.get(name) or RANGES.get(name.split(".")[-1]) or (-math.inf, math.inf)
        _require(name, (array >= low) & (array <= high))  # false for NaN


def _views_of(branch: str, header: Header, arrays: Arrays) -> Views:
    features = arrays[f"{branch}.features"]
    _require(f"{branch}.features", (features >= 0) & (features < len(header.preprocessing) * header.sizes.n_columns))
    return Views(features, arrays[f"{branch}.projection"])


def _ranks_of(branch: str, header: Header, arrays: Arrays) -> BranchRanks:
    sizes, values, ranks = (arrays[f"{branch}.cdf_{part}"] for part in ("sizes", "values", "ranks"))
    _require(f"{branch}.cdf_sizes", (sizes >= 1) & (sizes <= EXACT_CDF_SIZE))
    _require(f"{branch}.cdf_sizes", sizes.sum() == len(values))
    bounds = np.cumsum(sizes)[:-1]
    cdfs = [
        Cdf(v, r, header.sizes.n_rows) for v, r in zip(np.split(values, bounds), np.split(ranks, bounds), strict=True)
    ]
    for cdf in cdfs:
        _require(f"{branch}.cdf_values", np.diff(cdf.values) > 0)
        _require(f"{branch}.cdf_ranks", np.diff(cdf.ranks) > 0)
    standards = arrays.get(f"{branch}.standards")
    if standards is not None:
        smallest, center, scale = standards.T
        # A local view's distances have logarithms, a global view's scores are as they are.
        fitting = (smallest > 0) & (np.abs(center) <= LARGEST_LOGARITHM) if branch == "local" else smallest == 0
        _require(f"{branch}.standards", fitting & (scale >= 0.9 * SMALLEST_SCALE))
    return BranchRanks(cdfs, standards)
