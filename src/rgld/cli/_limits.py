"""Limits of the system: whether a command may have the addresses and the threads that its libraries take.

In: what the command does. Out: a sentence, or "". NumPy's OpenBLAS and polars do not end in order if they are refused
memory: they end the process, send it the signal of Ctrl-C, or wait for ever. So this is asked before they are loaded,
and this module loads nothing large.
"""

import os
import sys
import threading

from ._memory import GIB

NEEDED_BYTES = {
    "RLIMIT_AS": ("-v", GIB // 4 * 3, 2 * GIB),
    "RLIMIT_DATA": ("-d", GIB // 4, GIB // 4 * 3),
}
"""The limits of a process on addresses and on data: the option of `ulimit` that sets it, what a command needs that
reads no table, and what one needs that does. Measured (0.5 and 1.8 GiB, 0.15 and 0.5 GiB), rounded up."""
BYTES_PER_CORE = GIB // 8
"""What the threads of each core need in addition: stacks and heaps."""


def refusal(*, reads_tables: bool) -> str:
    """Return why a command cannot be started within the limits of the system (`ulimit`); "" if it can."""
    if sys.platform != "linux":  # others do not enforce these limits, or have none
        return ""
    import resource

    for name, (option, small, large) in NEEDED_BYTES.items():
        allowed = resource.getrlimit(getattr(resource, name))[0]
        needed = (large if reads_tables else small) + BYTES_PER_CORE * (os.cpu_count() or 1)
        if allowed != resource.RLIM_INFINITY and allowed < needed:
            return (
                f"The command cannot be started with {allowed / GIB:.2f} GiB of memory (ulimit {option}): its "
                f"libraries reserve up to {needed / GIB:.2f} GiB, more than they use. Allow that much."
            )
    return ""


def can_start_thread() -> bool:
    """Return whether the system lets this process have one more thread."""
    try:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    except (RuntimeError, MemoryError):
        return False
    return True
