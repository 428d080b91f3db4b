"""A PostgreSQL server of the tests' own: in a temporary folder, on the loopback interface, with a password."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

PASSWORD = "pa%ss@w rd"
FOLDERS = [str(path) for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
INITDB = shutil.which("initdb", path=os.pathsep.join([*FOLDERS, os.environ.get("PATH", "")]))
"""None if PostgreSQL is not installed."""


class Server:
    """A server that can be killed and started again."""

    def __init__(self) -> None:
        # Not in pytest's folder, which only its owner may enter: PostgreSQL does not run as root.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="rgld-postgresql-"))
        # Debian makes a user for it.
        self.runner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        (folder / "password").write_text(PASSWORD)
        if self.runner:
            for path in (folder, folder / "password"):
                shutil.chown(path, "postgres")
        self._run(INITDB, "-D", folder / "data", "-A", "scram-sha-256", "-U", "ann", "--pwfile", folder / "password")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    @property
    def address(self) -> str:
        return f"postgresql://ann:{quote(PASSWORD)}@127.0.0.1:{self.port}/postgres"

    def _run(self, *command: object) -> None:
        done = subprocess.run(
            [*self.runner, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd="/"
        )
        assert not done.returncode, done.stdout.decode()

    def start(self) -> None:
        settings = f"-c listen_addresses=127.0.0.1 -c port={self.port} -c unix_socket_directories='' -c fsync=off"
        log = self.folder / "log"  # with a pipe, pg_ctl would not end before the server
        self._run(Path(INITDB).parent / "pg_ctl", "-D", self.folder / "data", "-o", settings, "-l", log, "-w", "start")

    @property
    def pid(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """End the server at once, as when its machine is switched off."""
        pid = self.pid
        os.kill(pid, signal.SIGQUIT)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.02)

    def stop(self) -> None:
        self._run(Path(INITDB).parent / "pg_ctl", "-D", self.folder / "data", "-m", "fast", "-w", "stop")
        shutil.rmtree(self.folder)
