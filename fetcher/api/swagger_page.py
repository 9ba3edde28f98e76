"""The API document as a page: Swagger UI, from files in this package.

The files come from the npm package ``swagger-ui-dist`` (Apache-2.0), fetched by
``scripts/swagger_ui.py``; ``index.html`` and ``start.js`` are ours. Nothing is loaded from
elsewhere, which the page's Content-Security-Policy enforces.
"""

from typing import Final

from fetcher.api.page_files import Page, file_routes
from fetcher.api.routing import Route

# Swagger UI sets styles on its elements and shows icons that lie in its style sheet.
PAGE: Final = Page(
    root="/swagger",
    folder="swagger",
    names=("index.html", "start.js", "swagger-ui.css", "swagger-ui-bundle.js"),
    policy="default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline';"
    " img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    summary="The API document as a page",
)


def swagger_routes() -> list[Route]:
    return file_routes(PAGE)
