"""A pymongo client for one server, one session of ours: made, watched, interrupted, closed.

pymongo tries a server again and again for as long as one waits for it. What went wrong at the first
look is what we want to know, so its heartbeats are listened to.
"""

import threading
from collections.abc import Mapping
from typing import Any, Final

import pymongo
from pymongo.monitoring import (
    ServerHeartbeatFailedEvent,
    ServerHeartbeatListener,
    ServerHeartbeatStartedEvent,
    ServerHeartbeatSucceededEvent,
)

from fetcher.datasources.mongodb.driver_internals import (
    Client,
    KnownPools,
    named_socket,
    start,
    tls_context,
)
from fetcher.datasources.mongodb.tls import tls_options
from fetcher.datasources.targets import Target

_PHASE_MS: Final = 4500
"""Below our own limit of 5 seconds, so that pymongo's error comes first."""

_MAX_SOCKETS: Final = 2
"""One reads, the other can stop it."""

SOCKETS_OF_SESSION: Final = _MAX_SOCKETS + 1
"""pymongo's own look-out has one too."""


class FirstLook(ServerHeartbeatListener):
    """What the first heartbeat says."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self._is_given_up = False
        self.failure: BaseException | None = None
        self.hello: Mapping[str, Any] = {}
        """What the server says of itself before anybody logs in."""

    def wait(self, seconds: float) -> bool:
        """Whether the server answered and is still wanted. ``failure`` says why it did not, where
        there was an answer."""
        return self._came.wait(seconds) and self.failure is None and not self._is_given_up

    def interrupt(self) -> None:
        self._is_given_up = True
        self._came.set()

    def started(self, event: ServerHeartbeatStartedEvent) -> None: ...

    def succeeded(self, event: ServerHeartbeatSucceededEvent) -> None:
        if not self._came.is_set():
            self.hello = event.reply.document
            self._came.set()

    def failed(self, event: ServerHeartbeatFailedEvent) -> None:
        if not self._came.is_set():
            self.failure = event.reply
            self._came.set()


class WatchedClient:
    """The client and what it takes to interrupt it."""

    def __init__(self, client: Client, look: FirstLook, pools: KnownPools) -> None:
        self.client = client
        self.look = look
        self._pools = pools

    @property
    def is_encrypted(self) -> bool:
        return tls_context(self.client) is not None

    def start(self) -> None:
        """Let it look at its server."""
        start(self.client)

    def interrupt(self) -> None:
        """Make a running call fail within half a second, from whatever thread."""
        self.look.interrupt()
        self._pools.interrupt()

    def resume(self) -> None:
        """Let it speak with the server again, to say what is still to be said."""
        self._pools.resume()


def make_client(
    target: Target, address: str, *, auth_source: str, read_preference: str
) -> WatchedClient:
    """Dials nothing yet but in pymongo's own thread. Raise SourceFailure, ConfigurationError.

    ``address`` is the one that was judged and has answered; the target's name is proven by TLS.
    The preference is for routers: a server of a set is the one that was chosen.
    """
    pools = KnownPools()
    look = FirstLook()
    credentials: Mapping[str, Any] = {}
    if target.user:
        credentials = {
            "username": target.user,
            "password": target.password,
            "authSource": auth_source,
        }
    with tls_options(target.tls) as tls:
        client: Client = pymongo.MongoClient(
            host=f"[{address}]" if ":" in address else address,
            port=target.port,
            directConnection=True,
            connect=False,
            appname="fetcher",
            maxPoolSize=_MAX_SOCKETS,
            retryReads=False,
            retryWrites=False,
            serverMonitoringMode="poll",
            serverSelectionTimeoutMS=_PHASE_MS,
            connectTimeoutMS=_PHASE_MS,
            event_listeners=[look],
            readPreference=read_preference,
            **credentials,
            **tls,
            **pools.options,
        )
    context = tls_context(client)
    if context is not None and address != target.host:
        # pymongo takes no context of ours
        context.sslsocket_class = named_socket(target.host)
    return WatchedClient(client, look, pools)
