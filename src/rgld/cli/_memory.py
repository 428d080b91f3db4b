"""Memory: how much a command may use."""

import os
from pathlib import Path

from rgld.exceptions import TableError

GIB = 2**30
FRACTION_OF_MACHINE = 0.75
"""Fraction of the machine's memory that a command may use without `--memory`."""
MIN_ALLOWED = GIB
"""Every command may use this much: even for the smallest table it needs some of it."""
CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Files that hold the limit of a container, in versions 2 and 1 of Linux control groups."""


def allowed_bytes(memory: float | None) -> int:
    """Return the bytes that a command may use, for the GiB of `--memory`."""
    asked = FRACTION_OF_MACHINE * machine_bytes() if memory is None else memory * GIB
    return max(MIN_ALLOWED, min(int(asked), 2**62))


def require_memory(needed: int, allowed: int, shown: str) -> None:
    """Raise an error if a table needs more bytes than allowed."""
    if needed > allowed:
        raise TableError(
            f"{shown} needs about {needed / GIB:,.1f} GiB of memory, but the command may use {allowed / GIB:,.1f}: "
            "pass a larger --memory, or fit a model with `rgld fit`, which reads in batches, and score with --model."
        )


def machine_bytes() -> int:
    """Return the memory of the machine, or of the container if that is less."""
    try:
        found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # Windows
        found = [16 * GIB]
    for path in CONTAINER_LIMITS:
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(found)
