"""Past to future: that time goes on is not an anomaly, and the year 2042 in a table of 2024 is one."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from rgld import RGLD, load
from rgld._table.future import natural_range, spread
from rgld._table.schema import read_training_table

from .column_tables import reading

MARCH = pd.Timestamp("2024-03-01")
DAY = 86_400.0


def rides(first_day, last_day, n, seed, columns=("x",)):
    rng = np.random.default_rng(seed)
    seconds = rng.uniform(first_day * DAY, last_day * DAY, n).round()
    frame = {"when": MARCH + pd.to_timedelta(seconds, unit="s")}
    return pd.DataFrame(frame | {name: rng.lognormal(0, 0.5, n) for name in columns})


@pytest.mark.parametrize("columns", [("x",), ("fare", "km", "tip", "wait")], ids=["two columns", "five columns"])
@pytest.mark.parametrize("make", [RGLD.plus, RGLD.novelty], ids=["plus", "novelty"])
@pytest.mark.parametrize("days", [(21, 22), (21, 42)], ids=["the next day", "three weeks"])
def test_later_rows_score_as_if_they_were_not_later(days, make, columns):
    """With 10,000 rows, the difference of two shares above the threshold has a standard error of 0.3 points; a distance
    of Kolmogorov and Smirnov above 0.06 would hardly come by chance, but 750 calibration rows move it by 0.03."""
    detector = make(random_state=0, calibration_fraction=0.25).fit(rides(0, 21, 3000, 1, columns))
    same, later = rides(0, 21, 10_000, 2, columns), rides(*days, 10_000, 3, columns)
    shares = [np.mean(detector.anomaly_score(rows) > -detector.offset_) for rows in (same, later)]
    assert abs(shares[0] - shares[1]) < 0.01
    assert kstest(detector.p_values(later[:3000], random_state=0), "uniform").statistic < 0.06
    reasons = [detector.explain(later[:50]).reasons(row) for row in range(50)]
    assert not any("later than usual" in reason for row in reasons for reason in row)


@pytest.mark.parametrize("make", [RGLD.plus, RGLD.novelty], ids=["plus", "novelty"])
def test_a_date_of_another_age_comes_first(make, tmp_path):
    columns = ("fare", "km", "tip", "wait")
    detector = make(random_state=0).fit(rides(0, 21, 2000, 1, columns))
    new = rides(21, 31, 2000, 2, columns)
    for date in ("2042-03-05 14:00", "1970-01-01 14:00"):
        new.loc[17, "when"] = pd.Timestamp(date)
        scores = detector.anomaly_score(new)
        assert scores.argmax() == 17
        assert f"when {date}:00 is {'later' if date > '2024' else 'earlier'} than usual" in " ".join(
            detector.explain(new[17:18]).reasons(0)
        )
    detector.save(tmp_path / "m.rgld")
    np.testing.assert_array_equal(load(tmp_path / "m.rgld").anomaly_score(new), scores)


def test_a_mistyped_year_in_training_comes_first_and_makes_nothing_natural():
    training = rides(0, 21, 2000, 1)
    training.loc[17, "when"] = pd.Timestamp("2042-03-05 14:00")
    detector = RGLD.plus(random_state=0).fit(training)
    assert detector.anomaly_score(training).argmax() == 17
    column = detector.columns_[0]
    assert pd.Timestamp(column.date_knots[-1], unit="s") < pd.Timestamp("2024-03-22")
    assert pd.Timestamp(column.natural_until, unit="s") < pd.Timestamp("2024-04-20")


def test_dates_of_days_alone_are_put_apart_day_by_day():
    days = np.arange(100) * DAY
    knots, until = natural_range(days)
    assert knots[0] == 0 and knots[-1] == 99 * DAY and until == pytest.approx(99 * DAY * 2.25)
    later = (99 + np.arange(1, 90)) * DAY
    placed = spread(later, knots, until)
    assert placed.min() < 5 * DAY and placed.max() > 94 * DAY and 45 * DAY < placed.mean() < 55 * DAY
    assert 0.25 < placed[0] / knots[-1] < 0.75, "the first day after the table is not at its edge"
    np.testing.assert_array_equal(spread(days, knots, until), days)
    early = np.array([-50.0 * DAY])
    np.testing.assert_array_equal(spread(early, knots, until), early)


def test_dates_far_out_that_are_not_rare_stay_where_they_are():
    days = np.append(np.arange(100) * DAY, [1e6 * DAY] * 5)
    knots, until = natural_range(days)
    far = np.array([1e6 * DAY])
    np.testing.assert_array_equal(spread(far, knots, until), far)


def test_one_day_has_no_later_days():
    assert natural_range(np.zeros(50)) == ((), 0.0)


def sales(first, last, n, seed, name="Yr Sold"):
    rng = np.random.default_rng(seed)
    years = rng.integers(first, last + 1, n)
    return pd.DataFrame({name: years, "price": rng.lognormal(0, 0.5, n), "size": rng.normal(size=n)})


@pytest.mark.parametrize("make", [RGLD.plus, RGLD.novelty], ids=["plus", "novelty"])
def test_years_go_on(make, tmp_path):
    detector = make(random_state=0).fit(sales(2015, 2020, 3000, 1))
    assert detector.columns_[0].kind == "number"
    tables = [sales(*years, 10_000, 2) for years in ((2015, 2020), (2021, 2021), (2021, 2024))]
    same, next_year, four_years = (np.mean(detector.anomaly_score(table) > -detector.offset_) for table in tables)
    # All rows of the next year are put at one training year, which is not as usual as all of them together.
    assert abs(next_year - same) < 0.015 and abs(four_years - same) < 0.01
    new = sales(2021, 2024, 2000, 4)
    new.loc[17, "Yr Sold"] = 2042
    assert detector.anomaly_score(new).argmax() == 17
    assert detector.explain(new[17:18]).reasons(0)[0] == "Yr Sold 2042 is far above usual (usually 2015 to 2020)"
    detector.save(tmp_path / "m.rgld")
    np.testing.assert_array_equal(load(tmp_path / "m.rgld").anomaly_score(new), detector.anomaly_score(new))


def test_training_years_stay_where_they_are():
    table = sales(2015, 2020, 500, 1)
    table.loc[3, "Yr Sold"] = 2042
    encoded = RGLD(random_state=0).fit(table)
    matrix = read_training_table(table)[1].encode(encoded.model_.encoding)
    np.testing.assert_array_equal(matrix[:, 0], table["Yr Sold"])


YEARS = np.random.default_rng(7).integers(2015, 2021, 400)


@pytest.mark.parametrize(
    ("name", "values", "go_on"),
    [
        ("Yr Sold", YEARS, True),
        ("model_year", YEARS, True),
        ("season", YEARS, True),
        ("Year Built", np.random.default_rng(8).integers(1870, 2011, 400), True),
        ("price", np.random.default_rng(9).choice([1999, 2015, 2049], 400), False),
        ("years as customer", np.random.default_rng(9).integers(0, 40, 400), False),
        ("age", np.random.default_rng(9).integers(18, 90, 400), False),
        ("calories", np.random.default_rng(9).integers(1500, 2600, 400), False),
        ("year", YEARS + 0.5, False),
    ],
)
def test_what_is_a_year(name, values, go_on):
    column = RGLD(random_state=0).fit(pd.DataFrame({name: values, "x": np.arange(400.0) ** 2})).columns_[0]
    assert column.kind == "number" and bool(column.date_knots) == go_on


def test_months_as_digits_go_on():
    months = np.random.default_rng(7).integers(0, 24, 400)
    column = reading((2020 + months // 12) * 100 + months % 12 + 1, name="period")
    assert (column.kind, column.time_format, "week" in column.cycles) == ("time", "YYYYMM", False)
    assert pd.Timestamp(column.date_knots[-1], unit="s") == pd.Timestamp("2021-12-01")
    assert reading(np.random.default_rng(7).integers(202_000, 203_000, 400), name="amount").kind == "number"
    assert reading(np.array([202001, 202002, 202005] * 20), name="amount").kind == "number", "too few to tell"
