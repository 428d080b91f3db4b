"""Real servers on free ports of the loopback device, and requests to them."""

import http.client
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

from tests.cli.command import COMMAND

LIMITED = """
import sys
from rgld.serve.app import create_app
from rgld.serve.gate import LOCAL_NAMES, log
from rgld.serve.limits import Limits
from rgld.serve.models import Models
from rgld.serve.server import run
limits = Limits(**{limits!r})
run(create_app(Models.of(sys.argv[1], None, 1), limits, host_names=LOCAL_NAMES, log=log), "127.0.0.1", 0, limits)
"""


class Answer:
    """A response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Server:
    """A server in a process of its own."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )
        self.lines = []
        self._unread = queue.Queue()
        self._reader = threading.Thread(target=self._read)  # a full pipe would stop the server
        self._reader.start()
        self.port = self.wait_for("listening")["port"]

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)
            self._unread.put(line)
        self._unread.put("")

    def wait_for(self, event):
        """Wait for a log line of this event."""
        while True:
            line = self._unread.get(timeout=30)
            assert line, f"the server ended: {self.lines}"
            if json.loads(line)["event"] == event:
                return json.loads(line)

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        connection = self.connect()
        try:
            connection.request(method, path, body, headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def post(self, path, content, kind="application/json", **headers):
        body = (
            json.dumps(content).encode() if kind == "application/json" and not isinstance(content, bytes) else content
        )
        return self.ask("POST", path, body, {"Content-Type": kind, **headers})

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(40)
        self._reader.join()
        self.process.stderr.close()
        return code


@contextmanager
def running(*arguments, environment=None):
    """Run `rgld serve` on a free port."""
    server = Server([COMMAND, "serve", "--port", "0", *map(str, arguments)], environment)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def limited(model, **limits):
    """Run a server with other limits."""
    server = Server([sys.executable, "-c", LIMITED.format(limits=limits), str(model)])
    try:
        yield server
    finally:
        server.stop()
