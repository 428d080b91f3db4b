"""Reasons that name the partner and what was expected."""

import polars as pl
import pytest

from rgld import RGLD, load

from ..fit.relation_tables import broken_rows, related


@pytest.fixture(scope="module")
def fitted():
    table = related()
    return RGLD.plus(random_state=0).fit(table), table


def test_the_most_telling_reason_comes_first_and_names_the_partner(fitted):
    detector, table = fitted
    rows = broken_rows()
    explanation = detector.explain(table[rows])
    total, product, order, determined = (explanation.reasons(i)[0] for i in (0, 2, 4, 6))
    assert total.startswith("total ") and "where fare and tip suggest" in total and "all but" in total
    assert product.startswith("amount ") and "where price and quantity suggest" in product
    assert "dropoff" in order and "pickup" in order
    assert determined.startswith("zone 'zone") and "hardly ever with borough 'borough" in determined
    tip, refused = explanation.broken_relations(8)[0], explanation.broken_relations(10)[0]
    assert (
        tip.columns == ("tip", "payment") and tip.expected == "0" and "where payment is 'cash' suggests 0" in tip.words
    )
    assert refused.words == "payment 'cash' is hardly ever with state 'refused' (usually 'paid')"
    assert refused.relation in detector.relations_


def test_broken_relations_are_data(fitted):
    detector, table = fitted
    (broken, *_) = detector.explain(table[:1]).broken_relations(0)
    assert broken.column == "total" and set(broken.partners) == {"fare", "tip"}
    assert broken.relation.kind == "number" and 0 < broken.evidence <= broken.relation.strength
    assert float(broken.value.replace(",", "")) - float(broken.expected.replace(",", "")) == pytest.approx(40, abs=0.1)
    assert broken.words.startswith(f"total {broken.value} where ") and f" suggest {broken.expected} (" in broken.words
    ordinary = detector.explain(table[40:43])
    assert all(ordinary.broken_relations(i) == [] for i in range(3))


def test_the_condition_may_be_the_first_column():
    table = related().select("payment", "tip", "fare")
    tip = RGLD.plus(random_state=0).fit(table).explain(table[broken_rows()[8:9]]).broken_relations(0)[0]
    assert tip.columns == ("tip", "payment") and tip.words.startswith(
        f"tip {tip.value} where payment is 'cash' suggests 0 "
    )


def test_relations_in_words_have_counts(fitted):
    detector, _ = fitted
    by_words = {relation.words: relation for relation in detector.relations_}
    relation = by_words["zone determines borough in all but 2 of 1,500 rows"]
    assert (relation.kind, relation.columns, relation.n_broken) == ("determined", ("borough", "zone"), 2)
    strengths = [relation.strength for relation in detector.relations_]
    assert strengths == sorted(strengths, reverse=True)
    assert str(relation) == relation.words


def test_a_loaded_detector_says_the_same(fitted, tmp_path):
    detector, table = fitted
    detector.save(tmp_path / "m.rgld")
    again = load(tmp_path / "m.rgld")
    assert again.relations_ == detector.relations_
    rows = table[broken_rows()]
    assert [again.explain(rows).reasons(i) for i in range(12)] == [detector.explain(rows).reasons(i) for i in range(12)]


def test_unusual_beside_names_a_partner():
    import numpy as np

    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b"], 600)
    size = np.where(kind == "a", 0.0, 10.0) + rng.normal(size=600)
    table = pl.DataFrame({"kind": kind, "size": size, "other": rng.normal(size=600)})
    row = pl.DataFrame({"kind": ["a"], "size": [9.0], "other": [0.1]})
    detector = RGLD.plus(random_state=0, relations=False).fit(table)
    reasons = detector.explain(row).reasons(0)
    assert any("unusual beside" in reason for reason in reasons)
    assert not any("beside the other values" in reason for reason in reasons)
    assert any(
        "size 9 is unusual beside kind 'a' (usually" in r or "kind 'a' is unusual beside size 9 (" in r for r in reasons
    )


def test_groups_and_summary_name_the_relations_that_rows_break():
    table = related(400)
    explanation = RGLD.plus(random_state=0).fit(related(1500, broken=False)).explain(table)
    broken = explanation.broken_relations(0)[0]
    assert explanation[0].broken_relations[0] == broken
    frame = explanation.to_frame()
    assert frame["broken_relation"][0] == broken.words and frame["broken_relation"][100] == ""
    (group,) = [group for group in explanation.groups(range(12)) if 0 in group.rows]
    assert group.rows[:2] in ((0, 1), (1, 0))
    assert group.reasons[0] == f"break: {broken.relation.words}"
    summary = explanation.summary(range(8))
    assert dict(summary.relations)[broken.relation.words] == 2
    assert f"2 break: {broken.relation.words[:40]}" in repr(summary)
