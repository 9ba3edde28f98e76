"""The console: a page that shows and does by the public API what an analyst and an operator need.

Its files are built from ``console/`` by ``make console`` and committed; it has no script or style
of another place, nor any in the page itself.
"""

from typing import Final

from quart import Response, request

from fetcher.api.page_files import Page, file_routes, page_route
from fetcher.api.routing import Route

PAGE: Final = Page(
    root="/console",
    folder="console",
    names=("index.html", "console.js", "console.css", "icon.svg", "LICENSES.txt"),
    policy="default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    summary="The console",
)


def console_routes() -> list[Route]:
    return [_entrance(), *file_routes(PAGE)]


def _entrance() -> Route:
    async def enter() -> Response:
        # relative, so that it holds behind a proxy that serves us below a path of its own
        here = "" if request.path.endswith("/") else "console/"
        return Response(b"", status=307, headers={"Location": f"{here}index.html"})

    return page_route(
        path=PAGE.root,
        name="console",
        summary="To the console",
        serves="text/html; charset=utf-8",
        handler=enter,
    )
