"""Files written whole or not at all.

In: a path. Out: a path beside it to write to, which takes its place when all went well.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_beside(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; it replaces the target when the block ends, and is removed if the block fails."""
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"Expected the name of a file to write, got a folder: {os.fspath(path)!r}.")
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        yield beside
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
