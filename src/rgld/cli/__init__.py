"""The command line: `rgld`.

One module per command. An error that a user can act on is one line on standard error and exit code 2, without a
traceback.
"""

import os
import sys
from importlib.util import find_spec
from typing import NoReturn

from ._limits import can_start_thread, refusal

NOT_INSTALLED = "The rgld command needs the 'cli' extra: pip install 'rgld[cli]'"
READ_TABLES = ("score", "fit", "explain", "report", "check", "demo")
"""Commands that read tables. They run under a guard, because a table can crash its reader or fill the memory."""
USE_TABLES = (*READ_TABLES, "serve", "bench")
"""Commands that need memory for tables."""
INTERRUPTED = 130
MAX_MESSAGE_LENGTH = 400
"""Characters of what is said when a command cannot be started: NumPy has pages to say about that."""
PANIC = "PanicException"
"""What polars raises if it is refused a thread while it is loaded. It cannot be imported then."""
CAUSE_FOLLOWS = "Original error was:"
"""What NumPy says before the cause, at the end of its advice."""
NO_MEMORY_TO_START = (
    "The command cannot be started: the system refuses it memory or threads. Free some, or allow it more (ulimit)."
)


def main() -> None:
    """Run the command line; the entry point of the `rgld` command."""
    _open_standard_streams()
    if why := refusal(reads_tables=sys.argv[1:2] != [] and sys.argv[1] in USE_TABLES):
        _tell(why)
        raise SystemExit(2)
    if any(find_spec(name) is None for name in ("typer", "rich", "polars")):
        print(NOT_INSTALLED, file=sys.stderr)
        raise SystemExit(2)
    try:
        if sys.argv[1:2] and sys.argv[1] in READ_TABLES:
            from ._guard import guarded

            guarded(_run, _tell)
        _run()
    except BaseException as error:
        if why := _why_not_started(error):
            _tell(why)
            raise SystemExit(2) from None
        if not isinstance(error, KeyboardInterrupt):
            raise
        print("interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _run() -> NoReturn:
    from ._app import run

    run(sys.argv[1:])


def _why_not_started(error: BaseException) -> str:
    """Return why a command could not be started; "" if it is another error."""
    # OpenBLAS sends the signal of Ctrl-C when it is refused a thread.
    is_refused = isinstance(error, KeyboardInterrupt) and not can_start_thread()
    if is_refused or isinstance(error, MemoryError) or type(error).__name__ == PANIC:
        return NO_MEMORY_TO_START
    if not isinstance(error, (OSError, ImportError)):
        return ""
    cause = str(error).rpartition(CAUSE_FOLLOWS)[2].strip()
    return f"The command cannot be started: {cause}"[:MAX_MESSAGE_LENGTH]


def _tell(message: str) -> None:
    # Nothing is imported here: that may be what cannot be done.
    shown = "".join(character if character.isprintable() else "?" for character in " ".join(message.split()))
    print(f"rgld: {shown}", file=sys.stderr)


def _open_standard_streams() -> None:
    """Open the null device for closed standard streams: a file that is opened later must not take their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:  # print() would write errors to standard output
        sys.stderr = os.fdopen(2, "w", closefd=False)
