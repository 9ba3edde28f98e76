"""From a connection's settings to a logged-in session (spec datasources 2, 4).

The socket is ours, to an address that was judged; the driver speaks on it in a thread. The step at
which time runs out is known.
"""

import socket
from dataclasses import dataclass
from functools import partial
from typing import Final

import trio

from fetcher.datasources.addresses import resolve
from fetcher.datasources.dialing import dial
from fetcher.datasources.driver_thread import DriverThread
from fetcher.datasources.mysql.errors import INVALID_SETTING, TIMEOUT, connect_failure
from fetcher.datasources.mysql.link import Link
from fetcher.datasources.mysql.tls import IF_OFFERED, mode_of, tls_context
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import ThreadKind
from fetcher_engine import SourceFailure, Stage

TOTAL_SECONDS: Final = 10.0
LOGIN_SECONDS: Final = 5.0
"""For TLS and login on one address; dialling has as much."""

CALLS: Final = ThreadKind(64)
"""Sessions of the process that may be in a call of the driver at once."""

_MAX_CHARS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A logged-in connection, the thread of its calls, and the address that it goes to."""

    link: Link
    thread: DriverThread
    wire: socket.socket
    """A second handle of the socket: the driver's own is out of reach while it shakes hands."""
    address: str

    def cut(self) -> None:
        """Shut the socket: whatever call is in it returns."""
        _shut(self.wire)

    def release(self) -> None:
        """Close everything, without a word to the server."""
        self.link.drop()
        self.wire.close()


async def connect(
    target: Target,
    *,
    address: str | None = None,
    kind: ThreadKind = CALLS,
) -> Opened:
    """Resolve, dial, encrypt and log in within 10 seconds; ``address`` was judged before.

    Raise SourceFailure. Cancelled or failed, nothing stays open.
    """
    _check_texts(target)
    stage = [Stage.DNS]
    with trio.move_on_after(TOTAL_SECONDS):
        addresses = (
            (address,)
            if address is not None
            else await resolve(target.host, target.port, judge=target.judge, threads=target.threads)
        )
        stage[0] = Stage.TCP
        connected = await dial(addresses, target.port)
        return await _log_in(target, connected, stage, kind)
    raise SourceFailure(stage[0], TIMEOUT)


async def _log_in(
    target: Target, connected: socket.socket, stage: list[Stage], kind: ThreadKind
) -> Opened:
    def encrypting() -> None:
        stage[0] = Stage.TLS

    def logging_in() -> None:
        stage[0] = Stage.AUTH

    wire: socket.socket | None = None
    links: list[Link] = []
    opened: Opened | None = None
    failure: SourceFailure | None = None
    try:
        peer = str(connected.getpeername()[0])
        wire = connected.dup()
        mode = mode_of(target.tls)
        # the server speaks first: what is waited for until the handshake is to begin it
        stage[0] = Stage.AUTH if target.tls is None or mode == IF_OFFERED else Stage.TLS
        thread = DriverThread(target.threads.of(kind), partial(_shut, wire))

        def work() -> Link:
            context = tls_context(target.tls)
            if context is None:
                logging_in()
            else:
                context.begun, context.ended = encrypting, logging_in
            links.append(Link(target, mode, context))
            links[0].log_in(connected)
            return links[0]

        with trio.move_on_after(LOGIN_SECONDS):
            try:
                logged_in = await thread.run(work)
                opened = Opened(link=logged_in, thread=thread, wire=wire, address=peer)
            except SourceFailure as refused:
                failure = refused
            except Exception as error:  # noqa: BLE001 - every failure of the driver is classified
                failure = connect_failure(stage[0], error)
    except OSError as error:
        failure = connect_failure(Stage.TCP, error)
    finally:
        if opened is None:
            for link in links:
                link.drop()
            connected.close()
            if wire is not None:
                _shut(wire)
                wire.close()
    if opened is None:
        raise failure or SourceFailure(stage[0], TIMEOUT)
    return opened


def _shut(wire: socket.socket) -> None:
    try:
        wire.shutdown(socket.SHUT_RDWR)
    except OSError:
        # already gone
        return


def _check_texts(target: Target) -> None:
    """The protocol ends user and database with a NUL, and all texts go as UTF-8."""
    for text in (target.user, target.database, target.password):
        is_text = "\0" not in text and not any("\ud800" <= one <= "\udfff" for one in text)
        if not is_text or len(text) > _MAX_CHARS:
            raise SourceFailure(Stage.SESSION, INVALID_SETTING)
