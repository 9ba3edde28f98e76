"""How many tenants stay open in a manager (spec configuration 11.7 and 17.8, "pool limit")."""

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from fetcher.actors.tenancy import room as tenant_room
from tests.unit.actors.tenancy.bench import TenantBench

NAMES = ("t-1", "t-2", "t-3", "t-4", "t-5")


@pytest.fixture
def bench() -> TenantBench:
    bench = TenantBench().limited(most_open=3, idle_seconds=300)
    bench.directory.add(*NAMES)
    return bench


@pytest.fixture
def no_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is closed but for another one's place."""
    monkeypatch.setattr(tenant_room, "SWEEP_SECONDS", 1_000_000.0)


async def test_the_one_that_is_idle_makes_room_for_the_fourth(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, no_sweep: None
) -> None:
    async with bench.running(discovers=False):
        first = await bench.open("t-1")
        await trio.sleep(10)
        second, third = await bench.open("t-2"), await bench.open("t-3")
        with second.uses.enter(), third.uses.enter():
            await trio.sleep(300)
            await bench.open("t-4")
            assert first.uses.is_closed
            await trio.sleep(1)
            assert bench.world.runs == ["t-2", "t-3", "t-4"]
            assert bench.counted("fetcher_tenants_evicted_total") == 1


async def test_of_two_idle_ones_the_longest_idle_is_closed(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, no_sweep: None
) -> None:
    async with bench.running(discovers=False):
        for name in ("t-1", "t-2", "t-3"):
            await bench.open(name)
            await trio.sleep(10)
        with (await bench.open("t-1")).uses.enter():
            await trio.sleep(1)
        await trio.sleep(400)
        await bench.open("t-4")
        await trio.sleep(1)
        assert bench.world.runs == ["t-1", "t-3", "t-4"]
        await bench.open("t-5")
        await trio.sleep(1)
        assert bench.world.runs == ["t-1", "t-4", "t-5"]


async def test_where_none_is_idle_the_limit_is_passed_with_a_warning_a_minute(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, no_sweep: None
) -> None:
    with capture_logs() as logs:
        async with bench.running(discovers=False):
            for name in NAMES:
                await bench.open(name)
                await trio.sleep(0.5)
            assert bench.world.runs == list(NAMES)
    warned = [each for each in logs if each["event"] == "tenants_past_the_limit"]
    assert [(each["limit"], each["open"]) for each in warned] == [(3, 4)]


async def test_exactly_the_idle_time_is_idle_and_less_is_not(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, no_sweep: None
) -> None:
    async with bench.running(discovers=False):
        for name in ("t-1", "t-2", "t-3"):
            await bench.open(name)
        first = bench.world.opened[0].uses.last_used_at
        await trio.sleep_until(first + 299.9)
        await bench.open("t-4")
        await trio.testing.wait_all_tasks_blocked()
        assert bench.world.runs == ["t-1", "t-2", "t-3", "t-4"]
        await trio.sleep_until(first + 300)
        await bench.open("t-5")
        await trio.testing.wait_all_tasks_blocked()
        assert "t-1" not in bench.world.runs
        assert "t-2" in bench.world.runs


async def test_an_idle_tenant_is_closed_also_where_there_is_room(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=False) as actor:
        first = await bench.open("t-1")
        second = await bench.open("t-2")
        with second.uses.enter():
            await trio.sleep(290)
            assert bench.world.runs == ["t-1", "t-2"]
            await trio.sleep(30)
            assert first.uses.is_closed
            assert [(state.tenant_id, state.uses) for state in actor.states()] == [("t-2", 1)]
            assert (await bench.open("t-1")) is not first


@pytest.mark.parametrize("most_open", [0, -1])
async def test_without_a_limit_nothing_is_ever_closed(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, most_open: int
) -> None:
    bench.limited(most_open=most_open)
    async with bench.running(discovers=False):
        for name in NAMES:
            await bench.open(name)
        await trio.sleep(10_000)
        assert bench.world.runs == list(NAMES)
        assert bench.counted("fetcher_tenants_evicted_total") == 0


async def test_where_tenants_are_run_none_is_closed_for_being_idle(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(10_000)
        assert bench.world.runs == list(NAMES)
        assert bench.counted("fetcher_tenants_opened_total") == 5


async def test_where_tenants_are_run_a_request_for_one_more_closes_none(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    """Whoever names tenants that are not would end the consumers of those that are."""
    async with bench.running(discovers=True):
        await trio.sleep(400)
        assert await bench.ask("nobody") is not None
        await trio.sleep(1)
        assert bench.world.runs == list(NAMES)
        assert bench.counted("fetcher_tenants_evicted_total") == 0
