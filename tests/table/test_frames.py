"""Columns of Arrow tables that are read without the frame library: the same values, to the bit."""

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest

from rgld import RGLD
from rgld._table import frames

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

NUMBERS = {
    "floats": pa.array([1.5, -0.0, np.nan, 1e308, np.inf]),
    "missing": pa.array([1.5, None, 3.25, None, np.nan]),
    "only missing": pa.array([None] * 5, pa.float64()),
    "float32": pa.array(np.array([0.1, 3e38, -1e-45, np.nan, 7], np.float32)),
    "float16": pa.array(np.array([0.1, 6e4, -1, np.nan, 7], np.float16)),
    "int8": pa.array([1, -128, 127, 0, 5], pa.int8()),
    "uint32": pa.array([1, 2**32 - 1, 0, 7, 5], pa.uint32()),
    "int64": pa.array([1, 2**53 - 1, -(2**53) + 1, 7, 5]),
    "no rows": pa.array([], pa.int64()),
}
NOT_SIMPLE = {
    "long integers": pa.array([1, 2**53, 3]),
    "long uint64": pa.array([1, 2**64 - 1, 3], pa.uint64()),
    "missing integers": pa.array([1, None, 3]),
    "booleans": pa.array([True, False]),
    "strings": pa.array(["1", "2"]),
    "nulls": pa.nulls(3),
}


def cut(column):
    """Return the same column as it may come: whole, in chunks, as a part of a longer one."""
    longer = pa.concat_arrays([column, column, column])
    return [
        pa.chunked_array([column]),
        pa.chunked_array([column.slice(0, 2), column.slice(2, 0), column.slice(2)]),
        pa.chunked_array([longer.slice(len(column), len(column))]),
    ]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_of_the_frame_library(name):
    for column in cut(NUMBERS[name]):
        frame = nw.from_native(pa.table({"x": column}))
        expected = frames._read_column("x", frame["x"])
        (found,) = frames.read_columns(frame, (), ())
        direct = frames._arrow_floats(frame, "x")
        assert direct is not None and direct.dtype == np.float64
        np.testing.assert_array_equal(found.values, expected.values)
        np.testing.assert_array_equal(np.signbit(direct), np.signbit(expected.values))
        assert (found.kind, found.exact) == (expected.kind, expected.exact) == ("number", None)


@pytest.mark.parametrize("name", NOT_SIMPLE)
def test_other_columns_are_left_to_the_frame_library(name):
    assert frames._arrow_floats(nw.from_native(pa.table({"x": NOT_SIMPLE[name]})), "x") is None


def test_unused_columns_are_not_read():
    (column,) = frames.read_columns(nw.from_native(pa.table({"x": NUMBERS["floats"]})), ("x",), ())
    assert np.isnan(column.values).all()


def test_a_few_dates_beyond_the_years_of_python():
    far = pl.Series("when", [9 * 10**18, -9 * 10**18, 0], dtype=pl.Int64).cast(pl.Datetime("us"))
    rows = pl.DataFrame({"when": far, "x": [1.0, 2.0, 3.0]})
    long = pl.concat([rows] * 200)
    detector = RGLD(random_state=0, n_global_views=2, n_local_views=2).fit(long)
    np.testing.assert_array_equal(detector.anomaly_score(rows), detector.anomaly_score(long)[:3])
