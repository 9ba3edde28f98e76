"""What is heard of tenants and what becomes of it (spec configuration 11.6, 17.8)."""

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import TenantSuspended
from tests.unit.actors.tenancy.bench import TenantBench, a_config, an_event

REMOVALS = [
    ("tenant.suspended", None),
    ("tenant.deleted", None),
    ("tenant.service.disassociated", "fetcher"),
    ("tenant.service.suspended", "fetcher"),
    ("tenant.service.purged", "fetcher"),
]
GATED = [
    "tenant.service.associated",
    "tenant.service.disassociated",
    "tenant.service.suspended",
    "tenant.service.purged",
    "tenant.service.reactivated",
    "tenant.credentials.rotated",
    "tenant.connections.updated",
    "tenant.cache.invalidate",
]


@pytest.fixture
def bench() -> TenantBench:
    bench = TenantBench()
    bench.directory.add("acme", "beta")
    return bench


@pytest.mark.parametrize(("kind", "service"), REMOVALS)
@pytest.mark.parametrize("discovers", [True, False])
async def test_a_removed_tenant_really_ends(
    autojump_clock: trio.testing.MockClock,
    bench: TenantBench,
    kind: str,
    service: str | None,
    discovers: bool,
) -> None:
    bench.limited(idle_seconds=10_000)
    async with bench.running(discovers=discovers):
        await bench.open("acme")
        await bench.open("beta")
        await trio.sleep(2)
        bench.directory.listed.remove("acme")
        bench.directory.known["acme"] = TenantSuspended("suspended")
        bench.events.tell(an_event(kind, "acme", service))
        await trio.sleep(1)
        assert bench.world.runs == ["beta"]
        assert bench.world.open_now["acme"] == 0
        assert not bench.directory.remembers("acme")
        await trio.sleep(600)
        assert bench.world.runs == ["beta"]
        assert isinstance(await bench.ask("acme"), TenantSuspended)


@pytest.mark.parametrize("kind", GATED)
@pytest.mark.parametrize("service", ["ledger", None, "Fetcher", ""])
async def test_what_is_told_of_another_service_is_skipped(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, kind: str, service: str | None
) -> None:
    with capture_logs() as logs:
        async with bench.running(discovers=True):
            await trio.sleep(2)
            bench.events.tell(an_event(kind, "acme", service), an_event(kind, "new", service))
            await trio.sleep(10)
            assert bench.world.runs == ["acme", "beta"]
            assert bench.world.opened_count("acme") == 1
            assert sorted(bench.directory.asked) == ["acme", "beta"]
    skipped = [each for each in logs if each["event"] == "tenant_event_skipped"]
    level = "warning" if kind == "tenant.cache.invalidate" else "debug"
    assert [each["log_level"] for each in skipped] == [level] * 2


async def test_events_of_a_tenant_that_nobody_knows_change_nothing(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True) as actor:
        await trio.sleep(2)
        for kind in ("created", "activated", "updated", "suspended", "deleted"):
            bench.events.tell(an_event(f"tenant.{kind}", "unheard", None))
        await trio.sleep(10)
        assert [state.tenant_id for state in actor.states()] == ["acme", "beta"]
        assert sorted(bench.directory.asked) == ["acme", "beta"]


async def test_an_associated_tenant_starts_once_where_tenants_are_run(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(2)
        bench.directory.add("new")
        bench.events.tell(*[an_event("tenant.service.associated", "new")] * 2)
        await trio.sleep(1)
        assert bench.world.runs == ["acme", "beta", "new"]
        bench.events.tell(an_event("tenant.service.associated", "new"))
        await trio.sleep(20)
        assert bench.world.opened_count("new") == 1


async def test_a_manager_waits_until_somebody_wants_the_associated_tenant(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=False) as actor:
        bench.events.tell(
            an_event("tenant.service.associated"), an_event("tenant.credentials.rotated")
        )
        await trio.sleep(20)
        assert actor.states() == []
        assert bench.directory.asked == []


async def test_a_reactivated_tenant_waits_and_holds_up_nobody(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, longest_waits: None
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(2)
        bench.directory.add("back", "new")
        bench.events.tell(
            an_event("tenant.service.reactivated", "back"),
            an_event("tenant.service.associated", "new"),
        )
        await trio.sleep(4.9)
        assert bench.world.runs == ["acme", "beta", "new"]
        await trio.sleep(0.5)
        assert bench.world.runs == ["acme", "back", "beta", "new"]


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [("tenant.service.associated", 1), ("tenant.service.reactivated", 6)],
)
async def test_a_tenant_that_waits_for_its_next_try_does_not_wait_it_out(
    autojump_clock: trio.testing.MockClock,
    bench: TenantBench,
    longest_waits: None,
    kind: str,
    seconds: float,
) -> None:
    bench.world.broken["acme"] = PortUnavailable("rabbitmq cannot be reached")
    async with bench.running(discovers=True):
        await trio.sleep(36)
        bench.world.broken.clear()
        bench.events.tell(an_event(kind, "acme"))
        await trio.sleep(seconds)
        assert bench.world.runs == ["acme", "beta"]


@pytest.mark.parametrize("kind", ["tenant.credentials.rotated", "tenant.cache.invalidate"])
@pytest.mark.parametrize("discovers", [True, False])
@pytest.mark.parametrize("version", ["1", "2"])
async def test_rotated_credentials_are_used_within_five_seconds_while_requests_and_jobs_go_on(
    autojump_clock: trio.testing.MockClock,
    bench: TenantBench,
    longest_waits: None,
    kind: str,
    discovers: bool,
    version: str,
) -> None:
    """Also where what is told is as before: a file that it names may be another one."""
    bench.world.job_seconds = 20
    async with bench.running(discovers=discovers):
        served = first = await bench.open("acme")
        await trio.sleep(2)
        rotated = bench.directory.known["acme"] = a_config("acme", version=version)
        bench.events.tell(an_event(kind, "acme"))
        told_at = trio.current_time()
        while trio.current_time() < told_at + 24:
            with trio.fail_after(0.1):
                served = await bench.open("acme")
            assert (served is first) == (trio.current_time() < told_at + 5.3)
            await trio.sleep(0.25)
        assert served.config == rotated
        assert "acme" in bench.world.runs
        assert bench.world.open_now["acme"] == 2
        await trio.sleep(3)
        assert bench.world.open_now["acme"] == 1
        assert bench.world.opened_count("acme") == 2
        bench.world.job_seconds = 0


async def test_whoever_waited_when_the_credentials_were_rotated_does_not_wait_for_longer(
    autojump_clock: trio.testing.MockClock, bench: TenantBench, longest_waits: None
) -> None:
    bench.world.open_seconds = 2
    async with bench.running(discovers=False), trio.open_nursery() as nursery:
        nursery.start_soon(bench.open, "acme")
        await trio.sleep(1)
        bench.directory.known["acme"] = a_config("acme", version="2")
        bench.events.tell(an_event("tenant.credentials.rotated", "acme"))
        await trio.sleep(2.5)
        assert bench.world.runs == ["acme"]
        assert bench.world.last("acme").config == a_config("acme", version="2")


async def test_a_reload_that_fails_after_a_rotation_is_a_warning(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    """And is made up for, whether the tenant is used or not."""
    with capture_logs() as logs:
        async with bench.running(discovers=False):
            first = await bench.open("acme")
            bench.directory.is_away = True
            rotated = bench.directory.known["acme"] = a_config("acme", version="2")
            bench.events.tell(an_event("tenant.credentials.rotated", "acme"))
            await trio.sleep(10)
            assert await bench.open("acme") is first
            bench.directory.is_away = False
            bench.world.broken["acme"] = PortUnavailable("mongodb cannot be reached")
            await trio.sleep(36)
            assert await bench.open("acme") is first
            bench.world.broken.clear()
            await trio.sleep(37)
            assert (await bench.open("acme")).config == rotated
    assert [(each["event"], each["code"]) for each in logs if each["log_level"] == "warning"] == [
        ("tenant_not_looked_at", "tenants_unavailable"),
        ("tenant_kept_as_it_was", "unavailable"),
    ]


async def test_an_updated_tenant_is_looked_at(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=False):
        await bench.open("acme")
        changed = bench.directory.known["acme"] = a_config("acme", version="2")
        bench.events.tell(an_event("tenant.updated", "acme", None))
        await trio.sleep(6)
        assert bench.world.last("acme").config == changed
        assert bench.world.runs == ["acme"]


async def test_pool_sizes_of_other_databases_are_no_news(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    async with bench.running(discovers=True):
        await trio.sleep(2)
        bench.events.tell(an_event("tenant.connections.updated", "acme"))
        await trio.sleep(10)
        assert sorted(bench.directory.asked) == ["acme", "beta"]


async def test_unknown_events_and_impossible_tenants_are_told_of_and_ignored(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    with capture_logs() as logs:
        async with bench.running(discovers=True):
            await trio.sleep(2)
            bench.events.tell(
                an_event("tenant." + "x" * 1000),
                an_event("tenant.service.associated", "a/b"),
                an_event("tenant.service.associated", "a:b"),
            )
            await trio.sleep(2)
            assert bench.world.runs == ["acme", "beta"]
            assert bench.counted("fetcher_tenant_events_total", type="unknown") == 1
    told = [each for each in logs if each["event"].startswith("tenant_event_")]
    assert [each["event"] for each in told] == [
        "tenant_event_unknown",
        "tenant_event_invalid",
        "tenant_event_invalid",
    ]
    assert len(told[0]["type"]) == 64


async def test_what_was_missed_while_the_connection_was_lost_is_found_afterwards(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.limited(reconcile_seconds=10_000, revalidate_seconds=10_000)
    async with bench.running(discovers=True):
        await trio.sleep(5)
        assert bench.counted("fetcher_tenant_events_listening") == 1
        assert bench.directory.lists == 1
        bench.events.refusals = 3
        bench.events.tell(PortUnavailable("redis cannot be reached"))
        await trio.testing.wait_all_tasks_blocked()
        bench.directory.add("new")
        bench.directory.known["acme"] = a_config("acme", version="2")
        bench.directory.known["beta"] = TenantSuspended("suspended")
        bench.directory.listed.remove("beta")
        await trio.sleep(0.5 + 1 + 2 + 4 + 8 + 6)
        assert bench.events.listens == 5
        assert bench.counted("fetcher_tenant_events_listening") == 1
        assert bench.world.runs == ["acme", "new"]
        assert bench.world.last("acme").config == a_config("acme", version="2")
        assert bench.directory.lists == 2


async def test_events_that_cannot_be_heard_stop_nothing(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    bench.events.refusals = 1_000_000
    async with bench.running(discovers=True):
        await trio.sleep(600)
        assert bench.world.runs == ["acme", "beta"]
        assert bench.counted("fetcher_tenant_events_listening") == 0
        # 0 to 30 s between tries
        assert 600 / 30 < bench.events.listens < 100


async def test_a_listener_that_crashes_ends_no_tenant(
    autojump_clock: trio.testing.MockClock, bench: TenantBench
) -> None:
    with capture_logs() as logs:
        async with bench.running(discovers=True):
            await trio.sleep(2)
            bench.events.tell(KeyError("secret"))
            await trio.sleep(2)
            bench.directory.add("new")
            bench.events.tell(an_event("tenant.service.associated", "new"))
            await trio.sleep(2)
            assert bench.world.runs == ["acme", "beta", "new"]
            assert bench.world.opened_count("acme") == 1
    lost = next(each for each in logs if each["event"] == "tenant_events_lost")
    assert lost["code"] == "KeyError"
    assert "secret" not in str(logs)
