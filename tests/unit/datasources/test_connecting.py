"""What the connectors of all databases share: places, deadlines, order, ends."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.datasources.connecting import (
    DISCOVERY_SECONDS,
    PING_SECONDS,
    SourceConnector,
    TableStream,
)
from fetcher.datasources.sessions import SessionLimits, SessionPlaces
from fetcher.domain.ids import new_connection_id
from fetcher_engine import EncodedBatch, SchemaSnapshot, SourceFailure, Stage, StreamRequest

REQUEST = StreamRequest(config_name="src", tables={"a": ("x",), "b": ("x",)})


class FakeSession:
    def __init__(self) -> None:
        self.ends = 0

    async def close(self) -> None:
        self.ends += 1
        await trio.lowlevel.cancel_shielded_checkpoint()


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
    """Does nothing well; fails, or never ends, at one step."""

    def __init__(
        self, *, fails_at: str = "", hangs_at: str = "", batches: Sequence[int] = (1, 1)
    ) -> None:
        self._fails_at = fails_at
        self._hangs_at = hangs_at
        self._batches = batches
        self.steps: list[str] = []
        self.sessions: list[FakeSession] = []

    async def step(self, name: str) -> None:
        self.steps.append(name)
        if name == self._fails_at:
            raise SourceFailure(Stage.QUERY, "unknown")
        if name == self._hangs_at:
            await trio.sleep_forever()

    async def open(self) -> FakeSession:
        await self.step("open")
        self.sessions.append(FakeSession())
        return self.sessions[-1]

    async def ping(self, session: FakeSession) -> None:
        assert session is self.sessions[-1]
        await self.step("ping")

    async def discover(self, session: FakeSession) -> SchemaSnapshot:
        assert session is self.sessions[-1]
        await self.step("discover")
        return SchemaSnapshot("src", ())

    async def readers(self, session: FakeSession, request: StreamRequest) -> list[FakeReader]:
        assert session is self.sessions[-1]
        await self.step("readers")
        return [
            FakeReader(self, table, batches)
            for table, batches in zip(request.tables, self._batches, strict=True)
        ]


Connector = SourceConnector[FakeSession]


async def everything(connector: Connector) -> None:
    """What an operation may do with its connector, closed as the Engine does."""
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


STEPS = ("open", "ping", "discover", "readers", "start a", "next a", "start b", "next b")


def one_place() -> SessionPlaces:
    return SessionLimits().places(new_connection_id(), most=1)


async def assert_free(places: SessionPlaces) -> None:
    with trio.fail_after(1):
        await places.take(places)
    places.give_back(places)


async def test_one_session_does_everything_and_its_place_is_given_back() -> None:
    source, places = FakeSource(), one_place()
    await everything(SourceConnector(source, places))
    assert source.steps == [
        "open",
        "ping",
        "discover",
        "readers",
        "start a",
        "next a",
        "next a",
        "start b",
        "next b",
        "next b",
    ]
    assert [session.ends > 0 for session in source.sessions] == [True]
    await assert_free(places)


@pytest.mark.parametrize("step", STEPS)
async def test_a_failure_anywhere_gives_the_place_back_and_ends_the_session(step: str) -> None:
    source, places = FakeSource(fails_at=step), one_place()
    with pytest.raises(SourceFailure) as caught:
        await everything(SourceConnector(source, places))
    assert caught.value.stage == Stage.QUERY
    assert source.steps[-1] == step
    assert all(session.ends for session in source.sessions)
    await assert_free(places)


@pytest.mark.parametrize("step", STEPS)
async def test_a_cancellation_anywhere_gives_the_place_back_and_ends_the_session(
    step: str, autojump_clock: MockClock
) -> None:
    source, places = FakeSource(hangs_at=step), one_place()
    with trio.move_on_after(1) as scope:
        await everything(SourceConnector(source, places))
    assert scope.cancelled_caught
    assert source.steps[-1] == step
    assert all(session.ends for session in source.sessions)
    await assert_free(places)


async def test_who_is_cancelled_while_it_waits_for_a_place_takes_none() -> None:
    places = one_place()
    await places.take(places)
    source = FakeSource()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(everything, SourceConnector(source, places))
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    places.give_back(places)
    assert source.steps == []
    await assert_free(places)


async def test_no_place_is_a_failure_and_opens_nothing(autojump_clock: MockClock) -> None:
    places = one_place()
    await places.take(places)
    source = FakeSource()
    with pytest.raises(SourceFailure) as caught:
        await everything(SourceConnector(source, places))
    assert (caught.value.stage, caught.value.reason) == (Stage.SESSION, "too_many_sessions")
    assert source.steps == []


@pytest.mark.parametrize(
    ("step", "use", "stage", "seconds"),
    [
        ("ping", Connector.test_connection, Stage.SESSION, PING_SECONDS),
        ("discover", Connector.discover_schema, Stage.SCHEMA, DISCOVERY_SECONDS),
    ],
)
async def test_a_silent_server_is_given_up(
    step: str,
    use: Callable[[Connector], Awaitable[object]],
    stage: Stage,
    seconds: float,
    autojump_clock: MockClock,
) -> None:
    connector = SourceConnector(FakeSource(hangs_at=step), one_place())
    with pytest.raises(SourceFailure) as caught:
        await use(connector)
    assert (caught.value.stage, caught.value.reason) == (stage, "timeout")
    assert trio.current_time() == seconds


async def test_a_source_may_need_longer_for_its_schema(autojump_clock: MockClock) -> None:
    connector = SourceConnector(FakeSource(hangs_at="discover"), one_place(), discovery_seconds=90)
    with pytest.raises(SourceFailure):
        await connector.discover_schema()
    assert trio.current_time() == 90


async def test_closing_twice_gives_one_place_back() -> None:
    source, places = FakeSource(), one_place()
    connector = SourceConnector(source, places)
    await connector.close()
    await connector.test_connection()
    await connector.close()
    await connector.close()
    assert source.sessions[0].ends == 1
    await assert_free(places)


async def test_after_a_failed_opening_the_same_place_serves_the_next_attempt() -> None:
    places = one_place()
    source = FakeSource(fails_at="open")
    connector = SourceConnector(source, places)
    for _ in range(2):
        with pytest.raises(SourceFailure):
            await connector.test_connection()
    assert source.steps == ["open", "open"]
    await connector.close()
    await assert_free(places)


async def test_without_places_any_number_of_sessions_may_be_open() -> None:
    connectors = [SourceConnector(FakeSource(), None) for _ in range(30)]
    for connector in connectors:
        await connector.test_connection()
    for connector in connectors:
        await connector.close()


async def test_a_stream_that_is_closed_early_reads_no_further_table() -> None:
    source, session = FakeSource(batches=(2, 1)), FakeSession()
    stream = TableStream(session, [FakeReader(source, "a", 2), FakeReader(source, "b", 1)])
    assert await stream.next_batch() == EncodedBatch("a", b"{}", 1)
    await stream.aclose()
    assert session.ends == 1
    assert source.steps == ["start a", "next a"]


async def test_tables_without_rows_are_passed_over() -> None:
    source = FakeSource()
    readers = [
        FakeReader(source, table, batches) for table, batches in (("a", 0), ("b", 2), ("c", 0))
    ]
    stream = TableStream(FakeSession(), readers)
    batches = []
    while (batch := await stream.next_batch()) is not None:
        batches.append(batch.table)
    assert batches == ["b", "b"]
    assert await stream.next_batch() is None
