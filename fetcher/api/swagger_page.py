"""The API document as a page: Swagger UI, from files in this package.

The files come from the npm package ``swagger-ui-dist`` (Apache-2.0), fetched by
``scripts/swagger_ui.py``; ``index.html`` and ``start.js`` are ours. Nothing is loaded from
elsewhere, which the page's Content-Security-Policy enforces.
"""

from importlib.resources import files
from types import MappingProxyType
from typing import Final

from quart import Response

from fetcher.api.asgi import CONTENT_SECURITY_POLICY
from fetcher.api.routing import Route, Success

ROOT: Final = "/swagger"
FILES: Final = MappingProxyType(
    {
        "index.html": "text/html; charset=utf-8",
        "start.js": "text/javascript; charset=utf-8",
        "swagger-ui.css": "text/css; charset=utf-8",
        "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    }
)
# Swagger UI sets styles on its elements and shows icons that lie in its style sheet.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def swagger_routes() -> list[Route]:
    """One route a file: no path of the caller's ever names a file."""
    return [_route(name, media_type) for name, media_type in FILES.items()]


def _route(name: str, media_type: str) -> Route:
    content = files("fetcher.api").joinpath("swagger", name).read_bytes()
    headers = {CONTENT_SECURITY_POLICY: POLICY, "Cache-Control": "public, max-age=3600"}

    async def serve() -> Response:
        return Response(content, content_type=media_type, headers=headers)

    return Route(
        method="GET",
        path=f"{ROOT}/{name}",
        name=f"swagger_{name.replace('-', '_').replace('.', '_')}",
        summary="The API document as a page",
        tag="System",
        handler=serve,
        successes={200: Success(description="A file of the page", media_type=media_type)},
        in_document=False,
    )
