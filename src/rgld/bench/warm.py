"""Warm-up of the fork server: importing this module fits the detectors of a study once on a tiny table.

Some detectors compile code at their first fit (Numba). Done here, in the process that all runs are forked
from, it is paid once and never timed. What fails here fails again in its run, where it is recorded.
"""

import contextlib
import json
import os

import numpy as np

from .detectors import make_detector

VARIABLE = "RGLD_BENCH_WARM"

if names := json.loads(os.environ.get(VARIABLE, "[]")):
    tiny = np.random.default_rng(0).random((60, 4))
    for name in names:
        with contextlib.suppress(Exception):
            make_detector(name, 0).fit(tiny).decision_function(tiny)
