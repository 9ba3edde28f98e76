"""Sealed results on their way from the store to a client, chunk by chunk."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import trio
from quart import Response
from werkzeug.datastructures import Headers

from fetcher.api.stream_places import StreamPlaces
from fetcher.commands.audit import Deed
from fetcher.domain.errors import ObjectNotFound, PortUnavailable
from fetcher.domain.stored_results import ResultGone
from fetcher.queries.stored_result import StoredResult

CONTENT_TYPE: Final = "application/octet-stream"
HMAC: Final = "X-Fetcher-Result-Hmac"
SIZE: Final = "X-Fetcher-Result-Size"
KEY_VERSION: Final = "X-Fetcher-Result-Key-Version"
CHUNK_SECONDS: Final = 60.0
"""How long the store may take for a chunk; the server has its own deadline for the client."""


class ResultStreams:
    """Opens streams, as many at a time as there are places: each holds a connection of the
    store."""

    def __init__(self, places: StreamPlaces) -> None:
        self._places = places

    def open(self, stored: StoredResult, deed: Deed) -> Response:
        """The sealed bytes as the store has them. ``deed`` ends when the store has sent the first
        of them, or has not, or when the answer is given up ahead of that. Raise TooManyStreams."""
        return self._answer(stored, _ResultStream(stored, self._places, deed))

    def head(self, stored: StoredResult) -> Response:
        """What :meth:`open` tells ahead of the bytes. Raise TooManyStreams."""
        # Bytes would make the framework set a Content-Length of its own; it fails on an empty list.
        return self._answer(stored, _no_body())

    def _answer(self, stored: StoredResult, body: AsyncIterator[bytes]) -> Response:
        self._places.check()
        response = Response(body, content_type=CONTENT_TYPE, headers=_headers(stored))
        # The framework's own limit is for small answers; each chunk has its deadline.
        response.timeout = None
        return response


async def _no_body() -> AsyncIterator[bytes]:
    nothing: tuple[bytes, ...] = ()
    for chunk in nothing:
        yield chunk


class _ResultStream:
    """The object is opened with the first chunk, from where on aclose() is certain to follow.

    An object that was deleted since is FET-1024. A store that fails under way ends the answer short
    of its Content-Length, which tells the client that it has only a part.
    """

    def __init__(self, stored: StoredResult, places: StreamPlaces, deed: Deed) -> None:
        self._stored = stored
        self._places = places
        self._deed = deed
        self._closing = AsyncExitStack()
        self._chunks: AsyncIterator[bytes] | None = None
        self._is_begun = False

    def __aiter__(self) -> "_ResultStream":
        return self

    async def __anext__(self) -> bytes:
        if not self._is_begun:
            self._is_begun = True
            async with self._deed:
                chunk = await self._next()
        else:
            chunk = await self._next()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def _next(self) -> bytes | None:
        """None at the end."""
        with trio.move_on_after(CHUNK_SECONDS):
            if self._chunks is None:
                self._chunks = await self._opened()
            return await anext(self._chunks, None)
        raise PortUnavailable("the object store did not send in time")

    async def _opened(self) -> AsyncIterator[bytes]:
        self._places.take()
        self._closing.callback(self._places.leave)
        reading = self._stored.objects.read(self._stored.facts.path)
        try:
            return await self._closing.enter_async_context(reading)
        except ObjectNotFound:
            raise ResultGone from None

    async def aclose(self) -> None:
        """Called by the framework at the end, however it comes: also ahead of the first chunk."""
        if not self._is_begun:
            self._is_begun = True
            await self._deed.drop()
        await self._closing.aclose()


def _headers(stored: StoredResult) -> Headers:
    facts = stored.facts
    headers = Headers(
        {
            "Content-Length": str(stored.stored_bytes),
            "Cache-Control": "no-store",
            SIZE: str(facts.size_bytes),
        }
    )
    for name, text in ((HMAC, facts.hmac), (KEY_VERSION, facts.key_version)):
        # A record may hold any text, a header may not.
        if text and text.isascii() and text.isprintable():
            headers[name] = text
    return headers
