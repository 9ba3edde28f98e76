"""Pages that lie in this package as files: one route a file, and nothing loaded from elsewhere."""

import gzip
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final

from quart import Response, request

from fetcher.api.asgi import CONTENT_SECURITY_POLICY
from fetcher.api.routing import Route, Success

_MEDIA_TYPES: Final = MappingProxyType(
    {
        "html": "text/html; charset=utf-8",
        "js": "text/javascript; charset=utf-8",
        "css": "text/css; charset=utf-8",
        "svg": "image/svg+xml",
        "txt": "text/plain; charset=utf-8",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The ``names`` of a ``folder`` of this package, served below ``root`` under a ``policy``
    (Content-Security-Policy). No path of the caller's ever names a file."""

    root: str
    folder: str
    names: tuple[str, ...]
    policy: str
    summary: str


def file_routes(page: Page) -> list[Route]:
    return [_route(page, name) for name in page.names]


def media_type(name: str) -> str:
    return _MEDIA_TYPES[name.rpartition(".")[2]]


def page_route(
    *, path: str, name: str, summary: str, serves: str, handler: Callable[[], Awaitable[Response]]
) -> Route:
    """A route of a page, which is no part of the API document; ``serves`` is its media type."""
    return Route(
        method="GET",
        path=path,
        name=name,
        summary=summary,
        tag="System",
        handler=handler,
        successes={200: Success(description="A file of the page", media_type=serves)},
        in_document=False,
    )


@cache
def _read(folder: str, name: str) -> tuple[bytes, bytes, str]:
    """A file's content, the same by gzip, and its tag. Once a process, whose files do not change:
    tests make thousands of applications."""
    content = files("fetcher.api").joinpath(folder, name).read_bytes()
    # level 6: the largest file takes the start 40 ms
    return content, gzip.compress(content, 6, mtime=0), hashlib.sha256(content).hexdigest()[:32]


def _route(page: Page, name: str) -> Route:
    content, packed, etag = _read(page.folder, name)
    kind = media_type(name)

    async def serve() -> Response:
        # asked again each time, since a new version has the same addresses (RFC 9111, 5.2.2.4)
        headers = {
            CONTENT_SECURITY_POLICY: page.policy,
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
        }
        takes_packed = request.accept_encodings.quality("gzip") > 0
        response = Response(packed if takes_packed else content, content_type=kind, headers=headers)
        if takes_packed:
            response.headers["Content-Encoding"] = "gzip"
        response.set_etag(etag, weak=True)
        await response.make_conditional(request)
        return response

    return page_route(
        path=f"{page.root}/{name}",
        name=f"{page.folder}_{name.replace('-', '_').replace('.', '_')}",
        summary=page.summary,
        serves=kind,
        handler=serve,
    )
