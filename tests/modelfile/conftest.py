"""Model files to read or to forge."""

import pytest

from rgld import RGLD

from .model_files import LEVERAGE_SETTINGS, MIXED_SETTINGS, SMALL, X, mixed


@pytest.fixture
def mixed_path(tmp_path):
    RGLD(**MIXED_SETTINGS, random_state=0).fit(mixed(60)).save(tmp_path / "mixed.rgld")
    return tmp_path / "mixed.rgld"


@pytest.fixture
def leverage_path(tmp_path):
    RGLD(**LEVERAGE_SETTINGS, random_state=0).fit(X).save(tmp_path / "leverage.rgld")
    return tmp_path / "leverage.rgld"


@pytest.fixture
def path(tmp_path):
    RGLD(**SMALL, random_state=0).fit(X).save(tmp_path / "m.rgld")
    return tmp_path / "m.rgld"
