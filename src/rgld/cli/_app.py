"""The application: commands put together, errors turned into one line."""

import os
import sys
from typing import Any, NoReturn

import typer

import rgld
from rgld.exceptions import RGLDError

from . import bench, demo, explain, fit, info, report, score
from ._lists import spread_lists
from ._show import printable

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=rgld.__doc__)
for command in (fit.fit, score.score, explain.explain, report.report, info.info, demo.demo):
    app.command()(command)
app.add_typer(bench.app, name="bench")

INTERRUPTED = 130

ParserError: Any = typer.BadParameter.__mro__[2]
"""The root of the parser's errors. Typer carries its own copy of Click in some releases: this is its
`ClickException`."""


@app.command()
def version() -> None:
    """Print the version."""
    print(rgld.__version__)


def run(arguments: list[str]) -> NoReturn:
    """Run the application with these arguments and exit."""
    try:
        code = app(args=spread_lists(arguments), standalone_mode=False)
    except ParserError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            raise SystemExit(2) from None
        _fail(error.format_message())
    except FileNotFoundError as error:
        _fail(f"There is no file {error.filename}: check the path." if error.filename else str(error))
    except (RGLDError, OSError, ImportError) as error:
        _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("RGLD_DEBUG"):
            raise
        what = printable(" ".join(f"{type(error).__name__}: {error}".split())[:300])
        print(f"rgld: a defect of rgld, not of your input ({what}): RGLD_DEBUG=1 shows where.", file=sys.stderr)
        raise SystemExit(1) from None
    if code == INTERRUPTED:  # some releases of the parser end so, others raise
        print("interrupted", file=sys.stderr)
    raise SystemExit(code if isinstance(code, int) else 0)


def _fail(message: str) -> NoReturn:
    print(printable(f"rgld: {' '.join(message.split())}"), file=sys.stderr)
    raise SystemExit(2)
