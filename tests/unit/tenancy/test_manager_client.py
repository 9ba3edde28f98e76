"""The Tenant Manager's client: paths, headers, what each status means, and to the breaker."""

import json
from contextlib import suppress

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from fetcher.domain.errors import PortError
from fetcher.domain.tenants import (
    TenantAnswerUnreadable,
    TenantDenied,
    TenantNotConfigured,
    TenantsLeftAlone,
    TenantsUnavailable,
    TenantSuspended,
    TenantUnknown,
)
from fetcher.domain.trace_context import TraceContext, enter_trace, leave_trace
from fetcher.tenancy.manager_client import TenantManagerClient
from tests.unit.tenancy.answers import (
    BROKER_PASSWORD,
    MONGO_PASSWORD,
    POSTGRESQL,
    SOURCE_MONGO,
    SOURCE_PASSWORD,
    a_body,
    a_ledger_body,
)
from tests.unit.tenancy.fake_http import URL, FakeHttp, a_client

CONNECTIONS = "/v1/tenants/acme-7/associations/fetcher/connections"
TRACE = TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1")


def left_alone(client: TenantManagerClient) -> bool:
    return client.is_left_alone


async def failure_of(http: FakeHttp, *, times: int = 1) -> PortError:
    """What a client says that asks so often for a configuration."""
    client = a_client(http)
    for _ in range(times - 1):
        with suppress(PortError):
            await client.config("acme-7")
    with pytest.raises(PortError) as caught:
        await client.config("acme-7")
    assert caught.value.__context__ is None
    return caught.value


async def test_active_tenants_are_asked_for_each_time() -> None:
    http = FakeHttp(body=json.dumps([{"id": "acme-7"}, {"id": "beta-2"}]).encode())
    client = a_client(http)
    assert await client.active(within_seconds=5) == ["acme-7", "beta-2"]
    assert await client.active(within_seconds=5) == ["acme-7", "beta-2"]
    assert http.asked == ["/v1/tenants/active?service=fetcher"] * 2


async def test_what_every_request_carries() -> None:
    http = FakeHttp()
    token = enter_trace(TRACE)
    await a_client(http).active(within_seconds=5)
    leave_trace(token)
    assert http.headers == {
        "X-API-Key": "canary-of-the-key",
        "Accept": "application/json",
        "Content-Type": "application/json",
        "traceparent": TRACE.parent,
        "tracestate": "a=1",
    }


async def test_a_trailing_slash_of_the_address_is_trimmed() -> None:
    http = FakeHttp(body=a_body())
    await a_client(http, url=f"{URL}/").config("acme-7")
    assert http.asked == [CONNECTIONS]


async def test_parts_of_the_path_are_percent_encoded() -> None:
    http = FakeHttp(404)
    with pytest.raises(TenantUnknown):
        await a_client(http).source("acme-7", "le/d ger?", "crm")
    assert http.asked == ["/v1/tenants/acme-7/associations/le%2Fd%20ger%3F/connections"]


@pytest.mark.parametrize("tenant_id", ["", "a/b", "../acme", "a:b", "é1", "a" * 257])
async def test_an_id_that_no_tenant_can_have_is_never_asked_for(tenant_id: str) -> None:
    http = FakeHttp(body=a_body())
    client = a_client(http)
    with pytest.raises(TenantUnknown, match=r"^tenant not found: no id that a tenant can have$"):
        await client.config(tenant_id)
    with pytest.raises(TenantUnknown):
        await client.source(tenant_id, "ledger", "crm")
    assert http.asked == []


async def test_404_is_a_tenant_that_is_unknown() -> None:
    failure = await failure_of(FakeHttp(404))
    assert isinstance(failure, TenantUnknown)
    assert str(failure) == "tenant not found: acme-7"


@pytest.mark.parametrize("status", ["suspended", "purged"])
async def test_403_with_a_status_is_a_suspended_tenant(status: str) -> None:
    body = json.dumps({"code": "X", "error": "canary", "status": status}).encode()
    failure = await failure_of(FakeHttp(403, body))
    assert isinstance(failure, TenantSuspended)
    assert (failure.status, str(failure)) == (status, f"tenant service is {status}")


@pytest.mark.parametrize("body", [b"", b"no", b"{}", b'{"status":"odd"}', b'{"status":7}', b"[1]"])
async def test_403_without_one_is_denied(body: bytes) -> None:
    failure = await failure_of(FakeHttp(403, body))
    assert isinstance(failure, TenantDenied)
    assert str(failure) == "tenant service access denied"


@pytest.mark.parametrize("status", [500, 502, 400, 401, 429, 302, 204])
async def test_another_status_is_told_with_the_tenant(status: int) -> None:
    failure = await failure_of(FakeHttp(status, b"canary"))
    assert isinstance(failure, TenantsUnavailable)
    assert str(failure) == f"tenant manager returned status {status} for tenant acme-7"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"databases":7}', b"\xff", b"[" * 99]
)
async def test_a_bad_body_is_unreadable(body: bytes) -> None:
    failure = await failure_of(FakeHttp(200, body))
    assert isinstance(failure, TenantAnswerUnreadable)
    assert str(failure) == "failed to parse response"


async def test_nobody_there_and_no_answer_in_time(autojump_clock: MockClock) -> None:
    failure = await failure_of(FakeHttp(away=True))
    assert isinstance(failure, TenantsUnavailable)
    assert str(failure) == "failed to execute request: cannot be reached for tenant acme-7"
    began = trio.current_time()
    slow = await failure_of(FakeHttp(body=a_body(), delay=31))
    assert str(slow) == "failed to execute request: no answer in time for tenant acme-7"
    assert trio.current_time() - began == pytest.approx(30)


async def test_the_list_has_the_shorter_of_both_times(autojump_clock: MockClock) -> None:
    client = a_client(FakeHttp(delay=31))
    for within, took in ((5, 5), (60, 30)):
        began = trio.current_time()
        with pytest.raises(TenantsUnavailable):
            await client.active(within_seconds=within)
        assert trio.current_time() - began == pytest.approx(took)


async def test_a_list_that_its_asker_gave_up_on_is_no_failure(autojump_clock: MockClock) -> None:
    http = FakeHttp(delay=2)
    client = a_client(http)
    for _ in range(6):
        with pytest.raises(TenantsUnavailable, match=r"no answer in time$"):
            await client.active(within_seconds=1)
    assert (len(http.asked), client.is_left_alone) == (6, False)
    assert await client.active(within_seconds=5) == []


@pytest.mark.parametrize("status", [404, 403, 401, 500])
async def test_a_list_that_is_refused_says_nothing_of_a_tenant(status: int) -> None:
    with pytest.raises(TenantsUnavailable, match=rf"^tenant manager returned status {status}$"):
        await a_client(FakeHttp(status, b"{}")).active(within_seconds=5)


# What each answer is to the breaker: after four failures and it, one more failure opens or not.

FAILURE = (500, b"")
SUCCESSES = [(200, a_body()), (404, b""), (403, b'{"status":"purged"}'), (403, b"")]
NO_WORDS = [(200, b"{"), (400, b""), (401, b""), (429, b""), (302, b"")]


async def asked(http: FakeHttp, path: str, *answers: tuple[int, bytes]) -> bool:
    """Whether it is left alone after these answers to questions of a kind, each about another
    tenant."""
    client = a_client(http)
    for number, (status, body) in enumerate(answers):
        tenant_id = f"acme-{number}"
        http.answers(status, body.replace(b"acme-7", tenant_id.encode()))
        with suppress(PortError):
            if path == "active":
                await client.active(within_seconds=5)
            else:
                await client.config(tenant_id, fresh=True)
    return client.is_left_alone


async def test_one_tenant_that_it_cannot_tell_of_is_left_alone_by_itself(
    autojump_clock: MockClock,
) -> None:
    http = FakeHttp(*FAILURE)
    client = a_client(http)
    for _ in range(5):
        with pytest.raises(TenantsUnavailable, match="returned status 500 for tenant acme-7"):
            await client.config("acme-7", fresh=True)
    with pytest.raises(TenantsLeftAlone):
        await client.config("acme-7", fresh=True)
    assert (len(http.asked), client.is_left_alone) == (5, False)
    http.answers(200, a_body().replace(b"acme-7", b"beta-2"))
    assert (await client.config("beta-2")).tenant_id == "beta-2"
    await trio.sleep(31)
    http.answers(200, a_body())
    assert (await client.config("acme-7", fresh=True)).tenant_id == "acme-7"
    http.answers(*FAILURE)
    for _ in range(5):
        with pytest.raises(TenantsUnavailable):
            await client.config("acme-7", fresh=True)
    assert len(http.asked) == 12


async def test_one_tenant_that_it_cannot_tell_of_is_not_what_is_tried_for_all(
    autojump_clock: MockClock,
) -> None:
    """Asked about far more often than others, it got every trial of a breaker that was open."""
    http = FakeHttp(*FAILURE)
    client = a_client(http)
    for number in range(5):
        with pytest.raises(TenantsUnavailable):
            await client.config(f"acme-{number}", fresh=True)
    assert left_alone(client)
    await trio.sleep(31)
    with pytest.raises(TenantsUnavailable):
        await client.config("acme-0", fresh=True)
    assert not left_alone(client)
    http.answers(200, a_body().replace(b"acme-7", b"beta-2"))
    assert (await client.config("beta-2")).tenant_id == "beta-2"


async def test_five_failures_in_a_row_open_the_breaker() -> None:
    assert not await asked(FakeHttp(), "config", *[FAILURE] * 4)
    assert await asked(FakeHttp(), "config", *[FAILURE] * 5)
    assert await asked(FakeHttp(), "active", *[FAILURE] * 5)


@pytest.mark.parametrize("answer", SUCCESSES)
async def test_a_word_on_a_tenant_is_a_success(answer: tuple[int, bytes]) -> None:
    assert not await asked(FakeHttp(), "config", *[FAILURE] * 4, answer, *[FAILURE] * 4)


@pytest.mark.parametrize("answer", NO_WORDS)
async def test_what_says_nothing_leaves_the_breaker_as_it_is(answer: tuple[int, bytes]) -> None:
    assert await asked(FakeHttp(), "config", *[FAILURE] * 4, answer, FAILURE)
    assert not await asked(FakeHttp(), "config", *[answer] * 9)


@pytest.mark.parametrize("answer", [(200, b"[]"), (404, b""), (403, b""), (401, b"")])
async def test_any_answer_to_the_list_below_500_is_a_success(answer: tuple[int, bytes]) -> None:
    assert not await asked(FakeHttp(), "active", *[FAILURE] * 4, answer, *[FAILURE] * 4)


async def test_a_bad_list_leaves_the_breaker_as_it_is() -> None:
    assert await asked(FakeHttp(), "active", *[FAILURE] * 4, (200, b"{}"), FAILURE)


async def test_an_open_breaker_asks_nobody_until_its_time_is_over(
    autojump_clock: MockClock,
) -> None:
    http = FakeHttp(away=True)
    client = a_client(http)
    for _ in range(5):
        with pytest.raises(TenantsUnavailable):
            await client.config("acme-7")
    assert left_alone(client)
    with pytest.raises(TenantsLeftAlone, match=r"^tenant manager circuit breaker open$"):
        await client.config("acme-7")
    with pytest.raises(TenantsLeftAlone):
        await client.active(within_seconds=5)
    assert len(http.asked) == 5

    await trio.sleep(31)
    assert not left_alone(client)
    with pytest.raises(TenantsUnavailable):
        await client.config("acme-7")
    assert left_alone(client)

    await trio.sleep(31)
    http.answers(200, a_body())
    assert (await client.config("acme-7")).tenant_id == "acme-7"
    assert not left_alone(client)
    http.answers(500)
    for number, is_open in enumerate((False, False, False, False, True)):
        with pytest.raises(TenantsUnavailable):
            await client.config(f"acme-{number}", fresh=True)
        assert left_alone(client) is is_open


async def test_half_open_admits_one_question(autojump_clock: MockClock) -> None:
    http = FakeHttp(away=True)
    client = a_client(http)
    for _ in range(5):
        with suppress(PortError):
            await client.active(within_seconds=5)
    await trio.sleep(31)
    http.answers(200, a_body())
    http.delay = 2
    http.asked.clear()
    refused = []

    async def ask(tenant_id: str) -> None:
        try:
            await client.config(tenant_id)
        except TenantsLeftAlone:
            refused.append(tenant_id)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "acme-7")
        await trio.sleep(1)
        nursery.start_soon(ask, "beta-2")
        nursery.start_soon(ask, "gamma-3")
    assert sorted(refused) == ["beta-2", "gamma-3"]
    assert http.asked == [CONNECTIONS]


async def test_a_question_that_was_cancelled_is_no_failure(autojump_clock: MockClock) -> None:
    http = FakeHttp(body=a_body(), delay=10)
    client = a_client(http)
    for _ in range(6):
        with trio.move_on_after(1):
            await client.config("acme-7")
    assert not client.is_left_alone
    assert (await client.config("acme-7")).tenant_id == "acme-7"


async def test_passwords_are_noted_and_logs_have_a_status_at_most() -> None:
    http, noted = FakeHttp(body=a_body()), list[str]()
    client = a_client(http, noted=noted)
    with capture_logs() as logs:
        await client.config("acme-7")
        assert noted == [MONGO_PASSWORD, BROKER_PASSWORD]
        http.body = a_ledger_body(
            crm={"mongodb": SOURCE_MONGO}, onboarding={"postgresql": POSTGRESQL | {"sslkey": "pem"}}
        )
        await client.source("acme-7", "ledger", "crm")
        assert noted[2:] == [SOURCE_PASSWORD, SOURCE_PASSWORD, "pem"]
        for status, body in (
            (401, b"canary"),
            (401, b"canary"),
            (502, b"canary"),
            (200, b"[canary"),
        ):
            http.answers(status, body)
            with suppress(PortError):
                await client.config("acme-7", fresh=True)
        http.answers(404)
        with suppress(PortError):
            await client.config("acme-7", fresh=True)
    assert [(each["event"], each.get("why")) for each in logs] == [
        ("tenant_manager_fails", "tenant manager returned status 401"),
        ("tenant_manager_fails", "tenant manager returned status 502"),
        ("tenant_manager_fails", "failed to parse response"),
        ("tenant_manager_answers", None),
    ]
    assert "canary" not in repr(logs)


async def test_ids_that_no_tenant_can_have_are_told_by_their_number() -> None:
    entries = [None, {"id": ""}, {"id": " "}, {}, {"id": "a/b"}, {"id": "-x"}, {"id": "acme-7"}]
    with capture_logs() as logs:
        listed = await a_client(FakeHttp(body=json.dumps(entries).encode())).active(
            within_seconds=5
        )
    assert listed == ["acme-7"]
    assert logs == [
        {"event": "tenants_with_unusable_ids", "count": 2, "log_level": "warning"},
    ]


async def test_a_large_list_is_read_all_the_same() -> None:
    names = [f"tenant-{number}" for number in range(20_000)]
    body = json.dumps([{"id": name, "name": name} for name in names]).encode()
    assert len(body) > 256 * 1024
    assert await a_client(FakeHttp(body=body)).active(within_seconds=5) == names


async def test_a_tenant_without_a_place_of_its_own_is_asked_for_each_time() -> None:
    http = FakeHttp(body=a_body(messaging=None))
    client = a_client(http)
    for _ in range(2):
        with pytest.raises(TenantNotConfigured, match=r"messaging\.rabbitmq is missing"):
            await client.config("acme-7")
    assert len(http.asked) == 2
    assert not client.is_left_alone
