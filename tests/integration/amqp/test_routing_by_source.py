"""A headers exchange before real queues: which bindings find our events by their source."""

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import pytest
from aiormq import Channel
from pamqp.common import FieldTable

from fetcher.adapters.amqp.broker import open_amqp
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio, run_asyncio
from fetcher.domain.errors import Unroutable
from fetcher.domain.ids import new_job_id
from fetcher.domain.jobs import EventMark
from fetcher.domain.terminal_event import event_headers
from fetcher.ports import OutgoingMessage
from tests.contract.queue.work_queues import broker_address

pytestmark = pytest.mark.integration

SOURCE = "//acme.fetcher/worker-1"


@pytest.fixture
async def room() -> AsyncIterator[None]:
    async with open_asyncio(pytest.fail):
        yield


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        ({"ce-source": bytearray(SOURCE, "utf-8")}, True),
        ({"ce-source": SOURCE}, True),
        ({"ce-source": "//other.fetcher"}, False),
        ({"ce-source": bytearray(b"//other.fetcher")}, False),
        ({"ce-source": None}, True),
        ({"ce-nothing": None}, False),
        ({"X-Tenant-ID": "single-tenant"}, True),
        ({"X-Tenant-ID": bytearray(b"single-tenant")}, True),
        ({"ce-source": bytearray(SOURCE, "utf-8"), "ce-eventtype": bytearray(b"failed")}, False),
    ],
)
async def test_a_headers_exchange_compares_values_whether_text_or_byte_arrays(
    room: None,
    amqp_url: str,
    amqp_name: Callable[[str], str],
    wanted: FieldTable,
    is_found: bool,
) -> None:
    events, by_source, queue = (amqp_name(n) for n in ("events", "by-source", "routed"))

    async def declare(channel: Channel) -> None:
        await channel.exchange_declare(events, exchange_type="topic", durable=True)
        await channel.exchange_declare(by_source, exchange_type="headers", durable=True)
        await channel.exchange_bind(destination=by_source, source=events, routing_key="job.*")
        await channel.queue_declare(queue)
        await channel.queue_bind(queue, by_source, arguments={"x-match": "all", **wanted})

    mark = EventMark(status="completed", payload="{}", time=datetime(2026, 3, 14, tzinfo=UTC))
    message = OutgoingMessage(
        exchange=events,
        routing_key="job.completed",
        body=b"{}",
        headers=event_headers(new_job_id(), mark, source=SOURCE, request_id="r-1"),
    )
    async with open_amqp(
        broker_address(amqp_url), work_queue=queue, consumes=False, now=utc_now
    ) as broker:
        channel = await broker.publishing.open_channel(confirms=False)
        await run_asyncio(declare, channel)
        if is_found:
            await broker.publisher.publish(message)
        else:
            with pytest.raises(Unroutable):
                await broker.publisher.publish(message)
        assert await broker.publisher.ready_count() == int(is_found)
