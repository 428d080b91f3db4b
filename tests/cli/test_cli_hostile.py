"""Files, pipes, disks and signals that are against the command: one line, exit code 2, nothing left behind.

Damaged files crash their readers, small files grow in memory, disks are full, pipes are closed.
"""

import bz2
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile

import numpy as np
import polars as pl
import pytest

pytest.importorskip("typer", reason="the command needs the extra 'cli'")

from rgld import cli
from rgld.cli import _files, _guard, _json, _limits, _memory
from rgld.exceptions import TableError

from .command import COMMAND, installed_rgld, rgld

pytestmark = [
    pytest.mark.own_process,
    pytest.mark.skipif(sys.platform != "linux", reason="signals, limits and /proc of Linux"),
]

RNG = np.random.default_rng(0)
NUMBERS = pl.DataFrame({"a": RNG.normal(size=60), "b": RNG.normal(size=60)})
CSV = NUMBERS.write_csv().encode()
GIB = 2**30


@pytest.fixture
def table(tmp_path):
    """A good table in a folder of its own, beside a folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "good.csv").write_bytes(CSV)
    return tmp_path / "good.csv"


def run(folder, *arguments, shell="", **settings):
    """Run the installed command; return code, output, error and how much memory its largest process had, in bytes.

    `shell` is run before, in the same process.
    """
    environment = {**os.environ, "TMPDIR": str(folder / "temporary"), **settings.pop("environment", {})}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
    process = subprocess.Popen(after(shell, COMMAND, *arguments), cwd=folder, env=environment, **pipes)
    out = process.stdout.read().decode() if process.stdout else ""
    error = process.stderr.read().decode() if process.stderr else ""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    assert list((folder / "temporary").iterdir()) == [], "a temporary file was left"
    return process.returncode, out, error, 1024 * usage.ru_maxrss


def after(shell, *command):
    """Return the command to be run by a shell that does something before."""
    return ["sh", "-c", f'{shell}\nexec "$@"', "sh", *map(str, command)]


def assert_one_line(code, error, words):
    assert code == 2, error
    assert error.startswith("rgld: ") and error.count("\n") == 1 and words in error


# Readers that crash


def panicking_arrow():
    """Return an Arrow file whose reader panics: the place of its first batch lies outside the file."""
    content = io.BytesIO()
    NUMBERS.write_ipc(content, compression="uncompressed")
    found = bytearray(content.getvalue())
    footer = len(found) - 10 - int.from_bytes(found[-10:-6], "little")
    for place in range(footer, len(found) - 18):
        offset = int.from_bytes(found[place : place + 8], "little")
        if found[offset : offset + 4] == b"\xff\xff\xff\xff" and 8 < offset < footer:
            found[place : place + 8] = (offset + 10**5).to_bytes(8, "little")
    return bytes(found)


def test_a_file_that_makes_its_reader_panic(table):
    (table.parent / "t.arrow").write_bytes(panicking_arrow())
    code, out, error, _ = run(table.parent, "score", "t.arrow")
    assert_one_line(code, error, "t.arrow: ")
    assert out == ""


CRASHES = {
    "an abort while reading": ("with while_reading('t.parquet'): os.abort()", 2, "t.parquet: its reader crashed"),
    "a fault while reading": ("with while_reading('t.parquet'): os.kill(os.getpid(), 11)", 2, "t.parquet: its reader"),
    "an abort elsewhere": ("os.abort()", 1, "a defect of rgld, not of your input (SIGABRT)"),
    "killed by the system": ("os.kill(os.getpid(), 9)", 2, "There is not enough memory"),
    "no memory for Rust": ("os.write(2, b'memory allocation of 9 bytes failed'); os.abort()", 2, "not enough memory"),
    "no memory for Python in Rust": (
        "with while_reading('t.csv'): print('Traceback\\nMemoryError', file=sys.stderr); os.abort()",
        2,
        "not enough memory",
    ),
    "OpenBLAS exits without memory": (
        "os.write(2, b'OpenBLAS error: Memory allocation still failed after 10 retries, giving up.'); os._exit(1)",
        2,
        "not enough memory",
    ),
    "a defect": ("os.write(2, b'noise'); os._exit(1)", 1, ""),
    "messages of libraries": ("os.write(2, b'noise'); raise SystemExit(7)", 7, ""),
    "an ordinary end": ("tempfile.mkdtemp(); print('done'); raise SystemExit(0)", 0, ""),
}


@pytest.mark.parametrize("what", CRASHES)
def test_crashes_of_the_process(tmp_path, what):
    """polars aborts for few files and not in every release: a process that ends in such a way stands in for it."""
    body, code, words = CRASHES[what]
    program = (
        "import os, sys, tempfile\nfrom rgld.cli._guard import guarded, while_reading\n"
        f"def command():\n    {body}\n"
        "guarded(command, lambda message: print('rgld:', message, file=sys.stderr))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == code
    assert (words in done.stderr and done.stderr.count("\n") == 1) if words else done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_never_show_a_traceback(table):
    """Thousands of these are tried in tests/fuzz; a few in each run."""
    rng = np.random.default_rng(0)
    contents = {"t.parquet": io.BytesIO(), "t.arrow": io.BytesIO()}
    NUMBERS.write_parquet(contents["t.parquet"])
    NUMBERS.write_ipc(contents["t.arrow"])
    for name, content in contents.items():
        for _ in range(10):
            damaged = np.frombuffer(content.getvalue(), np.uint8).copy()
            places = rng.integers(8, len(damaged), 3)
            damaged[places] = rng.integers(0, 256, 3)
            (table.parent / name).write_bytes(damaged.tobytes())
            code, _, error = rgld("score", name, folder=table.parent)
            assert code in (0, 2), error
            assert len(error.splitlines()) <= 1


# Small files that are large in memory


def npz_of(members, compression=zipfile.ZIP_STORED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, array in members.items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(f"{name}.npy", member.getvalue())
    return content.getvalue()


def test_inflation_is_counted_over_all_members(table, monkeypatch):
    monkeypatch.setattr("rgld.cli._arrays.ALWAYS_UNPACKED_BYTES", 2**22)
    monkeypatch.setattr("rgld.cli._arrays.MAX_RATIO", 500)
    members = {"X": np.zeros((2**17, 1))} | {f"v{i}": np.zeros(2**17) for i in range(8)}
    (table.parent / "many.npz").write_bytes(npz_of(members, zipfile.ZIP_DEFLATED))
    code, _, error = rgld("score", "many.npz", folder=table.parent)
    assert_one_line(code, error, "more than 500 times its size")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_compressions_that_are_unpacked_all_at_once(table, compression, monkeypatch):
    """16 KB of them took a minute to be refused: the header of each member was unpacked with all that follows."""
    monkeypatch.setattr("rgld.cli._arrays._claim", None)
    (table.parent / "t.npz").write_bytes(npz_of({"X": np.zeros((60, 2))}, compression))
    code, _, error = rgld("score", "t.npz", folder=table.parent)
    assert_one_line(code, error, "is compressed in a way that NumPy does not write: use numpy.savez_compressed")


def test_arrays_larger_than_the_memory_allowed(table, monkeypatch, rng):
    monkeypatch.setattr(_memory, "MIN_ALLOWED", 2**20)
    (table.parent / "t.npz").write_bytes(npz_of({"X": rng.normal(size=(2**16, 2)), "v": rng.normal(size=2**16)}))
    np.save(table.parent / "t.npy", rng.normal(size=(2**16, 3)))
    pl.DataFrame(rng.normal(size=(2**16, 3))).write_parquet(table.parent / "t.parquet")
    pl.DataFrame(rng.normal(size=(2**16, 3))).write_ipc(table.parent / "t.arrow")
    for name in ("t.npz", "t.npy", "t.parquet", "t.arrow"):
        code, _, error = rgld("score", name, "--memory", 0.001, folder=table.parent)
        assert_one_line(
            code, error, f"{name} needs about 0.0 GiB of memory, but the command may use 0.0: pass a larger"
        )


def write_large_file(path):
    """Write a file of less than 30 MB that takes more than 1 GiB to score."""
    if path.name == "newlines.csv":
        path.write_bytes(b"a\n" + b"\n" * 20_000_000)
    elif path.name == "quote.csv":
        path.write_bytes(b'a,b\n1,2\n3,"' + b"x,y\n" * 7_000_000)
    elif path.name == "numbers.csv.gz":
        with gzip.open(path, "wb", 1) as file:
            file.write(b"a,b\n")
            for _ in range(100):
                file.write(b"0,0\n1,2\n" * 250_000)
    else:
        pl.DataFrame({f"c{j}": np.tile(np.arange(2.0), 5_000_000) for j in range(4)}).write_parquet(path)


@pytest.mark.parametrize(
    "name",
    [
        "numbers.csv.gz",
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("newlines.csv", "quote.csv", "t.parquet")),
    ],
)
def test_memory_is_a_promise(table, name):
    write_large_file(table.parent / name)
    # On a busy machine the guard may look late: the promise is kept if it is kept in one of three runs.
    peaks = []
    while len(peaks) < 3 and min(peaks, default=2 * GIB) >= 2 * GIB:  # the limit, and the libraries
        code, _, error, peak = run(table.parent, "score", name, "--memory", 1)
        assert_one_line(code, error, "")
        peaks.append(peak)
    assert min(peaks) < 2 * GIB


def test_the_limit_is_a_part_of_the_machine_or_of_its_container(tmp_path, monkeypatch):
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for content, expected in (("max\n", machine), (f"{3 * GIB}\n", 3 * GIB), (f"{2**62}\n", machine)):
        (tmp_path / "limit").write_text(content)
        monkeypatch.setattr(_memory, "CONTAINER_LIMITS", (tmp_path / "none", tmp_path / "limit"))
        assert _memory.machine_bytes() == expected
        assert _memory.allowed_bytes(None) == int(0.75 * expected)
    assert _memory.allowed_bytes(2.5) == int(2.5 * GIB)
    assert _memory.allowed_bytes(0.0) == GIB
    with pytest.raises(TableError, match=r"t.csv needs about 2.0 GiB of memory, but the command may use 1.0"):
        _memory.require_memory(2 * GIB, GIB, "t.csv")


# Signals


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        signal.SIGKILL,
        *(pytest.param(number, marks=pytest.mark.exhaustive) for number in (signal.SIGHUP, signal.SIGINT)),
    ],
)
def test_a_signal_leaves_nothing_behind(table, number):
    if number != signal.SIGKILL and signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("the tests run under nohup: commands that they start ignore this signal too")
    folder = table.parent / "temporary"
    process = subprocess.Popen(
        [COMMAND, "score", "-", "-o", table.parent / "s.csv"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    with process:
        process.stdin.write(CSV)
        process.stdin.flush()
        _wait_for(lambda: any(path.name == "copy" for path in folder.rglob("*")))
        process.send_signal(number)  # to the first process only
        code = process.wait(timeout=60)
        error = process.stderr.read()
    assert code == (-9 if number == signal.SIGKILL else 128 + number)
    assert error == (b"interrupted\n" if number == signal.SIGINT else b"")
    _wait_for(lambda: not list(folder.iterdir()))  # after SIGKILL, the second process ends a moment later
    assert sorted(path.name for path in table.parent.iterdir()) == ["good.csv", "temporary"]


def _wait_for(happens, seconds=60):
    deadline = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("command", "killed"),
    [
        ("report", "child"),
        ("fit", "parent"),
        *(
            pytest.param(command, killed, marks=pytest.mark.exhaustive)
            for command, killed in (("report", "parent"), ("fit", "child"), ("score", "child"), ("score", "parent"))
        ),
    ],
)
def test_a_kill_leaves_no_unfinished_file(table, killed, command):
    """A report and a model are written twice beside their place: by the command, and by the library in it."""
    program = """import os, sys, time
import rgld.cli
killed = sys.argv.pop()
def kill(_):  # when a file is written, but not in its place
    os.kill(os.getpid() if killed == "child" else os.getppid(), 9)
    time.sleep(60)
os.fsync = kill
rgld.cli.main()"""
    process = subprocess.run(
        [sys.executable, "-c", program, command, "good.csv", "-o", "out.csv", killed],
        cwd=table.parent,
        env={**os.environ, "TMPDIR": str(table.parent / "temporary")},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert process.returncode == (2 if killed == "child" else -9), process.stderr
    _wait_for(lambda: not list((table.parent / "temporary").iterdir()))
    assert sorted(path.name for path in table.parent.iterdir()) == ["good.csv", "temporary"]


def test_signals_that_were_ignored_stay_ignored(table):
    """As under nohup."""
    process = subprocess.Popen(
        after("trap '' HUP", COMMAND, "score", "-", "-q"),
        stdin=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(table.parent / "temporary")},
    )
    with process:
        process.stdin.write(CSV)
        process.stdin.flush()
        _wait_for(lambda: any(path.name == "copy" for path in (table.parent / "temporary").rglob("*")))
        process.send_signal(signal.SIGHUP)
        process.stdin.close()
        assert process.wait(timeout=60) == 0


# Pipes, streams and disks


@pytest.mark.parametrize(
    "arguments",
    [
        ["--out", "-", "-q"],
        *(pytest.param(arguments, marks=pytest.mark.exhaustive) for arguments in (["--top", "60"], ["--json"])),
    ],
    ids=" ".join,
)
def test_a_closed_pipe_is_silent(table, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    code, _, error, _ = run(table.parent, "score", table, *arguments, stdout=writer)
    os.close(writer)
    assert (code, error) == (141, "")


def test_closed_standard_streams(table):
    for name in ("good.csv", "nope.csv"):
        code, out, _, _ = run(table.parent, "score", name, "-q", shell="exec 2>&-")
        assert (code, out) == ((0, "") if name == "good.csv" else (2, ""))
    code, _, error, _ = run(table.parent, "score", "good.csv", shell="exec >&-")
    assert (code, error) == (0, "")


SMALL_FILES = "ulimit -f 32"
"""No file can grow beyond 16 KiB (32 KiB in some shells), as on a full disk."""


@pytest.mark.parametrize(
    "name", ["s.parquet", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("s.csv", "s.arrow"))]
)
def test_a_full_disk(table, name, rng):
    frame = pl.DataFrame({"id": [f"{i:064d}" for i in range(5000)], "a": rng.normal(size=5000)})
    frame.write_csv(table.parent / "t.csv")
    arguments = ("score", "t.csv", "--id", "id", "-q", "--preset", "fast", "-o", name)
    code, _, error, _ = run(table.parent, *arguments, shell=SMALL_FILES)
    assert_one_line(code, error, "rgld: File too large: free some space, or write to another disk.")
    assert not list(table.parent.glob(".*.part")) and not (table.parent / name).exists()


def test_a_full_device(table):
    with open("/dev/full", "w") as full:
        code, _, error, _ = run(table.parent, "score", table, stdout=full)
        assert_one_line(code, error, "rgld: No space left on device: free some space, or write to another disk.")


@pytest.mark.parametrize(
    "name", ["t.csv.gz", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("latin.csv", "-"))]
)
def test_a_full_temporary_folder(table, name):
    content = "a,b\n" + "".join(f"{i},ä{i % 7}\n" for i in range(20_000))
    (table.parent / "t.csv.gz").write_bytes(gzip.compress(content.encode()))
    (table.parent / "latin.csv").write_bytes(content.encode("latin-1"))
    (table.parent / "t.csv").write_text(content)
    with open(table.parent / "t.csv", "rb") as stdin:
        code, _, error, _ = run(table.parent, "score", name, stdin=stdin, shell=SMALL_FILES)
    assert_one_line(code, error, "The temporary folder ")
    assert " is full: free some space" in error


def test_standard_output_that_is_not_utf8(table, rng):
    frame = pl.DataFrame({"id": [f"Köln {i}" for i in range(60)], "a": rng.normal(size=60)})
    frame.write_csv(table.parent / "t.csv")
    arguments = ("score", "t.csv", "--id", "id")
    code, out, error = installed_rgld(*arguments, folder=table.parent, environment={"PYTHONIOENCODING": "ascii"})
    assert code == 0 and "K\\xf6ln" in out, error
    code, out, error = installed_rgld(
        *arguments, "-q", "-o", "-", folder=table.parent, environment={"PYTHONIOENCODING": "ascii"}
    )
    assert code == 0 and out.splitlines()[1].startswith("Köln 0,"), error


@pytest.mark.parametrize("out", ["-", "/dev/stdout", pytest.param("/dev/fd/1", marks=pytest.mark.exhaustive)])
def test_no_escape_sequence_reaches_a_terminal(table, out, rng):
    pty = pytest.importorskip("pty")
    pl.DataFrame({"id": [f"\x1b[31m{i}" for i in range(60)], "a": rng.normal(size=60)}).write_csv(
        table.parent / "t.csv"
    )
    ours, theirs = pty.openpty()
    code, _, error, _ = run(table.parent, "score", "t.csv", "--id", "id", "-q", "-o", out, stdout=theirs)
    os.close(theirs)
    shown = os.read(ours, 2**16)
    os.close(ours)
    assert code == 0, error
    assert b"\x1b" not in shown and b"\xef\xbf\xbd[31m0," in shown
    if out == "-":
        _, piped, _ = rgld("score", "t.csv", "--id", "id", "-q", "-o", out, folder=table.parent)
        assert "\x1b[31m0," in piped  # into a file or pipe it goes as it is


def test_an_unknown_processor(table):
    code, _, error, _ = run(table.parent, "score", "good.csv", environment={"RGLD_CPU": "abacus"})
    assert_one_line(code, error, "RGLD_CPU must be one of")


NUMPY_ADVICE = "\n\nPLEASE READ\n" + "how to solve this\n" * 99 + "\nOriginal error was: failed to map segment\n"
REFUSED = "the system refuses it memory or threads"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), REFUSED),
        (pl.exceptions.PanicException("failed to spawn a thread"), REFUSED),
        (ImportError(NUMPY_ADVICE), "started: failed to map segment"),
        (ImportError("long " * 999), "started: long"),
    ],
)
def test_a_command_that_cannot_be_started(monkeypatch, capsys, error, words):
    code, shown = _ended_by(error, monkeypatch, capsys)
    assert code == 2 and shown.count("\n") == 1 and len(shown) < 500
    assert shown.startswith("rgld: The command cannot be started") and words in shown


def test_a_signal_of_openblas_is_no_ctrl_c(monkeypatch, capsys):
    """OpenBLAS sends the signal of Ctrl-C to its own process if it is refused a thread."""
    assert _ended_by(KeyboardInterrupt(), monkeypatch, capsys) == (130, "interrupted\n")

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_limits.threading.Thread, "start", refuse)
    code, shown = _ended_by(KeyboardInterrupt(), monkeypatch, capsys)
    assert code == 2 and shown.startswith("rgld: The command cannot be started") and REFUSED in shown


def _ended_by(error, monkeypatch, capsys):
    """Return the exit code and what was printed if this error ends the start of a command."""

    def fails():
        raise error

    monkeypatch.setattr(sys, "argv", ["rgld", "info"])
    monkeypatch.setattr(cli, "_run", fails)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize(("command", "kib"), [("score", 700_000), ("demo", 1_300_000), ("info", 300_000)])
def test_fewer_addresses_than_the_libraries_take(table, command, kib):
    """OpenBLAS ended the command with 1 or with the signal of Ctrl-C, and polars waited for ever."""
    code, _, error, _ = run(table.parent, command, "good.csv", shell=f"ulimit -v {kib}")
    assert_one_line(code, error, f"cannot be started with {kib / 2**20:.2f} GiB of memory (ulimit -v)")


def test_less_data_than_the_libraries_take(table):
    code, _, error, _ = run(table.parent, "score", "good.csv", shell="ulimit -d 200000")
    assert_one_line(code, error, "cannot be started with 0.19 GiB of memory (ulimit -d)")


def test_enough_addresses(table):
    """What is asked for is enough for the commands that take most."""
    kib = (2 * GIB + _limits.BYTES_PER_CORE * os.cpu_count()) // 1024
    code, _, error, _ = run(table.parent, "report", "good.csv", "-q", "-o", "r.html", shell=f"ulimit -v {kib}")
    assert code == 0, error


def test_no_process_for_the_guard(tmp_path, monkeypatch):
    def refuse():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(_guard.os, "fork", refuse)
    monkeypatch.setattr(_guard.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(BlockingIOError):
        _guard.guarded(lambda: None, print)
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_is_refused_a_thread(table, monkeypatch):
    """polars panics then. The file is not to blame."""

    def panics(*arguments):
        raise pl.exceptions.PanicException('Os { code: 11, message: "Resource temporarily unavailable" }')

    monkeypatch.setattr(_files._csvread, "read", panics)
    code, out, error = rgld("score", table)
    assert (code, out) == (2, "") and "does not fit into memory" in error


def test_memory_that_runs_out(table, monkeypatch):
    def explode(*arguments):
        raise MemoryError

    monkeypatch.setattr("rgld.cli.score.score_any", explode)
    code, _, error = rgld("score", "good.csv", folder=table.parent)
    assert_one_line(code, error, "There is not enough memory for this table")


def test_memory_that_the_system_refuses_is_not_blamed_on_the_limit(tmp_path):
    """The guard kills what takes more than --memory: a MemoryError is the system's."""
    program = (
        "import sys\nfrom rgld.cli import _app, _guard, score\n"
        "def explode(*arguments):\n    _guard.limit_memory(2**34)\n    raise MemoryError\n"
        "score.score_any = explode\n"
        "_guard.guarded(lambda: _app.run(['score', 'good.csv']), print)\n"
    )
    (tmp_path / "good.csv").write_bytes(CSV)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert_one_line(done.returncode, done.stderr, "There is not enough memory for this table")


# Arrays, ids and encodings


def npy_with_header(header, version=(1, 0)):
    """Return an NPY file with any header."""
    text = header.encode("latin-1") + b"\n"
    return b"\x93NUMPY" + bytes(version) + len(text).to_bytes(2, "little") + text + bytes(64)


HEADERS = {
    "not Python": "{'descr': '<f8', 'fortran_order': False, 'shape': (2,",
    "no names": "[1, 2, 3]",
    "no shape": "{'descr': '<f8', 'fortran_order': False}",
    "an unknown type": "{'descr': '<q99', 'fortran_order': False, 'shape': (2, 2)}",
    "a type of no sense": "{'descr': [('a', 'b', 'c', 'd')], 'fortran_order': False, 'shape': (2, 2)}",
    "a shape of text": "{'descr': '<f8', 'fortran_order': False, 'shape': ('a', 'b')}",
    "a shape of floats": "{'descr': '<f8', 'fortran_order': False, 'shape': (2.0, 2.0)}",
    "deeply nested": "(" * 3000 + ")" * 3000,
    "zero bytes": "\0" * 50,
    "letters": "ÿ" * 50,
    "a number without end": "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "9" * 5000 + ", 2)}",
}


@pytest.mark.parametrize("what", HEADERS)
def test_corrupt_headers_of_arrays(table, what):
    content = npy_with_header(HEADERS[what])
    (table.parent / "t.npy").write_bytes(content)
    with zipfile.ZipFile(table.parent / "t.npz", "w") as archive:
        archive.writestr("X.npy", content)
    for name in ("t.npy", "t.npz"):
        code, _, error = rgld("score", name, folder=table.parent)
        assert_one_line(code, error, name)


def test_other_corrupt_arrays(table, rng):
    good = npz_of({"X": rng.normal(size=(60, 2))}, zipfile.ZIP_DEFLATED)
    (table.parent / "method.npz").write_bytes(good.replace(b"\x08\x00", b"\x63\x00"))  # an unknown compression
    flags = good.index(b"PK\x01\x02") + 8  # in the list of members
    (table.parent / "secret.npz").write_bytes(good[:flags] + b"\x01" + good[flags + 1 :])  # claims to be encrypted
    (table.parent / "zip.npz").write_bytes(
        good[: flags - 2] + b"\xea" + good[flags - 1 :]
    )  # a zip file of version 23.4
    (table.parent / "bits.npz").write_bytes(good[:80] + bytes(20) + good[100:])
    (table.parent / "cut.npy").write_bytes(npy_with_header("{}")[:9])
    (table.parent / "version.npy").write_bytes(npy_with_header("{}", (9, 0)))
    (table.parent / "bz2.npz").write_bytes(bz2.compress(b"a,b\n1,2\n"))
    for name in ("method.npz", "secret.npz", "zip.npz", "bits.npz", "cut.npy", "version.npy", "bz2.npz"):
        code, _, error = rgld("score", name, folder=table.parent)
        assert_one_line(code, error, name)


IDS = {
    "lists": (pl.Series([[i, 2] for i in range(60)]), "[7, 2]"),
    "bytes": (pl.Series([bytes([i, 255]) for i in range(60)]), "07ff"),
    "structures": (pl.Series([{"k": i} for i in range(60)]), "{'k': 7}"),
    "times": (pl.Series(range(60)).cast(pl.Datetime("us")), "1970-01-01 00:00:00.000007"),
    "gaps": (pl.Series([None if i % 2 else i for i in range(14, 74)]), "28"),
}


@pytest.mark.parametrize("what", IDS)
def test_ids_that_csv_does_not_have(table, what):
    ids, name = IDS[what]
    NUMBERS.with_columns(key=ids).write_parquet(table.parent / "t.parquet")
    for out in ("s.csv", "-", "s.parquet"):
        code, _, error = rgld("score", "t.parquet", "--id", "key", "-q", "-o", out, folder=table.parent)
        assert code == 0, error
    if what in ("lists", "bytes", "structures"):
        assert pl.read_csv(table.parent / "s.csv")["key"].cast(pl.String)[7].strip('"') == name
    assert pl.read_parquet(table.parent / "s.parquet")["key"].dtype == ids.dtype
    code, out, error = rgld("explain", "t.parquet", "--id", "key", "--row", name, folder=table.parent)
    assert code == 0 and out.startswith(f"key {name}: score"), error
    code, out, error = rgld("score", "t.parquet", "--id", "key", "--json", folder=table.parent)
    assert code == 0 and len(json.loads(out)["top"]) == 10, error


def test_an_id_that_is_no_number_in_json(table):
    ids = [float("nan") if i % 2 else float("inf") for i in range(60)]
    NUMBERS.with_columns(key=pl.Series(ids)).write_parquet(table.parent / "t.parquet")
    code, out, error = rgld("score", "t.parquet", "--id", "key", "--json", folder=table.parent)
    assert code == 0, error

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert {line["id"] for line in json.loads(out, parse_constant=refuse)["top"]} == {None}


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-be", "utf-32-le", "utf-16", "utf-16-be"])
def test_wide_encodings(table, encoding):
    text = NUMBERS.with_columns(city=pl.Series(["Köln", "Bonn"] * 30)).write_csv()
    mark = "" if encoding in ("utf-32", "utf-16") else "\ufeff"
    (table.parent / "wide.csv").write_bytes((mark + text).encode(encoding))
    (table.parent / "t.csv").write_text(text)
    _, expected, _ = rgld("score", "t.csv", "--json", folder=table.parent)
    code, out, error = rgld("score", "wide.csv", "--json", folder=table.parent)
    assert code == 0 and out == expected, error
    (table.parent / "unmarked.csv").write_bytes(text.encode("utf-32-le"))
    code, out, error = rgld("score", "unmarked.csv", "--json", "--encoding", "UTF_32_LE", folder=table.parent)
    assert code == 0 and out == expected, error


# JSON lines


def test_json_lines_of_which_each_has_other_keys(table, monkeypatch):
    """5 MB of these lines took minutes and 9 GB: 3,000 lines times 300,000 keys."""
    monkeypatch.setattr("rgld.cli._json.ALWAYS_READ_BYTES", 2**20)
    lines = [json.dumps({f"k{i}_{j}": i for j in range(3)}) for i in range(1000)]
    (table.parent / "t.jsonl").write_text("\n".join(lines))
    code, _, error = rgld("score", "t.jsonl", folder=table.parent)
    assert_one_line(code, error, "t.jsonl has 1,000 lines with 3,000 different keys, of which each line has few")


def test_keys_of_json_lines_are_counted(table, monkeypatch):
    monkeypatch.setattr("rgld.cli._json.ALWAYS_READ_BYTES", 0)
    monkeypatch.setattr("rgld.cli._json.JSON_READ_BYTES", 100)  # a line may begin in one chunk and end in the next
    records = [{"a": i % 7 + i / 9, 'b"\\': f'"x{i}": \\"y{i}": ', "c": {"d": i}} for i in range(60)]
    (table.parent / "t.jsonl").write_text("\n".join(map(json.dumps, records)))
    assert _json._size(table.parent / "t.jsonl") == (60, 4)
    code, _, error = rgld("score", "t.jsonl", "-q", folder=table.parent)
    assert code == 0, error


@pytest.mark.parametrize("content", [b'{"' + b'\\"' * 500_000, b'"' * 500_000, b'{"a"' + b" " * 500_000])
def test_strings_that_do_not_end_are_looked_at_once(table, content, monkeypatch):
    """Looked at from every quotation mark on, each of these would take hours."""
    monkeypatch.setattr("rgld.cli._json.ALWAYS_READ_BYTES", 0)
    (table.parent / "t.jsonl").write_bytes(content + b":\n")
    assert _json._size(table.parent / "t.jsonl")[1] <= 1
