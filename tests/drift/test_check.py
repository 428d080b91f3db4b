"""`RGLD.check`: what changed, in words, and nothing if nothing has changed."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest

from rgld import RGLD, ParameterError, load
from rgld._drift.sequence import Watch
from rgld._drift.verdict import check_rows
from rgld._fit.sampling import split_rows
from rgld._kernels import column_knots
from rgld._params import Parameters
from rgld._table.profiles import MAX_KNOTS, Profiles, profile_table
from rgld._table.table import MatrixTable

from ..fit.relation_tables import related


def trips(n, seed):
    rng = np.random.default_rng(seed)
    distance = rng.gamma(2.0, 2.0, n).round(2)
    return pl.DataFrame(
        {
            "distance": distance,
            "fare": (3.0 + 2.5 * distance + rng.normal(0.0, 1.0, n)).round(2),
            "payment": rng.choice(["card", "cash", "other"], n, p=[0.7, 0.25, 0.05]),
            "passengers": rng.integers(1, 5, n),
            "toll": rng.random(n) < 0.2,
            "tip": np.where(rng.random(n) < 0.3, np.nan, rng.random(n)),
            "wait": np.where(rng.random(n) < 0.01, "?!", rng.integers(0, 60, n).astype(str)),
        },
    ).with_columns(pl.col("tip").fill_nan(None))


@pytest.fixture(scope="module")
def detector():
    return RGLD.fast(calibration_fraction=0.2, random_state=0).fit(trips(3000, 0))


def said(detector, table):
    return detector.check(table).reasons


def test_an_ordinary_table_is_fine(detector):
    found = detector.check(trips(1000, 1))
    assert not found.drifted and found.reasons == [] and found.notes == ()
    assert len(found.columns) == 7


CHANGES = {
    "another unit": (pl.col("fare") * 100, "fare: median 1,1.. instead of 11..., 100 times as high: another unit?"),
    "a smaller unit": (
        pl.col("fare") / 1000,
        "fare: median 0.011.. instead of 11..., 1,000 times as low: another unit?",
    ),
    "a sign": (-pl.col("fare"), "fare: median -11... instead of 11..., the sign is turned"),
    "no value": (pl.lit(None).cast(pl.Float64).alias("distance"), "distance: empty in all rows (never in training)"),
    "more gaps": (
        pl.when(pl.int_range(pl.len()) % 2 == 0).then(None).otherwise(pl.col("tip")).alias("tip"),
        "tip: empty in 6. % of the rows (.. % in training)",
    ),
    "one value": (pl.lit(2).alias("passengers"), "passengers: always 2 (in training the median was [23])"),
    "a new value": (
        pl.col("payment").str.to_uppercase(),
        "payment: 100 % of the rows have a value never seen in training, such as 'CARD' "
        "(... rows, written 'card' in training)",
    ),
    "another mixture": (pl.col("payment").str.replace("card", "cash"), "payment: 'card' in no row (.. % in training)"),
    "another share": (~pl.col("toll"), "toll: true in .. % of the rows instead of .. %"),
    "unreadable values": (
        pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("late")).otherwise(pl.col("wait")).alias("wait"),
        "wait: 3. % of the values are not a number, such as 'late' (.* % in training)",
    ),
    "out of range": (
        pl.when(pl.int_range(pl.len()) < 12).then(500.0).otherwise(pl.col("distance")).alias("distance"),
        "distance: 1[23] values above the highest of training, .*: up to 500",
    ),
    "a wider spread": (
        ((pl.col("tip") - 0.5) * 3 + 0.5).alias("tip"),
        "tip: spread [23].[0-9] times as wide as in training",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_in_words(detector, change):
    expression, words = CHANGES[change]
    table = trips(900, 2).with_columns(expression)
    pattern = words.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")
    columns = [reason for reason in said(detector, table) if not reason.startswith("rows:")]
    assert len(columns) == 1 and re.fullmatch(pattern, columns[0]), columns


def test_rows_that_break_a_relation_are_found_though_every_column_is_as_before():
    detector = RGLD.plus(calibration_fraction=0.2, random_state=0).fit(trips(3000, 0).select("distance", "fare"))
    table = trips(900, 3).select("distance", "fare")
    shuffled = table.with_columns(pl.col("fare").shuffle(seed=0))
    assert not detector.check(table).drifted
    found = detector.check(shuffled)
    assert found.drifted_columns == ()
    assert found.batch_alarm and found.sequence_alarm and found.rows.is_higher
    assert (
        found.reasons[0].startswith("fare ≈ 2.5 × distance + 3")
        and "rows break it (none of the 600 held-out rows)" in found.reasons[0]
    )
    assert found.reasons[-2].startswith("rows: they are more unusual than the 600 rows held out in training")
    assert found.rows.alarm_row < 900


def test_bets_go_on_from_table_to_table(detector):
    first = detector.check(trips(300, 4))
    second = detector.check(trips(200, 5), watch=first.watch)
    both = detector.check(pl.concat([trips(300, 4), trips(200, 5)]))
    assert second.watch == both.watch
    assert second.watch.n_rows == 500


def payments(n, seed, start="2024-03-01"):
    """Return rows of 90 days in random order."""
    rng = np.random.default_rng(seed)
    time = np.datetime64(start) + (rng.random(n) * 90 * 86_400e6).astype("timedelta64[us]")
    return pl.DataFrame({"time": time, "amount": rng.lognormal(3, 0.7, n), "items": rng.poisson(3, n)})


@pytest.mark.parametrize("descending", [False, True])
def test_rows_in_the_order_of_their_dates_are_no_drift(descending):
    train = payments(4000, 0).sort("time")
    detector = RGLD.plus(calibration_fraction=0.2, random_state=0).fit(train)
    for table in (train, payments(3000, 1), payments(3000, 2, "2024-06-01")):
        in_order = table.sort("time", descending=descending)
        found = detector.check(in_order)
        assert not found.drifted and found.rows.sorted_by == "time" and found.rows.alarm_row is None
        assert found.as_dict()["sequence"]["sorted_by"] == "time"
    shuffled = payments(3000, 1)
    assert detector.check(shuffled).rows.sorted_by is None
    changed = payments(3000, 1).sort("time").with_columns(pl.col("amount", "items").shuffle(seed=0) * 3)
    found = detector.check(changed)
    assert found.sequence_alarm and found.rows.alarm_row is None
    assert "in random order" in found.reasons[-1] and "the rows are in the order of time" in found.reasons[-1]
    missing = train.with_columns(time=pl.lit(None, pl.Datetime))
    assert detector.check(missing).rows.sorted_by is None


def test_bets_on_rows_in_the_order_of_their_dates_are_fair():
    """The money of a bet in random order is 1 on average, though the scores rise with the rows."""
    rng = np.random.default_rng(0)
    money = []
    for _ in range(400):
        scores = rng.random(300)
        calibration, new = scores[:100], np.sort(scores[100:])
        in_random_order, _ = check_rows(calibration, new, 0.01, Watch.begin(calibration), "time")
        as_they_are, _ = check_rows(calibration, new, 0.01, Watch.begin(calibration))
        money.append((in_random_order.highest, as_they_are.highest))
    reached = np.mean(np.array(money) >= np.log(20), axis=0)
    assert reached[0] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert reached[1] > 0.9


def test_many_rare_values_that_were_never_seen():
    """No value comes twice, so no single one is suspicious: all of them together are."""
    rng = np.random.default_rng(0)
    known = rng.choice(1000, 3000) // rng.choice([1, 2, 5, 20], 3000)
    train = pl.DataFrame({"word": [f"w{i}" for i in known], "x": rng.random(3000)})
    detector = RGLD.fast(random_state=0, columns={"word": "category"}).fit(train)
    same = pl.DataFrame({"word": [f"w{i}" for i in rng.permutation(known)[:500]], "x": rng.random(500)})
    assert said(detector, same) == []
    other = same.with_columns(pl.Series("word", [f"new {i}" for i in range(500)]))
    assert said(detector, other)[0].startswith("word: 100 % of the rows have a value never seen in training")


def test_what_is_not_known_is_said(detector, tmp_path):
    uncalibrated = RGLD.fast(random_state=0).fit(trips(500, 0))
    found = uncalibrated.check(trips(200, 1))
    assert found.rows is None and found.watch is None
    assert found.notes[0].startswith("rows: not checked, because the model held no rows out")
    old = load_without_profiles(detector, tmp_path)
    old.model_ = replace(old.model_, profiles=Profiles.none())
    found = old.check(trips(300, 2).with_columns(pl.lit(None).cast(pl.Float64).alias("fare")))
    assert [note[:40] for note in found.notes] == ["columns: of numbers only gaps are checke"]
    assert found.reasons[0] == "fare: empty in all rows (never in training)"


def load_without_profiles(detector, folder):
    detector.save(folder / "model.rgld")
    return load(folder / "model.rgld")


def test_a_loaded_model_says_the_same(detector, tmp_path):
    table = trips(500, 6).with_columns(pl.col("fare") * 60)
    loaded = load_without_profiles(detector, tmp_path)
    assert json.dumps(loaded.check(table).as_dict()) == json.dumps(detector.check(table).as_dict())


def test_fit_batches_and_partial_fit_keep_the_same_profiles():
    table = trips(2000, 7)
    whole = RGLD.fast(random_state=0).fit(table).model_.profiles
    parts = RGLD.fast(random_state=0).fit_batches([table[:700], table[700:]]).model_.profiles
    stream = RGLD.fast(random_state=0).partial_fit(table[:900]).partial_fit(table[900:]).model_.profiles
    for other in (parts, stream):
        for name in ("totals", "n_knots", "knots", "counts"):
            assert np.array_equal(getattr(whole, name), getattr(other, name))


def test_a_long_table_in_parts_has_profiles(monkeypatch):
    from rgld._fit import sampling

    monkeypatch.setattr(sampling, "MAX_SAMPLE_ROWS", 800)
    monkeypatch.setattr(sampling, "MIN_SAMPLE_ROWS", 800)
    table = trips(3000, 8)
    whole = RGLD.fast(random_state=0, calibration_fraction=0.1).fit(table)
    parts = RGLD.fast(random_state=0, calibration_fraction=0.1).fit_batches([table[:1700], table[1700:]])
    for detector in (whole, parts):
        assert detector.model_.profiles[0].n_rows == 800
        assert not detector.check(trips(700, 9)).drifted


def test_a_profile_is_bounded_and_exact_for_few_values():
    rng = np.random.default_rng(0)
    matrix = np.column_stack((rng.normal(size=4000), rng.integers(0, 4, 4000), np.full(4000, np.nan)))
    matrix[:7, 1] = np.nan
    detector = RGLD.fast(random_state=0).fit(matrix)
    profiles = profile_table(MatrixTable(matrix), detector.model_.encoding, partial(column_knots, n_threads=1))
    assert len(profiles[0].knots) == MAX_KNOTS
    assert profiles[0].counts[-1] == 4000 and profiles[0].knots[-1] == matrix[:, 0].max()
    assert profiles[0].quantile(0.5) == pytest.approx(np.median(matrix[:, 0]), abs=0.03)
    assert profiles[1].knots.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert profiles[1].counts.tolist() == [int(np.sum(matrix[:, 1] <= value)) for value in range(4)]
    assert (profiles[1].n_present, profiles[1].n_missing, profiles[1].n_unread) == (3993, 7, 0)
    assert profiles[2].n_rows == 0  # dropped: it has no value


def test_json_schema(detector):
    content = json.loads(json.dumps(detector.check(trips(300, 1)).as_dict()))
    assert (content["schema"], content["version"], content["verdict"]) == ("rgld-check", 1, "fine")
    assert set(content) == {
        *("schema", "version", "verdict", "rows", "alpha", "level", "reasons", "notes", "sequence", "batch", "columns"),
        *("broken_relations", "relations"),
    }
    assert set(content["columns"][0]) == {
        *("name", "kind", "drifted", "p_value", "gaps", "gaps_in_training", "unread", "unseen", "distance", "findings")
    }


@pytest.mark.parametrize("alpha", [0, 1, -1, "0.1", None])
def test_alpha_is_a_probability(detector, alpha):
    with pytest.raises(ParameterError, match="alpha must be a number in"):
        detector.check(trips(10, 0), alpha=alpha)


def test_one_row_is_no_evidence(detector):
    assert not detector.check(trips(1, 0)).drifted


def test_a_profile_of_a_matrix_is_that_of_its_columns():
    """Wide matrices have a way of their own, which is faster."""
    rng = np.random.default_rng(1)
    matrix = np.column_stack((rng.normal(size=(300, 3)), rng.integers(0, 50, 300), rng.random(300).round(2)))
    matrix[5, 2] = np.nan
    frame = pl.DataFrame(matrix, schema=list("abcde"), nan_to_null=True)
    plain, named = (RGLD.fast(random_state=0).fit(table).model_.profiles for table in (matrix, frame))
    for name in ("totals", "n_knots", "knots", "counts"):
        assert np.array_equal(getattr(plain, name), getattr(named, name))


@pytest.mark.parametrize("fitted", [RGLD.fast, RGLD.plus])
def test_a_profile_of_many_rows_is_one_of_some_unless_their_columns_were_sorted(fitted):
    matrix = np.random.default_rng(2).normal(size=(9000, 2))
    matrix[:, 1] = np.append(1e300, matrix[1:, 1].round(1))
    profiles = fitted(random_state=0).fit(matrix).model_.profiles
    assert [profiles[j].n_rows for j in (0, 1)] == [9000, 9000]
    for j in (0, 1):
        counts = [np.sum(matrix[:, j] <= knot) for knot in profiles[j].knots]
        assert profiles[j].counts.tolist() == counts
        assert (profiles[j].knots[0], profiles[j].knots[-1]) == (matrix[:, j].min(), matrix[:, j].max())
    matrix[5, 0] = np.nan
    assert fitted(random_state=0).fit(matrix).model_.profiles[1].n_rows == 4096


def test_relations_that_many_rows_break_are_said():
    detector = RGLD.plus(calibration_fraction=0.2, random_state=0).fit(related(1500, broken=False))
    fine = detector.check(related(500, seed=1, broken=False))
    assert fine.broken_relations == ()
    new = related(500, seed=2, broken=False).with_columns(total=pl.col("total") + 3.0 * (pl.col("quantity") > 30))
    found = detector.check(new)
    assert found.drifted
    (said,) = [text for text in found.reasons if text.startswith("total = fare + tip")]
    assert "rows break it (none of the 300 held-out rows)" in said
    content = found.as_dict()
    assert content["broken_relations"] == list(found.broken_relations)
    (line,) = [one for one in content["relations"] if one["drifted"] and one["relation"].startswith("total")]
    assert line["columns"] == ["total", "fare", "tip"] and line["broken_held_out"] == 0.0 < line["broken"]


def test_a_relation_that_rows_break_is_an_alarm_of_its_own(tmp_path):
    """Every column keeps its values, and so do the scores of most rows: only the sum is no longer one."""
    detector = RGLD.plus(calibration_fraction=0.2, random_state=0).fit(related(3000, broken=False))
    new = related(600, seed=2, broken=False)
    swapped = np.arange(600)
    swapped[:40] = np.roll(swapped[:40], 1)
    found = detector.check(new.with_columns(tip=new["tip"].gather(swapped)))
    assert found.drifted and found.drifted_relations and not found.drifted_columns
    assert found.drifted_relations[0].p_value <= found.level
    detector.save(tmp_path / "model.rgld")
    again = load(tmp_path / "model.rgld").check(new.with_columns(tip=new["tip"].gather(swapped)))
    assert again.as_dict() == found.as_dict()


def test_the_held_out_rows_that_break_a_relation_are_counted():
    """Seven of the rows that are held out have a borough that is not that of their zone."""
    table, detector = related(2000, seed=3, broken=False), RGLD.plus(calibration_fraction=0.3, random_state=1)
    _, held_out, _ = split_rows(len(table), table.width, Parameters.of(detector), 1)
    borough = table["borough"].to_list()
    for row in held_out[:7].tolist():
        borough[row] = "borough 9"
    table = table.with_columns(borough=pl.Series(borough))
    found = detector.fit(table).check(table[held_out])
    (one,) = [one for one in found.relations if one.relation.startswith("zone determines borough")]
    assert one.held_out == (7, 600)
    assert all((other.n_broken, other.n_rows) == other.held_out and other.p_value == 1.0 for other in found.relations)


def test_without_held_out_rows_broken_relations_are_said_and_give_no_alarm():
    detector = RGLD.plus(random_state=0).fit(related(1500, broken=False))
    assert not len(detector.model_.relations.held_out.n_broken)
    new = related(600, seed=2, broken=False)
    found = detector.check(new.with_columns(tip=new["tip"].gather(np.roll(np.arange(600), 1))))
    assert not found.drifted and found.broken_relations and not found.drifted_relations
    assert "training rows)" in found.broken_relations[0]
