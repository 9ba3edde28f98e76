"""A proxy before a database that answers one statement itself, as PgBouncer and others do."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import trio

_FORGETTING = (
    b"SET extra_float_digits = 0; SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Tokyo';"
    b" SET search_path = information_schema; COMMIT; "
)


@dataclass(slots=True, kw_only=True)
class RefusingProxy:
    """What starts with ``statement`` is answered with ``refusal``, by nothing where that is empty.

    ``hangs_up``: afterwards the connection ends. ``rewrite``: the message that the server gets for
    a statement, as where each meets a session of its own. ``statement_in`` finds the statement in
    what a client sends: each request is a message of its own, since nobody pipelines here.
    """

    statement: bytes
    refusal: bytes
    hangs_up: bool = False
    rewrite: Callable[[bytes], bytes] | None = None
    statement_in: Callable[[bytes], bytes | None]
    port: int = 0
    heard: list[bytes] = field(default_factory=list)


def postgresql_statement(message: bytes) -> bytes | None:
    return message[5:-1] if message[:1] == b"Q" else None


def postgresql_refusal(state: bytes, *, is_last: bool) -> bytes:
    severity = b"FATAL" if is_last else b"ERROR"
    fields = b"S%b\0V%b\0C%b\0Mtransaction blocks not allowed\0\0" % (severity, severity, state)
    error = b"E" + (len(fields) + 4).to_bytes(4, "big") + fields
    return error if is_last else error + b"Z\0\0\0\5I"


def mysql_statement(message: bytes) -> bytes | None:
    return message[5:] if message[3:5] == b"\0\3" else None


def mysql_refusal(code: int) -> bytes:
    error = b"\xff" + code.to_bytes(2, "little") + b"#42000refused"
    return len(error).to_bytes(3, "little") + b"\1" + error


@asynccontextmanager
async def served(proxy: RefusingProxy, host: str, port: int) -> AsyncIterator[RefusingProxy]:
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(
            partial(trio.serve_tcp, partial(_serve, proxy, host, port), 0, host="127.0.0.1")
        )
        proxy.port = listeners[0].socket.getsockname()[1]
        yield proxy
        nursery.cancel_scope.cancel()


async def _serve(proxy: RefusingProxy, host: str, port: int, client: trio.SocketStream) -> None:
    async with await trio.open_tcp_stream(host, port) as server, trio.open_nursery() as nursery:
        nursery.start_soon(_down, server, client, nursery.cancel_scope)
        await _up(proxy, client, server)
        nursery.cancel_scope.cancel()


async def _up(proxy: RefusingProxy, client: trio.SocketStream, server: trio.SocketStream) -> None:
    try:
        async for chunk in client:
            message = bytes(chunk)
            statement = proxy.statement_in(message)
            if statement is not None:
                proxy.heard.append(statement)
            if statement is not None and statement.startswith(proxy.statement):
                if proxy.refusal:
                    await client.send_all(proxy.refusal)
                if proxy.hangs_up:
                    return
            elif proxy.rewrite is not None and statement is not None:
                await server.send_all(proxy.rewrite(statement))
            else:
                await server.send_all(message)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        return


async def _down(
    server: trio.SocketStream, client: trio.SocketStream, scope: trio.CancelScope
) -> None:
    try:
        async for chunk in server:
            await client.send_all(chunk)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    scope.cancel()


def postgresql_forgetting(statement: bytes) -> bytes:
    """Settings are lost between two statements."""
    return _postgresql_query(_FORGETTING + statement)


def mysql_query(statement: bytes) -> bytes:
    return (len(statement) + 1).to_bytes(3, "little") + b"\0\3" + statement


def _postgresql_query(text: bytes) -> bytes:
    return b"Q" + (len(text) + 5).to_bytes(4, "big") + text + b"\0"
