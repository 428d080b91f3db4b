"""The gate alone, around an application of one line."""

import asyncio
import json

import pytest

pytest.importorskip("starlette", reason="the server needs the extra 'serve'")

from starlette.responses import PlainTextResponse

from rgld.serve.gate import Gate
from rgld.serve.limits import Limits
from rgld.serve.metrics import Metrics

ENDPOINTS = {"/healthz": "GET", "/v1/score": "POST"}
SECRET = "cell-of-a-table"


def answer(app, method, path):
    """Return status and body of one request, and what was logged about it."""
    logged, sent = [], []
    gate = Gate(
        app,
        Limits(),
        Metrics(),
        endpoints=ENDPOINTS,
        token=None,
        host_names=None,
        log=lambda event, fields: logged.append(fields),
    )

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(gate({"type": "http", "method": method, "path": path, "headers": []}, receive, send))
    return sent[0]["status"], sent[1]["body"], logged[0]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("HEAD", "/healthz", 200),
        ("POST", "/healthz", 405),
        ("POST", "/v1/score", 200),
        ("HEAD", "/v1/score", 405),
        ("GET", "/other", 404),
    ],
)
def test_methods(method, path, status):
    found, _, logged = answer(PlainTextResponse("fine"), method, path)
    assert found == logged["status"] == status
    assert logged["endpoint"] == (path if path in ENDPOINTS else "other")


def test_a_defect_is_logged_by_its_place_and_told_to_nobody():
    async def broken(scope, receive, send):
        raise ValueError(f"could not convert {SECRET}")

    status, body, logged = answer(broken, "POST", "/v1/score")
    assert status == logged["status"] == 500
    assert logged["failed"].startswith("ValueError in broken, line ")
    assert SECRET not in json.dumps(logged) and SECRET.encode() not in body
