"""Where a connector's session comes from, and where it goes when the connector closes."""

from typing import Final, Generic, Protocol, TypeVar

import trio

from fetcher.datasources.idle_sessions import IdleSession, IdleSessions, SessionKey
from fetcher.datasources.sessions import SessionPlaces
from fetcher_engine import SourceFailure

RESUME_SECONDS: Final = 2.0
REST_SECONDS: Final = 2.0

TOO_MANY_CONNECTIONS: Final = "too_many_connections"
"""What every type of source says of a server that takes no more sessions."""


class Session(Protocol):
    """A logged-in connection to a database."""

    async def close(self) -> None:
        """End it, and what it still does on the server. Idempotent, never raises, 2 seconds."""


S = TypeVar("S", bound=Session)
T_co = TypeVar("T_co", bound=Session, covariant=True)


class OpenableSource(Protocol[T_co]):
    async def open(self) -> T_co:
        """A session, ready for use. Raise SourceFailure. Cancelled or failed, none stays open."""
        ...


class ReusableSource(OpenableSource[S], Protocol[S]):
    """A source whose sessions can wait for the next request. Every method raises SourceFailure."""

    async def rest(self, session: S) -> None:
        """End its transaction and undo what was set in it; fail unless nothing is left of it.

        Called only after all that was asked of the session has ended well.
        """

    async def resume(self, session: S) -> None:
        """Prove that the server answers, and set what :meth:`open` sets."""


class Sessions(Protocol[S]):
    """The sessions of one connection, as one connector uses them: one at a time."""

    async def take(self, *, anew: bool) -> S:
        """A session, ready for use, opened now where ``anew``. Raise SourceFailure."""
        ...

    async def give_back(self, session: S, *, is_clean: bool) -> None:
        """The session is not the caller's any more; one that is not clean ends. Never raises."""


class OwnSessions(Generic[S]):
    """Any number of sessions, each for one operation."""

    def __init__(self, source: OpenableSource[S]) -> None:
        self._source = source

    async def take(self, *, anew: bool) -> S:  # noqa: ARG002 - it always is
        return await self._source.open()

    async def give_back(self, session: S, *, is_clean: bool) -> None:  # noqa: ARG002 - it ends
        await session.close()


class SharedSessions(Generic[S]):
    """A session that waits, else a new one; at most so many of a connection at a time."""

    def __init__(
        self,
        source: ReusableSource[S],
        places: SessionPlaces,
        idle: IdleSessions | None,
        key: SessionKey,
    ) -> None:
        """Without ``idle`` none waits."""
        self._source = source
        self._places = places
        self._idle = idle
        self._key = key
        self._opened_at = 0.0

    async def take(self, *, anew: bool) -> S:
        await self._places.take(self)
        session: S | None = None
        try:
            if self._idle is not None and not anew:
                session = await self._resumed(self._idle)
            if session is None:
                if self._idle is not None:
                    await self._make_room(self._idle)
                session = await self._opened()
                self._opened_at = trio.current_time()
            return session
        finally:
            if session is None:
                self._places.give_back(self)

    async def give_back(self, session: S, *, is_clean: bool) -> None:
        is_kept = False
        try:
            is_kept = is_clean and await self._has_kept(session)
        finally:
            try:
                if not is_kept:
                    await session.close()
            finally:
                self._places.give_back(self)

    async def _resumed(self, idle: IdleSessions) -> S | None:
        waiting = idle.take(self._key)
        if waiting is None:
            return None
        session: S = waiting.session
        is_ready = False
        try:
            with trio.move_on_after(RESUME_SECONDS):
                await self._source.resume(session)
                is_ready = True
        except SourceFailure:
            # a server that was started again, say: a new session finds out
            pass
        finally:
            if not is_ready:
                idle.forget(self._key.connection_id)
                await session.close()
        self._opened_at = waiting.opened_at
        return session if is_ready else None

    async def _opened(self) -> S:
        """A new one; a server that has no room for it may have some once none waits any more."""
        try:
            return await self._source.open()
        except SourceFailure as failure:
            if failure.reason != TOO_MANY_CONNECTIONS or self._idle is None:
                raise
            if not await self._idle.end_all():
                raise
        return await self._source.open()

    async def _make_room(self, idle: IdleSessions) -> None:
        """Idle sessions count too: the oldest ends for the one that is opened now."""
        while self._places.taken + idle.count(self._key.connection_id) > self._places.most:
            oldest: IdleSession | None = idle.take_oldest(self._key.connection_id)
            if oldest is not None:
                await oldest.session.close()

    async def _has_kept(self, session: S) -> bool:
        """Whether the session waits for the next job now."""
        idle = self._idle
        if idle is None or not idle.can_keep(self._key, opened_at=self._opened_at):
            return False
        try:
            with trio.move_on_after(REST_SECONDS):
                await self._source.rest(session)
                return idle.keep(session, self._key, opened_at=self._opened_at)
        except SourceFailure:
            # it ends: nothing of one job is ever met by the next
            pass
        return False
