"""The model file: whole, bit-identical, and safe against any change."""

import hashlib
import json
import os
import random
import re
import struct
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
import safetensors
import safetensors.numpy

import rgld
from rgld import RGLD, ModelFileError, _modelheader, _tensorfile, load

SMALL = {"n_global_views": 2, "n_local_views": 2, "n_random_features": 3, "n_references": 6, "n_neighbors": 2}
X = np.random.default_rng(0).normal(size=(20, 4))
NEW = np.random.default_rng(1).normal(size=(30, 4)) * 3


MIXED_SETTINGS = {
    **SMALL,
    "n_local_views": 4,
    "preprocessing": ("standard", "arcsinh-standard", "quantile"),
    "aggregation": "standard",
    "calibration_fraction": 0.3,
    "columns": {"code": "category"},
}


def mixed(n, seed=0):
    """A table of every kind of column, with gaps."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "amount": [None if rng.random() < 0.2 else rng.lognormal() for _ in range(n)],
            "city": rng.choice(["Oslo", "Rome", "Lima"], n),
            "shop": [None if i == 0 else f"shop {i}" for i in rng.integers(0, 13, n)],
            "when": (1.6e15 + rng.uniform(0, 9e13, n)).astype("M8[us]"),
            "flag": rng.random(n) < 0.3,
            "wait": rng.integers(0, 10**9, n).astype("m8[us]"),
            "code": rng.integers(0, 4, n),
            "row": np.arange(n),
        }
    )


@pytest.fixture
def mixed_path(tmp_path):
    RGLD(**MIXED_SETTINGS, random_state=0).fit(mixed(60)).save(tmp_path / "mixed.rgld")
    return tmp_path / "mixed.rgld"


@pytest.fixture
def path(tmp_path):
    RGLD(**SMALL, random_state=0).fit(X).save(tmp_path / "m.rgld")
    return tmp_path / "m.rgld"


CONFIGURATIONS = {
    "default": {},
    "fast": RGLD.fast().get_params(),
    "quantile": {"preprocessing": "quantile"},
    "robust": {"preprocessing": "robust"},
    "no local branch": {"n_local_views": 0},
    "no global branch": {"n_global_views": 0},
    "all features": {"feature_fraction": 1.0, "bandwidth_multipliers": [0.5], "projection_dim": 3},
    "generator": {"random_state": np.random.RandomState(3), "contamination": 0.1},
    "numpy scalars": {"n_neighbors": np.int64(4), "feature_fraction": np.float32(0.5)},
    "threads": {"n_jobs": 2},
    "plus": RGLD.plus(n_local_views=8).get_params(),
    "standardized": {"aggregation": "standard", "local_weight": 0.7, "feature_fraction": (1.0, 0.5)},
}


@pytest.mark.parametrize("parameters", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
@pytest.mark.parametrize("n", [2, 12, 700])
def test_a_loaded_model_scores_bit_identically(tmp_path, parameters, n):
    rng = np.random.default_rng(0)
    train, new = rng.normal(size=(n, 5)), rng.normal(size=(300, 5)) * 4
    detector = RGLD(**{"random_state": 0, **parameters}).fit(train)
    detector.save(tmp_path / "model.rgld")
    loaded = load(tmp_path / "model.rgld")
    np.testing.assert_array_equal(loaded.anomaly_score(new), detector.anomaly_score(new))
    np.testing.assert_array_equal(loaded.predict(new), detector.predict(new))
    assert loaded.preprocessing_ == detector.preprocessing_
    assert loaded.offset_ == detector.offset_
    assert loaded.n_features_in_ == 5
    skipped = ("random_state", "n_jobs")  # a generator has no text; the reader decides on threads
    expected = {k: v for k, v in detector.get_params().items() if k not in skipped}
    expected["bandwidth_multipliers"] = tuple(expected["bandwidth_multipliers"])
    assert {k: v for k, v in loaded.get_params().items() if k not in skipped} == expected
    assert loaded.n_jobs is None


CHANGES_AFTER_FIT = [
    {"n_neighbors": 3},
    {"bandwidth_multipliers": (1.0, 2.0, 3.0, 4.0)},
    {"n_references": 50},
    {"n_local_views": 3},
    {"n_global_views": 0},
    {"feature_fraction": 1.0, "projection_dim": 9, "preprocessing": "quantile"},
]


@pytest.mark.parametrize("change", CHANGES_AFTER_FIT, ids=str)
def test_what_is_saved_is_the_model_that_was_fitted(tmp_path, change):
    """Parameters changed after the fit do not change the scores, of the detector or of its file."""
    detector = RGLD(random_state=0).fit(X)
    scores = detector.anomaly_score(NEW)
    detector.set_params(**change).save(tmp_path / "m.rgld")
    np.testing.assert_array_equal(detector.anomaly_score(NEW), scores)
    np.testing.assert_array_equal(load(tmp_path / "m.rgld").anomaly_score(NEW), scores)


def test_a_detector_with_bad_parameters_does_not_replace_a_good_file(path):
    before = path.read_bytes()
    with pytest.raises(rgld.ParameterError, match="contamination"):
        RGLD(**SMALL).fit(X).set_params(contamination=7).save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("d", [15, 25, 35])
def test_a_share_in_float32_is_the_share_that_was_meant(tmp_path, d):
    table = np.random.default_rng(0).normal(size=(30, d))
    RGLD(**SMALL, feature_fraction=np.float32(0.3)).fit(table).save(tmp_path / "m.rgld")
    assert load(tmp_path / "m.rgld").anomaly_score(table).shape == (30,)


def test_concurrent_saves_do_not_break_each_other(tmp_path):
    detector = RGLD(**SMALL, random_state=0).fit(X)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: detector.save(tmp_path / "m.rgld"), range(40)))
    np.testing.assert_array_equal(load(tmp_path / "m.rgld").anomaly_score(NEW), detector.anomaly_score(NEW))
    assert os.listdir(tmp_path) == ["m.rgld"]


def test_saving_through_a_link_and_to_a_folder(path, tmp_path):
    os.symlink(path, tmp_path / "link.rgld")
    RGLD(**SMALL, random_state=5).fit(X).save(tmp_path / "link.rgld")
    assert os.path.islink(tmp_path / "link.rgld")
    assert load(path).random_state == 5
    with pytest.raises(IsADirectoryError, match="got a folder"):
        RGLD(**SMALL).fit(X).save(tmp_path)


def test_saving_twice_writes_the_same_bytes(path, tmp_path):
    load(path).save(tmp_path / "again.rgld")
    assert (tmp_path / "again.rgld").read_bytes() == path.read_bytes()


def test_any_safetensors_reader_opens_it_and_finds_the_notice(path):
    arrays = safetensors.numpy.load_file(path)
    assert arrays["local.references"].shape == (2, 5, 6)
    with safetensors.safe_open(path, "numpy") as file:
        assert "contains training rows" in file.metadata()["notice"]
        assert file.metadata()["version"] == "2"


def test_the_size_does_not_grow_with_the_table(tmp_path):
    rng = np.random.default_rng(0)
    for n in (20_000, 60_000):
        RGLD(**SMALL, random_state=0).fit(rng.normal(size=(n, 3))).save(tmp_path / f"{n}.rgld")
    assert os.path.getsize(tmp_path / "60000.rgld") < 1.05 * os.path.getsize(tmp_path / "20000.rgld")


def test_frozen_file_of_version_1():
    """A file written by the first release; it must stay readable, with the scores it had then."""
    folder = os.path.join(os.path.dirname(__file__), "files")
    detector = load(os.path.join(folder, "version-1.rgld"))
    expected = np.loadtxt(os.path.join(folder, "version-1-scores.csv"))
    # Not to the bit: the cosines of another machine may round differently.
    np.testing.assert_allclose(detector.anomaly_score(NEW), expected, atol=1e-4)


def test_a_model_of_a_mixed_table_says_all_it_said_before(mixed_path, tmp_path):
    detector, loaded, new = RGLD(**MIXED_SETTINGS, random_state=0).fit(mixed(60)), load(mixed_path), mixed(90, 1)
    np.testing.assert_array_equal(loaded.anomaly_score(new), detector.anomaly_score(new))
    np.testing.assert_array_equal(loaded.p_values(new), detector.p_values(new))
    one, other = loaded.explain(new), detector.explain(new)
    np.testing.assert_array_equal(one.contributions, other.contributions)
    assert [one.reasons(i) for i in range(9)] == [other.reasons(i) for i in range(9)]
    assert loaded.columns_ == detector.columns_
    assert loaded.columns == {"code": "category"}
    assert {column.kind for column in loaded.columns_} == {
        "number",
        "category",
        "time",
        "boolean",
        "duration",
        "dropped",
    }
    loaded.save(tmp_path / "again.rgld")
    assert (tmp_path / "again.rgld").read_bytes() == mixed_path.read_bytes()


def test_a_crash_while_writing_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        RGLD(**SMALL, random_state=1).fit(X).save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_interrupted_before_the_rename_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        RGLD(**SMALL, random_state=1).fit(X).save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


# Hostile files ------------------------------------------------------------------------------------------------------


def signed(content):
    """Return the file with a checksum that fits: what an attacker, unlike an accident, can produce."""
    body = content[:-32]
    return body + hashlib.sha256(body).digest()


def split(content):
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(header, data):
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return signed(struct.pack("<Q", len(text)) + text + data)


def outcome(path, content):
    """Write and load the content. Return the error, or None if it loaded and gave finite scores."""
    path.write_bytes(content)
    try:
        detector = load(path)
    except ModelFileError as error:
        return error
    if hasattr(detector, "feature_names_in_"):
        return mixed_outcome(detector)
    width = detector.n_features_in_
    table = np.concatenate((NEW, NEW * 1e30, np.zeros((1, 4))))
    table = table if width == 4 else np.resize(table, (30, width))
    scores = detector.anomaly_score(table)
    assert np.all((scores > 0) & (scores < 1))
    assert set(detector.predict(table[:3])) <= {-1, 1}
    return None


def mixed_outcome(detector):
    """Let a detector of mixed columns say all it can: None, or the error of a table that does not fit it."""
    table = mixed(12, 2)
    try:
        scores = detector.anomaly_score(table)
    except ValueError as error:
        return error
    assert np.all((scores > 0) & (scores < 1))
    explanation = detector.explain(table[:4])
    assert np.all(np.isfinite(explanation.contributions)) and np.all(explanation.contributions >= 0)
    assert all(isinstance(reason, str) for i in range(4) for reason in explanation.reasons(i))
    if len(detector.model_.calibration):
        p_values = detector.p_values(table)
        assert np.all((p_values > 0) & (p_values <= 1))
    return None


def test_every_accidental_change_is_noticed(path):
    """Flipped, missing, doubled and inserted bytes, anywhere: 3000 files."""
    original = path.read_bytes()
    rng = random.Random(0)
    for _ in range(3000):
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


@pytest.mark.parametrize("model", ["standard", "quantile", "mixed"])
def test_signed_changes_of_values_give_an_error_or_finite_scores(tmp_path, model):
    """Any value of any array replaced, with a checksum that fits: 2000 files for each kind of model."""
    path = tmp_path / "m.rgld"
    if model == "mixed":
        RGLD(**MIXED_SETTINGS, random_state=0).fit(mixed(60)).save(path)
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
    rng = random.Random(1)
    errors, said = 0, set()
    for _ in range(2000):
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
    assert 500 < errors < 1900, "both outcomes must occur, or the test tests nothing"
    assert len(said) > 10, "many arrays must be refused for their values"


HOSTILE_VALUES = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**400, 1.5, -0.0, 1e308, "", "x" * 1000, "F64", "I8",
    [], [1], [2, 2], [-1, 4], [2**62, 2**62], {}, {"a": 1},
]  # fmt: skip


def mutated(value, rng, depth=0):
    """Return JSON with one place changed."""
    if isinstance(value, dict) and value and (depth == 0 or rng.random() < 0.85):
        key = rng.choice(list(value))
        copy = dict(value)
        if rng.random() < 0.1:
            del copy[key]
        elif rng.random() < 0.05:
            copy[rng.choice(["extra", "", "__metadata__", "sha256"])] = copy[key]
        else:
            copy[key] = mutated(value[key], rng, depth + 1)
        return copy
    if isinstance(value, list) and value and rng.random() < 0.7:
        i = rng.randrange(len(value))
        return [*value[:i], mutated(value[i], rng, depth + 1), *value[i + 1 :]]
    return rng.choice(HOSTILE_VALUES)


@pytest.mark.parametrize("model", ["path", "mixed_path"])
def test_signed_hostile_headers(model, request):
    """Well-formed files whose header or parameters lie: 3000 files for each model."""
    path = request.getfixturevalue(model)
    header, data = split(path.read_bytes())
    rng = random.Random(2)
    errors = 0
    for _ in range(3000):
        changed = header
        for _ in range(rng.choice([1, 1, 2])):
            if rng.random() < 0.5:
                changed = mutated(changed, rng)
            elif isinstance(changed, dict) and isinstance(changed.get("__metadata__"), dict):
                metadata = dict(changed["__metadata__"])
                try:
                    metadata["detector"] = json.dumps(mutated(json.loads(metadata["detector"]), rng))
                except (KeyError, TypeError, ValueError):
                    continue
                changed = {**changed, "__metadata__": metadata}
        errors += outcome(path, joined(changed, data)) is not None
    assert errors > 2500


def set_parameter(header, name, value):
    metadata = dict(header["__metadata__"])
    detector = json.loads(metadata["detector"])
    for part in (detector["sizes"], detector["parameters"], detector):
        if name in part:
            part[name] = value
            break
    else:
        detector[name] = value
    return {**header, "__metadata__": {**metadata, "detector": json.dumps(detector)}}


HOSTILE_FILES = {
    "empty": lambda h, d: b"",
    "seven bytes": lambda h, d: b"1234567",
    "a zip": lambda h, d: b"PK\x03\x04" + bytes(500),
    "a pickle": lambda h, d: b"\x80\x04\x95" + bytes(500),
    "a header longer than the file": lambda h, d: struct.pack("<Q", 2**40) + bytes(100),
    "the longest header length": lambda h, d: b"\xff" * 8 + bytes(100),
    "no header": lambda h, d: joined("", d),
    "not JSON": lambda h, d: joined("{", d),
    "not UTF-8": lambda h, d: signed(struct.pack("<Q", 4) + b"\xff\xfe\x00{" + d),
    "a list": lambda h, d: joined("[]", d),
    "deep nesting": lambda h, d: joined("[" * 200_000, d),
    "deep objects": lambda h, d: joined('{"a":' * 100_000, d),
    "a number of many digits": lambda h, d: joined('{"a":' + "9" * 100_000 + "}", d),
    "NaN in the header": lambda h, d: joined(json.dumps({**h, "x": float("nan")}), d),
    "a repeated name": lambda h, d: joined(json.dumps(h)[:-1] + ',"sha256":{}}', d),
    "another format": lambda h, d: joined({**h, "__metadata__": {**h["__metadata__"], "format": "other"}}, d),
    "a later version": lambda h, d: joined({**h, "__metadata__": {**h["__metadata__"], "version": "3"}}, d),
    "metadata of numbers": lambda h, d: joined({**h, "__metadata__": {"format": 1}}, d),
    "no metadata": lambda h, d: joined({k: v for k, v in h.items() if k != "__metadata__"}, d),
    "overlapping arrays": lambda h, d: joined(
        {**h, "local.references": {**h["local.references"], "data_offsets": [0, 240]}}, d
    ),
    "an array too large for the file": lambda h, d: joined(
        {**h, "local.references": {"dtype": "F32", "shape": [2, 5, 2**40], "data_offsets": [0, 2**43]}}, d
    ),
    "bytes behind the arrays": lambda h, d: joined(h, d + bytes(100)),
    "many views": lambda h, d: joined(set_parameter(h, "n_global_views", 10**9), d),
    "many columns": lambda h, d: joined(set_parameter(h, "n_columns", 10**12), d),
    "many rows": lambda h, d: joined(set_parameter(h, "n_rows", 10**30), d),
    "many random features": lambda h, d: joined(set_parameter(h, "n_random_features", 2**30), d),
    "sizes that contradict each other": lambda h, d: joined(set_parameter(h, "n_neighbors", 6), d),
    "no views": lambda h, d: joined(set_parameter(set_parameter(h, "n_global_views", 0), "n_local_views", 0), d),
    "a float as a size": lambda h, d: joined(set_parameter(h, "n_rows", 20.0), d),
    "a number of many digits as a share": lambda h, d: joined(set_parameter(h, "contamination", 10**400), d),
    "a long text as a choice": lambda h, d: joined(set_parameter(h, "preprocessing", "x" * 10**6), d),
    "an offset out of range": lambda h, d: joined(set_parameter(h, "offset", 7.0), d),
    "a header of many objects": lambda h, d: joined("[" + "{}," * 500_000 + "{}]", d),
    "names for other columns": lambda h, d: joined(set_parameter(h, "feature_names", ["a"]), d),
    "names that are not those of the columns": lambda h, d: joined(set_parameter(h, "feature_names", list("abcd")), d),
    "names that are not text": lambda h, d: joined(set_parameter(h, "feature_names", [1, 2, 3, 4]), d),
    "an unknown parameter": lambda h, d: joined(set_parameter(h, "extra", 1), d),
    "a parameter out of range": lambda h, d: joined(set_parameter(h, "feature_fraction", 7), d),
}  # fmt: skip


def set_columns(header, columns):
    detector = {**json.loads(header["__metadata__"]["detector"]), "columns": columns}
    return {**header, "__metadata__": {**header["__metadata__"], "detector": json.dumps(detector)}}


def set_column(header, name, field, value):
    """Return a header that reads a column in another way."""
    columns = json.loads(header["__metadata__"]["detector"])["columns"]
    return set_columns(header, [{**c, field: value} if c["name"] == name else c for c in columns])


SHOPS = [f"shop {i}" for i in range(1, 13)]

NO_COLUMNS = {
    "none": [],
    "no list": {"amount": "number"},
    "numbers": [1, 2],
    "lists": [[], []],
    "no kinds": [{"name": "amount"}],
    "many": [{}] * 200_000,
    "nothing": None,
}

HOSTILE_COLUMNS = {
    "an unknown kind": ("amount", "kind", "code"),
    "a kind that is a list": ("amount", "kind", ["number"]),
    "a dropped column that has parts": ("amount", "kind", "dropped"),
    "a used column that was dropped": ("row", "kind", "number"),
    "a name that is a number": ("amount", "name", 7),
    "an endless note": ("amount", "note", "x" * 401),
    "a note that is a list": ("amount", "note", []),
    "gaps in all rows": ("amount", "gap_share", 1.0),
    "gaps in fewer than one row": ("amount", "gap_share", 1e-300),
    "gaps in less than no row": ("amount", "gap_share", -0.5),
    "gaps that are a truth value": ("amount", "gap_share", True),
    "gaps that are a whole number": ("amount", "gap_share", 0),
    "no gaps where there is a part for them": ("amount", "gap_share", 0.0),
    "an unknown date format": ("when", "time_format", "%Y" * 100),
    "a date format that is a list": ("when", "time_format", []),
    "an unknown cycle": ("when", "cycles", ["day", "moon"]),
    "a cycle twice": ("when", "cycles", ["day", "day"]),
    "cycles that are a text": ("when", "cycles", "day"),
    "cycles that are lists": ("when", "cycles", [["day"]]),
    "a value twice": ("shop", "values", [*SHOPS[:11], "shop 1", ""]),
    "a long value": ("shop", "values", [*SHOPS, "x" * 201]),
    "values that are numbers": ("shop", "values", list(range(13))),
    "many values": ("shop", "values", [str(i) for i in range(1001)]),
    "more values than counts": ("shop", "values", [*SHOPS, "", "other"]),
    "a category without values": ("shop", "values", []),
    "values of a number": ("amount", "values", ["1"]),
    "a count of nothing": ("shop", "counts", [0] * 13),
    "counts that are truth values": ("shop", "counts", [True] * 13),
    "counts beyond integers": ("shop", "counts", [2**70] * 13),
    "more counts than rows": ("shop", "counts", [40] * 13),
    "counts that are a text": ("shop", "counts", "1" * 13),
    "fewer than none of the rest": ("shop", "rest", -1.0),
    "more of the rest than rows": ("shop", "rest", 1e12),
    "a rest that is a whole number": ("shop", "rest", 1),
    "many sample rows": ("n_sample_rows", 2**31 - 1),
    "no sample rows": ("n_sample_rows", 0),
    "negative sample rows": ("n_sample_rows", -1),
    "more views of samples than views": ("n_sample_views", 5),
    "fewer views of samples": ("n_sample_views", 1),
    "many calibration scores": ("n_calibration", 2**31 - 1),
    "a share of rows to calibrate by": ("calibration_fraction", 7.0),
    "a mixed table without names": ("feature_names", None),
    "names in another order": ("feature_names", [*mixed(2).columns[::-1]]),
    "a reading no one can ask for": ("columns", {"amount": "code"}),
    "readings that are a list": ("columns", ["amount"]),
}


@pytest.mark.parametrize("columns", NO_COLUMNS.values(), ids=NO_COLUMNS.keys())
def test_columns_that_are_none(mixed_path, columns):
    header, data = split(mixed_path.read_bytes())
    refused(mixed_path, joined(set_columns(header, columns), data))


@pytest.mark.parametrize("change", HOSTILE_COLUMNS.values(), ids=HOSTILE_COLUMNS.keys())
def test_hostile_readings_of_columns(mixed_path, change):
    header, data = split(mixed_path.read_bytes())
    changed = set_column(header, *change) if len(change) == 3 else set_parameter(header, *change)
    assert changed != header
    refused(mixed_path, joined(changed, data))


@pytest.mark.parametrize("name", ["encoding.fill", "sample.rows", "sample.places", "calibration", "scaling.shift"])
def test_a_file_without_one_of_its_arrays(mixed_path, name):
    header, data = split(mixed_path.read_bytes())
    start, stop = header[name]["data_offsets"]
    others = {}
    for key, entry in header.items():
        if key not in ("__metadata__", name):
            moved = [at - (stop - start) * (at >= stop) for at in entry["data_offsets"]]
            others[key] = {**entry, "data_offsets": moved}
    content = joined({"__metadata__": header["__metadata__"], **others}, data[:start] + data[stop:])
    assert repr(name) in str(refused(mixed_path, content))


@pytest.mark.parametrize("make", HOSTILE_FILES.values(), ids=HOSTILE_FILES.keys())
def test_hostile_files(path, make):
    refused(path, make(*split(path.read_bytes())))


def test_counts_add_up_to_the_rows_at_most(mixed_path):
    header, data = split(mixed_path.read_bytes())
    city = next(c for c in json.loads(header["__metadata__"]["detector"])["columns"] if c["name"] == "city")
    first, *others = city["counts"]  # these add up to all rows
    assert outcome(mixed_path, joined(set_column(header, "city", "counts", [first - 1, *others]), data)) is None
    error = refused(mixed_path, joined(set_column(header, "city", "counts", [first + 1, *others]), data))
    assert "counts more rows of a category" in str(error)


@pytest.mark.parametrize(
    "change", [{"n_sample_views": 0}, {"n_sample_rows": 0}, {"n_sample_rows": 1}, {"n_sample_rows": 10**4}]
)
def test_samples_that_no_fit_draws(mixed_path, change):
    """Explanations divide by the number of views, and compare with other rows."""
    sizes = json.loads(split(mixed_path.read_bytes())[0]["__metadata__"]["detector"])["sizes"]
    assert sizes["n_local_views"] > 0 and _modelheader._parse_sizes(sizes)
    assert _modelheader._parse_sizes({**sizes, "n_sample_rows": 0, "n_sample_views": 0}), "as in version 1"
    with pytest.raises(ModelFileError, match="sizes that no fitted model has"):
        _modelheader._parse_sizes({**sizes, **change})


@pytest.mark.parametrize("n_columns", [2**20, 5, 0, -1, 4.0, True, None])
def test_a_small_file_of_version_1_that_claims_many_columns(tmp_path, n_columns, monkeypatch):
    """Refused by the shape of an array, before a column is described."""
    with open(os.path.join(os.path.dirname(__file__), "files", "version-1.rgld"), "rb") as file:
        header, data = split(file.read())
    changed = set_parameter(header, "n_columns", n_columns)
    monkeypatch.setattr(_modelheader, "_parse_detector", None)
    assert "sizes that no fitted model has" in str(refused(tmp_path / "m.rgld", joined(changed, data)))


def refused(path, content):
    """Return the error that a file is refused with, in few words and little memory."""
    tracemalloc.start()
    error = outcome(path, content)
    assert error is not None and len(str(error)) < 400 and "\n" not in str(error)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 * 2**20, "a small file must not take much memory"
    return error


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
    ],
)
def test_values_no_fit_of_a_mixed_table_can_give(mixed_path, name, place, value):
    require_refused(mixed_path, name, place, value)


def require_refused(path, name, place, value):
    """Check that a file with another value at a place of an array is refused for that array."""
    content = bytearray(path.read_bytes())
    header, data = split(bytes(content))
    code = {"F64": "<d", "F32": "<f", "I64": "<q", "I32": "<i"}[header[name]["dtype"]]
    start = len(content) - len(data) + header[name]["data_offsets"][0] + place * struct.calcsize(code)
    assert start < len(content) - len(data) + header[name]["data_offsets"][1]
    struct.pack_into(code, content, start, value)
    error = outcome(path, signed(bytes(content)))
    assert name.split(".")[0] in str(error) and "\n" not in str(error)


def test_an_oversized_file_is_not_read(path, monkeypatch):
    monkeypatch.setattr(_tensorfile, "MAX_FILE_BYTES", 1000)
    with pytest.raises(ModelFileError, match="expected at most 1000"):
        load(path)


def test_what_is_not_an_ordinary_file(tmp_path):
    with pytest.raises(ModelFileError, match="not an ordinary file"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.rgld")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not an ordinary file"):
            load(tmp_path / "pipe")


def test_nothing_in_the_package_can_unpickle():
    folder = os.path.dirname(rgld.__file__)
    for directory, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(directory, name)) as file:
                    text = file.read()
                for forbidden in (
                    "import pickle",
                    "allow_pickle=True",
                    "joblib.load",
                    r"(?<![.\w])eval\(",
                    r"(?<![.\w])exec\(",
                ):
                    assert not re.search(forbidden, text), f"{name}: {forbidden}"
