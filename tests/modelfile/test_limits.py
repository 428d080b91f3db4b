"""What a forged file can and cannot do: it takes little memory and time, and scores stay in (0, 1)."""

import json
import os

import numpy as np
import pytest

from rgld import RGLD, ModelFileError, load
from rgld._modelfile import sizes as modelsizes
from rgld._modelfile.tensors import open_tensors, write_tensors

from .model_files import NEW, SMALL, X, joined, refused, set_parameter, split

FOLDER = os.path.join(os.path.dirname(__file__), "..", "files")


def rewritten(path, change):
    """Write a file again after a change of what its header says and of its arrays."""
    with open_tensors(path) as file:
        metadata, arrays = dict(file.metadata), file.read()
    content = json.loads(metadata["detector"])
    del arrays["sha256"]
    change(content, arrays)
    write_tensors(path, {**metadata, "detector": json.dumps(content)}, arrays)
    return path


# ---- reading


@pytest.mark.parametrize("name", [[], "", {}], ids=str)
def test_a_file_of_version_1_with_a_million_names(tmp_path, name):
    """Their number is checked before a column is made of each."""
    with open(os.path.join(FOLDER, "version-1.rgld"), "rb") as file:
        header, data = split(file.read())
    changed = set_parameter(header, "feature_names", [name] * 1_000_000)
    error = refused(tmp_path / "m.rgld", joined(changed, data))
    assert "feature_names" in str(error)


@pytest.mark.parametrize("names", [["a", "b"], [1, 2, 3, 4], {"a": 1}, "abcd", ["a", "b", "c", None]], ids=str)
def test_names_that_no_file_of_version_1_has(tmp_path, names):
    with open(os.path.join(FOLDER, "version-1.rgld"), "rb") as file:
        header, data = split(file.read())
    assert "feature_names" in str(
        refused(tmp_path / "m.rgld", joined(set_parameter(header, "feature_names", names), data))
    )


@pytest.mark.parametrize("n", [50_000, 50_001])
def test_calibration_scores_are_at_most_those_of_a_fit(path, n):
    def change(content, arrays):
        content["sizes"]["n_calibration"] = n
        arrays["calibration"] = np.linspace(0.1, 0.9, n)

    rewritten(path, change)
    if n <= 50_000:
        assert load(path).p_values(X).shape == (20,)
    else:
        with pytest.raises(ModelFileError, match="sizes that no fitted model has"):
            load(path)


# ---- going on with a stream


@pytest.fixture(scope="module")
def stream_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("stream") / "stream.rgld"
    RGLD(**SMALL, random_state=0).partial_fit(X).save(path)
    return path


TOO_LARGE = {
    "random features": {"n_random_features": 20_000},
    "local views": {"n_local_views": 10**7},
    "global views": {"n_global_views": 10**7},
    "bandwidths": {"bandwidth_multipliers": [1.0] * 400_000, "n_random_features": 10},
    "views of many rows": {"n_global_views": 3000},
    "dimensions": {"projection_dim": 1024, "n_random_features": 40_000},
    "references": {"n_references": 10**9, "size": 10**9},
    "whitened rows": {"n_local_views": 33, "projection_dim": 1024, "whitening": 0.1},
    "whitened dimensions": {"n_local_views": 70, "projection_dim": 1024, "whitening": [0.0, 0.1], "size": 20},
    "leverage features": {"global_score": "leverage", "n_random_features": 2500},
    "pairs of many dimensions": {"n_bandwidth_pairs": 10**9, "projection_dim": 1024},
    "sampled rows": {"size": 2**40},
    "a number of many digits": {"n_random_features": 10**4000},
}


@pytest.mark.parametrize("changes", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_stream_whose_parameters_take_much_memory(stream_file, tmp_path, changes):
    """Without loading, `partial_fit` would have made arrays of gigabytes, or millions of views."""

    def change(content, arrays):
        for name, value in changes.items():
            (content["stream"] if name == "size" else content["parameters"])[name] = value

    (tmp_path / "m.rgld").write_bytes(stream_file.read_bytes())
    with pytest.raises(ModelFileError, match=r"would need arrays of \d+ numbers, expected at most"):
        load(rewritten(tmp_path / "m.rgld", change))


@pytest.mark.parametrize("changes", [{"n_local_views": 12_000}, {"global_score": "leverage", "n_global_views": 700}])
def test_a_stream_whose_views_choose_among_many_columns(tmp_path, changes):
    """A view may look at one column, but drawing it takes a number for each; and a leverage view looks at all."""
    wide = np.random.default_rng(0).normal(size=(3, 6000))
    narrow = {"min_features": 1, "max_features": 1, "projection_dim": 1, "n_references": 2, "n_neighbors": 1}
    path = tmp_path / "m.rgld"
    RGLD(**{**SMALL, **narrow}, random_state=0).partial_fit(wide).save(path)

    def change(content, arrays):
        content["stream"]["size"] = 3
        content["parameters"] |= changes

    with pytest.raises(ModelFileError, match=r"would need arrays of \d+ numbers, expected at most"):
        load(rewritten(path, change))


@pytest.mark.parametrize("make", [RGLD, RGLD.fast, RGLD.plus, RGLD.novelty], ids=lambda make: make.__name__)
def test_a_stream_of_usual_parameters_is_read(tmp_path, make):
    make(random_state=0).partial_fit(X).save(tmp_path / "m.rgld")
    assert load(tmp_path / "m.rgld").partial_fit(NEW).anomaly_score(X).shape == (20,)


def test_parameters_of_a_detector_without_a_stream_are_not_bounded(tmp_path):
    """They have no effect unless the user fits again, on rows of his own."""
    RGLD(**SMALL, random_state=0).fit(X).set_params(n_random_features=20_000).save(tmp_path / "m.rgld")
    assert load(tmp_path / "m.rgld").n_random_features == 20_000


def test_what_could_not_be_read_again_is_not_saved(tmp_path, monkeypatch):
    detector = RGLD(**SMALL, random_state=0).partial_fit(X)
    monkeypatch.setattr(modelsizes, "MAX_NUMBERS", 1000)
    with pytest.raises(ModelFileError, match=r"cannot be saved.*expected at most 1000: use fewer views"):
        detector.save(tmp_path / "m.rgld")
    assert os.listdir(tmp_path) == []


# ---- scores in (0, 1)

FAR = np.concatenate((NEW, NEW * 1e300, NEW * 1e-300, np.zeros((1, 4))))
NEAREST_TO_1 = 1.0 - 2.0**-53


def set_ranks(low, high):
    def change(content, arrays):
        for branch in ("global", "local"):
            last = arrays[f"{branch}.cdf_sizes"][-1]
            arrays[f"{branch}.cdf_ranks"][-last:] = np.linspace(low, high, last)

    return change


@pytest.mark.parametrize(("low", "high"), [(0.1, NEAREST_TO_1), (1e-18, 0.9), (0.1, 0.98), (0.02, 0.9)])
def test_ranks_that_no_distribution_of_20_rows_has(path, low, high):
    """Of n rows, they are from 0.5 / n to 1 - 0.5 / n. Nearer to 0 or 1, the mean of two may round to it."""
    with pytest.raises(ModelFileError, match="cdf_ranks"):
        load(rewritten(path, set_ranks(low, high)))


@pytest.mark.parametrize("local_weight", [5e-324, 1e-17, 0.3, 0.5, 0.7, NEAREST_TO_1])
@pytest.mark.parametrize("values", [1.0, 1e-90, 1e30])
def test_scores_at_the_limits_of_what_is_read(path, local_weight, values):
    """The most training rows, the outermost ranks, the narrowest and the widest distributions."""
    edge = 0.5 / modelsizes.MAX_ROWS

    def change(content, arrays):
        set_ranks(edge, 1.0 - edge)(content, arrays)
        content["sizes"]["n_rows"] = content["sizes"]["n_ranked_rows"] = modelsizes.MAX_ROWS
        content["local_weight"] = local_weight
        for branch in ("global", "local"):
            last = arrays[f"{branch}.cdf_sizes"][-1]
            arrays[f"{branch}.cdf_values"][-last:] = np.linspace(0.0, values, last)

    scores = load(rewritten(path, change)).anomaly_score(FAR)
    assert np.all((scores > 0.0) & (scores < 1.0))


# ---- views without columns


@pytest.mark.parametrize(("n_scalings", "is_read"), [(5, True), (64, False)])
def test_scalings_of_many_kept_rows(tmp_path, n_scalings, is_read, monkeypatch):
    """Explanations hold the kept rows once for each scaling: here 5 x 44 or 64 x 44 numbers."""
    monkeypatch.setattr(modelsizes, "MAX_NUMBERS", 64 * 44 - 1)
    monkeypatch.setattr(modelsizes, "SMALLEST_BLOCK", 1)
    detector = RGLD(**SMALL, preprocessing=("standard",) * n_scalings, random_state=0).fit(X)
    assert detector.model_.kept_rows.rows.size == 44
    if is_read:
        detector.save(tmp_path / "m.rgld")
        assert load(tmp_path / "m.rgld").explain(NEW).contributions.shape == (30, 4)
    else:
        with pytest.raises(ModelFileError, match="would need arrays of 2816 numbers, expected at most 2815"):
            detector.save(tmp_path / "m.rgld")


def test_a_view_without_columns_explains_nothing(path):
    """A projection of zeros, with high ranks for all scores: NumPy warned of a division by zero."""

    def change(content, arrays):
        for branch in ("global", "local"):
            arrays[f"{branch}.projection"][0] = 0.0
            n_knots = arrays[f"{branch}.cdf_sizes"][0]
            arrays[f"{branch}.cdf_values"][:n_knots] = np.linspace(-2e6, -1e6, n_knots)

    explanation = load(rewritten(path, change)).explain(FAR[:60])
    assert np.all(np.isfinite(explanation.contributions)) and np.all(explanation.contributions >= 0)
