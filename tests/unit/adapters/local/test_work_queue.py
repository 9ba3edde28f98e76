from pathlib import Path

import pytest
import trio

from fetcher.adapters.local.event_log import open_event_log
from fetcher.adapters.local.work_queue import LocalWorkQueue
from fetcher.bootstrap.clock import utc_now
from fetcher.domain.errors import PortUnavailable, Unroutable
from fetcher.ports import OutgoingMessage, RejectReason


def a_message(body: str = "{}") -> OutgoingMessage:
    return OutgoingMessage(exchange="", routing_key="work", body=body.encode(), headers={})


class NoDeadLetters:
    async def publish(self, message: OutgoingMessage) -> None:
        raise PortUnavailable("the disk is full")


async def test_a_full_queue_is_unavailable_until_there_is_room() -> None:
    queue = LocalWorkQueue("work", dead_letters=NoDeadLetters(), capacity=2, now=utc_now)
    await queue.publish(a_message("1"))
    await queue.publish(a_message("2"))
    with pytest.raises(PortUnavailable, match="full"):
        await queue.publish(a_message("3"))
    async with queue.consume(prefetch=1) as deliveries:
        await (await anext(aiter(deliveries))).ack()
        await queue.publish(a_message("3"))
    assert await queue.ready_count() == 2


async def test_it_takes_a_thousand_messages() -> None:
    queue = LocalWorkQueue("work", dead_letters=NoDeadLetters(), now=utc_now)
    for _ in range(1000):
        await queue.publish(a_message())
    with pytest.raises(PortUnavailable):
        await queue.publish(a_message())


async def test_it_takes_work_messages_only() -> None:
    queue = LocalWorkQueue("work", dead_letters=NoDeadLetters(), now=utc_now)
    event = OutgoingMessage(exchange="events", routing_key="work", body=b"{}", headers={})
    with pytest.raises(Unroutable):
        await queue.publish(event)


async def test_two_consumers_share_the_messages() -> None:
    queue = LocalWorkQueue("work", dead_letters=NoDeadLetters(), now=utc_now)
    for number in range(4):
        await queue.publish(a_message(str(number)))
    async with queue.consume(prefetch=2) as one, queue.consume(prefetch=2) as other:
        bodies = [(await anext(aiter(which))).body for which in (one, other, one, other)]
    assert bodies == [b"0", b"1", b"2", b"3"]
    assert await queue.ready_count() == 4


async def test_a_waiting_consumer_is_woken_by_a_message(autojump_clock: trio.abc.Clock) -> None:
    queue = LocalWorkQueue("work", dead_letters=NoDeadLetters(), now=utc_now)
    async with queue.consume(prefetch=1) as deliveries, trio.open_nursery() as nursery:

        async def publish_later() -> None:
            await trio.sleep(10)
            await queue.publish(a_message("late"))

        nursery.start_soon(publish_later)
        delivery = await anext(aiter(deliveries))
        assert delivery.body == b"late"
        assert trio.current_time() == pytest.approx(10, abs=1)
        await delivery.ack()


async def test_a_message_whose_dead_letter_is_not_kept_stays_in_hand(tmp_path: Path) -> None:
    queue = LocalWorkQueue("work", dead_letters=NoDeadLetters(), now=utc_now)
    await queue.publish(a_message())
    async with queue.consume(prefetch=1) as deliveries:
        delivery = await anext(aiter(deliveries))
        with pytest.raises(PortUnavailable):
            await delivery.reject(RejectReason.MALFORMED)
        await delivery.requeue()
    assert await queue.ready_count() == 1


async def test_its_probe_is_up_under_the_name_queue(tmp_path: Path) -> None:
    async with open_event_log(tmp_path / "dead") as dead_letters:
        probe = LocalWorkQueue("work", dead_letters=dead_letters, now=utc_now).probe()
        assert (probe.name, (await probe.check()).status) == ("queue", "up")
