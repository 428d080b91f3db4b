"""Shortcuts of the search for relations: each gives what the long way gives."""

import numpy as np
import polars as pl
import pytest

from rgld import _kernels
from rgld._fit import category_relations, order_relations
from rgld._fit.deciding import deciding
from rgld._fit.number_relations import MAX_TERMS, MIN_GAIN, _partners, _ranks
from rgld._fit.residuals import distances, distances_in_order, in_order
from rgld._fit.value_counts import ValueColumn, count_pair, worth_a_look
from rgld._kernels import numpy_kernels
from rgld._kernels.relations import Cells
from rgld._table.schema import read_training_table

from .relation_tables import related

TIED = {
    "different": lambda rng: rng.normal(size=300),
    "tied": lambda rng: rng.integers(0, 9, 300).astype(float),
    "one value": lambda rng: np.full(300, 2.5),
    "mostly zero": lambda rng: np.where(rng.random(300) < 0.95, 0.0, rng.normal(size=300)),
    "missing": lambda rng: np.where(rng.random(300) < 0.2, np.nan, rng.normal(size=300).round(1)),
}

TIED_KINDS = list(TIED)


def cells_of(table):
    _, read = read_training_table(table, unused=frozenset())
    return Cells(read, read.infer_encoding(None), {})


def test_pairs_of_values_are_counted_as_by_hand():
    codes = np.array([[0, 1, 1, 0, 1], [2, 0, 0, 2, 1]], np.uint8)
    expected = np.zeros((5, 5), int)
    expected[0, 2:], expected[1, 2:] = [0, 0, 2], [2, 1, 0]
    expected += expected.T
    np.testing.assert_array_equal(_kernels.count_pairs(codes, [2, 3]), expected)


@pytest.mark.parametrize("n", [1, 3, 4, 5, 1000])
def test_the_core_counts_pairs_of_values_as_its_twin(n):
    rng = np.random.default_rng(n)
    sizes = [1, 2, 7, 64, 256, 3]
    codes = np.array([rng.integers(0, size, n) for size in sizes], np.uint8)
    np.testing.assert_array_equal(_kernels.count_pairs(codes, sizes), numpy_kernels.count_pairs(codes, sizes))


def test_a_code_beyond_its_column_is_refused():
    core = pytest.importorskip("rgld._kernels._core", reason="rgld was installed without its compiled core")
    for codes, sizes in (([[0, 2]], [2]), ([[0, 1]], [2, 2]), ([[0, 0]], [0]), ([[0, 0]], [257])):
        with pytest.raises(ValueError, match=r"a column has|not a value"):
            core.count_pairs(np.array(codes, np.uint8), sizes, 1)


@pytest.mark.parametrize("n", [1, 2, 255, 256, 4096, 7001])
@pytest.mark.parametrize("kind", TIED_KINDS)
def test_the_core_finds_values_at_places_as_a_sort_does(kind, n):
    values = np.resize(TIED[kind](np.random.default_rng(n)), n)
    places = sorted({0, n // 100, n // 2, int(0.9 * n), n - 1})
    np.testing.assert_array_equal(_kernels.values_at(values, places), np.sort(values)[places])
    for center in (0.0, 1.5):
        found = _kernels.distances_at(values, center, places)
        np.testing.assert_array_equal(found, np.sort(np.abs(values - center))[places])
    # Evenly spaced values tell where to look: here these are the largest, or the smallest.
    misleading = np.where(np.arange(n) % max(1, n // 128) == max(1, n // 128) // 2, 1.0, -1.0) * np.arange(n)
    np.testing.assert_array_equal(_kernels.values_at(misleading, places), np.sort(misleading)[places])


@pytest.mark.parametrize("n", [1, 127, 128, 5000])
@pytest.mark.parametrize("kind", TIED_KINDS)
def test_the_core_sorts_rows_as_numpy_does(kind, n):
    own = np.resize(TIED[kind](np.random.default_rng(n)), n)
    rows = np.array([own, -own, np.copysign(own, -1.0)])  # a NaN with a sign comes last, too
    np.testing.assert_array_equal(_kernels.sorted_rows(rows), np.sort(rows, axis=1))
    core = pytest.importorskip("rgld._kernels._core", reason="rgld was installed without its compiled core")
    np.testing.assert_array_equal(core.sorted_rows(rows, 1), np.sort(rows, axis=1))  # used where NumPy has no vectors


def test_a_place_beyond_the_values_is_refused():
    core = pytest.importorskip("rgld._kernels._core", reason="rgld was installed without its compiled core")
    for values in (np.empty(0), np.ones(3)):
        with pytest.raises(ValueError, match="no such place"):
            core.values_at(values, [len(values)])
        with pytest.raises(ValueError, match="no such place"):
            core.distances_at(values, 0.0, [len(values)])


def values(seed, n=1500):
    """Columns of values, some determined by others, some that never meet, with missing and unlisted ones."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, n), rng.integers(0, 12, n)
    columns = [a, b, b % 4, np.where(a == 1, 0, rng.integers(0, 3, n)), rng.integers(0, 90, n), (b == 3) & (a == 0)]
    columns += [np.where(rng.random(n) < 0.02, rng.integers(0, 4, n), b % 4), rng.integers(-1, 5, n)]
    columns += [np.zeros(n, int), (rng.random(n) < 0.01).astype(int)]
    return [np.asarray(own, dtype=np.int64) for own in columns]


@pytest.mark.parametrize("seed", range(6))
def test_pairs_of_columns_that_are_passed_over_have_no_relation(seed):
    columns = values(seed)
    codes = dict(enumerate(columns))
    totals = {j: np.bincount(own[own >= 0], minlength=1) for j, own in codes.items()}
    described = [ValueColumn(j, own, totals[j], is_value=True) for j, own in codes.items()]
    looked_at = {(a.column, b.column): counts for a, b, counts in worth_a_look(described)}
    assert 0 < len(looked_at) < len(columns) * (len(columns) - 1) // 2
    n_related = 0
    for a in codes:
        for b in range(a + 1, len(columns)):
            counts = count_pair(codes[a], codes[b], len(totals[b]))
            found = [
                *category_relations._determined(a, b, counts, codes),
                *category_relations._determined(b, a, category_relations._swapped(counts), codes),
                *category_relations._never_meeting(a, b, counts, totals, codes),
            ]
            n_related += bool(found)
            assert not found or (a, b) in looked_at
            if (a, b) in looked_at:
                for one, other in zip(looked_at[a, b], counts, strict=True):
                    np.testing.assert_array_equal(one, other)
    assert n_related >= 2


def test_pairs_of_columns_that_are_passed_over_have_no_order(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=(900, 6))
    columns = [*x.T, x[:, 0] + rng.gamma(1.0, size=900), x[:, :3].sum(axis=1), np.where(x[:, 1] < 4, 0.0, x[:, 1])]
    columns.append(np.where(rng.random(900) < 0.3, np.nan, columns[6] + 1.0))
    table = pl.concat(
        [related(900, broken=False), pl.DataFrame({f"x{j}": own for j, own in enumerate(columns)})], how="horizontal"
    )
    cells = cells_of(table)
    numbers = [j for j, own in enumerate(cells.encoding.columns) if own.kind != "category"]

    def found():
        return [
            (one.relation["low"], one.relation["high"])
            for one in order_relations.candidates(cells, deciding(cells, numbers))
        ]

    short = found()
    monkeypatch.setattr(
        order_relations,
        "_in_order",
        lambda cells, columns, kinds, present: (
            (a, b)
            for a in columns
            for b in columns
            if a != b and kinds[a] == kinds[b] and present[a][-1] > present[b][0]
        ),
    )
    assert short == found()
    assert len(short) > 3


@pytest.mark.parametrize("name", TIED)
def test_distances_of_sorted_values(name):
    own = TIED[name](np.random.default_rng(1))
    own = own[~np.isnan(own)]
    both = np.sort([own, 2.0 * own], axis=1)
    for place, column in enumerate((own, 2.0 * own)):
        center, near, far = (part.item() for part in distances_in_order(both, [place], is_log=False))
        assert center == np.sort(column)[(len(own) - 1) // 2] and (near, far) == distances(column - center)


def test_distances_of_logarithms():
    own = np.random.default_rng(1).gamma(2.0, size=1001)
    center, near, far = (part.item() for part in distances_in_order(np.sort(own)[None], [0], is_log=True))
    assert center == np.log(np.median(own)) and (near, far) == distances(np.log(own) - center)


@pytest.mark.parametrize("name", TIED)
def test_a_stable_order(name):
    own = TIED[name](np.random.default_rng(2))
    np.testing.assert_array_equal(in_order(own), np.argsort(own, kind="stable"))


def test_ranks_of_flags_and_numbers():
    rng = np.random.default_rng(3)
    numbers = np.array([*(make(rng) for make in TIED.values()), rng.random(300) < 0.3])
    order = np.argsort(numbers, axis=1, kind="stable")
    np.testing.assert_array_equal(_ranks(numbers), np.argsort(order, axis=1, kind="stable"))


def slow_partners(covariance, target, columns):
    """The same, one target at a time, with all that is left open after each step."""
    left, chosen = covariance.copy(), []
    while len(chosen) < MAX_TERMS and left[target, target] > 1e-12 * covariance[target, target]:
        gains = {
            i: left[target, i] ** 2 / left[i, i]
            for i in range(len(left))
            if columns[i] != columns[target] and i not in chosen and left[i, i] > 1e-8 * covariance[i, i]
        }
        best = max(gains, key=lambda i: round(gains[i], 12))
        if gains[best] < MIN_GAIN * left[target, target]:
            break
        chosen.append(best)
        left = left - np.outer(left[:, best], left[best]) / left[best, best]
    return chosen, np.sqrt(max(left[target, target], 0.0) / covariance[target, target])


def test_partners_are_those_of_one_column_at_a_time():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(12, 500))
    x[3] = x[0] + 2.0 * x[1]
    x[7] = x[4] - x[5] + 0.1 * x[7]
    x[9] = x[:9].sum(axis=0) + 0.5 * x[9]
    covariance, columns = np.cov(x), np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10])
    found = _partners(covariance, np.array([0, 3, 7, 9, 10]), columns)
    assert [own.target for own in found] == [0, 3, 7, 9, 10]
    for target, partners, left_open in found:
        expected, expected_open = slow_partners(covariance, target, columns)
        assert partners == expected
        assert left_open == pytest.approx(expected_open, abs=1e-6)
    assert set(found[1].partners) >= {0, 1}


@pytest.mark.parametrize("seed", range(8))
def test_the_core_finds_the_partners_that_numpy_finds(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 200)) + rng.choice([0.0, 1e-3, 0.3]) * rng.normal(size=(30, 200))
    x[5], x[6], x[7:9] = x[4], 0.0, x[9] - x[10]  # equal, constant, equally good
    x[20] *= 1e12
    covariance, columns, targets = np.cov(x), rng.integers(0, 25, 30), np.array([9, 0, 4, 20, 29])
    if seed == 7:
        covariance[3, 9] = covariance[9, 3] = np.nan
    for most, gain in ((MAX_TERMS, MIN_GAIN), (2, 0.5), (0, 0.1), (29, 0.0)):
        found = _kernels.find_partners(covariance, targets, columns, most, gain)
        with np.errstate(all="ignore"):
            expected = numpy_kernels.find_partners(covariance, targets, columns, most, gain)
        for own, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(own, other)


def test_partners_of_what_is_no_feature_are_refused():
    core = pytest.importorskip("rgld._kernels._core", reason="rgld was installed without its compiled core")
    for shape, target in (((3, 2), 0), ((2, 2), 0), ((3, 3), 3), ((3, 3), -1)):
        with pytest.raises(ValueError, match=r"square|a target is a feature"):
            core.find_partners(np.eye(*shape), np.array([target]), np.arange(3), 2, 0.1)
