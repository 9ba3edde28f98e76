"""Spec worker-and-events 12.8, rows B1 and B2."""

import pytest
import trio

from fetcher.adapters.breaker import CircuitBreaker
from fetcher.domain.errors import (
    LeftAlone,
    PortError,
    PortUnavailable,
    QueueFull,
    QueueMissing,
    Unroutable,
)


def fail(breaker: CircuitBreaker, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(PortUnavailable, match="broker away"), breaker.attempt():
            raise PortUnavailable("broker away")


def state_of(breaker: CircuitBreaker) -> str:
    return breaker.state.value


def is_admitted(breaker: CircuitBreaker) -> bool:
    try:
        with breaker.attempt():
            return True
    except PortUnavailable:
        return False


async def test_while_open_an_attempt_is_refused_before_anything_is_done(
    autojump_clock: trio.abc.Clock,
) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    with pytest.raises(PortUnavailable, match="circuit breaker is open"), breaker.attempt():
        pytest.fail("it was let through")


async def test_four_failures_in_a_row_leave_it_closed(autojump_clock: trio.abc.Clock) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 4)
    assert state_of(breaker) == "closed"
    assert is_admitted(breaker)


async def test_who_is_refused_is_told_for_how_long(autojump_clock: trio.abc.Clock) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    told = []
    for seconds in (0, 10, 19.5):
        await trio.sleep(seconds)
        with pytest.raises(LeftAlone) as refused, breaker.attempt():
            pytest.fail("it was let through")
        told.append(refused.value.seconds)
    await trio.sleep(1)
    with breaker.attempt(), pytest.raises(LeftAlone) as refused, breaker.attempt():
        pytest.fail("there is one trial alone")
    assert [*told, refused.value.seconds] == [30, 20, 1, 1]


async def test_five_failures_in_a_row_open_it(autojump_clock: trio.abc.Clock) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    assert state_of(breaker) == "open"
    assert not is_admitted(breaker)


async def test_a_success_starts_the_count_anew(autojump_clock: trio.abc.Clock) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 4)
    assert is_admitted(breaker)
    fail(breaker, 4)
    assert state_of(breaker) == "closed"


@pytest.mark.parametrize("answer", [Unroutable, QueueFull, QueueMissing])
async def test_a_message_that_no_queue_takes_is_no_failure_of_the_broker(
    autojump_clock: trio.abc.Clock, answer: type[PortError]
) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 4)
    for _ in range(10):
        with pytest.raises(answer), breaker.attempt():
            raise answer
    fail(breaker, 4)
    assert state_of(breaker) == "closed"


async def test_after_thirty_seconds_one_trial_decides(autojump_clock: trio.abc.Clock) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    await trio.sleep(29.9)
    assert state_of(breaker) == "open"
    await trio.sleep(0.1)
    assert state_of(breaker) == "half-open"
    with breaker.attempt():
        assert not is_admitted(breaker)
        assert state_of(breaker) == "half-open"
    assert state_of(breaker) == "closed"
    assert is_admitted(breaker)


async def test_a_trial_that_fails_opens_it_for_another_thirty_seconds(
    autojump_clock: trio.abc.Clock,
) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    await trio.sleep(31)
    fail(breaker)
    assert state_of(breaker) == "open"
    await trio.sleep(29)
    assert state_of(breaker) == "open"
    await trio.sleep(1)
    assert state_of(breaker) == "half-open"


async def test_a_cancelled_trial_lets_another_one_through(autojump_clock: trio.abc.Clock) -> None:
    breaker = CircuitBreaker()
    fail(breaker, 5)
    await trio.sleep(31)
    with trio.move_on_after(1), breaker.attempt():
        await trio.sleep_forever()
    assert state_of(breaker) == "half-open"
    assert is_admitted(breaker)
    assert state_of(breaker) == "closed"


async def test_a_straggler_does_not_keep_it_open_for_longer(
    autojump_clock: trio.abc.Clock,
) -> None:
    breaker = CircuitBreaker()

    async def late_use() -> None:
        with breaker.attempt():
            await trio.sleep(20)
            raise PortUnavailable("late")

    async def fail_late() -> None:
        with pytest.raises(PortUnavailable, match="late"):
            await late_use()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail_late)
        await trio.testing.wait_all_tasks_blocked()
        fail(breaker, 5)
    await trio.sleep(10)
    assert state_of(breaker) == "half-open"


async def test_how_many_failures_open_it_and_for_how_long_is_its_owners_to_say(
    autojump_clock: trio.abc.Clock,
) -> None:
    breaker = CircuitBreaker(failures_to_open=1, open_seconds=5)
    fail(breaker)
    await trio.sleep(4.9)
    assert not is_admitted(breaker)
    await trio.sleep(0.1)
    assert state_of(breaker) == "half-open"
    fail(breaker)
    assert state_of(breaker) == "open"
    await trio.sleep(5)
    assert is_admitted(breaker)
    assert state_of(breaker) == "closed"
