"""States as bytes: what comes out is what went in, and nothing else than states can come out."""

import json
import struct
from collections import Counter

import numpy as np
import polars as pl
import pytest

from rgld import RGLD
from rgld._detector import fit_in_passes
from rgld._fit.batches import Batches
from rgld._fit.packing import CLASSES, pack, unpack
from rgld._fit.states import Mergeable
from rgld._table.columns import RawColumn

PARAMETERS = {"n_global_views": 3, "n_local_views": 2, "contamination": 0.1, "random_state": 0}


class PackedBatches(Batches):
    """Batches whose states are packed and unpacked, as on a cluster."""

    def run(self, step):
        state = super().run(step)
        found = unpack(pack(state))
        assert pack(found) == pack(state)
        self.classes = {*getattr(self, "classes", ()), type(state)}
        return found


def frame(n=3000):
    rng = np.random.default_rng(0)
    numbers = {
        "a": rng.normal(size=n),
        "big": rng.integers(2**60, 2**62, n),
        "city": rng.choice(["Bonn", "Köln", None], n),
    }
    return pl.DataFrame(numbers).with_columns(pl.when(pl.col("a") > -2).then("a").alias("a"))


@pytest.mark.parametrize(
    "detector", [RGLD(**PARAMETERS), RGLD.plus(n_local_views=4, contamination=0.1, random_state=0)]
)
@pytest.mark.parametrize("rows", [frame(), frame().select("a").fill_null(0.0).to_numpy()], ids=["frame", "matrix"])
def test_a_fit_by_packed_states_is_the_same_fit(detector, rows):
    parts = [rows[:1000], rows[1000:]]
    expected = RGLD(**detector.get_params()).fit_batches(parts)
    executor = PackedBatches(parts)
    fit_in_passes(detector, executor)
    np.testing.assert_array_equal(detector.anomaly_score(rows), expected.anomaly_score(rows))
    assert detector.offset_ == expected.offset_ and detector.columns_ == expected.columns_


def test_every_state_can_be_packed():
    states = {cls for cls in _below(Mergeable) if cls.__module__.startswith("rgld.")}
    assert states <= set(CLASSES.values())


def _below(cls):
    return {one for own in cls.__subclasses__() for one in ({own} | _below(own))}


@pytest.mark.parametrize(
    "value",
    [
        None,
        (1, 2.5, "x", True, None),
        (float("inf"), -0.0, 2**100),
        "half a character \ud800",
        Counter({"b": 2, "a": 1}),
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.empty((0, 3)),
        np.array([1, None, 2**70], dtype=object),
    ],
)
def test_values_come_back(value):
    found = unpack(pack(value))
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype and found.flags.f_contiguous == value.flags.f_contiguous
        np.testing.assert_array_equal(found, value)
    else:
        assert found == value and type(found) is type(value)


def test_a_column_comes_back_with_its_strings():
    column = RawColumn("x", "text", np.array([0, -1, 1]), ("a", "ü"))
    found = unpack(pack(column))
    assert (found.name, found.kind, found.strings, found.exact) == ("x", "text", ("a", "ü"), None)


@pytest.mark.parametrize("value", [{1, 2}, object(), len, np.array(["x"]), RGLD()])
def test_other_things_are_refused(value):
    with pytest.raises(TypeError, match="cannot be packed"):
        pack(value)


@pytest.mark.parametrize("tree", [{"class": "Popen", "fields": {"args": ["true"]}}, {"class": "object", "fields": {}}])
def test_nothing_but_states_comes_out(tree):
    content = json.dumps(tree).encode()
    with pytest.raises(KeyError):
        unpack(struct.pack("<q", len(content)) + content)
