"""The gate: what every request passes before and after an endpoint.

In: an ASGI application. Out: the same behind checks of host name, token and number of requests, with a log line and
metrics for each request. Whatever goes wrong inside becomes a `RequestError`; no traceback leaves.
"""

import hmac
import ipaddress
import json
import secrets
import sys
import time
from collections.abc import Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .limits import Limits
from .metrics import Metrics
from .problems import RequestError

OPEN = ("/", "/healthz", "/readyz", "/page.js", "/page.css")
"""Paths that need no token: they tell nothing of a model or a table."""
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"x-frame-options", b"DENY"),
)
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Host names that a server on the loopback device answers to. A page on the web could give its own name the address
127.0.0.1 and ask this server; its requests have that other name, and are refused."""


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def log(event: str, fields: dict[str, Any]) -> None:
    """Write one line of JSON to standard error. It never contains a cell, a column name or a query."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    print(json.dumps({"time": f"{moment}Z", "event": event, **fields}), file=sys.stderr, flush=True)


class Gate:
    """The checks around an application."""

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits,
        metrics: Metrics,
        *,
        endpoints: dict[str, str],
        token: str | None,
        host_names: frozenset[str] | None,
        log: Callable[[str, dict[str, Any]], None] | None,
    ) -> None:
        """Take the application; `endpoints` are the known paths, with the method that each allows."""
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._endpoints = endpoints
        self._token = None if token is None else token.encode()
        self._host_names = host_names
        self._log = log
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500
        has_begun = False
        request_id = secrets.token_hex(6)
        scope.setdefault("state", {})["rows"] = 0

        async def sending(message: Message) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                status, has_begun = message["status"], True
                message = {
                    **message,
                    "headers": [*message["headers"], *HEADERS, (b"x-request-id", request_id.encode())],
                }
            await send(message)

        self._under_way += 1
        failed = ""
        try:
            self._check(scope)
            await self._app(scope, receive, sending)
        except Exception as error:
            problem = self._problem(error)
            if problem.status == 500:
                failed = _where(error)
            if not has_begun:
                await problem.response()(scope, receive, sending)
        finally:
            self._under_way -= 1
            seconds = time.perf_counter() - started
            endpoint = scope["path"] if scope["path"] in self._endpoints else "other"
            self._metrics.answered(endpoint, status, seconds)
            if self._log is not None:
                fields = {
                    "id": request_id,
                    "endpoint": endpoint,
                    "status": status,
                    "rows": scope["state"]["rows"],
                    "ms": round(1000 * seconds, 2),
                }
                self._log("request", {**fields, "failed": failed} if failed else fields)

    def _check(self, scope: Scope) -> None:
        """Raise if the request may not pass."""
        headers = {name: value for name, value in scope["headers"] if name in (b"host", b"authorization")}
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            raise RequestError(400, "Expected one header Host, got several.", {"Connection": "close"})
        if self._host_names is not None:
            name = headers.get(b"host", b"").decode("latin-1").lower()
            name = name.rpartition(":")[0] if name.rpartition(":")[2].isdigit() else name
            if name not in self._host_names:
                raise RequestError(403, "Expected a request to localhost: this server answers to this machine only.")
        if self._under_way > self._limits.requests:
            raise RequestError(
                429,
                f"Expected at most {self._limits.requests} requests at once, got more: try again in a second.",
                {"Retry-After": "1"},
            )
        path = scope["path"]
        method = self._endpoints.get(path)
        if method is None:
            raise RequestError(404, "There is no such path: see /openapi.json for those that there are.")
        if scope["method"] not in (method, "HEAD" if method == "GET" else method):
            raise RequestError(405, f"Expected {method}, got another method.", {"Allow": method})
        if self._token is not None and path not in OPEN:
            given = headers.get(b"authorization", b"")
            scheme, _, token = given.partition(b" ")
            # Both are always compared, and the token in constant time: how long an answer takes tells nothing of it.
            if not (hmac.compare_digest(token.strip(), self._token) & (scheme.lower() == b"bearer")):
                raise RequestError(
                    401,
                    "Expected a header Authorization: Bearer TOKEN with the token of this server.",
                    {"WWW-Authenticate": "Bearer"},
                )

    @staticmethod
    def _problem(error: Exception) -> RequestError:
        if isinstance(error, RequestError):
            return error
        if isinstance(error, HTTPException):
            return RequestError(error.status_code, "The request cannot be answered.")
        return RequestError(
            500, "A defect of the server, not of the request: its log names the request by X-Request-Id."
        )


def _where(error: BaseException) -> str:
    """Return where an error was raised, without its message, which may contain a cell."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in {trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__}{where}"
