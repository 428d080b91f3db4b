"""What tests of the study share: where the datasets are, and one run as a task."""

import os
from pathlib import Path

import pytest

from rgld.bench.worker import Task

ADBENCH = Path(os.environ.get("RGLD_DATA") or Path(__file__).parents[3] / "shared" / "data" / "adbench")
needs_data = pytest.mark.skipif(not ADBENCH.is_dir(), reason="the datasets are not here (RGLD_DATA)")


def task(dataset="sparse_subspace(n=300, d=6)", detector="HBOS", seed=1, protocol="paper", memory=0, data=None):
    return Task(protocol, dataset, detector, seed, data, None, None, 1, memory)
