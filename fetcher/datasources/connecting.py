"""What the connectors of all databases share: one session, a place for it, deadlines, an end.

A database's own part is its :class:`Source`, which speaks with the session that it opened.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import structlog
import trio

from fetcher.datasources.idle_sessions import SessionKey
from fetcher.datasources.records import record_of, version_of
from fetcher.datasources.session_supply import (
    OpenableSource,
    ReusableSource,
    Session,
    Sessions,
    SharedSessions,
)
from fetcher.datasources.sessions import MAX_SESSIONS, SessionLimits
from fetcher.datasources.snapshots import SnapshotNote, SnapshotRefused
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.texts import Texts
from fetcher.domain.connections import Connection
from fetcher_engine import (
    ConnectionDescriptor,
    EncodedBatch,
    SchemaSnapshot,
    SourceFailure,
    SourceNotes,
    Stage,
    StreamRequest,
)

log = structlog.get_logger(__name__)

PING_SECONDS: Final = 5.0
DISCOVERY_SECONDS: Final = 30.0

TIMEOUT: Final = "timeout"


S = TypeVar("S", bound=Session)


class TableReader(Protocol):
    """The rows of one asked table. Both methods raise SourceFailure."""

    async def start(self) -> None:
        """Send the statement; called once, when the tables before have ended."""

    async def next_batch(self) -> EncodedBatch | None:
        """None after the last row, which the server said was the last."""
        ...


class Source(OpenableSource[S], Protocol[S]):
    """One database as one request reads it. Every method raises SourceFailure."""

    async def ping(self, session: S) -> None:
        """Prove that the server answers."""

    async def discover(self, session: S) -> SchemaSnapshot:
        """The asked tables, else those that the connection means by default."""
        ...

    async def readers(self, session: S, request: StreamRequest) -> Iterable[TableReader]:
        """Begin the snapshot and look the tables up in it; one reader a table, in their order.

        Raise SnapshotRefused where the server has none; called again, go on without it.
        """
        ...


class NetworkSource(Source[S], ReusableSource[S], Protocol[S]):
    """A source whose sessions may serve one request after the other."""


class TableStream:
    """The rows of all asked tables, one after the other.

    Of each table in which text was replaced it is logged how often; the job is told their sum.
    """

    def __init__(
        self,
        session: Session,
        readers: Iterable[TableReader],
        *,
        on_end: Callable[[], None],
        config_name: str = "",
        texts: Texts | None = None,
        snapshot: SnapshotNote | None = None,
    ) -> None:
        """``on_end`` is told that the last row of the last table has come."""
        self._session = session
        self._on_end = on_end
        self._has_ended = False
        self._waiting = deque(readers)
        self._reader: TableReader | None = None
        self._config_name = config_name
        self._texts = texts or Texts()
        self._snapshot = snapshot or SnapshotNote()
        self._table = ""
        self._replaced_characters = 0

    async def next_batch(self) -> EncodedBatch | None:
        while True:
            if self._reader is None:
                if not self._waiting:
                    self._end()
                    return None
                reader = self._waiting.popleft()
                await reader.start()
                self._reader = reader
            batch = await self._reader.next_batch()
            if batch is not None:
                self._table = batch.table
                return batch
            self._reader = None
            self._tell_of_replaced_text()

    def _tell_of_replaced_text(self) -> None:
        replaced = self._texts.take_replaced()
        self._replaced_characters += replaced
        if replaced:
            log.warning(
                "invalid_text_replaced",
                source=self._config_name,
                table=self._table,
                characters=replaced,
            )

    def notes(self) -> SourceNotes:
        return SourceNotes(
            has_snapshot=self._snapshot.has_snapshot,
            replaced_characters=self._replaced_characters,
        )

    async def aclose(self) -> None:
        """Before the last row: end the session, and what it still does on the server."""
        self._waiting.clear()
        if not self._has_ended:
            await self._session.close()

    def _end(self) -> None:
        if not self._has_ended:
            self._has_ended = True
            self._on_end()


class SourceConnector(Generic[S]):
    """One session, taken when it is first needed; for one operation and one task."""

    def __init__(
        self,
        source: Source[S],
        sessions: Sessions[S],
        *,
        tests_anew: bool = False,
        discovery_seconds: float | None = None,
        texts: Texts | None = None,
        snapshot: SnapshotNote | None = None,
    ) -> None:
        """No I/O. With ``tests_anew`` a test proves that one can log in, not that one could.

        ``snapshot`` is told of a read that has none, here or by the source.
        """
        self._texts = texts
        self._snapshot = snapshot or SnapshotNote()
        self._source = source
        self._sessions = sessions
        self._tests_anew = tests_anew
        self._discovery_seconds = discovery_seconds or DISCOVERY_SECONDS
        self._session: S | None = None
        self._is_clean = False
        """Whether all that was asked of the session has ended well."""

    async def test_connection(self) -> None:
        session = await self._use(anew=self._tests_anew)
        with trio.move_on_after(PING_SECONDS):
            await self._source.ping(session)
            self._is_clean = True
            return
        raise SourceFailure(Stage.SESSION, TIMEOUT)

    async def discover_schema(self) -> SchemaSnapshot:
        session = await self._use()
        with trio.move_on_after(self._discovery_seconds):
            snapshot = await self._source.discover(session)
            self._is_clean = True
            return snapshot
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    async def open_stream(self, request: StreamRequest) -> TableStream:
        session = await self._use()
        readers = await self._readers_in_snapshot(session, request)
        if readers is None:
            self._snapshot()
            # a proxy may have hung up, and what is left of the attempt is not known
            await self.close()
            session = await self._use(anew=True)
            readers = await self._source.readers(session, request)
        return TableStream(
            session,
            readers,
            on_end=self._ended_well,
            config_name=request.config_name,
            texts=self._texts,
            snapshot=self._snapshot,
        )

    async def close(self) -> None:
        """Idempotent; never raises."""
        session, self._session = self._session, None
        if session is not None:
            await self._sessions.give_back(session, is_clean=self._is_clean)

    async def _readers_in_snapshot(
        self, session: S, request: StreamRequest
    ) -> Iterable[TableReader] | None:
        """None: the server refuses a snapshot; the source will not ask for one again."""
        try:
            return await self._source.readers(session, request)
        except SnapshotRefused:
            return None

    async def _use(self, *, anew: bool = False) -> S:
        self._is_clean = False
        if self._session is None:
            self._session = await self._sessions.take(anew=anew)
        return self._session

    def _ended_well(self) -> None:
        self._is_clean = True


class SourceFactory(ABC):
    """Builds the connectors of one type of source for one request."""

    requires_fields: ClassVar[bool] = True
    """Whether an empty list of fields is a mistake: tables have columns."""

    max_sessions: ClassVar[int] = MAX_SESSIONS
    """Of one connection in this process."""

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> SourceConnector[Any]:
        record = record_of(descriptor)
        texts = Texts(replaces=record.replaces_invalid_text)
        snapshot = SnapshotNote(lambda: self._sessions.refusals.tell(record.id, record.config_name))
        source = self._source(record, texts, snapshot)
        sessions = SharedSessions(
            source,
            self._sessions.places(record.id, most=self.max_sessions),
            self._sessions.idle,
            SessionKey(connection_id=record.id, version=version_of(record, self._settings)),
        )
        tests_anew = self._scope.requested is None
        return SourceConnector(
            source,
            sessions,
            tests_anew=tests_anew,
            texts=texts,
            snapshot=snapshot,
        )

    @abstractmethod
    def _source(
        self, record: Connection, texts: Texts, snapshot: SnapshotNote
    ) -> NetworkSource[Any]:
        """No I/O: the password is revealed when the source is opened, not before.

        ``snapshot`` is for sources that find out by themselves that they have none.
        """
