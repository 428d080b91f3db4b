"""Targets: what the fuzzers attack, and what may happen.

A target makes inputs and checks each: `make` returns the content of a file, `check` lets the library have it. A check
returns what happened in a word ("refused", "scored"). Any exception out of a check is a finding.
"""

import random
from abc import ABC, abstractmethod
from pathlib import Path

MAX_MESSAGE_LENGTH = 400
"""Characters of an error message about a model file, with the parts of the file that it shows."""
MAX_TABLE_MESSAGE_LENGTH = 1000
"""Characters of one about a table: it may say of several columns why they cannot be used."""
CORPUS = Path(__file__).parent / "corpus"


class Target(ABC):
    """Something that reads input from strangers."""

    name: str
    """Also the name of its folder in the corpus."""
    max_seconds = 60.0
    """An input that takes longer is a finding. Inputs take milliseconds, but machines that test are busy."""
    max_memory_bytes = 2**30
    """What one input may add to the memory of the process."""

    def __init__(self) -> None:
        self.corpus = {path.name: path.read_bytes() for path in sorted((CORPUS / self.name).iterdir())}

    @abstractmethod
    def make(self, rng: random.Random) -> bytes:
        """Return an input."""

    @abstractmethod
    def check(self, content: bytes, folder: Path) -> str:
        """Let the library have an input. The folder is empty, and may be written to."""

    def allowed(self, content: bytes, folder: Path) -> str:
        """Return what to call it when an input crashes the process or fills its memory; "" if that is a finding."""
        return ""

    def pick(self, rng: random.Random) -> bytes:
        """Return a file of the corpus."""
        return rng.choice(list(self.corpus.values()))


def require_sentence(error: BaseException | str, max_length: int = MAX_MESSAGE_LENGTH) -> None:
    """Check that an error is said in one line, and not a long one."""
    message = str(error)
    shown = repr(message[:max_length])
    assert message.strip(), "an error without words"
    assert "\n" not in message, f"an error of several lines: {shown}"
    assert len(message) <= max_length, f"an error of {len(message)} characters: {shown}"
