"""Cells: texts that mean numbers, times, durations or nothing. The rules are in docs/tables.md."""

import datetime as dt
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgld._table import cells
from rgld._table import columns as table_columns
from rgld.report._axes import time_ticks

from .column_tables import MIDNIGHT, NOON, raws

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
    assert cells.read_numbers([text])[0] == number


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_texts_that_are_no_numbers(text):
    assert math.isnan(cells.read_numbers([text])[0])


@given(st.floats(allow_nan=False))
def test_every_number_reads_back_to_the_bit(number):
    assert cells.read_numbers([repr(number)])[0] == number


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
    assert cells.read_times([text], time_format)[0] == seconds
    # Of 04/03/2024 alone no one can tell; it is taken for the American format.
    expected = "MM/DD/YYYY" if time_format == "DD/MM/YYYY" else time_format
    assert cells.find_time_format([text.strip()], np.array([1])) == expected


@pytest.mark.parametrize(("time_format", "text"), [(key, text) for key, texts in NO_TIMES.items() for text in texts])
def test_texts_that_are_no_times(time_format, text):
    assert math.isnan(cells.read_times([text], time_format)[0])


@given(st.datetimes(timezones=st.none() | st.just(dt.UTC) | st.timezones()))
def test_every_iso_time_reads_back_to_the_microsecond(time):
    assert cells.read_times([time.isoformat()], cells.ISO)[0] == cells.seconds_of(time)


def test_a_format_that_reads_more_values_wins_and_the_american_one_breaks_ties():
    few = [f"{day:02d}/03/2024" for day in range(1, 13)]
    assert cells.find_time_format(few, np.ones(12, int)) == "MM/DD/YYYY"
    more = [*few, "13/03/2024"]  # the American format reads 92 % of these
    assert cells.find_time_format(more, np.ones(13, int)) == "DD/MM/YYYY"
    assert cells.find_time_format([*few, "x", "y"], np.ones(14, int)) == ""
    assert cells.find_time_format([*few, "x", "y"], np.array([*[9] * 12, 1, 1])) == "MM/DD/YYYY"


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
    assert cells.read_durations([text])[0] == seconds


@pytest.mark.parametrize("text", ["", "8", "8:3", "8:60", "8:30:60", "16:9", "x:30", "2024-01-01 08:30", "5 days"])
def test_texts_that_are_no_durations(text):
    assert math.isnan(cells.read_durations([text])[0])


WORDS_FOR_NOTHING = ["", " ", "\t", "NA", " NA ", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "<NA>", "#N/A"]
WORDS_FOR_NOTHING += ["-", "--", "?", " - "]


@pytest.mark.parametrize("word", WORDS_FOR_NOTHING)
def test_words_for_nothing(word):
    """The same whether pandas read the file, which turns them into gaps, or polars, which does not."""
    raw = table_columns.string_column("c", np.array([0, 1, -1]), ["x", word])
    assert raw.values.tolist() == [0, -1, -1] and raw.strings == ("x",)


@pytest.mark.parametrize("word", ["na", "none", "---", "??", "-?", "unknown", "missing", "0"])
def test_words_that_are_values(word):
    assert table_columns.string_column("c", np.array([0]), [word]).strings == (word,)


def test_long_texts_are_told_apart_by_their_first_200_characters():
    long = "x" * 300
    raw = table_columns.string_column("c", np.array([0, 1, 2, -1]), [long + "a", long + "b", "y" * 200])
    assert raw.values.tolist() == [0, 0, 1, -1] and raw.strings == ("x" * 200, "y" * 200)


def test_a_value_has_one_meaning_however_it_was_typed():
    same = [("True", "true"), ("FALSE", "false"), ("3.0", "3"), ("03", "3"), ("3", "3"), ("1e2", "100"), ("-0", "0")]
    assert [cells.canonical(text) for text, _ in same] == [meaning for _, meaning in same]
    for text in ("x", "3 apples", "1,000", "12%", "", "1e400x"):
        assert cells.canonical(text) == text
    for text, meaning in {
        "9007199254740993": "9007199254740993",
        "+0009007199254740993.00": "9007199254740993",
        "-9007199254740993.": "-9007199254740993",
        "9007199254740993.5": "9007199254740994",
        "1e16": "10000000000000000",
        "0" * 30: "0",
    }.items():
        assert cells.canonical(text) == meaning
    assert cells.number_to_string(1e300) == "1e+300" and cells.number_to_string(math.inf) == "inf"


def test_times_are_shown_within_and_beyond_the_years_of_a_calendar():
    assert cells.time_to_string(MIDNIGHT) == "2024-03-04"
    assert cells.time_to_string(NOON) == "2024-03-04 12:30:15"
    assert cells.time_to_string(-0.5) == "1969-12-31 23:59:59.500000"
    assert cells.time_to_string(-62_135_596_800.0) == "0001-01-01"
    assert cells.time_to_string(1e15) == "1e+15 s" and cells.time_to_string(-2e11) == "-2e+11 s"


def test_times_before_1970_need_no_help_of_the_machine():
    """`fromtimestamp` fails for them on Windows: no module may call it."""
    sources = list(Path(cells.__file__).parents[1].rglob("*.py"))
    assert len(sources) > 20
    assert not [source for source in sources if ".fromtimestamp(" in source.read_text(encoding="utf-8")]
    early = MIDNIGHT - 4e9  # in 1897
    assert time_ticks(early, early + 40 * 86_400)[0][1] == "10 Jun", "a Thursday, as the first day of 1970"
    assert time_ticks(-6.3e10, -6.25e10)[0][1] == "-6.3e+10 s", "before the first year"


@given(st.datetimes())
def test_the_text_of_a_time_reads_back_to_the_bit(time):
    seconds = cells.seconds_of(time)
    assert cells.read_times([cells.time_to_string(seconds)], cells.ISO)[0] == seconds
    typed = [raws(pl.DataFrame({"c": [time] * 2})), raws(pl.DataFrame({"c": [time] * 2}).to_arrow())]
    assert [raw.values.tolist() for (raw,) in typed] == [[seconds] * 2] * 2
