"""Two ways to run the command: in this process, which is fast, and installed, in a process of its own."""

import io
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

COMMAND = Path(sys.executable).parent / "rgld"


def rgld(*arguments, stdin=b"", folder=None):
    """Run the command in this process; return its exit code, standard output and standard error."""
    from rgld.cli._app import run

    streams = [io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="\n") for content in (stdin, b"", b"")]
    with _working_folder(folder), _own_environment(), _standard_streams(streams):
        try:
            run(list(map(str, arguments)))
        except SystemExit as ending:
            code = ending.code
        for stream in streams[1:]:
            stream.flush()
    return code, *(stream.buffer.getvalue().decode() for stream in streams[1:])


def installed_rgld(*arguments, stdin=None, folder=None, environment=None, timeout=180):
    """Run the installed command; return its exit code, standard output and standard error."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        input=stdin,
        cwd=folder,
        env={**os.environ, **(environment or {})},
        check=False,
        timeout=timeout,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextmanager
def _working_folder(folder):
    before = os.getcwd()
    os.chdir(folder or before)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _own_environment():
    """`rgld bench run` sets how many threads libraries may use."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _standard_streams(streams):
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
