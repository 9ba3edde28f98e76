"""Who may be looked at without a token, and what is found: configuration 7 and 17.6."""

from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.domain.errors import PortError, PortUnavailable
from fetcher.domain.tenants import (
    SourcePlace,
    TenantAnswerUnreadable,
    TenantConfig,
    TenantsLeftAlone,
    TenantsUnavailable,
)
from fetcher.ports import Probe, ProbeResult, ProbeStatus
from fetcher.queries.tenant_readiness import Found, LookAtTenant, TenantReadiness

UP = ProbeResult(status=ProbeStatus.UP, latency_ms=3)
UNKNOWN = TenantReadiness(found=Found.UNKNOWN, error="tenant not found")


class Directory:
    """A Tenant Manager that is asked for its list alone."""

    is_left_alone = False

    def __init__(self) -> None:
        self.ids: Sequence[str] = ("acme-7", "beta-2")
        self.failure: PortError | None = None
        self.seconds = 0.0
        self.asked: list[float] = []

    async def active(self, *, within_seconds: float) -> Sequence[str]:
        self.asked.append(within_seconds)
        await trio.sleep(self.seconds)
        if self.failure is not None:
            raise self.failure
        return self.ids

    async def config(self, tenant_id: str, *, fresh: bool = False) -> TenantConfig:
        raise AssertionError

    async def source(self, tenant_id: str, service: str, module: str) -> SourcePlace:
        raise AssertionError

    def forget(self, tenant_id: str) -> None:
        raise AssertionError


Check = Callable[[], Awaitable[ProbeResult]]


async def up() -> ProbeResult:
    await trio.lowlevel.checkpoint()
    return UP


class Room:
    def __init__(self, *, mongodb: Check = up, rabbitmq: Check = up) -> None:
        self.directory = Directory()
        self.draining = False
        self.looked_at: list[str] = []
        self._checks = {"mongodb": mongodb, "rabbitmq": rabbitmq}
        self.look = LookAtTenant(
            directory=self.directory, probes=self._probes, is_draining=lambda: self.draining
        )

    def _probes(self, tenant_id: str) -> Sequence[Probe]:
        self.looked_at.append(tenant_id)
        return [
            Probe(name=name, timeout_seconds=2.0, check=check)
            for name, check in self._checks.items()
        ]


def failing(error: PortError) -> Check:
    async def check() -> ProbeResult:
        await trio.lowlevel.checkpoint()
        raise error

    return check


def answering(result: ProbeResult, *, after_seconds: float = 0.0) -> Check:
    async def check() -> ProbeResult:
        await trio.sleep(after_seconds)
        return result

    return check


async def test_active_tenant_is_looked_at() -> None:
    room = Room()
    assert await room.look("acme-7") == TenantReadiness(
        found=Found.CHECKED, checks={"mongodb": UP, "rabbitmq": UP}
    )
    assert (room.looked_at, room.directory.asked) == (["acme-7"], [1.0])


@pytest.mark.parametrize("tenant_id", ["acme-9", "ACME-7", "acme-7x", "acme"])
async def test_tenant_that_is_not_in_the_list_is_not_looked_at(tenant_id: str) -> None:
    room = Room()
    assert await room.look(tenant_id) == UNKNOWN
    assert room.looked_at == []


@pytest.mark.parametrize("tenant_id", ["-a", "a/b", "a:b", "é", "a" * 257, "%20", " ", "a\n"])
async def test_id_that_can_be_nobody_s_asks_nobody(tenant_id: str) -> None:
    room = Room()
    room.directory.ids = (tenant_id,)
    assert await room.look(tenant_id) == UNKNOWN
    assert (room.looked_at, room.directory.asked) == ([], [])


async def test_no_id() -> None:
    told = await Room().look("")
    assert told == TenantReadiness(found=Found.NO_ID, error="tenant id required")


@pytest.mark.parametrize("tenant_id", ["acme-7", "", "a:b"])
async def test_draining_process_looks_at_nothing(tenant_id: str) -> None:
    room = Room()
    room.draining = True
    assert await room.look(tenant_id) == TenantReadiness(found=Found.DRAINING)
    assert (room.looked_at, room.directory.asked) == ([], [])


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (TenantsLeftAlone(), "tenant manager circuit breaker open"),
        (TenantsUnavailable("no name"), "tenant manager unreachable: no name"),
        (TenantAnswerUnreadable(), "tenant manager unreachable: failed to parse response"),
        (
            TenantsUnavailable("https://k:s3cret@tm.test refused"),
            "tenant manager unreachable: https://***@tm.test refused",
        ),
    ],
)
async def test_list_that_cannot_be_had(failure: PortError, error: str) -> None:
    room = Room()
    room.directory.failure = failure
    assert await room.look("acme-7") == TenantReadiness(found=Found.UNTOLD, error=error)
    assert room.looked_at == []


async def test_list_that_does_not_come_in_time_is_a_timeout(autojump_clock: MockClock) -> None:
    room = Room()
    room.directory.seconds = 1.0
    room.directory.failure = TenantsUnavailable("failed to execute request: no answer in time")
    told = await room.look("acme-7")
    assert told.error == "tenant manager unreachable: timeout"


async def test_list_is_remembered_for_five_seconds_and_a_failure_is_not(
    autojump_clock: MockClock,
) -> None:
    room = Room()
    room.directory.failure = TenantsUnavailable("timeout")
    assert (await room.look("acme-7")).found is Found.UNTOLD
    room.directory.failure = None
    await trio.sleep(0.001)
    assert (await room.look("acme-7")).found is Found.CHECKED
    room.directory.ids = ("beta-2",)
    await trio.sleep(4.9)
    assert (await room.look("acme-7")).found is Found.CHECKED
    assert len(room.directory.asked) == 2
    await trio.sleep(0.2)
    assert await room.look("acme-7") == UNKNOWN
    assert len(room.directory.asked) == 3


@pytest.mark.parametrize("failure", [None, TenantsUnavailable("timeout")])
async def test_those_who_come_while_it_is_asked_get_the_same_answer(
    failure: PortError | None, autojump_clock: MockClock
) -> None:
    room = Room()
    room.directory.seconds, room.directory.failure = 0.9, failure
    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(room.look, f"x{number}")
    assert len(room.directory.asked) == 1
    assert trio.current_time() == pytest.approx(0.9)


async def test_asker_that_goes_away_leaves_the_list_to_the_next(autojump_clock: MockClock) -> None:
    room = Room()
    room.directory.seconds = 0.9
    with trio.move_on_after(0.5):
        await room.look("acme-7")
    assert (await room.look("acme-7")).found is Found.CHECKED
    assert len(room.directory.asked) == 2


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (
            failing(TenantsLeftAlone()),
            ProbeResult(
                status=ProbeStatus.DOWN, error="circuit breaker open", breaker_state="open"
            ),
        ),
        (
            failing(PortUnavailable("amqp://k:w@mq1:5672/%2F closed")),
            ProbeResult(status=ProbeStatus.DOWN, error="amqp://***@mq1:5672/%2F closed"),
        ),
        (
            answering(ProbeResult(status=ProbeStatus.DOWN, tls=True, error="x")),
            ProbeResult(status=ProbeStatus.DOWN, error="x"),
        ),
        (
            answering(UP, after_seconds=2.1),
            ProbeResult(status=ProbeStatus.DOWN, error="timeout"),
        ),
    ],
)
async def test_one_that_is_down_hides_nothing_of_the_other(
    check: Check, told: ProbeResult, autojump_clock: MockClock
) -> None:
    room = Room(rabbitmq=check)
    report = await room.look("acme-7")
    assert report.checks == {"mongodb": UP, "rabbitmq": told}


async def test_probes_run_at_once(autojump_clock: MockClock) -> None:
    room = Room(mongodb=answering(UP, after_seconds=5), rabbitmq=answering(UP, after_seconds=1.9))
    report = await room.look("acme-7")
    assert trio.current_time() == pytest.approx(2.0)
    assert {name: each.status for name, each in report.checks.items()} == {
        "mongodb": ProbeStatus.DOWN,
        "rabbitmq": ProbeStatus.UP,
    }


async def test_few_tenants_are_looked_at_at_a_time(autojump_clock: MockClock) -> None:
    room = Room(mongodb=answering(UP, after_seconds=1))
    reports: list[TenantReadiness] = []

    async def look() -> None:
        reports.append(await room.look("acme-7"))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(look)
        await wait_all_tasks_blocked(0.1)
        assert await room.look("beta-2") == TenantReadiness(
            found=Found.UNTOLD, error="too many tenant probes"
        )
        assert await room.look("acme-9") == UNKNOWN
    assert [report.found for report in reports] == [Found.CHECKED] * 4
    assert (await room.look("beta-2")).found is Found.CHECKED
