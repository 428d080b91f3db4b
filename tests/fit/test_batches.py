"""Tables that come in parts: `fit_batches` is `fit`."""

import os
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from rgld import RGLD, load
from rgld._fit import randomness, sampling, steps
from rgld._fit.counts import ScoreCounts, ScoreMoments
from rgld._params import Parameters
from rgld._table.schema import Schema
from rgld._table.table import MatrixTable
from rgld.exceptions import ParameterError, TableError

from ..observing import assert_no_other_thread_worked, assert_threads_worked, cpu_times
from .part_tables import PRESETS, ordinary, parts_of, small_samples, table_of_all_kinds

__all__ = ["small_samples"]

DATA = Path(os.environ.get("RGLD_DATA", Path(__file__).parents[3] / "shared" / "data" / "adbench"))


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
    assert spearmanr(whole.anomaly_score(X), parts.anomaly_score(X))[0] > 0.998
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


@pytest.mark.parametrize("cuts", [[10, 3000], [10, 5600]], ids=["long last part", "short last part"])
@pytest.mark.usefixtures("small_samples")
def test_references_are_the_same_rows_as_in_memory(cuts):
    """Of a short last part, nearly all rows that could be in the sample before it are still in it afterwards."""
    X = ordinary()
    whole, parts = RGLD(random_state=3).fit(X), RGLD(random_state=3).fit_batches(parts_of(X, cuts))
    assert np.array_equal(whole.model_.kept_rows.rows, parts.model_.kept_rows.rows)
    assert np.allclose(whole.model_.global_branch.base_bandwidth, parts.model_.global_branch.base_bandwidth, rtol=0.01)
    assert np.allclose(whole.model_.global_branch.mean_embedding, parts.model_.global_branch.mean_embedding, atol=0.01)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.usefixtures("small_samples")
def test_distributions_of_a_sample_of_a_long_table(preset, monkeypatch):
    monkeypatch.setattr(steps, "MAX_COUNTED_ROWS", 4000)
    counted = []

    def counting(of):
        def called(scores, *others):
            counted.append(scores.shape[1])
            return of(scores, *others)

        return called

    for state in (ScoreCounts, ScoreMoments):
        monkeypatch.setattr(state, "of", counting(state.of))
    X = ordinary(20_000)
    whole, parts = PRESETS[preset](random_state=0).fit(X), PRESETS[preset](random_state=0).fit_batches(np.split(X, 10))
    assert spearmanr(whole.anomaly_score(X), parts.anomaly_score(X))[0] > 0.999
    ranks = parts.branch_scores(X).local_score
    assert np.abs(np.sort(ranks) - np.linspace(0, 1, len(ranks))).max() < 0.03  # of the ordinary error of 4000 rows
    assert parts.model_.local_ranks.branch.n_rows == 20_000
    assert sum(counted) == pytest.approx(4000 * 4, rel=0.1)  # the views and the mean of two branches


@pytest.mark.skipif(not DATA.is_dir(), reason="the datasets are not here")
@pytest.mark.parametrize("preset", ["paper", "plus"])
@pytest.mark.parametrize(
    "name",
    [
        "32_shuttle",
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("1_ALOI", "5_campaign", "3_backdoor")),
    ],
)
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
    detector = RGLD.plus(max_training_rows=500, random_state=0, calibration_fraction=0.1).fit_batches(
        parts_of(frame, [2000, 2000])
    )
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
    assert number.note == "1 value is not a number and counts as missing: 'unknown'"
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
    monkeypatch.setattr("rgld._table.summary.MAX_COUNTED_STRINGS", 500)
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
@pytest.mark.parametrize("share", [1e-6, 2e-4, 0.01, 0.5])
def test_thresholds_between_the_highest_rows_and_in_the_middle(share):
    """The score of so many rows is between two that the sample may not have."""
    X = ordinary(6000)
    for seed in range(3):  # each has a sample of its own
        detector = RGLD.plus(n_global_views=0, random_state=seed, contamination=share)
        whole, parts = clone(detector).fit(X), clone(detector).fit_batches(np.split(X, 3))
        assert parts.offset_ == pytest.approx(whole.offset_, abs=1e-6)
        assert (parts.predict(X) == -1).sum() == pytest.approx(share * 6000, abs=1 + 0.001 * share * 6000)


@pytest.mark.usefixtures("small_samples")
def test_ties_at_the_threshold():
    X = np.random.default_rng(0).integers(0, 4, (6000, 2)).astype(float)
    for share in (0.05, 0.1, 0.2, 0.4):
        whole = RGLD(random_state=0, contamination=share).fit(X)
        parts = RGLD(random_state=0, contamination=share).fit_batches(np.split(X, 3))
        assert np.mean(parts.predict(X) == whole.predict(X)) > 0.98


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize(("n", "n_passes"), [(1500, 1), (6000, 5)])
def test_a_batch_is_asked_for_once_per_pass(n, n_passes):
    X = ordinary(n)
    calls, passes = [], []

    def batches():
        calls.append(1)
        return iter(np.split(X, 3))

    RGLD(random_state=0).fit_batches(batches, on_rows=lambda number, rows: passes.append(number))
    assert len(calls) == n_passes
    assert passes == [number for number in range(1, n_passes + 1) for _ in range(3)]


def test_batches_that_are_needed_once_may_end_after_one_pass():
    X = ordinary(1500)
    once = iter(np.split(X, 3))
    assert RGLD(random_state=0).fit_batches(lambda: once).model_.encoding.n_rows == 1500


def test_threads_make_no_difference():
    X = ordinary(40_000, 3)
    with cpu_times() as alone:
        one = RGLD(random_state=0, n_jobs=1).fit_batches(np.split(X, 4))
    with cpu_times() as together:
        two = RGLD(random_state=0, n_jobs=2).fit_batches(np.split(X, 4))
    assert_no_other_thread_worked(alone)
    assert_threads_worked(together)
    assert np.array_equal(one.anomaly_score(X), two.anomaly_score(X))


def test_progress_and_passes():
    seen = []
    RGLD(random_state=0).fit_batches(np.split(ordinary(40_000, 3), 4), on_rows=lambda *done: seen.append(done))
    assert seen[:4] == [(1, 10_000), (1, 20_000), (1, 30_000), (1, 40_000)]
    assert seen[-1] == (5, 40_000)


# ---- what is wrong


def test_bad_batches():
    X = ordinary(100)
    with pytest.raises(ParameterError, match="got an iterator, which can be read only once"):
        RGLD().fit_batches(iter([X]))
    with pytest.raises(ParameterError, match="got int"):
        RGLD().fit_batches(3)
    with pytest.raises(ParameterError, match="one that returns int"):
        RGLD().fit_batches(lambda: 3)
    for one_table in (X, pd.DataFrame(X), pl.DataFrame(X)):
        with pytest.raises(ParameterError, match="got one table"):
            RGLD().fit_batches(one_table)
    with pytest.raises(TableError, match="got no rows"):
        RGLD().fit_batches([])
    with pytest.raises(TableError, match="got no rows"):
        RGLD().fit_batches([X[:0]])
    with pytest.raises(TableError, match="at least 2 rows"):
        RGLD().fit_batches([X[:1]])
    with pytest.raises(ValueError, match="features"):
        RGLD().fit_batches([X, X[:, :2]])
    with pytest.raises(TableError, match="got LazyFrame: collect"):
        RGLD().fit_batches([pl.LazyFrame(X)])
    for parts in ([X, pd.DataFrame(X, columns=list("abcde"))], [pd.DataFrame(X, columns=list("abcde")), X]):
        with pytest.raises(TableError, match="Expected parts of one kind"):
            RGLD().fit_batches(parts)
        with pytest.raises(TableError, match="Expected parts of one kind"):
            RGLD().partial_fit(parts[0]).partial_fit(parts[1])
    frames = [pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(X, columns=list("abcdf"))]
    with pytest.raises(ValueError, match="f"):
        RGLD().fit_batches(frames)


def test_frames_without_names_are_arrays():
    X = ordinary(900)
    whole = RGLD(random_state=0).fit(X).anomaly_score(X)
    for make in (pd.DataFrame, lambda rows: rows):
        parts = RGLD(random_state=0).fit_batches([X[:400], make(X[400:])])
        assert np.array_equal(parts.anomaly_score(X), whole)
        stream = RGLD(random_state=0).partial_fit(X[:400]).partial_fit(make(X[400:]))
        assert np.array_equal(stream.anomaly_score(X), whole)


@pytest.mark.usefixtures("small_samples")
def test_batches_that_change():
    X = ordinary()
    sources = iter([[X], [X[:-1]]])
    with pytest.raises(TableError, match="6,000 rows in the first pass and 5,999 in a later one"):
        RGLD().fit_batches(lambda: next(sources))
    once = iter(np.split(X, 2))
    with pytest.raises(TableError, match="6,000 rows in the first pass and 0 in a later one"):
        RGLD().fit_batches(lambda: once)


@pytest.mark.usefixtures("small_samples")
def test_infinities_are_named_and_a_failed_fit_changes_nothing():
    X = ordinary()
    detector = RGLD(random_state=0).fit(X)
    before = detector.anomaly_score(X)
    X[5000, 2] = np.inf
    with pytest.raises(TableError, match=r"^Column 2 holds infinity \(inf\) in row 5000,"):
        detector.fit_batches(np.split(X, 2))
    X[5000, 2] = 0.0
    assert np.array_equal(detector.anomaly_score(ordinary()), before)


ROWS_WITH_INFINITY = {
    "in the sample": lambda drawn: drawn[1].indices[7],
    "held out": lambda drawn: drawn[0].indices[7],
    "neither": lambda drawn: np.setdiff1d(np.arange(6000), np.concatenate([part.indices for part in drawn]))[7],
}


@pytest.mark.parametrize("where", ROWS_WITH_INFINITY)
def test_errors_name_the_row_of_the_whole_table(where, small_samples):
    """Whichever pass finds the infinity: rows before it are held out, and only a sample is encoded first."""
    X, parameters = ordinary(), Parameters.of(RGLD(calibration_fraction=0.2))
    n_out, size = sampling.n_held_out(len(X), parameters), sampling.sample_size(X.shape[1], parameters.n_references)
    drawn = sampling.sample_part(MatrixTable(X), 0, 5, n_out + size).split(n_out, size)
    row = int(ROWS_WITH_INFINITY[where](drawn))
    X[row, 2] = np.inf
    frame = pd.DataFrame(X, columns=list("abcdefgh")[: X.shape[1]])
    for source, name in ((X, "Column 2"), (frame, "Column 'c'")):
        with pytest.raises(TableError, match=rf"^{name} holds infinity \(inf\) in row {row},"):
            RGLD(calibration_fraction=0.2, random_state=5).fit_batches(
                [source[:1000], source[1000:3500], source[3500:]]
            )


@pytest.mark.usefixtures("small_samples")
def test_the_counted_rows_of_a_long_table_are_named_by_their_index(monkeypatch):
    monkeypatch.setattr(steps, "MAX_COUNTED_ROWS", 2000)
    X = ordinary()
    schema, encoding = Schema.of(X), MatrixTable(X).infer_encoding(None)
    context = steps.PassContext(schema, encoding, np.empty(0, np.int64), 5, 6000, None)
    counted = np.flatnonzero(randomness.row_keys(5, np.arange(6000), None) < 2000 / 6000)
    row = int(counted[counted >= 3000][40])
    X[row, 1] = -np.inf
    with pytest.raises(TableError, match=rf"in row {row},"):
        context.training_matrix(X[3000:], 3000, only_counted=True)


def test_cells_that_cannot_be_read_are_named_by_their_row():
    parts = [[[1.0, 2.0]] * 30, [[1.0, 2.0]] * 9 + [[1.0, "two"]]]
    objects = [np.array(part, dtype=object) for part in parts]
    with pytest.raises(TableError, match=r"^Column 1 holds str in row 39 "):
        RGLD().fit_batches(objects)
    with pytest.raises(TableError, match=r"^Column 1 holds str in row 39 "):
        RGLD().partial_fit(np.arange(60.0).reshape(30, 2)).partial_fit(objects[1])
    objects[1][9, 1] = 10**400
    with pytest.raises(TableError, match=r"^Column 1 holds a number beyond 1\.8e\+308 in row 39,"):
        RGLD().fit_batches(objects)


@pytest.mark.usefixtures("small_samples")
def test_a_column_that_changes_its_kind_is_named_with_its_row():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"a": rng.normal(size=6000), "when": rng.normal(size=6000)})
    dates = pl.DataFrame({"a": rng.normal(size=9), "when": pl.Series([None] * 8 + [date(2024, 1, 1)])})
    with pytest.raises(TableError, match=r"^Column 'when' holds times from row 6008 on, expected numbers"):
        RGLD(random_state=0).fit_batches([frame, dates])


def test_a_dropped_column_need_not_be_readable():
    frames = [pl.DataFrame({"a": ordinary(60)[:, 0], "list": [[1, 2]] * 60}) for _ in range(2)]
    drop = {"list": "drop"}
    batches = RGLD.fast(columns=drop, random_state=0).fit_batches(frames)
    stream = RGLD.fast(columns=drop, random_state=0).partial_fit(frames[0]).partial_fit(frames[1])
    whole = RGLD.fast(columns=drop, random_state=0).fit(pl.concat(frames))
    for detector in (batches, stream):
        np.testing.assert_array_equal(detector.anomaly_score(frames[0]), whole.anomaly_score(frames[0]))


def test_a_stream_of_one_row_has_no_model_of_an_earlier_fit():
    detector = RGLD.fast(random_state=0).fit(ordinary(60, 3)).partial_fit(np.zeros((1, 2)))
    assert detector.n_features_in_ == 2 and not hasattr(detector, "model_")
    with pytest.raises(NotFittedError):
        detector.anomaly_score(np.zeros((1, 2)))
