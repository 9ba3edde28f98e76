"""A proxy that knows what S3's requests ask for, and makes one of them fail.

What came before the fault has reached the store; its own request has or has not, as the fault says.
"""

import socket
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qs, urlsplit

import h11
import trio

CHUNK_BYTES: Final = 65_536
CONNECT_SECONDS: Final = 10.0
GONE: Final = (
    OSError,
    trio.BrokenResourceError,
    trio.ClosedResourceError,
    h11.RemoteProtocolError,
)


class S3Call(StrEnum):
    CREATE = "create an upload"
    PART = "send part"
    COMPLETE = "complete"
    ABORT = "abort"
    PUT = "put"
    DELETE = "delete"
    OTHER = "look"


class S3Fault(StrEnum):
    """Those that begin with "done" take effect first."""

    INTERNAL_ERROR = "500"
    SLOW_DOWN = "503 `SlowDown`"
    BAD_DIGEST = "400 `BadDigest`"
    TORN = "cut amid its body"
    RESET = "reset"
    ERROR_IN_200 = "200 with an error in it"
    DONE_500 = "done, then 500"
    DONE_CUT = "done, then cut"
    DONE_TORN = "done, then cut amid the answer"
    DONE_ERROR_IN_200 = "done, then 200 with an error in it"
    WRONG_ETAG = "done, with a wrong ETag"


ERRORS: Final[Mapping[S3Fault, tuple[int, str]]] = {
    S3Fault.INTERNAL_ERROR: (500, "InternalError"),
    S3Fault.SLOW_DOWN: (503, "SlowDown"),
    S3Fault.BAD_DIGEST: (400, "BadDigest"),
    S3Fault.ERROR_IN_200: (200, "InternalError"),
    S3Fault.DONE_500: (500, "InternalError"),
    S3Fault.DONE_ERROR_IN_200: (200, "InternalError"),
}
WITHOUT_EFFECT: Final = frozenset(
    {
        S3Fault.INTERNAL_ERROR,
        S3Fault.SLOW_DOWN,
        S3Fault.BAD_DIGEST,
        S3Fault.TORN,
        S3Fault.RESET,
        S3Fault.ERROR_IN_200,
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class S3FaultProxy:
    """``port`` of the loopback address leads to the store. A connection serves one request."""

    def __init__(self, host: str, port: int) -> None:
        self.upstream = (host, port)
        self.struck = 0
        """How many requests met the fault since it was armed."""
        self._call = S3Call.OTHER
        self._fault: S3Fault | None = None
        self._wanted = range(0)
        self._seen = 0
        listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = listening.getsockname()[1]
        self._listener = trio.SocketListener(trio.socket.from_stdlib_socket(listening))

    def arm(self, call: S3Call, fault: S3Fault | None, *, nth: int = 1, times: int = 1) -> None:
        """The ``nth`` such call from now on meets the fault, from 1, and the ``times`` - 1 after
        it."""
        self._call, self._fault = call, fault
        self._wanted = range(nth, nth + times)
        self._seen = self.struck = 0

    async def run(self) -> None:
        """Serve until cancelled."""
        await trio.serve_listeners(self._serve, [self._listener])

    async def _serve(self, client: trio.SocketStream) -> None:
        with suppress(*GONE):
            async with client:
                asking = h11.Connection(h11.SERVER)
                request = await _next_event(asking, client)
                if isinstance(request, h11.Request):
                    await self._serve_one(client, asking, request)

    async def _serve_one(
        self, client: trio.SocketStream, asking: h11.Connection, request: h11.Request
    ) -> None:
        fault = self._fault_of(request)
        if asking.they_are_waiting_for_100_continue:
            go_on = h11.InformationalResponse(status_code=100, headers=[])
            await client.send_all(asking.send(go_on) or b"")
        if fault is S3Fault.TORN:
            await _next_event(asking, client)
        if fault in (S3Fault.RESET, S3Fault.TORN):
            _reset_at_close(client)
            return
        answer = await self._answer(request, await _body(asking, client), fault)
        if answer is not None:
            is_torn = fault is S3Fault.DONE_TORN
            await client.send_all(_bytes_of(asking, answer, is_torn=is_torn))

    async def _answer(
        self, request: h11.Request, body: bytes, fault: S3Fault | None
    ) -> Answer | None:
        """None where the connection is closed instead."""
        found = None if fault in WITHOUT_EFFECT else await self._ask(request, body)
        if fault is S3Fault.DONE_CUT:
            return None
        if fault is not None and fault in ERRORS:
            status, code = ERRORS[fault]
            text = f"<Error><Code>{code}</Code><Message>drawn</Message></Error>"
            told = f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()
            return Answer(status, ((b"content-type", b"application/xml"),), told)
        if found is not None and fault is S3Fault.WRONG_ETAG:
            others = tuple(pair for pair in found.headers if pair[0] != b"etag")
            return Answer(found.status, (*others, (b"etag", b'"' + b"0" * 32 + b'"')), found.body)
        return found

    async def _ask(self, request: h11.Request, body: bytes) -> Answer:
        """The store itself."""
        async with self._connected() as server:
            asking = h11.Connection(h11.CLIENT)
            headers = [pair for pair in request.headers if pair[0] not in OF_THE_CONNECTION]
            passed = h11.Request(method=request.method, target=request.target, headers=headers)
            for event in (passed, h11.Data(body), h11.EndOfMessage()):
                await server.send_all(asking.send(event) or b"")
            answer = await _next_event(asking, server)
            if not isinstance(answer, h11.Response):
                raise trio.BrokenResourceError
            kept = tuple(pair for pair in answer.headers if pair[0] not in OF_THE_CONNECTION)
            return Answer(answer.status_code, kept, await _body(asking, server))

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[trio.SocketStream, None]:
        with trio.fail_after(CONNECT_SECONDS):
            server = await trio.open_tcp_stream(*self.upstream)
        async with server:
            yield server

    def _fault_of(self, request: h11.Request) -> S3Fault | None:
        if self._fault is None or _call_of(request) is not self._call:
            return None
        self._seen += 1
        if self._seen not in self._wanted:
            return None
        self.struck += 1
        return self._fault


OF_THE_CONNECTION: Final = frozenset(
    {b"connection", b"expect", b"transfer-encoding", b"keep-alive"}
)


def _call_of(request: h11.Request) -> S3Call:
    asked = urlsplit(request.target.decode())
    parameters = parse_qs(asked.query, keep_blank_values=True)
    if "uploads" in parameters and request.method == b"POST":
        return S3Call.CREATE
    if "uploadId" in parameters:
        return OF_AN_UPLOAD.get(request.method, S3Call.OTHER)
    has_key = asked.path.strip("/").count("/") > 0
    return OF_AN_OBJECT.get(request.method, S3Call.OTHER) if has_key else S3Call.OTHER


OF_AN_UPLOAD: Final = {
    b"POST": S3Call.COMPLETE,
    b"PUT": S3Call.PART,
    b"DELETE": S3Call.ABORT,
}
OF_AN_OBJECT: Final = {b"PUT": S3Call.PUT, b"DELETE": S3Call.DELETE}


async def _next_event(asking: h11.Connection, stream: trio.SocketStream) -> object:
    while (event := asking.next_event()) is h11.NEED_DATA:
        asking.receive_data(await stream.receive_some(CHUNK_BYTES))
    return event


async def _body(asking: h11.Connection, stream: trio.SocketStream) -> bytes:
    found = bytearray()
    while isinstance(event := await _next_event(asking, stream), h11.Data):
        found += event.data
    return bytes(found)


def _bytes_of(asking: h11.Connection, answer: Answer, *, is_torn: bool) -> bytes:
    headers = [pair for pair in answer.headers if pair[0] != b"content-length"]
    length = next((v for name, v in answer.headers if name == b"content-length"), None)
    if answer.body or length is None:
        length = str(len(answer.body)).encode()
    said = [*headers, (b"content-length", length), (b"connection", b"close")]
    head = asking.send(h11.Response(status_code=answer.status, headers=said)) or b""
    if is_torn:
        return head + answer.body[: len(answer.body) // 2]
    # of an answer to HEAD, h11 sends no body
    body = asking.send(h11.Data(answer.body)) if answer.body else b""
    return head + (body or b"")


def _reset_at_close(stream: trio.SocketStream) -> None:
    """A socket that lingers for 0 s is closed by RST."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
