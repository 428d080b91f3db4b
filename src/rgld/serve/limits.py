"""Limits: how much a request may ask for. Each is checked before the work that it limits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How much one request may hold, and how many requests may be under way."""

    body_bytes: int = 32 * 2**20
    """Bytes of a body, as it is sent."""
    unpacked_bytes: int = 128 * 2**20
    """Bytes of a body after gzip is undone."""
    rows: int = 100_000
    columns: int = 10_000
    cells: int = 5_000_000
    """Rows times columns."""
    explained_rows: int = 100
    """Rows explained in one request: an explanation takes a hundred times as long as a score."""
    requests: int = 64
    """Requests that may be under way at once."""
    body_seconds: float = 20.0
    """Time in which a body must have arrived ..."""
    header_seconds: float = 10.0
    """... and time for the lines before the body."""
