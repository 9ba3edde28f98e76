"""Places of a process that its tenants take in turn."""

import threading
from collections import Counter

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.queries.turns import Turns


async def work(turns: Turns, tenant: str, order: list[str], seconds: float = 1.0) -> None:
    async with turns.turn(tenant):
        order.append(tenant)
        await trio.sleep(seconds)


async def test_who_asks_for_much_makes_others_wait_for_one_round_alone(
    mock_clock: MockClock,
) -> None:
    turns, order = Turns(2), list[str]()
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(work, turns, "acme-7", order)
        await wait_all_tasks_blocked()
        for _ in range(3):
            nursery.start_soon(work, turns, "beta-2", order)
        await wait_all_tasks_blocked()
        nursery.start_soon(work, turns, "core-1", order)
        await wait_all_tasks_blocked()
        mock_clock.autojump_threshold = 0
    assert order[:2] == ["acme-7"] * 2
    # Two at a time: those who began together stand in any order.
    assert Counter(order[2:4]) == {"acme-7": 1, "beta-2": 1}
    assert "core-1" in order[4:6]
    assert order[2:10].count("beta-2") == 3
    assert trio.current_time() == 12.0


@pytest.mark.parametrize("tenant", ["", "acme-7"])
async def test_who_is_alone_gets_every_place_in_its_order(
    tenant: str, autojump_clock: MockClock
) -> None:
    turns, ended = Turns(3), list[int]()

    async def numbered(number: int) -> None:
        async with turns.turn(tenant):
            await trio.sleep(1)
            ended.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(9):
            nursery.start_soon(numbered, number)
            await wait_all_tasks_blocked()
    assert trio.current_time() == 3.0
    assert [sorted(ended[start : start + 3]) for start in (0, 3, 6)] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
    ]


async def test_who_gives_up_waiting_takes_nothing(autojump_clock: MockClock) -> None:
    turns, order = Turns(1), list[str]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, turns, "acme-7", order)
        await wait_all_tasks_blocked()
        for tenant in ("acme-7", "beta-2", ""):
            with trio.move_on_after(0.1) as waiting:
                await work(turns, tenant, order)
            assert waiting.cancelled_caught
        nursery.start_soon(work, turns, "beta-2", order)
    assert order == ["acme-7", "beta-2"]
    assert trio.current_time() == 2.0
    assert turns._lines == {}


async def test_work_in_threads_goes_on_in_so_many_at_once() -> None:
    turns = Turns(2)
    inside, most, guard = 0, 0, threading.Lock()

    def busy() -> str:
        nonlocal inside, most
        with guard:
            inside += 1
            most = max(most, inside)
        threading.Event().wait(0.01)
        with guard:
            inside -= 1
        return threading.current_thread().name

    names: list[str] = []

    async def run(tenant: str) -> None:
        names.append(await turns.in_thread(busy, tenant))

    async with trio.open_nursery() as nursery:
        for tenant in ("acme-7", "beta-2", "") * 3:
            nursery.start_soon(run, tenant)
    assert (len(names), most) == (9, 2)
    assert threading.current_thread().name not in names


async def test_what_work_raises_frees_its_place() -> None:
    turns = Turns(1)

    def fail() -> None:
        raise LookupError

    for _ in range(3):
        with pytest.raises(LookupError):
            await turns.in_thread(fail, "acme-7")
