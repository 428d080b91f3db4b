"""Past to future: that time goes on is not an anomaly, and the year 2042 in a table of 2024 is one."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from rgld import RGLD, load
from rgld._table.future import natural_range, spread

MARCH = pd.Timestamp("2024-03-01")
DAY = 86_400.0


def rides(first_day, last_day, n, seed, columns=("x",)):
    rng = np.random.default_rng(seed)
    seconds = rng.uniform(first_day * DAY, last_day * DAY, n).round()
    frame = {"when": MARCH + pd.to_timedelta(seconds, unit="s")}
    return pd.DataFrame(frame | {name: rng.lognormal(0, 0.5, n) for name in columns})


@pytest.mark.parametrize("columns", [("x",), ("fare", "km", "tip", "wait")], ids=["two columns", "five columns"])
@pytest.mark.parametrize("days", [(21, 22), (21, 31), (21, 42)], ids=["the next day", "ten days", "three weeks"])
def test_later_rows_score_as_if_they_were_not_later(days, columns):
    """With 3000 rows, the share above the threshold has a standard error of 0.4 points; a distance of Kolmogorov and
    Smirnov above 0.06 would come by chance once in 10^9 tables, but 750 calibration rows move it by 0.03."""
    detector = RGLD.plus(random_state=0, calibration_fraction=0.25).fit(rides(0, 21, 3000, 1, columns))
    same, later = rides(0, 21, 3000, 2, columns), rides(*days, 3000, 3, columns)
    shares = [np.mean(detector.anomaly_score(rows) > -detector.offset_) for rows in (same, later)]
    assert abs(shares[0] - shares[1]) < 0.015
    assert kstest(detector.p_values(later, random_state=0), "uniform").statistic < 0.06
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
