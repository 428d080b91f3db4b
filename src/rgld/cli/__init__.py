"""The command line: `rgld`.

One module per command. An error that a user can act on is one line on standard error and exit code 2, never
a traceback.
"""

import sys

MISSING = "The rgld command needs the 'cli' extra: pip install 'rgld[cli]'"


def main() -> None:
    """Run the command line; the entry point of the `rgld` command."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print(MISSING, file=sys.stderr)
        raise SystemExit(2) from None
    try:
        from ._app import run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run(sys.argv[1:])
