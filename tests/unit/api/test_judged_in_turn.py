"""Whoever judges callers is asked in turn by tenant."""

from collections import Counter
from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from fetcher.api.judged_in_turn import AT_ONCE, SECONDS, JudgedInTurn
from fetcher.domain.access import Granted, Permission, Verdict
from fetcher.domain.errors import PortUnavailable
from tests.unit.api.harness import CONNECTIONS
from tests.unit.api.tenant_harness import a_token, tenants_api

PERMISSION = Permission(resource="connections", action="get")


class SlowJudge:
    """Takes a second for each; remembers whom it was asked for, in that order."""

    relays = True

    def __init__(self, seconds: float = 1.0) -> None:
        self.seconds = seconds
        self.asked: list[str | None] = []

    async def judge(
        self, token: str | None, permission: Permission, *, trace: Mapping[str, str]
    ) -> Verdict:
        self.asked.append(token)
        await trio.sleep(self.seconds)
        return Granted(subject="s")


@pytest.mark.parametrize(
    "loud", [a_token(tenantId="loud"), a_token(sub="somebody"), a_token(tenantId=7), "none", None]
)
async def test_one_tenants_many_callers_make_another_wait_for_a_round(
    autojump_clock: MockClock, loud: str | None
) -> None:
    judge = SlowJudge()
    turns = JudgedInTurn(judge)
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            await turns.judge(loud, PERMISSION, trace={})

        for _ in range(10 * AT_ONCE):
            nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        verdict = await turns.judge(a_token(tenantId="other"), PERMISSION, trace={})
        assert isinstance(verdict, Granted)
        assert trio.current_time() - began == pytest.approx(2 * judge.seconds)
    assert Counter(judge.asked)[loud] == 10 * AT_ONCE


async def test_who_is_not_judged_in_time_is_told_so_and_leaves_no_trace(
    autojump_clock: MockClock,
) -> None:
    judge = SlowJudge(seconds=SECONDS + 1)
    turns = JudgedInTurn(judge)
    refused = 0

    async def ask(tenant: str) -> None:
        nonlocal refused
        with pytest.raises(PortUnavailable, match="no answer in time"):
            await turns.judge(a_token(tenantId=tenant), PERMISSION, trace={})
        refused += 1

    async with trio.open_nursery() as nursery:
        for number in range(2 * AT_ONCE):
            nursery.start_soon(ask, f"t{number % 3}")
    assert (refused, trio.current_time()) == (2 * AT_ONCE, SECONDS)
    judge.seconds = 0
    verdict = await turns.judge(a_token(tenantId="t0"), PERMISSION, trace={})
    assert isinstance(verdict, Granted)


async def test_requests_of_tenants_are_judged_so(autojump_clock: MockClock) -> None:
    judge = SlowJudge()
    api = tenants_api("loud", "other", authorizer=judge)
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            await api.get(CONNECTIONS, tenant="loud")

        for _ in range(5 * AT_ONCE):
            nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert (await api.get(CONNECTIONS, tenant="other")).status != 503
        # by its place, not by the clock: that jumps while a handler's thread works
        assert judge.asked.index(a_token(tenantId="other")) < 2 * AT_ONCE
        nursery.cancel_scope.cancel()
