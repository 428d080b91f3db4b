"""How the arrays of the model are described by their types."""

from types import GenericAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from rgld._model.fields import _dtype

BEFORE = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
SINCE = GenericAlias(object, (np.float64,))


@pytest.mark.parametrize("array_type", [NDArray[np.float64], BEFORE, SINCE], ids=["here", "NumPy < 2.5", "NumPy 2.5"])
def test_the_type_of_the_numbers_is_read_from_any_form_of_ndarray(array_type):
    assert _dtype(array_type) == np.dtype("<f8")


def test_any_floating_type_is_none():
    assert _dtype(NDArray[np.floating]) is None
