"""Reasons in words: every phrase, on columns made for it."""

import numpy as np
import pandas as pd
import pytest

from rgld import RGLD
from rgld._explain.kept_columns import KeptColumns
from rgld._explain.words import Value, isolation, reason, values_of
from rgld._table.columns import RawColumn
from rgld._table.encoding import DAY, Column, Encoding, indicator
from rgld._table.shown import shown
from rgld._table.table import ColumnTable

EVEN = np.arange(1000.0)
"""The usual range of these is 25 to 974."""


def said(value, seen=EVEN, *, kind="number", name="amount", missing=None, text=None, **learned):
    """Return the reason for a value of a column whose sample is `seen`."""
    gap_share = 0.0 if missing is None else float(np.mean(missing)) or 1e-4
    column = Column(name, kind, gap_share=gap_share, **learned)
    parts = np.zeros((len(seen), len(column.parts)))
    if kind != "category":
        parts[:, 0] = seen
    if missing is not None:
        parts[:, -1] = indicator(missing, gap_share)
    encoding = Encoding((Column("other", "number"), column), np.zeros(1 + len(column.parts)), 1000)
    sample = np.column_stack((np.zeros(len(seen)), parts))
    cell = Value(float("nan") if isinstance(value, str) else value, "")
    cell = Value(cell.number, value if isinstance(value, str) else text or shown(kind, value, name))
    return reason(KeptColumns(encoding, sample), 1, cell)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (9940, "amount 9,940 is far above usual (usually 25 to 974)"),
        (1000, "amount 1,000 is above usual (usually 25 to 974)"),
        (1923, "amount 1,923 is above usual (usually 25 to 974)"),
        (1924, "amount 1,924 is far above usual (usually 25 to 974)"),
        (24, "amount 24 is below usual (usually 25 to 974)"),
        (-5000.5, "amount -5,000.5 is far below usual (usually 25 to 974)"),
        (500, "amount 500 is unusual beside the other values (usually 25 to 974)"),
        (1e300, "amount 1e+300 is far above usual (usually 25 to 974)"),
        (1e-9, "amount 1e-09 is below usual (usually 25 to 974)"),
    ],
)
def test_numbers(value, words):
    assert said(value) == words


def test_a_name_that_ends_in_a_digit_is_kept_apart_from_the_number():
    assert said(9940.0, name="column 1") == "column 1 = 9,940 is far above usual (usually 25 to 974)"


def test_bounds_are_values_that_occur():
    assert said(50.0, np.array([1.0, 2.0] * 500)) == "amount 50 is far above usual (usually 1 to 2)"
    assert said(9.0, np.linspace(0.5, 1.5, 41)) == "amount 9 is far above usual (usually 0.525 to 1.475)"


def test_a_column_of_one_value_and_a_few_others():
    mostly_zero = np.zeros(1000)
    mostly_zero[:10] = 4.0
    assert said(3.0, mostly_zero) == "amount 3 is above usual (usually 0)"
    assert said(9.0, mostly_zero) == "amount 9 is far above usual (usually 0)"
    assert said(0.0, mostly_zero) == "amount 0 is unusual beside the other values (usually 0)"


def test_a_constant_column_that_was_kept():
    assert said(5.0, np.full(50, 3.0)) == "amount 5 is far above usual (usually 3)"
    assert said(-5.0, np.full(50, 3.0)) == "amount -5 is far below usual (usually 3)"


def test_numbers_that_differ_in_a_late_digit_are_shown_apart():
    seen = 100 + 1e-6 * np.arange(41)
    assert said(100.001, seen) == "amount 100.00100 is far above usual (usually 100.00000 to 100.00004)"


@pytest.mark.parametrize(
    ("value", "low", "high", "words"),
    [
        (1000.2, 999.98, 1000.02, "amount 1,000.20 is far above usual (usually 999.98 to 1,000.02)"),
        (1000.01, 999.98, 1000.02, "amount 1,000.01 is unusual beside the other values (usually 999.98 to 1,000.02)"),
        (12345.9, 12345.2, 12345.6, "amount 12,345.9 is above usual (usually 12,345.2 to 12,345.6)"),
        (98765.4, 1.5, 12345.6, "amount 98,765 is far above usual (usually 1.5 to 12,346)"),
        (1.23456, 1.23451, 1.23454, "amount 1.23456 is above usual (usually 1.23451 to 1.23454)"),
        (999.97, 1.0, 2.0, "amount 1,000.0 is far above usual (usually 1 to 2)"),
        (-1000.2, -1000.02, -999.98, "amount -1,000.20 is far below usual (usually -1,000.02 to -999.98)"),
        (1.00003e20, 1.00001e20, 1.00002e20, "amount 1.00003e+20 is above usual (usually 1.00001e+20 to 1.00002e+20)"),
        (1.00005e-9, 1.00001e-9, 1.00002e-9, "amount 1.00005e-09 is far above usual"),
        (
            2.0,
            1.0,
            1.0 + 2**-52,
            "amount 2.0000000000000000 is far above usual (usually 1.0000000000000000 to 1.000000",
        ),
        (5e-324, 0.0, 1e-323, "amount 4.941e-324 is unusual"),
    ],
)
def test_values_and_bounds_have_the_digits_that_tell_them_apart(value, low, high, words):
    assert said(value, np.repeat([low, high], 50)).startswith(words)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 0.01, 1.0, 1e3, 1e12, 1e300])
def test_texts_of_different_numbers_are_different(scale):
    rng = np.random.default_rng(0)
    for center in (0.0, 1.0, 1000.0, 123456.789):
        for _ in range(50):
            low, value, high = np.sort(center * scale + scale * rng.normal(size=3) * 10.0 ** rng.integers(-6, 3))
            words = said(value, np.repeat([low, high], 50))
            text, usual = words.removeprefix("amount ").split(" is unusual beside the other values (usually ")
            bounds = usual.removesuffix(")").split(" to ")
            assert float(bounds[0].replace(",", "")) < float(text.replace(",", "")) < float(bounds[1].replace(",", ""))


def test_years_in_parts():
    assert said(1900.25, 2000.5 + np.arange(41.0) % 20, name="year").startswith("year 1900.2 is far below usual")


def test_huge_numbers_do_not_overflow():
    assert said(1.7e308, np.repeat([-1e308, 1e308], 50)) == "amount 1.7e+308 is above usual (usually -1e+308 to 1e+308)"


def test_gaps():
    assert said(np.nan) == "amount is missing, which it never was in training"
    some = EVEN < 20
    assert said(np.nan, missing=some) == "amount is missing (2 % of the rows)"
    assert said(np.nan, missing=EVEN < 0) == "amount is missing (0.01 % of the rows)"
    assert said(np.nan, missing=EVEN < 250) == "amount is missing (25 % of the rows)"
    assert said(np.nan, missing=EVEN < 999) == "amount is missing (over 99 % of the rows)"


def test_rows_without_a_value_are_not_part_of_the_usual_range():
    seen = np.where(EVEN < 400, 0.0, 50.0 + EVEN % 10)
    assert said(0.0, seen, missing=EVEN < 400) == "amount 0 is far below usual (usually 50 to 59)"


def test_a_value_where_most_rows_have_none():
    seen = np.where(EVEN < 900, 5.0, EVEN % 10)
    assert said(5.0, seen, missing=EVEN < 900) == "amount has a value, 5 (90 % of the rows have none)"
    assert said(90.0, seen, missing=EVEN < 900) == "amount 90 is far above usual (usually 0 to 9)"
    assert said(5.0, seen, missing=EVEN < 500) == "amount 5 is unusual beside the other values (usually 1 to 8)"
    assert said(5.0, seen, missing=EVEN < 510) == "amount has a value, 5 (51 % of the rows have none)"
    assert said(5.0, seen, missing=EVEN >= 0) == "amount has a value, 5 (100 % of the rows have none)"


def test_texts_that_cannot_be_read():
    assert said("abc") == "amount 'abc' is not a number, which never happened in training"
    assert said("abc", missing=EVEN < 20) == "amount 'abc' is not a number (2 % of the rows have none)"
    assert said("soon", kind="time", name="at") == "at 'soon' is not a date, which never happened in training"


def test_truth_values():
    rare = (EVEN < 20).astype(float)
    assert said(1.0, rare, kind="boolean", name="paid") == "paid is true (2 % of the rows)"
    assert said(0.0, rare, kind="boolean", name="paid") == (
        "paid is false, unusual beside the other values (98 % of the rows)"
    )
    assert said(1.0, np.zeros(1000), kind="boolean", name="paid") == "paid is true (under 0.1 % of the rows)"


CITIES = {"values": ("Bern", "Genf", "Basel", ""), "counts": (900, 97, 1, 2)}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("Basel", "city 'Basel' seen once in 1,000 rows"),
        ("", "city is missing, seen 2 times in 1,000 rows"),
        ("Bern", "city 'Bern' is unusual beside the other values (90 % of the rows)"),
        ("Genf", "city 'Genf' is unusual beside the other values (10 % of the rows)"),
        ("Vevey", "city 'Vevey' was never seen in 1,000 rows"),
        ("x" * 300, f"city '{'x' * 59}…' was never seen in 1,000 rows"),
        ("a\n\x1b[31mb", "city 'a  [31mb' was never seen in 1,000 rows"),
        ("<b>'=1+1", "city '<b>'=1+1' was never seen in 1,000 rows"),
    ],
)
def test_categories(value, words):
    assert said(value, kind="category", name="city", **CITIES) == words


def test_a_gap_in_a_category():
    full = {"values": ("a", "b"), "counts": (900, 100)}
    assert said("", kind="category", name="city", **full) == "city is missing, which it never was in training"
    often = {"values": ("a", ""), "counts": (900, 100)}
    assert said("", kind="category", name="city", **often) == (
        "city is missing, unusual beside the other values (10 % of the rows)"
    )


def test_values_whose_count_is_not_kept():
    many = {"values": ("a", "b"), "counts": (990, 3), "rest": 1.2}
    assert said("c", kind="category", name="city", **many) == "city 'c', seen at most 3 times in 1,000 rows"
    many = {"values": ("a", "b"), "counts": (990, 1), "rest": 1.0}
    assert said("c", kind="category", name="city", **many) == "city 'c', seen at most once in 1,000 rows"


NOON = 19_723 * DAY + DAY / 2
"""1 January 2024, a Monday, at noon."""
WORKDAYS = np.array([day for day in range(364) if day % 7 < 5])


@pytest.mark.parametrize(
    ("day", "words"),
    [
        (400, "at 2025-02-04 12:00:00 is later than usual (usually 2024-01-09 to 2024-12-19)"),
        (-30, "at 2023-12-02 12:00:00 is earlier than usual (usually 2024-01-09 to 2024-12-19)"),
        (100, "at 2024-04-10 12:00:00 is unusual beside the other values"),
        (100.5, "at 2024-04-11 is at an unusual time of day"),
        (104, "at 2024-04-14 12:00:00 is at an unusual time of the week (a Sunday)"),
        (362, "at 2024-12-28 12:00:00 is later than usual"),
        (360, "at 2024-12-26 12:00:00 is later than usual (usually 2024-01-09"),
    ],
)
def test_times(day, words):
    found = said(NOON + day * DAY, NOON + WORKDAYS * DAY, kind="time", name="at", cycles=("day", "week"))
    assert found.startswith(words)


def test_ranges_of_dates_are_in_days_unless_that_hides_the_difference():
    noons = NOON + DAY * (np.arange(1000) % 9)  # 1 to 9 January, at noon
    bounds = "(usually 2024-01-01 12:00:00 to 2024-01-09 12:00:00)"
    assert (
        said(NOON + 8.25 * DAY, noons, kind="time", name="at") == f"at 2024-01-09 18:00:00 is later than usual {bounds}"
    )
    assert (
        said(NOON - 0.25 * DAY, noons, kind="time", name="at")
        == f"at 2024-01-01 06:00:00 is earlier than usual {bounds}"
    )
    assert said(NOON + 9 * DAY, noons, kind="time", name="at") == (
        "at 2024-01-10 12:00:00 is later than usual (usually 2024-01-01 to 2024-01-09)"
    )


def test_times_of_the_year_and_dates_alone():
    summers = NOON - DAY / 2 + DAY * np.concatenate([year * 365 + np.arange(150, 240) for year in range(3)])
    winter = NOON - DAY / 2 + DAY * 365
    found = said(winter, summers, kind="time", name="day", cycles=("year",))
    assert found == "day 2024-12-31 is at an unusual time of the year"
    found = said(winter + 2000 * DAY, summers, kind="time", name="day", cycles=("year",))
    assert found == "day 2030-06-23 is later than usual (usually 2024-06-06 to 2026-08-20)"


def test_durations():
    assert (
        said(9000.0, kind="duration", name="took") == "took 2 h 30 min is far above usual (usually 25 s to 16 min 14 s)"
    )


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        ("number", 9940, "9,940"),
        ("number", -0.0, "0"),
        ("number", 0.1 + 0.2, "0.3"),
        ("number", 1234.567, "1,234.6"),
        ("number", 9999.6, "9,999.6"),
        ("number", 12345.67, "12,346"),
        ("number", -1e12, "-1,000,000,000,000"),
        ("number", 1.5e17, "1.5e+17"),
        ("number", 1.234e-7, "1.234e-07"),
        ("number", float("nan"), ""),
        ("boolean", 1.0, "true"),
        ("boolean", 0.0, "false"),
        ("time", 0.0, "1970-01-01"),
        ("time", 1709193600.4, "2024-02-29 08:00:00"),
        ("time", 1e300, "1e+300 s"),
        ("duration", 0.25, "0.25 s"),
        ("duration", 119.0, "119 s"),
        ("duration", 3599.9, "60 min"),
        ("duration", 7199.9, "120 min"),
        ("duration", 7200.0, "2 h"),
        ("duration", -9000.0, "-2 h 30 min"),
        ("duration", 200_000.0, "2 d 8 h"),
        ("duration", 1e9, "11,574 d 2 h"),
    ],
)
def test_values_as_text(kind, number, text):
    assert shown(kind, number) == text


def test_years_have_no_thousands():
    assert shown("number", 1987.0, "Model year") == "1987"
    assert (
        said(1900.0, 2000 + np.arange(41.0) % 20, name="year") == "year 1900 is far below usual (usually 2000 to 2019)"
    )


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (0.4, "its nearest reference rows are as near as those of a typical row"),
        (3.14, "its nearest reference rows are 3.1 times as far away as those of a typical row"),
        (1234.5, "its nearest reference rows are 1,234 times as far away as those of a typical row"),
        (1e12, "its nearest reference rows are over a million times as far away as those of a typical row"),
    ],
)
def test_distances(ratio, words):
    assert isolation(ratio) == words


def test_hostile_and_long_names_are_one_short_line():
    found = said(9940.0, name="a\nb\x1b[0m" + "x" * 300)
    assert found == f"a b [0m{'x' * 52}… 9,940 is far above usual (usually 25 to 974)"
    assert said(9940.0, name="") == " 9,940 is far above usual (usually 25 to 974)"


def test_cells_of_texts_are_read_as_in_training():
    column = Column("amount", "number", gap_share=0.1)
    encoding = Encoding((column, Column("note", "dropped")), np.zeros(2), 10)
    columns = (
        RawColumn("amount", "text", np.array([0, 1, -1, 2, 0]), ("1,250", "abc", "7")),
        RawColumn("note", "text", np.array([-1, 0, 0, 0, 0]), ("x",)),
    )
    table = ColumnTable(columns)
    cells = values_of(encoding, table, np.array([4, 1, 2, 3]))
    assert [amount.text for amount, _ in cells] == ["1,250", "abc", "", "7"]
    np.testing.assert_array_equal([amount.number for amount, _ in cells], [1250, np.nan, np.nan, 7])
    assert [note.text for _, note in cells] == ["x"] * 4
    assert values_of(encoding, table, np.array([0]))[0][1].text == ""


def test_an_object_of_another_kind_is_shown_as_it_is():
    table = pd.DataFrame({"a": np.arange(60) % 7 * 1.5, "b": np.arange(60) % 11})
    detector = RGLD.plus(random_state=0).fit(table)
    new = pd.DataFrame({"a": pd.Series([pd.Timestamp("2024-03-04 12:30")], dtype=object), "b": [2]})
    (cells,) = values_of(detector.model_.encoding, detector.explain(new)._table, np.array([0]))
    assert cells[0].text == "2024-03-04 12:30:00" and np.isnan(cells[0].number)


def test_a_constant_column_kept_by_wish():
    table = pd.DataFrame({"level": np.full(60, 3), "other": np.arange(60) % 7})
    detector = RGLD.plus(columns={"level": "number"}, random_state=0).fit(table)
    found = detector.explain(pd.DataFrame({"level": [8], "other": [2]}))
    assert found.reasons(0)[0] == "level 8 is far above usual (usually 3)"
