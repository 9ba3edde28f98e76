"""What the end-to-end tests do at the broker themselves: declare objects, read messages."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import unquote, urlsplit

import trio
from aiormq import Channel

from fetcher.adapters.amqp.address import BrokerAddress
from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.wire import WireProperties
from fetcher.adapters.dead_letters import (
    DEAD_LETTER_EXCHANGE,
    DEAD_LETTER_KEY,
    DEAD_LETTER_QUEUE,
)
from fetcher.bridge import open_asyncio, run_asyncio

T = TypeVar("T")

EVENT_KEYS: Final = ("job.completed", "job.failed")


@dataclass(frozen=True, slots=True)
class Message:
    exchange: str
    routing_key: str
    body: bytes
    headers: Mapping[str, object]

    def header(self, name: str) -> str:
        value = self.headers[name]
        return value.decode() if isinstance(value, bytes | bytearray) else str(value)


def address_of(url: str) -> BrokerAddress:
    parts = urlsplit(url)
    return BrokerAddress(
        scheme="amqp",
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 5672,
        user=unquote(parts.username or "guest"),
        password=unquote(parts.password or "guest"),
        vhost=unquote(parts.path.removeprefix("/")) or "/",
    )


def url_at(port: int) -> str:
    """A broker on this machine, as its first user."""
    return f"amqp://guest:guest@127.0.0.1:{port}/"


def on_channel(url: str, action: Callable[[Channel], Awaitable[T]]) -> T:
    """Run one asyncio-flavoured action on a channel of its own; blocking, at most 20 s."""

    async def main() -> T:
        with trio.fail_after(20):
            async with open_asyncio(lambda _: None):
                connection = BrokerConnection(address_of(url), name="test")
                try:
                    channel = await connection.open_channel(confirms=False)
                    return await run_asyncio(action, channel)
                finally:
                    await connection.aclose()

    return trio.run(main)


def declare(url: str, *, work_queue: str, exchange: str, event_queue: str) -> None:
    async def action(channel: Channel) -> None:
        await channel.queue_declare(work_queue, durable=True)
        await channel.exchange_declare(exchange, exchange_type="topic", durable=True)
        await channel.queue_declare(event_queue, durable=True)
        for key in EVENT_KEYS:
            await channel.queue_bind(event_queue, exchange, key)

    on_channel(url, action)


def declare_dead_letters(url: str) -> None:
    async def action(channel: Channel) -> None:
        await channel.exchange_declare(DEAD_LETTER_EXCHANGE, exchange_type="direct", durable=True)
        await channel.queue_declare(DEAD_LETTER_QUEUE, durable=True)
        await channel.queue_bind(DEAD_LETTER_QUEUE, DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY)

    on_channel(url, action)


def publish(url: str, queue: str, body: bytes, headers: Mapping[str, object]) -> None:
    """As anybody may who reaches the broker."""

    async def action(channel: Channel) -> None:
        properties = WireProperties(dict(headers), message_id="")
        await channel.basic_publish(body, routing_key=queue, properties=properties)

    on_channel(url, action)


def consumer_count(url: str, queue: str) -> int:
    async def action(channel: Channel) -> int:
        return (await channel.queue_declare(queue, passive=True)).consumer_count or 0

    return on_channel(url, action)


def read_all(url: str, queue: str) -> list[Message]:
    """Everything that lies in the queue now, taken out of it."""

    async def action(channel: Channel) -> list[Message]:
        messages: list[Message] = []
        while True:
            got = await channel.basic_get(queue, no_ack=True)
            if got.delivery.name == "Basic.GetEmpty":
                return messages
            messages.append(
                Message(
                    exchange=got.exchange or "",
                    routing_key=got.routing_key or "",
                    body=got.body,
                    headers=dict(got.header.properties.headers or {}),
                )
            )

    return on_channel(url, action)
