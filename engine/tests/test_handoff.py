"""The hand-off of the concurrency port, over the README's asyncio and the suite's trio."""

import pytest

from fetcher_engine import DeadlineExceeded, Handoff, HandoffClosed

from .loops import RealLoop


def handoff(loop: RealLoop, max_cost: int) -> Handoff[str]:
    made: Handoff[str] | None = loop.concurrency.handoff(max_cost)
    assert made is not None
    return made


async def drained(queue: Handoff[str]) -> list[str]:
    items = []
    while True:
        try:
            items.append(await queue.receive())
        except HandoffClosed:
            return items


def test_items_arrive_in_order_and_the_end_is_told_again_and_again(loop: RealLoop) -> None:
    async def main() -> None:
        queue = handoff(loop, 10)
        for item in "abc":
            await queue.send(item, 1)
        queue.close()
        queue.close()
        assert await drained(queue) == ["a", "b", "c"]
        assert await drained(queue) == []

    loop.run(main)


def test_producer_waits_where_the_costs_pass_the_bound(loop: RealLoop) -> None:
    log: list[str] = []

    async def main() -> None:
        queue = handoff(loop, 10)

        async def produce() -> None:
            for item, cost in (("a", 4), ("b", 6), ("c", 1), ("d", 99), ("e", 99)):
                await queue.send(item, cost)
                log.append(f"+{item}")
            queue.close()

        async def consume() -> None:
            for _ in range(20):
                await loop.pause()
            assert log == ["+a", "+b"]
            for expected in "abcde":
                assert await queue.receive() == expected
                log.append(f"-{expected}")
                for _ in range(20):
                    await loop.pause()
            assert await drained(queue) == []

        await loop.concurrency.run_ordered([produce, consume], 2)

    loop.run(main)
    # c fits once a is taken; d, larger than the bound, once the queue is empty; e after d
    assert log == ["+a", "+b", "-a", "+c", "-b", "-c", "+d", "-d", "+e", "-e"]


def test_consumer_waits_for_an_item_and_for_the_end(loop: RealLoop) -> None:
    received: list[str] = []

    async def main() -> None:
        queue = handoff(loop, 1)

        async def consume() -> None:
            received.extend(await drained(queue))

        async def produce() -> None:
            for item in "ab":
                for _ in range(5):
                    await loop.pause()
                await queue.send(item, 1)
            for _ in range(5):
                await loop.pause()
            queue.close()

        await loop.concurrency.run_ordered([consume, produce], 2)

    loop.run(main)
    assert received == ["a", "b"]


def test_cancelled_send_appends_nothing(loop: RealLoop) -> None:
    async def main() -> list[str]:
        queue = handoff(loop, 1)
        await queue.send("a", 1)

        async def send() -> None:
            await queue.send("b", 1)

        with pytest.raises(DeadlineExceeded):
            await loop.concurrency.run_with_deadline(0.02, send)
        queue.close()
        return await drained(queue)

    assert loop.run(main) == ["a"]
