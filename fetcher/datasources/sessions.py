"""How many sessions one process may have on one connection (spec datasources, section 4)."""

from typing import Final
from weakref import WeakValueDictionary

import trio

from fetcher.datasources.idle_sessions import IdleSessions
from fetcher.datasources.snapshots import SnapshotRefusals
from fetcher.domain.ids import ConnectionId
from fetcher_engine import SourceFailure, Stage

MAX_SESSIONS: Final = 25
WAIT_SECONDS: Final = 10.0


class SessionPlaces:
    """The places of one connection: who uses a session holds one."""

    def __init__(self, most: int = MAX_SESSIONS) -> None:
        self._limiter = trio.CapacityLimiter(most)
        self.most = most

    @property
    def taken(self) -> int:
        return self._limiter.borrowed_tokens

    async def take(self, borrower: object) -> None:
        """Wait at most 10 seconds for a place; raise SourceFailure ``too_many_sessions``."""
        with trio.move_on_after(WAIT_SECONDS):
            await self._limiter.acquire_on_behalf_of(borrower)
            return
        raise SourceFailure(Stage.SESSION, "too_many_sessions")

    def give_back(self, borrower: object) -> None:
        self._limiter.release_on_behalf_of(borrower)


class SessionLimits:
    """The places of every connection in use, over all jobs of the process.

    ``idle`` keeps sessions for the next job; without it each ends with its operation.
    """

    def __init__(self, idle: IdleSessions | None = None) -> None:
        self.idle = idle
        self.refusals = SnapshotRefusals()
        self._places: WeakValueDictionary[ConnectionId, SessionPlaces] = WeakValueDictionary()

    @property
    def in_use(self) -> int:
        """Sessions of all connections that somebody works with."""
        return sum(places.taken for places in list(self._places.values()))

    def places(self, connection_id: ConnectionId, *, most: int = MAX_SESSIONS) -> SessionPlaces:
        """Kept for as long as somebody holds them. ``most`` is one number for a type of source."""
        places = self._places.get(connection_id)
        if places is None:
            places = self._places[connection_id] = SessionPlaces(most)
        return places
