"""How tests run: how many examples hypothesis tries, and where examples in docstrings and README may write files."""

import contextlib

import pytest

with contextlib.suppress(ImportError):  # a wheel is tried with pytest alone
    from hypothesis import settings

    # `pytest --hypothesis-profile=all` takes the second, as `make test-all` does.
    settings.register_profile("quick", max_examples=30, deadline=None)
    settings.register_profile("all", max_examples=150, deadline=None)
    settings.load_profile("quick")


@pytest.fixture(autouse=True)
def _own_folder(request):
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
