import pytest
import trio
import trio.testing

from fetcher.actors.channels import Channel, Reply, ReplyLost


async def test_a_full_channel_pushes_back_until_there_is_a_place(
    autojump_clock: trio.testing.MockClock,
) -> None:
    channel: Channel[int] = Channel("orders", capacity=1)
    await channel.send(1)
    with trio.move_on_after(5) as waited:
        await channel.send(2)
    assert waited.cancelled_caught
    assert await channel.receive() == 1
    await channel.send(3)
    assert await channel.receive() == 3


async def test_a_hint_is_dropped_and_counted_when_the_channel_is_full() -> None:
    channel: Channel[int] = Channel("hints", capacity=2)
    assert [channel.offer(n) for n in range(4)] == [True, True, False, False]
    assert channel.dropped == 2
    assert channel.receive_waiting(limit=10) == [0, 1]
    assert channel.receive_waiting(limit=10) == []


async def test_receive_waiting_leaves_what_is_over_its_limit() -> None:
    channel: Channel[int] = Channel("hints", capacity=5)
    for n in range(5):
        channel.offer(n)
    assert channel.receive_waiting(limit=3) == [0, 1, 2]
    assert channel.receive_waiting(limit=3) == [3, 4]


async def test_only_the_first_answer_counts() -> None:
    reply: Reply[str] = Reply()
    with reply.answering():
        reply.set("first")
        reply.set("second")
    assert await reply.get() == "first"


async def test_a_receiver_that_crashes_lets_the_asker_know() -> None:
    reply: Reply[str] = Reply()
    with pytest.raises(ZeroDivisionError), reply.answering():
        _ = 1 / 0
    with pytest.raises(ReplyLost):
        await reply.get()


async def test_a_cancelled_receiver_lets_the_asker_know(
    autojump_clock: trio.testing.MockClock,
) -> None:
    reply: Reply[str] = Reply()
    with trio.move_on_after(1), reply.answering():
        await trio.sleep_forever()
    with pytest.raises(ReplyLost):
        await reply.get()


async def test_receiving_until_an_end_loses_no_message(
    autojump_clock: trio.testing.MockClock,
) -> None:
    channel: Channel[int] = Channel("orders", capacity=0)
    ended = trio.Event()
    received: list[int | None] = []

    async def receive_all() -> None:
        while True:
            received.append(await channel.receive_until(ended))
            if received[-1] is None:
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive_all)
        await trio.sleep(1)
        await channel.send(1)
        await channel.send(2)
        ended.set()
    assert received == [1, 2, None]
    with trio.move_on_after(1) as waited:
        await channel.send(3)
    assert waited.cancelled_caught


async def test_sending_until_an_end_tells_whether_somebody_has_the_message(
    autojump_clock: trio.testing.MockClock,
) -> None:
    channel: Channel[int] = Channel("orders", capacity=0)
    ended = trio.Event()
    sent: list[tuple[bool, float]] = []

    async def send(message: int) -> None:
        was_sent = await channel.send_until(message, ended)
        sent.append((was_sent, trio.current_time()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send, 1)
        await trio.sleep(3)
        assert await channel.receive() == 1
        nursery.start_soon(send, 2)
        await trio.sleep(4)
        ended.set()
    assert sent == [(True, 3), (False, 7)]
    assert channel.receive_waiting(limit=1) == []
