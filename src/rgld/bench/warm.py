"""Warm-up of the fork server: importing this module fits the detectors of a study once on a tiny table.

Some detectors compile code at their first fit (Numba). Done here, in the process that all runs are forked from,
it is paid once and never timed.
"""

import json
import os

from .detectors import warm_up

VARIABLE = "RGLD_BENCH_WARM"

for name in json.loads(os.environ.get(VARIABLE, "[]")):
    warm_up(name)
