"""Every work queue, behind the same fixture."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import orjson
import pytest
from aiormq import Channel

from fetcher.adapters.amqp.broker import open_amqp
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.dead_letters import DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY, ROUTING_KEY_HEADER
from fetcher.adapters.local.event_log import open_event_log
from fetcher.adapters.local.work_queue import LocalWorkQueue
from fetcher.bridge import open_asyncio, run_asyncio
from tests.contract.queue.work_queues import REJECTED_AT, DeadLetter, WorkQueue, broker_address


@pytest.fixture(params=["local", "amqp"])
def queue_kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def queue(
    queue_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[WorkQueue]:
    if queue_kind == "local":
        path = tmp_path / "dead-letters.jsonl"
        async with open_event_log(path) as dead_letters:
            local = LocalWorkQueue("work", dead_letters=dead_letters, now=lambda: REJECTED_AT)

            async def read_lines() -> list[DeadLetter]:
                lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
                return [
                    DeadLetter(body=line["body"].encode(), headers=line["headers"])
                    for line in lines
                ]

            yield WorkQueue(
                name="work",
                publisher=local,
                backlog=local,
                consumer=local,
                dead_letters=read_lines,
            )
        return
    url = request.getfixturevalue("amqp_url")
    new_name: Callable[[str], str] = request.getfixturevalue("amqp_name")
    work, dead = new_name("work"), new_name("dead")
    async with (
        open_asyncio(pytest.fail),
        open_amqp(
            broker_address(url), work_queue=work, consumes=True, now=lambda: REJECTED_AT
        ) as broker,
    ):
        await _declare(broker.publishing, work=work, dead=dead)

        async def get_all() -> list[DeadLetter]:
            # The exchange is one for all who use this broker now.
            letters = await _get_all(broker.publishing, dead)
            return [one for one in letters if one.headers.get(ROUTING_KEY_HEADER) == work]

        yield WorkQueue(
            name=work,
            publisher=broker.publisher,
            backlog=broker.publisher,
            consumer=broker.consumer,
            dead_letters=get_all,
        )


async def _declare(connection: BrokerConnection, *, work: str, dead: str) -> None:
    async def declare(channel: Channel) -> None:
        await channel.queue_declare(work, durable=True)
        await channel.exchange_declare(DEAD_LETTER_EXCHANGE, exchange_type="direct", durable=True)
        await channel.queue_declare(dead, durable=True)
        await channel.queue_bind(dead, DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY)

    channel = await connection.open_channel(confirms=False)
    await run_asyncio(declare, channel)
    await connection.close_channel(channel)


async def _get_all(connection: BrokerConnection, queue: str) -> list[DeadLetter]:
    async def get(channel: Channel) -> list[DeadLetter]:
        found = []
        while (message := await channel.basic_get(queue, no_ack=True)).delivery_tag is not None:
            headers = message.header.properties.headers or {}
            found.append(DeadLetter(body=message.body, headers=headers))
        return found

    channel = await connection.open_channel(confirms=False)
    found = await run_asyncio(get, channel)
    await connection.close_channel(channel)
    return found
