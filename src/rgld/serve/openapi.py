"""The endpoints, as OpenAPI 3.1, with examples."""

from typing import Any

from .. import __version__
from .formats import ARROW, CSV, JSON
from .limits import Limits

EXAMPLE_ROWS = [{"distance": 2.4, "fare": 11.5, "payment": "card"}, {"distance": 1.1, "fare": 950, "payment": "cash"}]
MODEL = {
    "name": "model",
    "in": "query",
    "description": "Name of the model; may be left out if there is one only.",
    "schema": {"type": "string"},
}


def description(limits: Limits, *, has_token: bool) -> dict[str, Any]:
    """Return the description of the endpoints."""
    posts = {
        "/v1/score": ("Score rows", "One score in (0, 1) for each row: higher is more anomalous.", _SCORE, []),
        "/v1/explain": (
            "Explain rows",
            f"Reasons in words, for at most {limits.explained_rows} rows: all rows, or the top ones of many.",
            _EXPLAIN,
            [
                {
                    "name": "top",
                    "in": "query",
                    "schema": {"type": "integer", "minimum": 1, "maximum": limits.explained_rows},
                }
            ],
        ),
        "/v1/check": (
            "Check a table",
            "Whether the rows are still like the training rows, and what has changed: see docs/drift.md.",
            {
                "schema": "rgld-check",
                "version": 1,
                "verdict": "drift",
                "reasons": ["fare: median 1,250 instead of 12.5"],
            },
            [{"name": "alpha", "in": "query", "schema": {"type": "number", "default": 0.01}}],
        ),
        "/v1/report": ("Report on a table", "A page, as of `rgld report`.", None, []),
    }
    paths: dict[str, Any] = {
        path: {"post": _post(title, text, example, [MODEL, *more])}
        for path, (title, text, example, more) in posts.items()
    }
    for path, title in (
        ("/v1/model", "What a model expects: its columns, and how they are read"),
        ("/v1/models", "The names of the models"),
        ("/healthz", "The process answers"),
        ("/readyz", "A model is loaded"),
        ("/metrics", "Counters for Prometheus"),
    ):
        responses = {"200": {"description": title}}
        paths[path] = {
            "get": {"summary": title, "parameters": [MODEL] if path == "/v1/model" else [], "responses": responses}
        }
    secured: dict[str, Any] = {"security": [{"token": []}]} if has_token else {}
    return {
        "openapi": "3.1.0",
        "info": {"title": "RGLD", "version": __version__, "description": _text(limits)},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        **secured,
    }


_SCORE = {
    "model": "trips",
    "version": "1f0c6a3e9b2d4c58",
    "threshold": 0.95,
    "scores": [0.41, 0.9991],
    "above_threshold": [False, True],
    "p_values": [0.62, 0.0012],
}
_EXPLAIN = {
    "model": "trips",
    "version": "1f0c6a3e9b2d4c58",
    "threshold": 0.95,
    "n_rows": 2,
    "rows": [
        {
            "row": 1,
            "score": 0.9991,
            "kind": "broadly rare and locally isolated",
            "reasons": ["fare 950 is far above usual (usually 3.88 to 32.28)"],
            "contributions": {"distance": 0.1, "fare": 2.9, "payment": 0.2},
        }
    ],
}


def _text(limits: Limits) -> str:
    return (
        f"A table is JSON rows, CSV or an Arrow stream, as it is or in gzip: at most {limits.body_bytes:,} bytes, "
        f"{limits.rows:,} rows, {limits.columns:,} columns and {limits.cells:,} cells. What is wrong with a request "
        "comes back as application/problem+json."
    )


def _post(title: str, text: str, example: Any, parameters: list[Any]) -> dict[str, Any]:
    rows = {
        "type": "array",
        "items": {"type": "object", "additionalProperties": {"type": ["number", "string", "boolean", "null"]}},
    }
    body = {
        JSON: {
            "schema": {"oneOf": [rows, {"type": "object", "properties": {"rows": rows}}]},
            "example": {"rows": EXAMPLE_ROWS},
        },
        CSV: {"schema": {"type": "string"}, "example": "distance,fare,payment\n2.4,11.5,card\n1.1,950,cash\n"},
        ARROW: {"schema": {"type": "string", "format": "binary"}},
    }
    problem = {"application/problem+json": {"schema": {"type": "object"}}}
    answer = {"text/html": {}} if example is None else {JSON: {"example": example}}
    if title in ("Score rows", "Explain rows"):
        answer[ARROW] = {}
    return {
        "summary": title,
        "description": text,
        "parameters": parameters,
        "requestBody": {"required": True, "content": body},
        "responses": {
            "200": {"description": title, "content": answer},
            "4XX": {"description": "What is wrong, and what to do", "content": problem},
        },
    }
