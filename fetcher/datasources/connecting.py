"""What the connectors of all databases share: one session, a place for it, deadlines, an end.

A database's own part is its :class:`Source`, which speaks with the session that it opened.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import structlog
import trio

from fetcher.datasources.records import record_of
from fetcher.datasources.sessions import MAX_SESSIONS, SessionLimits, SessionPlaces
from fetcher.datasources.source_settings import RequestScope, SourceSettings
from fetcher.datasources.texts import Texts
from fetcher.domain.connections import Connection
from fetcher_engine import (
    ConnectionDescriptor,
    EncodedBatch,
    SchemaSnapshot,
    SourceFailure,
    Stage,
    StreamRequest,
)

log = structlog.get_logger(__name__)

PING_SECONDS: Final = 5.0
DISCOVERY_SECONDS: Final = 30.0

TIMEOUT: Final = "timeout"


class Session(Protocol):
    """A logged-in connection to a database."""

    async def close(self) -> None:
        """End it, and what it still does on the server. Idempotent, never raises, 2 seconds."""


S = TypeVar("S", bound=Session)


class TableReader(Protocol):
    """The rows of one asked table. Both methods raise SourceFailure."""

    async def start(self) -> None:
        """Send the statement; called once, when the tables before have ended."""

    async def next_batch(self) -> EncodedBatch | None:
        """None after the last row, which the server said was the last."""
        ...


class Source(Protocol[S]):
    """One database as one request reads it. Every method raises SourceFailure."""

    async def open(self) -> S:
        """A session, ready for use. Cancelled or failed, nothing stays open."""
        ...

    async def ping(self, session: S) -> None:
        """Prove that the server answers."""

    async def discover(self, session: S) -> SchemaSnapshot:
        """The asked tables, else those that the connection means by default."""
        ...

    async def readers(self, session: S, request: StreamRequest) -> Iterable[TableReader]:
        """Begin the snapshot and look the tables up in it; one reader a table, in their order."""
        ...


class TableStream:
    """The rows of all asked tables, one after the other. Closing it ends the session.

    Of each table in which text was replaced it is logged how often.
    """

    def __init__(
        self,
        session: Session,
        readers: Iterable[TableReader],
        *,
        config_name: str = "",
        texts: Texts | None = None,
    ) -> None:
        self._session = session
        self._waiting = deque(readers)
        self._reader: TableReader | None = None
        self._config_name = config_name
        self._texts = texts or Texts()
        self._table = ""

    async def next_batch(self) -> EncodedBatch | None:
        while True:
            if self._reader is None:
                if not self._waiting:
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
        if replaced:
            log.warning(
                "invalid_text_replaced",
                source=self._config_name,
                table=self._table,
                characters=replaced,
            )

    async def aclose(self) -> None:
        """End the session, and what it still does on the server."""
        self._waiting.clear()
        await self._session.close()


class SourceConnector(Generic[S]):
    """One session, opened when it is first needed; for one operation and one task."""

    def __init__(
        self,
        source: Source[S],
        places: SessionPlaces | None,
        *,
        discovery_seconds: float = DISCOVERY_SECONDS,
        texts: Texts | None = None,
    ) -> None:
        """No I/O. Without ``places`` any number of sessions may be open."""
        self._texts = texts
        self._source = source
        self._places = places
        self._discovery_seconds = discovery_seconds
        self._session: S | None = None
        self._has_place = False

    async def test_connection(self) -> None:
        session = await self._open()
        with trio.move_on_after(PING_SECONDS):
            return await self._source.ping(session)
        raise SourceFailure(Stage.SESSION, TIMEOUT)

    async def discover_schema(self) -> SchemaSnapshot:
        session = await self._open()
        with trio.move_on_after(self._discovery_seconds):
            return await self._source.discover(session)
        raise SourceFailure(Stage.SCHEMA, TIMEOUT)

    async def open_stream(self, request: StreamRequest) -> TableStream:
        session = await self._open()
        readers = await self._source.readers(session, request)
        return TableStream(session, readers, config_name=request.config_name, texts=self._texts)

    async def close(self) -> None:
        """Idempotent; never raises."""
        session, self._session = self._session, None
        try:
            if session is not None:
                await session.close()
        finally:
            if self._places is not None and self._has_place:
                self._has_place = False
                self._places.give_back(self)

    async def _open(self) -> S:
        if self._session is None:
            if self._places is not None and not self._has_place:
                await self._places.take(self)
                self._has_place = True
            self._session = await self._source.open()
        return self._session


class SourceFactory(ABC):
    """Builds the connectors of one type of source for one request."""

    requires_fields: ClassVar[bool] = True
    """Whether an empty list of fields is a mistake: tables have columns."""

    max_sessions: ClassVar[int | None] = MAX_SESSIONS
    """Of one connection in this process; None: any number."""

    discovery_seconds: float = DISCOVERY_SECONDS

    def __init__(
        self, settings: SourceSettings, sessions: SessionLimits, scope: RequestScope
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._scope = scope

    def build(self, descriptor: ConnectionDescriptor) -> SourceConnector[Any]:
        record = record_of(descriptor)
        places = None
        if self.max_sessions is not None:
            places = self._sessions.places(record.id, most=self.max_sessions)
        texts = Texts(replaces=record.replaces_invalid_text)
        return SourceConnector(
            self._source(record, texts),
            places,
            discovery_seconds=self.discovery_seconds,
            texts=texts,
        )

    @abstractmethod
    def _source(self, record: Connection, texts: Texts) -> Source[Any]:
        """No I/O: the password is revealed when the source is opened, not before."""
