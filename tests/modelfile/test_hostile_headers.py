"""Files whose header lies, with a checksum that fits: refused in few words and little memory."""

import json
import os
import random
import struct

import pytest

from rgld import ModelFileError
from rgld._modelfile import sizes as modelsizes

from .model_files import SEEDS, joined, mixed, outcome, refused, set_column, set_columns, set_parameter, signed, split

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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("model", ["path", "mixed_path"])
def test_signed_hostile_headers(model, seed, request):
    """Well-formed files whose header or parameters lie: 600 files for each model."""
    path = request.getfixturevalue(model)
    header, data = split(path.read_bytes())
    rng = random.Random(seed)
    errors = 0
    for _ in range(600):
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
    assert errors > 500


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
    "a later version": lambda h, d: joined({**h, "__metadata__": {**h["__metadata__"], "version": "6"}}, d),
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
    "an endless hint": ("amount", "hint", "x" * 401),
    "endless values that mean missing": ("amount", "na_values", [str(i) for i in range(101)]),
    "values that mean missing that are numbers": ("amount", "na_values", [-200]),
    "unread values that are a truth value": ("amount", "n_unread", True),
    "a comma that is a number": ("amount", "decimal_comma", 1),
    "an endless unit": ("amount", "unit", "k" * 100),
    "one training date": ("when", "date_knots", [1.7e9]),
    "training dates in no order": ("when", "date_knots", [1.7e9, 1.6e9, 1.8e9]),
    "equal training dates": ("when", "date_knots", [1.7e9] * 3),
    "training dates beyond time": ("when", "date_knots", [0.0, 1e300]),
    "training dates of a number": ("amount", "date_knots", [0.0, 1.0]),
    "many training dates": ("when", "date_knots", [float(i) for i in range(1000)]),
    "an end before the training dates": ("when", "natural_until", 0.0),
    "one fraction of far dates": ("when", "far_shares", [0.0]),
    "all dates are far": ("when", "far_shares", [0.0, 1.0]),
    "far dates of a number": ("amount", "far_shares", [0.0, 0.0]),
    "a gap that is no number": ("when", "gap_value", "far"),
    "a field that no column has": ("amount", "code", 1),
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
    assert sizes["n_local_views"] > 0 and modelsizes.parse_sizes(sizes)
    assert modelsizes.parse_sizes({**sizes, "n_sample_rows": 0, "n_sample_views": 0}), "as in version 1"
    with pytest.raises(ModelFileError, match="sizes that no fitted model has"):
        modelsizes.parse_sizes({**sizes, **change})


@pytest.mark.parametrize("n_columns", [2**20, 5, 0, -1, 4.0, True, None])
def test_a_small_file_of_version_1_that_claims_many_columns(tmp_path, n_columns, monkeypatch):
    """Refused by the shape of an array, before a column is described."""
    with open(os.path.join(os.path.dirname(__file__), "..", "files", "version-1.rgld"), "rb") as file:
        header, data = split(file.read())
    changed = set_parameter(header, "n_columns", n_columns)
    monkeypatch.setattr("rgld._modelfile.header.numeric_columns", None)
    error = str(refused(tmp_path / "m.rgld", joined(changed, data)))
    assert "sizes that no fitted model has" in error or "array 'scaling.center' is" in error
