"""Sealed results on their way from the store to a client, chunk by chunk."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import trio
from quart import Response
from werkzeug.datastructures import Headers

from fetcher.api.stream_places import StreamPlaces
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
    """Opens streams, at most so many at a time: each holds a connection of the store."""

    def __init__(self, *, at_most: int) -> None:
        self._places = StreamPlaces(at_most=at_most, refusal="Too many result streams")

    def open(self, stored: StoredResult, *, head_only: bool) -> Response:
        """The sealed bytes as the store has them. Raise TooManyStreams."""
        self._places.check()
        # Bytes would make the framework set a Content-Length of its own; it fails on an empty list.
        body = _no_body() if head_only else _ResultStream(stored, self._places)
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

    def __init__(self, stored: StoredResult, places: StreamPlaces) -> None:
        self._stored = stored
        self._places = places
        self._closing = AsyncExitStack()
        self._chunks: AsyncIterator[bytes] | None = None

    def __aiter__(self) -> "_ResultStream":
        return self

    async def __anext__(self) -> bytes:
        with trio.move_on_after(CHUNK_SECONDS):
            if self._chunks is None:
                self._places.take()
                self._closing.callback(self._places.leave)
                found = self._stored
                reading = found.objects.read(found.facts.path)
                try:
                    self._chunks = await self._closing.enter_async_context(reading)
                except ObjectNotFound:
                    raise ResultGone from None
            return await anext(self._chunks)
        raise PortUnavailable("the object store did not send in time")

    async def aclose(self) -> None:
        """Called by the framework at the end, however it comes."""
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
