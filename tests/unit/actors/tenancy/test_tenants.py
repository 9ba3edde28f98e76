"""The ``tenants`` actor: opening, sharing, failing and ending (spec configuration 11.5, 11.7)."""

from functools import partial

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import (
    TenantDenied,
    TenantError,
    TenantNotConfigured,
    TenantSuspended,
    TenantUnknown,
)
from tests.unit.actors.tenancy.bench import FakeTenant, TenantBench, a_config


@pytest.fixture
def bench() -> TenantBench:
    bench = TenantBench()
    bench.directory.add("acme", "beta", "gamma")
    return bench


async def test_all_who_want_a_tenant_share_one_opening(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    got: list[FakeTenant] = []

    async def ask() -> None:
        got.append(await bench.open())

    async with bench.running(discovers=False):
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
        assert {id(tenant) for tenant in got} == {id(bench.world.opened[0])}
        assert len(got) == 20
        assert await bench.open() is got[0]
        await trio.sleep(1)
        assert bench.world.runs == ["acme"]
        assert bench.directory.asked == ["acme"]
        assert bench.directory.lists == 0
        assert bench.counted("fetcher_tenants_active") == 1


@pytest.mark.parametrize(
    "word",
    [TenantSuspended("purged"), TenantDenied(), TenantNotConfigured("mongodb"), None],
)
async def test_the_tenant_managers_word_is_the_answer_and_nothing_is_tried_again(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, word: TenantError | None
) -> None:
    if word is None:
        del bench.directory.known["acme"]
    else:
        bench.directory.known["acme"] = word
    async with bench.running(discovers=False) as actor:
        answer = await bench.ask()
        assert isinstance(answer, TenantUnknown) if word is None else answer is word
        await trio.sleep(600)
        assert actor.states() == []
        assert bench.directory.asked == ["acme"]
        assert bench.counted("fetcher_tenant_failures_total") == 0
        code = TenantUnknown.code if word is None else word.code
        assert bench.counted("fetcher_tenant_refusals_total", code=code) == 1
        bench.directory.known["acme"] = a_config("acme")
        assert (await bench.open()).id == "acme"


async def test_a_wanted_tenant_that_does_not_open_is_tried_by_the_next_request_only(
    autojump_clock: trio.testing.MockClock,
    bench: TenantBench,
) -> None:
    bench.world.broken["acme"] = PortUnavailable("mongodb cannot be reached")
    async with bench.running(discovers=False) as actor:
        answer = await bench.ask()
        assert answer is bench.world.broken["acme"]
        await trio.sleep(600)
        assert actor.states() == []
        assert bench.directory.asked == ["acme"]
        assert bench.counted("fetcher_tenant_failures_total") == 1
        bench.world.broken.clear()
        assert (await bench.open()).id == "acme"


async def test_what_nobody_expected_is_this_tenants_failure_and_no_text_of_it_is_told(
    autojump_clock: trio.testing.MockClock,
    bench: TenantBench,
) -> None:
    bench.world.broken["acme"] = ExceptionGroup("secret-1", [KeyError("secret-2")])
    with capture_logs() as logs:
        async with bench.running(discovers=False):
            beta = await bench.open("beta")
            answer = await bench.ask()
            assert isinstance(answer, PortUnavailable)
            assert str(answer) == "the tenant failed"
            assert await bench.open("beta") is beta
            assert not beta.uses.is_closed
    failed = next(record for record in logs if record["event"] == "tenant_failed")
    assert (failed["code"], failed["tenant_id"]) == ("ExceptionGroup(KeyError)", "acme")
    assert "secret" not in str(logs)


async def test_a_tenant_that_takes_too_long_to_open_is_given_up(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.never_open = {"acme"}
    async with bench.running(discovers=False):
        asked_at = trio.current_time()
        answer = await bench.ask()
        assert isinstance(answer, PortUnavailable)
        assert str(answer) == "the tenant did not open in time: timeout"
        assert trio.current_time() - asked_at == pytest.approx(60, abs=1)


async def test_a_crash_restarts_this_tenant_only_and_a_wait_answers_at_once(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, longest_waits: None
) -> None:
    async with bench.running(discovers=False) as actor:
        beta = await bench.open("beta")
        acme = await bench.open("acme")
        with acme.uses.enter():
            await trio.sleep(1)
            acme.fail(ValueError("boom"))
            await trio.testing.wait_all_tasks_blocked()
            assert acme.uses.is_closed
            assert not acme.cut.is_set()
            await trio.sleep(4.9)
            assert not acme.cut.is_set()
            await trio.sleep(0.2)
            assert acme.cut.is_set()
        await trio.testing.wait_all_tasks_blocked()
        state = actor.states()[0]
        assert (state.state, state.failures) == ("waiting", 1)
        assert state.last_failure == "ExceptionGroup(ValueError)"
        asked_at = trio.current_time()
        assert isinstance(await bench.ask("acme"), PortUnavailable)
        assert trio.current_time() == asked_at
        await trio.sleep(6)
        again = await bench.open("acme")
        assert again is not acme
        assert bench.world.opened_count("acme") == 2
        assert await bench.open("beta") is beta


async def test_after_a_failure_what_is_remembered_counts_where_nobody_knows_better(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    """Its credentials may have changed unheard, and the Tenant Manager may be away."""
    bench.limited(revalidate_seconds=10_000)
    async with bench.running(discovers=False):
        acme, beta = await bench.open("acme"), await bench.open("beta")
        for name in ("acme", "beta"):
            bench.directory.known[name] = a_config(name, version="2")
        acme.fail(ValueError("boom"))
        await trio.sleep(10)
        assert (await bench.open("acme")).config == a_config("acme", version="2")
        bench.directory.is_away = True
        beta.fail(ValueError("boom"))
        await trio.sleep(10)
        again = await bench.open("beta")
        assert again is not beta
        assert again.config == a_config("beta")


async def test_a_run_that_ends_untold_is_a_failure(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True) as actor:
        await trio.sleep(2)
        # as its own supervisor does when one of its actors crashes too often
        bench.world.last("acme").lifecycle.fail("actor relay crashed too often")
        await trio.sleep(1)
        acme = actor.states()[0]
        assert (acme.failures, acme.last_failure) == (1, "ended_early")
        await trio.sleep(10)
        assert bench.world.runs == ["acme", "beta", "gamma"]
        assert bench.world.opened_count("beta") == 1


async def test_a_tenant_whose_own_actors_hear_that_it_is_suspended_is_forgotten(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True) as actor:
        await trio.sleep(2)
        bench.directory.listed.remove("acme")
        bench.world.last("acme").fail(TenantSuspended("suspended"))
        await trio.sleep(600)
        assert [state.tenant_id for state in actor.states()] == ["beta", "gamma"]
        assert not bench.directory.remembers("acme")
        assert bench.world.opened_count("acme") == 1


async def test_from_the_third_failure_in_a_row_a_tenant_is_degraded(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.broken["acme"] = PortUnavailable("rabbitmq cannot be reached")
    with capture_logs() as logs:
        async with bench.running(discovers=True):
            await trio.sleep(600)
            assert bench.world.runs == ["beta", "gamma"]
            tried = bench.counted("fetcher_tenant_failures_total")
            # waits of 0 to 5, 10, 20, 40, 40 ... seconds
            assert tried is not None
            assert 600 / 40 < tried < 90
            bench.world.broken.clear()
            await trio.sleep(41)
            assert bench.world.runs == ["acme", "beta", "gamma"]
    told = [each["event"] for each in logs if each["event"] in ("tenant_failed", "tenant_degraded")]
    assert told[:2] == ["tenant_failed"] * 2
    assert set(told[2:]) == {"tenant_degraded"}


async def test_requests_in_use_may_end_before_a_tenant_closes(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    ended: list[float] = []

    async def use(tenant: FakeTenant, seconds: float) -> None:
        with tenant.uses.enter():
            with trio.move_on_after(seconds):
                await tenant.cut.wait()
            assert bench.world.open_now["acme"] == 1
        ended.append(trio.current_time())

    async with bench.running(discovers=False) as actor:
        acme = await bench.open()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(use, acme, 2)
            nursery.start_soon(use, acme, 100)
            await trio.sleep(1)
            told_at = trio.current_time()
            await bench.remove("acme")
            assert acme.uses.is_closed
            assert actor.states()[0].state == "stopping"
        assert [at - told_at for at in ended] == pytest.approx([1, 5])
        await trio.testing.wait_all_tasks_blocked()
        assert bench.world.open_now["acme"] == 0


@pytest.mark.parametrize("job_wait_seconds", [30, 300])
async def test_a_run_that_does_not_end_is_cut_off(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, job_wait_seconds: float
) -> None:
    bench.limited(job_wait_seconds=job_wait_seconds)
    bench.world.job_seconds = 1000
    async with bench.running(discovers=False) as actor:
        await bench.open()
        await trio.sleep(1)
        await bench.remove("acme")
        await trio.sleep(job_wait_seconds + 29)
        assert bench.world.runs == ["acme"]
        await trio.sleep(2)
        assert bench.world.runs == []
        assert actor.states() == []


async def test_what_fails_on_the_way_down_is_told_of_and_tried_no_more(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.job_seconds = 20
    with capture_logs() as logs:
        async with bench.running(discovers=False) as actor:
            acme = await bench.open()
            await trio.sleep(1)
            await bench.remove("acme")
            acme.fail(KeyError("secret"))
            await trio.sleep(100)
            assert actor.states() == []
            assert bench.world.opened_count("acme") == 1
            assert bench.counted("fetcher_tenant_failures_total") == 0
    told = next(each for each in logs if each["event"] == "tenant_ended_badly")
    assert told["code"] == "ExceptionGroup(KeyError)"
    assert "secret" not in str(logs)


async def test_stopped_and_wanted_again_it_waits_for_the_old_one_to_end(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.job_seconds = 20
    async with bench.running(discovers=False):
        first = await bench.open()
        await trio.sleep(1)
        await bench.remove("acme")
        told_at = trio.current_time()
        second = await bench.open()
        assert second is not first
        assert trio.current_time() - told_at == pytest.approx(20.3, abs=0.1)
        bench.world.job_seconds = 0


async def test_the_process_drains_while_requests_go_on_until_it_closes(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    """A manager: tenants' actors run as long as requests come, which may open tenants."""
    actor = bench.actor(discovers=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(actor.run))
        acme = await bench.open("acme")
        bench.lifecycle.drain()
        await trio.sleep(5)
        assert bench.world.runs == ["acme"]
        assert (await bench.open("beta")).id == "beta"
        with acme.uses.enter():
            bench.lifecycle.closing.set()
            closed_at = trio.current_time()
            await trio.sleep(29)
            assert not acme.cut.is_set()
            assert isinstance(await bench.ask("beta"), PortUnavailable)
            await trio.sleep(1.5)
            assert acme.cut.is_set()
    assert trio.current_time() - closed_at < 31
    assert not +bench.world.open_now


async def test_a_worker_takes_nothing_more_from_the_drain_on(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.job_seconds = 25
    actor = bench.actor(discovers=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(actor.run))
        await trio.sleep(2)
        assert bench.world.runs == ["acme", "beta", "gamma"]
        bench.lifecycle.drain()
        await trio.sleep(1)
        assert all(each.lifecycle.draining.is_set() for each in bench.world.opened)
        await trio.sleep(11)
        bench.lifecycle.closing.set()
        await trio.sleep(12)
        assert bench.world.runs == ["acme", "beta", "gamma"]
    assert trio.current_time() == pytest.approx(27, abs=0.5)
    assert len(bench.world.opened) == 3


async def test_who_waits_when_the_process_closes_is_told(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.open_seconds = 50
    actor = bench.actor(discovers=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(actor.run))
        nursery.start_soon(_close_after, bench, 3)
        answer = await bench.ask()
        assert isinstance(answer, PortUnavailable)
        assert trio.current_time() == pytest.approx(3)


async def _close_after(bench: TenantBench, seconds: float) -> None:
    await trio.sleep(seconds)
    bench.lifecycle.drain()
    bench.lifecycle.closing.set()


async def test_a_cancelled_actor_leaves_nothing_open(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.world.job_seconds = 100
    actor = bench.actor(discovers=True)
    with trio.move_on_after(5):
        await actor.run()
    assert not +bench.world.open_now
    assert not +bench.world.running
    assert all(each.cut.is_set() and each.uses.is_closed for each in bench.world.opened)
    assert actor.states() == []
