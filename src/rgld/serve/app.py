"""The application: one function per endpoint.

In: requests. Out: scores, explanations, checks, the report, the page. A few rows are scored at once in the thread that
answers requests, which is faster than handing them over; more rows go to another thread.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import numpy as np
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .. import __version__
from .._arrays import Float64s
from .._detector import Detector
from .._drift.verdict import Check
from .._table.table import Table
from .._threshold import conformal_p_values
from ..exceptions import RGLDError
from . import openapi, page
from .bodies import read_body
from .formats import ARROW, JSON, arrow_bytes, json_bytes, media_type, read_table
from .gate import Gate
from .limits import Limits
from .metrics import CONTENT_TYPE, Metrics
from .models import Models, Served
from .problems import RequestError

FEW_CELLS = 512
"""A body of up to eight bytes for each of so many cells is short: its rows are scored in the thread that answers."""
SECONDS_BETWEEN_RELOADS = 2.0
"""How often the model files are looked at."""
MAX_DESCRIBED_VALUES = 20
"""Values of a category that `/v1/model` lists."""
Result = TypeVar("Result")
ReportWriter = Callable[[Detector, Table, Float64s | None, Check], bytes]
"""Makes the report of a table as bytes. It is given the detector, the table, its p-values and its check."""


class Endpoints:
    """What the endpoints share."""

    def __init__(
        self, models: Models, limits: Limits, metrics: Metrics, token: str | None, write_report: ReportWriter | None
    ) -> None:
        self.models = models
        self.write_report = write_report
        self.limits = limits
        self.metrics = metrics
        self.has_token = token is not None

    def served(self, request: Request) -> Served:
        """Return the model that a request asks for."""
        name = request.query_params.get("model") if request.scope["query_string"] else None
        found = self.models.get(name)
        if found is None and name is None:
            raise RequestError(
                422, "This server has several models: name one, as in ?model=NAME; /v1/models lists them."
            )
        if found is None:
            raise RequestError(404, "There is no model of this name: /v1/models lists those that there are.")
        return found

    async def table(self, request: Request, work: Callable[[Served, Table], Result]) -> tuple[Served, Result]:
        """Read the table of a request and do something with it."""
        served = self.served(request)
        kind = media_type(request.headers.get("content-type", ""))
        body = await read_body(request, self.limits)

        def read_and_work() -> Result:
            try:
                table = read_table(body, kind, served, self.limits)
                request.state.rows = len(table)
                return work(served, table)
            except RGLDError as error:
                raise RequestError(422, " ".join(str(error).split())) from None
            except MemoryError:
                raise RequestError(413, "There is not enough memory for this table: send fewer rows.") from None

        if len(body) <= 8 * FEW_CELLS:
            return served, read_and_work()
        return served, await run_in_threadpool(read_and_work)

    async def score(self, request: Request) -> Response:
        """Scores of rows."""
        is_arrow = _wants_arrow(request)
        served, scores = await self.table(request, lambda served, table: served.scores(table))
        above = scores > served.threshold
        self.metrics.scored(served.name, len(scores), int(above.sum()))
        served.bet(scores)
        calibration = served.model.calibration
        p_values = conformal_p_values(calibration, scores) if len(calibration) else None
        if is_arrow:
            columns = {"score": scores, "above_threshold": above}
            return Response(
                arrow_bytes(columns if p_values is None else {**columns, "p_value": p_values}), media_type=ARROW
            )
        content = {
            "model": served.name,
            "version": served.version,
            "threshold": served.threshold,
            "scores": scores.tolist(),
            "above_threshold": above.tolist(),
            "p_values": None if p_values is None else p_values.tolist(),
        }
        return Response(json_bytes(content), media_type=JSON)

    async def explain(self, request: Request) -> Response:
        """Reasons of rows: of all, or of the `top` most anomalous ones."""
        is_arrow = _wants_arrow(request)
        top = request.query_params.get("top")
        if top is not None and not (
            top.isascii() and top.isdigit() and 1 <= int(top[:9]) <= self.limits.explained_rows
        ):
            raise RequestError(422, f"Expected top to be a whole number from 1 to {self.limits.explained_rows}.")
        served, (lines, n_rows) = await self.table(
            request, partial(self._explained, top=None if top is None else int(top))
        )
        if is_arrow:
            columns = {name: [line[name] for line in lines] for name in ("row", "score", "kind")}
            return Response(
                arrow_bytes({**columns, "reasons": ["; ".join(line["reasons"]) for line in lines]}), media_type=ARROW
            )
        content = {
            "model": served.name,
            "version": served.version,
            "threshold": served.threshold,
            "n_rows": n_rows,
            "rows": lines,
        }
        return Response(json_bytes(content), media_type=JSON)

    def _explained(self, served: Served, table: Table, top: int | None) -> tuple[list[dict[str, Any]], int]:
        most = self.limits.explained_rows
        rows = np.arange(len(table))
        if top is not None:
            rows = np.argsort(-served.scores(table), kind="stable")[:top]
        if len(rows) > most:
            raise RequestError(
                413, f"Expected at most {most} rows to explain, got {len(rows):,}: ask for the top ones, as in ?top=20."
            )
        found = served.explained(table.take(rows))
        lines = [
            {
                "row": int(row),
                "score": float(found.anomaly_score[i]),
                "kind": found.kind(i),
                "reasons": found.reasons(i),
                "contributions": dict(zip(found.columns, map(float, found.contributions[i]), strict=True)),
            }
            for i, row in enumerate(rows)
        ]
        return lines, len(table)

    async def check(self, request: Request) -> Response:
        """Whether a table is still like the training table."""
        text = request.query_params.get("alpha", "0.01")
        try:
            alpha = float(text)
        except ValueError:
            alpha = 0.0
        if not 0.0 < alpha < 1.0:
            raise RequestError(422, "Expected alpha to be a number between 0 and 1.")

        def work(served: Served, table: Table) -> dict[str, Any]:
            return served.check(table, served.scores(table), alpha).as_dict()

        served, content = await self.table(request, work)
        return Response(json_bytes({"model": served.name, **content}), media_type=JSON)

    async def report(self, request: Request) -> Response:
        """The report of a table, with what has changed, as one HTML page."""
        if self.write_report is None:
            raise RequestError(404, "This server writes no reports.")
        write = self.write_report

        def work(served: Served, table: Table) -> bytes:
            scores, calibration = served.scores(table), served.model.calibration
            found = served.check(table, scores, 0.01)
            p_values = conformal_p_values(calibration, scores) if len(calibration) else None
            return write(served.detector, table, p_values, found)

        _, content = await self.table(request, work)
        return Response(content, media_type="text/html; charset=utf-8")

    async def model(self, request: Request) -> Response:
        """What a model expects: its columns, and how they are read."""
        served = self.served(request)
        encoding = served.model.encoding
        columns = [
            {
                "name": column.name,
                "kind": column.kind,
                "used": column.kind != "dropped",
                "note": column.note,
                "time_format": column.time_format or None,
                "values": list(column.values[:MAX_DESCRIBED_VALUES]) if column.kind == "category" else None,
            }
            for column in encoding.columns
        ]
        content = {
            "model": served.name,
            "version": served.version,
            "rgld": __version__,
            "training_rows": encoding.n_rows,
            "held_out_rows": len(served.model.calibration),
            "threshold": served.threshold,
            "columns": columns,
        }
        return Response(json_bytes(content), media_type=JSON)

    async def list_models(self, request: Request) -> Response:
        """The names of the models."""
        models = [{"model": name, "version": one.version} for name, one in sorted(self.models.served.items())]
        return Response(json_bytes({"models": models}), media_type=JSON)

    async def alive(self, request: Request) -> Response:
        """The process answers."""
        return Response(b"ok\n", media_type="text/plain")

    async def ready(self, request: Request) -> Response:
        """A model is loaded."""
        if not self.models.served:
            raise RequestError(503, "No model is loaded.")
        return Response(b"ok\n", media_type="text/plain")

    async def show_metrics(self, request: Request) -> Response:
        """Counters for Prometheus."""
        return Response(self.metrics.text(self.models.served.values()), media_type=CONTENT_TYPE)

    async def describe(self, request: Request) -> Response:
        """The endpoints, as OpenAPI."""
        return Response(json_bytes(openapi.description(self.limits, has_token=self.has_token)), media_type=JSON)


def _wants_arrow(request: Request) -> bool:
    """Return whether the answer is to be an Arrow stream; raise if it is to be what cannot be sent."""
    asked = request.headers.get("accept", "*/*")
    if asked in ("*/*", JSON):  # nearly always
        return False
    accepted = [media_type(part) for part in asked.split(",")]
    if ARROW in accepted:
        return True
    if not {JSON, "*/*", "application/*", ""} & set(accepted):
        raise RequestError(406, f"Expected to be asked for {JSON} or {ARROW} in the header Accept.")
    return False


def create_app(
    models: Models,
    limits: Limits | None = None,
    *,
    token: str | None = None,
    host_names: frozenset[str] | None = None,
    log: Callable[[str, dict[str, Any]], None] | None = None,
    write_report: ReportWriter | None = None,
    report_hashes: tuple[str, str] = ("", ""),
) -> Any:
    """Return the ASGI application.

    Parameters
    ----------
    models : Models
        What is served.
    limits : Limits or None
        How much a request may ask for.
    token : str or None
        The token that requests must bring; None for none.
    host_names : set of str or None
        The host names that are answered; None for all.
    log : function or None
        Called with an event and its fields.
    write_report : function or None
        Makes the page of `/v1/report`.
    report_hashes : pair of str
        Hashes of the style sheet and the script of that page.
    """
    limits = limits or Limits()
    metrics = Metrics()
    own = Endpoints(models, limits, metrics, token, write_report)
    routes = [
        Route("/v1/score", own.score, methods=["POST"]),
        Route("/v1/explain", own.explain, methods=["POST"]),
        Route("/v1/check", own.check, methods=["POST"]),
        Route("/v1/report", own.report, methods=["POST"]),
        Route("/v1/model", own.model, methods=["GET"]),
        Route("/v1/models", own.list_models, methods=["GET"]),
        Route("/healthz", own.alive, methods=["GET"]),
        Route("/readyz", own.ready, methods=["GET"]),
        Route("/metrics", own.show_metrics, methods=["GET"]),
        Route("/openapi.json", own.describe, methods=["GET"]),
        *page.routes(page.policy(*report_hashes)),
    ]
    tell = log or (lambda event, fields: None)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async def look() -> None:
            while True:
                await asyncio.sleep(SECONDS_BETWEEN_RELOADS)
                await run_in_threadpool(models.look, tell)

        looking = asyncio.create_task(look())
        yield
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking

    endpoints = {route.path: "POST" if "POST" in (route.methods or ()) else "GET" for route in routes}
    inner = Starlette(routes=routes, lifespan=lifespan)
    # Problems pass through Starlette's own handlers to the gate, which answers them.
    return Gate(inner.router, limits, metrics, endpoints=endpoints, token=token, host_names=host_names, log=log)
