"""Parts of a diagnosis: whatever one of them does, the others are told, in time."""

import threading
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from fetcher.commands.diagnosis import GRACE_SECONDS, Facts, Part, PartResult, look_at
from fetcher.domain.errors import PortUnavailable, StartRefused

CANARY = "canary-of-a-database"


async def well() -> Facts:
    await trio.sleep(1)
    return {"n": 7}


async def away() -> Facts:
    await trio.lowlevel.checkpoint()
    raise PortUnavailable("not there")


async def refused() -> Facts:
    await trio.lowlevel.checkpoint()
    raise StartRefused(["A: wrong", "B: wrong"])


async def crashed() -> Facts:
    await trio.lowlevel.checkpoint()
    raise RuntimeError(CANARY)


async def look(*parts: Part) -> dict[str, PartResult]:
    async with trio.open_nursery() as nursery:
        results = await look_at(parts, nursery)
        nursery.cancel_scope.cancel()
    assert [result.name for result in results] == [part.name for part in parts]
    return {result.name: result for result in results}


async def test_each_part_tells_its_facts_or_what_failed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    told = await look(
        Part(name="well", look=well),
        Part(name="away", look=away),
        Part(name="refused", look=refused),
        Part(name="crashed", look=crashed),
        Part(name="hangs", look=trio.sleep_forever, seconds=3),
    )
    assert (told["well"].facts, told["well"].failure, told["well"].seconds) == ({"n": 7}, None, 1)
    assert told["away"].failure == {"code": "unavailable", "text": "not there"}
    assert told["refused"].failure == {"code": "refused", "text": "A: wrong; B: wrong"}
    crash = told["crashed"].failure
    assert crash is not None
    assert (crash["code"], crash["type"]) == ("crash", "RuntimeError")
    assert CANARY not in str(crash)
    assert told["hangs"].failure == {"code": "timeout"}


async def fails_while_it_is_left() -> Facts:
    async def child() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError(CANARY)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child)
        nursery.start_soon(trio.sleep_forever)
    return {}


async def test_a_part_that_fails_when_its_time_is_over_takes_no_other_along(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its nursery hands on the failure together with the cancellation."""
    told = await look(
        Part(name="well", look=well), Part(name="fails", look=fails_while_it_is_left, seconds=3)
    )
    assert (told["well"].facts, told["well"].failure) == ({"n": 7}, None)
    failure = told["fails"].failure
    assert failure is not None
    assert failure["code"] == "crash"
    assert "OSError" in str(failure["type"])
    assert CANARY not in str(failure)


async def test_a_part_that_fails_while_all_are_cancelled_lets_the_cancellation_through(
    autojump_clock: trio.testing.MockClock,
) -> None:
    with trio.move_on_after(1) as scope:
        await look(Part(name="fails", look=fails_while_it_is_left))
    assert scope.cancelled_caught


@pytest.mark.parametrize(
    ("end", "code"), [(trio.sleep_forever, "timeout"), (crashed, "crash"), (away, "unavailable")]
)
async def test_what_was_found_ahead_of_a_failure_is_told_beside_it(
    autojump_clock: trio.testing.MockClock, end: Callable[[], Awaitable[Facts]], code: str
) -> None:
    found: dict[str, object] = {}

    async def half() -> Facts:
        found["n"] = 7
        return await end()

    told = await look(Part(name="half", look=half, found=found))
    failure = told["half"].failure
    assert failure is not None
    assert (told["half"].facts, failure["code"]) == ({"n": 7}, code)


async def test_a_part_that_cannot_be_stopped_is_left_behind_after_its_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its thread waits for a disk that hangs."""
    disk = threading.Event()

    async def hung() -> Facts:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(disk.wait)
        return {}

    async with trio.open_nursery() as nursery:
        began_at = trio.current_time()
        [result] = await look_at([Part(name="disks", look=hung, seconds=2)], nursery)
        assert trio.current_time() - began_at == 2 + GRACE_SECONDS
        disk.set()
    assert result.failure == {"code": "timeout"}


async def test_who_cancels_is_not_held_up(autojump_clock: trio.testing.MockClock) -> None:
    with trio.move_on_after(1) as scope:
        await look(Part(name="hangs", look=trio.sleep_forever))
    assert scope.cancelled_caught
    assert trio.current_time() - scope.deadline == 0
