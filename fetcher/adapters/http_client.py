"""One HTTP exchange with a service of the platform: its certificate verified, its answer bounded.

A POST is sent once; of a GET that was hung up on, aiohttp makes a second try by itself.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import aiohttp
import trio

from fetcher.bridge import CancelledInside, asyncio_context, run_asyncio
from fetcher.domain.errors import PortUnavailable

MAX_CALLS: Final = 64
"""At once; more wait for their turn, within their deadline."""
KEEP_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    status: int
    body: bytes = field(repr=False)


class _TooLong(Exception):
    """The answer goes on beyond what is read of it."""


class HttpClient:
    """Open it with :func:`open_http`. Connections are kept for the next call."""

    def __init__(
        self, session: aiohttp.ClientSession, *, max_answer_bytes: int, max_calls: int
    ) -> None:
        self._session = session
        self._max_answer_bytes = max_answer_bytes
        self._turns = trio.CapacityLimiter(max_calls)

    async def call(
        self,
        method: str,
        url: str,
        *,
        deadline_seconds: float,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HttpAnswer:
        """The whole answer, whatever its status; redirects are answers too.

        Raise PortUnavailable: unreachable, untrusted, cut off, too long, or not within
        ``deadline_seconds``, the wait for a turn included. Its text says which, and nothing of the
        request.
        """

        async def exchange() -> HttpAnswer:
            async with self._session.request(
                method, url, headers=headers, data=body, allow_redirects=False
            ) as response:
                read = bytearray()
                async for chunk in response.content.iter_any():
                    read += chunk
                    if len(read) > self._max_answer_bytes:
                        raise _TooLong
                return HttpAnswer(status=response.status, body=bytes(read))

        problem = "no answer in time"
        with trio.move_on_after(deadline_seconds):
            try:
                async with self._turns:
                    return await run_asyncio(exchange)
            except _TooLong:
                problem = "the answer is too long"
            except aiohttp.ClientConnectorCertificateError:
                problem = "its certificate is not trusted"
            except aiohttp.ClientConnectorError:
                problem = "cannot be reached"
            except (aiohttp.ClientError, OSError, ValueError, CancelledInside):
                problem = "the exchange broke off"
        raise PortUnavailable(problem)


@asynccontextmanager
async def open_http(
    *, max_answer_bytes: int, max_calls: int = MAX_CALLS
) -> AsyncGenerator[HttpClient, None]:
    """One pool of connections; making it calls nobody. The environment's proxies are not used.

    An answer that goes on beyond ``max_answer_bytes`` is none.
    """

    def make_session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=max_calls, keepalive_timeout=KEEP_SECONDS),
            # The deadline is the caller's, on trio's clock.
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity"},
            auto_decompress=False,
            trust_env=False,
        )

    async with asyncio_context(make_session) as session:
        yield HttpClient(session, max_answer_bytes=max_answer_bytes, max_calls=max_calls)
