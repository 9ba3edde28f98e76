"""MongoDB as a source of the Engine: one session, one snapshot where the server offers it."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import trio
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError

from fetcher.datasources.mongodb.connect import PING_SECONDS, MongoSession, open_session
from fetcher.datasources.mongodb.errors import (
    INVALID_SETTING,
    TIMEOUT,
    statement_failure,
)
from fetcher.datasources.mongodb.layout import Layout, Reading
from fetcher.datasources.mongodb.rows import CollectionRows, SnapshotRefused
from fetcher.datasources.mongodb.schema import Source
from fetcher.datasources.sessions import SessionPlaces
from fetcher.datasources.targets import Target
from fetcher_engine import EncodedBatch, SchemaSnapshot, SourceFailure, Stage, StreamRequest

DISCOVERY_SECONDS: Final = 30.0
NO_PROGRESS_SECONDS: Final = 60.0

_NOT_IN_NAMES: Final = frozenset(' ./\\"$\0')
"""No database of MongoDB has these in its name."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MongoSettings:
    """What the operator decides."""

    statement_seconds: float = 120.0


class MongoStream:
    """The rows of all asked collections, in the order of the request."""

    def __init__(
        self,
        session: MongoSession,
        reading: ClientSession | None,
        waiting: Sequence[Callable[[ClientSession | None], CollectionRows]],
    ) -> None:
        self._session = session
        self._reading = reading
        self._waiting = deque(waiting)
        self._rows: CollectionRows | None = None
        self._has_begun = False

    async def next_batch(self) -> EncodedBatch | None:
        while True:
            if self._rows is None:
                if not self._waiting:
                    return None
                self._rows = await self._started(self._waiting.popleft())
            batch = await self._run(self._rows.next_batch, self._rows)
            if batch is not None:
                return batch
            self._rows = None

    async def aclose(self) -> None:
        """End the session, and what it still does on the server."""
        is_unfinished = self._rows is not None
        rows, self._rows = self._rows, None
        self._waiting.clear()
        await self._session.close(lambda: self._stop(rows) if is_unfinished else None)

    async def _started(
        self, make: Callable[[ClientSession | None], CollectionRows]
    ) -> CollectionRows:
        rows = self._rows = make(self._reading)
        try:
            await self._run(rows.start, rows)
        except SnapshotRefused:
            is_refused = True
        else:
            self._has_begun = True
            return rows
        if is_refused and (self._reading is None or self._has_begun):
            raise SourceFailure(Stage.QUERY, "unknown")
        # nothing was read yet: without a snapshot then, as on a server that has none
        self._reading = None
        return await self._started(make)

    async def _run(self, work: Callable[[], T], rows: CollectionRows) -> T:
        with trio.move_on_after(NO_PROGRESS_SECONDS):
            return await self._session.run(work)
        raise SourceFailure(rows.stage, TIMEOUT)

    def _stop(self, rows: CollectionRows | None) -> None:
        """Whoever reads may stop its own session; no privilege is needed for that."""
        if rows is not None:
            rows.close()
        if self._reading is not None:
            self._session.client.admin.command({"killSessions": [self._reading.session_id]})


class MongoConnector:
    """One session, opened when it is first needed; for one operation and one task."""

    def __init__(
        self,
        *,
        target: Callable[[], Target],
        auth_source: str,
        layout: Layout,
        places: SessionPlaces,
        settings: MongoSettings,
    ) -> None:
        """No I/O. ``target`` is asked when connecting: only then is the password revealed."""
        self._target = target
        self._auth_source = auth_source
        self._layout = layout
        self._places = places
        self._settings = settings
        self._session: MongoSession | None = None
        self._database_name = ""
        self._has_place = False

    async def test_connection(self) -> None:
        session = await self._open()
        with trio.move_on_after(PING_SECONDS):
            await self._ask(Stage.SESSION, lambda: session.client.admin.command("ping"))
            return
        raise SourceFailure(Stage.SESSION, TIMEOUT)

    async def discover_schema(self) -> SchemaSnapshot:
        """The asked collections, else all; their fields by a sample of each."""
        await self._open()
        with trio.move_on_after(DISCOVERY_SECONDS):
            return await self._ask(Stage.SCHEMA, lambda: self._layout.snapshot(self._database()))
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    async def open_stream(self, request: StreamRequest) -> MongoStream:
        """Look the collections up again, and learn what the filtered fields hold."""
        session = await self._open()
        with trio.move_on_after(DISCOVERY_SECONDS):
            found = await self._ask(
                Stage.SCHEMA, lambda: self._layout.readings(self._database(), request)
            )
            reading = await self._ask(Stage.SESSION, lambda: self._reading_session(session))
            return MongoStream(
                session, reading, [self._opener(each, request.max_batch_bytes) for each in found]
            )
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    async def close(self) -> None:
        """Idempotent; never raises."""
        try:
            if self._session is not None:
                await self._session.close()
        finally:
            self._session = None
            if self._has_place:
                self._has_place = False
                self._places.give_back(self)

    def _reading_session(self, session: MongoSession) -> ClientSession | None:
        if "logicalSessionTimeoutMinutes" not in session.hello:
            return None
        return session.client.start_session(snapshot=session.offers_snapshots)

    def _opener(
        self, found: Reading, chunk_bytes: int
    ) -> Callable[[ClientSession | None], CollectionRows]:
        return lambda reading: CollectionRows(
            self._database(),
            found.query,
            found.writer,
            session=reading,
            statement_seconds=self._settings.statement_seconds,
            chunk_bytes=chunk_bytes,
        )

    def _database(self) -> Source:
        if self._session is None:
            raise SourceFailure(Stage.SESSION, "closed")
        return self._session.client[self._database_name]

    async def _ask(self, stage: Stage, work: Callable[[], T]) -> T:
        if self._session is None:
            raise SourceFailure(Stage.SESSION, "closed")
        try:
            return await self._session.run(work)
        except (PyMongoError, OSError) as error:
            failure = statement_failure(stage, error, table=None)
        raise failure

    async def _open(self) -> MongoSession:
        if self._session is None:
            await self._places.take(self)
            self._has_place = True
            target = self._target()
            if not target.database or _NOT_IN_NAMES & set(target.database):
                raise SourceFailure(Stage.SESSION, INVALID_SETTING)
            self._database_name = target.database
            self._session = await open_session(target, auth_source=self._auth_source)
        return self._session


def auth_source_of(metadata: Mapping[str, Any], *, database: str, is_internal: bool) -> str:
    """Where the user is known: as the connection says, else as is usual (spec 2.1)."""
    stated = metadata.get("authSource")
    if isinstance(stated, str) and stated.strip():
        return stated
    return database if is_internal else "admin"
