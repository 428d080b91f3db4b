"""How tests run: examples of hypothesis, random numbers, and where examples of docstrings and README write files."""

import contextlib

import numpy as np
import pytest

with contextlib.suppress(ImportError):  # a wheel is tried with pytest alone
    from hypothesis import settings

    # The examples depend on the test alone, so that a commit either passes or fails. `make test-all` takes "all";
    # `pytest --hypothesis-profile=search` tries new examples every time.
    settings.register_profile("quick", max_examples=30, deadline=None, derandomize=True)
    settings.register_profile("all", max_examples=150, deadline=None, derandomize=True)
    settings.register_profile("search", max_examples=500, deadline=None)
    settings.load_profile("quick")


@pytest.fixture
def rng():
    """A generator of the test's own: what it draws does not depend on which tests ran before it."""
    return np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _own_folder(request):
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
