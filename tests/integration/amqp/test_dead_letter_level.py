"""What looking at the oldest dead letter does to it, on the real broker."""

from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import structlog
from aiormq import Channel

from fetcher.adapters.amqp import dead_letter_level
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_level import AmqpDeadLetterLevels
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.amqp.topology import TopologyNames
from fetcher.adapters.amqp.topology_check import TopologyCheck
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import OutgoingMessage
from tests.contract.dead_letters.conftest import declare_dead_letters, publish_all
from tests.contract.queue.work_queues import broker_address
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

NOW = datetime(2026, 3, 19, 9, tzinfo=UTC)
A_MESSAGE = OutgoingMessage(exchange="", routing_key="work", body=b"{}", headers={})
LOOKS = 25


@pytest.fixture
async def connection(amqp_url: str) -> AsyncIterator[BrokerConnection]:
    async with open_asyncio(pytest.fail):
        opened = BrokerConnection(broker_address(amqp_url), name="test")
        yield opened
        await opened.aclose()


async def on_channel(connection: BrokerConnection, do: Callable[[Channel], object]) -> None:
    channel = await connection.open_channel(confirms=False)
    await run_asyncio(do, channel)  # type: ignore[arg-type] # each is a coroutine function
    await connection.close_channel(channel)


async def declare(connection: BrokerConnection, name: str, arguments: Mapping[str, object]) -> None:
    async def run(channel: Channel) -> None:
        await channel.queue_declare(name, durable=True, arguments={**arguments})  # type: ignore[dict-item]

    await on_channel(connection, run)


async def delivery_counts(connection: BrokerConnection, name: str) -> list[object]:
    async with AmqpDeadLetterQueue(connection, queue=name).open() as window:
        letters = await window.next_page(limit=10)
        return [each.headers.get("x-delivery-count", 0) for each in letters]


async def fill(connection: BrokerConnection, name: str, levels: AmqpDeadLetterLevels) -> None:
    await publish_all(connection, name, [A_MESSAGE, A_MESSAGE])

    async def is_there() -> bool:
        async with AmqpDeadLetterQueue(connection, queue=name).open() as window:
            return window.total == 2

    await eventually(is_there, deadline_seconds=15.0)
    await levels.level()
    await eventually(is_there, deadline_seconds=15.0, what="what was looked at is back")


async def test_counting_for_hours_delivers_the_oldest_once_and_no_other(
    connection: BrokerConnection, amqp_name: Callable[[str], str]
) -> None:
    name = amqp_name("dlq")
    await declare_dead_letters(connection, name)
    levels = AmqpDeadLetterLevels(connection, now=lambda: NOW, queue=name)
    await fill(connection, name, levels)
    for _ in range(LOOKS):
        level = await levels.level()
        assert (level.messages, level.oldest_at) == (2, NOW)
    assert await delivery_counts(connection, name) == [1, 0]


async def test_after_an_hour_the_oldest_is_looked_at_again(
    connection: BrokerConnection,
    amqp_name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dead_letter_level, "LOOK_AGAIN_SECONDS", 0.0)
    name = amqp_name("dlq")
    await declare_dead_letters(connection, name)
    levels = AmqpDeadLetterLevels(connection, now=lambda: NOW, queue=name)
    await publish_all(connection, name, [A_MESSAGE])

    async def is_there() -> bool:
        return (await levels.level()).messages == 1

    await eventually(is_there, deadline_seconds=15.0)
    # what a look has given back is on its way for a moment
    counts = await eventually(partial(delivery_counts, connection, name), deadline_seconds=15.0)
    [before] = counts
    assert isinstance(before, int)

    async def is_delivered_again() -> bool:
        assert (await levels.level()).oldest_at in (NOW, None)
        [count] = await delivery_counts(connection, name) or [0]
        return isinstance(count, int) and count > before + 1

    await eventually(is_delivered_again, deadline_seconds=15.0)


@pytest.mark.parametrize("limit", [2, 20])
async def test_a_queue_that_drops_what_is_delivered_often_is_counted_only(
    connection: BrokerConnection,
    amqp_name: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
) -> None:
    monkeypatch.setattr(dead_letter_level, "LOOK_AGAIN_SECONDS", 0.0)
    name = amqp_name("dlq")
    await declare(connection, name, {"x-queue-type": "quorum", "x-delivery-limit": limit})
    levels = AmqpDeadLetterLevels(connection, now=lambda: NOW, queue=name)
    with structlog.testing.capture_logs() as logs:
        await fill(connection, name, levels)
        for _ in range(LOOKS):
            level = await levels.level()
            assert (level.messages, level.oldest_at) == (2, None)
    assert [each["event"] for each in logs] == ["dead_letter_age_unknown"]
    assert await delivery_counts(connection, name) == [0, 0]


async def test_a_classic_queue_of_an_operator_tells_its_age(
    connection: BrokerConnection, amqp_name: Callable[[str], str]
) -> None:
    name = amqp_name("dlq")
    await declare(connection, name, {"x-message-ttl": 604_800_000, "x-max-length": 10_000})
    levels = AmqpDeadLetterLevels(connection, now=lambda: NOW, queue=name)
    await fill(connection, name, levels)
    assert (await levels.level()).oldest_at == NOW


async def test_what_the_broker_dead_lettered_is_as_old_as_it_says(
    connection: BrokerConnection, amqp_name: Callable[[str], str]
) -> None:
    names = TopologyNames(
        work_exchange=amqp_name("jobs"),
        work_queue=amqp_name("work"),
        events_exchange=amqp_name("events"),
        event_queues={},
        dead_letter_exchange=amqp_name("dlx"),
        dead_letter_queue=amqp_name("dlq"),
    )
    await TopologyCheck(connection).settle(names, create=True)
    await publish_all(connection, names.work_queue, [A_MESSAGE])

    async def reject(channel: Channel) -> None:
        message = await channel.basic_get(names.work_queue)
        assert message.delivery_tag is not None
        await channel.basic_nack(message.delivery_tag, requeue=False)

    await on_channel(connection, reject)
    levels = AmqpDeadLetterLevels(connection, now=lambda: NOW, queue=names.dead_letter_queue)

    found: list[datetime] = []

    async def is_there() -> bool:
        found[:] = [at for at in [(await levels.level()).oldest_at] if at is not None]
        return bool(found)

    await eventually(is_there, deadline_seconds=15.0)
    assert abs(utc_now() - found[0]) < timedelta(minutes=10)


async def test_letters_that_somebody_holds_keep_the_age_for_the_next_round(
    connection: BrokerConnection, amqp_name: Callable[[str], str]
) -> None:
    name = amqp_name("dlq")
    await declare_dead_letters(connection, name)
    levels = AmqpDeadLetterLevels(connection, now=lambda: NOW, queue=name)
    await fill(connection, name, levels)
    async with AmqpDeadLetterQueue(connection, queue=name).open() as window:
        assert len(await window.next_page(limit=1)) == 1
        assert (await levels.level()).messages < 2

    async def is_known_again() -> bool:
        level = await levels.level()
        return (level.messages, level.oldest_at) == (2, NOW)

    await eventually(is_known_again, deadline_seconds=15.0)


async def test_a_missing_queue_is_unavailable_and_not_made(
    connection: BrokerConnection, amqp_name: Callable[[str], str]
) -> None:
    levels = AmqpDeadLetterLevels(connection, now=lambda: NOW, queue=amqp_name("missing"))
    for _ in range(2):
        with pytest.raises(PortUnavailable, match="no such queue"):
            await levels.level()
