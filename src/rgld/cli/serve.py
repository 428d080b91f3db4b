"""`rgld serve`: a model behind HTTP."""

import os
from importlib.util import find_spec
from typing import Annotated

import typer

from rgld.exceptions import ParameterError

from ._options import Jobs, ModelFile

TOKEN_VARIABLE = "RGLD_TOKEN"
MIN_TOKEN = 16
"""Characters of a token: a shorter one could be guessed."""
MAX_TOKEN_FILE_BYTES = 2**16
MIB = 2**20

Folder = Annotated[
    str | None, typer.Option("--models", help="A folder of model files NAME.rgld, each served by its name.")
]
Host = Annotated[
    str, typer.Option("--host", help="Address to listen at; one that other machines can reach needs a token.")
]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen at; 0 for a free one.")]
TokenFile = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        help=f"File with the token that requests must have; the variable {TOKEN_VARIABLE} may hold the token instead.",
    ),
]
NoToken = Annotated[bool, typer.Option("--no-token", help="Let other machines send requests without a token.")]
NoLog = Annotated[bool, typer.Option("--quiet", "-q", help="Write no log line for each request.")]
MaxBody = Annotated[float, typer.Option("--max-body", min=0.001, help="Largest size of a request, in MiB.")]
MaxRows = Annotated[int, typer.Option("--max-rows", min=1, help="Largest number of rows in a request.")]
MaxCells = Annotated[int, typer.Option("--max-cells", min=1, help="Largest number of cells in a request.")]
MaxRequests = Annotated[int, typer.Option("--max-requests", min=1, help="Largest number of requests at once.")]


def serve(
    model: ModelFile = None,
    models: Folder = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    token_file: TokenFile = None,
    no_token: NoToken = False,
    quiet: NoLog = False,
    jobs: Jobs = None,
    max_body: MaxBody = 32.0,
    max_rows: MaxRows = 100_000,
    max_cells: MaxCells = 5_000_000,
    max_requests: MaxRequests = 64,
) -> None:
    """Answer requests over HTTP: scores, explanations, checks, metrics, and a page to drop a file on.

    Log lines are JSON on standard error, without values of tables. A model file that is replaced is picked up.
    """
    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "prometheus_client")):
        raise ParameterError("`rgld serve` needs the 'serve' extra: pip install 'rgld[serve]'.")
    from rgld.report import policy_hashes, report_page
    from rgld.serve.app import create_app
    from rgld.serve.gate import LOCAL_NAMES, is_loopback, log
    from rgld.serve.limits import Limits
    from rgld.serve.models import Models
    from rgld.serve.server import run

    token = _token(token_file)
    is_local = is_loopback(host)
    if token is None and not is_local and not no_token:
        raise ParameterError(
            f"--host {host} lets other machines ask: pass --token-file, set {TOKEN_VARIABLE}, or pass --no-token."
        )
    limits = Limits(
        body_bytes=int(max_body * MIB),
        unpacked_bytes=int(4 * max_body * MIB),
        rows=max_rows,
        cells=max_cells,
        requests=max_requests,
    )
    served = Models.of(model, models, jobs)
    for one in served.served.values():
        log("model loaded", {"model": one.name, "version": one.version})
    app = create_app(
        served,
        limits,
        token=token,
        host_names=LOCAL_NAMES if is_local else None,
        log=None if quiet else log,
        write_report=report_page,
        report_hashes=policy_hashes(),
    )
    run(app, host, port, limits)


def _token(path: str | None) -> str | None:
    """Return the token of a file, or of the environment."""
    if path is not None:
        with open(path, "rb") as file:  # of a device, no more than this
            token = file.read(MAX_TOKEN_FILE_BYTES).decode("utf-8", "replace").strip()
    elif TOKEN_VARIABLE in os.environ:
        token = os.environ[TOKEN_VARIABLE].strip()
    else:
        return None
    if len(token) < MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise ParameterError(
            f"Expected a token of at least {MIN_TOKEN} characters without blanks: make one, for example with "
            "`openssl rand -hex 24`."
        )
    return token
