"""Model files for the tests, whole and forged: a forged file has a checksum that fits."""

import hashlib
import json
import struct
import tracemalloc

import numpy as np
import polars as pl
import pytest

from rgld import ModelFileError, load

from ..fit.relation_tables import related

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

LEVERAGE_SETTINGS = {
    **SMALL,
    "global_score": "leverage",
    "preprocessing": ("standard", "arcsinh-standard"),
    "aggregation": "standard",
    "whitening": 0.1,
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
    if "borough" in getattr(detector, "feature_names_in_", ()):
        return mixed_outcome(detector, related(12, 2))
    if hasattr(detector, "feature_names_in_"):
        return mixed_outcome(detector, mixed(12, 2))
    width = detector.n_features_in_
    table = np.concatenate((NEW, NEW * 1e30, np.zeros((1, 4))))
    table = table if width == 4 else np.resize(table, (30, width))
    scores = detector.anomaly_score(table)
    assert np.all((scores > 0) & (scores < 1))
    assert set(detector.predict(table[:3])) <= {-1, 1}
    return None


def mixed_outcome(detector, table):
    """Let a detector of mixed columns say all it can: None, or the error of a table that does not fit it."""
    try:
        scores = detector.anomaly_score(table)
    except ValueError as error:
        return error
    assert np.all((scores > 0) & (scores < 1))
    explanation = detector.explain(table[:4])
    assert np.all(np.isfinite(explanation.contributions)) and np.all(explanation.contributions >= 0)
    assert all(isinstance(reason, str) for i in range(4) for reason in explanation.reasons(i))
    assert all(isinstance(relation.words, str) for relation in detector.relations_)
    if len(detector.model_.calibration):
        p_values = detector.p_values(table)
        assert np.all((p_values > 0) & (p_values <= 1))
    return None


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


def set_columns(header, columns):
    detector = {**json.loads(header["__metadata__"]["detector"]), "columns": columns}
    return {**header, "__metadata__": {**header["__metadata__"], "detector": json.dumps(detector)}}


def set_column(header, name, field, value):
    """Return a header that reads a column in another way."""
    columns = json.loads(header["__metadata__"]["detector"])["columns"]
    return set_columns(header, [{**c, field: value} if c["name"] == name else c for c in columns])


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 5))]
"""Of random changes of files, hundreds for each."""


def refused(path, content):
    """Return the error that a file is refused with, in few words and little memory."""
    tracemalloc.start()
    error = outcome(path, content)
    assert error is not None and len(str(error)) < 400 and "\n" not in str(error)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 * 2**20, "a small file must not take much memory"
    return error


def require_refused(path, name, place, value):
    """Check that a file with another value at a place of an array is refused for that array."""
    content = bytearray(path.read_bytes())
    header, data = split(bytes(content))
    code = {"F64": "<d", "F32": "<f", "I64": "<q", "I32": "<i"}[header[name]["dtype"]]
    start = len(content) - len(data) + header[name]["data_offsets"][0] + place * struct.calcsize(code)
    assert start < len(content) - len(data) + header[name]["data_offsets"][1]
    struct.pack_into(code, content, start, value)
    error = outcome(path, signed(bytes(content)))
    assert repr(name) in str(error) and "\n" not in str(error)
