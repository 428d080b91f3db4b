"""Each array of the model is described once: what a file holds, what is checked and what is saved follow."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

from rgld import RGLD, ModelFileError, load
from rgld._arrays import Float32s
from rgld._model.fields import DIMENSIONS, OPEN_DIMENSIONS, Array, array_fields
from rgld._modelfile import layout
from rgld._modelfile.layout import ARRAY_GROUPS, arrays_of, expected_arrays, sizes_of
from rgld._modelfile.tensors import ArraySpec, open_tensors

SMALL = {"n_global_views": 2, "n_local_views": 3, "n_random_features": 4, "n_references": 6, "n_neighbors": 2}
X = np.random.default_rng(0).normal(size=(20, 4))

DETECTORS = {
    "both branches": RGLD(**SMALL),
    "global branch": RGLD(**{**SMALL, "n_local_views": 0}),
    "local branch": RGLD(**{**SMALL, "n_global_views": 0}),
    "standardized": RGLD(**SMALL, aggregation="standard", preprocessing=("quantile", "arcsinh")),
    "calibrated": RGLD(**SMALL, calibration_fraction=0.4, projection="orthogonal"),
}


@pytest.mark.parametrize("detector", DETECTORS.values(), ids=DETECTORS)
def test_a_fitted_model_has_the_arrays_that_are_described(detector):
    model = detector.fit(X).model_
    arrays = arrays_of(model)
    specs = {name: ArraySpec(array.dtype.newbyteorder("<"), array.shape) for name, array in arrays.items()}
    expected = list(expected_arrays(sizes_of(model, arrays), model.scaling.kinds, detector.aggregation, specs))
    assert [array.name for array in expected] == list(arrays)
    assert {array.name: array.spec for array in expected} == specs
    for array in expected:
        values = arrays[array.name]
        assert np.all((values >= array.description.low) & (values <= array.description.high)), array.name


def test_every_dimension_of_a_description_is_known():
    used = {name for group in ARRAY_GROUPS for field in array_fields(group.cls) for name in field.dimensions}
    assert {name for name in used if not name.isdigit()} <= set(DIMENSIONS)
    assert set(OPEN_DIMENSIONS) <= set(DIMENSIONS)

    class Mistyped:
        numbers: Annotated[Float32s, Array("T tail")]

    with pytest.raises(TypeError, match=r"Mistyped.numbers has the dimension 'tail'"):
        array_fields(Mistyped)


@dataclass(frozen=True, eq=False)
class Leverage:
    """A part that a later release may add: one field per array."""

    means: Annotated[Float32s, Array("T D", -2.0, 2.0)]
    inverses: Annotated[Float32s, Array("T D D", 0.0, 1.0)]


@pytest.fixture
def leverage(monkeypatch):
    """Let models have two more arrays, all of this value; return a function that changes it."""
    value = [1.0]

    def of(model):
        return Leverage(np.full((2, 4), value[0], "f4"), np.full((2, 4, 4), value[0], "f4"))

    monkeypatch.setattr(layout, "ARRAY_GROUPS", (*layout.ARRAY_GROUPS, layout.ArrayGroup("global", Leverage, of)))
    return lambda new: value.__setitem__(0, new)


def test_an_array_that_is_described_is_saved_checked_and_read(tmp_path, leverage):
    detector = RGLD(**SMALL, random_state=0).fit(X)
    detector.save(tmp_path / "m.rgld")
    with open_tensors(tmp_path / "m.rgld") as tensors:
        assert tensors.specs["global.inverses"] == ArraySpec(np.dtype("<f4"), (2, 4, 4))
        arrays = tensors.read()
    assert np.all(Leverage(**layout.group_of(arrays, Leverage, "global")).means == 1.0)
    load(tmp_path / "m.rgld")
    leverage(1.5)  # in the range of one array, out of that of the other
    detector.save(tmp_path / "m.rgld")
    with pytest.raises(ModelFileError, match=r"array 'global.inverses' holds values"):
        load(tmp_path / "m.rgld")


def test_a_file_without_an_array_that_is_described_is_refused(tmp_path, request):
    RGLD(**SMALL, random_state=0).fit(X).save(tmp_path / "m.rgld")
    request.getfixturevalue("leverage")
    with pytest.raises(ModelFileError, match=r"'global.inverses' is missing or unexpected"):
        load(tmp_path / "m.rgld")
