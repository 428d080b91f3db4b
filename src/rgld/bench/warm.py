"""Warm-up of the fork server: importing this module fits the detectors of a study once on a tiny table.

Some detectors compile code in their first fit (Numba). Here this happens in the process that all runs are forked from:
once, and never during a measurement.
"""

import json
import os

from .detectors import warm_up

VARIABLE = "RGLD_BENCH_WARM"

for name in json.loads(os.environ.get(VARIABLE, "[]")):
    warm_up(name)
