"""A connected socket for drivers that take one: dialled here, to an address that was judged."""

import errno
import socket
from collections.abc import Sequence
from typing import Final

import trio

from fetcher.datasources.addresses import is_peer
from fetcher.domain.errors import HOST_REFUSED
from fetcher_engine import SourceFailure, Stage

ADDRESS_SECONDS: Final = 5.0

_REASONS: Final = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.ETIMEDOUT: "timeout",
}

_IDLE_SECONDS, _INTERVAL_SECONDS, _PROBES = 30, 10, 3
_SILENT_SECONDS: Final = 30
"""How long a peer may be unreachable before the kernel gives the connection up."""


async def dial(addresses: Sequence[str], port: int) -> socket.socket:
    """A blocking socket, connected to the first address that answers, 5 seconds for each.

    Keepalives and the kernel's own limit are set, so that a silent peer is noticed. Raise
    SourceFailure (``tcp``). Cancelled or failed, nothing stays open. The caller owns the socket.
    """
    failure = SourceFailure(Stage.TCP, "unreachable")
    for address in addresses:
        outcome = await _attempt(address, port)
        if isinstance(outcome, socket.socket):
            return outcome
        failure = outcome
    raise failure


async def _attempt(address: str, port: int) -> socket.socket | SourceFailure:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with trio.socket.socket(family, socket.SOCK_STREAM) as connection:
        try:
            with trio.move_on_after(ADDRESS_SECONDS) as limit:
                await connection.connect((address, port))
        except OSError as error:
            return SourceFailure(Stage.TCP, _REASONS.get(error.errno or 0, "unreachable"))
        if limit.cancelled_caught:
            return SourceFailure(Stage.TCP, "timeout")
        connected = socket.socket(family, socket.SOCK_STREAM, fileno=connection.detach())
    if not is_peer(connected, address):
        connected.close()
        return SourceFailure(Stage.TCP, HOST_REFUSED)
    connected.setblocking(True)
    _watch(connected)
    return connected


def _watch(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _INTERVAL_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_SECONDS * 1000)
