"""What the connectors of all databases share: places, deadlines, order, ends."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.datasources.connecting import (
    DISCOVERY_SECONDS,
    PING_SECONDS,
    SourceConnector,
    TableStream,
)
from fetcher.datasources.session_supply import OwnSessions
from fetcher.datasources.snapshots import SnapshotNote
from fetcher.datasources.texts import Texts
from fetcher_engine import EncodedBatch, SourceFailure, SourceNotes, Stage
from tests.unit.datasources.fake_source import (
    REQUEST,
    Connector,
    FakeReader,
    FakeSession,
    FakeSource,
    everything,
    shared,
    some_places,
)

STEPS = ("open", "ping", "discover", "readers", "start a", "next a", "start b", "next b")


async def test_one_session_does_everything_and_its_place_is_given_back() -> None:
    source, places = FakeSource(), some_places()
    await everything(SourceConnector(source, shared(source, places)))
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
    assert [session.ends for session in source.sessions] == [1]
    assert places.taken == 0


@pytest.mark.parametrize("step", STEPS)
async def test_a_failure_anywhere_gives_the_place_back_and_ends_the_session(step: str) -> None:
    source, places = FakeSource(fails_at=step), some_places()
    with pytest.raises(SourceFailure) as caught:
        await everything(SourceConnector(source, shared(source, places)))
    assert caught.value.stage == Stage.QUERY
    assert source.steps[-1] == step
    assert all(session.ends for session in source.sessions)
    assert places.taken == 0


@pytest.mark.parametrize("step", STEPS)
async def test_a_cancellation_anywhere_gives_the_place_back_and_ends_the_session(
    step: str, autojump_clock: MockClock
) -> None:
    source, places = FakeSource(hangs_at=step), some_places()
    with trio.move_on_after(1) as scope:
        await everything(SourceConnector(source, shared(source, places)))
    assert scope.cancelled_caught
    assert source.steps[-1] == step
    assert all(session.ends for session in source.sessions)
    assert places.taken == 0


async def test_who_is_cancelled_while_it_waits_for_a_place_takes_none() -> None:
    places, source = some_places(), FakeSource()
    await places.take(places)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(everything, SourceConnector(source, shared(source, places)))
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert source.steps == []
    assert places.taken == 1


async def test_no_place_is_a_failure_and_opens_nothing(autojump_clock: MockClock) -> None:
    places, source = some_places(), FakeSource()
    await places.take(places)
    with pytest.raises(SourceFailure) as caught:
        await everything(SourceConnector(source, shared(source, places)))
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
    source = FakeSource(hangs_at=step)
    with pytest.raises(SourceFailure) as caught:
        await use(SourceConnector(source, OwnSessions(source)))
    assert (caught.value.stage, caught.value.reason) == (stage, "timeout")
    assert trio.current_time() == seconds


async def test_a_source_may_need_longer_for_its_schema(autojump_clock: MockClock) -> None:
    source = FakeSource(hangs_at="discover")
    connector = SourceConnector(source, OwnSessions(source), discovery_seconds=90)
    with pytest.raises(SourceFailure):
        await connector.discover_schema()
    assert trio.current_time() == 90


async def test_closing_twice_gives_one_place_back() -> None:
    source, places = FakeSource(), some_places()
    connector = SourceConnector(source, shared(source, places))
    await connector.close()
    await connector.test_connection()
    assert places.taken == 1
    await connector.close()
    await connector.close()
    assert source.sessions[0].ends == 1
    assert places.taken == 0


async def test_a_failed_opening_holds_no_place() -> None:
    source, places = FakeSource(fails_at="open"), some_places()
    connector = SourceConnector(source, shared(source, places))
    for _ in range(2):
        with pytest.raises(SourceFailure):
            await connector.test_connection()
        assert places.taken == 0
    assert source.steps == ["open", "open"]


async def test_own_sessions_end_with_their_operations() -> None:
    source = FakeSource()
    for _ in range(2):
        await everything(SourceConnector(source, OwnSessions(source)))
    assert [session.ends for session in source.sessions] == [1, 1]


async def test_a_stream_that_is_closed_early_reads_no_further_table_and_ends_its_session() -> None:
    source, session = FakeSource(), FakeSession()
    ends: list[str] = []
    stream = TableStream(
        session,
        [FakeReader(source, "a", 2), FakeReader(source, "b", 1)],
        on_end=lambda: ends.append("end"),
    )
    assert await stream.next_batch() == EncodedBatch("a", b"{}", 1)
    await stream.aclose()
    assert session.ends == 1
    assert source.steps == ["start a", "next a"]
    assert ends == []


async def test_tables_without_rows_are_passed_over_and_the_end_is_told_once() -> None:
    source, session = FakeSource(), FakeSession()
    ends: list[str] = []
    stream = TableStream(
        session,
        [FakeReader(source, table, batches) for table, batches in (("a", 0), ("b", 2), ("c", 0))],
        on_end=lambda: ends.append("end"),
    )
    tables = []
    while (batch := await stream.next_batch()) is not None:
        tables.append(batch.table)
    assert tables == ["b", "b"]
    assert await stream.next_batch() is None
    await stream.aclose()
    assert ends == ["end"]
    assert session.ends == 0, "whoever lent it has it back as it was"


async def test_a_request_without_tables_ends_at_once() -> None:
    source = FakeSource(batches=())
    connector = SourceConnector(source, OwnSessions(source))
    stream = await connector.open_stream(type(REQUEST)(config_name="src", tables={}))
    assert await stream.next_batch() is None
    await connector.close()
    assert source.sessions[0].ends == 1


async def test_after_a_refused_snapshot_a_new_session_reads_without_one() -> None:
    source, places = FakeSource(), some_places()
    source.refusals = 1
    told: list[str] = []
    snapshot = SnapshotNote(lambda: told.append("refused"))
    await everything(SourceConnector(source, shared(source, places), snapshot=snapshot))
    assert told == ["refused"]
    assert source.steps[:6] == ["open", "ping", "discover", "readers", "open", "readers"]
    assert [session.ends for session in source.sessions] == [1, 1]
    assert places.taken == 0


async def notes_of(source: FakeSource, texts: Texts | None = None) -> SourceNotes:
    connector = SourceConnector(source, OwnSessions(source), texts=texts)
    stream = await connector.open_stream(REQUEST)
    while await stream.next_batch() is not None:
        if texts is not None:
            texts.decoded(b"\xf3\xf3")
    await connector.close()
    return stream.notes()


async def test_a_stream_tells_its_job_what_the_log_tells_the_operator() -> None:
    refusing = FakeSource()
    refusing.refusals = 1
    assert await notes_of(FakeSource()) == SourceNotes()
    assert await notes_of(refusing) == SourceNotes(has_snapshot=False)
    two_tables = await notes_of(FakeSource(), Texts(replaces=True))
    assert two_tables == SourceNotes(replaced_characters=4)


async def test_a_second_refusal_is_a_failure() -> None:
    source, places = FakeSource(), some_places()
    source.refusals = 2
    with pytest.raises(SourceFailure) as caught:
        await everything(SourceConnector(source, shared(source, places)))
    assert (caught.value.stage, caught.value.reason) == (Stage.SESSION, "snapshot_refused")
    assert caught.value.__context__ is None
    assert [session.ends for session in source.sessions] == [1, 1]
    assert places.taken == 0
