"""Table files, damaged: through the command line, which must end with 0 or 2 and at most one line about an error."""

import gzip
import io
import json
import zipfile
import zlib
from unittest.mock import patch

import numpy as np
import typer

from rgld.cli import _app

from ..cli.command import installed_rgld, rgld
from .mutations import TOKENS, changed_bytes, spliced
from .targets import MAX_TABLE_MESSAGE_LENGTH, Target, require_sentence

COMMANDS = (
    ("score", "--json", "--preset", "fast"),
    ("score", "--json", "--preset", "plus", "--inf", "clip"),
    ("score", "--json", "--preset", "fast", "--no-header"),
    ("score", "--json", "--preset", "fast", "--top", "3", "--out", "scores.csv", "--force"),
    ("explain", "--json", "--preset", "fast"),
    ("fit", "--preset", "fast", "--out", "model.rgld", "--force"),
    ("report", "--preset", "fast", "--out", "page.html", "--force"),
)
ONE_IN = 40
"""Of so many inputs, one goes through the installed command, in a process of its own."""


class TableFiles(Target):
    """Files that the command reads."""

    def __init__(self):
        super().__init__()
        # Typer would make the command anew in every run: half of the time of a run.
        self.command = typer.main.get_command(_app.app)

    def check(self, content, folder):
        run = installed_rgld if _number(content) // len(COMMANDS) % ONE_IN == 0 else rgld
        return self._ran(run, content, folder)

    def allowed(self, content, folder):
        """A file may crash its reader: the installed command has a guard, which must end it with one line."""
        self._ran(installed_rgld, content, folder)
        return "guarded"

    def _ran(self, run, content, folder):
        (folder / "table").write_bytes(content)
        command, *options = COMMANDS[_number(content) % len(COMMANDS)]
        with patch.object(_app, "app", self.command):
            code, output, error = run(command, "table", *options, "--memory", "1", folder=folder)
        assert code in (0, 2), f"exit code {code}: {error[:300]!r}"
        if code == 2:
            *notes, message = error.splitlines()
            assert all(note.startswith("table: ") for note in notes), f"lines that are no notes: {error[:300]!r}"
            assert message.startswith("rgld: "), f"no message of rgld: {error[:300]!r}"
            require_sentence(message, MAX_TABLE_MESSAGE_LENGTH)
            return "refused"
        if command == "score":
            scores = [row["score"] for row in json.loads(output)["top"]]
            assert all(0 < score < 1 for score in scores)
        return "scored"


def _number(content):
    """Return a number that decides how an input is read: the input itself, so that it can be tried again."""
    return zlib.crc32(content)


class Csv(TableFiles):
    """CSV files, in any encoding, also gzip files."""

    name = "csv"

    def make(self, rng):
        content = self.pick(rng)
        if content.startswith(b"\x1f\x8b") and rng.random() < 0.7:  # most damage to a gzip file is a wrong checksum
            return gzip.compress(changed_bytes(rng, gzip.decompress(content)), mtime=0)
        kind = rng.random()
        if kind < 0.1:
            return spliced(rng, content, self.pick(rng))
        if kind < 0.15:
            return b"".join(rng.choice(TOKENS) for _ in range(rng.randrange(1, 60)))
        if kind < 0.2:
            encoding = rng.choice(["utf-16", "utf-32", "utf-16-be", "cp1252", "utf-8-sig"])
            return changed_bytes(rng, content.decode("latin-1").encode(encoding, "replace"))
        return changed_bytes(rng, content)


class Parquet(TableFiles):
    """Parquet and Arrow files."""

    name = "parquet"

    def make(self, rng):
        content = self.pick(rng)
        if rng.random() < 0.1:
            return spliced(rng, content, self.pick(rng))
        # The magic bytes decide which reader gets the file: they mostly stay. What describes the table is at the end.
        first = 8 if rng.random() < 0.5 else max(8, len(content) - rng.choice([60, 500, 1200]))
        return changed_bytes(rng, content, first=first)


class Arrays(TableFiles):
    """NPY and NPZ files."""

    name = "arrays"

    def make(self, rng):
        content = self.pick(rng)
        if content.startswith(b"PK") and rng.random() < 0.6:  # an archive that is whole, of arrays that are not
            return _rewritten(rng, content)
        return changed_bytes(rng, content, first=rng.choice([0, 4, 8]))


def _rewritten(rng, content):
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(target, "w") as archive:
        for name in source.namelist():
            data = source.read(name)
            if rng.random() < 0.7:
                data = changed_bytes(rng, data, tokens=[b"'<f8'", b"'|O'", b"(99999999999,4)", b"(-1,)", b"True"])
            elif rng.random() < 0.2:
                data = _array_bytes(rng)
            packing = rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
            archive.writestr(zipfile.ZipInfo(rng.choice([name, name, name, "X", "../X.npy", "z.npy"])), data, packing)
    return target.getvalue()


def _array_bytes(rng):
    dtype = rng.choice(["?", "i1", "u8", "f2", "f4", "f8", "c16", "M8[s]", "U3", "S2", "V4", "i4,f8"])
    shape = rng.choice([(20,), (20, 4), (20, 0), (0, 4), (), (20, 2, 2), (20, 1)])
    file = io.BytesIO()
    np.save(file, np.zeros(shape, dtype), allow_pickle=False)
    return file.getvalue()
