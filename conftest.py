"""Examples in docstrings and README run in a folder of their own: they may write files."""

import pytest


@pytest.fixture(autouse=True)
def _own_folder(request, monkeypatch, tmp_path):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
