"""What an installed wheel must do, with nothing but its own dependencies and pytest."""

import os
import subprocess
import sys

import numpy as np

import rgld
from rgld import RGLD, _kernels

HEAVY = ("pandas", "polars", "matplotlib", "dask", "torch")


def test_the_compiled_core_is_used():
    expected = "numpy" if os.environ.get("RGLD_KERNELS") == "numpy" else "native"
    assert _kernels.name == expected


def test_fit_score_save_load(tmp_path):
    X = np.random.default_rng(0).normal(size=(500, 5))
    X[7] = 8.0
    detector = RGLD(random_state=0).fit(X)
    scores = detector.anomaly_score(X)
    assert scores.argmax() == 7 and detector.predict(X)[7] == -1
    assert np.all((scores > 0.0) & (scores < 1.0))
    detector.save(tmp_path / "model.rgld")
    loaded = rgld.load(tmp_path / "model.rgld")
    np.testing.assert_array_equal(loaded.anomaly_score(X), scores)
    np.testing.assert_array_equal(RGLD(random_state=0, n_jobs=1).fit(X).anomaly_score(X), scores)


def test_import_loads_nothing_heavy():
    # scikit-learn loads pandas where it is installed: only what comes on top of it counts.
    loaded = f"{{m for m in {HEAVY} if m in sys.modules}}"
    code = f"import sys, sklearn.base; before = {loaded}; import rgld; rgld.RGLD; print(sorted({loaded} - before))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "[]", result.stderr
