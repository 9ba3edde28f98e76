"""What fails behind a boundary."""

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.actors.contained import failure_of, found_in, told_of
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import TenantDenied, TenantError


async def test_a_failure_is_a_value_and_a_good_end_is_none() -> None:
    crash = KeyError("x")

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise crash

    assert await failure_of(fail) is crash
    assert await failure_of(trio.lowlevel.checkpoint) is None


async def test_a_cancellation_goes_on_alone_where_a_crash_comes_with_it() -> None:
    async def crash_on_the_way_down() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise KeyError("secret")

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(crash_on_the_way_down)
            nursery.start_soon(trio.sleep_forever)

    answers: list[object] = []
    with capture_logs() as logs, trio.move_on_after(0.01) as scope:
        answers.append(await failure_of(work))
    assert scope.cancelled_caught
    assert answers == []
    [told] = logs
    assert (told["event"], told["crash"]) == (
        "crashed_beside_cancellation",
        "ExceptionGroup(KeyError)",
    )
    assert "secret" not in str(told)


async def test_an_interrupt_is_nobodys_failure() -> None:
    async def interrupt() -> None:
        await trio.lowlevel.checkpoint()
        raise BaseExceptionGroup("", [KeyboardInterrupt()])

    with pytest.raises(BaseExceptionGroup):
        await failure_of(interrupt)


def test_an_error_is_found_however_deep_it_lies() -> None:
    denied = TenantDenied()
    crash = ExceptionGroup("", [KeyError(), ExceptionGroup("", [denied])])
    assert found_in(crash, TenantError) is denied
    assert found_in(crash, PortUnavailable) is None
    assert found_in(denied, TenantError) is denied


def test_a_log_is_told_codes_and_types_and_no_texts() -> None:
    assert told_of(ExceptionGroup("", [PortUnavailable("away")])) == {"code": "unavailable"}
    assert told_of(trio.TooSlowError()) == {"code": "timed_out"}
    assert told_of(KeyError("secret")) == {"code": "KeyError", "places": []}
