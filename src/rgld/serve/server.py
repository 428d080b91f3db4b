"""The server: uvicorn with this application, on one port.

SIGTERM and SIGINT: no new connection is taken, requests under way are answered, then the process ends.
"""

import asyncio
import logging
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from .gate import log
from .limits import Limits
from .problems import PROBLEM, RequestError

SECONDS_TO_DRAIN = 30
"""How long requests under way may take after SIGTERM."""
KEEP_ALIVE_SECONDS = 15
MAX_HTTP_HEADER_BYTES = 64 * 2**10
try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as _Protocol
except ImportError:  # httptools is faster, and not on every system
    _Protocol = H11Protocol  # type: ignore[assignment,misc]


def protocol_of(limits: Limits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol with a time limit for the lines before a body, and a limit for their length."""

    class Protocol(_Protocol):
        _waiting: asyncio.TimerHandle | None = None
        _n_bytes = 0

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)  # type: ignore[arg-type]
            self._wait()

        def data_received(self, data: bytes) -> None:
            if self.cycle is None or self.cycle.response_complete:
                if self._waiting is None:
                    self._wait()
                self._n_bytes += len(data)
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._done()
            elif self._n_bytes > MAX_HTTP_HEADER_BYTES:
                self.transport.close()

        def send_400_response(self, msg: str) -> None:
            """Answer what is not HTTP: uvicorn's own answer is plain text."""
            body = RequestError(400, "Expected HTTP/1.1, got something that cannot be read as a request.").content()
            head = f"content-type: {PROBLEM}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head.encode() + body)
            self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self._done()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._waiting = self.loop.call_later(limits.header_seconds, self._close)

        def _done(self) -> None:
            self._n_bytes = 0
            if self._waiting is not None:
                self._waiting.cancel()
                self._waiting = None

        def _close(self) -> None:
            self._waiting = None
            if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
                self.transport.close()

    return Protocol


class _JsonLines(logging.Handler):
    """Writes what uvicorn logs as lines of JSON: its sentence before values are filled in, and no traceback, so that no
    cell gets into a log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        log("server", {"level": record.levelname.lower(), "message": str(record.msg)})


class _Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            for server in self.servers:
                for socket in server.sockets:
                    host, port, *_ = socket.getsockname()
                    log("listening", {"host": host, "port": port})

    async def shutdown(self, sockets: Any = None) -> None:
        log("stopping", {})
        await super().shutdown(sockets)
        log("stopped", {})


def run(app: Any, host: str, port: int, limits: Limits) -> None:
    """Serve until a signal ends it."""
    logger = logging.getLogger("uvicorn")
    logger.handlers, logger.propagate, logger.level = [_JsonLines()], False, logging.WARNING
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=protocol_of(limits),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SECONDS_TO_DRAIN,
        backlog=512,
    )
    _Server(config).run()
