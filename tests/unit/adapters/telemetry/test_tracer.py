"""A span ends as what it tells of: well, cancelled, or failed under a code; never with a text."""

from collections.abc import Callable

import pytest
import trio
import trio.testing

from fetcher.domain.errors import PortUnavailable
from fetcher_engine import EngineError, ErrorCategory, SourceFailure, Stage
from tests.unit.recorded_spans import RecordedSpans

CANARY = "canary-of-a-server"


def failing_with(error: BaseException) -> RecordedSpans:
    spans = RecordedSpans()
    with pytest.raises(type(error)), spans.tracer.span("stage"):
        raise error
    return spans


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PortUnavailable(CANARY), "unavailable"),
        (EngineError(ErrorCategory.TIMEOUT, CANARY), "timeout"),
        (SourceFailure(Stage.QUERY, "auth", table=CANARY), "auth"),
        (SourceFailure(Stage.QUERY, f"No: {CANARY}"), "unknown"),
        (ValueError(CANARY), "ValueError"),
        (ExceptionGroup(CANARY, [PortUnavailable(CANARY)]), "unavailable"),
        (
            ExceptionGroup(CANARY, [ValueError(CANARY), KeyError(CANARY)]),
            "ExceptionGroup(ValueError, KeyError)",
        ),
    ],
)
def test_a_failure_is_told_by_its_code(error: BaseException, code: str) -> None:
    spans = failing_with(error)
    assert spans.endings() == {"stage": code}
    assert CANARY not in spans.told()


async def cancelled_alone() -> None:
    await trio.sleep_forever()


async def cancelled_in_a_nursery() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        nursery.start_soon(trio.sleep_forever)
        await trio.sleep_forever()


async def failed_while_it_was_cancelled() -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        try:
            await trio.sleep_forever()
        finally:
            raise PortUnavailable(CANARY)


@pytest.mark.parametrize(
    ("work", "ending"),
    [
        (cancelled_alone, "cancelled"),
        (cancelled_in_a_nursery, "cancelled"),
        (failed_while_it_was_cancelled, "unavailable"),
    ],
)
async def test_a_cancellation_is_no_failure(
    autojump_clock: trio.testing.MockClock, work: Callable[[], object], ending: str
) -> None:
    spans = RecordedSpans()

    async def run() -> None:
        with trio.move_on_after(1), spans.tracer.span("stage"):
            await work()  # type: ignore[misc] # one of the three above

    try:
        await run()
    except* PortUnavailable:
        assert ending == "unavailable"
    assert spans.endings() == {"stage": ending}
