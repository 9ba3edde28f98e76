"""The list of active tenants against those that run (spec configuration 11.9, 17.8)."""

import pytest
import trio
import trio.testing

from fetcher.domain.tenants import TenantSuspended
from tests.unit.actors.tenancy.bench import TenantBench

INTERVAL = 60.0
LOOK_SPREAD = 5.0


@pytest.fixture
def bench() -> TenantBench:
    bench = TenantBench()
    bench.directory.add("acme", "beta")
    return bench


async def passes(count: int) -> None:
    await trio.sleep(count * (INTERVAL + 0.15))


async def test_every_active_tenant_runs_soon_after_the_start(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(1)
        assert bench.world.runs == ["acme", "beta"]
        assert bench.counted("fetcher_tenants_active") == 2
        assert bench.counted("fetcher_tenants_opened_total") == 2
        assert bench.counted("fetcher_tenant_reconcile_total", result="ok") == 1
        assert bench.counted("fetcher_tenant_reconcile_duration_seconds_count") == 1
        bench.directory.add("new")
        await passes(1)
        assert bench.world.runs == ["acme", "beta", "new"]
        assert bench.directory.lists == 2


@pytest.mark.parametrize("suspended_at", [5.0, 40.0, 50.0, 59.0])
async def test_a_tenant_whose_suspension_nobody_told_ends_with_the_first_list_that_lacks_it(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, suspended_at: float
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(suspended_at)
        bench.directory.listed.remove("acme")
        bench.directory.known["acme"] = TenantSuspended("suspended")
        await trio.sleep(INTERVAL - suspended_at + LOOK_SPREAD + 1)
        assert bench.world.runs == ["beta"]


async def test_a_tenant_that_three_lists_in_a_row_lack_is_stopped_once(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(1)
        bench.directory.listed.remove("acme")
        await passes(1)
        assert bench.world.runs == ["acme", "beta"]
        await passes(1)
        assert bench.world.runs == ["acme", "beta"]
        await passes(1)
        assert bench.world.runs == ["beta"]
        assert not bench.directory.remembers("acme")
        await passes(5)
        assert bench.world.runs == ["beta"]
        bench.directory.listed.append("acme")
        await passes(1)
        assert bench.world.runs == ["acme", "beta"]
        assert bench.world.opened_count("acme") == 2


async def test_a_tenant_that_is_listed_again_counts_anew(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(1)
        for _ in range(3):
            bench.directory.listed.remove("acme")
            await passes(2)
            bench.directory.listed.append("acme")
            await passes(1)
        assert bench.world.runs == ["acme", "beta"]
        assert bench.world.opened_count("acme") == 1


async def test_lists_that_fail_stop_nobody_and_count_for_nothing(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(1)
        bench.directory.listed.remove("acme")
        await passes(2)
        bench.directory.is_away = True
        await passes(10)
        unreachable = bench.counted("fetcher_tenant_reconcile_total", result="tm_unreachable")
        assert unreachable == 10
        assert bench.world.runs == ["acme", "beta"]
        bench.directory.is_away = False
        await passes(1)
        assert bench.world.runs == ["beta"]


async def test_a_list_that_nobody_can_read_ends_no_tenant(
    autojump_clock: trio.testing.MockClock,
    bench: TenantBench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def crash(*, within_seconds: float) -> list[str]:
        await trio.lowlevel.checkpoint()
        raise KeyError("what nobody expected")

    async with bench.running(discovers=True):
        await trio.sleep(1)
        monkeypatch.setattr(bench.directory, "active", crash)
        await passes(5)
        assert bench.world.runs == ["acme", "beta"]
        assert len(bench.world.opened) == 2


async def test_a_list_that_takes_longer_than_five_seconds_has_failed(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(1)
        bench.directory.answer_seconds = 1000
        await trio.sleep(INTERVAL + 5)
        unreachable = bench.counted("fetcher_tenant_reconcile_total", result="tm_unreachable")
        assert unreachable == 1
        assert bench.world.runs == ["acme", "beta"]


async def test_the_first_list_is_tried_four_times_and_then_with_the_next_pass(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, longest_waits: None
) -> None:
    bench.directory.is_away = True
    async with bench.running(discovers=True):
        tried_at: list[float] = []
        while len(tried_at) < 5:
            if bench.directory.lists > len(tried_at):
                tried_at.append(round(trio.current_time(), 1))
            await trio.sleep(0.05)
        # waits of 1, 2 and 4 s, a list takes 0.1 s
        assert tried_at == pytest.approx([0, 1.1, 3.2, 7.3, 67.4], abs=0.15)
        bench.directory.is_away = False
        await passes(1)
        await trio.sleep(5)
        assert bench.world.runs == ["acme", "beta"]


async def test_a_refused_tenant_is_tried_again_by_the_next_list_that_names_it(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    known = bench.directory.known["acme"]
    bench.directory.known["acme"] = TenantSuspended("suspended")
    async with bench.running(discovers=True) as actor:
        await trio.sleep(10)
        assert bench.world.runs == ["beta"]
        assert [state.tenant_id for state in actor.states()] == ["beta"]
        assert bench.directory.asked.count("acme") == 1
        await passes(1)
        assert bench.directory.asked.count("acme") == 2
        bench.directory.known["acme"] = known
        await passes(1)
        assert bench.world.runs == ["acme", "beta"]


async def test_many_tenants_open_a_few_at_a_time(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.directory.add(*(f"t-{number}" for number in range(200)))
    async with bench.running(discovers=True):
        await trio.sleep(10)
        assert len(bench.world.runs) == 202
        assert bench.world.most_opening == 16


async def test_tenants_that_never_open_hold_up_the_others_for_a_moment_only(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    """Their places are given on after 5 s, and whoever is waited for needs none."""
    bench.limited(reconcile_seconds=2)
    stuck = {f"a-{number:02}" for number in range(16)}
    bench.directory.listed.clear()
    bench.directory.add(*stuck)
    bench.world.never_open = stuck
    async with bench.running(discovers=True):
        await trio.sleep(1)
        bench.directory.listed += ["acme", "beta"]
        await trio.sleep(2)
        assert (await bench.open("beta")).id == "beta"
        assert trio.current_time() < 4
        await trio.sleep(1)
        assert bench.world.runs == ["beta"]
        await trio.sleep(2)
        assert bench.world.runs == ["acme", "beta"]


async def test_the_tenant_manager_comes_and_goes_and_all_is_well_in_the_end(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    """5 s up, 5 s down, for ten minutes, while tenants come and go."""
    bench.limited(reconcile_seconds=3)
    async with bench.running(discovers=True) as actor:
        for number in range(60):
            await trio.sleep(5)
            bench.directory.is_away = True
            bench.directory.add(f"t-{number}")
            if number >= 20:
                gone = f"t-{number - 20}"
                bench.directory.listed.remove(gone)
                bench.directory.known[gone] = TenantSuspended("suspended")
            await trio.sleep(5)
            bench.directory.is_away = False
        await trio.sleep(60)
        expected = sorted(["acme", "beta", *(f"t-{number}" for number in range(40, 60))])
        assert bench.world.runs == expected
        assert sorted(bench.world.open_now.elements()) == expected
        assert [state.tenant_id for state in actor.states()] == expected
