"""Groups of rows that share their reasons, and the summary of a table."""

import numpy as np
import pandas as pd
import pytest

from rgld import RGLD, load
from rgld._explain.groups import _mean, _members, _rows_sharing, _said
from rgld._explain.kept_columns import kept_columns
from rgld._explain.words import Value, reason, shared_reason, uncommon, way


def test_rows_join_the_group_they_overlap_with():
    a, b, c = (0, "x"), (1, "far above usual"), (2, "y")
    # The third overlaps with the first by 0.5, the fourth with the first by 0.3 only and with the second by 0.6.
    weights = [{a: 0.7, b: 0.3}, {c: 1.0}, {a: 0.5, c: 0.5}, {b: 0.3, c: 0.6, (3, ""): 0.1}]
    assert _members(weights) == [[0, 2], [1, 3]]


def test_rows_without_reasons_are_alone():
    assert _members([{}, {}, {(0, ""): 1.0}]) == [[0], [1], [2]]


def test_groups_are_joined_by_their_mean_weights():
    a, b, c = (0, "x"), (1, "far above usual"), (2, "y")
    assert _mean([{a: 1.0}, {c: 1.0}, {a: 0.5, b: 0.5}], [0, 2]) == {a: 0.75, b: 0.25}

    def joined(weight):
        """Return what two groups become, of which the second has this weight in common with the first."""
        weights = [{a: 0.6, b: 0.4}] * 2 + [{a: weight, c: 1.0 - weight}] * 2
        return list(_said([[0, 1], [2, 3]], weights, lambda members: ("said",)))

    assert joined(0.4) == [([0, 1], ("said",)), ([2, 3], ("said",))]
    assert joined(0.5) == [([0, 1, 2, 3], ("said",))]


def test_groups_that_share_nothing_that_can_be_said_stay_apart():
    weights = [{(0, "x"): 1.0}] * 4
    found = _said([[0, 1], [2, 3]], weights, lambda members: ("said",) if members == [0, 1] else ())
    assert list(found) == [([0, 1], ("said",)), ([2], ()), ([3], ())]


@pytest.fixture(scope="module")
def table():
    """Return 900 orders; 30 from two shops never used otherwise, 4 far too large, one far too small."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "shop": rng.choice(["Bern", "Genf", "Chur"], 900),
            "amount": rng.normal(50.0, 5.0, 900).round(2),
            "items": rng.integers(1, 6, 900),
        }
    )
    frame.loc[range(0, 900, 30), "shop"] = ["Zug", "Visp"] * 15
    frame.loc[[1, 2, 3, 4], "amount"] = [900.0, 950.5, 990.0, 1000.0]
    frame.loc[5, "amount"] = -800.0
    return frame


def test_one_finding_for_one_reason(table):
    detector = RGLD.plus(random_state=0).fit(table)
    explanation = detector.explain(table)
    groups = explanation.groups([0, 30, 60, 90, 1, 2, 3, 4, 5])
    by_reason = {group.reasons[0]: set(group.rows) for group in groups}
    assert by_reason == {
        "shop 'Zug' seen 15 times in 900 rows": {0, 60},
        "shop 'Visp' seen 15 times in 900 rows": {30, 90},
        "amount from 900 to 1,000, far above usual (usually 40.56 to 59.63)": {1, 2, 3, 4},
        "amount -800 is far below usual (usually 40.56 to 59.63)": {5},
    }
    assert [explanation.anomaly_score[list(group.rows)].tolist() for group in groups] == [
        sorted(explanation.anomaly_score[list(group.rows)].tolist(), reverse=True) for group in groups
    ]


def test_two_rare_values_are_named_together(table):
    """If the rows share more than half of their reasons, and not the value of one column."""
    frame = table.assign(paid=np.where(table["shop"].isin(["Zug", "Visp"]), "cash", "card"), at=table["shop"].str[0])
    frame.loc[frame["paid"] == "cash", "at"] = "night"
    explanation = RGLD.plus(random_state=0).fit(frame).explain(frame)
    (group,) = explanation.groups(range(0, 900, 30))
    assert len(group) == 30 and "shop 'Visp' or 'Zug'" in group.reasons
    assert "paid 'cash' seen 30 times in 900 rows" in group.reasons


def test_groups_hold_every_row_once(table, tmp_path):
    detector = RGLD.plus(random_state=0).fit(table)
    detector.save(tmp_path / "m.rgld")
    groups = detector.explain(table).groups()
    assert sorted(row for group in groups for row in group.rows) == list(range(len(table)))
    assert load(tmp_path / "m.rgld").explain(table).groups() == groups
    assert detector.explain(table).groups([]) == []
    with pytest.raises(IndexError):
        detector.explain(table).groups([len(table)])


def test_a_reason_that_few_rows_of_a_group_have_is_not_shared(table):
    detector = RGLD.plus(random_state=0).fit(table)
    rows = table.iloc[[1, 2, 3, 4]].copy()
    rows.iloc[0, 0] = "Atlantis"
    (group,) = [group for group in detector.explain(rows).groups() if len(group) > 1]
    assert not any("Atlantis" in reason for reason in group.reasons)


def test_two_thirds_of_a_group_share_a_reason(table):
    encoding = RGLD.fast(random_state=0).fit(table).model_.encoding
    assert _rows_sharing(encoding, 1, {"far above usual": [0, 1, 2, 3]}, 6) == [0, 1, 2, 3]
    assert _rows_sharing(encoding, 1, {"far above usual": [0, 1, 2], "far below usual": [3, 4, 5]}, 6) == []
    assert _rows_sharing(encoding, 1, {"far above usual": [0]}, 1) == [], "one row shares nothing"


def test_a_second_value_is_named_if_it_is_rare_and_two_rows_have_it(table):
    encoding = RGLD.fast(random_state=0).fit(table).model_.encoding
    assert _rows_sharing(encoding, 0, {"Zug": [0, 2, 4], "Visp": [1, 3]}, 5) == [0, 1, 2, 3, 4]
    assert _rows_sharing(encoding, 0, {"Zug": [0, 1, 2, 3], "Visp": [4]}, 5) == [0, 1, 2, 3]
    assert _rows_sharing(encoding, 0, {"Zug": [0, 1], "Bern": [2, 3]}, 4) == []


# The words.


def kept_of(frame):
    return kept_columns(RGLD.fast(random_state=0).fit(frame).model_)


def test_ways():
    frame = pd.DataFrame({"x": [None, *np.arange(99.0)], "c": ["a", "b"] * 50})
    kept = kept_of(frame)
    low, high = kept[0].usual
    assert way(kept, 0, Value(high + 1, "?")) == "above usual"
    assert way(kept, 0, Value(high + 2 * (high - low), "?")) == "far above usual"
    assert way(kept, 0, Value(low - 1, "?")) == "below usual"
    assert way(kept, 0, Value(50.0, "50")) == "50"
    assert way(kept, 0, Value(np.nan, "")) == ""
    assert way(kept, 1, Value(np.nan, "b")) == "b"


def test_far_is_said_if_all_are():
    frame = pd.DataFrame({"x": np.sqrt(np.arange(10_000.0))[::100], "y": np.arange(100.0) % 7})
    kept = kept_of(frame)
    low, high = (f"{bound:.4g}" for bound in kept[0].usual)
    both = [Value(110.0, "110"), Value(900.0, "900")]
    assert shared_reason(kept, 0, both) == f"x from 110 to 900, above usual (usually {low} to {high})"
    assert shared_reason(kept, 0, both[:1] * 3) == f"x 110 is above usual (usually {low} to {high})"


def test_values_seen_once_are_one_way():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"pid": rng.choice([f"p{i}" for i in range(30)], 600), "x": rng.normal(size=600)})
    frame.loc[range(0, 600, 60), "pid"] = [f"once {i}" for i in range(10)]
    detector = RGLD.plus(random_state=0).fit(frame)
    first = detector.explain(frame[::60]).groups()[0]
    assert len(first) == 10 and first.reasons[0] == "pid: 10 values that were seen once in 600 rows"
    new = detector.explain(frame[::60].assign(pid=[f"new {i}" for i in range(10)])).groups()[0]
    assert len(new) == 10 and new.reasons[0] == "pid: 10 values that were never seen in 600 rows"


def test_having_a_value_is_one_way():
    rng = np.random.default_rng(2)
    values = np.where(rng.random(600) < 0.03, rng.normal(size=600), np.nan)
    frame = pd.DataFrame({"rare": values, "x": rng.normal(size=600)})
    rows = frame[frame["rare"].abs() < 1.5]
    found = RGLD.plus(random_state=0).fit(frame).explain(rows).groups()
    assert len(found[0]) > 0.7 * len(rows) and found[0].reasons == ("rare has a value (97 % of the rows have none)",)


def test_rows_that_share_nothing_that_can_be_said_are_no_group():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.choice(["a", "b"], 800) for name in "tuvwxyz"})
    detector = RGLD.plus(random_state=0).fit(frame)
    explanation = detector.explain(frame[:100])
    for group in explanation.groups():
        assert len({tuple(explanation.reasons(row)) or (explanation.kind(row),) for row in group.rows}) == 1


def test_a_value_may_come_unusually_often():
    rng = np.random.default_rng(4)
    customers = [f"c{i}" for i in rng.integers(0, 500, 1960)] + ["big"] * 40
    kept = kept_of(pd.DataFrame({"customer": customers, "x": rng.normal(size=2000)}))
    often = reason(kept, 0, Value(np.nan, "big"))
    assert often == "customer 'big' comes unusually often, 40 times in 2,000 rows"
    seldom = reason(kept, 0, Value(np.nan, kept.encoding.columns[0].values[-1]))
    assert "seen" in seldom and "often" not in seldom


def test_an_uncommon_value_is_said_if_nothing_else_can_be():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"phone": rng.choice(["yes", "no"], 1000, p=[0.9, 0.1]), "x": rng.normal(size=1000)})
    frame["paid"] = rng.random(1000) < 0.8
    kept = kept_of(frame)
    share = 100 * (frame["phone"] == "no").mean()
    assert uncommon(kept, 0, Value(np.nan, "no")) == f"phone 'no' ({share:.0f} % of the rows)"
    assert uncommon(kept, 0, Value(np.nan, "yes")) == ""
    assert uncommon(kept, 1, Value(0.5, "0.5")) == ""
    assert uncommon(kept, 2, Value(0.0, "false")).startswith("paid is false (")
