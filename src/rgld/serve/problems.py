"""Problems: what is wrong with a request, as `application/problem+json` (RFC 9457).

Every sentence says what was expected, what came and what to do. No traceback and no path of the server is ever part of
one.
"""

import json
from typing import Any

from starlette.responses import Response

PROBLEM = "application/problem+json"
TITLES = {
    400: "The request cannot be read",
    401: "A token is needed",
    403: "This host name is not served",
    404: "There is no such thing here",
    405: "The method is not allowed",
    406: "This format cannot be sent",
    408: "The request took too long",
    411: "A length is needed",
    413: "The request is too large",
    415: "This format cannot be read",
    422: "The table does not fit the model",
    429: "Too many requests at once",
    500: "A defect of the server",
    503: "The server is not ready",
}


class RequestError(Exception):
    """A request that cannot be answered, with what to tell the client."""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers or {}
        self.more = more

    def content(self) -> bytes:
        """Return the body to send."""
        content = {
            "type": "about:blank",
            "title": TITLES.get(self.status, "The request failed"),
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }
        return json.dumps(content).encode()

    def response(self) -> Response:
        """Return the response to send."""
        return Response(self.content(), self.status, self.headers, media_type=PROBLEM)
