"""MongoDB as a source of the Engine: one session, one snapshot where the server offers it."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import trio
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError

from fetcher.datasources.connecting import DISCOVERY_SECONDS
from fetcher.datasources.mongodb.connect import MongoSession, open_session
from fetcher.datasources.mongodb.errors import (
    INVALID_SETTING,
    TIMEOUT,
    statement_failure,
)
from fetcher.datasources.mongodb.layout import Layout, Reading
from fetcher.datasources.mongodb.rows import CollectionRows
from fetcher.datasources.mongodb.schema import Source
from fetcher.datasources.snapshots import SnapshotRefused
from fetcher.datasources.source_settings import ReadSettings
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import ThreadKind, in_thread
from fetcher_engine import EncodedBatch, SchemaSnapshot, SourceFailure, Stage, StreamRequest

NO_PROGRESS_SECONDS: Final = 60.0

_WRITERS: Final = ThreadKind(1)
"""The thread that turns documents into JSON. Two would be no faster, since they hold the same lock,
and would keep the event loop from it for twice as long."""

_NOT_IN_NAMES: Final = frozenset(' ./\\"$\0')
"""No database of MongoDB has these in its name."""

T = TypeVar("T")

MakeRows = Callable[[ClientSession | None], CollectionRows]


class MongoReading:
    """What the readers of one stream share: the server's session, and what is being read in it."""

    def __init__(
        self,
        session: MongoSession,
        snapshot: ClientSession | None,
        *,
        on_refusal: Callable[[], None],
    ) -> None:
        self._session = session
        self._writers = session.threads.of(_WRITERS)
        self._snapshot = snapshot
        self._on_refusal = on_refusal
        self._rows: CollectionRows | None = None
        self._has_begun = False
        session.last_words = self._stop

    async def start(self, make: MakeRows) -> CollectionRows:
        """Ask for the first documents; raise SourceFailure."""
        rows = self._rows = make(self._snapshot)
        try:
            await self._run(rows.fetch, rows)
        except SnapshotRefused:
            if self._snapshot is None or self._has_begun:
                raise
        else:
            self._has_begun = True
            return rows
        # nothing was read yet: without a snapshot then, as on a server that has none
        self._snapshot = None
        self._on_refusal()
        return await self.start(make)

    async def next_batch(self, rows: CollectionRows) -> EncodedBatch | None:
        while rows.waits_for_server:
            await self._run(rows.fetch, rows)
        batch = await in_thread(self._writers, rows.next_batch)
        if batch is None:
            self._rows = None
        return batch

    async def _run(self, work: Callable[[], T], rows: CollectionRows) -> T:
        with trio.move_on_after(NO_PROGRESS_SECONDS):
            return await self._session.run(work)
        raise SourceFailure(rows.stage, TIMEOUT)

    def _stop(self) -> None:
        """Whoever reads may stop its own session; no privilege is needed for that."""
        if self._rows is None:
            return
        self._rows.close()
        if self._snapshot is not None:
            self._session.client.admin.command({"killSessions": [self._snapshot.session_id]})


class CollectionReader:
    """One collection of a stream."""

    def __init__(self, reading: MongoReading, make: MakeRows) -> None:
        self._reading = reading
        self._make = make
        self._rows: CollectionRows | None = None

    async def start(self) -> None:
        self._rows = await self._reading.start(self._make)

    async def next_batch(self) -> EncodedBatch | None:
        return await self._reading.next_batch(self._rows) if self._rows is not None else None


class MongoSource:
    """One database as one request reads it."""

    def __init__(
        self,
        *,
        target: Callable[[], Target],
        database_name: str,
        auth_source: str,
        layout: Layout,
        settings: ReadSettings,
        on_refusal: Callable[[], None] = lambda: None,
    ) -> None:
        """No I/O. ``target`` is asked when connecting: only then is the password revealed.

        ``on_refusal`` is told of a read that has no snapshot.
        """
        self._on_refusal = on_refusal
        self._target = target
        self._database_name = database_name
        self._auth_source = auth_source
        self._layout = layout
        self._settings = settings

    async def open(self) -> MongoSession:
        target = self._target()
        if not self._database_name or _NOT_IN_NAMES & set(self._database_name):
            raise SourceFailure(Stage.SESSION, INVALID_SETTING)
        return await open_session(target, auth_source=self._auth_source)

    async def rest(self, session: MongoSession) -> None:
        """Its cursors have been read to their ends."""
        await _ask(session, Stage.SESSION, session.end_reading)

    async def resume(self, session: MongoSession) -> None:
        await _ask(session, Stage.SESSION, session.prove)

    async def ping(self, session: MongoSession) -> None:
        await _ask(session, Stage.SESSION, lambda: session.client.admin.command("ping"))

    async def discover(self, session: MongoSession) -> SchemaSnapshot:
        """The asked collections, else all; their fields by a sample of each."""
        database = self._database(session)
        return await _ask(session, Stage.SCHEMA, lambda: self._layout.snapshot(database))

    async def readers(
        self, session: MongoSession, request: StreamRequest
    ) -> list[CollectionReader]:
        """Look the collections up again, and learn what the filtered fields hold."""
        with trio.move_on_after(DISCOVERY_SECONDS):
            database = self._database(session)
            found = await _ask(
                session, Stage.SCHEMA, lambda: self._layout.readings(database, request)
            )
            snapshot = await _ask(session, Stage.SESSION, session.start_reading)
            if not session.offers_snapshots:
                self._on_refusal()
            reading = MongoReading(session, snapshot, on_refusal=self._on_refusal)
            return [
                CollectionReader(reading, self._opener(database, each, request.max_batch_bytes))
                for each in found
            ]
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    def _opener(self, database: Source, found: Reading, chunk_bytes: int) -> MakeRows:
        return lambda snapshot: CollectionRows(
            database,
            found.query,
            found.writer,
            session=snapshot,
            statement_seconds=self._settings.statement_seconds,
            chunk_bytes=chunk_bytes,
        )

    def _database(self, session: MongoSession) -> Source:
        return session.client[self._database_name]


async def _ask(session: MongoSession, stage: Stage, work: Callable[[], T]) -> T:
    try:
        return await session.run(work)
    except (PyMongoError, OSError) as error:
        failure = statement_failure(stage, error, table=None)
    raise failure


def auth_source_of(metadata: Mapping[str, Any], *, database: str, is_internal: bool) -> str:
    """Where the user is known: as the connection says, else as is usual (spec 2.1)."""
    stated = metadata.get("authSource")
    if isinstance(stated, str) and stated.strip():
        return stated
    return database if is_internal else "admin"
