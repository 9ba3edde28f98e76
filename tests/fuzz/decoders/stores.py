"""What the object store and Redis answer. Their drivers read it, on our behalf: what these raise is
named in our words. HTTP's heads are aiohttp's."""

import asyncio
import io
import warnings
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final, cast

import trio
from aiobotocore.awsrequest import AioAWSResponse
from botocore.compat import HTTPHeaders
from dateutil.parser import UnknownTimezoneWarning  # type: ignore[import-untyped]
from redis._parsers.encoders import Encoder
from trio.testing import MockClock

from fetcher.adapters.redis.address import RedisAddress
from fetcher.adapters.redis.subscriber import Subscriber, _BoundedParser
from fetcher.adapters.s3.failures import StoreFailure
from fetcher.adapters.s3.lifecycle import expiry_rule
from fetcher.adapters.s3.location import S3Location
from fetcher.adapters.s3.store import S3ObjectStore, open_s3
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortError
from tests.fuzz.decoders.decoder import Decoder, text_of

_LOCATION: Final = S3Location(
    bucket="b", endpoint="http://s3.test", access_key_id="a", secret_key="b", path_style=True
)
_RULES: Final = b"""<LifecycleConfiguration><Rule><ID>r</ID><Status>Enabled</Status><Filter><Prefix>
</Prefix></Filter><Expiration><Days>3</Days></Expiration></Rule><Rule><ID>s</ID><Status>Enabled
</Status><Filter><And><Prefix>a</Prefix></And></Filter><Expiration><Date>2031-04-05T00:00:00Z</Date>
</Expiration></Rule></LifecycleConfiguration>"""
_UPLOADS: Final = b"""<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k
</NextKeyMarker><NextUploadIdMarker>1</NextUploadIdMarker><Upload><Key>k</Key><UploadId>1</UploadId>
<Initiated>2031-04-05T00:00:00Z</Initiated></Upload></ListMultipartUploadsResult>"""
_ERROR: Final = b"<Error><Code>NoSuchBucket</Code><Message>m</Message></Error>"
_HEAD: Final = b"Content-Length: 3\nLast-Modified: Sat, 05 Apr 2031 06:07:08 GMT\n\n"
_ENCODER: Final = Encoder("utf-8", "strict", decode_responses=False)  # type: ignore[no-untyped-call]  # untyped library

_Ask = Callable[[S3ObjectStore], Awaitable[object]]


def decoders() -> dict[str, Decoder]:
    refusals = (PortError, StoreFailure)
    return {
        "bucket's rules": Decoder(
            seeds=[b"200\n\n" + _RULES, b"404\n\n" + _ERROR],
            decode=_answer_to(_rules),
            refusals=refusals,
        ),
        "unfinished uploads": Decoder(
            seeds=[b"200\n\n" + _UPLOADS.replace(b"true", b"false"), b"403\n\n" + _ERROR],
            decode=_answer_to(lambda store: store._object("k").unfinished_uploads()),
            refusals=refusals,
        ),
        "object's head": Decoder(
            seeds=[b"200\n" + _HEAD, b"404\n\n"],
            decode=_answer_to(_head),
            refusals=refusals,
        ),
        "Redis' events": Decoder(
            seeds=[
                b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\n{}\r\n",
                b"+PONG\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n:7\r\n",
                b"-ERR no\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
            ],
            decode=lambda data: _run(_hear, data),
            refusals=(PortError,),
        ),
    }


def _run(ask: Callable[[bytes], Awaitable[None]], data: bytes) -> None:
    """Waits between tries take no time. What is raised goes past the loop's nurseries."""

    async def main() -> Exception | None:
        async with open_asyncio(_is_told):
            try:
                await ask(data)
            except Exception as error:  # noqa: BLE001 - raised below
                return error
        return None

    raised = trio.run(main, clock=MockClock(autojump_threshold=0))
    if raised is not None:
        raise raised


def _is_told(stray: str) -> None:
    raise AssertionError(stray)


def _answer_to(ask: _Ask) -> Callable[[bytes], object]:
    """A status, headers, a blank line and a body are what the first two requests get, whichever
    they are; the others are refused, so that nobody asks for long."""
    opened: list[S3ObjectStore] = []

    async def asked(data: bytes) -> None:
        if not opened:
            # made once; without a connection nothing of it belongs to this loop
            async with open_s3(_LOCATION) as store:
                opened.append(store)
        client: Any = opened[0]._client
        client.meta.events.register("before-send.s3", _saying(data), unique_id="fuzz")
        try:
            with warnings.catch_warnings():
                # told by the driver's parser of times, and no failure where warnings are none
                warnings.simplefilter("ignore", UnknownTimezoneWarning)
                await ask(opened[0])
        finally:
            client.meta.events.unregister("before-send.s3", unique_id="fuzz")

    return lambda data: _run(asked, data)


def _saying(data: bytes) -> Callable[..., AioAWSResponse]:
    head, _, body = data.partition(b"\n\n")
    first, *lines = text_of(head).split("\n")
    status = int(first) if len(first) == 3 and first.isdecimal() and first.isascii() else 200
    headers = HTTPHeaders()
    for line in lines:
        name, _, value = line.partition(":")
        headers[name] = value.strip()

    left = [None] * 2

    def answer(request: Any, **_: object) -> AioAWSResponse:
        if not left:
            return AioAWSResponse(request.url, 403, HTTPHeaders(), _Body(b""))
        left.pop()
        return AioAWSResponse(request.url, status, headers, _Body(body))

    return answer


class _Body:
    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    async def read(self) -> bytes:
        return self._data.read()


async def _rules(store: S3ObjectStore) -> None:
    """Judged for both ends that they may have."""
    rule = expiry_rule("", days=30, now=datetime(2030, 12, 1, tzinfo=UTC))
    await store.lifecycle().expiring_results("")
    await store.lifecycle().settle(rule, create=True)


async def _head(store: S3ObjectStore) -> None:
    await store.size("k")
    await store.probe().check()


async def _hear(data: bytes) -> None:
    """All that comes; the end of it is a lost connection."""
    subscriber = Subscriber(RedisAddress(host="h"), "c")
    parser = _BoundedParser(1 << 16)

    async def read_response(timeout: float) -> object:  # noqa: ASYNC109 - the driver's own name
        if parser._stream is None:
            reader = asyncio.StreamReader()
            reader.feed_data(data)
            reader.feed_eof()
            connection = SimpleNamespace(_reader=reader, encoder=_ENCODER)
            parser.on_connect(connection)  # type: ignore[no-untyped-call]  # untyped library
        return await parser.read_response()

    async def send_command(*_: str) -> None:
        pass

    stand_in = SimpleNamespace(read_response=read_response, send_command=send_command)
    subscriber._connection = cast("Any", stand_in)
    heard = 0
    try:
        while True:
            assert isinstance(await subscriber.next_message(), bytes)
            heard += 1
    except PortError:
        if not heard:
            raise
