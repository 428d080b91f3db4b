"""The command line: `rgld`.

One module per command. An error that a user can act on is one line on standard error and exit code 2, without a
traceback.
"""

import os
import sys
from importlib.util import find_spec
from typing import NoReturn

NOT_INSTALLED = "The rgld command needs the 'cli' extra: pip install 'rgld[cli]'"
READ_TABLES = ("score", "fit", "explain", "report", "check", "demo")
"""Commands that read tables. They run under a guard, because a table can crash its reader or fill the memory."""
INTERRUPTED = 130
MAX_MESSAGE_LENGTH = 400
"""Characters of what is said when a command cannot be started: NumPy has pages to say about that."""
NO_MEMORY_TO_START = (
    "The command cannot be started: there is not enough memory. Free some, or allow it more (ulimit -v)."
)


def main() -> None:
    """Run the command line; the entry point of the `rgld` command."""
    _open_standard_streams()
    if any(find_spec(name) is None for name in ("typer", "rich", "polars")):
        print(NOT_INSTALLED, file=sys.stderr)
        raise SystemExit(2)
    try:
        if sys.argv[1:2] and sys.argv[1] in READ_TABLES:
            from ._guard import guarded

            guarded(_run, _tell)
        _run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except MemoryError:
        _tell(NO_MEMORY_TO_START)
        raise SystemExit(2) from None
    except (OSError, ImportError) as error:
        _tell(f"The command cannot be started: {error}"[:MAX_MESSAGE_LENGTH])
        raise SystemExit(2) from None


def _run() -> NoReturn:
    from ._app import run

    run(sys.argv[1:])


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
