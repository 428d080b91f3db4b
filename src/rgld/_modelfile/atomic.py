"""Files written whole or not at all.

In: a path. Out: another path to write to; what was written there takes the place of the file when all went well.

Only regular files are replaced. The null device and standard output (`/dev/null`, `/dev/stdout`, `/dev/fd/1`) are
written to; any other device, a pipe and a socket are refused, since renaming a file over them would remove them.
"""

import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STANDARD_OUTPUT = 1
"""Its file descriptor."""
PRIVATE = 0o600
"""The mode of a file that its owner alone can read and write."""
ANYONE = 0o666
"""The mode of a new file before the system removes the bits of the umask."""
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
"""Error numbers of file systems that have no hard links."""

on_begin: Callable[[Path], None] | None = None
"""Called with the path of every unfinished file. A killed process removes nothing: a second process that knows the
paths can do it."""


@contextmanager
def written_beside(path: str | os.PathLike[str], *, replace: bool = True) -> Iterator[Path]:
    """Yield a path to write to. When the block ends, the file takes its place; if the block fails, it is removed.

    The new file gets the mode of the file that it replaces and, where possible, its owner. With `replace=False`, no
    file is replaced, not even one that another process has written in the meantime: `FileExistsError`.
    """
    if is_written_through(path):
        with _copied_to(path) as copy:
            yield copy
        return
    found = _checked_target(path, replace)
    target = os.path.realpath(path)
    beside = Path(target).with_name(f".{secrets.token_hex(8)}.part")  # short: the name of the target may be long
    if on_begin is not None:
        on_begin(beside)
    try:
        os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, ANYONE if found is None else PRIVATE))
        yield beside
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        found = _checked_target(path, replace)  # again: writing may have taken long
        if found is not None:
            _pass_on(found, beside)
        if replace:
            os.replace(beside, target)
        else:
            _move_to_new(beside, target, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file, a string as UTF-8, whole or not at all."""
    with written_beside(path) as beside:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)


def is_written_through(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path leads to the null device or to standard output, which are written to and never replaced."""
    found = _status(path)
    if found is None:
        return False
    is_null_device = stat.S_ISCHR(found.st_mode) and found.st_rdev == os.stat(os.devnull).st_rdev
    return is_null_device or is_standard_output(path)


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path leads to where standard output goes."""
    found = _status(path)
    try:
        return found is not None and os.path.samestat(found, os.fstat(STANDARD_OUTPUT))
    except OSError:  # it is closed
        return False


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return what the system knows about a file; of a link, about the file it leads to. None if no such file exists."""
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        raise _refusal(path, "a path with a null character") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refusal(path, "a link that leads to itself") from None
        raise


def _checked_target(path: str | os.PathLike[str], replace: bool) -> os.stat_result | None:
    """Return what the system knows about the file to replace; None if no file is there yet. Raise if the path cannot be
    written to."""
    found = _status(path)
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise IsADirectoryError(f"Expected the name of a file to write, got a folder: {_shown(path)}.")
    if found is None and not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(f"There is no folder {os.path.dirname(target)!r}: make it first.")
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise _refusal(path, "a device, a pipe or a socket, which it would replace")
    if found is not None and not replace:
        raise _exists(path)
    return found


def _refusal(path: str | os.PathLike[str], what: str) -> OSError:
    return OSError(f"Expected the name of a file to write, got {what}: {_shown(path)}.")


def _exists(path: str | os.PathLike[str]) -> FileExistsError:
    return FileExistsError(f"The file {_shown(path)} exists already: name another one.")


def _shown(path: str | os.PathLike[str]) -> str:
    return repr(os.fspath(path))


@contextmanager
def _copied_to(device: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; its content goes to the device when the block ends."""
    with tempfile.TemporaryDirectory(prefix="rgld-") as folder:
        copy = Path(folder) / "copy"
        yield copy
        if is_standard_output(device):
            if sys.stdout is not None:
                sys.stdout.flush()
            target = os.dup(STANDARD_OUTPUT)
        else:
            target = os.open(device, os.O_WRONLY)
        with open(copy, "rb") as source, open(target, "wb") as sink:
            shutil.copyfileobj(source, sink)


def _pass_on(replaced: os.stat_result, beside: Path) -> None:
    """Give a new file the owner and mode of the one that it replaces.

    Where the group cannot be kept, the new group gets the rights of everyone: it may not read more than before.
    """
    mode = stat.S_IMODE(replaced.st_mode) & 0o777
    if hasattr(os, "chown"):  # Windows has no owners of this kind
        with suppress(OSError):
            os.chown(beside, -1, replaced.st_gid)
        with suppress(OSError):
            os.chown(beside, replaced.st_uid, -1)
        if beside.stat().st_gid != replaced.st_gid:
            mode = mode & 0o707 | (mode & 0o007) << 3
    os.chmod(beside, mode)


def _move_to_new(beside: Path, target: str, path: str | os.PathLike[str]) -> None:
    """Rename a file to a name that no file has; of several processes, one succeeds."""
    try:
        os.link(beside, target)
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        try:  # an empty file of that name can be made only once
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        except FileExistsError:
            raise _exists(path) from None
        os.replace(beside, target)
    else:
        beside.unlink()
