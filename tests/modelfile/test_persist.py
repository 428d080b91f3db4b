"""The model file: whole, and bit-identical when it is read again."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import rgld
from rgld import RGLD, ModelFileError, load
from rgld._modelfile import tensors

from ..fit.relation_tables import related
from .model_files import MIXED_SETTINGS, NEW, SMALL, X, mixed

CONFIGURATIONS = {
    "default": {},
    "fast": RGLD.fast().get_params(),
    "quantile": {"preprocessing": "quantile"},
    "robust": {"preprocessing": "robust"},
    "no local branch": {"n_local_views": 0},
    "no global branch": {"n_global_views": 0},
    "all features": {"feature_fraction": 1.0, "bandwidth_multipliers": [0.5], "projection_dim": 3},
    "generator": {"random_state": np.random.RandomState(3), "contamination": 0.1},
    "numpy scalars": {"n_neighbors": np.int64(4), "feature_fraction": np.float32(0.5)},
    "one view of each kind": {"n_global_views": 1, "n_local_views": 1},
    "threads": {"n_jobs": 2},
    "plus": RGLD.plus(n_local_views=8).get_params(),
    "standardized": {"aggregation": "standard", "local_weight": 0.7, "feature_fraction": (1.0, 0.5)},
}


@pytest.mark.parametrize("parameters", CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
@pytest.mark.parametrize("n", [2, 12, 700])
def test_a_loaded_model_scores_bit_identically(tmp_path, parameters, n):
    rng = np.random.default_rng(0)
    train, new = rng.normal(size=(n, 5)), rng.normal(size=(300, 5)) * 4
    detector = RGLD(**{"random_state": 0, **parameters}).fit(train)
    detector.save(tmp_path / "model.rgld")
    loaded = load(tmp_path / "model.rgld")
    np.testing.assert_array_equal(loaded.anomaly_score(new), detector.anomaly_score(new))
    np.testing.assert_array_equal(loaded.predict(new), detector.predict(new))
    assert loaded.preprocessing_ == detector.preprocessing_
    assert loaded.offset_ == detector.offset_
    assert loaded.n_features_in_ == 5
    skipped = ("random_state", "n_jobs")  # a generator has no text; the reader decides on threads
    expected = {k: v for k, v in detector.get_params().items() if k not in skipped}
    expected["bandwidth_multipliers"] = tuple(expected["bandwidth_multipliers"])
    assert {k: v for k, v in loaded.get_params().items() if k not in skipped} == expected
    assert loaded.n_jobs is None


CHANGES_AFTER_FIT = [
    {"n_neighbors": 3},
    {"bandwidth_multipliers": (1.0, 2.0, 3.0, 4.0)},
    {"n_references": 50},
    {"n_local_views": 3},
    {"n_global_views": 0},
    {"feature_fraction": 1.0, "projection_dim": 9, "preprocessing": "quantile"},
]


@pytest.mark.parametrize("change", CHANGES_AFTER_FIT, ids=str)
def test_what_is_saved_is_the_model_that_was_fitted(tmp_path, change):
    """Parameters changed after the fit do not change the scores, of the detector or of its file."""
    detector = RGLD(random_state=0).fit(X)
    scores = detector.anomaly_score(NEW)
    detector.set_params(**change).save(tmp_path / "m.rgld")
    np.testing.assert_array_equal(detector.anomaly_score(NEW), scores)
    np.testing.assert_array_equal(load(tmp_path / "m.rgld").anomaly_score(NEW), scores)


def test_a_detector_with_bad_parameters_does_not_replace_a_good_file(path):
    before = path.read_bytes()
    with pytest.raises(rgld.ParameterError, match="contamination"):
        RGLD(**SMALL).fit(X).set_params(contamination=7).save(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("d", [15, 25, 35])
def test_a_share_in_float32_is_the_share_that_was_meant(tmp_path, d):
    table = np.random.default_rng(0).normal(size=(30, d))
    RGLD(**SMALL, feature_fraction=np.float32(0.3)).fit(table).save(tmp_path / "m.rgld")
    assert load(tmp_path / "m.rgld").anomaly_score(table).shape == (30,)


def test_concurrent_saves_do_not_break_each_other(tmp_path):
    detector = RGLD(**SMALL, random_state=0).fit(X)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: detector.save(tmp_path / "m.rgld"), range(40)))
    np.testing.assert_array_equal(load(tmp_path / "m.rgld").anomaly_score(NEW), detector.anomaly_score(NEW))
    assert os.listdir(tmp_path) == ["m.rgld"]


def test_saving_through_a_link_and_to_a_folder(path, tmp_path):
    os.symlink(path, tmp_path / "link.rgld")
    RGLD(**SMALL, random_state=5).fit(X).save(tmp_path / "link.rgld")
    assert os.path.islink(tmp_path / "link.rgld")
    assert load(path).random_state == 5
    with pytest.raises(IsADirectoryError, match="got a folder"):
        RGLD(**SMALL).fit(X).save(tmp_path)


def test_saving_twice_writes_the_same_bytes(path, tmp_path):
    load(path).save(tmp_path / "again.rgld")
    assert (tmp_path / "again.rgld").read_bytes() == path.read_bytes()


def test_any_safetensors_reader_opens_it_and_finds_the_notice(path):
    arrays = safetensors.numpy.load_file(path)
    assert arrays["local.references"].shape == (2, 5, 6)
    with safetensors.safe_open(path, "numpy") as file:
        assert "contains training rows" in file.metadata()["notice"]
        assert file.metadata()["version"] == "5"


def test_the_size_does_not_grow_with_the_table(tmp_path):
    rng = np.random.default_rng(0)
    for n in (20_000, 60_000):
        RGLD(**SMALL, random_state=0).fit(rng.normal(size=(n, 3))).save(tmp_path / f"{n}.rgld")
    assert os.path.getsize(tmp_path / "60000.rgld") < 1.05 * os.path.getsize(tmp_path / "20000.rgld")


def test_frozen_file_of_version_1():
    """A file written by the first release; it must stay readable, with the scores it had then."""
    folder = os.path.join(os.path.dirname(__file__), "..", "files")
    detector = load(os.path.join(folder, "version-1.rgld"))
    expected = np.loadtxt(os.path.join(folder, "version-1-scores.csv"))
    # Not to the bit: the cosines of another machine may round differently.
    np.testing.assert_allclose(detector.anomaly_score(NEW), expected, atol=1e-4)


def test_frozen_file_of_version_4():
    """A plus model with relations, written before `max_training_rows`."""
    folder = os.path.join(os.path.dirname(__file__), "..", "files")
    detector = load(os.path.join(folder, "version-4.rgld"))
    assert detector.max_training_rows is None and len(detector.relations_) > 0
    expected = np.loadtxt(os.path.join(folder, "version-4-scores.csv"))
    np.testing.assert_allclose(detector.anomaly_score(related(60, seed=5)), expected, atol=1e-4)


def test_a_model_of_a_mixed_table_says_all_it_said_before(mixed_path, tmp_path):
    detector, loaded, new = RGLD(**MIXED_SETTINGS, random_state=0).fit(mixed(60)), load(mixed_path), mixed(90, 1)
    np.testing.assert_array_equal(loaded.anomaly_score(new), detector.anomaly_score(new))
    np.testing.assert_array_equal(loaded.p_values(new), detector.p_values(new))
    one, other = loaded.explain(new), detector.explain(new)
    np.testing.assert_array_equal(one.contributions, other.contributions)
    assert [one.reasons(i) for i in range(9)] == [other.reasons(i) for i in range(9)]
    assert loaded.columns_ == detector.columns_
    assert loaded.columns == {"code": "category"}
    assert {column.kind for column in loaded.columns_} == {
        "number",
        "category",
        "time",
        "boolean",
        "duration",
        "dropped",
    }
    loaded.save(tmp_path / "again.rgld")
    assert (tmp_path / "again.rgld").read_bytes() == mixed_path.read_bytes()


def test_a_crash_while_writing_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        RGLD(**SMALL, random_state=1).fit(X).save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_interrupted_before_the_rename_leaves_the_old_file(path, monkeypatch):
    before = path.read_bytes()

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        RGLD(**SMALL, random_state=1).fit(X).save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_an_oversized_file_is_not_read(path, monkeypatch):
    monkeypatch.setattr(tensors, "MAX_FILE_BYTES", 1000)
    with pytest.raises(ModelFileError, match="expected at most 1000"):
        load(path)


def test_what_is_not_an_ordinary_file(tmp_path):
    with pytest.raises(ModelFileError, match="not an ordinary file"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing.rgld")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not an ordinary file"):
            load(tmp_path / "pipe")


def test_nothing_in_the_package_can_unpickle():
    folder = os.path.dirname(rgld.__file__)
    for directory, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".py"):
                with open(os.path.join(directory, name)) as file:
                    text = file.read()
                for forbidden in (
                    "import pickle",
                    "allow_pickle=True",
                    "joblib.load",
                    r"(?<![.\w])eval\(",
                    r"(?<![.\w])exec\(",
                ):
                    assert not re.search(forbidden, text), f"{name}: {forbidden}"


def test_numbers_whose_differences_overflow_are_read_back(tmp_path):
    X = np.column_stack([np.tile([-1.7e308, 1.7e308], 60), np.arange(120.0)])
    detector = RGLD(random_state=0).fit(X)
    detector.save(tmp_path / "m.rgld")
    np.testing.assert_array_equal(load(tmp_path / "m.rgld").anomaly_score(X), detector.anomaly_score(X))
