"""The ``rabbitmq`` entry by the state of the breaker (spec configuration 6.6)."""

from typing import Any, cast

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.probe import NeededObjects, rabbitmq_probe
from fetcher.adapters.breaker import FAILURES_TO_OPEN, OPEN_SECONDS, CircuitBreaker
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import Probe, ProbeResult, ProbeStatus


class Link:
    """A connection on which every look succeeds, or fails."""

    tls = True
    is_blocked = False

    def __init__(self, *, is_lost: bool = False) -> None:
        self.is_lost = is_lost
        self.looks = 0

    async def check(self, look: object) -> None:
        await trio.lowlevel.checkpoint()
        self.looks += 1
        if self.is_lost:
            raise PortUnavailable("the connection to the broker failed")


def a_probe(link: Link, breaker: CircuitBreaker) -> Probe:
    needed = NeededObjects(work_queue="work")
    return rabbitmq_probe(cast("BrokerConnection", cast("Any", link)), breaker, needed)


def opened() -> CircuitBreaker:
    breaker = CircuitBreaker()
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(PortUnavailable), breaker.attempt():
            raise PortUnavailable("down")
    return breaker


async def test_open_and_half_open_are_told_without_a_look(autojump_clock: MockClock) -> None:
    link, breaker = Link(), opened()
    probe = a_probe(link, breaker)
    assert await probe.check() == ProbeResult(
        status=ProbeStatus.DOWN, tls=True, error="circuit breaker open", breaker_state="open"
    )
    await trio.sleep(OPEN_SECONDS)
    assert await probe.check() == ProbeResult(
        status=ProbeStatus.DEGRADED,
        tls=True,
        error="circuit breaker half-open",
        breaker_state="half-open",
    )
    assert link.looks == 0
    # The one trial is still there for the traffic.
    with breaker.attempt():
        pass
    assert (await probe.check()).breaker_state == "closed"


@pytest.mark.parametrize(
    ("is_lost", "status", "error"),
    [(False, "up", None), (True, "down", "rabbitmq connection not healthy")],
)
async def test_closed_is_looked_at_every_time(
    is_lost: bool, status: str, error: str | None, autojump_clock: MockClock
) -> None:
    link = Link(is_lost=is_lost)
    probe = a_probe(link, CircuitBreaker())
    for _ in range(2):
        result = await probe.check()
        assert (result.status, result.error, result.breaker_state) == (status, error, "closed")
    assert link.looks == 2
    assert (probe.name, probe.timeout_seconds) == ("rabbitmq", 2)


async def test_log_says_why_once_and_the_entry_keeps_its_text() -> None:
    link = Link(is_lost=True)
    probe = a_probe(link, CircuitBreaker())
    with capture_logs() as logged:
        for _ in range(3):
            assert (await probe.check()).error == "rabbitmq connection not healthy"
        link.is_lost = False
        await probe.check()
        link.is_lost = True
        await probe.check()
    why = "the connection to the broker failed"
    assert [(line["event"], line["why"]) for line in logged] == [("rabbitmq_not_healthy", why)] * 2


async def test_log_says_where_a_connect_hangs(autojump_clock: MockClock) -> None:
    class Hanging(Link):
        async def check(self, look: object) -> None:
            await trio.sleep_forever()

        def silence(self) -> PortUnavailable:
            return PortUnavailable("tcp or tls: timeout")

    with capture_logs() as logged:
        assert (await a_probe(Hanging(), CircuitBreaker()).check()).error == "timeout"
    assert [line["why"] for line in logged] == ["tcp or tls: timeout"]
