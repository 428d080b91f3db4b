"""Explanations: the formula against plain loops, what its docstring promises, columns known to be the cause."""

import contextlib
import copy
import doctest
import functools
import gc
import os
import re
import signal
import threading
import time
import tracemalloc
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from rgld import RGLD, Explanation, ModelFileError, _kernels, load
from rgld._explain import contributions
from rgld._fit import local_branch
from rgld._model.ranks import normalized_rank
from rgld._model.scaling import scaled_columns

PRESETS = {
    "plus": RGLD.plus,
    "novelty": RGLD.novelty,
    "paper": RGLD,
    "fast": RGLD.fast,
    "global only": functools.partial(RGLD, n_local_views=0),
    "local only": functools.partial(RGLD, n_global_views=0),
    "both, standardized": functools.partial(RGLD.plus, n_global_views=8, n_local_views=8, local_weight=0.3),
}


def mixed_table(n, seed=0):
    """Return a frame with a column of every kind."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "row_id": np.arange(n),
            "amount": rng.normal(100, 10, n),
            "city": rng.choice(["Bern", "Genf", "Basel"], n),
            "shop": rng.choice([f"shop {i}" for i in range(30)], n),
            "paid": rng.random(n) < 0.5,
            "returned": np.arange(n) % 250 == 7,
            "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300 * 86_400, n), unit="s"),
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(5, 1, n)),
        }
    )
    frame["at"] = frame["at"].dt.normalize() + pd.to_timedelta(rng.normal(12, 1, n).clip(8, 16), unit="h")
    return frame


@functools.cache
def fitted(preset, mixed=False):
    if mixed:
        table = mixed_table(500)
    else:
        table = np.random.default_rng(0).normal(size=(500, 7)) * np.arange(1, 8)
        table[::20, 3] *= 5
    return PRESETS[preset](random_state=0).fit(table), table


def evidence_of(scores, ranks, t):
    """Return how far out view t finds the rows, from its scores."""
    scores = scores.astype(float)
    if len(ranks.standards):
        smallest, center, scale = map(float, ranks.standards[t])
        values = np.log(np.maximum(scores, smallest)) if smallest > 0 else scores
        return np.minimum(np.maximum((values - center) / scale, 0.0), 8.0)
    return np.maximum(2.0 * normalized_rank(ranks.views[t], scores) - 1.0, 0.0)


def branches_of(model, matrix):
    """Yield branch, its weight, its ranks, its view scores, the sample rows of each view and how many are nearest."""
    rows = _kernels.Rows(matrix, model.scaling, 1)
    both = model.local_branch is not None and model.global_branch is not None
    if model.local_branch is not None:
        weight = model.local_weight if both else 1.0
        scores = _kernels.view_scores(rows, model.local_branch)
        branch, places = model.local_branch, model.kept_rows.places
        yield branch, weight, model.local_ranks, scores, places, branch.n_neighbors
    if model.global_branch is not None:
        weight = 1.0 - model.local_weight if both else 1.0
        n = len(model.kept_rows.rows)
        places = np.unique(np.round(np.linspace(0, n - 1, min(128, n))).astype(int))
        scores = _kernels.view_scores(rows, model.global_branch)
        yield model.global_branch, weight, model.global_ranks, scores, [places] * len(scores), round(len(places) / 4)


def contributions_in_loops(model, matrix):
    """Return the module's formula, one row, view and reference at a time."""
    scaled = scaled_columns(model.scaling, matrix).T.astype(float)
    sample = scaled_columns(model.scaling, model.kept_rows.rows).T.astype(float)
    moved, sample_moved = (moved_in_loops(model, rows) for rows in (matrix, model.kept_rows.rows))
    seen = np.zeros(len(model.encoding.fill))
    total = np.zeros((len(matrix), len(seen)))
    for branch, weight, ranks, scores, places, k in branches_of(model, matrix):
        for t, view_places in enumerate(places):
            projection = branch.views.projection[t].astype(float)
            used = np.abs(projection).sum(axis=1) > 0
            features = branch.views.features[t][used]
            evidence = evidence_of(scores[t], ranks, t)
            for i, row in enumerate(scaled[:, features]):
                differences = [sample[place, features] - row for place in view_places]
                distances = [float(np.sum((difference @ projection[used]) ** 2)) for difference in differences]
                nearest = shares_of_places(distances, k)
                own = features % len(seen)
                differences = [
                    difference + sample_moved[place, own] - moved[i, own]
                    for difference, place in zip(differences, view_places, strict=True)
                ]
                mean = sum(share * differences[n] for n, share in nearest.items())
                variance = sum(share * (differences[n] - mean) ** 2 for n, share in nearest.items())
                mean[np.abs(mean) < 1e-11] = 0.0
                added = added_in_loops(model, features)
                cubes = (np.abs(mean) / np.sqrt(variance + added)) ** 3
                shares = cubes / cubes.sum() if cubes.sum() > 0 else np.full(len(features), 1 / len(features))
                for feature, share in zip(features % len(seen), shares, strict=True):
                    total[i, feature] += weight * evidence[i] * share / len(places)
            seen[features % len(seen)] += weight / len(places)
    result = np.zeros((len(matrix), len(model.encoding.columns)))
    for encoded, column in enumerate(model.encoding.owner):
        result[:, column] += total[:, encoded] / max(seen[encoded], 1e-300)
    sums = result.sum(axis=1, keepdims=True)
    return result * total.sum(axis=1, keepdims=True) / np.where(sums > 0, sums, 1.0)


def names_of(encoding):
    """Return the kind of the column and the name of the part of each encoded column."""
    return [(column.kind, part) for column in encoding.columns for part in column.parts]


def is_flag(kind, part):
    return part.startswith("is ") or (kind == "boolean" and part == "value")


def added_in_loops(model, features):
    """Return what is added to the variances of some scaled columns."""
    names = names_of(model.encoding)
    no, yes = (scaled_columns(model.scaling, np.full((1, len(names)), value))[:, 0].astype(float) for value in (0, 1))
    flag = [0.1 * (yes[f] - no[f]) ** 2 if is_flag(*names[f % len(names)]) else 0.0 for f in features]
    return np.maximum(flag, 0.005)


def moved_in_loops(model, rows):
    """Return how far out the values beyond 99.8 % of the kept rows are moved, shape (n, e)."""
    kept = model.kept_rows.rows.astype(float)
    moved = np.zeros(rows.shape)
    for j, name in enumerate(names_of(model.encoding)):
        if is_flag(*name):
            continue
        low, median, high = np.quantile(kept[:, j], [0.002, 0.5, 0.998])
        for i, value in enumerate(rows[:, j].astype(float)):
            if value > high > median:
                moved[i, j] = min(2.0, 2 * np.log((value - median) / (high - median)))
            elif value < low < median:
                moved[i, j] = -min(2.0, 2 * np.log((median - value) / (median - low)))
    return moved


def shares_of_places(distances, k):
    """Return 1/k for each of the k nearest, one exact match left out; those that tie for the last places share them."""
    order = sorted(range(len(distances)), key=lambda n: distances[n])
    if distances[order[0]] < 1e-18:
        order = order[1:]
    last = distances[order[k - 1]]
    nearer = [n for n in order if distances[n] < last - 1e-9 * (1 + last)]
    same = [n for n in order if abs(distances[n] - last) <= 1e-9 * (1 + last)]
    return {n: 1 / k for n in nearer} | {n: (k - len(nearer)) / k / len(same) for n in same}


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("preset", PRESETS)
def test_the_formula_in_plain_loops(preset, mixed):
    detector, table = fitted(preset, mixed)
    some = (
        table.iloc[:6].assign(amount=[100, 300, 95, 0, 1e4, 101]) if mixed else np.vstack((table[:4], 9 * table[4:7]))
    )
    matrix = _read(detector, some).encode(detector.model_.encoding)
    found = detector.explain(some).contributions
    # The kernels scale in float32 and may round a cell otherwise than NumPy.
    np.testing.assert_allclose(found, contributions_in_loops(detector.model_, matrix), rtol=1e-5, atol=1e-7)


def _read(detector, table):
    from rgld._table.schema import Schema

    return Schema.of_fitted(detector).read(table)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("preset", PRESETS)
def test_contributions_sum_to_the_mean_evidence_and_none_is_negative(preset, mixed):
    detector, table = fitted(preset, mixed)
    found = detector.explain(table)
    expected = np.zeros(len(table))
    for _, weight, ranks, scores, _, _ in branches_of(
        detector.model_, _read(detector, table).encode(detector.model_.encoding)
    ):
        expected += weight * np.mean([evidence_of(scores[t], ranks, t) for t in range(len(scores))], axis=0)
    np.testing.assert_allclose(found.contributions.sum(axis=1), expected, rtol=1e-9, atol=1e-12)
    assert (found.contributions >= 0).all()
    shares = found.shares().sum(axis=1)
    np.testing.assert_allclose(shares[expected > 0], 1.0)
    assert (shares[expected == 0] == 0).all()
    # High evidence is a high score.
    assert np.corrcoef(expected.argsort().argsort(), found.anomaly_score.argsort().argsort())[0, 1] > 0.9


@pytest.mark.parametrize("preset", ["plus", "paper"])
def test_the_references_are_those_of_the_score(preset):
    detector, _ = fitted(preset, mixed=True)
    model = detector.model_
    rows = _kernels.Rows(model.kept_rows.rows, model.scaling, 1)
    projected = _kernels.project_rows(rows, model.local_branch.views, model.kept_rows.places.astype(np.int64))
    np.testing.assert_array_equal(projected, model.local_branch.references)


def test_distances_in_words_are_those_of_the_score():
    detector, table = fitted("plus")
    rows = np.vstack((table, 50 * table[:3]))
    model = detector.model_
    distances = _kernels.view_scores(_kernels.Rows(rows, model.scaling, 1), model.local_branch).astype(float)
    typical = np.exp(model.local_ranks.standards[:, 1].astype(float))
    found = detector.explain(rows)
    assert distances.min() > 0.01 * np.sqrt(model.local_branch.references.var(axis=2).sum(axis=1)).max()
    np.testing.assert_allclose(
        np.log(found.distance_ratio), np.log(distances / typical[:, None]).mean(axis=0), atol=1e-6
    )
    assert 0.8 < np.median(found.distance_ratio[:500]) < 1.25
    assert found.kind(500).startswith("broadly rare and locally isolated; its nearest reference rows are ")
    assert found.kind(500).endswith(" times as far away as those of a typical row")
    typical_row = int(np.abs(found.distance_ratio[:500] - 1).argmin())
    assert found.kind(typical_row) == (
        "not clearly unusual; its nearest reference rows are as near as those of a typical row"
    )


def test_branches_in_words():
    rng = np.random.default_rng(0)
    table = np.vstack((rng.normal(0, 1, (1000, 4)), rng.normal(8, 0.05, (12, 4)), [[4.0] * 4]))
    found = RGLD(random_state=0).fit(table).explain(table)
    # A tight group far from the rest is rare at large; a row between the groups is that, and alone.
    assert found.kind(1005).startswith("broadly rare")
    assert found.kind(1012).startswith("broadly rare and locally isolated; ")
    only_global = RGLD(n_local_views=0, random_state=0).fit(table).explain(table)
    assert only_global.distance_ratio is None and only_global.local_score is None
    assert only_global.kind(1012) == "broadly rare"


# Independence of the other rows.


def discrete_table():
    """Return rows whose distances tie: whole numbers, the same spread in every column."""
    cells = np.array(np.meshgrid([0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2])).reshape(4, -1).T
    return np.tile(cells.astype(float), (4, 1))


@functools.cache
def explained(kind):
    if kind == "ties":
        table = discrete_table()
        detector = RGLD.plus(random_state=0, n_local_views=16, feature_fraction=1.0).fit(table)
        rows = np.vstack((table, [[2, 2, 2, 9], [-5, 0, 0, 0], [1, 1, 1, 1], [0.5, 0.5, 1.5, 1.5]]))
    else:
        detector, table = fitted(kind)
        rows = np.vstack((table, 3 * table[:40], 1e6 * table[:2]))
    return detector, rows, detector.explain(rows)


@given(data=st.data(), kind=st.sampled_from(["plus", "paper", "ties"]))
def test_a_row_is_explained_the_same_in_any_company(data, kind):
    detector, rows, whole = explained(kind)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=30))
    block = data.draw(st.integers(1, 2**20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contributions, "BLOCK_CELLS", block)
        part = detector.explain(rows[chosen])
    np.testing.assert_allclose(part.contributions, whole.contributions[chosen], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(part.distance_ratio, whole.distance_ratio[chosen], rtol=1e-9)
    np.testing.assert_array_equal(part.anomaly_score, whole.anomaly_score[chosen])


def test_threads_change_nothing(monkeypatch):
    rows = np.random.default_rng(1).normal(size=(9000, 7)) * np.arange(1, 8)
    detector, _ = fitted("plus")
    make_rows, workers = _kernels.Rows, set()

    def seen_rows(*arguments):
        workers.add(threading.get_ident())
        return make_rows(*arguments)

    monkeypatch.setattr(_kernels, "Rows", seen_rows)
    results, n_workers = [], []
    for n_jobs in (1, 3):
        workers.clear()
        results.append(copy.copy(detector).set_params(n_jobs=n_jobs).explain(rows).contributions)
        n_workers.append(len(workers - {threading.get_ident()}))
    np.testing.assert_array_equal(*results)
    assert n_workers[0] <= 1 < n_workers[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_forked_while_a_thread_explains(monkeypatch):
    detector, rows = fitted("plus")
    expected = detector.explain(rows[:10]).contributions
    of_block, parent = contributions._of_block, os.getpid()
    explaining, forked = threading.Event(), threading.Event()

    def held_block(*arguments):
        if os.getpid() == parent:
            explaining.set()
            forked.wait(60)
        return of_block(*arguments)

    def blas_threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    def in_child():
        at_fork = blas_threads()
        return np.array_equal(detector.explain(rows[:10]).contributions, expected) and at_fork == before

    before = blas_threads()
    monkeypatch.setattr(contributions, "_of_block", held_block)
    thread = threading.Thread(target=detector.explain, args=(rows,))
    thread.start()
    assert explaining.wait(60)
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(Exception):
            code = 0 if in_child() else 2
        os._exit(code)
    forked.set()
    thread.join()
    deadline = time.monotonic() + 30
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0), "the child waits for a thread that it does not have"
    assert blas_threads() == before


def nearest(rows, references, k):
    """The weights of the references in a stack of one view without a projection."""
    projected = references.T[None]
    stack = SimpleNamespace(projected=-2.0 * projected, lengths=np.square(projected).sum(axis=1, keepdims=True))
    return contributions._nearest(rows[None], stack, k)[0]


def test_rows_at_the_same_distance_share_the_last_places():
    # From 0, k = 3: the nearest at 1, then four at distance 2; two places are left for these four.
    references = np.array([[1.0, 0.0], [2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0], [9.0, 9.0]])
    weights = nearest(np.zeros((1, 2)), references, 3)
    np.testing.assert_allclose(weights, [[1.0, 0.5, 0.5, 0.5, 0.5, 0.0]])


def test_one_exact_match_is_left_out():
    references = np.array([[5.0, 5.0], [5.0, 5.0], [6.0, 5.0], [9.0, 9.0]])
    np.testing.assert_allclose(
        nearest(references[:1], references, 2).sum(axis=0)[[2, 3]],
        [1.0, 0.0],
        err_msg="the other match and the next are the two nearest",
    )


# Tables in, models back.


@pytest.mark.parametrize("preset", PRESETS)
def test_arrays_frames_and_loaded_models_agree(preset, tmp_path):
    detector, table = fitted(preset, mixed=True)
    expected = detector.explain(table)
    assert isinstance(expected, Explanation) and len(expected) == 500
    assert expected.columns == tuple(table.columns)
    other = detector.explain(pl.from_pandas(table))
    np.testing.assert_array_equal(other.contributions, expected.contributions)
    detector.save(tmp_path / "model.rgld")
    again = load(tmp_path / "model.rgld").explain(table)
    np.testing.assert_array_equal(again.contributions, expected.contributions)
    assert [again.reasons(i) for i in range(20)] == [expected.reasons(i) for i in range(20)]
    assert [again.kind(i) for i in range(20)] == [expected.kind(i) for i in range(20)]


def test_dropped_columns_contribute_nothing():
    detector, table = fitted("plus", mixed=True)
    found = detector.explain(table.assign(row_id=10**9))
    assert detector.columns_[0].kind == "dropped"
    assert (found.contributions[:, 0] == 0).all() and found.contributions[:, 1:].any(axis=0).all()


def test_a_row_that_is_not_unusual_has_no_reasons():
    detector, table = fitted("plus")
    found = detector.explain(table)
    quiet = int(found.contributions.sum(axis=1).argmin())
    nothing = replace(found, contributions=0.0 * found.contributions)
    assert nothing.reasons(quiet) == [] and not nothing.shares().any()
    assert "nothing unusual" in repr(nothing)


def test_models_of_the_first_release_cannot_be_explained():
    detector = load(os.path.join(os.path.dirname(__file__), "..", "files", "version-1.rgld"))
    with pytest.raises(ModelFileError, match="did not save what explanations need"):
        detector.explain(np.zeros((1, detector.n_features_in_)))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "table",
    [
        [[0.0], [1.0]],
        [[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]],
        np.zeros((20, 2)),
        np.vstack((np.eye(3), 1e300 * np.eye(3), -1e300 * np.eye(3))),
        1.79e308 * np.where(np.arange(60).reshape(20, 3) % 7, 1, -1),
        1.79e308 * np.where(np.arange(60).reshape(20, 3) % 2, 1, -1),
        [[1.79e308, i % 5] for i in range(20)],
    ],
    ids=[
        "two rows",
        "a constant column",
        "all the same",
        "huge",
        "largest",
        "largest, both signs",
        "largest, constant",
    ],
)
def test_small_and_extreme_tables(preset, table):
    detector = PRESETS[preset](random_state=0).fit(table)
    far = np.array([[1e305], [-1.79e308], [1.79e308]]) * np.ones(np.shape(table)[1])
    rows = np.vstack((np.asarray(table), far))
    with np.errstate(all="raise", under="ignore"):
        found = detector.explain(rows)
    assert np.isfinite(found.contributions).all() and (found.contributions >= 0).all()
    said = [text for i in range(len(rows)) for text in [*found.reasons(i), found.kind(i)]]
    assert all(text.isprintable() and "nan" not in text and "inf" not in text for text in said)


def test_the_page_shows_what_comes_out():
    page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "explanations.md")
    failed, tried = doctest.testfile(page, module_relative=False)
    assert tried >= 8 and not failed


def test_wide_tables_are_explained_by_fewer_views(monkeypatch):
    monkeypatch.setattr(local_branch, "MAX_KEPT_CELLS", 30 * 300)
    table = np.random.default_rng(0).normal(size=(400, 30))
    table[5, [4, 9]] = 9.0
    detector = RGLD.plus(random_state=0).fit(table)
    assert len(detector.model_.kept_rows.places) == 3  # of 180 references, 300 rows with those that were trimmed
    # Three views cannot tell a column that often stands beside a changed one from it: the third may be such a column.
    assert {4, 9} <= set(detector.explain(table[[5]]).top(3)[0])


def test_memory_does_not_grow_with_the_rows():
    detector, _ = fitted("plus")
    rows = np.random.default_rng(0).normal(size=(40_000, 7)).astype(np.float64)
    detector.n_jobs = 2
    tracemalloc.start()
    try:
        found = detector.explain(rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        detector.n_jobs = None
    results = found.contributions.nbytes + 3 * found.anomaly_score.nbytes
    assert peak < results + 60 * 2**20


def test_the_printed_explanation():
    table = pd.DataFrame({"amount": np.arange(100) % 11, "shop": ["a", "b"] * 50})
    found = RGLD.plus(random_state=0).fit(table).explain(pd.DataFrame({"amount": [5, 900], "shop": ["a", "b"]}))
    size, first, *rest = repr(found).splitlines()
    assert size == "Explanation of 2 rows, 2 columns, highest scores first"
    assert first.startswith("  row 1, score 0.") and first.endswith("amount 900 is far above usual (usually 0 to 10)")
    assert len(rest) == 1
    one = RGLD.plus(random_state=0).fit(table).explain(table.iloc[:1])
    assert repr(one).startswith("Explanation of 1 row, 2 columns\n")
    assert len(repr(RGLD.plus(random_state=0).fit(table).explain(table)).splitlines()) == 6


# Columns that are known to be the cause.


def sparse_anomalies(seed, n_anomalies=30):
    """Return 2000 x 50 normal rows; the first are moved by 6 standard deviations in three columns each."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(2000, 50))
    columns = np.array([rng.choice(50, 3, replace=False) for _ in range(n_anomalies)])
    signs = rng.choice([-1.0, 1.0], columns.shape)
    rows[np.arange(n_anomalies)[:, None], columns] += 6.0 * signs
    return rows, columns, signs


def named(detector, rows, columns):
    """Return of the anomalies in the top 2 % the share whose three columns are the top three, and their number."""
    score = detector.anomaly_score(rows)
    found = np.flatnonzero(score[: len(columns)] >= np.quantile(score, 0.98))
    top = detector.explain(rows[found]).top(3)
    return (np.sort(top, axis=1) == np.sort(columns[found], axis=1)).all(axis=1).mean(), len(found)


@pytest.mark.parametrize(
    ("preset", "least_named", "least_found"),
    [
        ("plus", 0.9, 0.5),
        ("novelty", 0.9, 0.6),
        ("paper", 0.9, 0.7),
        ("fast", 0.9, 0.5),
        ("global only", 0.9, 0.75),
        ("local only", 0.9, 0.5),
    ],
)
def test_the_three_columns_of_sparse_anomalies(preset, least_named, least_found):
    """A tenth below what is found, or less."""
    results = []
    for seed in range(3):
        rows, columns, _ = sparse_anomalies(seed)
        results.append(named(PRESETS[preset](random_state=seed).fit(rows), rows, columns))
    shares, n_found = zip(*results, strict=True)
    assert np.average(shares, weights=n_found) >= least_named
    assert sum(n_found) / (3 * len(columns)) >= least_found


def of_factors(rng, correlation):
    factors = rng.normal(size=(2000, 5))[:, np.arange(50) % 5]
    return np.sqrt(correlation) * factors + np.sqrt(1 - correlation) * rng.normal(size=(2000, 50))


def correlated(seed):
    """Rows of five factors, and three columns of each anomaly, which are moved by 6 standard deviations."""
    rows, (_, columns, signs) = of_factors(np.random.default_rng(seed), 0.8), sparse_anomalies(seed)
    rows[np.arange(30)[:, None], columns] += 6.0 * signs
    return rows, columns


def clusters(seed):
    """Four clusters apart in every column; three columns of an anomaly leave its cluster, within the table's range."""
    rng = np.random.default_rng(seed)
    rows, columns, _ = sparse_anomalies(seed)
    return rows + 10.0 * rng.normal(size=(4, 50))[rng.integers(4, size=2000)], columns


def dependencies(seed):
    """Correlations of 0.98. Three values of an anomaly are those of the most different of twenty other rows."""
    rng = np.random.default_rng(seed)
    rows, columns = of_factors(rng, 0.98), sparse_anomalies(seed)[1]
    original = rows.copy()
    for i, j in np.ndindex(columns.shape):
        donors = original[rng.integers(30, 2000, size=20), columns[i, j]]
        rows[i, columns[i, j]] = donors[np.abs(donors - original[i, columns[i, j]]).argmax()]
    return rows, columns


CHANGED = {
    "independent": lambda seed: sparse_anomalies(seed)[:2],
    "correlated": correlated,
    "clusters": clusters,
    "dependencies": dependencies,
}
"""The kinds of test tables of docs/explanations.md."""


def shares_of_the_page(detector):
    """Return for each kind of table the three shares that docs/explanations.md states: of named columns that were
    changed, of rows whose three columns are named, of anomalies that are found."""
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "explanations.md"), encoding="utf-8") as file:
        lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in file if line.startswith("| ")]
    (kinds,) = (line[1:] for line in lines if line[0] == "top three, in percent")
    cells = next(line[1:] for line in lines if line[0] == detector and " of " in line[1])
    return {
        kind: [int(number) / 100 for number in re.findall(r"\d+", cell)]
        for kind, cell in zip(kinds, cells, strict=True)
    }


@pytest.mark.parametrize(("preset", "row"), [("plus", "RGLD.plus().explain"), ("paper", "RGLD().explain")])
@pytest.mark.parametrize("kind", CHANGED)
def test_anomalies_are_found_and_named_as_the_page_says(preset, row, kind):
    """Means over five tables, which are other ones than those of the page."""
    results, n_anomalies = [], 0
    for seed in range(5):
        rows, columns = CHANGED[kind](seed)
        detector = PRESETS[preset](random_state=seed).fit(rows)
        score = detector.anomaly_score(rows)
        found = np.flatnonzero(score[: len(columns)] >= np.quantile(score, 0.98))
        n_anomalies += len(columns)
        top = detector.explain(rows[found]).top(3) if len(found) else np.empty((0, 3))
        results += [np.isin(own, columns[i]).mean() for own, i in zip(top, found, strict=True)]
    of_columns, of_rows, of_anomalies = shares_of_the_page(row)[kind]
    assert len(results) / n_anomalies >= of_anomalies - 0.1
    if of_anomalies > 0.1:  # others rest on a few rows
        assert np.mean(results) >= of_columns - 0.05
        assert np.mean(np.array(results) == 1.0) >= of_rows - 0.1


def test_signs_of_sparse_anomalies():
    rows, columns, signs = sparse_anomalies(0)
    frame = pd.DataFrame(rows, columns=[f"sensor {chr(97 + j // 26)}{chr(97 + j % 26)}" for j in range(50)])
    found = RGLD.plus(random_state=0).fit(frame).explain(frame.iloc[:30])
    right = 0
    for i in range(30):
        reasons = found.reasons(i)
        for j, sign in zip(columns[i], signs[i], strict=True):
            direction = "above" if sign > 0 else "below"
            right += any(reason.startswith(frame.columns[j]) and f"{direction} usual" in reason for reason in reasons)
    assert right >= 0.9 * 90


@pytest.mark.parametrize("preset", ["plus", "paper"])
def test_a_column_that_leaves_its_cluster(preset):
    # Column 2 of the odd row has the other cluster's value: ordinary in the table, not beside the other columns.
    rng = np.random.default_rng(0)
    table = np.vstack((rng.normal(-10, 1, (500, 6)), rng.normal(10, 1, (500, 6))))
    odd = rng.normal(10, 1, (20, 6))
    odd[:, 2] = rng.normal(0, 1, 20)
    found = PRESETS[preset](random_state=0).fit(table).explain(odd)
    assert (found.top(1)[:, 0] == 2).all()
    reason = found.reasons(0)[0]
    assert reason.startswith("column 2 ") and (" is unusual beside column " in reason or " suggest" in reason)


def test_a_column_that_breaks_a_dependency():
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(1000, 1))
    table = factor + 0.1 * rng.normal(size=(1000, 6))
    odd = np.full((1, 6), 1.0)
    odd[0, 4] = -1.0
    found = RGLD.plus(random_state=0).fit(table).explain(odd)
    assert found.anomaly_score[0] > 0.95 and found.top(1)[0, 0] == 4


@pytest.mark.parametrize("preset", ["plus", "paper"])
@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("amount", 500.0, "amount 500 is far above usual (usually "),
        ("city", "Vevey", "city 'Vevey' was never seen in 500 rows"),
        ("shop", "shop x", "shop 'shop x' was never seen in 500 rows"),
        ("city", None, "city is missing, which it never was in training"),
        ("at", pd.Timestamp("2024-05-07 02:00:00"), "at 2024-05-07 02:00:00 is at an unusual time of day"),
        ("at", pd.Timestamp("2031-05-07 12:00:00"), "at 2031-05-07 12:00:00 is later than usual (usually 2024-"),
        ("size", 20.0, "size 20 is far above usual (usually "),
    ],
)
def test_one_odd_cell(preset, column, value, words):
    detector, table = fitted(preset, mixed=True)
    row = table.iloc[[3]].copy()
    row[column] = [value]
    found = detector.explain(row)
    assert found.columns[found.top(1)[0, 0]] == column
    assert found.reasons(0)[0].startswith(words)


def test_a_rare_value_and_a_rare_gap():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(400, 3)), columns=["a", "b", "c"])
    table["kind"] = np.where(np.arange(400) < 4, "odd", np.where(np.arange(400) % 2, "x", "y"))
    table.loc[2:5, "b"] = np.nan
    found = RGLD.plus(random_state=0).fit(table).explain(table)
    assert found.reasons(2)[:2] == ["kind 'odd' seen 4 times in 400 rows", "b is missing (1 % of the rows)"]
    assert found.reasons(5)[0] == "b is missing (1 % of the rows)"


def test_a_model_that_was_explained_can_be_freed():
    table = np.random.default_rng(0).normal(size=(200, 4))
    detector = RGLD.plus(random_state=0).fit(table)
    detector.explain(table[:3]).reasons(0)
    model = weakref.ref(detector.model_)
    del detector
    gc.collect()
    assert model() is None
