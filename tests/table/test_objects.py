"""Columns of Python objects, of one kind or of several: a cell reads the same in any company."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from rgld import TableError
from rgld._table.columns import RawColumn, as_strings, join_columns
from rgld._table.encoding import encode_columns
from rgld._table.infer import infer_encoding

from .column_tables import MIDNIGHT, NOON, encoded, learned, objects, raws

CELLS = [
    True, False, np.True_, 0, 1, 2, 2.0, 2.5, -0.0, np.float32(0.1), Decimal("2.50"), 2**53 + 1, 2**60 + 1, 10**30,
    20240304, "x", "True", "2", "2.0", "04/03/2024", "2024-03-04", "NA", "08:30", None, math.nan,
    dt.date(2024, 3, 4), dt.datetime(2024, 3, 4, 12, 30, 15), dt.datetime(2024, 3, 4, 12, 30, 15, 250_001),
    dt.datetime(2024, 3, 4, tzinfo=dt.timezone(dt.timedelta(hours=2))), dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 1, 2, 3, 4),
    dt.timedelta(minutes=10), dt.timedelta(days=-2, microseconds=7), dt.time(8, 30), pd.Timestamp("2024-03-04 01:00"),
]  # fmt: skip


TRAINED = {
    "truth values as a category": ([True, False, True, True], "category"),
    "truth values": ([True, False, True, None], None),
    "numbers": ([1.5, 2.0, None, 9.5], None),
    "numbers without gaps": ([1.5, 2.0, 3.5, 9.5], None),
    "whole numbers as a category": ([1, 2, 2**60 + 1, 2**53 + 1], "category"),
    "times": ([dt.datetime(2024, 1, 1 + i, i) for i in range(9)], None),
    "times as a category": ([dt.datetime(2024, 3, 4, 12, 30, 15, i) for i in (0, 250_001)] * 2, "category"),
    "durations": ([dt.timedelta(hours=i) for i in range(9)], None),
    "durations as a category": ([dt.timedelta(minutes=i) for i in (10, 20)] * 3, "category"),
    "texts of days": ([f"{day:02d}/03/2024" for day in range(1, 29)], None),
    "texts": (["x", "2", "True", "2024-03-04"] * 3, None),
    "texts and objects": (["x", 2, True, dt.datetime(2024, 3, 4), dt.timedelta(minutes=10)] * 3, None),
}


@pytest.mark.parametrize(("values", "asked"), TRAINED.values(), ids=TRAINED.keys())
def test_an_object_reads_the_same_alone_and_beside_any_other(values, asked):
    encoding = learned(objects(values), asked)

    def read(cells):
        columns = raws(objects([*cells, None]))
        beside = RawColumn("beside", "number", np.zeros(len(cells) + 1))
        return encode_columns(encoding, [*columns, beside])[: len(cells)]

    together = read(CELLS)
    for i, cell in enumerate(CELLS):
        np.testing.assert_array_equal(read([cell])[0], together[i], err_msg=repr(cell))
        for other in ("x", 2, True, dt.datetime(2024, 1, 1), dt.timedelta(1), dt.time(1)):
            np.testing.assert_array_equal(read([cell, other])[0], together[i], err_msg=f"{cell!r} beside {other!r}")


def test_what_objects_are_read_as():
    flags = learned(objects([True, False, True, True]), "category").columns[0]
    assert flags.values == ("true", "false")
    numbers = [1.5, 2.0, None, 9.5]
    gap = encoded(objects(numbers))[2]
    for new in ([dt.datetime(2024, 1, 1)] * 2, [dt.datetime(2024, 1, 1), "x"]):
        np.testing.assert_array_equal(encoded(objects(numbers), objects(new)), [gap, gap])
    days = [f"{day:02d}/03/2024" for day in range(1, 29)]
    new = objects([dt.datetime(2024, 3, 4, 12, 30, 15, 250_001), "04/03/2024", "x"])
    np.testing.assert_array_equal(encoded(days, new)[:2, 0], [NOON + 0.250001, MIDNIGHT])


def test_large_integers_keep_their_digits():
    ids = [2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1]
    frames = [
        pl.DataFrame({"c": ids * 3}),
        pl.DataFrame({"c": [str(i) for i in ids] * 3}),
        pl.DataFrame({"c": pl.Series(ids * 3, dtype=pl.UInt64)}),
        pl.DataFrame({"c": pl.Series(ids * 3, dtype=pl.Int128)}),
        pl.DataFrame({"c": ids * 3}).to_arrow(),
        pd.DataFrame({"c": ids * 3}),
        pd.DataFrame({"c": pd.array(ids * 3, dtype="Int64")}),
        objects(ids * 3),
    ]
    expected = tuple(sorted(str(i) for i in ids))
    for frame in frames:
        (raw,) = raws(frame)
        column, _ = infer_encoding(
            [raw, RawColumn("beside", "number", np.arange(12.0) ** 2)], {"c": "category"}
        ).columns
        assert column.values == expected and column.counts == (3, 3, 3, 3)
        assert len({column.place(value) for value in expected}) == 4
        assert column.place(f"0{expected[1]}.0") == 1 and column.place(str(2**53 + 3)) == -1
    (raw,) = raws(pl.DataFrame({"c": [2**53 + 1, None]}))
    assert as_strings(raw)[0].tolist() == [0, -1] and as_strings(raw)[1][0] == str(2**53 + 1)


@pytest.mark.parametrize("nan", ["NaN", "sNaN"])
def test_a_decimal_that_is_no_number_is_missing(nan):
    """Comparing or converting a signaling NaN raises."""
    cells = objects([Decimal("1.5"), Decimal(nan), Decimal(2), Decimal("3.5")])
    np.testing.assert_array_equal(encoded(cells)[:, 0], [1.5, 2.0, 2.0, 3.5])
    words = objects(["x", "y", None] * 3)
    beside_words = encoded(words, objects([Decimal(nan), "x"]))
    np.testing.assert_array_equal(beside_words, encoded(words, objects([None, "x"])))


def test_an_integer_beyond_all_floats_is_infinite():
    with pytest.raises(TableError, match="infinity"):
        encoded(objects([1.5, 2.5, 3.5]), objects([10**5000, 1]))
    assert np.all(np.isfinite(encoded(objects(["x", "y"] * 3), objects([10**5000, "x"]))))


def test_a_time_without_a_zone_counts_as_utc():
    values = [
        dt.datetime(2024, 3, 4, 12, 30, 15),
        dt.datetime(2024, 3, 4, 14, 30, 15, tzinfo=dt.timezone(dt.timedelta(hours=2))),
    ]
    (column,) = raws(pd.DataFrame({"c": pd.Series(values, dtype=object)}))
    assert column.values.tolist() == [NOON, NOON]


def test_dates_and_datetimes_together():
    (column,) = raws(
        pd.DataFrame({"c": pd.Series([dt.date(2024, 3, 4), dt.datetime(2024, 3, 4, 12, 30, 15)], dtype=object)})
    )
    assert column.kind == "time" and column.values.tolist() == [MIDNIGHT, NOON]


def test_python_objects_of_several_kinds_are_texts():
    (column,) = raws(pd.DataFrame({"c": pd.Series([1, 2.0, "x", None, True, 2.5, Decimal("7")], dtype=object)}))
    assert [column.strings[place] if place >= 0 else None for place in column.values] == [
        "1",
        "2",
        "x",
        None,
        "true",
        "2.5",
        "7",
    ]


@pytest.mark.parametrize("dtype", [object, "str"])
@pytest.mark.parametrize("strings", [["\0", "b", None], ["\0", None, "\0"], ["a\0", "a", None]], ids=repr)
def test_null_characters_and_gaps(strings, dtype):
    """pandas fills gaps with a string cut off at its null character, which was then looked up in vain."""
    (column,) = raws(pd.DataFrame({"c": pd.Series(strings, dtype=dtype)}))
    places = column.values.astype(int)
    assert [None if place < 0 else column.strings[place] for place in places] == strings


@pytest.mark.parametrize("other", [1.5, np.inf, -np.inf, np.nan])
def test_large_integers_in_one_part_and_other_numbers_in_another(other):
    """The digits of the other part are those of its whole numbers: 1.5 was taken for 1, and infinity was an error."""
    (one,), (two,) = raws(pl.DataFrame({"c": [2**53 + 1, 7]})), raws(pl.DataFrame({"c": [other, 3.0]}))
    joined = join_columns([one, two])
    assert joined.exact.tolist() == [2**53 + 1, 7, None, 3]
    np.testing.assert_array_equal(joined.values, [2.0**53, 7.0, other, 3.0])
    (gaps,) = raws(pl.DataFrame({"c": pl.Series([None, None], dtype=pl.String)}))
    assert join_columns([one, gaps]).exact.tolist() == [2**53 + 1, 7, None, None]
