import pytest
import trio
from trio.testing import MockClock

from tests.servers.waiting import DeadlineMissedError, eventually, eventually_sync


async def test_the_first_true_value_is_returned(autojump_clock: MockClock) -> None:
    values = iter([0, "", "found"])
    assert await eventually(lambda: next(values), deadline_seconds=5) == "found"


async def test_a_coroutine_function_is_awaited(autojump_clock: MockClock) -> None:
    async def after_three_seconds() -> bool:
        await trio.lowlevel.checkpoint()
        return trio.current_time() - start >= 3

    start = trio.current_time()
    assert await eventually(after_three_seconds, deadline_seconds=5) is True


async def test_a_missed_deadline_names_the_condition_and_its_last_value(
    autojump_clock: MockClock,
) -> None:
    with pytest.raises(DeadlineMissedError, match=r"not within 2 s: two jobs \(last value: \[\]\)"):
        await eventually(list, deadline_seconds=2, what="two jobs")


async def test_a_hanging_condition_is_cancelled_at_the_deadline(autojump_clock: MockClock) -> None:
    start = trio.current_time()
    with pytest.raises(DeadlineMissedError, match="sleep_forever"):
        await eventually(trio.sleep_forever, deadline_seconds=2)
    assert trio.current_time() - start == pytest.approx(2)


def test_without_trio_it_is_the_same() -> None:
    values = iter([None, 7])
    assert eventually_sync(lambda: next(values), deadline_seconds=5) == 7
    with pytest.raises(DeadlineMissedError, match="last value: False"):
        eventually_sync(lambda: False, deadline_seconds=0)
