"""The application: all commands in one, and every error as one line."""

import io
import os
import sys
from typing import Annotated, NoReturn

import typer
from polars.exceptions import PanicException

import rgld
from rgld._modelfile import atomic
from rgld.exceptions import RGLDError

from . import INTERRUPTED, bench, check, demo, explain, fit, info, report, score, serve
from ._addresses import masked
from ._copies import NO_SPACE
from ._guard import NO_MEMORY, begin_file, native_messages, tells_of_memory
from ._help import Commands
from ._terminal import print_help, printable


def begin(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    """Print the version if it was asked for, the help text if no command was given."""
    if version:
        print(rgld.__version__)
        raise typer.Exit
    print_help(context)


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=rgld.__doc__,
    invoke_without_command=True,
    callback=begin,
)
for command in (fit.fit, score.score, explain.explain, report.report, check.check, serve.serve, info.info, demo.demo):
    app.command()(command)
app.add_typer(bench.app, name="bench")

CLOSED_PIPE = 141
"""The exit code of other commands whose output is no longer read, as in `rgld ... | head -1`."""


@app.command()
def version() -> None:
    """Print the version."""
    print(rgld.__version__)


def run(arguments: list[str]) -> NoReturn:
    """Run the application with these arguments and exit."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a character that standard output cannot encode is no error
        sys.stdout.reconfigure(errors="backslashreplace")
    atomic.on_begin = begin_file
    try:
        code = app(args=arguments, standalone_mode=False)
        sys.stdout.flush()
    except (Exception, SystemExit, KeyboardInterrupt, PanicException) as error:
        code = _exit_code(error)
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    raise SystemExit(code if isinstance(code, int) else 0)


def _exit_code(error: BaseException) -> int:
    """Return the exit code for an error, and print what the user should know."""
    match error:
        case SystemExit() if not isinstance(error.__context__, BrokenPipeError):
            raise error
        case SystemExit() | BrokenPipeError():  # Typer exits when a pipe is closed
            _discard_output()
            return CLOSED_PIPE
        case KeyboardInterrupt() | typer.Abort():
            return INTERRUPTED
        case MemoryError():
            return _fail(NO_MEMORY)
        case FileNotFoundError(filename=str() as name):
            return _fail(f"There is no file {name}: check the path.")
        case RGLDError() | OSError() | ImportError():
            if isinstance(error, OSError):
                _discard_output()
            return _fail(_in_words(error))
    if hasattr(error, "format_message"):  # the parser's errors: Typer's or, in older releases of Typer, Click's
        return _fail(error.format_message())
    if os.environ.get("RGLD_DEBUG"):
        raise error
    if tells_of_memory(native_messages()):  # a library is left with half of what it needs: a null pointer, a lock
        return _fail(NO_MEMORY)
    what = f"{type(error).__name__}: {error}"[:300]
    _fail(f"a defect of rgld, not of your input ({what}): RGLD_DEBUG=1 shows where.")
    return 1


def _in_words(error: Exception) -> str:
    """Return the message of an error. A message of the system gets no error number, but what to do."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    if error.errno in NO_SPACE:
        return f"{error.strerror}: free some space, or write to another disk."
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror}{where}: check the path and who may use it."


def _fail(message: str) -> int:
    print(printable(f"rgld: {masked(' '.join(message.split()))}"), file=sys.stderr)
    return 2


def _discard_output() -> None:
    """Drop what cannot be written to standard output: when Python exits, writing it would fail again."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = io.StringIO()
