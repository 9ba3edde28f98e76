"""From a source's host name to the addresses that may be dialled, resolved once."""

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from fetcher.datasources.threads import PROCESS_THREADS, SourceThreads, ThreadKind, in_thread
from fetcher_engine import SourceFailure, Stage

Judge: TypeAlias = Callable[[str, int, Sequence[str]], None]
"""Raise SourceFailure unless a host, its port and all its addresses may be dialled."""

_RESOLVERS: Final = ThreadKind(16)
"""For names of sources alone: a resolver that hangs must not starve the process."""


async def resolve(
    host: str,
    port: int,
    *,
    judge: Judge | None = None,
    threads: SourceThreads = PROCESS_THREADS,
) -> tuple[str, ...]:
    """The addresses of a host in the resolver's order, an address literal as it is.

    Raise SourceFailure: ``dns`` for a name that nobody knows, and what ``judge`` raises; it sees
    such a name too, without addresses. Cancelled, the look-up goes on in its thread and its answer
    is dropped.
    """
    addresses = [host] if _is_address(host) else await _look_up(host, port, threads)
    if judge is not None:
        judge(host, port, addresses)
    if not addresses:
        raise SourceFailure(Stage.DNS, "dns")
    return tuple(addresses)


async def _look_up(host: str, port: int, threads: SourceThreads) -> list[str]:
    def ask() -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return []
        return list(dict.fromkeys(str(address[0]) for *_, address in found))

    return await in_thread(threads.of(_RESOLVERS), ask, abandon_on_cancel=True)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_peer(connection: socket.socket, address: str) -> bool:
    """Whether a connected socket leads to the address that was judged; zones do not count."""
    try:
        peer = str(connection.getpeername()[0])
    except OSError:
        return True  # it is closed already: whoever uses it next finds out
    found, judged = (ipaddress.ip_address(each.partition("%")[0]) for each in (peer, address))
    return found == judged
