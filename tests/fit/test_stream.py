"""Rows that keep coming: `partial_fit` goes on, also from a file, which may be hostile."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rgld import RGLD, load
from rgld._fit import sampling
from rgld._fit.stream import Stream
from rgld._modelfile.tensors import open_tensors, write_tensors
from rgld._table.table import MatrixTable
from rgld.exceptions import ModelFileError, ParameterError

from .part_tables import PRESETS, ordinary, parts_of, small_samples, table_of_all_kinds

__all__ = ["small_samples"]


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
    monkeypatch.setattr(sampling, "MAX_SAMPLE_ROWS", 8000)
    X = ordinary(20_000)
    stream = PRESETS[preset](random_state=0)
    for part in np.split(X, 5):
        stream.partial_fit(part)
    batches = PRESETS[preset](random_state=0).fit_batches(np.split(X, 4))
    assert np.array_equal(stream.model_.kept_rows.rows, batches.model_.kept_rows.rows)  # the references
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
    assert len(stream._stream.table.columns[-1].strings) == 2000
    stream.save(tmp_path / "m.rgld")
    content = (tmp_path / "m.rgld").read_bytes()
    kept = set(stream._stream.sample.indices.tolist())
    found = {int(digits) for digits in re.findall(rb"name (\d+)", content)}
    assert found == kept


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


def test_a_stream_knows_whether_its_sample_has_gaps():
    """Rows 3 to 6 are all there: the sample is whole. Without row 4 it spans one row more than it has."""
    table = MatrixTable(np.zeros((4, 1)))
    for indices, spanned in (([3, 4, 5, 6], None), ([3, 5, 6, 7], 5), ([0, 9, 10, 11], 12)):
        sample = sampling.RowSample(np.array(indices), np.zeros(4), table, 4)
        stream = Stream(0, 4, None, 20, sample)
        assert stream.n_spanned == spanned
        assert stream.row_indices.tolist() == indices


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
    "a row twice": lambda s, a: a["stream.numbers"].__setitem__(1, a["stream.numbers"][0]),
    "rows beyond the end": lambda s, a: a["stream.numbers"].__setitem__(-1, 10**9),
    "a row right behind the end": lambda s, a: a["stream.numbers"].__setitem__(-1, s["n_rows"]),
    "negative rows": lambda s, a: a["stream.numbers"].__setitem__(0, -5),
    "codes beyond the texts": lambda s, a: a["stream.values"].__setitem__((7, 0), 1e6),
    "codes that no integer can hold": lambda s, a: a["stream.values"].__setitem__((7, 0), 1e300),
    "codes that are no numbers": lambda s, a: a["stream.values"].__setitem__((7, 0), np.nan),
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
    with pytest.raises(ModelFileError, match="stream"):
        load(path)


def test_a_rewritten_stream_is_read(stream_file):
    load(rewritten(stream_file, lambda s, a: None)).partial_fit(table_of_all_kinds(100, seed=1))


def test_most_model_files_hold_no_stream(tmp_path):
    RGLD.fast(random_state=0).fit(ordinary(200)).save(tmp_path / "m.rgld")
    assert load(tmp_path / "m.rgld")._stream is None
    with open_tensors(tmp_path / "m.rgld") as tensors:
        assert not any(name.startswith("stream") for name in tensors.specs)


def test_a_stream_of_integers_and_the_largest_floats_is_saved_and_read(tmp_path):
    detector = RGLD.fast(random_state=0)
    for values in (np.array([10**17, 10**17 + 3, 5, 7]), np.array([1.7e308, -1.7e308, 2.0, 3.0])):
        detector.partial_fit(pd.DataFrame({"a": values, "b": [1.0, 2.0, 4.0, 3.0]}))
    detector.save(tmp_path / "s.rgld")
    new = pd.DataFrame({"a": [5.0, 6.0], "b": [1.0, 2.0]})
    assert np.array_equal(load(tmp_path / "s.rgld").anomaly_score(new), detector.anomaly_score(new))
