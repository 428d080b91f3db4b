"""Tables that come in parts: `fit_batches` is `fit`."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from rgld import RGLD, _training, load
from rgld.exceptions import ParameterError, TableError

from .part_tables import PRESETS, ordinary, parts_of, small_samples, table_of_all_kinds

__all__ = ["small_samples"]

DATA = Path(os.environ.get("RGLD_DATA", Path(__file__).parents[2] / "shared" / "data" / "adbench"))


# ---- the same as fit


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("calibration", [0.0, 0.2])
def test_a_table_that_fits_the_sample_is_learned_as_in_memory(preset, calibration):
    X = ordinary(1500)
    make = lambda: PRESETS[preset](random_state=0, calibration_fraction=calibration)  # noqa: E731
    whole, parts = make().fit(X), make().fit_batches(parts_of(X, [1, 0, 600]))
    assert np.array_equal(whole.anomaly_score(X), parts.anomaly_score(X))
    assert whole.offset_ == parts.offset_
    frame = table_of_all_kinds(1500)
    whole, parts = make().fit(frame), make().fit_batches(parts_of(frame, [1, 700]))
    assert np.array_equal(whole.anomaly_score(frame), parts.anomaly_score(frame))
    assert whole.columns_ == parts.columns_


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("table", [ordinary, table_of_all_kinds])
@pytest.mark.usefixtures("small_samples")
def test_a_long_table_is_learned_nearly_as_in_memory(preset, table):
    X = table()
    whole = PRESETS[preset](random_state=0).fit(X)
    parts = PRESETS[preset](random_state=0).fit_batches(lambda: iter(parts_of(X, [1, 0, 2500, 7])))
    assert parts.preprocessing_ == whole.preprocessing_
    assert spearmanr(whole.anomaly_score(X), parts.anomaly_score(X))[0] > 0.999
    other = PRESETS[preset](random_state=0).fit_batches(parts_of(X, [4000]))
    assert np.abs(parts.anomaly_score(X) - other.anomaly_score(X)).max() < 1e-3
    for one, two in zip(parts.columns_, whole.columns_, strict=True):
        assert (one.name, one.kind, one.cycles, one.values, one.counts) == (
            two.name,
            two.kind,
            two.cycles,
            two.values,
            two.counts,
        )
        assert one.gap_share == pytest.approx(two.gap_share, abs=1e-12)


@pytest.mark.usefixtures("small_samples")
def test_references_are_the_same_rows_as_in_memory():
    X = ordinary()
    whole, parts = RGLD(random_state=3).fit(X), RGLD(random_state=3).fit_batches(parts_of(X, [10, 3000]))
    assert np.array_equal(whole.model_.sample.rows, parts.model_.sample.rows)
    assert np.allclose(whole.model_.global_branch.base_bandwidth, parts.model_.global_branch.base_bandwidth, rtol=0.01)
    assert np.allclose(whole.model_.global_branch.mean_embedding, parts.model_.global_branch.mean_embedding, atol=0.01)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.usefixtures("small_samples")
def test_distributions_of_a_sample_of_a_long_table(preset, monkeypatch):
    monkeypatch.setattr(_training, "MOST_COUNTED", 4000)
    counted, count = [], _training._counted

    def counting(threads, scores, knots):
        counted.append(scores.shape[1])
        return count(threads, scores, knots)

    monkeypatch.setattr(_training, "_counted", counting)
    X = ordinary(20_000)
    whole, parts = PRESETS[preset](random_state=0).fit(X), PRESETS[preset](random_state=0).fit_batches(np.split(X, 10))
    assert spearmanr(whole.anomaly_score(X), parts.anomaly_score(X))[0] > 0.999
    ranks = parts.branch_scores(X).local_score
    assert np.abs(np.sort(ranks) - np.linspace(0, 1, len(ranks))).max() < 0.03  # of the ordinary error of 4000 rows
    assert parts.model_.local_ranks.branch.n_rows == 20_000
    n_counts = 1 if preset == "plus" else 4  # of two branches the views and their mean; of one the mean alone
    assert sum(counted) == pytest.approx(4000 * n_counts, rel=0.1)


@pytest.mark.skipif(not DATA.is_dir(), reason="the datasets are not here")
@pytest.mark.parametrize("preset", ["paper", "plus"])
@pytest.mark.parametrize("name", ["32_shuttle", "1_ALOI", "5_campaign", "3_backdoor"])
def test_real_tables(name, preset):
    with np.load(DATA / f"{name}.npz") as file:
        X, y = file["X"], file["y"]
    whole = PRESETS[preset](random_state=0).fit(X).anomaly_score(X)
    parts = PRESETS[preset](random_state=0).fit_batches(np.array_split(X, 5)).anomaly_score(X)
    assert spearmanr(whole, parts)[0] > 0.999
    assert roc_auc_score(y, parts) == pytest.approx(roc_auc_score(y, whole), abs=0.002)


@pytest.mark.usefixtures("small_samples")
def test_contamination_and_calibration_of_a_long_table():
    X = ordinary(12_000)
    parts = RGLD(random_state=0, contamination=0.03, calibration_fraction=0.1).fit_batches(np.split(X, 6))
    assert (parts.predict(X) == -1).mean() == pytest.approx(0.03, abs=0.003)
    assert len(parts.model_.calibration) == 1200
    assert parts.model_.encoding.n_rows == 10_800
    p = parts.p_values(ordinary(12_000, seed=1))
    assert (p <= 0.1).mean() == pytest.approx(0.1, abs=0.03)
    in_memory = RGLD(random_state=0, calibration_fraction=0.1).fit(X)
    assert np.abs(in_memory.model_.calibration - parts.model_.calibration).max() < 0.01
    assert RGLD(random_state=0).fit_batches(np.split(X, 6)).offset_ == -0.95


@pytest.mark.usefixtures("small_samples")
def test_a_model_of_batches_is_saved_and_explained(tmp_path):
    frame = table_of_all_kinds()
    detector = RGLD.plus(random_state=0, calibration_fraction=0.1).fit_batches(parts_of(frame, [2000, 2000]))
    detector.save(tmp_path / "m.rgld")
    loaded = load(tmp_path / "m.rgld")
    assert np.array_equal(loaded.anomaly_score(frame), detector.anomaly_score(frame))
    assert loaded.columns_ == detector.columns_
    assert detector.explain(frame[:3]).top(1).shape == (3, 1)


@pytest.mark.usefixtures("small_samples")
def test_parts_of_different_kinds():
    frame = table_of_all_kinds()
    first, second = frame[:3000].copy(), frame[3000:].copy()
    first["gaps"] = np.nan  # nothing known of it here
    second["shop"] = (
        second["shop"]
        .cat.remove_unused_categories()
        .cat.reorder_categories(sorted(second["shop"].unique(), reverse=True))
    )
    detector = RGLD(random_state=0).fit_batches([pl.from_pandas(first), pl.from_pandas(second)])
    kinds = {column.name: column.kind for column in detector.columns_}
    assert kinds["gaps"] == "number" and kinds["shop"] == "category" and kinds["typed"] == "number"
    counts = frame["shop"].value_counts()
    shop = next(column for column in detector.columns_ if column.name == "shop")
    assert dict(zip(shop.values, shop.counts, strict=True)) == counts.to_dict()


@pytest.mark.usefixtures("small_samples")
def test_a_word_among_the_numbers_of_one_batch():
    frame = table_of_all_kinds()[["number", "skewed", "gaps"]]
    dirty = frame[5000:].astype({"number": object})
    dirty.iloc[7, 0] = "unknown"
    found = RGLD(random_state=0).fit_batches([frame[:2500], frame[2500:5000], dirty])
    number = found.columns_[0]
    assert number.kind == "number" and number.gap_share == pytest.approx(1 / 6000)
    assert number.note == "1 values are no numbers and count as missing, such as 'unknown'"
    whole = RGLD(random_state=0).fit(pd.concat([frame[:5000], dirty]))
    assert spearmanr(found.anomaly_score(frame), whole.anomaly_score(frame))[0] > 0.999


@pytest.mark.usefixtures("small_samples")
def test_numbers_read_as_categories():
    frame = pd.DataFrame({"a": ordinary()[:, 0], "code": np.arange(6000) ** 2 % 101})
    asked = {"code": "category"}
    whole = RGLD(random_state=0, columns=asked).fit(frame)
    parts = RGLD(random_state=0, columns=asked).fit_batches(parts_of(frame, [1, 4000]))
    assert parts.columns_ == whole.columns_


@pytest.mark.usefixtures("small_samples")
def test_texts_beyond_those_counted(monkeypatch):
    monkeypatch.setattr("rgld._survey.MOST_COUNTED", 500)
    rng = np.random.default_rng(0)
    n = 12_000
    often = np.where(
        rng.random(n) < 0.5, rng.choice(["A", "B"], n, p=[0.7, 0.3]), [f"user {i % 4000}" for i in range(n)]
    )
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "y": rng.normal(size=n),
            "user": [f"user {i % 3000}" for i in range(n)],  # four rows each
            "mixed": often,
            "id": [f"id {i}" for i in range(n)],
            "row": [str(i) for i in range(n)],
        }
    )
    whole = RGLD(random_state=0).fit(frame)
    seen = []
    for sizes in ([6000], [1000] * 11, [3, 1]):
        parts = RGLD(random_state=0).fit_batches(parts_of(frame, sizes))
        columns = {column.name: column for column in parts.columns_}
        assert [column.kind for column in parts.columns_] == [column.kind for column in whole.columns_]
        assert columns["id"].kind == columns["row"].kind == "dropped"
        assert columns["user"].rest == pytest.approx(4.0, abs=0.1)
        assert dict(zip(columns["mixed"].values, columns["mixed"].counts, strict=True))["A"] == pytest.approx(
            4200, rel=0.1
        )
        assert columns["mixed"].rest == pytest.approx(6000 / 4000, rel=0.2)
        seen.append(parts.columns_)
    assert seen[0] == seen[1] == seen[2]  # however the table is split


@pytest.mark.usefixtures("small_samples")
def test_ties_at_the_threshold():
    X = np.random.default_rng(0).integers(0, 4, (6000, 2)).astype(float)
    for share in (0.05, 0.1, 0.2, 0.4):
        whole = RGLD(random_state=0, contamination=share).fit(X)
        parts = RGLD(random_state=0, contamination=share).fit_batches(np.split(X, 3))
        assert np.mean(parts.predict(X) == whole.predict(X)) > 0.98


def test_a_batch_is_asked_for_once_per_pass():
    X = ordinary(1500)
    calls = []

    def batches():
        calls.append(1)
        return iter(np.split(X, 3))

    found = RGLD(random_state=0).fit_batches(batches)
    assert len(calls) == 1
    once = iter(np.split(X, 3))
    assert RGLD(random_state=0).fit_batches(lambda: once).model_.encoding.n_rows == 1500 == found.model_.encoding.n_rows


def test_threads_make_no_difference():
    X = ordinary(40_000, 3)
    one, two = (RGLD(random_state=0, n_jobs=jobs).fit_batches(np.split(X, 4)) for jobs in (1, 2))
    assert np.array_equal(one.anomaly_score(X), two.anomaly_score(X))


def test_progress_and_passes():
    seen = []
    RGLD(random_state=0).fit_batches(np.split(ordinary(40_000, 3), 4), on_rows=lambda *done: seen.append(done))
    assert seen[:4] == [(1, 10_000), (1, 20_000), (1, 30_000), (1, 40_000)]
    assert seen[-1] == (5, 40_000)


# ---- what is wrong


def test_bad_batches():
    X = ordinary(100)
    with pytest.raises(ParameterError, match="got an iterator, which ends after one"):
        RGLD().fit_batches(iter([X]))
    with pytest.raises(ParameterError, match="got int"):
        RGLD().fit_batches(3)
    with pytest.raises(ParameterError, match="one that returns int"):
        RGLD().fit_batches(lambda: 3)
    for one_table in (X, pd.DataFrame(X), pl.DataFrame(X)):
        with pytest.raises(ParameterError, match="got one table"):
            RGLD().fit_batches(one_table)
    with pytest.raises(TableError, match="got none"):
        RGLD().fit_batches([])
    with pytest.raises(TableError, match="got none"):
        RGLD().fit_batches([X[:0]])
    with pytest.raises(TableError, match="at least 2 rows"):
        RGLD().fit_batches([X[:1]])
    with pytest.raises(ValueError, match="features"):
        RGLD().fit_batches([X, X[:, :2]])
    with pytest.raises(TableError, match="got LazyFrame: collect"):
        RGLD().fit_batches([pl.LazyFrame(X)])
    for parts in ([X, pd.DataFrame(X, columns=list("abcde"))], [pd.DataFrame(X, columns=list("abcde")), X]):
        with pytest.raises(TableError, match="parts of one kind"):
            RGLD().fit_batches(parts)
        with pytest.raises(TableError, match="parts of one kind"):
            RGLD().partial_fit(parts[0]).partial_fit(parts[1])
    frames = [pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(X, columns=list("abcdf"))]
    with pytest.raises(ValueError, match="f"):
        RGLD().fit_batches(frames)


@pytest.mark.usefixtures("small_samples")
def test_batches_that_change():
    X = ordinary()
    sources = iter([[X], [X[:-1]]])
    with pytest.raises(TableError, match="6,000 rows in the first pass and 5,999 in the next"):
        RGLD().fit_batches(lambda: next(sources))
    once = iter(np.split(X, 2))
    with pytest.raises(TableError, match="6,000 rows in the first pass and 0 in the next"):
        RGLD().fit_batches(lambda: once)


@pytest.mark.usefixtures("small_samples")
def test_infinities_are_named_and_a_failed_fit_changes_nothing():
    X = ordinary()
    detector = RGLD(random_state=0).fit(X)
    before = detector.anomaly_score(X)
    X[5000, 2] = np.inf
    with pytest.raises(TableError, match=r"begins with row 3,000: Column 2 holds infinity \(inf\) in row 2000"):
        detector.fit_batches(np.split(X, 2))
    X[5000, 2] = 0.0
    assert np.array_equal(detector.anomaly_score(ordinary()), before)
