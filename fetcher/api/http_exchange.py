"""How quart serves one request: its own way, with less to do for an answer that is whole."""

from typing import Final

import trio
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable
from quart.typing import ResponseTypes
from quart.utils import encode_headers
from quart.wrappers.response import DataBody, IterableBody
from quart_trio.asgi import TrioASGIHTTPConnection

NO_TIMEOUT: Final = None
"""Quart's own deadline for a whole answer: the server has one for every piece that is sent."""


class HttpExchange(TrioASGIHTTPConnection):
    """Quart-trio's, which would serve in a task beside the one that listens for the client's going
    away, and send head, body and end each for itself."""

    async def __call__(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        request = self._create_request_from_scope(send)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.handle_messages, nursery, request, receive)
            await self.handle_request(nursery, request, send)

    async def _send_response(self, send: ASGISendCallable, response: ResponseTypes) -> None:
        body = response.response
        if isinstance(body, IterableBody):
            # Quart's own way enters it once the head is sent: where that is cancelled or fails, the
            # body would never be closed.
            async with body:
                await super()._send_response(send, response)
            return
        if not isinstance(body, DataBody):
            await super()._send_response(send, response)
            return
        await send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": encode_headers(response.headers),
                "trailers": False,
            }
        )
        piece = body.data[body.begin : body.end]
        await send({"type": "http.response.body", "body": piece, "more_body": False})
