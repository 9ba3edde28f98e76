"""ConnectionBreakers: one record a connection, judged and written in one step."""

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import trio

from fetcher.domain.breakers import (
    FAILURES_TO_OPEN,
    REMEMBERED_SECONDS,
    Breaker,
    BreakerChange,
    BreakerRule,
    SourceDown,
    failed,
    forgotten,
    probe_failed,
    probed_by,
    reached,
)
from fetcher.domain.connections import Connection
from fetcher.domain.ids import new_connection_id
from fetcher.ports import RecordStore
from tests.contract.records.builders import a_connection, ago, now

DOWN = SourceDown(stage="auth", reason="auth")


async def fails(store: RecordStore, connection: Connection, times: int = 1) -> BreakerChange:
    for _ in range(times - 1):
        await store.breakers.change(connection.id, failed(connection, DOWN))
    return await store.breakers.change(connection.id, failed(connection, DOWN))


async def opened(store: RecordStore, *, retry_at: datetime) -> tuple[Connection, Breaker]:
    """A connection whose breaker is open until then."""
    connection = a_connection()
    await fails(store, connection, FAILURES_TO_OPEN)

    def until(breaker: Breaker | None, at: datetime) -> Breaker | None:
        assert breaker is not None
        return replace(breaker, retry_at=retry_at)

    change = await store.breakers.change(connection.id, until)
    assert change.after is not None
    return connection, change.after


async def test_connection_that_is_well_has_no_record(store: RecordStore) -> None:
    connection = a_connection()
    assert await store.breakers.find([connection.id, new_connection_id()]) == {}
    change = await store.breakers.change(connection.id, reached(connection))
    assert (change.before, change.after) == (None, None)
    assert await store.breakers.find([]) == {}
    assert await store.breakers.count_open() == 0


@pytest.mark.parametrize("year", [1, 2026], ids=["internal", "stored"])
async def test_what_a_rule_makes_is_what_is_found(store: RecordStore, year: int) -> None:
    connection = a_connection(updated_at=datetime(year, 1, 1, tzinfo=UTC))
    before = ago(2)
    change = await fails(store, connection)
    breaker = change.after
    assert breaker == Breaker(
        connection_id=connection.id,
        config_name=connection.config_name,
        version=connection.updated_at,
        down=DOWN,
        failures=1,
        changed_at=change.at,
    )
    assert change.before is None
    assert before <= change.at <= now() + timedelta(seconds=2)
    assert await store.breakers.find([connection.id]) == {connection.id: breaker}
    full = replace(
        breaker,
        failures=2**31,
        openings=7,
        retry_at=ago(-60),
        probe_token=secrets.token_bytes(16),
        probe_until=ago(-90),
    )
    written = await store.breakers.change(connection.id, lambda _, __: full)
    assert (written.before, written.after) == (breaker, full)
    assert await store.breakers.find([connection.id]) == {connection.id: full}


async def test_five_failures_in_a_row_open_it_and_are_counted_once_each(
    store: RecordStore,
) -> None:
    connection = a_connection()
    await fails(store, connection, FAILURES_TO_OPEN - 1)
    assert await store.breakers.count_open() == 0
    change = await fails(store, connection)
    assert change.opened
    assert change.after is not None
    assert change.after.failures == FAILURES_TO_OPEN
    assert await store.breakers.count_open() == 1


async def test_concurrent_failures_are_all_counted(store: RecordStore) -> None:
    connection = a_connection()
    changes: list[BreakerChange] = []

    async def fail() -> None:
        changes.append(await fails(store, connection))

    async with trio.open_nursery() as nursery:
        for _ in range(FAILURES_TO_OPEN):
            nursery.start_soon(fail)
    counts = sorted(change.after.failures for change in changes if change.after is not None)
    assert counts == [1, 2, 3, 4, 5]
    assert [change.opened for change in changes].count(True) == 1


async def test_of_concurrent_probes_one_is_given(store: RecordStore) -> None:
    connection, _ = await opened(store, retry_at=ago(1))
    tokens = [secrets.token_bytes(16) for _ in range(6)]
    given: list[bytes] = []

    async def ask(token: bytes) -> None:
        change = await store.breakers.change(connection.id, probed_by(token, connection))
        assert change.after is not None
        if change.after.probe_token == token:
            given.append(token)

    async with trio.open_nursery() as nursery:
        for token in tokens:
            nursery.start_soon(ask, token)
    assert len(given) == 1
    found = await store.breakers.find([connection.id])
    assert found[connection.id].probe_token == given[0]


async def test_probe_is_given_by_the_stores_clock_alone(store: RecordStore) -> None:
    connection, open_breaker = await opened(store, retry_at=ago(-60))
    change = await store.breakers.change(connection.id, probed_by(b"p" * 16, connection))
    assert change.after == open_breaker
    assert await store.breakers.find([connection.id]) == {connection.id: open_breaker}


async def test_failed_probe_is_written_by_its_holder_only(store: RecordStore) -> None:
    connection, _ = await opened(store, retry_at=ago(1))
    await store.breakers.change(connection.id, probed_by(b"p" * 16, connection))
    refused = SourceDown(stage="tcp", reason="refused")
    foreign = await store.breakers.change(connection.id, probe_failed(b"q" * 16, refused))
    assert foreign.after == foreign.before
    change = await store.breakers.change(connection.id, probe_failed(b"p" * 16, refused))
    breaker = (await store.breakers.find([connection.id]))[connection.id]
    assert breaker == change.after
    assert (breaker.openings, breaker.down, breaker.probe_token) == (2, refused, None)
    assert breaker.retry_at is not None
    assert breaker.retry_at > change.at


@pytest.mark.parametrize("how", ["reached", "forgotten"])
async def test_record_that_a_rule_takes_away_is_gone(store: RecordStore, how: str) -> None:
    connection, _ = await opened(store, retry_at=ago(-60))
    rule: BreakerRule = forgotten if how == "forgotten" else reached(connection)
    change = await store.breakers.change(connection.id, rule)
    assert change.closed
    assert await store.breakers.find([connection.id]) == {}
    assert await store.breakers.count_open() == 0
    again = await fails(store, connection)
    assert again.after is not None
    assert again.after.failures == 1


async def test_record_of_a_day_ago_is_none(store: RecordStore) -> None:
    connection, breaker = await opened(store, retry_at=ago(-60))
    old = replace(breaker, changed_at=ago(REMEMBERED_SECONDS + 1))
    await store.breakers.change(connection.id, lambda _, __: old)
    assert await store.breakers.find([connection.id]) == {}
    assert await store.breakers.count_open() == 0
    change = await fails(store, connection)
    assert change.before is None
    assert change.after is not None
    assert change.after.failures == 1
    found = await store.breakers.find([connection.id])
    assert found == {connection.id: change.after}


async def test_rule_that_raises_changes_nothing(store: RecordStore) -> None:
    connection, breaker = await opened(store, retry_at=ago(-60))

    def broken(breaker: Breaker | None, at: datetime) -> Breaker | None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.breakers.change(connection.id, broken)
    assert await store.breakers.find([connection.id]) == {connection.id: breaker}
