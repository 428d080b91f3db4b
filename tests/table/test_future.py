"""Past to future: that time goes on is not an anomaly, and the year 2042 in a table of 2024 is one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from rgld import RGLD, load
from rgld._table.far_dates import date_score
from rgld._table.future import DateRange, natural_range, put_back, spread
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


def share_above(detector, table):
    return np.mean(detector.anomaly_score(table) > -detector.offset_)


@pytest.mark.parametrize("make", [RGLD, RGLD.plus, RGLD.novelty], ids=["paper", "plus", "novelty"])
def test_journeys_go_on(make):
    """Two dates of a row belong together: if each were put among the training dates by itself, journeys of minutes
    would become journeys of days, and most of the new rows would be outliers."""

    def journeys(first_day, last_day, n, seed):
        table = rides(first_day, last_day, n, seed, ("fare", "km"))
        minutes = np.random.default_rng(seed).lognormal(2.5, 0.5, n).round()
        table.insert(1, "arrival", table["when"] + pd.to_timedelta(minutes, unit="min"))
        return table

    detector = make(random_state=0).fit(journeys(0, 21, 3000, 1))
    same = share_above(detector, journeys(0, 21, 10_000, 2))
    for days in ((21, 22), (21, 42)):
        assert abs(share_above(detector, journeys(*days, 10_000, 3)) - same) < 0.01


@pytest.mark.parametrize("make", [RGLD, RGLD.plus, RGLD.novelty], ids=["paper", "plus", "novelty"])
def test_rows_of_one_new_day_spread_over_all_training_days(make):
    def days(first_day, last_day, n, seed):
        table = rides(first_day, last_day, n, seed, ("fare", "km"))
        return table.assign(when=table["when"].dt.floor("D"))

    detector = make(random_state=0).fit(days(0, 21, 3000, 1))
    same = share_above(detector, days(0, 21, 10_000, 2))
    for day in (21, 23, 30):
        assert abs(share_above(detector, days(day, day + 1, 10_000, 3)) - same) < 0.01


PRESETS = {"paper": RGLD, "fast": RGLD.fast, "plus": RGLD.plus, "novelty": RGLD.novelty}


@pytest.mark.parametrize("make", PRESETS.values(), ids=PRESETS)
def test_a_date_of_another_age_comes_first(make, tmp_path):
    columns = ("fare", "km", "tip", "wait")
    detector = make(random_state=0).fit(rides(0, 21, 2000, 1, columns))
    new = rides(21, 31, 2000, 2, columns)
    for date in ("2042-03-05 14:00", "1970-01-01 14:00"):
        new.loc[17, "when"] = pd.Timestamp(date)
        scores = detector.anomaly_score(new)
        assert scores.argmax() == 17 and scores[17] == detector.branch_scores(new[17:18]).date_score[0]
        assert detector.explain(new[17:18]).kind(0).startswith("has a date of another age")
        assert f"when {date}:00 is {'later' if date > '2024' else 'earlier'} than usual" in " ".join(
            detector.explain(new[17:18]).reasons(0)
        )
    detector.save(tmp_path / "m.rgld")
    np.testing.assert_array_equal(load(tmp_path / "m.rgld").anomaly_score(new), scores)


@pytest.mark.parametrize("make", PRESETS.values(), ids=PRESETS)
def test_a_mistyped_year_in_training_comes_first_and_makes_nothing_natural(make):
    training = rides(0, 21, 2000, 1, ("fare", "km", "tip", "wait"))
    training.loc[17, "when"] = pd.Timestamp("2042-03-05 14:00")
    detector = make(random_state=0).fit(training)
    assert detector.anomaly_score(training).argmax() == 17
    np.testing.assert_array_equal(detector.fit_predict(training), detector.predict(training))
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


SIX_WEEKS = DateRange(np.linspace(0.0, 42.0, 33) * DAY, 94.5 * DAY, (DAY, 7 * DAY), are_years=False)
LIVES = DateRange(np.linspace(-9000.0, -1000.0, 33) * DAY, 9000.0 * DAY, (DAY, 7 * DAY, 364 * DAY), are_years=False)
YEARS_OF_LIFE = DateRange(np.linspace(2015.0, 2020.0, 33), 2026.25, (), are_years=True)


def test_the_dates_of_a_row_move_together_by_whole_weeks():
    begin = np.array([43.25, 50.5, 60.0, 41.0])
    dates = np.column_stack((begin, begin + 1.5, [-5000.0, -990.0, np.nan, -4000.0])) * DAY
    moved = put_back(dates, (SIX_WEEKS, SIX_WEEKS, LIVES), np.array([0.0, 0.3, 0.99, 0.5]))
    back = (dates - moved) / DAY
    np.testing.assert_array_equal(back[:, 0], back[:, 1], "a journey takes as long as before")
    np.testing.assert_array_equal(back[[0, 1, 3], 0], back[[0, 1, 3], 2])
    np.testing.assert_array_equal(back[:, 0] % 7, 0.0)
    assert np.isnan(moved[2, 2])
    assert np.all(moved[:, :2] >= 0.0) and np.all(moved[:, :2] <= 42 * DAY)
    assert moved[0, 0] < 7 * DAY < moved[1, 0] < 21 * DAY < moved[2, 0], "as early or late as drawn"
    assert back[3, 0] > 0.0, "the fourth row begins in time and ends late"


def test_a_date_that_cannot_follow_the_others_of_its_row_moves_by_itself():
    dates = np.array([[1.0, 90.0, -900.0], [200.0, 50.0, -900.0]]) * DAY
    moved = put_back(dates, (SIX_WEEKS, SIX_WEEKS, LIVES), np.array([0.5, 0.5])) / DAY
    assert moved[0, 0] == 1.0, "89 days between two dates of six weeks"
    assert moved[1, 0] == 200.0, "not natural"
    assert np.all((moved[:, 1] >= 0.0) & (moved[:, 1] <= 42.0))
    assert np.all((moved[:, 2] >= -9000.0) & (moved[:, 2] <= -1000.0))


def test_a_late_year_is_put_where_the_date_of_its_row_is():
    dates = np.column_stack((np.linspace(43.0, 90.0, 20) * DAY, np.full(20, 2021.0)))
    moved = put_back(dates, (SIX_WEEKS, YEARS_OF_LIFE), np.linspace(0.0, 0.99, 20))
    assert np.corrcoef(moved.T)[0, 1] > 0.9 and moved[:, 1].min() >= 2015.0 and moved[:, 1].max() <= 2020.0


def test_where_a_late_row_is_put_depends_on_the_row_alone():
    table = rides(0, 21, 500, 1, ("fare", "km"))
    detector = RGLD.plus(random_state=0).fit(table)
    late = rides(25, 26, 50, 2, ("fare", "km"))
    scores = detector.anomaly_score(late)
    np.testing.assert_array_equal(np.concatenate([detector.anomaly_score(late[i : i + 1]) for i in range(50)]), scores)
    np.testing.assert_array_equal(detector.anomaly_score(late[::-1])[::-1], scores)


def test_a_model_of_an_older_release_puts_late_dates_where_it_did():
    """Its columns have no `far_shares`: a date is put among the training dates by itself, none is of another age."""
    table, new = rides(0, 21, 500, 1), rides(25, 26, 50, 2)
    new.loc[3, "when"] = pd.Timestamp("2042-03-05 14:00")
    encoding = RGLD(random_state=0).fit(table).model_.encoding
    old = replace(encoding, columns=tuple(replace(column, far_shares=()) for column in encoding.columns))
    read = read_training_table(new)[1]
    expected = spread(
        new["when"].astype("datetime64[s]").astype("int64").to_numpy(float),
        encoding.columns[0].date_knots,
        encoding.columns[0].natural_until,
    )
    np.testing.assert_array_equal(read.encode(old)[:, 0], expected)
    assert date_score(old, read, read.encode(old)) is None
    assert np.flatnonzero(date_score(encoding, read, read.encode(encoding))).tolist() == [3]


def test_dates_that_are_often_far_out_are_of_no_other_age():
    table = rides(0, 21, 500, 1)
    table.loc[::20, "when"] = pd.Timestamp("2042-03-05 14:00")
    detector = RGLD(random_state=0).fit(table)
    assert detector.columns_[0].far_shares == (0.0, 0.05)
    assert not detector.branch_scores(table).date_score.any()


def test_one_day_has_no_later_days():
    assert natural_range(np.zeros(50)) == ((), 0.0)


def sales(first, last, n, seed, name="Yr Sold"):
    rng = np.random.default_rng(seed)
    years = rng.integers(first, last + 1, n)
    return pd.DataFrame({name: years, "price": rng.lognormal(0, 0.5, n), "size": rng.normal(size=n)})


@pytest.mark.parametrize("make", [RGLD, RGLD.plus, RGLD.novelty], ids=["paper", "plus", "novelty"])
def test_years_go_on(make, tmp_path):
    detector = make(random_state=0).fit(sales(2015, 2020, 3000, 1))
    assert detector.columns_[0].kind == "number"
    tables = [sales(*years, 10_000, 2) for years in ((2015, 2020), (2021, 2021), (2021, 2024))]
    same, next_year, four_years = (np.mean(detector.anomaly_score(table) > -detector.offset_) for table in tables)
    assert abs(next_year - same) < 0.01 and abs(four_years - same) < 0.01
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
