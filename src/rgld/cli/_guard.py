"""The guard: it runs a command in a child process and cleans up after it, however it ends.

A damaged file can abort the process that reads it, and a small file can become very large in memory. So the command
runs in a child process. The parent waits for it and does what the child may be unable to do: it kills the child if it
takes more memory than allowed, passes signals on, removes the temporary files, and says in one line what happened.

In: a function that runs the command. Out: the exit of this process. Without `fork` (Windows) the command runs in this
process.
"""

import math
import mmap
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

KNOWS_MEMORY = sys.platform == "linux"
SECONDS_BETWEEN_LOOKS = 0.01 if KNOWS_MEMORY else 1.0
"""How often the parent looks at the child's memory. Other systems than Linux need a process (`ps`) for each look."""
GRACE_SECONDS = 5.0
"""Time that the child has to end in order after SIGTERM or SIGHUP. Then it is killed."""
INTERRUPT_SECONDS = 1.0
"""Time after which SIGINT is passed on to the child."""
NATIVE_MESSAGES = "native-messages"
"""File in the temporary folder that receives what compiled libraries print on standard error."""
NO_MEMORY_WORDS = (
    b"memory allocation of",
    b"Memory allocation still failed",
    b"MemoryError",
    b"Cannot allocate memory",
    b"Resource temporarily unavailable",
)
"""What Rust, OpenBLAS and Python print there when the system refuses memory, or a thread for want of it."""
MAX_NAME_BYTES = 2000
MAX_PATHS_BYTES = 2**16
DAMAGED = "its reader crashed, so the file is probably damaged: write it again"
NO_MEMORY = "There is not enough memory for this table: take fewer rows or columns, or a larger machine."
TOO_LARGE = (
    "The command needs more than the {limit:.1f} GiB of memory that it may use: pass a larger --memory, or a table "
    "with fewer rows or columns; `rgld fit` and `rgld score --model` read large CSV, Parquet and Arrow files in parts."
)


class _Board:
    """Memory that parent and child share: the child writes its limit, what it reads and the files that it begins, the
    parent reads them."""

    def __init__(self) -> None:
        self._bytes = mmap.mmap(-1, 16 + MAX_NAME_BYTES)
        self._begun = mmap.mmap(-1, 8 + MAX_PATHS_BYTES)

    @property
    def limit(self) -> int:
        """The bytes that the child may take; 0 for no limit."""
        return int.from_bytes(self._bytes[:8], "little")

    @limit.setter
    def limit(self, value: int) -> None:
        self._bytes[:8] = value.to_bytes(8, "little")

    @property
    def reading(self) -> str:
        """The name of the file that the child is reading; "" if it is doing something else."""
        length = int.from_bytes(self._bytes[8:16], "little")
        return self._bytes[16 : 16 + length].decode("utf-8", "replace")

    @reading.setter
    def reading(self, name: str) -> None:
        content = name.encode("utf-8", "replace")[:MAX_NAME_BYTES]
        self._bytes[16 : 16 + len(content)] = content
        self._bytes[8:16] = len(content).to_bytes(8, "little")

    def begin(self, path: Path) -> None:
        """Add a file that the child begins to write under a name that no other file has."""
        used = int.from_bytes(self._begun[:8], "little")
        content = os.fsencode(path) + b"\0"
        if used + len(content) <= MAX_PATHS_BYTES:
            self._begun[8 + used : 8 + used + len(content)] = content
            self._begun[:8] = (used + len(content)).to_bytes(8, "little")

    def remove_unfinished(self) -> None:
        """Remove the files that the child has begun. Those that are whole have another name by now."""
        used = int.from_bytes(self._begun[:8], "little")
        for path in self._begun[8 : 8 + used].split(b"\0")[:-1]:
            with suppress(OSError):
                os.unlink(path)


_board: _Board | None = None
"""The child's board; None in a process without a guard."""
_native_stderr: TextIO | None = None
"""Where the messages of compiled libraries go; None if they are not redirected."""


def limit_memory(n_bytes: int) -> None:
    """Let the guard end this process if it takes more memory.

    The limits of the system (`setrlimit`) do not help: they count what libraries only reserve, up to ten times what
    they use, and polars can hang if it is refused memory.
    """
    if _board is not None:
        _board.limit = n_bytes


def tells_of_memory(message: bytes) -> bool:
    """Return whether a message of a library says that the system refused memory."""
    return any(words in message for words in NO_MEMORY_WORDS)


@contextmanager
def while_reading(name: str) -> Iterator[None]:
    """Tell the guard that a file is being read: if the process crashes now, the file is to blame."""
    if _board is None:
        yield
        return
    before, _board.reading = _board.reading, name
    # polars also prints by Python: a MemoryError with its traceback, before it aborts.
    shown, sys.stderr = sys.stderr, _native_stderr or sys.stderr
    try:
        yield
    finally:
        _board.reading, sys.stderr = before, shown


def begin_file(path: Path) -> None:
    """Let the guard remove an unfinished file if this process is killed."""
    if _board is not None:
        _board.begin(path)


def guarded(command: Callable[[], NoReturn], tell: Callable[[str], None]) -> NoReturn:
    """Run a command in a child process and exit as it does; `tell` prints one line if the child cannot."""
    if not hasattr(os, "fork"):
        command()
    folder = Path(tempfile.mkdtemp(prefix="rgld-"))
    board = _Board()
    ours, theirs = socket.socketpair()  # each side sees when the other one is gone
    try:
        child = os.fork()
    except OSError:  # no more processes are allowed
        folder.rmdir()
        ours.close()
        theirs.close()
        raise
    if not child:
        ours.close()
        _be_child(board, theirs, folder)
        command()
    theirs.close()
    try:
        code = _Parent(child, ours, board, folder, tell).wait()
    finally:
        board.remove_unfinished()
        shutil.rmtree(folder, ignore_errors=True)
    raise SystemExit(code)


def _be_child(board: _Board, parent: socket.socket, folder: Path) -> None:
    """Prepare the child: temporary files go to the folder, signals end it in order, it does not outlive its parent."""
    global _board
    _board = board
    tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
    if not os.environ.get("RGLD_DEBUG"):
        _redirect_native_messages(folder / NATIVE_MESSAGES)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # under nohup it is
            signal.signal(number, _end_in_order)
    main_thread = threading.get_ident()

    def obey() -> None:
        while number := parent.recv(1):
            # A signal to the process can arrive in any thread, and a main thread that waits would go on waiting.
            signal.pthread_kill(main_thread, number[0])
        board.remove_unfinished()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + signal.SIGKILL)

    try:
        threading.Thread(target=obey, daemon=True).start()
    except RuntimeError as error:  # what Python says if it is refused a thread
        raise MemoryError from error


def _redirect_native_messages(path: Path) -> None:
    """Keep what compiled libraries print on standard error (100 lines for a damaged file) away from the user."""
    global _native_stderr
    sys.stderr = os.fdopen(os.dup(2), "w", 1, sys.stderr.encoding, "backslashreplace")
    messages = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(messages, 2)
    os.close(messages)
    _native_stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)


def native_messages(folder: Path | None = None) -> bytes:
    """Return what compiled libraries have printed in the child whose temporary folder this is; without one, in this."""
    try:
        return (Path(tempfile.gettempdir() if folder is None else folder) / NATIVE_MESSAGES).read_bytes()
    except OSError:
        return b""


def _end_in_order(number: int, frame: FrameType | None) -> None:
    """Handle a signal: leave all `with` blocks, which remove unfinished files."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


class _Parent:
    """Waits for the child, watches its memory and passes signals on."""

    def __init__(
        self, child: int, connection: socket.socket, board: _Board, folder: Path, tell: Callable[[str], None]
    ) -> None:
        self._child = child
        self._connection = connection
        self._board = board
        self._folder = folder
        self._tell = tell
        self._is_too_large = False
        self._signal = 0
        self._pass_on_at = self._kill_at = math.inf
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._remember)

    def wait(self) -> int:
        """Return the exit code, when the child has ended."""
        while True:
            gone, _, _ = select.select([self._connection], [], [], SECONDS_BETWEEN_LOOKS)
            pid, status = os.waitpid(self._child, 0 if gone else os.WNOHANG)
            if pid:
                return (
                    self._exited(os.WEXITSTATUS(status)) if os.WIFEXITED(status) else self._killed(os.WTERMSIG(status))
                )
            if self._board.limit and _memory_of(self._child) > self._board.limit:
                self._is_too_large = True
                os.kill(self._child, signal.SIGKILL)
            self._pass_on()

    def _remember(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: it is passed on. Ctrl-C reaches the child by itself, so it is passed on later, if at all."""
        now = time.monotonic()
        self._signal = number
        self._pass_on_at = now + (INTERRUPT_SECONDS if number == signal.SIGINT else 0.0)
        self._kill_at = math.inf if number == signal.SIGINT else now + GRACE_SECONDS

    def _pass_on(self) -> None:
        """Pass the last signal on, and kill the child if it does not end."""
        now = time.monotonic()
        if now >= self._kill_at:
            os.kill(self._child, signal.SIGKILL)
        elif now >= self._pass_on_at:
            self._pass_on_at = math.inf
            with suppress(OSError):  # it may have ended by now
                self._connection.send(bytes([self._signal]))

    def _exited(self, code: int) -> int:
        """Return the exit code after the child has exited. OpenBLAS exits by itself, with 1, if refused memory."""
        if code == 1 and tells_of_memory(native_messages(self._folder)):
            self._tell(NO_MEMORY)
            return 2
        return code

    def _killed(self, number: int) -> int:
        """Return the exit code after a signal ended the child, and say what happened."""
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K\x1b[?25h")  # progress hides the cursor: show it again
        if self._is_too_large:
            self._tell(TOO_LARGE.format(limit=self._board.limit / 2**30))
        elif self._signal or number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            return 128 + (self._signal or number)
        elif number == signal.SIGKILL:
            self._tell(NO_MEMORY)  # the system kills processes when there is none left
        elif tells_of_memory(native_messages(self._folder)):
            self._tell(NO_MEMORY)
        elif self._board.reading:
            self._tell(f"{self._board.reading}: {DAMAGED}.")
        else:
            self._tell(f"a defect of rgld, not of your input ({signal.Signals(number).name}): RGLD_DEBUG=1 shows more.")
            return 1
        return 2


def _memory_of(pid: int) -> int:
    """Return the bytes that a process has in memory or in swap, without the pages of mapped files; 0 if unknown."""
    try:
        if not KNOWS_MEMORY:
            return 1024 * int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)]))
        with open(f"/proc/{pid}/status", "rb") as file:
            fields = dict(line.split(b":", 1) for line in file.read().splitlines() if b":" in line)
        return sum(1024 * int(fields[name].split()[0]) for name in (b"RssAnon", b"RssShmem", b"VmSwap"))
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        return 0
