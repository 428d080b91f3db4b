"""The runner: a target under attack for a bounded time, in a process of its own.

A process that ends by a signal, takes too long over one input or takes too much memory is a finding like any other:
the input that it worked on lies in a file, and another process goes on. Findings of the same kind are counted once.
"""

import faulthandler
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import tempfile
import time
import traceback
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

MAX_ADDRESS_SPACE_BYTES = 24 * 2**30
"""Beyond this, the process fails instead of the machine. Libraries reserve much more than they use."""
CURRENT, REPORT, ERRORS, OWN = "current", "report", "errors", "own"
"""Files of a process: the input it works on, what became of each input, its standard error, the folder of a check."""


@dataclass
class Finding:
    """A kind of finding: what happened first, with which input, and how often."""

    what: str
    path: Path
    times: int = 0


@dataclass
class Result:
    """What came of attacking a target."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """How often each word that a check returns."""
    findings: dict[str, Finding] = field(default_factory=dict)
    """By kind."""


def attack(target_class, seconds, seed, keep) -> Result:
    """Try inputs for some seconds; keep those that break something in a folder."""
    shutil.rmtree(keep, ignore_errors=True)
    keep.mkdir(parents=True)
    target, result = target_class(), Result()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        with tempfile.TemporaryDirectory(prefix="rgld-fuzz-") as name:
            folder = Path(name)
            process = multiprocessing.get_context("spawn").Process(
                target=_work, args=(target_class, seed, left, folder, keep)
            )
            process.start()
            process.join()
            _collect(result, target, folder, process.exitcode, keep)
        seed += 1_000_003  # another process must not meet the same input again
    return result


def _work(target_class, seed, seconds, folder, keep):
    """Try inputs until the time is over or the process has grown too much."""
    errors = os.open(folder / ERRORS, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(errors, 2)  # libraries write there, past Python
    faulthandler.enable(errors)
    resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE_BYTES, MAX_ADDRESS_SPACE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    target, rng = target_class(), random.Random(seed)
    for content in target.corpus.values():  # what all inputs need is loaded, and counts for none
        _tried(target, content, folder)
    most = _peak_memory() + target.max_memory_bytes
    end = time.monotonic() + seconds
    with open(folder / REPORT, "w", buffering=1) as report:
        while time.monotonic() < end:
            content = target.make(rng)
            (folder / CURRENT).write_bytes(content)
            faulthandler.dump_traceback_later(target.max_seconds, exit=True, file=errors)
            outcome, what = _tried(target, content, folder)
            faulthandler.cancel_dump_traceback_later()
            if not what and _peak_memory() > most:
                outcome, what = _allowed(target, content, folder, f"took more than {target.max_memory_bytes >> 20} MB")
            if what:
                _keep(what, content, keep)
            report.write(json.dumps([outcome, what]) + "\n")
            if _peak_memory() > most:
                return  # the peak does not go down: another process must go on


def _tried(target, content, folder):
    """Return the outcome of an input, and what is wrong with it ("" if nothing)."""
    return _called(target.check, content, folder)


def _allowed(target, content, folder, what):
    """Return the same for an input that crashes the process or fills its memory, which some targets may."""
    outcome, worse = _called(target.allowed, content, folder)
    return (outcome, worse) if outcome else ("broke", what)


def _called(check, content, folder):
    own = folder / OWN
    own.mkdir()
    try:
        return check(content, own), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a library is one, too
        return "broke", _described(error)
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _described(error):
    """Return what happened in a line: the error, and where in the library it was."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if {"rgld", "fuzz"} & set(Path(f.filename).parts)]
    where = f" in {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}: {' '.join(str(error).split())[:300]}"


def _peak_memory():
    """Return the most bytes that this process has had in memory."""
    status = Path("/proc/self/status")
    if status.exists():  # what `resource` counts on Linux began in the parent
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _kind(what):
    """Return what findings of the same kind have in common."""
    return re.sub(r"[\d.]+|'[^']*'", "#", what)[:120]


def _path_of(what, keep):
    return keep / f"found-{zlib.crc32(_kind(what).encode()):08x}"


def _keep(what, content, keep):
    """Write an input and what it does, if it is the first of its kind."""
    path = _path_of(what, keep)
    if not path.exists():
        path.write_bytes(content)
        path.with_suffix(".txt").write_text(what + "\n", errors="backslashreplace")


def _collect(result, target, folder, exit_code, keep):
    """Add what a process did to the result."""
    report, said = folder / REPORT, (folder / ERRORS).read_text(errors="replace")
    if not report.exists():
        raise RuntimeError(f"The fuzzer cannot begin: {said[-2000:]}")
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    if exit_code:
        content = (folder / CURRENT).read_bytes()
        shutil.rmtree(folder / OWN, ignore_errors=True)
        if "Timeout (" in said:
            outcome, what = "broke", f"took more than {target.max_seconds:g} s{_place(said)}"
        else:
            how = f"ended by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
            outcome, what = _allowed(target, content, folder, f"the process {how}{_place(said)}")
        if what:
            _keep(what, content, keep)
        lines.append((outcome, what))
    for outcome, what in lines:
        result.outcomes[outcome] += 1
        if what:
            finding = result.findings.setdefault(_kind(what), Finding(what, _path_of(what, keep)))
            finding.times += 1


def _place(said):
    """Return where in the library a process was, of what it said in its end."""
    places = re.findall(r'File "[^"]*?rgld/([\w/]+\.py)", line (\d+)', said)
    return f" in {places[0][0]}:{places[0][1]}" if places else ""
