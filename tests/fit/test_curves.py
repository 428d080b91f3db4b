"""Relations that were seen in tables of rides and orders: curves, products that are rounded, dates that are missing."""

import numpy as np
import polars as pl
import pytest

from rgld import RGLD, ModelFileError, load
from rgld._kernels.relations import cells_of, evidence_of
from rgld._model.scores import FEWEST_BEFORE, MOST_BEFORE

from ..modelfile.test_relations import forged
from ..reference import relations as twin
from .test_relations import as_rows, describe, learned


def rides(n=4000, seed=0):
    """Fares that scatter the more, the longer the ride. The first two rides cost what a long one costs."""
    rng = np.random.default_rng(seed)
    distance = rng.gamma(1.5, 3.0, n).round(2) + 0.1
    fare = (3.0 + 2.5 * distance * rng.lognormal(0.0, 0.12, n)).round(1)
    distance[:2], fare[:2] = [0.2, 0.4], [60.0, 45.0]
    hour = rng.integers(0, 24, n).astype(float)
    return pl.DataFrame({"distance": distance, "fare": fare, "hour": hour, "noise": rng.normal(size=n)})


def orders(n=3000, seed=0):
    """Orders of which the cancelled ones are never delivered, and a share that is rounded to whole percent. The first
    two rows break the first, the next two the second."""
    rng = np.random.default_rng(seed)
    status = rng.choice(["done", "cancelled"], n, p=[0.7, 0.3])
    status[:4] = ["cancelled", "cancelled", "done", "done"]
    ordered = np.datetime64("2024-01-01", "us") + rng.integers(0, 10**7, n).astype("m8[s]")
    delivered = (ordered + rng.integers(10**5, 10**6, n).astype("m8[s]")).tolist()
    part, whole = rng.gamma(2.0, 30.0, n).round(1) + 1.0, rng.gamma(5.0, 100.0, n).round(1) + 300.0
    share = (100.0 * part / whole).round()
    share[2:4] += 60.0
    is_delivered = status == "done"
    is_delivered[:2] = True
    delivered = [date if given else None for date, given in zip(delivered, is_delivered, strict=True)]
    return pl.DataFrame(
        {"status": status, "delivered": delivered, "part": part, "whole": whole, "share": share, "ordered": ordered},
        schema_overrides={"delivered": pl.Datetime("us")},
    )


@pytest.fixture(scope="module")
def detector():
    return RGLD.plus(n_local_views=4, n_global_views=2, random_state=0).fit(rides())


def test_a_short_ride_with_the_fare_of_a_long_one_comes_first_with_its_partner(detector):
    table = rides()
    order = np.argsort(-detector.anomaly_score(table))
    assert {0, 1} <= set(order[: len(table) // 100].tolist())
    first = detector.explain(table[:1]).broken_relations(0)[0]
    assert {first.column, *first.partners} == {"fare", "distance"} and first.relation.kind == "curve"
    assert detector.explain(table[:1]).reasons(0)[0].startswith("fare 60 where distance 0.2 suggests 4.4 (usually ")
    assert any(relation.words.startswith("fare follows distance: about ") for relation in detector.relations_)
    assert int((detector.branch_scores(table).relation_score > 0).sum()) <= 4


def test_curves_have_the_evidence_of_the_slow_twin():
    table = rides().with_columns(
        pl.when(pl.col("hour") == 3).then(None).otherwise(pl.col("distance")).alias("distance")
    )
    read, encoding, fitted = learned(table)
    cells = cells_of(fitted.relations, encoding, read, None)
    described = describe(fitted.relations)
    assert "curve" in {one["kind"] for one in described}
    rows = as_rows(cells, len(table), fitted.relations)
    expected = [max(twin.evidence(one, row) for one in described) for row in rows]
    np.testing.assert_allclose(evidence_of(fitted.relations, cells), expected, rtol=1e-6, atol=1e-6)
    assert max(expected) > 0


def test_few_rows_have_no_curves():
    assert all(
        relation.kind != "curve" for relation in RGLD.fast(relations=True, random_state=0).fit(rides(2000)).relations_
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("curves.target", 99),
        ("curves.partner", -1),
        ("curves.knot", 1e99),
        ("curves.below", 0.0),
        ("curves.center", np.nan),
    ],
)
def test_forged_curves_are_refused(detector, tmp_path, name, value):
    path = tmp_path / "m.rgld"
    detector.save(path)
    assert load(path).relations_ == detector.relations_
    path.write_bytes(forged(path.read_bytes(), name, value))
    with pytest.raises(ModelFileError):
        load(path)


def test_a_date_that_should_be_missing_breaks_a_relation():
    table = orders()
    detector = RGLD.fast(relations=True, random_state=0).fit(table)
    assert {
        "status determines whether delivered is missing in all but 2 of 3,000 rows",
        "whether delivered is missing determines status in all but 2 of 3,000 rows",
    } <= {relation.words for relation in detector.relations_}
    assert detector.explain(table[:1]).reasons(0)[0] == (
        "delivered given is hardly ever with status 'cancelled' (nearly always 'done')"
    )


def test_a_rounded_share_is_compared_in_its_own_unit():
    table = orders()
    detector = RGLD.fast(relations=True, random_state=0).fit(table)
    share = next(relation for relation in detector.relations_ if set(relation.columns) == {"share", "part", "whole"})
    assert " × share × whole, within " in share.words and share.n_broken == 2
    assert {2, 3} <= set(np.argsort(-detector.anomaly_score(table))[:30].tolist())


def test_rows_that_break_a_relation_leave_room_in_the_top_for_each_other(detector):
    relations = detector.model_.relations
    assert 0 < relations.broken_fraction < 0.0015
    broken = detector.branch_scores(rides()[:2])
    place = 1.0 - (MOST_BEFORE + 0.02 * (1.0 - broken.relation_score))
    np.testing.assert_array_less(place - 1e-12, detector.anomaly_score(rides()[:2]))
    assert FEWEST_BEFORE < MOST_BEFORE < 0.01
