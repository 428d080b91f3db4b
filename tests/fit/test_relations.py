"""Relations that are learned: those that are there, none where there are none, and the same wherever rows are."""

import numpy as np
import polars as pl
import pytest

from rgld import RGLD
from rgld._fit.category_relations import candidates as category_candidates
from rgld._fit.deciding import deciding
from rgld._fit.order_relations import candidates as order_candidates
from rgld._fit.relations import fit_relations
from rgld._kernels.relations import Cells, cells_of, evidence_of, relation_score
from rgld._kernels.relations import broken_rows as broken_by_relation
from rgld._table.schema import read_training_table

from ..reference import relations as twin
from .relation_tables import broken_rows, related


def learned(table):
    _, read = read_training_table(table, unused=frozenset())
    encoding = read.infer_encoding(None)
    return read, encoding, fit_relations(read, encoding, read.encode(encoding))


def words_of(table):
    return [relation.words for relation in RGLD.plus(random_state=0).fit(table).relations_]


def test_every_kind_is_found_although_rows_break_it():
    words = "\n".join(words_of(related()))
    for said in (
        "total = fare + tip",
        "amount = price × quantity",
        "pickup <= dropoff in all but 2 of 1,500 rows",
        "zone determines borough in all but 2 of 1,500 rows",
        "tip = 0 where payment is 'cash'",
        "payment 'cash' with state 'refused': in only 2 of",
    ):
        assert said in words


def test_rows_that_break_a_relation_come_to_the_top_and_the_others_keep_their_order():
    table = related(2000)
    rows = np.array(broken_rows(2000))
    with_relations = RGLD.plus(random_state=0).fit(table)
    without = RGLD.plus(random_state=0, relations=False).fit(table)
    scores, before = with_relations.anomaly_score(table), without.anomaly_score(table)
    found = with_relations.branch_scores(table).relation_score
    assert set(np.flatnonzero(found)) == set(rows.tolist())
    assert np.all(scores[rows] > 0.985)
    others = np.setdiff1d(np.arange(2000), rows)
    np.testing.assert_array_equal(scores[others], before[others])
    assert without.branch_scores(table).relation_score is None


def test_independent_columns_have_no_relations():
    rng = np.random.default_rng(1)
    for n, d in ((60, 5), (500, 30), (3000, 12)):
        table = pl.DataFrame(
            {
                f"c{j}": rng.normal(size=n)
                if j % 3 == 0
                else rng.lognormal(size=n)
                if j % 3 == 1
                else rng.choice(list("abc"), n)
                for j in range(d)
            }
        )
        assert RGLD.plus(random_state=0).fit(table).relations_ == ()


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1.0, 2.0]},
        {"a": [1.0] * 10, "b": list(range(10))},
        {"a": [0.0, 1.0] * 15, "b": [1.0, 0.0] * 15},
        {"a": [5.0] * 200, "b": ["x"] * 200, "c": [0.5, 1.5, 0.7, 9.0] * 50},
        {"a": [0.5 * (i % 90) ** 2 for i in range(200)], "b": [0.5 * (i % 90) ** 2 for i in range(200)]},
        {"a": [0.0, 1.0] * 100, "b": [0.0, 1.0] * 100, "c": [1.0, 0.0] * 100},
        {"a": [None] * 199 + [1.0], "b": list(range(200))},
        {"a": [1e300, -1e300] * 100, "b": [1e-300, 2e-300] * 100},
        {"a": ["x", "y"] * 100, "b": ["u", "v"] * 100},
    ],
    ids=lambda columns: f"{len(columns)}x{len(columns['a'])}",
)
def test_small_and_degenerate_tables(columns):
    table = pl.DataFrame(columns)
    detector = RGLD.plus(random_state=0).fit(table)
    scores = detector.anomaly_score(table)
    assert np.all((scores > 0) & (scores < 1))
    assert all(isinstance(relation.words, str) for relation in detector.relations_)
    assert isinstance(repr(detector.explain(table[:5])), str)


def test_equal_columns_are_equal():
    values = np.random.default_rng(0).normal(size=300)
    assert "b = a" in words_of(pl.DataFrame({"a": values, "b": values})) or "a = b" in words_of(
        pl.DataFrame({"a": values, "b": values})
    )


def test_the_same_relations_wherever_the_rows_are():
    table = related(1200)
    parts = [table[i : i + 170] for i in range(0, 1200, 170)]
    whole = RGLD.plus(random_state=3).fit(table)
    batches = RGLD.plus(random_state=3).fit_batches(parts)
    stream = RGLD.plus(random_state=3)
    for part in parts:
        stream.partial_fit(part)
    for other in (batches, stream):
        assert [str(r) for r in other.relations_] == [str(r) for r in whole.relations_]
        np.testing.assert_array_equal(other.anomaly_score(table), whole.anomaly_score(table))


def test_a_long_table_has_the_relations_of_its_sample():
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=(40_000, 3)).round(3)
    table = np.column_stack((x, x.sum(axis=1)))
    table[:20, 3] += 9.0
    whole = RGLD.novelty(random_state=0, n_local_views=2, n_references=50).fit(table)
    batches = RGLD.novelty(random_state=0, n_local_views=2, n_references=50, contamination=0.01).fit_batches(
        [table[:15_000], table[15_000:]]
    )
    assert any("column 3 = column" in relation.words for relation in whole.relations_)
    assert [str(r) for r in batches.relations_] == [str(r) for r in whole.relations_]
    assert np.all(whole.branch_scores(table[:20]).relation_score > 0)
    assert np.mean(whole.branch_scores(table[20:]).relation_score > 0) < 0.001


def test_a_rows_score_depends_on_the_row_alone():
    table = related(700)
    detector = RGLD.plus(random_state=0).fit(table)
    scores = detector.branch_scores(table).relation_score
    for step in (1, 7, 333):
        parts = [detector.branch_scores(table[i : i + step]).relation_score for i in range(0, 100, step)]
        np.testing.assert_array_equal(np.concatenate(parts)[:100], scores[: len(np.concatenate(parts))][:100])
    order = np.random.default_rng(0).permutation(700)
    np.testing.assert_array_equal(detector.branch_scores(table[order]).relation_score, scores[order])


def test_new_values_and_missing_cells_break_nothing_by_themselves():
    table = related(broken=False)
    detector = RGLD.plus(random_state=0).fit(table)
    row = table[20:21]
    changed = row.with_columns(
        pl.lit("zone 99").alias("zone"),
        pl.lit(None, pl.Float64).alias("total"),
        pl.lit(None, pl.Datetime("us")).alias("dropoff"),
    )
    assert detector.branch_scores(changed).relation_score[0] == 0.0
    assert detector.branch_scores(row.with_columns(pl.lit("elsewhere").alias("borough"))).relation_score[0] > 0.99


def test_scores_are_those_of_the_slow_twin():
    table = related()
    read, encoding, fitted = learned(table)
    relations = fitted.relations
    cells = cells_of(relations, encoding, read, None)
    rows = as_rows(cells, len(table), relations)
    described = describe(relations)
    expected = [max((twin.evidence(one, row) for one in described), default=0.0) for row in rows]
    found = evidence_of(relations, cells)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    training = relations.evidence.of_rows.tolist()
    scores = [twin.score(own, training, relations.n_rows) for own in found.tolist()]
    np.testing.assert_allclose(relation_score(relations, cells), scores, rtol=1e-12)
    assert {one["kind"] for one in described} == {"number", "order", "pair", "determined"}
    assert {broken.kind for broken in broken_by_relation(relations, cells, slice(0, len(table)))} == {
        "number", "order", "pair", "determined"
    }  # fmt: skip


def as_rows(cells, n, relations):
    """Rows of numbers, or codes where relations look at codes: column j of values has the name ("code", j)."""
    width = len(cells.encoding.columns) + len(relations.spans.begin)
    rows = [{} for _ in range(n)]
    for j in range(width):
        is_category = j < len(cells.encoding.columns) and cells.encoding.columns[j].kind == "category"
        if not is_category:
            for row, value in zip(rows, cells.numbers(j).tolist(), strict=True):
                row[j] = None if np.isnan(value) else value
        if j < len(cells.encoding.columns):
            for row, code in zip(rows, cells.codes(j).tolist(), strict=True):
                row["code", j] = code
    return rows


def test_strengths_are_those_of_the_slow_twin():
    table = related(1200)
    read, encoding, _ = learned(table)
    cells = Cells(read, encoding, {})
    names = table.columns
    a, b = names.index("pickup"), names.index("dropoff")
    (order,) = order_candidates(cells, deciding(cells, [a, b]))
    expected = twin.order_strength(cells.numbers(a).tolist(), cells.numbers(b).tolist())
    assert order.strength == pytest.approx(expected, abs=1e-6)
    j, k = names.index("payment"), names.index("state")
    _, (pair,) = category_candidates(cells, [j, k])
    expected = twin.pair_strength(table["payment"].to_list(), "cash", table["state"].to_list(), "refused")
    assert pair.strength == pytest.approx(expected, abs=1e-6)


def describe(relations):
    """The relations as the twin knows them."""
    described = []
    numbers, orders, pairs, determined = relations.numbers, relations.orders, relations.pairs, relations.determined
    for i in range(len(numbers.target)):
        terms = [
            (("code", j), code, w) if code != -2 else (j, None, w)
            for j, code, w in zip(
                numbers.partner[i].tolist(), numbers.partner_code[i].tolist(), numbers.weight[i].tolist(), strict=True
            )
            if j >= 0
        ]
        own = {
            "kind": "number",
            "target": int(numbers.target[i]),
            "form": int(numbers.form[i]),
            "when": ("code", int(numbers.when[i])) if numbers.when[i] >= 0 else None,
            "when_value": int(numbers.when_code[i]),
            "terms": terms,
            **{name: float(getattr(numbers, name)[i]) for name in ("constant", "limit", "decade", "strength")},
        }
        described.append(own)
    curves = relations.curves
    described += [
        {
            "kind": "curve",
            "target": int(curves.target[i]),
            "partner": int(curves.partner[i]),
            **{name: getattr(curves, name)[i].tolist() for name in ("knot", "center", "below", "above")},
            **{name: float(getattr(curves, name)[i]) for name in ("limit", "decade", "strength")},
        }
        for i in range(len(curves.target))
    ]
    described += [
        {"kind": "order", "low": int(low), "high": int(high), "strength": float(strength)}
        for low, high, strength in zip(orders.low, orders.high, orders.strength, strict=True)
    ]
    described += [
        {
            "kind": "pair",
            "first": ("code", int(pairs.first[i])),
            "first_value": int(pairs.first_code[i]),
            "second": ("code", int(pairs.second[i])),
            "second_value": int(pairs.second_code[i]),
            "strength": float(pairs.strength[i]),
        }
        for i in range(len(pairs.first))
    ]
    start = 0
    for i in range(len(determined.by)):
        stop = start + int(determined.n_values[i])
        expected = dict(
            zip(determined.by_code[start:stop].tolist(), determined.expected_code[start:stop].tolist(), strict=True)
        )
        start = stop
        described.append(
            {
                "kind": "determined",
                "by": ("code", int(determined.by[i])),
                "column": ("code", int(determined.column[i])),
                "expected": expected,
                "strength": float(determined.strength[i]),
            }
        )
    return described
