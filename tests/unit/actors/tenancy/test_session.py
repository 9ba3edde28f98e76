"""A tenant whose configuration changes while it runs (spec configuration 11.7, "Revalidate")."""

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import (
    TenantAnswerUnreadable,
    TenantDenied,
    TenantError,
    TenantNotConfigured,
    TenantSuspended,
    TenantUnknown,
)
from tests.unit.actors.tenancy.bench import FakeTenant, TenantBench, a_config


@pytest.fixture
def bench() -> TenantBench:
    bench = TenantBench().limited(idle_seconds=100_000)
    bench.directory.add("acme", "beta")
    return bench


async def use(tenant: FakeTenant) -> None:
    with tenant.uses.enter():
        await trio.lowlevel.checkpoint()


async def test_a_tenant_in_use_is_looked_at_every_half_minute_and_an_unused_one_is_not(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=False):
        acme = await bench.open("acme")
        await bench.open("beta")
        for _ in range(600):
            await use(acme)
            await trio.sleep(1)
        looked = bench.directory.asked.count("acme") - 1
        assert 600 / 36.2 - 1 <= looked <= 600 / 30
        assert bench.directory.asked.count("beta") == 1
        with acme.uses.enter():
            await trio.sleep(80)
            assert bench.directory.asked.count("acme") - 1 >= looked + 2
        assert bench.world.opened_count("acme") == 1


async def test_where_tenants_are_run_each_list_that_names_one_is_a_use(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(600)
        for tenant_id in ("acme", "beta"):
            assert 7 <= bench.directory.asked.count(tenant_id) - 1 <= 10


@pytest.mark.parametrize("word", [TenantSuspended("suspended"), TenantUnknown("acme")])
async def test_a_tenant_that_is_suspended_unheard_ends(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, word: TenantError
) -> None:
    async with bench.running(discovers=False) as actor:
        acme = await bench.open("acme")
        bench.directory.known["acme"] = word
        await trio.sleep(1)
        await use(acme)
        await trio.sleep(40)
        assert acme.cut.is_set()
        assert actor.states() == []
        assert not bench.directory.remembers("acme")
        assert await bench.ask("acme") is word


@pytest.mark.parametrize(
    "failure",
    [
        PortUnavailable("away"),
        TenantDenied(),
        TenantNotConfigured("mongodb"),
        TenantAnswerUnreadable(),
        KeyError("what nobody expected"),
        None,
    ],
)
async def test_a_look_that_fails_leaves_all_as_it_was(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, failure: Exception | None
) -> None:
    async with bench.running(discovers=False):
        acme = await bench.open("acme")
        if failure is None:
            bench.directory.answer_seconds = 1000
        else:
            bench.directory.known["acme"] = failure
        for _ in range(300):
            await use(acme)
            await trio.sleep(1)
        assert bench.directory.asked.count("acme") > 5
        assert await bench.open("acme") is acme


async def test_another_configuration_is_opened_first_and_run_when_the_old_one_has_ended(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.job_seconds = 20
    async with bench.running(discovers=False):
        old = await bench.open("acme")
        changed = bench.directory.known["acme"] = a_config("acme", version="2")
        with old.uses.enter():
            while bench.world.opened_count("acme") < 2:
                assert await bench.open("acme") is old
                await trio.sleep(0.5)
            swapped_at = trio.current_time()
            new = await bench.open("acme")
            assert new.config == changed
            assert new is not old
            await use(new)
            assert not new.lifecycle.draining.is_set()
            assert old.lifecycle.draining.is_set()
            await old.cut.wait()
            assert trio.current_time() - swapped_at == pytest.approx(5, abs=0.6)
        assert bench.world.open_now["acme"] == 2
        await trio.sleep(20)
        assert bench.world.open_now["acme"] == 1
        assert bench.world.runs == ["acme"]
        assert await bench.open("acme") is new
        assert bench.counted("fetcher_tenants_active") == 1
        bench.world.job_seconds = 0


async def test_where_the_new_configuration_does_not_open_the_old_one_goes_on(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    with capture_logs() as logs:
        async with bench.running(discovers=True):
            old = await bench.open("acme")
            bench.directory.known["acme"] = a_config("acme", version="2")
            bench.world.broken["acme"] = PortUnavailable("mongodb cannot be reached")
            await trio.sleep(200)
            assert await bench.open("acme") is old
            assert bench.world.runs == ["acme", "beta"]
            bench.world.broken.clear()
            await trio.sleep(80)
            assert (await bench.open("acme")).config == a_config("acme", version="2")
    kept = [each["code"] for each in logs if each["event"] == "tenant_kept_as_it_was"]
    assert set(kept) == {"unavailable"}


async def test_a_tenant_that_ends_while_it_changes_ends_all_of_it(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.job_seconds = 20
    async with bench.running(discovers=False) as actor:
        await bench.open("acme")
        bench.directory.known["acme"] = a_config("acme", version="2")
        await bench.look("acme")
        await bench.until(lambda: bench.world.opened_count("acme") == 2)
        assert bench.world.open_now["acme"] == 2
        await bench.remove("acme")
        new = bench.world.last("acme")
        assert new.uses.is_closed
        await trio.sleep(1)
        # the new one never ran, the old one has a job
        assert new.cut.is_set()
        assert bench.world.open_now["acme"] == 1
        await trio.sleep(20)
        assert actor.states() == []


@pytest.mark.parametrize("job_seconds", [0, 20])
async def test_a_tenant_that_is_stopped_while_its_other_configuration_opens(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, job_seconds: float
) -> None:
    async with bench.running(discovers=False) as actor:
        await bench.open("acme")
        bench.world.open_seconds = 10
        bench.world.job_seconds = job_seconds
        bench.directory.known["acme"] = a_config("acme", version="2")
        await bench.look("acme")
        await trio.sleep(8)
        await bench.remove("acme")
        await trio.sleep(job_seconds + 0.1)
        assert actor.states() == []
        assert all(each.uses.is_closed for each in bench.world.opened)


async def test_a_tenant_that_crashes_while_its_other_configuration_opens(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        acme = await bench.open("acme")
        bench.world.open_seconds = 2
        bench.directory.known["acme"] = a_config("acme", version="2")
        await trio.sleep(60.5)
        await bench.until(lambda: bench.directory.asked.count("acme") == 2)
        acme.fail(ValueError("boom"))
        await trio.sleep(20)
        assert bench.world.runs == ["acme", "beta"]
        assert bench.world.last("acme").config == a_config("acme", version="2")
