"""What a column is, decided from the training rows. The rules are in docs/tables.md."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from rgld import RGLD, TableError

from .column_tables import FLOATS, days, learned, reading

KINDS = {
    "floats": (FLOATS, "number"),
    "integers": (np.arange(30) % 9, "number"),
    "unsigned": ((np.arange(30) % 9).astype(np.uint8), "number"),
    "decimals": ([Decimal(str(x)) for x in FLOATS], "number"),
    "booleans": (FLOATS > 0, "boolean"),
    "texts": (["x", "y", "z"] * 10, "category"),
    "texts of numbers": ([str(x) for x in FLOATS], "number"),
    "texts of prices": ([f"${1000 + i * 17.5:,.2f}" for i in range(30)], "number"),
    "texts of shares": ([f"{x}%" for x in FLOATS], "number"),
    "texts of truth values": (["True", "FALSE", "true"] * 10, "boolean"),
    "texts of truth values and others": (["True", "False", "unknown"] * 10, "category"),
    "texts of dates": ([f"{i % 28 + 1:02d}.05.2024" for i in range(30)], "time"),
    "texts of times of day": ([f"{i % 24:02d}:30" for i in range(30)], "duration"),
    "dates": ([dt.date(2024, 1, 1 + i % 28) for i in range(30)], "time"),
    "datetimes": ([dt.datetime(2024, 1, 1, i % 24) for i in range(30)], "time"),
    "durations": ([dt.timedelta(hours=i % 7) for i in range(30)], "duration"),
    "times of day": ([dt.time(i % 24, 30) for i in range(30)], "duration"),
    "enumerations": (pl.Series(["x", "y", "z"] * 10, dtype=pl.Enum(["x", "y", "z"])), "category"),
    "categories": (pl.Series(["x", "y", "z"] * 10, dtype=pl.Categorical), "category"),
    "categories that look like numbers": (pl.Series(["1", "2", "3"] * 10, dtype=pl.Categorical), "category"),
    "a constant": ([7] * 30, "dropped"),
    "a constant text": (["x"] * 30, "dropped"),
    "a constant date": ([dt.date(2024, 1, 1)] * 30, "dropped"),
    "a constant truth value": ([True] * 30, "dropped"),
    "nothing": ([None] * 30, "dropped"),
    "NaN": ([math.nan] * 30, "dropped"),
    "row numbers": (range(30), "dropped"),
    "row numbers with holes": (range(100, 159, 2), "dropped"),
    "ids": ([f"u{i}" for i in range(30)], "dropped"),
    "twenty row numbers": (range(20), "dropped"),
    "fewer whole numbers": (range(19), "number"),
    "a category with gaps": (["x", None, "z"] * 10, "category"),
    "one value and gaps": (["x", None, None] * 10, "category"),
    "one number and gaps": ([7, None, None] * 10, "number"),
}


@pytest.mark.parametrize(("values", "kind"), KINDS.values(), ids=KINDS.keys())
def test_what_a_column_is(values, kind):
    column = reading(values)
    assert column.kind == kind
    assert (column.note != "") == (kind == "dropped")


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([7] * 30, "it is constant"),
        ([None] * 30, "all its values are missing"),
        (range(30), "it numbers the rows"),
        ([f"u{i}" for i in range(30)], "it is an id or free text: 30 values in 30 rows"),
    ],
)
def test_a_dropped_column_says_why(values, note):
    assert reading(values).note == note
    assert learned(values).columns[0].parts == ()


@pytest.mark.parametrize(
    "name",
    ["id", "user_id", "userId", "CustomerID", "order key", "UUID", "uid", "user_uid", "userUID", "x-guid", "pk.Key"],
)
def test_whole_numbers_under_the_name_of_an_id_are_ids(name, rng):
    values = rng.choice(10**6, 50, replace=False)
    assert reading(values, name=name).note == "it is an id: all its values are different"
    assert reading(np.append(values[1:], values[1]), name=name).kind == "dropped", "hardly any value twice"
    assert reading(np.repeat(values, 4), name=name).kind == "category", "values that repeat: a code"
    assert reading(values + 0.5, name=name).kind == "number", "fractions: no id"


@pytest.mark.parametrize("name", ["paid", "humid", "grid", "bid", "valid", "monkey", "liquid", "identity", "PAID", "c"])
def test_other_names_make_no_ids(name, rng):
    assert reading(rng.choice(10**6, 50, replace=False), name=name).kind == "number"


def test_nine_values_in_ten_decide():
    texts = [str(i * 1.5) for i in range(9)]
    column = reading([*texts, "unknown"])
    assert column.kind == "number" and column.gap_share == 0.1
    assert column.note == "1 value is not a number and counts as missing: 'unknown'"
    assert reading([*texts[1:], "unknown", "x"] * 3).kind == "category"
    assert reading([*["2024-05-01", "2024-05-02", "2024-05-03"] * 3, "soon"]).note.startswith("1 value is not a date")
    assert reading([None] * 90 + [*texts, "unknown"]).kind == "number", "of the values, not of the rows"


def test_a_text_column_with_many_numbers_says_so():
    mostly = [*[str(i * 1.5) for i in range(6)], "x", "y", "z", "w"] * 3
    assert reading(mostly).note == "60 % of its values are numbers: it can be read as 'number'"
    assert reading(mostly, "number").kind == "number"
    assert reading([*["1", "2"] * 4, *"abcdefghi"] * 3).note == "", "fewer than half"
    ids = [f"{i}" if i % 2 else f"{i}x" for i in range(40)]
    column = reading(ids)
    assert column.kind == "dropped"
    assert column.note == (
        "it is an id or free text: 40 values in 40 rows; 50 % of its values are numbers: it can be read as 'number'"
    )


def test_texts_that_differ_late_are_not_called_constant():
    column = reading(["x" * 200 + str(i) for i in range(30)])
    assert column.kind == "dropped" and column.note == "its texts are equal in their first 200 characters"
    assert reading(["x" * 199] * 30).note == "it is constant"


def test_a_note_stays_short_whatever_the_text():
    column = reading([*[str(i) for i in range(0, 60, 3)], "\U000e0001" * 500])
    assert column.kind == "number" and len(column.note) < 200


def test_what_a_user_asks_for():
    numbers = [1, 2, 3] * 10
    assert reading(numbers, "category").values == ("1", "2", "3")
    assert reading(numbers, "drop").note == "you asked to drop it"
    assert reading(range(30), "number").kind == "number", "row numbers after all"
    assert reading([7] * 30, "number").kind == "number"
    assert reading(["7"] * 30, "category").counts == (30,)
    assert reading([f"u{i}" for i in range(30)], "category").kind == "category"
    assert reading(["1.5", "x", "y", "z"] * 9, "number").note.startswith("27 values are not numbers")
    assert reading(["2024-05-01", "x", "y", "z"] * 9, "time").note.startswith("27 values are not dates")
    assert reading([f"202405{i + 1:02d}" for i in range(9)] * 2, "time").kind == "time"
    assert reading(pl.Series(["1", "2", "3"] * 9, dtype=pl.Categorical), "number").kind == "number"
    assert reading([None] * 9, "category").note == "all its values are missing"
    assert reading([True, False] * 9, "number").kind == reading(["true", "False"] * 9, "number").kind == "number"


@pytest.mark.parametrize(
    ("values", "asked", "message"),
    [
        ([1, 2, 3], "time", "Column 'c' holds numbers, which cannot be read as times"),
        (["x", "y"], "number", "Column 'c' holds no numbers, only text such as 'x'"),
        ([dt.date(2024, 1, 1 + i) for i in range(9)], "number", "holds dates, which cannot be read as numbers"),
        (["2024-01-01", "2024-01-02"], "number", "Column 'c' holds no numbers"),
        ([dt.timedelta(i) for i in range(9)], "number", "holds durations, which cannot be read as numbers"),
        ([dt.timedelta(i) for i in range(9)], "time", "holds durations, which cannot be read as times"),
        ([True, False], "time", "holds true/false values, which cannot be read as times"),
        (["x", "y"], "time", "Column 'c' holds no dates, only text such as 'x'"),
    ],
)
def test_what_a_column_cannot_be(values, asked, message):
    with pytest.raises(TableError, match=message):
        learned(values, asked)


def test_a_reading_of_a_column_that_is_not_there():
    with pytest.raises(TableError, match="There is no column 'amuont' to read as 'number'"):
        RGLD(columns={"amuont": "number"}).fit(pl.DataFrame({"amount": FLOATS}))


def test_large_integers_that_are_ids(rng):
    close = 2**60 + np.arange(30)
    assert reading(close).note == "it numbers the rows"
    pairs = np.concatenate([rng.choice(2**62, 20, replace=False) // 2 * 2 + one for one in (0, 1)])
    assert reading(pairs, name="user_id").note == "it is an id: all its values are different"
    assert reading(pairs, name="amount").kind == "number"
    assert reading([*close[1:], close[1]]).note == "its values are equal as floats"
    assert reading([2**60 + 1] * 30).note == "it is constant"
    assert reading([*close, None]).kind == "number"


@pytest.mark.parametrize(
    ("values", "cycles"),
    [
        (days(20), ()),
        (days(40), ("week",)),
        (days(40, 7), ()),
        (days(40, hour=5), ("week",)),
        ([day + dt.timedelta(hours=i % 24) for i, day in enumerate(days(20))], ("day",)),
        ([day + dt.timedelta(hours=i % 24) for i, day in enumerate(days(40))], ("day", "week")),
        ([day + dt.timedelta(hours=i % 24) for i, day in enumerate(days(800))], ("day", "week", "year")),
        (days(800, 7), ("year",)),
    ],
)
def test_cycles_that_times_go_through(values, cycles):
    assert reading(values).cycles == cycles


def test_one_mistyped_year_makes_no_seasons():
    assert reading([*days(200), dt.datetime(2220, 1, 1)]).cycles == ("week",)
