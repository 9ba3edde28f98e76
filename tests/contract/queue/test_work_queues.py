"""The contract of the work queue, over every implementation."""

from collections.abc import Sequence

import pytest
import trio

from fetcher.domain.errors import DeliveryLost, Unroutable
from fetcher.domain.message_envelope import HeaderValue
from fetcher.domain.timestamps import rfc3339
from fetcher.ports import Deliveries, Delivery, OutgoingMessage, RejectReason
from tests.contract.queue.work_queues import REJECTED_AT, WorkQueue
from tests.servers.waiting import eventually

DEADLINE_SECONDS = 10.0


async def take(deliveries: Deliveries, count: int = 1) -> list[Delivery]:
    taken: list[Delivery] = []
    with trio.fail_after(DEADLINE_SECONDS):
        async for delivery in deliveries:
            taken.append(delivery)
            if len(taken) == count:
                break
    assert len(taken) == count
    return taken


async def take_bodies(deliveries: Deliveries, count: int) -> Sequence[bytes]:
    return [delivery.body for delivery in await take(deliveries, count)]


async def wait_for_ready(queue: WorkQueue, count: int) -> None:
    async def is_so() -> bool:
        return await queue.backlog.ready_count() == count

    await eventually(is_so, deadline_seconds=DEADLINE_SECONDS, what=f"{count} ready messages")


async def test_a_message_arrives_as_it_was_published(queue: WorkQueue) -> None:
    headers: dict[str, HeaderValue] = {
        "jobId": "0195a0b1",
        "x-retry-count": 0,
        "ce-id": bytearray("ä".encode()),
    }
    await queue.publisher.publish(queue.message('{"a":"ü"}', headers))
    async with queue.consumer.consume(prefetch=1) as deliveries:
        [delivery] = await take(deliveries)
        assert delivery.body == '{"a":"ü"}'.encode()
        assert delivery.headers == headers
        assert (delivery.exchange, delivery.routing_key) == ("", queue.name)
        await delivery.ack()
    assert await queue.backlog.ready_count() == 0


async def test_messages_keep_their_order(queue: WorkQueue) -> None:
    for number in range(20):
        await queue.publisher.publish(queue.message(str(number)))
    assert await queue.backlog.ready_count() == 20
    async with queue.consumer.consume(prefetch=20) as deliveries:
        bodies = await take_bodies(deliveries, 20)
    assert bodies == [str(number).encode() for number in range(20)]


async def test_publishing_side_by_side_loses_nothing(queue: WorkQueue) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(queue.publisher.publish, queue.message(str(number)))
    assert await queue.backlog.ready_count() == 50
    async with queue.consumer.consume(prefetch=50) as deliveries:
        bodies = await take_bodies(deliveries, 50)
    assert {int(body) for body in bodies} == set(range(50))


async def test_a_route_without_a_queue_is_unroutable_and_the_next_publish_works(
    queue: WorkQueue,
) -> None:
    nowhere = OutgoingMessage(exchange="", routing_key="fetcher.t.nowhere", body=b"{}", headers={})
    for _ in range(3):
        with pytest.raises(Unroutable):
            await queue.publisher.publish(nowhere)
    await queue.publisher.publish(queue.message())
    assert await queue.backlog.ready_count() == 1


async def test_no_more_than_the_prefetch_is_in_hand(queue: WorkQueue) -> None:
    for number in range(3):
        await queue.publisher.publish(queue.message(str(number)))
    async with queue.consumer.consume(prefetch=2) as deliveries:
        first, second = await take(deliveries, 2)
        with trio.move_on_after(0.1) as waited:
            await take(deliveries)
        assert waited.cancelled_caught
        await first.ack()
        [third] = await take(deliveries)
        assert third.body == b"2"
        await second.ack()
        await third.ack()
    assert await queue.backlog.ready_count() == 0


async def test_what_is_not_settled_goes_back_when_the_consumer_leaves(queue: WorkQueue) -> None:
    for number in range(3):
        await queue.publisher.publish(queue.message(str(number)))
    async with queue.consumer.consume(prefetch=3) as deliveries:
        [first, _second] = await take(deliveries, 2)
        await first.ack()
    await wait_for_ready(queue, 2)
    async with queue.consumer.consume(prefetch=3) as deliveries:
        assert await take_bodies(deliveries, 2) == [b"1", b"2"]


async def test_a_consumer_that_was_cancelled_puts_back_what_it_had(queue: WorkQueue) -> None:
    await queue.publisher.publish(queue.message())
    with trio.CancelScope() as scope:
        async with queue.consumer.consume(prefetch=1) as deliveries:
            await take(deliveries)
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    await wait_for_ready(queue, 1)


async def test_requeue_makes_the_message_ready_again(queue: WorkQueue) -> None:
    await queue.publisher.publish(queue.message("again"))
    async with queue.consumer.consume(prefetch=1) as deliveries:
        [first] = await take(deliveries)
        await first.requeue()
        [second] = await take(deliveries)
        assert second.body == b"again"
        await second.ack()
    assert await queue.backlog.ready_count() == 0


async def test_stop_ends_the_iterator_and_what_is_in_hand_can_still_be_settled(
    queue: WorkQueue,
) -> None:
    for number in range(3):
        await queue.publisher.publish(queue.message(str(number)))
    async with queue.consumer.consume(prefetch=2) as deliveries:
        [in_hand] = await take(deliveries)
        await deliveries.stop()
        assert [delivery async for delivery in deliveries] == []
        await wait_for_ready(queue, 2)
        await in_hand.ack()
        await deliveries.stop()
    assert await queue.backlog.ready_count() == 2


async def test_stop_wakes_a_task_that_waits_for_a_delivery(queue: WorkQueue) -> None:
    ended = trio.Event()

    async def wait_for_delivery(deliveries: Deliveries) -> None:
        async for _ in deliveries:
            pytest.fail("nothing was published")
        ended.set()

    async with queue.consumer.consume(prefetch=1) as deliveries, trio.open_nursery() as nursery:
        nursery.start_soon(wait_for_delivery, deliveries)
        await trio.testing.wait_all_tasks_blocked()
        with trio.fail_after(DEADLINE_SECONDS):
            await deliveries.stop()
            await ended.wait()


@pytest.mark.parametrize("reason", list(RejectReason))
async def test_a_rejected_message_lies_in_the_dead_letters_with_reason_route_and_headers(
    queue: WorkQueue, reason: RejectReason
) -> None:
    headers: dict[str, HeaderValue] = {
        "jobId": "0195a0b1",
        "x-retry-count": 0,
        "x-message-signature": "ab" * 32,
    }
    await queue.publisher.publish(queue.message('{"no":"job"}', headers))
    async with queue.consumer.consume(prefetch=1) as deliveries:
        [delivery] = await take(deliveries)
        await delivery.reject(reason)
    [dead] = await queue.dead_letters()
    assert dead.body == b'{"no":"job"}'
    assert dead.headers == {
        **headers,
        "x-fetcher-reject-reason": reason.value,
        "x-fetcher-original-exchange": "",
        "x-fetcher-original-routing-key": queue.name,
        "x-fetcher-rejected-at": rfc3339(REJECTED_AT),
    }
    assert await queue.backlog.ready_count() == 0


async def test_a_delivery_is_settled_once(queue: WorkQueue) -> None:
    await queue.publisher.publish(queue.message())
    async with queue.consumer.consume(prefetch=1) as deliveries:
        [delivery] = await take(deliveries)
        await delivery.ack()
        with pytest.raises(RuntimeError, match="settled already"):
            await delivery.ack()
        with pytest.raises(RuntimeError, match="settled already"):
            await delivery.requeue()
        with pytest.raises(RuntimeError, match="settled already"):
            await delivery.reject(RejectReason.MALFORMED)
    assert await queue.dead_letters() == []


async def test_a_delivery_cannot_be_settled_after_its_consumer_left(queue: WorkQueue) -> None:
    await queue.publisher.publish(queue.message())
    async with queue.consumer.consume(prefetch=1) as deliveries:
        [delivery] = await take(deliveries)
    with pytest.raises(DeliveryLost):
        await delivery.reject(RejectReason.MALFORMED)
    with pytest.raises(DeliveryLost):
        await delivery.ack()
    await wait_for_ready(queue, 1)
    assert await queue.dead_letters() == []


async def test_consuming_without_a_bound_is_refused(queue: WorkQueue) -> None:
    with pytest.raises(ValueError, match="prefetch"):
        async with queue.consumer.consume(prefetch=0):
            pytest.fail("it was opened")
