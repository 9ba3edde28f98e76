"""Preflight tests of a job's connections (design section 4, step 1)."""

from dataclasses import replace
from datetime import timedelta

import pytest
import trio
from trio.testing import MockClock

from fetcher.commands.preflight import Preflight
from fetcher.domain.connections import Connection
from fetcher.domain.errors import FetcherError
from fetcher_engine import SourceFailure, Stage, TenantContext
from tests.unit.api.harness import MemoryEngines, a_connection

TENANT = TenantContext.new("default")


def connections_named(*names: str) -> list[Connection]:
    return [a_connection(config_name=name) for name in names]


def count_of_tests(engines: MemoryEngines) -> int:
    return sum(len(names) for names in engines.asked)


async def test_one_that_was_well_is_not_tested_again_for_a_minute(
    autojump_clock: MockClock,
) -> None:
    engines = MemoryEngines()
    preflight = Preflight(engines)
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
    preflight = Preflight(engines)
    (connection,) = connections_named("a_db")
    await preflight.check([connection], tenant=TENANT)
    later = connection.updated_at + timedelta(milliseconds=1)
    await preflight.check([replace(connection, updated_at=later)], tenant=TENANT)
    assert count_of_tests(engines) == 2


async def test_failure_is_not_remembered_and_success_beside_it_is() -> None:
    engines = MemoryEngines()
    preflight = Preflight(engines)
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
        await Preflight(engines).check(connections_named("b_db", "a_db"), tenant=TENANT)
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
    await Preflight(engines).check(connections_named(*names), tenant=TENANT)
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
        await Preflight(engines).check(connections_named("a_db", "c_db", "b_db"), tenant=TENANT)
    assert trio.current_time() - began == pytest.approx(15)
    assert refused.value.details == {"source": "b_db", "reason": "timeout"}


async def test_unexpected_error_of_a_connector_counts_as_down() -> None:
    engines = MemoryEngines()
    engines.source("a_db").test_error = RuntimeError("password s3cret")
    with pytest.raises(FetcherError) as refused:
        await Preflight(engines).check(connections_named("a_db"), tenant=TENANT)
    assert refused.value.code == "FET-1040"
    assert "s3cret" not in str(refused.value)
