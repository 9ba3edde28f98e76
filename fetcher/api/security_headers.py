"""Headers that keep browsers from doing more with an answer than showing it to who asked."""

from typing import Final

from hypercorn.typing import ASGISendEvent, Scope

from fetcher.api.asgi import CONTENT_SECURITY_POLICY, AsgiApp, Receive, Send

_NEVER: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)
_UNLESS_SAID: Final = (
    (
        CONTENT_SECURITY_POLICY.lower().encode(),
        b"default-src 'none'; frame-ancestors 'none'",
    ),
    (b"cache-control", b"no-store"),
)


class SecurityHeaders:
    """Adds them to every answer; a route that needs another policy or may be cached says so."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(event: ASGISendEvent) -> None:
            if event["type"] == "http.response.start":
                said = {name.lower() for name, _ in event["headers"]}
                added = [(name, text) for name, text in _UNLESS_SAID if name not in said]
                event["headers"] = [*event["headers"], *_NEVER, *added]
            await send(event)

        await self._app(scope, receive, send_guarded)
