"""Bodies: the bytes of a request, no more of them than allowed, and no slower than allowed.

In: a request. Out: its body, unpacked. The length is looked at before the first byte, and again while bytes come in.
"""

import asyncio
import zlib

from starlette.requests import ClientDisconnect, Request

from .limits import Limits
from .problems import RequestError

GZIP = 16 + zlib.MAX_WBITS
"""Tells zlib to expect gzip."""


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request."""
    declared = request.headers.get("content-length")
    if declared is not None and (not declared.isdigit() or int(declared) > limits.body_bytes):
        raise _too_large(limits.body_bytes)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", ""):
        raise RequestError(
            415, f"Expected a body as it is or in gzip, got Content-Encoding {encoding[:40]!r}: send it in gzip."
        )
    chunks, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limits.body_bytes:
                    raise _too_large(limits.body_bytes)
                chunks.append(chunk)
    except TimeoutError:
        raise RequestError(
            408,
            f"Expected the whole body within {limits.body_seconds:g} seconds: send fewer rows, or faster.",
            {"Connection": "close"},
        ) from None
    except ClientDisconnect:
        raise RequestError(400, "The connection was closed before the body was complete: send it again.") from None
    body = b"".join(chunks)
    body = unpacked(body, limits) if encoding == "gzip" else body
    if not body:
        raise RequestError(400, "Expected a table in the body, got none: send JSON rows, CSV or an Arrow stream.")
    return body


def unpacked(body: bytes, limits: Limits) -> bytes:
    """Return a gzip body unpacked. It is never unpacked further than allowed, however small it is packed."""
    unpack = zlib.decompressobj(GZIP)
    try:
        content = unpack.decompress(body, limits.unpacked_bytes + 1)
    except zlib.error:
        raise RequestError(400, "Expected a body in gzip, got something else: pack it again.") from None
    if len(content) > limits.unpacked_bytes:
        raise _too_large(limits.unpacked_bytes, "unpacked ")
    if not unpack.eof or unpack.unused_data:
        raise RequestError(400, "Expected one whole gzip stream, got a cut one or something after it: pack it again.")
    return content


def _too_large(most: int, what: str = "") -> RequestError:
    return RequestError(
        413,
        f"Expected a body of at most {most:,} {what}bytes, got more: send the rows in several requests.",
        {"Connection": "close"},
    )
