"""The gauges of dead letters: once a minute, and an age that goes on."""

import math
from datetime import UTC, datetime, timedelta

import trio
import trio.testing
from prometheus_client import CollectorRegistry

from fetcher.actors.dead_letter_count import DeadLetterCount
from fetcher.actors.sampled_metrics import DeadLetterMetrics
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import DeadLetterLevel

START = datetime(2026, 3, 16, 9, tzinfo=UTC)


class Levels:
    def __init__(self, *answers: DeadLetterLevel | PortUnavailable) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def level(self) -> DeadLetterLevel:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, PortUnavailable):
            raise answer
        return answer


def a_level(messages: int, oldest_at: datetime | None) -> DeadLetterLevel:
    return DeadLetterLevel(messages=messages, oldest_at=oldest_at)


def now() -> datetime:
    return START + timedelta(seconds=trio.current_time())


async def test_count_and_age_are_taken_once_a_minute_and_the_age_goes_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    five_days = timedelta(days=5)
    levels = Levels(
        a_level(3, START - five_days),
        PortUnavailable("broker away"),
        a_level(4, None),
        a_level(0, None),
        a_level(1, START + five_days),
    )
    registry = CollectorRegistry()
    share = DeadLetterMetrics(registry).share()
    count = DeadLetterCount(levels=levels, now=now, share=share)
    start = trio.current_time()
    shown: list[tuple[float, float]] = []

    def look() -> tuple[float, float]:
        messages = registry.get_sample_value("fetcher_dlq_messages")
        age = registry.get_sample_value("fetcher_dlq_oldest_message_age_seconds")
        assert messages is not None
        assert age is not None
        return messages, age

    assert all(math.isnan(each) for each in look())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count.run)
        for minute in range(5):
            await trio.sleep_until(start + minute * 60 + 30)
            assert levels.asked == minute + 1
            shown.append(look())
        unknown = shown.pop(2)
        assert unknown[0] == 4
        assert math.isnan(unknown[1])
        # the last: a clock that is ahead of ours
        assert shown == [(3, 432_000 + start), (3, 432_060 + start), (0, 0), (1, 0)]
        nursery.cancel_scope.cancel()


def test_a_process_shows_all_its_tenants_letters_and_the_age_of_the_oldest_that_is_known() -> None:
    registry = CollectorRegistry()
    metrics = DeadLetterMetrics(registry)

    def look() -> tuple[float | None, float | None]:
        return (
            registry.get_sample_value("fetcher_dlq_messages"),
            registry.get_sample_value("fetcher_dlq_oldest_message_age_seconds"),
        )

    first, second, uncounted = metrics.share(), metrics.share(), metrics.share()
    first.messages, first.oldest_seconds = 3, 50
    second.messages, second.oldest_seconds = 4, 20
    assert look() == (7, 50)
    assert registry.get_sample_value("fetcher_dlq_fullest_messages") == 4
    first.oldest_seconds = math.nan
    assert look() == (7, 20)
    metrics.forget(second)
    messages, age = look()
    assert messages == 3
    assert age is not None
    assert math.isnan(age), "nobody knows how old they are"
    metrics.forget(first)
    assert all(math.isnan(each) for each in look() if each is not None)
    uncounted.messages, uncounted.oldest_seconds = 0, 0
    assert look() == (0, 0)
