"""Runs the code of a page: shell commands after `$ ` in ```console blocks, Python after `>>> ` in ```python blocks.

All blocks of a page run in one folder and one namespace, in order. Every line that a page shows must come out, except
for digits: scores change a little when the detector becomes better. `...` stands for any text. `make tutorials`
(`python -m tests.pages PAGE...`) writes what comes out into the pages, digits too, and leaves out what they left out.

`rgld` runs in this process, because its start takes longer than its work; other commands run in a shell. A command that
ends with ` &` is a server: the next one waits until its port answers.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORT = "8000"
"""The port on the pages. Another, free one takes its place."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHELL = re.compile(r"[|;&<>$*]|^(?!rgld )")
START_SECONDS = 60.0


class Runner:
    """Runs the examples of one page in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.namespace = {"__name__": "page"}
        self.servers = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = str(free.getsockname()[1])

    def run(self, text):
        """Return the examples of a page, each with its source, the output that it shows and the output that comes."""
        for kind, block in BLOCK.findall(text):
            for source, want in (commands if kind == "console" else statements)(block):
                yield source, want, (self.command if kind == "console" else self.statement)(source)

    def statement(self, source):
        with self._written() as written:
            exec(compile(source, "<page>", "single"), self.namespace)
        return written.getvalue()

    def command(self, source):
        words = source.replace(PORT, self.port)
        if words.endswith(" &"):
            return self._serve(words.removesuffix(" &"))
        if not SHELL.search(words):
            return self._rgld(shlex.split(words)[1:])
        options = {"cwd": self.folder, "env": environment(), "text": True, "check": False}
        done = subprocess.run(words, shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        return done.stdout.replace(self.port, PORT)

    def _rgld(self, arguments):
        from rgld.cli._app import run

        with self._written() as written, contextlib.suppress(SystemExit):
            run(arguments)
        return written.getvalue()

    @contextlib.contextmanager
    def _written(self):
        written = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
            yield written

    def _serve(self, words):
        options = {"cwd": self.folder, "env": environment()}
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.servers.append(subprocess.Popen(shlex.split(words), **options, **silent))
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.servers[-1].poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(self.port)), 1):
                return ""
            time.sleep(0.1)
        raise AssertionError(f"{words} does not answer")

    def close(self):
        for server in self.servers:
            server.terminate()
            server.wait()


def environment():
    folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"], "COLUMNS": "100"}


def commands(block):
    """Return the commands of a block, each with its output."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    assert not parts[0].strip(), f"output before the first command: {parts[0]}"
    return list(zip(parts[1::2], parts[2::2], strict=True))


def statements(block):
    return [(example.source, example.want) for example in doctest.DocTestParser().get_examples(block)]


def masked(line):
    """Return a line without its digits, bars and blanks."""
    return re.sub(r"[\d.,]+|#+", "0", " ".join(line.split()))


def is_shown(line, lines):
    """Return whether a line of a page is among lines that were printed, except for digits; `...` is any text."""
    parts = [re.escape(masked(part)) for part in line.split("...")]
    return any(re.fullmatch(".*".join(parts), masked(other)) for other in lines)


def unlike(want, got):
    """Return the lines of a page that were not printed; what was printed, if the page shows nothing of it."""
    shown = [line for line in want.splitlines() if line.strip() not in ("", "...")]
    if not want.strip():
        return got.splitlines()
    return [line for line in shown if not is_shown(line, got.splitlines())]


def differences(page, folder):
    """Return what is printed otherwise than a page shows, in words."""
    for file in page.parent.glob("*.csv"):
        shutil.copy(file, folder)
    runner, found = Runner(folder), []
    try:
        for source, want, got in runner.run(page.read_text(encoding="utf-8")):
            if unlike(want, got):
                found.append(f"{source}\nexpected:\n{want}\ngot:\n{got}")
    finally:
        runner.close()
    return found


def renewed(want, got):
    """Return what was printed, without the lines that the page leaves out."""
    lines = [line.rstrip() for line in got.splitlines()]
    if "..." not in want:
        return "".join(f"{line}\n" for line in lines)
    shown, kept = want.splitlines(), []
    for line in lines:
        same = [other for other in shown if other.strip() not in ("", "...") and is_shown(other, [line])]
        if same:
            kept.append(same[0] if "..." in same[0] else line)
        elif not kept or kept[-1] != "...":
            kept.append("...")
    return "".join(f"{line}\n" for line in kept)


def write(page):
    """Write what comes out into a page, where it is not what the page shows."""
    text, checker, place = page.read_text(encoding="utf-8"), doctest.OutputChecker(), 0
    with tempfile.TemporaryDirectory() as folder:
        for file in page.parent.glob("*.csv"):
            shutil.copy(file, folder)
        runner = Runner(Path(folder))
        try:
            for source, want, got in runner.run(text):
                shown = source.rstrip("\n").split("\n")[-1]
                place = text.index(shown, place) + len(shown) + 1
                new = want if checker.check_output(want, got, FLAGS) else renewed(want, got)
                if new != want:
                    print(f"{page.name}: {source.splitlines()[0]}")
                text = text[:place] + new + text[place + len(want) :]
                place += len(new)
        finally:
            runner.close()
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(Path(name))
