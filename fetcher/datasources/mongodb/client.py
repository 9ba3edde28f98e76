"""A pymongo client for one server, one session of ours: made, watched, interrupted, closed.

pymongo tries a server again and again for as long as one waits for it. What went wrong at the first
look is what we want to know, so its heartbeats are listened to. Its reads can be interrupted from
outside by the context that each of its connections polls; a pool that we hand it tells which
connections there are.
"""

import ssl
import threading
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import pymongo
from pymongo.monitoring import (
    ServerHeartbeatFailedEvent,
    ServerHeartbeatListener,
    ServerHeartbeatStartedEvent,
    ServerHeartbeatSucceededEvent,
)
from pymongo.synchronous.pool import Pool

from fetcher.datasources.mongodb.tls import named_socket, tls_options
from fetcher.datasources.targets import Target

Client: TypeAlias = "pymongo.MongoClient[dict[str, Any]]"

_PHASE_MS: Final = 4500
"""Below our own limit of 5 seconds, so that pymongo's error comes first."""

_MAX_SOCKETS: Final = 2
"""One reads, the other can stop it."""


class FirstLook(ServerHeartbeatListener):
    """What the first heartbeat says."""

    def __init__(self) -> None:
        self._came = threading.Event()
        self.failure: BaseException | None = None

    def wait(self, seconds: float) -> bool:
        """Whether the server answered. ``failure`` says why not, where there was an answer."""
        return self._came.wait(seconds) and self.failure is None

    def interrupt(self) -> None:
        self._came.set()

    def started(self, event: ServerHeartbeatStartedEvent) -> None: ...

    def succeeded(self, event: ServerHeartbeatSucceededEvent) -> None:  # noqa: ARG002 - the port's
        self._came.set()

    def failed(self, event: ServerHeartbeatFailedEvent) -> None:
        if not self._came.is_set():
            self.failure = event.reply
            self._came.set()


class WatchedClient:
    """The client and what it takes to interrupt it."""

    def __init__(self, client: Client, look: FirstLook, pools: list[Pool]) -> None:
        self.client = client
        self.look = look
        self._pools = pools

    def interrupt(self) -> None:
        """Make a running call fail within half a second, from whatever thread."""
        self.look.interrupt()
        for pool in tuple(self._pools):
            for context in tuple(pool.active_contexts):
                context.cancel()


def watched_context(client: Client) -> ssl.SSLContext | None:
    """How the client encrypts; None where it does not."""
    context: object = client.options.pool_options._ssl_context
    return context if isinstance(context, ssl.SSLContext) else None


def make_client(target: Target, address: str, *, auth_source: str) -> WatchedClient:
    """Dials nothing yet but in pymongo's own thread. Raise SourceFailure, ConfigurationError.

    ``address`` is the one that was judged and has answered; the target's name is proven by TLS.
    """
    pools: list[Pool] = []

    class KnownPool(Pool):
        def __init__(self, *arguments: Any, **keywords: Any) -> None:
            super().__init__(*arguments, **keywords)
            pools.append(self)

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
            _pool_class=KnownPool,
            **credentials,
            **tls,
        )
    context = watched_context(client)
    if context is not None and address != target.host:
        # pymongo takes no context of ours
        context.sslsocket_class = named_socket(target.host)
    return WatchedClient(client, look, pools)
