"""How columns are read: cell by cell, what a column is, what numbers it becomes. The rules are in docs/tables.md."""

import datetime as dt
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from rgld import RGLD, TableError, _cells
from rgld._encoding import Encoding, as_texts, encode
from rgld._reading import fit_encoding
from rgld._table import read_table
from rgld.report._axes import time_ticks

RNG = np.random.default_rng(0)
NOON = dt.datetime(2024, 3, 4, 12, 30, 15, tzinfo=dt.UTC).timestamp()
MIDNIGHT = dt.datetime(2024, 3, 4, tzinfo=dt.UTC).timestamp()


# Cells ----------------------------------------------------------------------------------------------------------------

NUMBERS = {
    "12": 12.0,
    " 7 ": 7.0,
    "-1.5e3": -1500.0,
    "+.5": 0.5,
    "3.": 3.0,
    "1,234.50": 1234.5,
    "-12,345,678": -12345678.0,
    "$5": 5.0,
    "-$5.25": -5.25,
    "$ -5": -5.0,
    "€ 1,000": 1000.0,
    "5 €": 5.0,
    "£3": 3.0,
    "¥400": 400.0,
    "12%": 12.0,
    "-0.5 %": -0.5,
    "(5)": -5.0,
    "($1,250.50)": -1250.5,
    "1'234": 1234.0,
    "1’234’567.5": 1234567.5,
    "1 234": 1234.0,
    "-1\u00a0234.5": -1234.5,
    "inf": math.inf,
    "-Infinity": -math.inf,
    "1e999": math.inf,
}
NO_NUMBERS = [
    "", " ", "abc", "12abc", "1,23", "1,2345", "1.234,5", "12,5", "--5", "1_000", "٣", "0x10", "1 2", "$", "%", "-",
    "+", "(-5)", "(5", "()", "((5))", "-(5)", "1'23", "1 234,567", "1e", "e5", "nan", "1.2.3", "infinit", "12:30",
]  # fmt: skip


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_texts_that_are_numbers(text, number):
    assert _cells.read_numbers([text])[0] == number


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_texts_that_are_no_numbers(text):
    assert math.isnan(_cells.read_numbers([text])[0])


@settings(deadline=None)
@given(st.floats(allow_nan=False))
def test_every_number_reads_back_to_the_bit(number):
    assert _cells.read_numbers([repr(number)])[0] == number


TIMES = {
    ("2024-03-04", "ISO 8601"): MIDNIGHT,
    (" 2024-03-04 12:30:15 ", "ISO 8601"): NOON,
    ("2024-03-04T12:30:15Z", "ISO 8601"): NOON,
    ("2024-03-04T14:30:15+02:00", "ISO 8601"): NOON,
    ("2024-03-04 12:30:15.250001", "ISO 8601"): NOON + 0.250001,
    ("03/04/2024", "MM/DD/YYYY"): MIDNIGHT,
    ("3/4/2024 12:30:15", "MM/DD/YYYY"): NOON,
    ("3/4/2024 12:30", "MM/DD/YYYY"): NOON - 15,
    ("3/4/2024 12:30:15 PM", "MM/DD/YYYY"): NOON,
    ("3/4/2024 12:30:15 am", "MM/DD/YYYY"): NOON - 43_200,
    ("3/4/2024 1:30:15pm", "MM/DD/YYYY"): NOON + 3600,
    ("03/04/2024 12:30:15.25", "MM/DD/YYYY"): NOON + 0.25,
    ("04/03/2024", "DD/MM/YYYY"): MIDNIGHT,
    ("4.3.2024 12:30:15", "DD.MM.YYYY"): NOON,
    ("2024/03/04", "YYYY/MM/DD"): MIDNIGHT,
    ("04-03-2024 12:30:15", "DD-MM-YYYY"): NOON,
    ("4 Mar 2024", "DD Mon YYYY"): MIDNIGHT,
    ("04 MAR 2024 12:30:15", "DD Mon YYYY"): NOON,
    ("1969-12-31 23:59:59.5", "ISO 8601"): -0.5,
    ("0001-01-01", "ISO 8601"): -62_135_596_800.0,
}
NO_TIMES = {
    "ISO 8601": ["2024-13-01", "2023-02-29", "2024-03-04 24:01", "12:30", "yesterday", "3/4/2024", ""],
    "MM/DD/YYYY": ["13/01/2024", "0/1/2024", "02/30/2024", "3/4/24", "3/4/2024 24:00", "3/4/2024 13:00 pm"],
    "DD Mon YYYY": ["4 Mai 2024", "4 13 2024", "32 Mar 2024", "4 Mar 0000", "4 Mar 2024 12:30:60"],
}  # fmt: skip


@pytest.mark.parametrize(("text", "time_format", "seconds"), [(*key, value) for key, value in TIMES.items()])
def test_texts_that_are_times(text, time_format, seconds):
    assert _cells.read_times([text], time_format)[0] == seconds
    assert _cells.find_time_format([text.strip()], np.array([1])) in (time_format, "MM/DD/YYYY")


@pytest.mark.parametrize(("time_format", "text"), [(key, text) for key, texts in NO_TIMES.items() for text in texts])
def test_texts_that_are_no_times(time_format, text):
    assert math.isnan(_cells.read_times([text], time_format)[0])


@settings(deadline=None)
@given(st.datetimes(timezones=st.none() | st.just(dt.UTC) | st.timezones()))
def test_every_iso_time_reads_back_to_the_microsecond(time):
    assert _cells.read_times([time.isoformat()], _cells.ISO)[0] == _cells.seconds_of(time)


def test_a_format_that_reads_more_values_wins_and_the_american_one_breaks_ties():
    few = [f"{day:02d}/03/2024" for day in range(1, 13)]
    assert _cells.find_time_format(few, np.ones(12, int)) == "MM/DD/YYYY"
    more = [*few, "13/03/2024"]  # the American format reads 92 % of these
    assert _cells.find_time_format(more, np.ones(13, int)) == "DD/MM/YYYY"
    assert _cells.find_time_format([*few, "x", "y"], np.ones(14, int)) == ""
    assert _cells.find_time_format([*few, "x", "y"], np.array([*[9] * 12, 1, 1])) == "MM/DD/YYYY"


DURATIONS = {
    "08:30": 30_600.0,
    "8:30:15": 30_615.0,
    "08:30:15.25": 30_615.25,
    "100:00": 360_000.0,
    "0 days 00:10:00": 600.0,
    "2 days 00:10:00.5": 173_400.5,
    "1 day, 0:10:00": 87_000.0,
    "-1 days +23:50:00": -600.0,
}


@pytest.mark.parametrize(("text", "seconds"), DURATIONS.items())
def test_texts_that_are_durations(text, seconds):
    assert _cells.read_durations([text])[0] == seconds


@pytest.mark.parametrize("text", ["", "8", "8:3", "8:60", "8:30:60", "16:9", "x:30", "2024-01-01 08:30", "5 days"])
def test_texts_that_are_no_durations(text):
    assert math.isnan(_cells.read_durations([text])[0])


WORDS_FOR_NOTHING = ["", " ", "\t", "NA", " NA ", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "<NA>", "#N/A"]
WORDS_FOR_NOTHING += ["-", "--", "?", " - "]


@pytest.mark.parametrize("word", WORDS_FOR_NOTHING)
def test_words_for_nothing(word):
    """The same whether pandas read the file, which turns them into gaps, or polars, which does not."""
    raw = _cells.text_column("c", np.array([0, 1, -1]), ["x", word])
    assert raw.values.tolist() == [0, -1, -1] and raw.texts == ("x",)


@pytest.mark.parametrize("word", ["na", "none", "---", "??", "-?", "unknown", "missing", "0"])
def test_words_that_are_values(word):
    assert _cells.text_column("c", np.array([0]), [word]).texts == (word,)


def test_long_texts_are_told_apart_by_their_first_200_characters():
    long = "x" * 300
    raw = _cells.text_column("c", np.array([0, 1, 2, -1]), [long + "a", long + "b", "y" * 200])
    assert raw.values.tolist() == [0, 0, 1, -1] and raw.texts == ("x" * 200, "y" * 200)


def test_a_value_has_one_meaning_however_it_was_typed():
    same = [("True", "true"), ("FALSE", "false"), ("3.0", "3"), ("03", "3"), ("3", "3"), ("1e2", "100"), ("-0", "0")]
    assert [_cells.canonical(text) for text, _ in same] == [meaning for _, meaning in same]
    for text in ("x", "3 apples", "1,000", "12%", "", "1e400x"):
        assert _cells.canonical(text) == text
    for text, meaning in {
        "9007199254740993": "9007199254740993",
        "+0009007199254740993.00": "9007199254740993",
        "-9007199254740993.": "-9007199254740993",
        "9007199254740993.5": "9007199254740994",
        "1e16": "10000000000000000",
        "0" * 30: "0",
    }.items():
        assert _cells.canonical(text) == meaning
    assert _cells.number_text(1e300) == "1e+300" and _cells.number_text(math.inf) == "inf"


def test_times_are_shown_within_and_beyond_the_years_of_a_calendar():
    assert _cells.time_text(MIDNIGHT) == "2024-03-04"
    assert _cells.time_text(NOON) == "2024-03-04 12:30:15"
    assert _cells.time_text(-0.5) == "1969-12-31 23:59:59.500000"
    assert _cells.time_text(-62_135_596_800.0) == "0001-01-01"
    assert _cells.time_text(1e15) == "1e+15 s" and _cells.time_text(-2e11) == "-2e+11 s"


def test_times_before_1970_need_no_help_of_the_machine():
    """`fromtimestamp` fails for them on Windows: no module may call it."""
    sources = list(Path(_cells.__file__).parent.rglob("*.py"))
    assert len(sources) > 20
    assert not [source for source in sources if ".fromtimestamp(" in source.read_text(encoding="utf-8")]
    early = MIDNIGHT - 4e9  # in 1897
    assert time_ticks(early, early + 40 * 86_400)[0][1] == "10 Jun", "a Thursday, as the first day of 1970"
    assert time_ticks(-6.3e10, -6.25e10)[0][1] == "-6.3e+10 s", "before the first year"


@settings(deadline=None)
@given(st.datetimes())
def test_the_text_of_a_time_reads_back_to_the_bit(time):
    seconds = _cells.seconds_of(time)
    assert _cells.read_times([_cells.time_text(seconds)], _cells.ISO)[0] == seconds
    typed = [raws(pl.DataFrame({"c": [time] * 2})), raws(pl.DataFrame({"c": [time] * 2}).to_arrow())]
    assert [raw.values.tolist() for (raw,) in typed] == [[seconds] * 2] * 2


# What a column is -----------------------------------------------------------------------------------------------------


def raws(values):
    frame = (
        values
        if isinstance(values, (pl.DataFrame, pd.DataFrame, pa.Table))
        else pl.DataFrame({"c": values}, strict=False)
    )
    return read_table(RGLD(), frame, fitting=True)


def learned(values, asked=None, name="c"):
    """Return the encoding of a column, and of one beside it that is used in any case."""
    (column,) = raws(values)
    column = replace(column, name=name)
    beside = _cells.RawColumn("beside", "number", np.linspace(0.0, 1.0, len(column)) ** 2)
    return fit_encoding([column, beside], {name: asked} if asked else None)


def reading(values, asked=None, name="c"):
    return learned(values, asked, name).columns[0]


def encoded(values, new=None, asked=None):
    """Return what a column becomes, shape (n, parts), without the column beside it."""
    encoding = learned(values, asked)
    (column,) = raws(values if new is None else new)
    beside = _cells.RawColumn("beside", "number", np.zeros(len(column)))
    return encode(encoding, [column, beside])[:, :-1]


FLOATS = RNG.normal(size=30).round(3)
KINDS = {
    "floats": (FLOATS, "number"),
    "integers": (RNG.integers(0, 9, 30), "number"),
    "unsigned": (RNG.integers(0, 9, 30).astype(np.uint8), "number"),
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
        ([None] * 30, "it has no value"),
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
def test_whole_numbers_under_the_name_of_an_id_are_ids(name):
    values = RNG.choice(10**6, 50, replace=False)
    assert reading(values, name=name).note == "it is an id: all its values are different"
    assert reading(np.append(values[1:], values[1]), name=name).kind == "number", "a value twice: no id"
    assert reading(values + 0.5, name=name).kind == "number", "fractions: no id"


@pytest.mark.parametrize("name", ["paid", "humid", "grid", "bid", "valid", "monkey", "liquid", "identity", "PAID", "c"])
def test_other_names_make_no_ids(name):
    assert reading(RNG.choice(10**6, 50, replace=False), name=name).kind == "number"


def test_nine_values_in_ten_decide():
    texts = [str(i * 1.5) for i in range(9)]
    column = reading([*texts, "unknown"])
    assert column.kind == "number" and column.gap_share == 0.1
    assert column.note == "1 values are no numbers and count as missing, such as 'unknown'"
    assert reading([*texts[1:], "unknown", "x"] * 3).kind == "category"
    assert reading([*["2024-05-01", "2024-05-02", "2024-05-03"] * 3, "soon"]).note.startswith("1 values are no dates")
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
    assert reading(numbers, "drop").note == "you asked for it"
    assert reading(range(30), "number").kind == "number", "row numbers after all"
    assert reading([7] * 30, "number").kind == "number"
    assert reading(["7"] * 30, "category").counts == (30,)
    assert reading([f"u{i}" for i in range(30)], "category").kind == "category"
    assert reading(["1.5", "x", "y", "z"] * 9, "number").note.startswith("27 values are no numbers")
    assert reading(["2024-05-01", "x", "y", "z"] * 9, "time").note.startswith("27 values are no dates")
    assert reading([f"202405{i + 1:02d}" for i in range(9)] * 2, "time").kind == "time"
    assert reading(pl.Series(["1", "2", "3"] * 9, dtype=pl.Categorical), "number").kind == "number"
    assert reading([None] * 9, "category").note == "it has no value"
    assert reading([True, False] * 9, "number").kind == reading(["true", "False"] * 9, "number").kind == "number"


@pytest.mark.parametrize(
    ("values", "asked", "message"),
    [
        ([1, 2, 3], "time", "Column 'c' holds numbers, which cannot be read as times"),
        (["x", "y"], "number", "Column 'c' holds no numbers, but texts such as 'x'"),
        ([dt.date(2024, 1, 1 + i) for i in range(9)], "number", "holds dates, which cannot be read as numbers"),
        (["2024-01-01", "2024-01-02"], "number", "Column 'c' holds no numbers"),
        ([dt.timedelta(i) for i in range(9)], "number", "holds durations, which cannot be read as numbers"),
        ([dt.timedelta(i) for i in range(9)], "time", "holds durations, which cannot be read as times"),
        ([True, False], "time", "holds truth values, which cannot be read as times"),
        (["x", "y"], "time", "Column 'c' holds no dates, but texts such as 'x'"),
    ],
)
def test_what_a_column_cannot_be(values, asked, message):
    with pytest.raises(TableError, match=message):
        learned(values, asked)


def test_a_reading_of_a_column_that_is_not_there():
    with pytest.raises(TableError, match="There is no column 'amuont' to be read as 'number'"):
        RGLD(columns={"amuont": "number"}).fit(pl.DataFrame({"amount": FLOATS}))


# What numbers it becomes ----------------------------------------------------------------------------------------------


def test_numbers_are_left_as_they_are():
    np.testing.assert_array_equal(encoded(FLOATS)[:, 0], FLOATS)
    np.testing.assert_array_equal(encoded([str(x) for x in FLOATS])[:, 0], FLOATS)
    np.testing.assert_array_equal(encoded([Decimal(str(x)) for x in FLOATS])[:, 0], FLOATS)
    np.testing.assert_array_equal(encoded(FLOATS > 0)[:, 0], FLOATS > 0)
    np.testing.assert_array_equal(encoded(["true", "False"])[:, 0], [1, 0])
    np.testing.assert_array_equal(encoded(["08:30", "09:00"])[:, 0], [30_600, 32_400])


def test_gaps_get_the_median_and_a_part_that_says_so():
    values = [1.0, None, 3.0, 10.0, None, 4.0]
    column = reading(values)
    assert column.gap_share == 2 / 6 and column.parts == ("value", "is missing")
    result = encoded(values)
    np.testing.assert_array_equal(result[:, 0], [1, 3.5, 3, 10, 3.5, 4])
    yes, no = norm.ppf(1 - (2 / 6) / 2), norm.ppf((4 / 6) / 2)
    np.testing.assert_allclose(result[:, 1], [no, yes, no, no, yes, no])
    np.testing.assert_array_equal(encoded(values, [None, math.nan, 2.0])[:, 0], [3.5, 3.5, 2.0])
    np.testing.assert_array_equal(encoded([str(v) for v in values])[:, 0], result[:, 0])


def test_the_median_of_huge_numbers_is_finite():
    huge = np.finfo(float).max
    np.testing.assert_array_equal(encoded([huge, huge, None])[:, 0], [huge] * 3)
    np.testing.assert_array_equal(encoded([-huge, huge, None])[:, 0], [-huge, huge, 0])


def test_an_indicator_is_as_far_out_as_it_is_rare():
    """Half of the rows are as far from the other half as two halves of a normal column; one in 100 is farther."""
    half = encoded(["x", "y"] * 50)
    np.testing.assert_allclose(np.abs(half[:, 0]), norm.ppf(0.75), atol=0.01)
    rare = encoded(["x"] * 99 + ["y"])[:, 0]
    assert rare[-1] == pytest.approx(norm.ppf(1 - 0.5 * 1.5 / 101)) and np.all(rare[:-1] > -0.02)


def test_a_category_of_few_values_has_a_part_for_each():
    column = reading(["x"] * 5 + ["y"] * 3 + ["z"] * 2)
    assert column.values == ("x", "y", "z") and column.counts == (5, 3, 2)
    assert column.parts == ("is 'x'", "is 'y'", "is 'z'", "rarity")
    result = encoded(["x"] * 5 + ["y"] * 3 + ["z"] * 2)
    np.testing.assert_array_equal(result[:, :3].argmax(axis=1), [0] * 5 + [1] * 3 + [2] * 2)
    np.testing.assert_allclose(result[[0, 5, 8], 3], [-np.log((n + 0.5) / 11) for n in (5, 3, 2)])
    assert reading(["x", "y"] * 5).parts == ("is 'y'", "rarity"), "of two values one is enough"
    assert len(reading(list("abcdefgh") * 3).parts) == 9
    assert reading(list("abcdefghi") * 3).parts == ("rarity",), "more than eight"


def test_a_gap_in_a_category_is_a_value():
    column = reading(["x", None, "z", None, "x", None])
    assert column.values == ("", "x", "z") and column.parts[0] == "is missing"


def test_what_was_never_seen_is_rarer_than_what_was_seen_once():
    for values in (["x"] * 50 + ["y"], [f"v{i}" for i in range(9)] * 5 + ["y"]):
        rarity = encoded(values, ["y", "new", None, "x" * 500])[:, -1]
        assert rarity[0] < rarity[1] == rarity[2] == rarity[3]
        assert rarity[1] == pytest.approx(-np.log(0.5 / (len(values) + 1)))


def test_of_many_values_the_thousand_most_frequent_are_listed():
    column = reading([f"v{i}" for i in range(1100) for _ in range(3 if i < 1000 else 2)])
    assert len(column.values) == 1000 and set(column.counts) == {3} and column.rest == 2.0
    values = [f"v{i}" for i in range(1100) for _ in range(3 if i < 1000 else 2)]
    listed, unlisted, new = encoded(values, ["v0", "v1050", "new"])[:, 0]
    assert listed < unlisted == new


def test_a_category_read_as_numbers_elsewhere():
    values = ["1", "2", "x"] * 9  # too many x for a column of numbers
    expected = encoded(values, ["1", "2", "7"])
    for new in ([1, 2, 7], [1.0, 2.0, 7.0], ["1.0", "02", "7"], [Decimal(1), Decimal(2), Decimal(7)]):
        np.testing.assert_array_equal(encoded(values, new), expected)
    truths = ["True", "False", "unknown"] * 9
    np.testing.assert_array_equal(encoded(truths, [True, False]), encoded(truths, ["True", "False"]))
    np.testing.assert_array_equal(encoded(truths, ["true", "FALSE"]), encoded(truths, ["True", "False"]))
    codes = [1, 2, 3] * 9
    np.testing.assert_array_equal(
        encoded(codes, ["1", "2.0", "x"], "category"), encoded(codes, [1.0, 2.0, 8.0], "category")
    )


def test_spellings_seen_in_training_stay_apart():
    column = reading(["007", "007", "7", "x", "y"] * 4)
    assert column.values[0] == "007" and "7" in column.values
    assert column.place("7") != column.place("007") == column.place("7.0"), "else the most frequent of a meaning"


def test_numbers_read_as_texts_elsewhere():
    values = [1.0, 2.5, 1000.0, None]
    np.testing.assert_array_equal(encoded(values, ["1", "2.50", "1,000", "NA"]), encoded(values))
    np.testing.assert_array_equal(encoded(values, ["n.a.", "?", "-", "1"])[:3], encoded(values)[[3, 3, 3]])
    flags = [True, False, True, None]
    np.testing.assert_array_equal(encoded(flags, ["True", "false", "1", "?"]), encoded(flags))
    waits = [dt.timedelta(minutes=10), dt.timedelta(days=2), None]
    np.testing.assert_array_equal(encoded(waits, ["0:10:00", "2 days 00:00:00", ""]), encoded(waits))


@pytest.mark.parametrize(
    ("values", "new", "message"),
    [
        ([1.5, 2.5], [dt.date(2024, 1, 1)], "Column 'c' holds times, expected numbers as in the training table"),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 2)], [5, 6], "Column 'c' holds numbers, expected times"),
    ],
)
def test_times_are_no_numbers_and_numbers_no_times(values, new, message):
    with pytest.raises(TableError, match=message):
        encoded(values, new * 2)


def test_a_column_without_a_value_when_scoring():
    for values in (FLOATS, ["x", "y"] * 9, [dt.date(2024, 1, 1 + i) for i in range(9)], [True, False]):
        for nothing in ([None] * 3, [math.nan] * 3, ["", "NA", " "]):
            result = encoded(values, nothing)
            assert np.all(np.isfinite(result)) and np.all(result == result[0])


# Cells of several kinds -----------------------------------------------------------------------------------------------

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


def objects(cells):
    return pd.DataFrame({"c": pd.Series(cells, dtype=object)})


@pytest.mark.parametrize(("values", "asked"), TRAINED.values(), ids=TRAINED.keys())
def test_an_object_reads_the_same_alone_and_beside_any_other(values, asked):
    encoding = learned(objects(values), asked)

    def read(cells):
        columns = read_table(RGLD(), objects([*cells, None]), fitting=True)
        beside = _cells.RawColumn("beside", "number", np.zeros(len(cells) + 1))
        return encode(encoding, [*columns, beside])[: len(cells)]

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
        (raw,) = read_table(RGLD(), frame, fitting=True)
        column, _ = fit_encoding(
            [raw, _cells.RawColumn("beside", "number", np.arange(12.0) ** 2)], {"c": "category"}
        ).columns
        assert column.values == expected and column.counts == (3, 3, 3, 3)
        assert len({column.place(value) for value in expected}) == 4
        assert column.place(f"0{expected[1]}.0") == 1 and column.place(str(2**53 + 3)) == -1
    (raw,) = read_table(RGLD(), pl.DataFrame({"c": [2**53 + 1, None]}), fitting=True)
    assert as_texts(raw)[0].tolist() == [0, -1] and as_texts(raw)[1][0] == str(2**53 + 1)


def test_large_integers_that_are_ids():
    close = 2**60 + np.arange(30)
    assert reading(close).note == "it numbers the rows"
    pairs = np.concatenate([RNG.choice(2**62, 20, replace=False) // 2 * 2 + one for one in (0, 1)])
    assert reading(pairs, name="user_id").note == "it is an id: all its values are different"
    assert reading(pairs, name="amount").kind == "number"
    assert reading([*close[1:], close[1]]).note == "its values are equal as floats"
    assert reading([2**60 + 1] * 30).note == "it is constant"
    assert reading([*close, None]).kind == "number"


def test_an_integer_beyond_all_floats_is_infinite():
    with pytest.raises(TableError, match="infinity"):
        encoded(objects([1.5, 2.5, 3.5]), objects([10**5000, 1]))
    assert np.all(np.isfinite(encoded(objects(["x", "y"] * 3), objects([10**5000, "x"]))))


# Times ----------------------------------------------------------------------------------------------------------------


def days(n, step=1, hour=0):
    return [dt.datetime(2020, 1, 6, hour) + dt.timedelta(days=step * i) for i in range(n)]  # from a Monday on


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


def test_only_the_date_itself_counts_half():
    column = reading([*[day + dt.timedelta(hours=i % 24) for i, day in enumerate(days(20))], None])
    assert column.parts == ("value", "sine of the day", "cosine of the day", "is missing")
    weights = Encoding((column,), np.zeros(4), 21).weights
    np.testing.assert_array_equal(weights, [0.5, 0.5**0.5, 0.5**0.5, 1.0])
    np.testing.assert_array_equal(Encoding((reading([1.0, None, 2.0]),), np.zeros(2), 3).weights, [1.0, 1.0])


def test_a_cycle_is_a_sine_and_a_cosine():
    values = [day + dt.timedelta(hours=i % 24) for i, day in enumerate(days(40))]
    assert reading(values).parts == (
        "value", "sine of the day", "cosine of the day", "sine of the week", "cosine of the week"
    )  # fmt: skip
    result = encoded(values, [dt.datetime(2021, 3, 1, 6), dt.datetime(2021, 3, 3, 18), None])  # a Monday, a Wednesday
    np.testing.assert_allclose(result[0, 1:3], [1, 0], atol=1e-9)
    np.testing.assert_allclose(result[1, 1:3], [-1, 0], atol=1e-9)
    angle = 2 * np.pi * np.array([0.25, 2.75]) / 7
    np.testing.assert_allclose(result[:2, 3:], np.column_stack((np.sin(angle), np.cos(angle))), atol=1e-9)
    np.testing.assert_array_equal(result[2, 1:], 0), "a gap is at no time"


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_times_of_any_unit_and_zone_are_seconds(unit, zone):
    stamps = np.array([0, -1_500, 1_709_555_415_250], dtype="M8[ms]")
    series = pl.Series(stamps).cast(pl.Datetime(unit)).dt.replace_time_zone("UTC")
    series = series.dt.convert_time_zone(zone) if zone else series.dt.replace_time_zone(None)
    expected = [0.0, -1.5, 1_709_555_415.25]
    np.testing.assert_array_equal(raws(series)[0].values, expected)
    pandas = pd.Series(stamps.astype(f"M8[{unit}]")).dt.tz_localize("UTC")
    pandas = pandas.dt.tz_convert(zone) if zone else pandas.dt.tz_localize(None)
    np.testing.assert_array_equal(raws(pd.DataFrame({"c": pandas}))[0].values, expected)


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
    assert [column.texts[place] if place >= 0 else None for place in column.values] == [
        "1",
        "2",
        "x",
        None,
        "true",
        "2.5",
        "7",
    ]
