"""Listens, and hands connections to hypercorn's HTTP implementation.

Hypercorn's own serve() is not used, for reasons that were found by reading it (0.18): an unexpected
error of one connection ends the whole server, what it sends is shielded and unbounded (a client
that stops reading holds a task, and the shutdown, for ever), and it has no limit on connections.
Its connection class is used, for HTTP/1 only: in HTTP/2 a client that grants no window would hold
an answer's last send, and with it the shutdown, for ever; and idle connections outlive the stop.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
import trio
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import (
    AppWrapper,
    ASGIFramework,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)
from hypercorn.utils import wrap_app

from fetcher.api.http1 import ClientStream, Connection
from fetcher.api.observation import crash_facts
from fetcher.domain.errors import StartRefused

log = structlog.get_logger(__name__)

BACKLOG: Final = 512
"""Connections that wait to be taken. Each is taken in its turn, those too whose client has gone
meanwhile, which looks the same as one that has only said its last (see ``http1``): all that wait
are half a second's work. With the system's own length, 4096, a new client waited for 3 s and more
behind others that came and went. Beyond it Linux lets a client try anew after a second."""

_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]*)):([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """``idle_seconds`` is also the deadline for a request's head; ``half_closed_seconds`` is how
    long a client that sends nothing more is still worked for. Beyond ``max_connections`` one that
    asks for nothing makes way; where each of them is worked for, the new one is closed."""

    idle_seconds: float = 15.0
    send_seconds: float = 30.0
    half_closed_seconds: float = 2.0
    graceful_seconds: float = 30.0
    max_connections: int = 1000
    max_head_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class BoundAddress:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> BoundAddress:
    """``host:port``, ``[v6]:port`` or ``:port`` (every interface). Raise StartRefused."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None or int(match[3]) > 65535:
        raise StartRefused([f"{text!r} is no listen address (host:port)"])
    return BoundAddress(match[1] or match[2], int(match[3]))


def _nothing(_: Sequence[BoundAddress]) -> None:
    """Nobody wants to know where the server listens."""


def tell_listening(server: str, addresses: Sequence[BoundAddress]) -> None:
    """One line in the log for each address, with the port that was really taken."""
    for address in addresses:
        log.info("listening", server=server, host=address.host, port=address.port)


async def serve_http(
    app: ASGIFramework,
    *,
    address: str,
    stop: trio.Event,
    limits: ServerLimits = ServerLimits(),
    on_listening: Callable[[Sequence[BoundAddress]], None] = _nothing,
    task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until ``stop``; then accept nothing more, finish what runs, and return.

    Requests that run get ``limits.graceful_seconds``, idle connections are closed at once. Port 0
    takes any free port; ``on_listening`` is told the real ones before ``task_status`` is. Raise
    StartRefused when the address cannot be bound. Cancelling it closes every connection at once.
    """
    wanted = parse_address(address)
    listeners = await _bound(wanted)
    server = _HttpServer(app, limits)
    try:
        on_listening([_address_of(listener) for listener in listeners])
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                accepting.start_soon(
                    partial(
                        trio.serve_listeners,
                        server.serve_connection,
                        listeners,
                        handler_nursery=connections,
                    )
                )
                task_status.started()
                await stop.wait()
                accepting.cancel_scope.cancel()
            await server.finish()
            connections.cancel_scope.cancel()
    finally:
        server.abort()
        for listener in listeners:
            listener.socket.close()


async def _bound(wanted: BoundAddress) -> list[trio.SocketListener]:
    problem = ""
    try:
        return await trio.open_tcp_listeners(wanted.port, host=wanted.host or None, backlog=BACKLOG)
    except OSError as error:
        problem = (error.strerror or type(error).__name__).lower()
    raise StartRefused([f"cannot listen on {wanted}: {problem}"])


def _address_of(listener: trio.SocketListener) -> BoundAddress:
    host, port = listener.socket.getsockname()[:2]
    return BoundAddress(host, port)


class _HttpServer:
    """The connections of one server."""

    def __init__(self, app: ASGIFramework, limits: ServerLimits) -> None:
        self._app: AppWrapper = wrap_app(_with_uncut_ends(app), 0, "asgi")
        self._limits = limits
        self._config = _hypercorn_config(limits)
        self._context = WorkerContext(None)
        self._open: dict[ClientStream, Connection] = {}
        self._changed = trio.Event()

    async def serve_connection(self, stream: trio.SocketStream) -> None:
        """Raises nothing but cancellation."""
        if len(self._open) >= self._limits.max_connections and not self._make_way():
            return
        client = ClientStream(stream, send_seconds=self._limits.send_seconds)
        self._open[client] = connection = Connection(
            self._app,
            self._config,
            self._context,
            client,
            half_closed_seconds=self._limits.half_closed_seconds,
        )
        try:
            await connection
        except* Exception as errors:  # noqa: BLE001 - one connection's fault must not end others
            for error in errors.exceptions:
                log.error("connection_crashed", **crash_facts(error))
        finally:
            client.abort()
            self._open.pop(client, None)
            self._changed.set()
            self._changed = trio.Event()

    def _make_way(self) -> bool:
        """Close the connection that is missed the least: one that never asked for anything, of
        these the one that has been silent for longest; else of those that wait for their next
        request. Whoever only holds connections would else keep everybody out, probes too."""
        waiting = [each for each in self._open.items() if each[1].waits]
        if not waiting:
            return False
        client, _ = min(waiting, key=lambda each: (each[1].has_asked, each[1].waits_until))
        del self._open[client]
        client.abort()
        return True

    async def finish(self) -> None:
        """Wait until every request that runs is answered, or the time for it is over."""
        await self._context.terminated.set()
        with trio.move_on_after(self._limits.graceful_seconds):
            while self._open:
                await self._changed.wait()

    def abort(self) -> None:
        """Cut every connection: a send that is under way is shielded, but not from this."""
        for client in tuple(self._open):
            client.abort()


def _with_uncut_ends(app: ASGIFramework) -> ASGIFramework:
    """Shield the last send of an answer, in which hypercorn tidies the connection up.

    On its way there it tells the application of the answer's end as a disconnect, upon which
    quart-trio cancels the request, this send included: the connection would then neither be closed
    nor get its idle deadline. The stream's own deadline bounds what is shielded.
    """

    async def uncut(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def send_uncut(event: ASGISendEvent) -> None:
            if event["type"] != "http.response.body" or event.get("more_body", False):
                await send(event)
                return
            with trio.CancelScope(shield=True):
                await send(event)

        await app(scope, receive, send_uncut)

    return uncut


def _hypercorn_config(limits: ServerLimits) -> Config:
    config = Config()
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.keep_alive_timeout = limits.idle_seconds
    config.h11_max_incomplete_size = limits.max_head_bytes
    return config
