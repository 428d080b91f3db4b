"""What passes learn merges: samples, counts and sums do not depend on how rows are split, nor on the order of parts."""

from collections import Counter
from functools import reduce
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rgld import RGLD
from rgld._fit import sampling
from rgld._fit.column_sums import ColumnSums, ColumnUnits, counted_quantiles, with_sums
from rgld._fit.counts import N_HIGHEST, N_RANK_STEPS, ScoreCounts, ScoreMoments, draw_knots
from rgld._fit.global_branch import EmbeddingSums
from rgld._fit.randomness import row_keys
from rgld._fit.sampling import key_limit_for, sample_part, sampled_rows
from rgld._fit.steps import ColumnSumsStep, PassContext
from rgld._fit.survey import survey_part
from rgld._kernels import Rows, count_scores, numpy_kernels
from rgld._model.ranks import fit_cdf, fit_standards, normalized_rank
from rgld._model.statistics import column_statistics
from rgld._table import summary
from rgld._table.columns import RawColumn, join_columns
from rgld._table.schema import Schema
from rgld._table.summary import MAX_COUNTED_STRINGS, ColumnSummary
from rgld._table.table import ColumnTable, MatrixTable

cuts = st.lists(st.integers(0, 999), max_size=8).map(sorted)
orders = st.randoms(use_true_random=False)


def parts_of(rows, cuts):
    """Return (first row, rows) of the parts between the cuts, of which some may be empty."""
    bounds = [0, *cuts, len(rows)]
    return [(a, rows[a:b]) for a, b in pairwise(bounds)]


def merged(states, order, merge):
    """Merge random pairs until one state is left."""
    states = list(states)
    while len(states) > 1:
        a, b = (states.pop(order.randrange(len(states))) for _ in range(2))
        states.append(merge(a, b))
    return states[0]


# ---- samples


@given(cuts, orders, st.integers(1, 1200), st.sampled_from([None, 150.0]))
def test_a_sample_does_not_depend_on_the_parts(cuts, order, size, half_life):
    rows = np.arange(1000.0)[:, None]
    whole = sample_part(MatrixTable(rows), 0, 7, size, half_life)
    states = [sample_part(MatrixTable(part), first, 7, size, half_life) for first, part in parts_of(rows, cuts)]
    found = merged(states, order, type(whole).merge)
    assert np.array_equal(found.indices, whole.indices)
    assert np.array_equal(found.keys, whole.keys)
    assert np.array_equal(found.table.matrix[:, 0], whole.indices)
    assert len(whole.indices) == min(size, 1000)


def test_samples_in_memory_and_of_parts_are_the_same(monkeypatch):
    monkeypatch.setattr(sampling, "KEY_BLOCK_ROWS", 300)
    rows = np.arange(1000.0)[:, None]
    held_out, sampled = sampled_rows(3, 1000, 50, 200)
    first, second = sample_part(MatrixTable(rows), 0, 3, 250).split(50, 200)
    assert np.array_equal(held_out, first.indices)
    assert np.array_equal(sampled, second.indices)
    assert not set(held_out) & set(sampled)


def test_every_row_is_sampled_as_often():
    counts = np.zeros(400)
    for seed in range(400):
        counts[sample_part(MatrixTable(np.zeros((400, 1))), 0, seed, 100).indices] += 1
    # Hypergeometric by seed: variance 400 * 1/4 * 3/4 per row.
    assert stats.chi2.sf(((counts - 100) ** 2 / 75).sum(), 399) > 1e-4


def test_keys_are_uniform_and_unrelated_to_their_neighbours():
    keys = row_keys(0, np.arange(100_000), None)
    assert stats.kstest(keys, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(keys[:-1], keys[1:])[0, 1]) < 0.02
    assert not np.array_equal(keys, row_keys(1, np.arange(100_000), None))


def test_enough_keys_are_below_the_bound():
    for n_rows, size in ((1_000_000, 100), (1_000_000, 40_000), (50_000, 40_000), (100, 100)):
        keys = row_keys(5, np.arange(n_rows), None)
        assert (keys < key_limit_for(n_rows, size)).sum() >= min(size, n_rows)


def test_half_lives():
    half_life = 20_000.0
    table = MatrixTable(np.zeros((200_000, 1)))
    ages = np.concatenate([199_999 - sample_part(table, 0, seed, 1000, half_life).indices for seed in range(20)])
    young, older = (ages < half_life).sum(), ((ages >= half_life) & (ages < 2 * half_life)).sum()
    assert older / young == pytest.approx(0.5, abs=0.04)


# ---- counts


scores = st.lists(st.integers(0, 40), min_size=1000, max_size=1000).map(lambda v: np.array([v], np.float32) / 8)


@given(scores, cuts, orders)
def test_counts_merge_to_the_bit(values, cuts, order):
    knots = draw_knots(values[:, :200], 1000)

    def counted(part):
        return ScoreCounts.of(part, knots, 1)

    parts = [part.T for _, part in parts_of(values.T, cuts) if len(part)]
    whole, found = counted(values), merged(map(counted, parts), order, ScoreCounts.merge)
    for name in ("counts", "lowest", "highest", "n_beyond"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name
    (cdf,) = found.finish(knots, 1000)
    assert np.all(np.diff(cdf.values) > 0) and np.all(np.diff(cdf.ranks) > 0)
    exact = fit_cdf(values[0])
    known = np.isin(exact.values, knots.values)
    assert np.allclose(normalized_rank(cdf, exact.values[known]), exact.ranks[known], atol=1e-15)


@pytest.mark.parametrize("law", ["normal", "heavy", "discrete", "constant"])
def test_counted_distributions_are_those_of_held_scores(law):
    rng = np.random.default_rng(0)
    n = 300_000
    draw = {
        "normal": lambda: rng.normal(size=n),
        "heavy": lambda: rng.standard_cauchy(n),
        "discrete": lambda: rng.poisson(3.0, n),
        "constant": lambda: np.full(n, 2.5),
    }[law]
    values = draw().astype(np.float32)[None]
    knots = draw_knots(values[:, :32768], n)
    parts = np.array_split(values, 7, axis=1)
    (cdf,) = reduce(ScoreCounts.merge, (ScoreCounts.of(part, knots, 2) for part in parts)).finish(knots, n)
    exact = fit_cdf(values[0])
    ranks = normalized_rank(cdf, values[0]), normalized_rank(exact, values[0])
    assert np.abs(ranks[0] - ranks[1]).max() < 1 / N_RANK_STEPS
    highest = np.sort(values[0])[-N_HIGHEST // 2 :]
    if law in ("normal", "heavy"):  # without ties, the highest are kept one by one
        top = (n - np.arange(len(highest), 0, -1) + 0.5) / n
        assert np.allclose(normalized_rank(cdf, highest), top, atol=1e-12)
    else:
        assert np.allclose(ranks[0], ranks[1], atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_both_kernels_count_alike(seed):
    rng = np.random.default_rng(seed)
    for dtype in (np.float32, np.float64):
        values = np.round(rng.standard_cauchy((3, 500)), int(rng.integers(0, 4))).astype(dtype)
        knots = draw_knots(values[:, :60], 500).values
        counts = count_scores(values, knots, 2)
        assert np.array_equal(counts, numpy_kernels.count_scores(values, knots, 1))
        assert np.array_equal(counts.sum(axis=1), [500] * 3)


RELATIVE = 1e-9
"""Sums of floats, in another order: within this of their size, see docs/scale.md."""


@given(cuts, orders)
def test_sums_merge_within_rounding(cuts, order):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3)) * [1.0, 1e6, 1e-6] + [0.0, 1e7, 1.0]
    parts = [part for _, part in parts_of(X, cuts) if len(part)]
    units = ColumnUnits(X.mean(axis=0), X.std(axis=0), draw_knots(X[:100].T, 1000).values)

    def summed(part):
        return ColumnSums.of(part, units, 1)

    whole, found = summed(X), merged(map(summed, parts), order, ColumnSums.merge)
    assert np.array_equal(found.counts, whole.counts) and np.array_equal(found.low, whole.low)
    assert np.allclose(found.powers, whole.powers, rtol=RELATIVE, atol=1000 * RELATIVE)

    def moments(part):
        return ScoreMoments.of(part.T.astype(np.float32))

    whole, found = moments(X), merged(map(moments, parts), order, ScoreMoments.merge)
    assert np.allclose(found.mean, whole.mean, rtol=RELATIVE)
    assert np.allclose(found.squares, whole.squares, rtol=1e-5)  # float32 deviations of 1e7

    model = EMBEDDED.model_

    def embedded(part):
        return EmbeddingSums.of(Rows(part, model.scaling, 1), model.global_branch)

    whole, found = embedded(X), merged(map(embedded, parts), order, EmbeddingSums.merge)
    assert found.n_rows == 1000
    # The core sums phi phi^T of deviations in float32, from the first row of a block.
    assert np.allclose(found.phi, whole.phi, rtol=1e-5, atol=1e-4)
    assert np.allclose(found.phi_phi, whole.phi_phi, rtol=1e-5, atol=1e-4)


EMBEDDED = RGLD(n_global_views=3, n_local_views=0, random_state=0).fit(np.random.default_rng(1).normal(size=(300, 3)))


def test_moments_merge():
    rng = np.random.default_rng(0)
    values = (rng.normal(size=(4, 5000)) * [[1], [1e-3], [1e3], [0]] + 50).astype(np.float32)
    parts = np.split(values, [1, 17, 3000], axis=1)
    smallest = np.zeros(4, np.float32)
    found = reduce(ScoreMoments.merge, map(ScoreMoments.of, parts)).finish(smallest)
    assert np.allclose(found, fit_standards(values, smallest), rtol=1e-6)
    backwards = reduce(ScoreMoments.merge, map(ScoreMoments.of, parts[::-1])).finish(smallest)
    assert np.allclose(found, backwards, rtol=1e-6)


# ---- columns


def test_column_statistics_of_parts():
    rng = np.random.default_rng(0)
    n = 40_000
    X = np.column_stack(
        [
            rng.normal(size=n),
            rng.lognormal(sigma=2.0, size=n),
            rng.integers(0, 3, n),  # quartiles on values
            np.where(rng.random(n) < 0.2499, 1.0, 0.0),  # just too few for an interquartile range
            np.full(n, 3.0),
            1e9 + rng.normal(size=n),
        ]
    )
    exact = column_statistics(X, 1000)
    sampled = column_statistics(X[:8000], 1000)
    unit = np.where(sampled.std > 0, sampled.std, 1.0)
    units = ColumnUnits(sampled.mean, unit, draw_knots(X[:8000].T, n, 1024).values)
    parts = np.split(X, [10, 9000, 33_333])
    sums = [ColumnSums.of(part, units, 2) for part in parts]
    found = with_sums(sampled, reduce(ColumnSums.merge, sums), units)
    for name in ("mean", "std", "value_range", "skewness"):
        assert np.allclose(getattr(found, name), getattr(exact, name), rtol=1e-5, atol=1e-6), name
    assert np.allclose(found.median, exact.median, atol=2e-3)
    assert np.allclose(found.iqr[2:5], exact.iqr[2:5])
    assert np.allclose(found.quantiles[2:5], exact.quantiles[2:5])
    # In rank, not in value: quantiles of a long tail are far apart.
    ordered = np.sort(X[:, 1])
    assert np.abs(np.searchsorted(ordered, found.quantiles[1]) - np.linspace(0, n, 1000)).max() < n / 500
    backwards = with_sums(sampled, reduce(ColumnSums.merge, sums[::-1]), units)
    assert np.array_equal(backwards.quantiles, found.quantiles)
    assert np.allclose(backwards.std, found.std, rtol=1e-12)
    assert np.allclose(found.tail_weight, exact.tail_weight, rtol=0.02)
    # The units are those of a sample, which may be far off: what is found does not depend on them.
    odd = ColumnUnits(units.center + 3.0 * unit, 50.0 * unit, units.knots)
    of_odd = with_sums(sampled, reduce(ColumnSums.merge, [ColumnSums.of(part, odd, 2) for part in parts]), odd)
    for name in ("mean", "std", "skewness"):
        assert np.allclose(getattr(of_odd, name), getattr(exact, name), rtol=1e-3, atol=1e-3), name


@given(st.lists(st.integers(0, 6), min_size=1, max_size=30))
def test_quantiles_of_counted_values_are_exact(values):
    values = np.sort(np.array(values, float))
    knots = np.array([*np.unique(values), np.inf])
    shares = np.linspace(0, 1, 21)
    counts = count_scores(values[None], knots[None], 1)[0]
    found = counted_quantiles(knots, counts, values[0], values[-1], shares)
    assert np.allclose(found, np.quantile(values, shares), atol=1e-12)


def test_rows_held_out_are_not_learned_from():
    X = np.random.default_rng(0).normal(size=(100, 2))
    detector = RGLD(random_state=0).fit(X)
    X[[3, 50, 99]] = 1e6
    units = ColumnUnits(np.zeros(2), np.ones(2), draw_knots(X[:20].T, 100).values)
    held_out = np.array([1003, 1050, 1099])
    context = PassContext(Schema(2, None), detector.model_.encoding, held_out, seed=0, n_rows=97, n_jobs=None)
    step = ColumnSumsStep(context, units)
    sums = step.partial(X, 1000)
    assert sums.n_rows == 97 and sums.high.max() < 10
    assert step.partial(X[3:4], 1003) is None
    assert step.fold(None, X[3:4], 1003) is None and step.fold(sums, X[3:4], 1003) is sums


def column(values, kind="number", texts=(), **more):
    return RawColumn("c", kind, np.asarray(values), tuple(texts), **more)


def test_columns_of_parts_are_joined():
    numbers = join_columns([column([1.0, 2.0]), column([-1], "text", ()), column([3.0])])
    assert numbers.kind == "number" and numbers.values[[0, 1, 3]].tolist() == [1, 2, 3] and np.isnan(numbers.values[2])
    texts = join_columns([column([0, 1, -1], "text", "ab"), column([1, 0], "text", "cb")])
    assert [texts.strings[i] if i >= 0 else None for i in texts.values] == ["a", "b", None, "b", "c"]
    categories = join_columns([column([0], "category", "a"), column([0], "category", "b")])
    assert categories.kind == "category" and categories.strings == ("a", "b")
    mixed = join_columns([column([1.0, 2.5]), column([0], "text", ["x"])])
    assert [mixed.strings[i] for i in mixed.values] == ["1", "2.5", "x"]
    flags = join_columns([column([0.0, 1.0]), column([1.0, 0.0], "boolean")])
    assert flags.kind == "number" and flags.values.tolist() == [0, 1, 1, 0]
    large = join_columns([column([1.0]), column([2.0**60], exact=np.array([2**60 + 1], dtype=object))])
    assert large.exact.tolist() == [1, 2**60 + 1]
    nothing = join_columns([column([np.nan]), column([-1], "text", ())])
    assert nothing.missing.all() and len(nothing) == 2


words = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", ""]), min_size=1, max_size=60)


@given(st.lists(words, min_size=1, max_size=6), orders, st.integers(1, 8))
def test_summaries_merge_to_the_same(parts, order, most):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(summary, "MAX_COUNTED_STRINGS", most)
        states = [ColumnSummary.of(texts_of(part)) for part in parts]
        whole = ColumnSummary.of(texts_of(list(chain.from_iterable(parts))))
        found = merged(states, order, ColumnSummary.merge)
    assert found == whole
    exact = Counter(word for part in parts for word in part if word)
    assert all(found.counts[word] == exact[word] for word in found.counts)  # of those counted, all rows are
    assert len(found.counts) <= most and (found.is_whole or len(found.counts) == most)


def texts_of(cells):
    texts = sorted(set(cells) - {""})
    return column([texts.index(cell) if cell else -1 for cell in cells], "text", texts)


def test_different_texts_are_estimated():
    ids = [f"name {i}" for i in range(400_000)]
    summary = ColumnSummary.of(column(np.repeat(np.arange(400_000), 3), "text", ids))
    assert len(summary.counts) == MAX_COUNTED_STRINGS and not summary.is_whole
    assert summary.n_distinct == pytest.approx(400_000, rel=0.02)
    assert set(summary.counts.values()) == {3}


def test_samples_keep_the_texts_of_their_rows_alone():
    names = column(np.arange(1000), "text", [f"name {i}" for i in range(1000)])
    whole = ColumnTable((names,))
    parts = [sample_part(whole.take(np.arange(a, a + 250)), a, 0, 20) for a in range(0, 1000, 250)]
    sample = reduce(type(parts[0]).merge, parts)
    (found,) = sample.table.columns
    assert len(found.strings) == 20 == len(sample.indices)
    assert [found.strings[i] for i in found.values] == [f"name {i}" for i in sample.indices]


def test_summaries_know_what_a_sample_misses():
    values = np.zeros(1000)
    values[500], values[600] = 7.0, np.nan
    survey = survey_part(ColumnTable((column(values),)), 0, 0, 10)
    sample = survey.sample.table.column(0)
    assert (sample.values == 0).all()
    seen = survey.summaries[0].completed(sample)
    assert np.nanmax(seen.values) == 7.0 and np.isnan(seen.values).sum() == 1
    assert survey.summaries[0].completed(column([0.0, 7.0, np.nan])).values.shape == (3,)
    constant = column(np.zeros(1000, np.int64), "text", ["a", "b"])
    constant.values[500] = 1
    seen = survey_part(ColumnTable((constant,)), 0, 0, 10).summaries[0].completed(column([0, 0], "text", ["a"]))
    assert set(seen.strings) == {"a", "b"}
