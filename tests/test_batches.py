"""Tables that come in parts: `fit_batches` is `fit`, `partial_fit` goes on."""

import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

from rgld import RGLD, _sampling, _training, load
from rgld._tensorfile import open_tensors, write_tensors
from rgld.exceptions import ModelFileError, ParameterError, TableError

PRESETS = {"paper": RGLD, "fast": RGLD.fast, "plus": RGLD.plus}
DATA = Path(os.environ.get("RGLD_DATA", Path(__file__).parents[2] / "shared" / "data" / "adbench"))


@pytest.fixture
def small_samples(monkeypatch):
    """Let tables of more than 2000 rows be long ones."""
    monkeypatch.setattr(_sampling, "SAMPLE_ROWS", 2000)
    monkeypatch.setattr(_sampling, "LEAST_SAMPLE", 2000)


def ordinary(n=6000, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.arange(1, d + 1)
    X[:, 1] = np.round(X[:, 1])
    X[rng.random(n) < 0.01] += 12.0
    return X


def table_of_all_kinds(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    rare = np.where(np.arange(n) == n - 5, "odd", "usual")
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "skewed": rng.lognormal(sigma=2, size=n),
            "gaps": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "one_gap": np.where(np.arange(n) == n // 2, np.nan, rng.normal(size=n)),
            "nearly_constant": np.where(np.arange(n) == 17, 5.0, 1.0),
            "constant": 3.0,
            "flag": rng.random(n) < 0.3,
            "city": rng.choice(["Bonn", "Paris", "Rome"], n, p=[0.7, 0.2, 0.1]),
            "shop": pd.Categorical(rng.choice([f"shop {i}" for i in range(300)], n)),
            "rare": rare,
            "typed": [f"{x:.2f} €" for x in rng.normal(size=n)],
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
            "row": np.arange(n),
            "user_id": rng.permutation(10 * n)[:n],
            "name": [f"name {i}" for i in range(n)],
        }
    )
    frame.loc[3, "city"] = None
    return frame


def parts_of(table, sizes):
    bounds = np.cumsum([0, *sizes])
    part = (lambda a, b: table.iloc[a:b]) if isinstance(table, pd.DataFrame) else (lambda a, b: table[a:b])
    return [part(a, b) for a, b in pairwise(bounds)] + [part(bounds[-1], len(table))]


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


# ---- streams


@pytest.mark.parametrize("preset", PRESETS)
def test_a_stream_is_learned_as_its_rows_in_memory(preset):
    frame = table_of_all_kinds(1500)
    stream = PRESETS[preset](random_state=0)
    for part in parts_of(frame, [400, 1, 300]):
        stream.partial_fit(part)
    whole = PRESETS[preset](random_state=0).fit(frame)
    assert np.array_equal(stream.anomaly_score(frame), whole.anomaly_score(frame))
    assert stream.columns_ == whole.columns_


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.usefixtures("small_samples")
def test_a_long_stream_is_learned_nearly_as_in_batches(preset, monkeypatch):
    monkeypatch.setattr(_sampling, "SAMPLE_ROWS", 8000)
    X = ordinary(20_000)
    stream = PRESETS[preset](random_state=0)
    for part in np.split(X, 5):
        stream.partial_fit(part)
    batches = PRESETS[preset](random_state=0).fit_batches(np.split(X, 4))
    assert np.array_equal(stream.model_.sample.rows, batches.model_.sample.rows)  # the references
    assert spearmanr(stream.anomaly_score(X), batches.anomaly_score(X))[0] > 0.999


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("half_life", [None, 1500.0])
def test_a_stream_goes_on_after_loading(tmp_path, half_life):
    frame = table_of_all_kinds()
    frame["large"] = np.arange(len(frame)) * 7 % 1000 + 2**60
    parts = parts_of(frame, [2500, 1500])
    stream = RGLD(random_state=0)
    for part in parts[:-1]:
        stream.partial_fit(part, half_life=half_life)
    stream.save(tmp_path / "m.rgld")
    loaded = load(tmp_path / "m.rgld")
    stream.partial_fit(parts[-1], half_life=half_life)
    loaded.partial_fit(parts[-1], half_life=half_life)
    assert np.array_equal(loaded.anomaly_score(frame), stream.anomaly_score(frame))
    assert loaded.columns_ == stream.columns_


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_stream_of_arrays_goes_on_after_loading(tmp_path, dtype):
    X = ordinary(900).astype(dtype)
    X[5, 1] = np.nan
    RGLD(random_state=0).partial_fit(X[:500]).save(tmp_path / "m.rgld")
    loaded = load(tmp_path / "m.rgld").partial_fit(X[500:])
    assert np.array_equal(loaded.anomaly_score(X), RGLD(random_state=0).fit(X).anomaly_score(X))


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("half_life", [None, 1500.0])
def test_a_stream_drops_the_column_that_numbers_its_rows(half_life):
    frame = table_of_all_kinds(9000)[["number", "skewed", "row"]]
    stream = RGLD(random_state=0)
    for part in np.array_split(np.arange(9000), 9):
        stream.partial_fit(frame.iloc[part], half_life=half_life)
        assert [column.kind for column in stream.columns_] == ["number", "number", "dropped"]


@pytest.mark.usefixtures("small_samples")
def test_a_stream_keeps_no_texts_of_rows_it_forgot(tmp_path):
    stream = RGLD(random_state=0)
    for part in parts_of(table_of_all_kinds(), [2000, 2000]):
        stream.partial_fit(part)
    assert len(stream._stream.table[-1].texts) == 2000
    stream.save(tmp_path / "m.rgld")
    content = (tmp_path / "m.rgld").read_bytes()
    kept = set(stream._stream.sample.numbers.tolist())
    assert all((f"name {i}".encode() in content) == (i in kept) for i in range(1000, 6000))


@pytest.mark.usefixtures("small_samples")
def test_half_lives_follow_drift():
    rng = np.random.default_rng(0)
    steady, drifting = RGLD(random_state=0), RGLD(random_state=0)
    old, new = rng.normal(size=(10_000, 3)), rng.normal(8.0, 1.0, size=(3000, 3))
    for part in (*np.split(old, 5), *np.split(new, 3)):
        steady.partial_fit(part)
        drifting.partial_fit(part, half_life=500)
    scored = rng.normal(8.0, 1.0, size=(1000, 3))
    assert np.median(steady.anomaly_score(scored)) > np.median(drifting.anomaly_score(scored)) + 0.1
    assert np.median(drifting.anomaly_score(old)) > 0.9


def test_the_first_rows_of_a_stream():
    stream = RGLD(random_state=0).partial_fit([[1.0, 2.0]])
    with pytest.raises(NotFittedError):
        stream.anomaly_score([[1.0, 2.0]])
    with pytest.raises(NotFittedError):
        stream.save("nowhere.rgld")
    stream.partial_fit([[2.0, 1.0], [3.0, 5.0]])
    assert stream.anomaly_score([[1.0, 1.0]]).shape == (1,)
    with pytest.raises(ValueError, match="features"):
        stream.partial_fit([[1.0]])
    with pytest.raises(ParameterError, match="must be the same in every call"):
        stream.partial_fit([[1.0, 2.0]], half_life=500)
    for half_life in (0, 5, 1e13, np.nan, np.inf, "day", True):
        with pytest.raises(ParameterError, match="half_life must be"):
            RGLD().partial_fit([[1.0, 2.0]], half_life=half_life)
    assert stream._stream.n_rows == 3  # a failed call changed nothing


def test_fits_and_streams_do_not_mix():
    X = ordinary(300)
    stream = RGLD(random_state=0).partial_fit(X).fit(X[:100])
    assert stream._stream is None
    stream.partial_fit(X[100:])
    assert np.array_equal(stream.anomaly_score(X), RGLD(random_state=0).fit(X[100:]).anomaly_score(X))
    assert clone(stream)._stream is None


# ---- hostile files


@pytest.fixture
def stream_file(tmp_path):
    path = tmp_path / "m.rgld"
    RGLD.fast(random_state=0).partial_fit(table_of_all_kinds(200)).save(path)
    with open_tensors(path) as tensors:
        return path, dict(tensors.metadata), tensors.read()


def rewritten(stream_file, change):
    path, metadata, arrays = stream_file
    content = json.loads(metadata["detector"])
    arrays = {name: array.copy() for name, array in arrays.items() if name != "sha256"}
    change(content["stream"], arrays)
    write_tensors(path, {**metadata, "detector": json.dumps(content)}, arrays)
    return path


HOSTILE = {
    "no seed": lambda s, a: s.pop("seed"),
    "seed a text": lambda s, a: s.update(seed="0"),
    "negative seed": lambda s, a: s.update(seed=-1),
    "huge size": lambda s, a: s.update(size=2**60),
    "sample larger than its size": lambda s, a: s.update(size=10),
    "fewer rows than sampled": lambda s, a: s.update(n_rows=5),
    "half-life": lambda s, a: s.update(half_life=0.0),
    "no columns": lambda s, a: s.update(columns=None),
    "a column too few": lambda s, a: s["columns"].pop(),
    "unknown kind": lambda s, a: s["columns"].__setitem__(0, ["matrix", False, False]),
    "digits of texts": lambda s, a: s["columns"].__setitem__(7, ["text", False, True]),
    "numbers as texts": lambda s, a: s["columns"].__setitem__(0, ["text", False, False]),
    "digits of none": lambda s, a: s["columns"].__setitem__(0, ["number", False, True]),
    "rows out of order": lambda s, a: a.update({"stream.numbers": a["stream.numbers"][::-1]}),
    "rows beyond the end": lambda s, a: a["stream.numbers"].__setitem__(-1, 10**9),
    "negative rows": lambda s, a: a["stream.numbers"].__setitem__(0, -5),
    "codes beyond the texts": lambda s, a: a["stream.values"].__setitem__((7, 0), 1e6),
    "half a code": lambda s, a: a["stream.values"].__setitem__((7, 0), 0.5),
    "texts cut": lambda s, a: a.update({"stream.texts": a["stream.texts"][:-1]}),
    "texts that are not UTF-8": lambda s, a: a["stream.texts"].__setitem__(slice(None), 255),
    "ends out of order": lambda s, a: a["stream.text_ends"].__setitem__(0, 10**6),
    "negative counts": lambda s, a: a["stream.n_texts"].__setitem__(7, -1),
    "texts of two dimensions": lambda s, a: a.update({"stream.texts": a["stream.texts"][None]}),
    "no texts": lambda s, a: a.pop("stream.texts"),
    "other shape": lambda s, a: a.update({"stream.values": a["stream.values"][:-1]}),
    "a stray array": lambda s, a: a.update({"stream.more": np.zeros(3)}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_streams(stream_file, what):
    path = rewritten(stream_file, HOSTILE[what])
    with pytest.raises(ModelFileError):
        load(path)


def test_a_rewritten_stream_is_read(stream_file):
    load(rewritten(stream_file, lambda s, a: None)).partial_fit(table_of_all_kinds(100, seed=1))


def test_most_model_files_hold_no_stream(tmp_path):
    RGLD.fast(random_state=0).fit(ordinary(200)).save(tmp_path / "m.rgld")
    assert load(tmp_path / "m.rgld")._stream is None
    with open_tensors(tmp_path / "m.rgld") as tensors:
        assert not any(name.startswith("stream") for name in tensors.specs)
