"""Numbers and dates as people write them, sentinels, and what is said about both."""

import numpy as np
import pandas as pd
import pytest

from rgld import RGLD, ParameterError, TableError, TableWarning
from rgld._table.sentinels import suspect

from .column_tables import learned, reading

RNG = np.random.default_rng(0)  # for the tables below; a test draws from the fixture `rng`
AMOUNTS = [1297.38, 12.5, 0.25, 98765.0, 7.0]
WRITTEN = {
    "decimal commas": (["1.297,38", "12,5", "0,25", "98.765", "7"], AMOUNTS),
    "decimal commas and euros": (["1.297,38 €", "12,5 €", "0,25 €", "98.765 €", "7 €"], AMOUNTS),
    "a currency after": (["1297.38 USD", "12.5 USD", "0.25 USD", "98765 USD", "7 USD"], AMOUNTS),
    "a currency before": (["USD 1297.38", "USD 12.5", "USD 0.25", "USD 98,765", "USD 7"], AMOUNTS),
    "a unit": (["1297.38 kg", "12.5 kg", "0.25kg", "98765 kg", "7"], AMOUNTS),
    "a unit and decimal commas": (["1.297,38 kg", "12,5 kg", "0,25 kg", "98.765 kg", "7 kg"], AMOUNTS),
    "months": (["36 months", "60 months", "12 months", "6 months", "1 months"], [36, 60, 12, 6, 1]),
}


@pytest.mark.parametrize(("strings", "numbers"), WRITTEN.values(), ids=WRITTEN)
def test_numbers_of_people(strings, numbers, rng):
    table = pd.DataFrame({"x": strings * 6, "other": rng.normal(size=30)})
    encoding = learned(table["x"])
    assert encoding.columns[0].kind == "number" and not encoding.columns[0].n_unread
    matrix = RGLD(random_state=0).fit(table).model_.kept_rows.rows
    assert set(np.round(matrix[:, 0], 6)) <= set(map(float, numbers))


@pytest.mark.parametrize(
    "strings",
    [
        ["500 g", "12 kg", "3 g", "7 kg"],
        ["1st", "2nd", "3rd", "4th"],
        ["1Story", "2Story", "1.5Fin", "SLvl"],
        ["N857DZ", "N596NW", "N858DZ", "N582NW"],
        ["shop 1", "shop 2", "shop 3", "shop 4"],
        ["12A", "14A", "15A", "18A"],
        ["250/500", "100/300", "500/1000", "50/100"],
        ["1.2.3", "1.2.4", "2.0.0", "10.1.1"],
        ["E24", "E9", "E20", "E10"],
    ],
)
def test_names_with_digits_stay_names(strings):
    assert reading(strings * 10).kind == "category"


def test_a_comma_may_be_a_thousand():
    assert reading(["1,234", "5,678", "12,345"] * 10).decimal_comma is False
    mixed = reading(["1,5", "2.5", "3,5", "4.5"] * 10)
    assert mixed.kind == "category" and not mixed.decimal_comma


DATES = {
    "19-Jun-2024": ["19-Jun-2024", "01-Jul-2024", "30-Dec-2023"],
    "19-Jun-24": ["19-Jun-24", "01-Jul-24", "30-Dec-23"],
    "Jun 19, 2024": ["Jun 19, 2024", "July 1, 2024", "Dec. 30 2023"],
    "19 June 2024": ["19 June 2024", "1 July 2024", "30 December 2023"],
    "19/06/24": ["19/06/24", "01/07/24", "30/12/23"],
    "06/19/24": ["06/19/24", "07/01/24", "12/30/23"],
    "19.06.24": ["19.06.24", "01.07.24", "30.12.23"],
    "20240619": ["20240619", "20240701", "20231230"],
    "numbers": [20240619, 20240701, 20231230],
}
SECONDS = [1718755200.0, 1719792000.0, 1703894400.0]


@pytest.mark.parametrize("values", DATES.values(), ids=DATES)
def test_dates_of_people(values):
    column = reading(values * 10)
    assert column.kind == "time" and not column.n_unread
    assert [column.date_knots[0], column.date_knots[-1]] == [min(SECONDS), max(SECONDS)]


def test_months_seconds_and_times_of_day(rng):
    assert reading(["2024-06", "2024-07", "2023-12"] * 10).time_format == "YYYY-MM"
    stamps = 1_700_000_000 + rng.integers(0, 10**6, 50)
    assert reading(stamps, name="created_at").time_format == "seconds since 1970"
    assert reading(stamps * 1000, name="timestamp").time_format == "milliseconds since 1970"
    assert reading(stamps, name="salary").kind == "number", "the name does not say time"
    assert reading(rng.integers(0, 10**6, 50), name="time").kind == "number", "no seconds of these years"
    assert reading(["18.00.00", "19.30.15", "07.00.00"] * 10).kind == "duration"
    clock = 100 * rng.integers(0, 24, 200) + rng.integers(0, 60, 200)
    assert reading(clock, name="DEP_TIME").time_format == "HHMM"
    assert reading(clock, name="distance").kind == "number"
    assert reading(rng.integers(0, 2400, 200), name="elapsed_time").kind == "number", "minutes above 59"


def test_asking_for_times_reads_what_it_can_and_says_what_it_cannot(rng):
    assert reading(rng.integers(10**9, 2 * 10**9, 30), "time", name="x").time_format == "seconds since 1970"
    column = reading(["2024-01-01", "soon", "2024-02-01"] * 10, "time")
    assert column.note == "10 values are not dates and count as missing, such as 'soon'"
    assert reading(["18.00.00", "19.00.00"] * 10, "time").kind == "duration"
    with pytest.raises(TableError, match="such as 20240619, or seconds since 1970"):
        reading(rng.integers(0, 99, 30), "time")


SENTINELS = {
    "-200 among positive numbers": np.append(RNG.gamma(4, 60, 900), np.full(40, -200.0)),
    "-999": np.append(RNG.normal(20, 8, 900), np.full(20, -999.0)),
    "9999": np.append(RNG.normal(900, 300, 900), np.full(20, 9999.0)),
    "mostly -200": np.append(RNG.gamma(4, 60, 100), np.full(900, -200.0)),
}
NO_SENTINELS = {
    "ages up to 99": np.clip(RNG.normal(40, 25, 900).round(), 0, 99),
    "counts": RNG.poisson(3, 900).astype(float),
    "ratings": RNG.integers(1, 6, 900).astype(float),
    "mostly nothing": np.append(RNG.gamma(4, 9000, 300), np.zeros(600)),
    "one outlier": np.append(RNG.normal(size=900), 1e6),
    "prices": RNG.choice([9.99, 19.99, 99.99, 999.0], 900),
    "years": RNG.integers(1990, 2024, 900).astype(float),
    "steps": RNG.choice([0, 2e6, 5e6, 1e7], 900),
}


@pytest.mark.parametrize("values", SENTINELS.values(), ids=SENTINELS)
def test_a_value_far_outside_that_repeats_is_suspected(values):
    column = reading(values, name="CO(GT)")
    assert column.kind == "number" and not column.has_gaps, "suggested, not decided"
    shown = f"{suspect(values, are_dates=False)[0]:.0f}"
    assert column.hint.startswith(f"{shown} comes in ") and column.hint.endswith(f"pass --na 'CO(GT)={shown}'")


@pytest.mark.parametrize("values", NO_SENTINELS.values(), ids=NO_SENTINELS)
def test_ends_of_ordinary_columns_are_not_suspected(values):
    assert reading(values, name="x").hint == ""


def test_dates_that_stand_for_none_are_suspected(rng):
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, 400), unit="D")
    hint = reading([*days, *[pd.Timestamp("1900-01-01")] * 12], name="birth").hint
    assert hint == "1900-01-01 comes in 12 rows, far before the others: if it means missing, pass --na birth=1900-01-01"


def test_values_that_mean_missing(rng):
    frame = pd.DataFrame({"a": np.append(rng.gamma(4, 60, 280), np.full(20, -200.0)), "b": rng.normal(size=300)})
    frame["c"] = rng.choice(["x", "y", "none"], 300)
    settings = {"random_state": 0, "n_global_views": 2, "n_local_views": 2}
    by_hand = RGLD(**settings).fit(frame.replace({"a": {-200.0: np.nan}, "c": {"none": None}}))
    for na_values in ({"a": [-200], "c": ["none"]}, {"a": ("-200.0",), "c": ["none"]}, [-200.0, "none"]):
        detector = RGLD(**settings, na_values=na_values).fit(frame)
        np.testing.assert_array_equal(
            detector.anomaly_score(frame), by_hand.anomaly_score(frame.replace({-200.0: np.nan, "none": None}))
        )
        batches = RGLD(**settings, na_values=na_values).fit_batches(lambda: iter([frame[:100], frame[100:]]))
        np.testing.assert_array_equal(detector.anomaly_score(frame), batches.anomaly_score(frame))
    with pytest.raises(TableError, match="There is no column 'A'"):
        RGLD(na_values={"A": [1]}).fit(frame)
    with pytest.raises(ParameterError, match="`na_values` is for tables with column names"):
        RGLD(na_values=[-200]).fit(frame[["a", "b"]].to_numpy())
    assert reading(["1", "\\N", "2"] * 10).gap_share > 0.3, "Postgres"


@pytest.mark.parametrize("preset", [RGLD.plus, RGLD.novelty, RGLD, RGLD.fast])
@pytest.mark.parametrize("seed", range(5))
def test_a_gap_where_none_was_is_evidence(preset, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"fare": rng.gamma(4, 5, 400), "km": rng.gamma(3, 2, 400), "paid": rng.integers(0, 2, 400)})
    frame["day"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(rng.integers(0, 60, 400), unit="D")
    frame["kind"] = rng.choice(list("abc"), 400)
    others = pd.DataFrame(rng.normal(size=(400, 12)), columns=[f"x{i}" for i in range(12)])  # one column among many
    for table in (frame, frame.join(others)):
        detector = preset(random_state=0).fit(table)
        usual = table.iloc[[int(detector.anomaly_score(table).argmin())]]
        before = detector.anomaly_score(usual)[0]
        for name in frame.columns:
            gap = usual.assign(**{name: None})
            assert detector.anomaly_score(gap)[0] > 0.99 > before
            explanation = detector.explain(gap)
            assert explanation.reasons(0)[0] == f"{name} is missing, which it never was in training"
            assert "has a new gap" in explanation.kind(0)


def test_what_cannot_be_read_is_a_new_gap_and_said():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"fare": rng.gamma(4, 5, 400), "km": rng.gamma(3, 2, 400)})
    detector = RGLD.plus(random_state=0).fit(frame)
    text = frame[:1].astype(object).assign(fare="abc")
    with pytest.warns(TableWarning, match="Column 'fare': 1 value cannot be read as numbers and counts as missing"):
        assert detector.anomaly_score(text)[0] == detector.anomaly_score(frame[:1].assign(fare=np.nan))[0] > 0.99


def test_new_gaps_are_as_rare_as_gaps_that_came_once():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(199, 8)), columns=list("abcdefgh"))
    for i, name in enumerate("abc"):
        frame.loc[i, name] = np.nan  # once each: another column may be the next
    detector = RGLD(random_state=0, n_global_views=2, n_local_views=2).fit(frame)
    rows = frame[50:51].assign(h=np.nan)
    assert detector.branch_scores(rows).gap_score[0] == 1 - (3 + 1) / (199 + 1)
    assert not detector.branch_scores(frame).gap_score.any()
    # The number that stands for a gap is no gap.
    beyond = detector.columns_[-1].gap_value
    assert detector.branch_scores(frame[50:51].assign(h=beyond)).gap_score[0] == 0.0
    # Any rows in any blocks: the same bits.
    many = pd.concat([frame.fillna(0.0)] * 2 + [rows])
    np.testing.assert_array_equal(detector.anomaly_score(many)[-1:], detector.anomaly_score(rows))
    # An array has no new gaps.
    array = RGLD(random_state=0, n_global_views=2, n_local_views=2).fit(frame.to_numpy())
    assert array.branch_scores(rows.to_numpy()).gap_score is None


def test_an_unreadable_value_is_no_news_if_training_had_some(rng):
    frame = pd.DataFrame({"fare": [*map(str, rng.gamma(4, 5, 95).round(2)), *["unknown"] * 5]})
    detector = RGLD(random_state=0, n_global_views=2, n_local_views=2).fit(frame)
    assert detector.columns_[0].n_unread == 5
    detector.anomaly_score(frame)  # warnings are errors
