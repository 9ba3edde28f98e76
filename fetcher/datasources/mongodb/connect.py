"""From a connection's settings to a logged-in session (spec datasources 2, 4, 12.2).

The name is resolved and judged, and the address dialled, by us; pymongo then speaks with that one
address alone. Where another member of a replica set is to be read, that is a way of its own, judged
again.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

import pymongo
import trio
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError

from fetcher.datasources.addresses import resolve
from fetcher.datasources.dialing import dial
from fetcher.datasources.driver_thread import DriverThread
from fetcher.datasources.mongodb.client import WatchedClient, make_client
from fetcher.datasources.mongodb.errors import TIMEOUT, connect_failure
from fetcher.datasources.mongodb.members import (
    NEAREST,
    NO_SUITABLE_MEMBER,
    Hello,
    ReadFrom,
    read_from,
)
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import SourceThreads, ThreadKind, ThreadLimiter, in_thread
from fetcher_engine import SourceFailure, Stage

TOTAL_SECONDS: Final = 10.0
PHASE_SECONDS: Final = 5.0
PROOF_SECONDS: Final = 1.5
CLOSE_SECONDS: Final = 2.0

_CALLS: Final = ThreadKind(32)
"""Threads that wait for MongoDB servers; nobody else's work waits behind them."""

_CLOSERS: Final = ThreadKind(32)
"""As many as may have to end at once. What ends a session must not wait for the reads of others."""

_ROLES: Final = ("isWritablePrimary", "secondary", "setName", "msg")
"""A preferred member was chosen by these."""

T = TypeVar("T")


class MongoSession:
    """A logged-in client. One call at a time; ``hello`` is how the server presented itself."""

    def __init__(self, watched: WatchedClient, hello: Hello, threads: SourceThreads) -> None:
        self._watched = watched
        self._thread = DriverThread(threads.of(_CALLS), watched.interrupt)
        self._closers = threads.of(_CLOSERS)
        self._is_closed = False
        self._reading: ClientSession | None = None
        self.client = watched.client
        self.threads = threads
        self.hello = hello
        self.last_words: Callable[[], None] | None = None
        """What is still to be said to the server before the end; it blocks."""

    @property
    def offers_snapshots(self) -> bool:
        """Replica sets and sharded clusters from 5.0 on."""
        is_replicated = "setName" in self.hello or self.hello.get("msg") == "isdbgrid"
        return is_replicated and int(self.hello.get("maxWireVersion", 0)) >= 13

    def start_reading(self) -> ClientSession | None:
        """The server's own session, with a snapshot where it has that; blocking."""
        if "logicalSessionTimeoutMinutes" in self.hello:
            self._reading = self.client.start_session(snapshot=self.offers_snapshots)
        return self._reading

    def end_reading(self) -> None:
        """Blocking; all cursors have been read to their ends."""
        reading, self._reading, self.last_words = self._reading, None, None
        if reading is not None:
            reading.end_session()

    def prove(self) -> None:
        """Blocking: raise unless the server answers at once, and is what it was in its set."""
        with pymongo.timeout(PROOF_SECONDS):
            now = self.client.admin.command("hello")
        if any(now.get(role) != self.hello.get(role) for role in _ROLES):
            raise SourceFailure(Stage.SESSION, NO_SUITABLE_MEMBER)

    async def run(self, work: Callable[[], T]) -> T:
        """What ``work`` returns or raises, in a thread. Cancelled, its sockets are given up."""
        return await self._thread.run(work)

    async def close(self) -> None:
        """Shielded, 2 seconds for what there still is to say to the server. Never raises."""
        if self._is_closed:
            return
        self._is_closed = True
        with trio.CancelScope(shield=True):
            await _closed(self._watched, self.last_words, self._closers)


async def open_session(target: Target, *, auth_source: str) -> MongoSession:
    """Resolve, dial, encrypt and log in within 10 seconds, 5 for each step; at the member of a
    replica set that the connection prefers, wherever the named server says that it is.

    Raise SourceFailure. Cancelled or failed, nothing stays open.
    """
    way = _Way(read_from(target.metadata), auth_source)
    with trio.move_on_after(TOTAL_SECONDS):
        return await way.to_member(target)
    raise SourceFailure(way.stage, TIMEOUT)


class _Way:
    """To the server that is to be read."""

    def __init__(self, wanted: ReadFrom, auth_source: str) -> None:
        self._wanted = wanted
        self._auth_source = auth_source
        self.stage = Stage.DNS

    async def to_member(self, target: Target) -> MongoSession:
        found = await self._reach(target, self._wanted)
        if isinstance(found, MongoSession):
            return found
        failure = SourceFailure(Stage.SESSION, NO_SUITABLE_MEMBER)
        for host, port in self._wanted.candidates(found):
            try:
                other = await self._reach(replace(target, host=host, port=port), self._wanted)
            except SourceFailure as error:
                failure = error
            else:
                if isinstance(other, MongoSession):
                    return other
        if self._wanted.takes_others:
            named = await self._reach(target, replace(self._wanted, preference=NEAREST))
            if isinstance(named, MongoSession):
                return named
        raise failure

    async def _reach(self, target: Target, wanted: ReadFrom) -> MongoSession | Hello:
        """A session with this server; where it does not suit, what it says of itself."""
        self.stage = Stage.DNS
        addresses = await resolve(
            target.host, target.port, judge=target.judge, threads=target.threads
        )
        self.stage = Stage.TCP
        with await dial(addresses, target.port) as answered:
            address = str(answered.getpeername()[0])
        self.stage = Stage.TLS if target.tls is not None and target.tls.mode else Stage.AUTH
        return await _log_in(target, address, wanted, self._auth_source)


async def _log_in(
    target: Target, address: str, wanted: ReadFrom, auth_source: str
) -> MongoSession | Hello:
    watched: WatchedClient | None = None
    failure = SourceFailure(Stage.AUTH, TIMEOUT)
    try:
        watched = make_client(
            target, address, auth_source=auth_source, read_preference=wanted.preference
        )
        thread = DriverThread(target.threads.of(_CALLS), watched.interrupt)
        greeting = await thread.run(_greeting(watched, wanted))
        if greeting is not None:
            if not wanted.suits(greeting):
                return greeting
            session, watched = MongoSession(watched, greeting, target.threads), None
            return session
        if watched.look.failure is not None:
            failure = connect_failure(watched.look.failure)
        elif watched.is_encrypted:
            failure = SourceFailure(Stage.TLS, TIMEOUT)
    except (PyMongoError, OSError, ValueError, TypeError, IndexError) as error:
        failure = connect_failure(error)
    finally:
        if watched is not None:
            with trio.CancelScope(shield=True):
                await _closed(watched, None, target.threads.of(_CLOSERS))
    raise failure


def _greeting(watched: WatchedClient, wanted: ReadFrom) -> Callable[[], Hello | None]:
    def greet() -> Hello | None:
        """What the server says of itself, once logged in or where it is not to be read; None where
        it said nothing in time."""
        watched.start()
        if not watched.look.wait(PHASE_SECONDS):
            return None
        wanted.require_set(watched.look.hello)
        if not wanted.suits(watched.look.hello):
            return watched.look.hello
        with pymongo.timeout(PHASE_SECONDS):
            return watched.client.admin.command("hello")

    return greet


async def _closed(
    watched: WatchedClient, before: Callable[[], None] | None, closers: ThreadLimiter
) -> None:
    def close() -> None:
        watched.resume()
        try:
            # for both together: what is left of it is the client's own good-bye
            with pymongo.timeout(CLOSE_SECONDS):
                try:
                    if before is not None:
                        before()
                finally:
                    watched.client.close()
        except PyMongoError:
            pass
        watched.interrupt()

    await in_thread(closers, close)
