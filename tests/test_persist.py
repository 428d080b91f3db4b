"""The model file: whole, bit-identical, and safe against any change."""

import hashlib
import json
import os
import random
import struct
import tracemalloc

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import rgld
from rgld import RGLD, ModelFileError, _tensorfile, load

SMALL = {"n_global_views": 2, "n_local_views": 2, "n_random_features": 3, "n_references": 6, "n_neighbors": 2}
X = np.random.default_rng(0).normal(size=(20, 4))
NEW = np.random.default_rng(1).normal(size=(30, 4)) * 3


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
    expected = {k: v for k, v in detector.get_params().items() if k != "random_state"}
    assert {k: v for k, v in loaded.get_params().items() if k != "random_state"} == {
        **expected,
        "bandwidth_multipliers": tuple(expected["bandwidth_multipliers"]),
    }


def test_saving_twice_writes_the_same_bytes(path, tmp_path):
    load(path).save(tmp_path / "again.rgld")
    assert (tmp_path / "again.rgld").read_bytes() == path.read_bytes()


def test_any_safetensors_reader_opens_it_and_finds_the_notice(path):
    arrays = safetensors.numpy.load_file(path)
    assert arrays["local.references"].shape == (2, 5, 6)
    with safetensors.safe_open(path, "numpy") as file:
        assert "contains projected training rows" in file.metadata()["notice"]
        assert file.metadata()["version"] == "1"


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
    np.testing.assert_allclose(detector.anomaly_score(NEW), expected, atol=0.02)


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
    width = detector.n_features_in_
    scores = detector.anomaly_score(np.resize(NEW * 1e6, (30, width)) if width != 4 else NEW)
    assert np.all((scores > 0) & (scores < 1))
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


def test_signed_random_changes_give_an_error_or_finite_scores(path):
    """The same with a checksum that fits: 3000 files."""
    original = path.read_bytes()
    rng = random.Random(1)
    errors = 0
    for _ in range(3000):
        content = bytearray(original)
        for _ in range(rng.choice([1, 1, 4, 64])):
            at = rng.randrange(len(content) - 32)
            content[at : at + rng.choice([1, 4, 8])] = rng.choice([b"\xff\xff\x7f\x7f", rng.randbytes(4), b"\x00" * 8])
        errors += outcome(path, signed(bytes(content))) is not None
    assert 0 < errors < 3000, "both outcomes must occur, or the test tests nothing"


HOSTILE_VALUES = [
    None, True, -1, 0, 1, 2**31, 2**63, 2**80, 1.5, -0.0, 1e308, "", "x" * 1000, "F64", "I8",
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


def test_signed_hostile_headers(path):
    """Well-formed files whose header or parameters lie: 3000 files."""
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
    (detector["parameters"] if name in detector["parameters"] else detector)[name] = value
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
    "a later version": lambda h, d: joined({**h, "__metadata__": {**h["__metadata__"], "version": "2"}}, d),
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
    "names for other columns": lambda h, d: joined(set_parameter(h, "feature_names", ["a"]), d),
    "names that are not text": lambda h, d: joined(set_parameter(h, "feature_names", [1, 2, 3, 4]), d),
    "an unknown parameter": lambda h, d: joined(set_parameter(h, "extra", 1), d),
    "a parameter out of range": lambda h, d: joined(set_parameter(h, "feature_fraction", 7), d),
}  # fmt: skip


@pytest.mark.parametrize("make", HOSTILE_FILES.values(), ids=HOSTILE_FILES.keys())
def test_hostile_files(path, make):
    content = make(*split(path.read_bytes()))
    tracemalloc.start()
    assert outcome(path, content) is not None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 * 2**20, "a small file must not take much memory"


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
    content = bytearray(path.read_bytes())
    header, data = split(bytes(content))
    start = len(content) - len(data) + header[name]["data_offsets"][0]
    code = {"F64": "<d", "F32": "<f", "I64": "<q", "I32": "<i"}[header[name]["dtype"]]
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
                for forbidden in ("import pickle", "allow_pickle=True", "joblib.load", "eval(", "exec("):
                    assert forbidden not in text, f"{name}: {forbidden}"
