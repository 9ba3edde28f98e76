"""Preflight tests of a job's connections (design section 4, step 1)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from fetcher.adapters.memory.records import open_memory_records
from fetcher.commands.preflight import Preflight
from fetcher.domain.breakers import FAILURES_TO_OPEN, Breaker, SourceDown, failed
from fetcher.domain.connections import Connection
from fetcher.domain.errors import FetcherError, PortUnavailable
from fetcher.domain.ids import ConnectionId
from fetcher.ports import ConnectionBreakers
from fetcher_engine import SourceFailure, Stage, TenantContext
from tests.unit.api.harness import MemoryEngines, a_connection

TENANT = TenantContext.new("default")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def connections_named(*names: str) -> list[Connection]:
    return [a_connection(config_name=name) for name in names]


def a_preflight(engines: MemoryEngines, breakers: ConnectionBreakers | None = None) -> Preflight:
    return Preflight(engines, breakers or open_memory_records(lambda: NOW).breakers)


def count_of_tests(engines: MemoryEngines) -> int:
    return sum(len(names) for names in engines.asked)


async def test_one_that_was_well_is_not_tested_again_for_a_minute(
    autojump_clock: MockClock,
) -> None:
    engines = MemoryEngines()
    preflight = a_preflight(engines)
    connections = connections_named("a_db", "b_db")
    await preflight.check(connections, tenant=TENANT)
    await trio.sleep(59)
    await preflight.check(connections, tenant=TENANT)
    assert count_of_tests(engines) == 2
    await trio.sleep(2)
    await preflight.check(connections, tenant=TENANT)
    assert count_of_tests(engines) == 4


async def test_changed_connection_is_tested_again() -> None:
    engines = MemoryEngines()
    preflight = a_preflight(engines)
    (connection,) = connections_named("a_db")
    await preflight.check([connection], tenant=TENANT)
    later = connection.updated_at + timedelta(milliseconds=1)
    await preflight.check([replace(connection, updated_at=later)], tenant=TENANT)
    assert count_of_tests(engines) == 2


async def test_failure_is_not_remembered_and_success_beside_it_is() -> None:
    engines = MemoryEngines()
    preflight = a_preflight(engines)
    connections = connections_named("a_db", "b_db")
    engines.source("b_db").test_error = SourceFailure(Stage.TCP, "refused")
    for _ in range(2):
        with pytest.raises(FetcherError) as refused:
            await preflight.check(connections, tenant=TENANT)
        assert refused.value.code == "FET-1040"
    assert engines.asked == [["a_db", "b_db"], ["b_db"]]


async def test_first_failure_by_name_is_told_although_another_came_earlier(
    autojump_clock: MockClock,
) -> None:
    engines = MemoryEngines()

    async def late() -> None:
        await trio.sleep(3)

    engines.source("a_db").before_test = late
    engines.source("a_db").test_error = SourceFailure(Stage.AUTH, "auth")
    engines.source("b_db").test_error = SourceFailure(Stage.TCP, "refused")
    with pytest.raises(FetcherError) as refused:
        await a_preflight(engines).check(connections_named("b_db", "a_db"), tenant=TENANT)
    assert refused.value.details == {"source": "a_db", "stage": "auth", "reason": "auth"}


async def test_at_most_four_are_tested_at_once(autojump_clock: MockClock) -> None:
    engines = MemoryEngines()
    running = peak = 0

    async def count() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await trio.sleep(1)
        running -= 1

    names = [f"db_{number}" for number in range(10)]
    for name in names:
        engines.source(name).before_test = count
    began = trio.current_time()
    await a_preflight(engines).check(connections_named(*names), tenant=TENANT)
    assert peak == 4
    assert trio.current_time() - began == pytest.approx(3)


async def test_all_together_end_after_15_s_and_the_first_untested_is_told(
    autojump_clock: MockClock,
) -> None:
    engines = MemoryEngines()
    for name in ("b_db", "c_db"):
        engines.source(name).before_test = trio.sleep_forever
    began = trio.current_time()
    with pytest.raises(FetcherError) as refused:
        await a_preflight(engines).check(connections_named("a_db", "c_db", "b_db"), tenant=TENANT)
    assert trio.current_time() - began == pytest.approx(15)
    assert refused.value.details == {"source": "b_db", "reason": "timeout"}


async def test_unexpected_error_of_a_connector_counts_as_down() -> None:
    engines = MemoryEngines()
    engines.source("a_db").test_error = RuntimeError("password s3cret")
    with pytest.raises(FetcherError) as refused:
        await a_preflight(engines).check(connections_named("a_db"), tenant=TENANT)
    assert refused.value.code == "FET-1040"
    assert "s3cret" not in str(refused.value)


async def test_connection_that_is_left_alone_is_not_dialled_until_it_is_changed() -> None:
    """Callers who ask again and again would lock the account of a wrong password."""
    engines = MemoryEngines()
    engines.source("a_db").test_error = SourceFailure(Stage.AUTH, "auth")
    breakers = open_memory_records(lambda: NOW).breakers
    preflight = a_preflight(engines, breakers)
    down, well = connections_named("a_db", "b_db")
    for _ in range(FAILURES_TO_OPEN):
        with pytest.raises(FetcherError):
            await preflight.check([down], tenant=TENANT)
        await breakers.change(down.id, failed(down, SourceDown(stage="auth", reason="auth")))
    dialled = count_of_tests(engines)
    await preflight.check([down], tenant=TENANT)
    assert count_of_tests(engines) == dialled
    await preflight.check([down, well], tenant=TENANT)
    assert engines.asked[-1] == ["b_db"]
    mended = replace(down, updated_at=down.updated_at + timedelta(milliseconds=1))
    with pytest.raises(FetcherError):
        await preflight.check([mended], tenant=TENANT)


async def test_breakers_that_cannot_be_asked_hold_nothing_back() -> None:
    class Away:
        async def find(self, connection_ids: object) -> dict[ConnectionId, Breaker]:
            await trio.lowlevel.checkpoint()
            raise PortUnavailable("the record store did not answer in time")

    engines = MemoryEngines()
    breakers = cast("ConnectionBreakers", Away())
    await a_preflight(engines, breakers).check(connections_named("a_db"), tenant=TENANT)
    assert count_of_tests(engines) == 1
