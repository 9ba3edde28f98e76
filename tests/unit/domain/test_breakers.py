"""The rules of a connection's breaker."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fetcher.domain.breakers import (
    FAILURES_TO_OPEN,
    FIRST_OPEN_AFTER_AUTH_SECONDS,
    FIRST_OPEN_SECONDS,
    LONGEST_OPEN_SECONDS,
    PROBE_LEASE_SECONDS,
    Breaker,
    BreakerChange,
    SourceDown,
    failed,
    probe_failed,
    probed_by,
    reached,
    wait_until,
)
from tests.unit.commands.job_bench import NOW, a_connection

DOWN = SourceDown(stage="auth", reason="auth")
REFUSED = SourceDown(stage="tcp", reason="refused")
CONNECTION = a_connection()
CHANGED = replace(CONNECTION, updated_at=NOW + timedelta(milliseconds=1))


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def after_failures(times: int, *, now: datetime = NOW, down: SourceDown = DOWN) -> Breaker:
    breaker: Breaker | None = None
    for _ in range(times):
        breaker = failed(CONNECTION, down)(breaker, now)
    assert breaker is not None
    return breaker


def an_open(**changes: object) -> Breaker:
    return replace(after_failures(FAILURES_TO_OPEN), **{"retry_at": after(20), **changes})  # type: ignore[arg-type] # a test's builder


def test_four_failures_in_a_row_hold_nobody_back() -> None:
    breaker = after_failures(FAILURES_TO_OPEN - 1)
    assert not breaker.holds_back(CONNECTION)
    assert wait_until(breaker, CONNECTION, NOW) is None


@pytest.mark.parametrize(
    ("reason", "most_seconds"),
    [
        ("auth", FIRST_OPEN_AFTER_AUTH_SECONDS),
        *((reason, FIRST_OPEN_SECONDS) for reason in ("refused", "unreachable", "dns", "network")),
    ],
)
def test_the_fifth_opens_it_for_half_a_minute_where_an_account_is_tried_else_for_ten_seconds(
    reason: str, most_seconds: float
) -> None:
    down = SourceDown(stage="tcp", reason=reason)
    for _ in range(50):
        breaker = after_failures(FAILURES_TO_OPEN, down=down)
        assert breaker.retry_at is not None
        assert after(most_seconds / 2) <= breaker.retry_at <= after(most_seconds)
        assert wait_until(breaker, CONNECTION, NOW) == breaker.retry_at


def test_a_success_in_between_begins_the_row_anew() -> None:
    breaker = reached(CONNECTION)(after_failures(FAILURES_TO_OPEN - 1), NOW)
    assert breaker is None
    again = failed(CONNECTION, DOWN)(breaker, NOW)
    assert again is not None
    assert again.failures == 1


def test_a_failure_of_a_job_that_began_before_does_not_prolong_it() -> None:
    breaker = an_open()
    assert failed(CONNECTION, REFUSED)(breaker, after(10)) is breaker


def test_a_changed_connection_is_tried_at_once_and_counted_anew() -> None:
    breaker = an_open()
    assert wait_until(breaker, CHANGED, NOW) is None
    assert probed_by(b"p", CHANGED)(breaker, NOW) is breaker
    first = failed(CHANGED, REFUSED)(breaker, NOW)
    assert first is not None
    assert (first.failures, first.openings, first.is_open) == (1, 0, False)
    assert first.version == CHANGED.updated_at


def test_a_late_job_of_the_connection_before_its_change_says_nothing() -> None:
    now_counted = failed(CHANGED, DOWN)(None, NOW)
    assert failed(CONNECTION, DOWN)(now_counted, NOW) is now_counted
    assert reached(CONNECTION)(now_counted, NOW) is now_counted
    assert reached(CHANGED)(an_open(), NOW) is None


def test_one_probe_is_given_when_it_is_time() -> None:
    breaker = an_open()
    assert probed_by(b"p", CONNECTION)(breaker, after(19.9)) is breaker
    probed = probed_by(b"p", CONNECTION)(breaker, after(20))
    assert probed is not None
    assert probed.probe_token == b"p"
    assert probed.probe_until == after(20 + PROBE_LEASE_SECONDS)
    assert probed_by(b"q", CONNECTION)(probed, after(21)) is probed
    assert wait_until(probed, CONNECTION, after(21)) == probed.probe_until


def test_a_prober_that_died_is_followed_by_another() -> None:
    probed = an_open(probe_token=b"p", probe_until=after(50))
    other = probed_by(b"q", CONNECTION)(probed, after(50))
    assert other is not None
    assert other.probe_token == b"q"
    assert probe_failed(b"p", REFUSED)(other, after(51)) is other


@pytest.mark.parametrize(
    ("down", "first_seconds"),
    [(DOWN, FIRST_OPEN_AFTER_AUTH_SECONDS), (REFUSED, FIRST_OPEN_SECONDS)],
)
def test_each_failed_probe_doubles_the_wait_up_to_ten_minutes(
    down: SourceDown, first_seconds: float
) -> None:
    breaker: Breaker | None = an_open()
    waits: list[float] = []
    for _ in range(1100):
        breaker = probed_by(b"p", CONNECTION)(
            replace(an_open(), openings=len(waits) + 1), after(20)
        )
        breaker = probe_failed(b"p", down)(breaker, after(20))
        assert breaker is not None
        assert breaker.retry_at is not None
        assert (breaker.down, breaker.probe_token, breaker.openings) == (
            down,
            None,
            len(waits) + 2,
        )
        waits.append((breaker.retry_at - after(20)).total_seconds())
    for number, wait in enumerate(waits):
        most = min(first_seconds * 2 ** min(number + 1, 32), LONGEST_OPEN_SECONDS)
        assert most / 2 - 0.001 <= wait <= most


def test_nothing_fails_a_probe_of_a_breaker_that_is_gone() -> None:
    assert probe_failed(b"p", REFUSED)(None, NOW) is None


@pytest.mark.parametrize(
    ("before", "now_is", "opened", "closed"),
    [
        (None, None, False, False),
        (None, after_failures(1), False, False),
        (after_failures(4), after_failures(5), True, False),
        (an_open(), an_open(openings=2), False, False),
        (an_open(), None, False, True),
        (an_open(), after_failures(1), False, True),
        (after_failures(1), None, False, False),
    ],
)
def test_a_change_tells_whether_it_opened_or_closed(
    before: Breaker | None, now_is: Breaker | None, opened: bool, closed: bool
) -> None:
    change = BreakerChange(before=before, after=now_is, at=NOW)
    assert (change.opened, change.closed) == (opened, closed)
