"""The page at `/`: drop a file or paste rows, see which stand out and why.

Its files are served as they are. The table goes to this server and nowhere else: a content security policy forbids the
page to ask anything of another.
"""

from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}


def policy(style_hash: str = "", script_hash: str = "") -> str:
    """Return the content security policy: what the page may load. A report that it opens inherits the policy, so that
    the report's own style sheet and script are allowed by their hashes."""
    style, script = (f" '{one}'" if one else "" for one in (style_hash, script_hash))
    return (
        f"default-src 'none'; script-src 'self'{script}; style-src 'self'{style}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def routes(allowed: str) -> list[Route]:
    """Return the routes of the page's files; `allowed` is their policy."""
    return [Route(path, _sender(*file, allowed), methods=["GET"]) for path, file in FILES.items()]


def _sender(name: str, media_type: str, allowed: str) -> Callable[[Request], Awaitable[Response]]:
    content = files(__package__).joinpath(name).read_bytes()

    async def send(request: Request) -> Response:
        return Response(content, media_type=media_type, headers={"Content-Security-Policy": allowed})

    return send
