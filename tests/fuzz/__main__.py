"""`python -m tests.fuzz`: attack all targets, or the named ones, for some seconds each.

Exit code 1 if anything broke. An input that broke something lies in build/fuzz/; `--replay FILE` tries it again, with
the traceback.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from .files import Arrays, Csv, Parquet
from .models import Models, Streams
from .runner import attack
from .tables import Tables

TARGETS = {target.name: target for target in (Models, Streams, Csv, Parquet, Arrays, Tables)}
KEEP = Path("build/fuzz")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--replay", type=Path, help="a file to try again, with one target")
    given = parser.parse_args()
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(TARGETS)}")
    if given.replay:
        (name,) = given.targets
        with tempfile.TemporaryDirectory(prefix="rgld-fuzz-") as folder:
            print(TARGETS[name]().check(given.replay.read_bytes(), Path(folder)))
        return 0
    print(f"seed {given.seed}, {given.seconds:g} s for each target")
    broken = False
    for name in given.targets:
        result = attack(TARGETS[name], given.seconds, given.seed, KEEP / name)
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in result.outcomes.most_common())
        print(f"{name}: {result.outcomes.total():,} inputs: {outcomes}", flush=True)
        for finding in result.findings.values():
            broken = True
            print(f"  {finding.times} times: {finding.what}")
            print(f"    python -m tests.fuzz {name} --replay {finding.path}")
    return int(broken)


if __name__ == "__main__":
    sys.exit(main())
