"""Lease times are the server's clock, carried on by ours (design section 4, step 4)."""

from datetime import UTC, datetime, timedelta

import pytest

from fetcher.adapters.mongo.clock import ServerClock

SERVER_TIME = datetime(2026, 3, 14, 9, 26, 53, 500_000, tzinfo=UTC)


class FakeMonotonic:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def monotonic() -> FakeMonotonic:
    return FakeMonotonic()


@pytest.fixture
def clock(monotonic: FakeMonotonic) -> ServerClock:
    """Sampled once, with an answer that took 2 s."""
    clock = ServerClock(monotonic)
    asked_at = clock.asking()
    monotonic.seconds += 2
    clock.answered(asked_at, SERVER_TIME)
    return clock


def test_the_sample_is_taken_as_of_the_middle_of_its_round_trip(clock: ServerClock) -> None:
    assert clock.now() == SERVER_TIME + timedelta(seconds=1)


def test_our_monotonic_clock_carries_it_on_in_milliseconds(
    clock: ServerClock, monotonic: FakeMonotonic
) -> None:
    monotonic.seconds += 10.123_999
    assert clock.now() == SERVER_TIME + timedelta(seconds=11, milliseconds=123)


def test_a_sample_is_stale_after_30_seconds(clock: ServerClock, monotonic: FakeMonotonic) -> None:
    monotonic.seconds += 28.9
    assert not clock.is_stale
    monotonic.seconds += 0.2
    assert clock.is_stale


def test_a_new_sample_replaces_the_old_one(clock: ServerClock, monotonic: FakeMonotonic) -> None:
    monotonic.seconds += 40
    clock.answered(clock.asking(), SERVER_TIME + timedelta(hours=1))
    assert not clock.is_stale
    assert clock.now() == SERVER_TIME + timedelta(hours=1)


def test_a_distrusted_sample_is_stale_but_still_tells_the_time(clock: ServerClock) -> None:
    clock.distrust()
    assert clock.is_stale
    assert clock.now() == SERVER_TIME + timedelta(seconds=1)
    clock.answered(clock.asking(), SERVER_TIME)
    assert not clock.is_stale


def test_a_clock_that_was_never_asked_has_no_time() -> None:
    clock = ServerClock()
    assert clock.is_stale
    with pytest.raises(RuntimeError, match="was not asked"):
        clock.now()
