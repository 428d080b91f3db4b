"""Wide tables: the second edition fits them within bounds of memory and writes files of bounded size."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

FIT = """
import json, re, sys
from pathlib import Path
import numpy as np
from rgld import RGLD

def memory(what):
    return int(re.search(what + r":\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024

def fitted(preset, X):
    return getattr(RGLD, preset)(random_state=0, n_jobs=1).fit(X)

n, d, path = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
rng = np.random.default_rng(0)
X = rng.standard_normal((n, d), dtype=np.float32)
X[:, ::10] = rng.random(X[:, ::10].shape) < 0.02  # flags
found = {}
for preset in ("plus", "novelty"):
    fitted(preset, X[:100, :5])  # loads what a fit needs
    before = memory("VmRSS")
    detector = fitted(preset, X)
    peak = memory("VmHWM") - before
    found[preset] = {"peak": peak, "detector": detector}
for preset, of in found.items():  # at last, for scoring and writing need memory, too
    detector = of.pop("detector")
    scores = detector.anomaly_score(X)
    detector.save(path)
    parts = detector.model_.local_branch, detector.model_.local_branch.views, detector.model_.global_branch
    arrays = [value for part in parts for value in vars(part).values() if isinstance(value, np.ndarray)]
    of |= {"file": path.stat().st_size / 2**20, "lowest": scores.min(), "highest": scores.max(),
           "are_finite": bool(np.isfinite(scores).all()), "n_different": len(np.unique(scores)),
           "arrays": sum(array.nbytes for array in arrays) / 2**20,
           "widest_view": detector.model_.local_branch.views.features.shape[1]}
print(json.dumps(found))
"""


@pytest.mark.own_process
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says how much memory a process has had")
@pytest.mark.parametrize(
    ("n", "d", "most"),
    [
        (2000, 1555, {"peak": 150, "file": 40, "arrays": 4}),
        (1000, 768, {"peak": 75, "file": 18, "arrays": 4}),
    ],
)
def test_memory_and_size_of_a_wide_table(tmp_path, n, d, most):
    """In MiB. A fit takes two thirds of the bound, a file nine tenths, and the arrays of the views half of it."""
    arguments = [sys.executable, "-c", FIT, str(n), str(d), str(tmp_path / "m.rgld")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for preset, found in json.loads(done.stdout).items():
        assert found["are_finite"] and 0 < found["lowest"] < found["highest"] < 1, preset
        assert found["n_different"] > 0.8 * n, preset
        assert found["widest_view"] == {"plus": 48, "novelty": 64}[preset]
        assert {name: found[name] for name in most if found[name] > most[name]} == {}, (preset, found)
