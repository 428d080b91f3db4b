"""Targets that break, each in its own way: the runner must find out. Nothing large is imported here."""

import os
import signal
import time

from .targets import Target


class Broken(Target):
    """A target that breaks at every second input."""

    name = "broken"
    max_seconds = 1.0
    max_memory_bytes = 50 * 2**20

    def __init__(self):
        self.corpus = {"fine": b"fine"}

    def make(self, rng):
        return rng.choice([b"fine", b"bad"])

    def check(self, content, folder):
        if content == b"bad":
            self.do()
        return "fine"

    def do(self):
        """Break."""


class Raises(Broken):
    def do(self):
        raise ValueError("broken in line 17")


class Crashes(Broken):
    def do(self):
        os.kill(os.getpid(), signal.SIGABRT)


class Waits(Broken):
    def do(self):
        time.sleep(60)


class Grows(Broken):
    def do(self):
        bytearray(b"x") * (100 * 2**20)


class IsGuarded(Crashes):
    """A crash that something else catches."""

    def allowed(self, content, folder):
        return "guarded"
