"""Files whose arrays are damaged or forged: an error, or scores in (0, 1)."""

import random
import re
import struct

import numpy as np
import pytest

from rgld import RGLD
from rgld._model.model import GlobalBranch
from rgld._model.views import Views
from rgld._modelfile.checks import check_angles
from rgld.exceptions import ModelFileError

from ..fit.relation_tables import related
from .model_files import (
    LEVERAGE_SETTINGS,
    MIXED_SETTINGS,
    SEEDS,
    SMALL,
    X,
    mixed,
    outcome,
    require_refused,
    signed,
    split,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_accidental_change_is_noticed(path, seed):
    """Flipped, missing, doubled and inserted bytes, anywhere: 600 files."""
    original = path.read_bytes()
    rng = random.Random(seed)
    for _ in range(600):
        content = bytearray(original)
        kind = rng.choice(["flip", "truncate", "insert", "delete", "zero", "swap"])
        at = rng.randrange(len(content))
        if kind == "flip":
            content[at] ^= 1 << rng.randrange(8)
        elif kind == "truncate":
            del content[at:]
        elif kind == "insert":
            content[at:at] = rng.randbytes(rng.randrange(1, 20))
        elif kind == "delete":
            del content[at : at + rng.randrange(1, 20)]
        elif kind == "zero":
            content[at : at + 64] = bytes(len(content[at : at + 64]))
        else:
            other = rng.randrange(len(content))
            content[at], content[other] = content[other], content[at]
        if bytes(content) != original:
            assert outcome(path, bytes(content)) is not None


FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 5e-324, 1e12, -1e12, 1e30, 3e38, 1e300, np.inf, -np.inf, np.nan]
INTEGERS = [0, 1, -1, 2, 5, 7, 2**31 - 1, -(2**31), 2**62]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("model", ["standard", "quantile", "mixed", "leverage", "related"])
def test_signed_changes_of_values_give_an_error_or_finite_scores(tmp_path, model, seed):
    """Any value of any array replaced, with a checksum that fits: 400 files for each kind of model."""
    path = tmp_path / "m.rgld"
    if model == "related":
        RGLD(**SMALL, relations=True, random_state=0).fit(related(300)).save(path)
    elif model == "mixed":
        RGLD(**MIXED_SETTINGS, random_state=0).fit(mixed(60)).save(path)
    elif model == "leverage":
        RGLD(**LEVERAGE_SETTINGS, random_state=0).fit(X).save(path)
    else:
        RGLD(**SMALL, preprocessing=model, random_state=0).fit(X).save(path)
    original = path.read_bytes()
    header, data = split(original)
    start_of_data = len(original) - len(data)
    arrays = {
        name: entry
        for name, entry in header.items()
        if name not in ("__metadata__", "sha256") and 0 not in entry["shape"]
    }
    rng = random.Random(seed)
    errors, said = 0, set()
    for _ in range(400):
        content = bytearray(original)
        for _ in range(rng.choice([1, 1, 2, 5])):
            entry = arrays[rng.choice(list(arrays))]
            code = {"F64": "<d", "F32": "<f", "I64": "<q", "I32": "<i"}[entry["dtype"]]
            start, stop = entry["data_offsets"]
            at = start_of_data + start + struct.calcsize(code) * rng.randrange((stop - start) // struct.calcsize(code))
            (old,) = struct.unpack_from(code, content, at)
            if code in ("<q", "<i"):
                value = rng.choice([*INTEGERS, old + 1, old - 1])
            else:
                value = rng.choice([*FLOATS, old * 1.01, -old, old + 1e-9, old * 1e3])
            try:
                struct.pack_into(code, content, at, value)
            except (struct.error, OverflowError):
                continue
        error = outcome(path, signed(bytes(content)))
        errors += error is not None
        said.update(re.findall(r"array '([\w.]+)'", str(error)))
    assert 100 < errors < 390, "both outcomes must occur, or the test tests nothing"
    assert len(said) > 10, "many arrays must be refused for their values"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scaling.center", np.nan),
        ("scaling.scale", 0.0),
        ("scaling.scale", np.inf),
        ("global.features", 4),
        ("global.features", -1),
        ("global.projection", np.inf),
        ("global.base_bandwidth", 0.0),
        ("global.support_std", -1.0),
        ("global.support_std", 1e-30),
        ("global.mean_embedding", 1e30),
        ("global.frequencies", 3e38),
        ("global.phases", -1.0),
        ("global.multipliers", 0.0),
        ("global.cdf_ranks", 0.99),
        ("global.cdf_ranks", 1.0),
        ("global.cdf_ranks", 0.0),
        ("global.cdf_values", np.nan),
        ("global.cdf_sizes", 0),
        ("global.cdf_sizes", 2**62),
        ("local.references", np.nan),
        ("local.references", 3e38),
        ("local.features", 2**31 - 1),
    ],
)
def test_values_no_fit_can_give(path, name, value):
    require_refused(path, name, 0, value)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("encoding.fill", 0, np.nan),
        ("encoding.fill", 1, np.inf),
        ("sample.rows", 3, np.nan),
        ("sample.rows", 0, -np.inf),
        ("sample.places", 0, -1),
        ("sample.places", 5, 42),
        ("sample.places", 0, 2**31 - 1),
        ("calibration", 0, 0.0),
        ("calibration", 0, np.nan),
        ("calibration", 0, 0.9999),
        ("calibration", 17, 1.5),
        ("scaling.center", 2, np.inf),
        ("scaling.shift", 0, np.nan),
        ("scaling.shift", 0, 1e6),
        ("scaling.unit", 0, 0.0),
        ("scaling.unit", 1, -1.0),
        ("scaling.unit", 1, 1e6),
        ("local.standards", 0, -1.0),
        ("local.standards", 0, np.nan),
        ("local.standards", 0, 0.0),
        ("local.standards", 1, 1e3),
        ("global.standards", 0, 1.0),
        ("local.standards", 1, np.inf),
        ("local.standards", 2, 0.0),
        ("global.standards", 2, -1.0),
        ("global.standards", 4, 1e30),
        ("scaling.quantiles", 0, 1e300),
        ("profile.totals", 0, -1),
        ("profile.totals", 0, 2**62),
        ("profile.n_knots", 0, 0),
        ("profile.n_knots", 0, 2**31 - 1),
        ("profile.knots", 0, np.nan),
        ("profile.knots", 0, 1e300),
        ("profile.counts", 0, 0),
        ("profile.counts", 0, 2**39),
    ],
)
def test_values_no_fit_of_a_mixed_table_can_give(mixed_path, name, place, value):
    require_refused(mixed_path, name, place, value)


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("leverage.scalings", 0, 2),
        ("leverage.scalings", 0, -1),
        ("leverage.projection", 0, np.inf),
        ("leverage.base_bandwidth", 0, 0.0),
        ("leverage.frequencies", 0, 1e5),
        ("leverage.phases", 0, -1.0),
        ("leverage.mean", 0, np.nan),
        ("leverage.root", 0, 1e5),
        ("leverage.root", 0, np.nan),
        ("leverage.root", 1, 0.5),  # above the diagonal
        ("leverage.standards", 0, 0.0),
        ("leverage.standards", 1, 1e3),
        ("leverage.standards", 2, 0.0),
        ("leverage.cdf_ranks", 0, 1.0),
    ],
)
def test_values_no_fit_of_leverage_views_can_give(leverage_path, name, place, value):
    require_refused(leverage_path, name, place, value)


@pytest.mark.parametrize(("n_features", "is_finite"), [(9_000, True), (10_500, False)])
def test_angles_of_far_rows_are_finite(n_features, is_finite):
    """All values are in their ranges. Only in a file of 40 MB do they add up to angles beyond float32."""
    n_dims = 1024
    one = np.ones((1, 1), np.float32)
    branch = GlobalBranch(
        Views(np.zeros((1, n_features), np.int32), np.full((1, n_features, n_dims), 100.0, np.float32)),
        frequencies=np.full((1, 1, n_dims), 10.0, np.float32),
        phases=one,
        base_bandwidth=np.array([1e-15]),
        multipliers=np.array([1e-3]),
        mean_embedding=one[None],
        support_mean=one,
        support_std=one,
    )
    if is_finite:
        check_angles(branch)
    else:
        with pytest.raises(ModelFileError, match=r"'global\.projection' holds values that no fitted model has"):
            check_angles(branch)
