"""A source without a database: it writes down what it is asked, and fails or hangs at one step."""

from collections.abc import Sequence

import trio

from fetcher.datasources.connecting import SourceConnector
from fetcher.datasources.idle_sessions import IdleSessions, SessionKey
from fetcher.datasources.session_supply import SharedSessions
from fetcher.datasources.sessions import SessionLimits, SessionPlaces
from fetcher.datasources.snapshots import SnapshotRefused
from fetcher.domain.ids import new_connection_id
from fetcher_engine import EncodedBatch, SchemaSnapshot, SourceFailure, Stage, StreamRequest

REQUEST = StreamRequest(config_name="src", tables={"a": ("x",), "b": ("x",)})
KEY = SessionKey(connection_id=new_connection_id(), version="1")


class FakeSession:
    def __init__(self, *, slow_seconds: float = 0.0) -> None:
        self._slow_seconds = slow_seconds
        self.ends = 0
        self._is_closed = False

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        with trio.CancelScope(shield=True):
            await trio.sleep(self._slow_seconds)
        self.ends += 1


class FakeReader:
    def __init__(self, source: "FakeSource", table: str, batches: int) -> None:
        self._source = source
        self._table = table
        self._left = batches

    async def start(self) -> None:
        await self._source.step(f"start {self._table}")

    async def next_batch(self) -> EncodedBatch | None:
        await self._source.step(f"next {self._table}")
        if not self._left:
            return None
        self._left -= 1
        return EncodedBatch(self._table, b"{}", 1)


class FakeSource:
    def __init__(
        self, *, fails_at: str = "", hangs_at: str = "", batches: Sequence[int] = (1, 1)
    ) -> None:
        self.fails_at = fails_at
        self.hangs_at = hangs_at
        self.steps: list[str] = []
        self.sessions: list[FakeSession] = []
        self._batches = batches
        self.refusals = 0
        """How often a snapshot is still to be refused."""

    async def step(self, name: str) -> None:
        self.steps.append(name)
        await trio.lowlevel.checkpoint()
        if name == self.fails_at:
            raise SourceFailure(Stage.QUERY, "unknown")
        if name == self.hangs_at:
            await trio.sleep_forever()

    async def open(self) -> FakeSession:
        await self.step("open")
        self.sessions.append(FakeSession())
        return self.sessions[-1]

    async def rest(self, session: FakeSession) -> None:
        assert not session.ends
        await self.step("rest")

    async def resume(self, session: FakeSession) -> None:
        assert not session.ends
        await self.step("resume")

    async def ping(self, session: FakeSession) -> None:
        assert not session.ends
        await self.step("ping")

    async def discover(self, session: FakeSession) -> SchemaSnapshot:
        assert not session.ends
        await self.step("discover")
        return SchemaSnapshot("src", ())

    async def readers(self, session: FakeSession, request: StreamRequest) -> list[FakeReader]:
        assert not session.ends
        await self.step("readers")
        if self.refusals:
            self.refusals -= 1
            raise SnapshotRefused
        return [
            FakeReader(self, table, batches)
            for table, batches in zip(request.tables, self._batches, strict=True)
        ]


Connector = SourceConnector[FakeSession]


def shared(
    source: FakeSource,
    places: SessionPlaces,
    idle: IdleSessions | None = None,
    key: SessionKey = KEY,
) -> SharedSessions[FakeSession]:
    return SharedSessions(source, places, idle, key)


def some_places(most: int = 1) -> SessionPlaces:
    return SessionLimits().places(new_connection_id(), most=most)


async def everything(connector: Connector) -> None:
    """What an operation may do with its connector, which is closed as the Engine does."""
    try:
        await connector.test_connection()
        await connector.discover_schema()
        stream = await connector.open_stream(REQUEST)
        try:
            while await stream.next_batch() is not None:
                pass
        finally:
            with trio.CancelScope(shield=True):
                await stream.aclose()
    finally:
        with trio.CancelScope(shield=True):
            await connector.close()
