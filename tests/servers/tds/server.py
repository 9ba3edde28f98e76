"""The fake server: connections, TLS inside of PRELOGIN, logins, statements, attention."""

import ssl
import struct
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import trio

from tests.servers.tds import tokens
from tests.servers.tds.tokens import Answer, Login, ServerError

PRELOGIN, LOGIN7, BATCH, RPC, ATTENTION, REPLY = 0x12, 0x10, 0x01, 0x03, 0x06, 0x04
ENCRYPT_OFF, ENCRYPT_ON, ENCRYPT_NOT_SUP, ENCRYPT_REQ = range(4)
_HEADER = struct.Struct(">BBHHBB")
_FIRST_PACKET_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Request:
    """A statement as it came, with its bound values."""

    text: str
    declared: str = ""
    values: tuple[object, ...] = ()


@dataclass(slots=True, kw_only=True)
class TdsServer:
    """``answer`` gives what a statement gets; None: done, without rows."""

    answer: Callable[[Request], Answer | None]
    tls: ssl.SSLContext | None = None
    requires_tls: bool = False
    users: dict[str, str] = field(default_factory=lambda: {"app": "secret"})
    databases: frozenset[str] = frozenset({"shop"})
    login_errors: Sequence[ServerError] = ()
    route: tuple[str, int] | None = None
    silent_at: str = ""
    """``prelogin``, ``tls`` or ``login``: where the server goes silent."""
    port: int = 0
    logins: list[Login] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    attentions: int = 0
    running: trio.Event = field(default_factory=trio.Event)
    """Set when an answer hangs, or has no end."""
    open_connections: int = 0


@asynccontextmanager
async def tds_server(server: TdsServer) -> AsyncIterator[TdsServer]:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            partial(trio.serve_tcp, partial(_serve, server), 0, host="127.0.0.1")
        )
        server.port = listeners[0].socket.getsockname()[1]
        yield server
        nursery.cancel_scope.cancel()


async def _serve(server: TdsServer, stream: trio.SocketStream) -> None:
    server.open_connections += 1
    try:
        async with stream:
            await _Connection(server, stream).run()
    except* (trio.BrokenResourceError, trio.ClosedResourceError, ssl.SSLError):
        pass
    finally:
        server.open_connections -= 1


class _Connection:
    def __init__(self, server: TdsServer, stream: trio.SocketStream) -> None:
        self._server = server
        self._stream = stream
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._buffer = b""
        self._early: tuple[int, bytes] | None = None
        self._body_bytes = _FIRST_PACKET_BYTES - _HEADER.size

    async def run(self) -> None:
        if await self._log_in():
            await self._answer_statements()

    async def _log_in(self) -> bool:
        server = self._server
        message = await self._message()
        if message is None:
            return False
        if server.silent_at == "prelogin":
            await trio.sleep_forever()
        encryption = self._agreed(_encryption_in(message[1]))
        options = bytes([1, 0, 6, 0, 1, 0xFF, encryption])
        await self._send(REPLY, options)
        if encryption != ENCRYPT_NOT_SUP and server.tls is not None:
            if server.silent_at == "tls":
                await trio.sleep_forever()
            await self._shake_hands(server.tls)
        login = await self._message()
        if login is None or login[0] != LOGIN7:
            return False
        found = tokens.read_login(login[1], encrypted=self._tls is not None)
        if encryption == ENCRYPT_OFF:
            self._tls = None
        server.logins.append(found)
        if server.silent_at == "login":
            await trio.sleep_forever()
        return await self._judge(found)

    def _agreed(self, wanted: int) -> int:
        """MS-TDS 2.2.6.5, the table of what a server answers."""
        if self._server.tls is None:
            return ENCRYPT_NOT_SUP
        if self._server.requires_tls:
            return ENCRYPT_ON if wanted == ENCRYPT_ON else ENCRYPT_REQ
        return wanted

    async def _judge(self, login: Login) -> bool:
        server = self._server
        errors = list(server.login_errors)
        if not errors and server.users.get(login.user) != login.password:
            errors = [ServerError(18456)]
        if not errors and login.database not in server.databases:
            # the real one sends both
            errors = [ServerError(4060), ServerError(18456)]
        if errors:
            refused = b"".join(map(tokens.error_token, errors))
            await self._send(REPLY, refused + tokens.done_token(tokens.DONE, tokens.ERROR))
            return False
        accepted = tokens.text_change(1, login.database) + tokens.collation_change()
        accepted += tokens.text_change(4, str(login.packet_bytes)) + tokens.login_token()
        if server.route is not None:
            accepted += tokens.route_change(*server.route)
        await self._send(REPLY, accepted + tokens.done_token(tokens.DONE, 0))
        self._body_bytes = login.packet_bytes - _HEADER.size
        return True

    async def _answer_statements(self) -> None:
        send, receive = trio.open_memory_channel[tuple[int, bytes]](8)
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                async with send:
                    while (message := await self._message()) is not None:
                        await send.send(message)
                nursery.cancel_scope.cancel()

            nursery.start_soon(read)
            while (message := await self._next(receive)) is not None:
                kind, body = message
                if kind == ATTENTION:
                    # nothing runs any more
                    self._server.attentions += 1
                    await self._send(REPLY, tokens.done_token(tokens.DONE, tokens.STOPPED))
                    continue
                await self._answer(kind, body, receive)
            nursery.cancel_scope.cancel()

    async def _next(
        self, receive: trio.MemoryReceiveChannel[tuple[int, bytes]]
    ) -> tuple[int, bytes] | None:
        early, self._early = self._early, None
        if early is not None:
            return early
        try:
            return await receive.receive()
        except trio.EndOfChannel:
            return None

    async def _answer(
        self, kind: int, body: bytes, receive: trio.MemoryReceiveChannel[tuple[int, bytes]]
    ) -> None:
        if kind == RPC:
            text, declared, *values = tokens.read_call(body)
            request = Request(str(text), str(declared), tuple(values))
        else:
            request = Request(tokens.read_batch(body))
        self._server.requests.append(request)
        answer = self._server.answer(request) or Answer()
        stopping = trio.Event()
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                try:
                    found = await receive.receive()
                except trio.EndOfChannel:
                    # gone: nobody is there to be answered
                    return
                if found[0] != ATTENTION:
                    # our answer is with the client before this task hears of it
                    self._early = found
                    return
                self._server.attentions += 1
                if not answer.deaf:
                    stopping.set()

            nursery.start_soon(watch)
            await self._write(answer, stopping, is_call=kind == RPC)
            nursery.cancel_scope.cancel()

    async def _write(self, answer: Answer, stopping: trio.Event, *, is_call: bool) -> None:
        pending = tokens.transaction_change() if answer.transaction else b""
        if answer.columns:
            pending += tokens.columns_token(answer.columns)
        count = 0
        for row in answer.rows:
            pending += tokens.row_token(answer.columns, row)
            count += 1
            if stopping.is_set():
                break
            while len(pending) > self._body_bytes:
                await self._send_packet(REPLY, pending[: self._body_bytes], last=False)
                pending = pending[self._body_bytes :]
                if count > 10_000:
                    self._server.running.set()
        if answer.in_row:
            pending += tokens.row_token(answer.columns, next(iter(answer.rows)))[:-3]
        if answer.cut or answer.in_row:
            await self._send_packet(REPLY, pending, last=False)
            await self._stream.aclose()
            return
        if answer.hang:
            if pending:
                await self._send_packet(REPLY, pending, last=False)
            pending = b""
            self._server.running.set()
            await stopping.wait()
        if stopping.is_set():
            await self._send(REPLY, pending + tokens.done_token(tokens.DONE, tokens.STOPPED))
            return
        pending += b"".join(map(tokens.error_token, answer.errors))
        status = tokens.ERROR if answer.errors else tokens.COUNT
        counted = count if answer.counted is None else answer.counted
        if is_call:
            pending += tokens.done_token(tokens.DONEINPROC, status | tokens.MORE, counted)
            pending += b"\x79\0\0\0\0" + tokens.done_token(tokens.DONEPROC, 0)
        else:
            pending += tokens.done_token(tokens.DONE, status, counted)
        await self._send(REPLY, pending)

    # --- packets and TLS ----------------------------------------------------------------------

    async def _message(self) -> tuple[int, bytes] | None:
        body = b""
        while True:
            header = await self._exactly(_HEADER.size)
            if header is None:
                return None
            kind, status, size, *_ = _HEADER.unpack(header)
            part = await self._exactly(size - _HEADER.size)
            if part is None:
                return None
            body += part
            if status & 1:
                return kind, body

    async def _exactly(self, size: int) -> bytes | None:
        while len(self._buffer) < size:
            if self._tls is not None:
                try:
                    self._buffer += self._tls.read(65536)
                    continue
                except ssl.SSLWantReadError:
                    pass
            data = await self._stream.receive_some(65536)
            if not data:
                return None
            if self._tls is None:
                self._buffer += data
            else:
                self._incoming.write(data)
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    async def _send(self, kind: int, body: bytes) -> None:
        pieces = [body[at : at + self._body_bytes] for at in range(0, len(body), self._body_bytes)]
        for number, piece in enumerate(pieces, start=1):
            await self._send_packet(kind, piece, last=number == len(pieces))

    async def _send_packet(self, kind: int, body: bytes, *, last: bool) -> None:
        data = _HEADER.pack(kind, int(last), _HEADER.size + len(body), 0, 1, 0) + body
        if self._tls is not None:
            self._tls.write(data)
            data = self._outgoing.read()
        # whole packets also when the answer is stopped
        with trio.CancelScope(shield=True):
            await self._stream.send_all(data)
        await trio.lowlevel.checkpoint()

    async def _shake_hands(self, context: ssl.SSLContext) -> None:
        tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            else:
                break
            if self._outgoing.pending:
                await self._send(PRELOGIN, self._outgoing.read())
            message = await self._message()
            if message is None:
                raise trio.BrokenResourceError
            self._incoming.write(message[1])
        if self._outgoing.pending:
            await self._send(PRELOGIN, self._outgoing.read())
        self._tls = tls


def _encryption_in(body: bytes) -> int:
    at = 0
    while body[at] != 0xFF:
        token, offset, _ = struct.unpack_from(">BHH", body, at)
        if token == 1:
            return int(body[offset])
        at += 5
    raise AssertionError
