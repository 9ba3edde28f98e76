"""Cross-origin requests (spec rest-api 2.3)."""

from hypercorn.typing import ASGISendEvent, HTTPScope, Scope

from fetcher.api.asgi import AsgiApp, Receive, Send, header

ANY_ORIGIN = "*"
ALLOWED_METHODS = b"GET,POST,HEAD,PUT,DELETE,PATCH"
EXPOSED_HEADERS = (
    b"X-Request-Id, Location, Retry-After, "
    b"X-Fetcher-Result-Hmac, X-Fetcher-Result-Size, X-Fetcher-Result-Key-Version"
)
_PREFLIGHT_VARY = b"Access-Control-Request-Method, Access-Control-Request-Headers"


class Cors:
    """Answers preflights; the allowed origins may read answers and the headers that matter."""

    def __init__(self, app: AsgiApp, *, origins: tuple[str, ...]) -> None:
        self._app = app
        self._any = ANY_ORIGIN in origins
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        wanted = header(scope, b"access-control-request-method")
        if scope["method"] == "OPTIONS" and wanted is not None:
            await _preflight(scope, send, self._granted(scope))
            return
        granted = self._granted(scope)
        if not granted:
            await self._app(scope, receive, send)
            return

        async def send_granted(event: ASGISendEvent) -> None:
            if event["type"] == "http.response.start":
                exposed = (b"access-control-expose-headers", EXPOSED_HEADERS)
                event["headers"] = [*event["headers"], *granted, exposed]
            await send(event)

        await self._app(scope, receive, send_granted)

    def _granted(self, scope: HTTPScope) -> list[tuple[bytes, bytes]]:
        origin = header(scope, b"origin")
        if origin is None:
            return []
        if self._any:
            return [(b"access-control-allow-origin", b"*")]
        if origin not in self._origins:
            return []
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"vary", b"Origin"),
        ]


async def _preflight(scope: HTTPScope, send: Send, granted: list[tuple[bytes, bytes]]) -> None:
    headers = [*granted, (b"vary", _PREFLIGHT_VARY)]
    if granted:
        headers.append((b"access-control-allow-methods", ALLOWED_METHODS))
        asked = header(scope, b"access-control-request-headers")
        if asked:
            headers.append((b"access-control-allow-headers", asked.encode("latin-1")))
    await send(
        {"type": "http.response.start", "status": 204, "headers": headers, "trailers": False}
    )
    await send({"type": "http.response.body", "body": b"", "more_body": False})
