"""One connection that only listens: what it hears is bounded, and its silence is noticed."""

from typing import Final

from redis._parsers import _AsyncRESP2Parser
from redis.asyncio import Connection
from redis.exceptions import InvalidResponse

from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.client import connection_class
from fetcher.adapters.redis.failures import call_redis
from fetcher.domain.errors import PortUnavailable

SUBSCRIBE_SECONDS: Final = 5.0
"""Connecting and logging in included."""
QUIET_SECONDS: Final = 10.0
"""After so long without a word the server is asked, and has as long again to answer."""
SEND_SECONDS: Final = 2.0
MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""More than any event of ours. Whoever may publish could send 512 MB at once."""


class _BoundedParser(_AsyncRESP2Parser):
    async def _read(self, length: int) -> bytes:
        if not 0 <= length <= MAX_MESSAGE_BYTES:
            raise InvalidResponse("a message is too large")
        return await super()._read(length)


class Subscriber:
    """Hears one channel, on a connection that is never renewed: whoever listens has to know that
    messages were missed.

    An asyncio context manager, to be made inside the asyncio room; its methods are trio's.
    """

    def __init__(self, address: RedisAddress, channel: str) -> None:
        self._channel = channel.encode()
        kind, settings = connection_class(address)
        self._connection: Connection = kind(**settings, parser_class=_BoundedParser)
        self._is_asked = False

    async def __aenter__(self) -> "Subscriber":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.disconnect(nowait=True)

    async def subscribe(self) -> None:
        """Return once every later message will be heard. Raise PortUnavailable."""
        answer = await call_redis(SUBSCRIBE_SECONDS, self._subscribe)
        if not (isinstance(answer, list) and answer[:2] == [b"subscribe", self._channel]):
            raise PortUnavailable("redis refused the operation")

    async def next_message(self) -> bytes:
        """Wait for the next one, as long as it takes. Raise PortUnavailable once the connection is
        lost: at the latest 22 s after the server has last been heard."""
        while True:
            answer = await call_redis(
                QUIET_SECONDS + SEND_SECONDS, self._connection.read_response, timeout=QUIET_SECONDS
            )
            if answer is None:
                await self._ask()
                continue
            self._is_asked = False
            if isinstance(answer, list) and answer[:2] == [b"message", self._channel]:
                body = answer[-1]
                return body if isinstance(body, bytes) else b""

    async def _ask(self) -> None:
        if self._is_asked:
            raise PortUnavailable("redis did not answer in time: timeout")
        self._is_asked = True
        await call_redis(SEND_SECONDS, self._connection.send_command, "PING")

    async def _subscribe(self) -> object:
        await self._connection.connect()  # type: ignore[no-untyped-call]  # untyped library
        await self._connection.send_command("SUBSCRIBE", self._channel)
        answer: object = await self._connection.read_response()
        return answer
