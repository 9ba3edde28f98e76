"""A broker under an alarm blocks who publishes (`connection.blocked`): that is waited out."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import aiormq
import pytest
import trio

from fetcher.adapters.amqp import publisher as publisher_module
from fetcher.adapters.amqp import watched_connection
from fetcher.adapters.amqp.broker import AmqpBroker, open_amqp
from fetcher.adapters.breaker import FAILURES_TO_OPEN
from fetcher.bootstrap.clock import utc_now
from fetcher.bridge import open_asyncio
from fetcher.domain.errors import PortUnavailable
from tests.contract.queue.work_queues import broker_address
from tests.integration.amqp.blocking_proxy import BlockingProxy, blocking_proxy
from tests.integration.amqp.test_rabbitmq import a_message, on_channel, take, wait_for_ready
from tests.servers.waiting import eventually

pytestmark = pytest.mark.integration

DEADLINE_SECONDS = 15.0
PUBLISHING = 0
"""The connection that is opened first."""


@pytest.fixture
async def proxy(amqp_url: str) -> AsyncIterator[BlockingProxy]:
    address = broker_address(amqp_url)
    async with blocking_proxy(address.host, address.port) as opened:
        yield opened


@pytest.fixture
def work(amqp_name: Callable[[str], str]) -> str:
    return amqp_name("work")


@pytest.fixture
async def broker(amqp_url: str, proxy: BlockingProxy, work: str) -> AsyncIterator[AmqpBroker]:
    address = replace(broker_address(amqp_url), host="127.0.0.1", port=proxy.port)
    async with (
        open_asyncio(pytest.fail),
        open_amqp(address, work_queue=work, consumes=False, now=utc_now) as opened,
    ):
        await on_channel(opened.publishing, lambda channel: channel.queue_declare(work))
        yield opened


async def block(broker: AmqpBroker, proxy: BlockingProxy) -> None:
    await proxy.block(PUBLISHING)
    await eventually(lambda: is_blocked(broker), deadline_seconds=DEADLINE_SECONDS)


async def unblock(broker: AmqpBroker, proxy: BlockingProxy) -> None:
    async def is_free() -> bool:
        return not await is_blocked(broker)

    await proxy.unblock(PUBLISHING)
    await eventually(is_free, deadline_seconds=DEADLINE_SECONDS)


async def is_blocked(broker: AmqpBroker) -> bool:
    return broker.publishing.is_blocked


async def test_a_blocked_publish_is_unavailable_at_once_and_goes_on_with_the_same_connection(
    broker: AmqpBroker, proxy: BlockingProxy, work: str
) -> None:
    await broker.publisher.publish(a_message(work))
    await block(broker, proxy)
    for _ in range(FAILURES_TO_OPEN + 1):
        with pytest.raises(PortUnavailable, match="blocked"):
            await broker.publisher.publish(a_message(work))
    with pytest.raises(PortUnavailable, match="blocked"):
        await broker.publisher.ready_count()
    result = await broker.probe.check()
    assert (result.status, result.error, result.reason, result.breaker_state) == (
        "degraded",
        "connection blocked",
        "the broker is short of memory or disk and takes no messages",
        "closed",
    )
    await unblock(broker, proxy)
    assert (await broker.probe.check()).status == "up"
    await broker.publisher.publish(a_message(work))
    await wait_for_ready(broker, 2)
    assert proxy.accepted == 1


async def test_a_publish_under_way_ends_by_its_deadline_and_its_channel_is_closed_later(
    broker: AmqpBroker, proxy: BlockingProxy, work: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "CONFIRM_SECONDS", 3.0)
    await broker.publisher.publish(a_message(work, '"before"'))
    outcomes: list[str] = []

    async def publish() -> None:
        try:
            await broker.publisher.publish(a_message(work, '"under way"'))
        except PortUnavailable as failure:
            outcomes.append(str(failure))

    proxy.hold(PUBLISHING)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(publish)
        await trio.testing.wait_all_tasks_blocked(0.05)
        await block(broker, proxy)
    assert outcomes == ["the broker did not answer in time: timeout"]
    await unblock(broker, proxy)
    monkeypatch.undo()
    # What the broker had not read yet it takes now: whoever sends again relies on the claim.
    await broker.publisher.publish(a_message(work, '"after"'))
    await wait_for_ready(broker, 3)
    assert proxy.accepted == 1


async def test_consuming_goes_on_while_publishing_is_blocked(
    broker: AmqpBroker, proxy: BlockingProxy, work: str
) -> None:
    await broker.publisher.publish(a_message(work, '"job"'))
    await block(broker, proxy)
    async with broker.consumer.consume(prefetch=1) as deliveries:
        delivery = await take(deliveries)
        assert delivery.body == b'"job"'
        await delivery.ack()
    assert proxy.accepted == 2
    await unblock(broker, proxy)
    await wait_for_ready(broker, 0)


def test_the_names_of_aiormq_that_are_overridden_are_there() -> None:
    assert {*watched_connection.HOOKS} <= {*dir(aiormq.Connection)}
