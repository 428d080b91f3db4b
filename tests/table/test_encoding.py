"""What numbers a column becomes. The rules are in docs/tables.md."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import norm

from rgld import TableError
from rgld._table.encoding import Encoding

from .column_tables import FLOATS, days, encoded, raws, reading


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
