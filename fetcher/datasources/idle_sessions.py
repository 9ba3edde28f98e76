"""Sessions that wait for the next job of their connection (spec datasources, section 4).

One that waits is logged in, in no transaction, and used by nobody. It is for exactly the record
that it was opened for: a connection that was changed never meets an old session.
"""

import math
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import trio

from fetcher.domain.ids import ConnectionId

MAX_IDLE: Final = 10
"""Of one connection."""

MAX_IDLE_IN_ALL: Final = 100
"""Of a process: with hundreds of connections it would hold thousands of sockets for nobody."""

IDLE_SECONDS: Final = 60.0
LIFETIME_SECONDS: Final = 300.0

CLOSE_SECONDS: Final = 3.0
"""For all of them together; each has its own limit beside."""


class Closable(Protocol):
    async def close(self) -> None:
        """Never raises, and takes 2 seconds at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionKey:
    """Which record a session was opened for. Neither part tells anything about the record."""

    connection_id: ConnectionId
    version: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IdleSession:
    """``opened_at`` and ``ends_at`` are times of trio's clock."""

    session: Any = field(repr=False)
    key: SessionKey
    opened_at: float
    ends_at: float


class IdlePeers:
    """The idle sessions of one process, kept apart by whose they are, under one limit."""

    def __init__(self) -> None:
        self.members: list[IdleSessions] = []

    def make_room(self) -> None:
        """Where too many wait, of all members, one of who has the most ends: that whose time is
        over first."""
        if sum(member.total for member in self.members) > MAX_IDLE_IN_ALL:
            largest = max(self.members, key=lambda member: member.total)
            largest.end([min(largest.waiting(), key=lambda each: each.ends_at)])


class IdleSessions:
    """The idle sessions of a process, or those of one of its tenants. Its nursery ends those whose
    time is over."""

    def __init__(self, nursery: trio.Nursery, peers: IdlePeers) -> None:
        """A member of ``peers`` until it is closed."""
        self._nursery = nursery
        self._peers = peers
        peers.members.append(self)
        self._idle: dict[ConnectionId, deque[IdleSession]] = {}
        self._has_changed = trio.Event()
        self._is_open = True

    def count(self, connection_id: ConnectionId) -> int:
        return len(self._idle.get(connection_id, ()))

    @property
    def total(self) -> int:
        """Of all connections."""
        return sum(map(len, self._idle.values()))

    def can_keep(self, key: SessionKey, *, opened_at: float) -> bool:
        """Whether :meth:`keep` would take a session that was opened then."""
        return (
            self._is_open
            and self.count(key.connection_id) < MAX_IDLE
            and trio.current_time() < opened_at + LIFETIME_SECONDS
        )

    def keep(self, session: Closable, key: SessionKey, *, opened_at: float) -> bool:
        """Own the session until somebody takes it; False: it stays the caller's.

        Where too many wait, of all connections, another ends for it, as :class:`IdlePeers` says.
        """
        if not self.can_keep(key, opened_at=opened_at):
            return False
        ends_at = min(trio.current_time() + IDLE_SECONDS, opened_at + LIFETIME_SECONDS)
        self._idle.setdefault(key.connection_id, deque()).append(
            IdleSession(session=session, key=key, opened_at=opened_at, ends_at=ends_at)
        )
        self._peers.make_room()
        self._has_changed.set()
        return True

    def take(self, key: SessionKey) -> IdleSession | None:
        """The session used last, which is the caller's now; None where there is none.

        Those of other versions of the connection are ended: nobody will ask for them.
        """
        waiting = self._idle.get(key.connection_id, deque())
        now = trio.current_time()
        self.end([each for each in waiting if each.key != key or each.ends_at <= now])
        return self._removed(waiting[-1]) if waiting else None

    def take_oldest(self, connection_id: ConnectionId) -> IdleSession | None:
        """To be closed by the caller, which needs its place."""
        waiting = self._idle.get(connection_id)
        return self._removed(waiting[0]) if waiting else None

    def forget(self, connection_id: ConnectionId) -> None:
        """End those of a connection: one of them was found broken."""
        self.end(list(self._idle.get(connection_id, ())))

    async def end_all(self) -> bool:
        """End all of them, of whatever connection: many may be at one server. Whether there were
        any. Within 3 seconds."""
        leaving = self.waiting()
        for each in leaving:
            self._removed(each)
        await _close(leaving)
        return bool(leaving)

    async def close_in_time(self) -> None:
        """End each session when its time is over, for ever."""
        while True:
            changed = self._has_changed = trio.Event()
            with trio.move_on_at(self._next_end()):
                await changed.wait()
            now = trio.current_time()
            self.end([each for each in self.waiting() if each.ends_at <= now])

    async def close(self) -> None:
        """End all and keep no more, within 3 seconds; shielded."""
        self._is_open = False
        self._peers.members.remove(self)
        leaving = self.waiting()
        self._idle.clear()
        await _close(leaving)

    def waiting(self) -> list[IdleSession]:
        return [each for waiting in self._idle.values() for each in waiting]

    def _next_end(self) -> float:
        return min((each.ends_at for each in self.waiting()), default=math.inf)

    def end(self, sessions: list[IdleSession]) -> None:
        for each in sessions:
            self._removed(each)
            self._nursery.start_soon(each.session.close)

    def _removed(self, idle: IdleSession) -> IdleSession:
        waiting = self._idle[idle.key.connection_id]
        waiting.remove(idle)
        if not waiting:
            del self._idle[idle.key.connection_id]
        return idle


async def _close(sessions: Sequence[IdleSession]) -> None:
    with trio.CancelScope(shield=True), trio.move_on_after(CLOSE_SECONDS):
        async with trio.open_nursery() as nursery:
            for each in sessions:
                nursery.start_soon(each.session.close)


@asynccontextmanager
async def open_idle_sessions(peers: IdlePeers | None = None) -> AsyncIterator[IdleSessions]:
    """Sessions are kept while the context is open; none outlives it. Without ``peers`` they are the
    only ones of the process."""
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        idle = IdleSessions(nursery, peers or IdlePeers())
        nursery.start_soon(idle.close_in_time)
        try:
            yield idle
        except Exception as error:  # noqa: BLE001 - it goes on below: the nursery would wrap it
            failure = error
        finally:
            await idle.close()
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
