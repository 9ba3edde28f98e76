"""What the Tenant Manager said is remembered, asked for by one at a time, and forgotten."""

from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock

from fetcher.domain.errors import PortError
from fetcher.domain.tenants import (
    TenantError,
    TenantNotConfigured,
    TenantsUnavailable,
    TenantSuspended,
    TenantUnknown,
)
from tests.unit.tenancy.answers import MONGO, POSTGRESQL, SOURCE_MONGO, a_body, a_ledger_body
from tests.unit.tenancy.fake_http import CACHE_SECONDS, FakeHttp, a_client


def a_body_of(tenant_id: str, database: str = "db") -> bytes:
    return a_body(id=tenant_id, databases={"fetcher": {"mongodb": MONGO | {"database": database}}})


async def test_a_configuration_is_remembered_for_its_time(autojump_clock: MockClock) -> None:
    http = FakeHttp(body=a_body_of("acme-7", "old"))
    client = a_client(http)
    assert (await client.config("acme-7")).database.database == "old"
    http.body = a_body_of("acme-7", "new")
    await trio.sleep(CACHE_SECONDS - 1)
    assert (await client.config("acme-7")).database.database == "old"
    await trio.sleep(1)
    assert (await client.config("acme-7")).database.database == "new"
    assert len(http.asked) == 2


async def test_a_fresh_one_is_asked_for_and_remembered() -> None:
    http = FakeHttp(body=a_body_of("acme-7", "old"))
    client = a_client(http)
    await client.config("acme-7")
    http.body = a_body_of("acme-7", "new")
    assert (await client.config("acme-7", fresh=True)).database.database == "new"
    assert (await client.config("acme-7")).database.database == "new"
    assert len(http.asked) == 2


async def test_what_is_remembered_is_served_while_the_breaker_is_open(
    autojump_clock: MockClock,
) -> None:
    http = FakeHttp(body=a_body_of("acme-7"))
    client = a_client(http)
    before = await client.config("acme-7")
    http.away = True
    for _ in range(5):
        with suppress(PortError):
            await client.config("acme-7", fresh=True)
    assert client.is_left_alone
    assert await client.config("acme-7") == before
    assert len(http.asked) == 6


@pytest.mark.parametrize("status", [404, 403, 500])
async def test_failures_are_not_remembered(status: int) -> None:
    http = FakeHttp(status)
    client = a_client(http)
    with pytest.raises(PortError):
        await client.config("acme-7")
    http.answers(200, a_body_of("acme-7"))
    assert (await client.config("acme-7")).tenant_id == "acme-7"


@pytest.mark.parametrize("status", [404, 403])
async def test_a_word_against_a_tenant_ends_what_is_remembered(status: int) -> None:
    http = FakeHttp(body=a_body_of("acme-7"))
    client = a_client(http)
    await client.config("acme-7")
    http.answers(status)
    for fresh in (True, False):
        with pytest.raises(TenantError):
            await client.config("acme-7", fresh=fresh)
    assert len(http.asked) == 3


@pytest.mark.parametrize(("status", "body"), [(500, b""), (401, b""), (200, b"{")])
async def test_what_is_no_word_on_a_tenant_does_not(status: int, body: bytes) -> None:
    http = FakeHttp(body=a_body_of("acme-7"))
    client = a_client(http)
    before = await client.config("acme-7")
    http.answers(status, body)
    with pytest.raises(PortError):
        await client.config("acme-7", fresh=True)
    assert await client.config("acme-7") == before


async def test_one_question_at_a_time_a_tenant_and_all_share_its_answer(
    autojump_clock: MockClock,
) -> None:
    http = FakeHttp(body=a_body_of("acme-7"), delay=2)
    client = a_client(http)
    got = []

    async def ask() -> None:
        got.append(await client.config("acme-7"))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
    assert len(got) == 20
    assert len(set(map(id, got))) == 1
    assert len(http.asked) == 1
    assert trio.current_time() == pytest.approx(2)


async def test_other_tenants_do_not_wait(autojump_clock: MockClock) -> None:
    http = FakeHttp(404, delay=2)
    client = a_client(http)

    async def ask(tenant_id: str) -> None:
        with pytest.raises(TenantUnknown):
            await client.config(tenant_id)

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(ask, f"tenant-{number}")
    assert http.open_most == 10
    assert trio.current_time() == pytest.approx(2)


async def test_who_waits_shares_a_failure_each_with_one_of_its_own(
    autojump_clock: MockClock,
) -> None:
    http = FakeHttp(403, b'{"status":"suspended"}', delay=2)
    client = a_client(http)
    failures: list[TenantSuspended] = []

    async def ask() -> None:
        try:
            await client.config("acme-7")
        except TenantSuspended as failure:
            failures.append(failure)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(ask)
    assert len(http.asked) == 1
    assert len(set(map(id, failures))) == 5
    assert {(each.status, str(each)) for each in failures} == {
        ("suspended", "tenant service is suspended")
    }


async def test_where_who_asks_is_cancelled_the_next_one_asks(autojump_clock: MockClock) -> None:
    http = FakeHttp(body=a_body_of("acme-7"), delay=2)
    client = a_client(http)
    got = []

    async def ask() -> None:
        got.append(await client.config("acme-7"))

    async with trio.open_nursery() as nursery:
        with trio.move_on_after(1):
            async with trio.open_nursery() as cancelled:
                cancelled.start_soon(client.config, "acme-7")
                await trio.sleep(0.5)
                nursery.start_soon(ask)
                nursery.start_soon(ask)
    assert len(got) == 2
    assert len(http.asked) == 2
    assert trio.current_time() == pytest.approx(3)
    assert http.open_most == 1


async def test_a_fresh_one_was_asked_for_after_the_call(autojump_clock: MockClock) -> None:
    """A question that was on its way may bring what was before."""
    http = FakeHttp(body=a_body_of("acme-7", "old"), delay=2)
    client = a_client(http)
    got = []

    async def ask(*, fresh: bool) -> None:
        got.append((await client.config("acme-7", fresh=fresh)).database.database)

    async def ask_freshly() -> None:
        await ask(fresh=True)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.config, "acme-7")
        await trio.sleep(1)
        nursery.start_soon(ask_freshly)
        nursery.start_soon(ask_freshly)
        await trio.sleep(1.5)
        http.body = a_body_of("acme-7", "new")
    assert got == ["new", "new"]
    assert (len(http.asked), http.open_most) == (2, 1)


async def test_what_was_on_its_way_when_it_was_forgotten_is_not_remembered(
    autojump_clock: MockClock,
) -> None:
    http = FakeHttp(body=a_body_of("acme-7", "old"), delay=2)
    client = a_client(http)
    got = []

    async def ask() -> None:
        got.append((await client.config("acme-7")).database.database)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.config, "acme-7")
        await trio.sleep(1)
        client.forget("acme-7")
        nursery.start_soon(ask)
        nursery.start_soon(ask)
        await trio.sleep(1.5)
        http.body = a_body_of("acme-7", "new")
    await ask()
    assert got == ["new"] * 3
    assert (len(http.asked), http.open_most) == (2, 1)


async def test_forgetting_a_tenant_leaves_the_others(autojump_clock: MockClock) -> None:
    http = FakeHttp(body=a_body_of("acme-7"))
    client = a_client(http)
    await client.config("acme-7")
    http.body = a_body_of("beta-2")
    await client.config("beta-2")
    http.body = a_ledger_body(crm={"mongodb": SOURCE_MONGO})
    await client.source("acme-7", "ledger", "crm")
    http.asked.clear()
    client.forget("acme-7")
    client.forget("never-seen")
    await client.config("beta-2")
    assert http.asked == []
    await client.source("acme-7", "ledger", "crm")
    with pytest.raises(PortError):  # it is an answer for the other service
        await client.config("acme-7")
    assert len(http.asked) == 2


async def test_those_used_last_are_remembered() -> None:
    http = FakeHttp()
    client = a_client(http, max_remembered=2)
    for tenant_id in ("a", "b", "a", "c"):
        http.body = a_body_of(tenant_id)
        await client.config(tenant_id)
    http.asked.clear()
    await client.config("a")
    await client.config("c")
    assert http.asked == []
    http.body = a_body_of("b")
    await client.config("b")
    assert len(http.asked) == 1


async def test_sources_of_a_service_are_one_question(autojump_clock: MockClock) -> None:
    http = FakeHttp(
        body=a_ledger_body(crm={"mongodb": SOURCE_MONGO}, onboarding={"postgresql": POSTGRESQL})
    )
    client = a_client(http)
    assert (await client.source("acme-7", "ledger", "crm")).database == "crm"
    assert (await client.source("acme-7", "ledger", "onboarding")).database == "ledger"
    listed = "no module transaction of the service ledger; available: crm, onboarding"
    with pytest.raises(TenantNotConfigured, match=listed):
        await client.source("acme-7", "ledger", "transaction")
    assert http.asked == ["/v1/tenants/acme-7/associations/ledger/connections"]
    http.away = True
    await trio.sleep(CACHE_SECONDS)
    with pytest.raises(TenantsUnavailable):
        await client.source("acme-7", "ledger", "crm")
