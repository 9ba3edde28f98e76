"""The sockets of one session: handed to the driver by us, and kept by an end to shut them from.

The driver's thin mode takes no socket. It gets its own from ``socket.create_connection``, a name in
one of its modules: there it finds :data:`_SOCKETS`, which asks the line of the running thread. The
first socket is one that was dialled here, to an address that was judged. Any further one is where
the listener sends us on to (a redirect): it is judged like the first.
"""

import importlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from fetcher.datasources.addresses import Judge, is_peer
from fetcher.datasources.dialing import ADDRESS_SECONDS
from fetcher.datasources.oracle.errors import PROTOCOL
from fetcher.domain.errors import HOST_REFUSED
from fetcher_engine import SourceFailure, Stage

_IDLE_SECONDS, _INTERVAL_SECONDS, _PROBES, _SILENT_SECONDS = 30, 10, 3, 30

_HEADER_BYTES: Final = 8
_TYPE_AT: Final = 4
_ANSWERS: Final = frozenset({2, 4, 5, 11, 12})
"""Packets that a listener answers with: accept, refuse, redirect, resend, marker."""


class Line:
    """What one session talks over. :meth:`shut` may be called from any thread."""

    def __init__(self, dialled: socket.socket, judge: Judge | None) -> None:
        self.stage = Stage.AUTH
        self.is_taken = False
        self.refusal: SourceFailure | None = None
        """Why a redirect was not followed, or whoever answered not listened to."""
        self._judge = judge
        self._lock = threading.Lock()
        self._is_shut = False
        # a second handle on the connection: the driver may wrap, detach and close its own
        self._handle = dialled.dup()
        self._dialled: socket.socket | None = _Greeted(dialled, self._meet_stranger)
        self._given = [self._dialled]

    def take(self, host: str, port: int) -> socket.socket:
        """The dialled socket, then new ones; called by the driver. Raise SourceFailure."""
        self.is_taken = True
        taken, self._dialled = self._dialled, None
        if taken is not None:
            return taken
        try:
            redirected = self._dial_judged(host, port)
        except SourceFailure as refused:
            self.refusal = refused
            raise
        with self._lock:
            self._handle.close()
            self._handle = redirected.dup()
            self._given.append(_Greeted(redirected, self._meet_stranger))
            if self._is_shut:
                _shut(self._handle)
        return self._given[-1]

    def shut(self) -> None:
        """End the connection at once: a thread that reads from it returns."""
        with self._lock:
            self._is_shut = True
            _shut(self._handle)

    def close(self) -> None:
        """Shut it and close what is open; idempotent. To be called when no thread uses it."""
        self.shut()
        with self._lock:
            for each in (self._handle, *self._given):
                each.close()

    def _meet_stranger(self) -> None:
        self.refusal = SourceFailure(Stage.AUTH, PROTOCOL)

    def _dial_judged(self, host: str, port: int) -> socket.socket:
        addresses = _addresses(host, port)
        if self._judge is not None:
            self._judge(host, port, addresses)
        if not addresses:
            raise SourceFailure(Stage.DNS, "dns")
        for address in addresses:
            with suppress(OSError):
                found = socket.create_connection((address, port), ADDRESS_SECONDS)
                if not is_peer(found, address):
                    found.close()
                    raise SourceFailure(Stage.TCP, HOST_REFUSED)
                found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _IDLE_SECONDS)
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _INTERVAL_SECONDS)
                found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _PROBES)
                found.setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_SECONDS * 1000
                )
                return found
        raise SourceFailure(Stage.TCP, "unreachable")


class _Greeted(socket.socket):
    """A socket in place of ``connected``, whose peer must answer as a listener does.

    Of any other server the driver would take the first bytes for a length, and wait. Within TLS the
    driver reads from another socket: there, nobody looks.
    """

    def __init__(self, connected: socket.socket, on_stranger: Callable[[], None]) -> None:
        family, kind, protocol = connected.family, connected.type, connected.proto
        super().__init__(family, kind, protocol, fileno=connected.detach())
        self._on_stranger = on_stranger
        self._begun = b""

    def recv(self, size: int, flags: int = 0) -> bytes:
        """For a stranger the connection seems to have ended."""
        data = super().recv(size, flags)
        self._begun += data[:_HEADER_BYTES]
        if len(self._begun) > _TYPE_AT:
            if self._begun[_TYPE_AT] not in _ANSWERS:
                self._on_stranger()
                return b""
            self.__dict__["recv"] = super().recv  # nothing is left to look for
        return data


def _shut(handle: socket.socket) -> None:
    with suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)


def _addresses(host: str, port: int) -> list[str]:
    with suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class _Current(threading.local):
    line: Line | None = None


_CURRENT: Final = _Current()


@contextmanager
def driver_uses(line: Line) -> Iterator[None]:
    """Within, connections that the driver makes in this thread are the line's."""
    _CURRENT.line = line
    try:
        yield
    finally:
        _CURRENT.line = None


class _Sockets:
    """The ``socket`` module as the driver sees it."""

    def __getattr__(self, name: str) -> object:
        return getattr(socket, name)

    def create_connection(
        self, where: tuple[str, int], timeout: float | None = None
    ) -> socket.socket:
        line = _CURRENT.line
        if line is None:
            return socket.create_connection(where, timeout)
        return line.take(*where)


SOCKETS: Final = _Sockets()
vars(importlib.import_module("oracledb.thin_impl"))["socket"] = SOCKETS
