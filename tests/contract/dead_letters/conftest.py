"""Every queue of dead letters, behind the same fixture."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiormq import Channel

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.dead_letter_level import AmqpDeadLetterLevels
from fetcher.adapters.amqp.dead_letter_queue import AmqpDeadLetterQueue
from fetcher.adapters.amqp.topology import TopologyNames, topology
from fetcher.adapters.amqp.wire import WireProperties
from fetcher.adapters.local.dead_letter_file import LocalDeadLetterQueue
from fetcher.adapters.local.dead_letter_level import LocalDeadLetterLevels
from fetcher.adapters.local.event_log import open_event_log
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.ports import DeadLetterLevels, DeadLetterQueue, OutgoingMessage
from tests.contract.queue.work_queues import broker_address

NOW = datetime(2026, 3, 19, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledQueue:
    queue: DeadLetterQueue
    fill: Callable[[Sequence[OutgoingMessage]], Awaitable[None]] = field(repr=False)
    levels: DeadLetterLevels


@pytest.fixture(params=["local", "amqp"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def dead(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[FilledQueue]:
    if kind == "local":
        path = tmp_path / "dead-letters.jsonl"

        async def write(messages: Sequence[OutgoingMessage]) -> None:
            async with open_event_log(path) as log:
                for message in messages:
                    await log.publish(message)

        yield FilledQueue(
            queue=LocalDeadLetterQueue(path),
            fill=write,
            levels=LocalDeadLetterLevels(path, now=lambda: NOW),
        )
        return
    url = request.getfixturevalue("amqp_url")
    name = request.getfixturevalue("amqp_name")("dlq")
    async with open_asyncio(pytest.fail):
        connection = BrokerConnection(broker_address(url), name="test")
        await declare_dead_letters(connection, name)

        async def publish(messages: Sequence[OutgoingMessage]) -> None:
            await publish_all(connection, name, messages)

        yield FilledQueue(
            queue=AmqpDeadLetterQueue(connection, queue=name),
            fill=publish,
            levels=AmqpDeadLetterLevels(connection, now=lambda: NOW, queue=name),
        )
        await connection.aclose()


async def declare_dead_letters(connection: BrokerConnection, name: str) -> None:
    """A queue with the arguments of the table."""
    (queue,) = (
        each for each in topology(TopologyNames(dead_letter_queue=name)).queues if each.name == name
    )

    async def declare(channel: Channel) -> None:
        await channel.queue_declare(name, durable=True, arguments={**queue.arguments})

    await _on_channel(connection, declare)


async def publish_all(
    connection: BrokerConnection, name: str, messages: Sequence[OutgoingMessage]
) -> None:
    """Through the default exchange, which routes to the queue alone; all confirmed at the end."""

    async def publish(channel: Channel) -> None:
        for message in messages:
            await channel.basic_publish(
                message.body,
                routing_key=name,
                properties=WireProperties(message.headers, message_id=""),
                wait=False,
            )
        await channel.queue_declare(name, passive=True)

    await _on_channel(connection, publish)


async def _on_channel(
    connection: BrokerConnection, do: Callable[[Channel], Awaitable[None]]
) -> None:
    channel = await connection.open_channel(confirms=False)
    await run_asyncio(do, channel)
    await connection.close_channel(channel)
