"""Requests come to their tenants: asked for once, used without asking while it is open."""

import gc
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from fetcher.actors.channels import Channel
from fetcher.actors.messages import TenantWanted
from fetcher.actors.tenancy.uses import TenantUses
from fetcher.bootstrap.tenancy import gate as tenant_gate
from fetcher.bootstrap.tenancy.gate import ENTER_SECONDS, TRIES, OpenTenantGate
from fetcher.bootstrap.tenancy.tenant import OpenTenant
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.tenants import TenantError, TenantUnknown

Answered = OpenTenant | TenantError | PortUnavailable


class FakeTenant:
    def __init__(self) -> None:
        self.uses = TenantUses()
        self.cut = trio.Event()
        self.handlers: dict[str, object] = {"get_job": self}


class Tenants:
    """Stands in for the actor: answers what a test says, and counts."""

    def __init__(self) -> None:
        self.wants = Channel[TenantWanted[OpenTenant]]("tenants", capacity=10)
        self.asked: list[str] = []
        self.answers: list[object] = []

    async def run(self) -> None:
        async for wanted in self.wants:
            self.asked.append(wanted.tenant_id)
            wanted.reply.set(cast("Answered", self.answers.pop(0)))


@contextmanager
def fakes_are_tenants(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(tenant_gate, "OpenTenant", FakeTenant)
        yield


async def test_an_open_tenant_is_asked_for_once_and_its_use_is_counted(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    tenants, tenant = Tenants(), FakeTenant()
    tenants.answers = [tenant]
    nursery.start_soon(tenants.run)
    gate = OpenTenantGate(tenants.wants)
    with fakes_are_tenants(monkeypatch):
        async with gate.enter("acme") as entered:
            assert (entered.tenant_id, entered.cut) == ("acme", tenant.cut)
            assert dict(entered.handlers) == tenant.handlers
            async with gate.enter("acme"):
                assert tenant.uses.count == 2
        assert tenant.uses.count == 0
    assert tenants.asked == ["acme"]


async def test_one_that_was_closed_is_asked_for_anew(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    tenants, before, after = Tenants(), FakeTenant(), FakeTenant()
    tenants.answers = [before, after]
    nursery.start_soon(tenants.run)
    gate = OpenTenantGate(tenants.wants)
    with fakes_are_tenants(monkeypatch):
        async with gate.enter("acme"):
            before.uses.close()
        async with gate.enter("acme") as entered:
            assert entered.cut is after.cut
    assert tenants.asked == ["acme", "acme"]


async def test_one_that_closes_each_time_is_given_up(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    tenants, closed = Tenants(), FakeTenant()
    closed.uses.close()
    tenants.answers = [closed] * TRIES
    nursery.start_soon(tenants.run)
    gate = OpenTenantGate(tenants.wants)
    with fakes_are_tenants(monkeypatch), pytest.raises(PortUnavailable, match="being closed"):
        async with gate.enter("acme"):
            pytest.fail("it was entered")
    assert tenants.asked == ["acme"] * TRIES


@pytest.mark.parametrize("answer", [TenantUnknown("acme"), PortUnavailable("away")])
async def test_why_there_is_none_is_raised(
    nursery: trio.Nursery, answer: TenantError | PortUnavailable
) -> None:
    tenants = Tenants()
    tenants.answers = [answer]
    nursery.start_soon(tenants.run)
    with pytest.raises(type(answer)) as raised:
        async with OpenTenantGate(tenants.wants).enter("acme"):
            pytest.fail("it was entered")
    assert raised.value is answer


async def test_a_refusal_that_many_share_does_not_keep_their_requests(
    nursery: trio.Nursery,
) -> None:
    tenants, refusal = Tenants(), PortUnavailable("away")
    tenants.answers = [refusal] * 5
    nursery.start_soon(tenants.run)
    gate = OpenTenantGate(tenants.wants)
    frames: list[int] = []
    for _ in range(5):
        with pytest.raises(PortUnavailable):
            async with gate.enter("acme"):
                pytest.fail("it was entered")
        frames.append(len(traceback.extract_tb(refusal.__traceback__)))
    assert frames == [frames[0]] * 5


async def test_a_caller_waits_for_half_a_minute(autojump_clock: MockClock) -> None:
    started = trio.current_time()
    with pytest.raises(PortUnavailable, match="did not open in time: timeout"):
        async with OpenTenantGate(Tenants().wants).enter("acme"):
            pytest.fail("it was entered")
    assert trio.current_time() - started == ENTER_SECONDS


async def test_a_tenant_that_has_ended_is_kept_by_nobody(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery
) -> None:
    tenants = Tenants()
    tenants.answers = [FakeTenant(), FakeTenant()]
    nursery.start_soon(tenants.run)
    gate = OpenTenantGate(tenants.wants)
    with fakes_are_tenants(monkeypatch):
        for tenant_id in ("acme", "beta"):
            async with gate.enter(tenant_id):
                assert tenant_id in gate._known
        gc.collect()
        assert "acme" not in gate._known
