"""The Tenant Manager over real sockets: its protocol, its failures, what is kept and shared."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from structlog.testing import capture_logs

from fetcher.adapters.breaker import CircuitBreaker
from fetcher.bridge import open_asyncio
from fetcher.domain.tenants import (
    Tenant,
    TenantAnswerUnreadable,
    TenantDenied,
    TenantsLeftAlone,
    TenantsUnavailable,
    TenantSuspended,
    TenantUnknown,
)
from fetcher.tenancy.internal_sources import TenantInternalSources
from fetcher.tenancy.manager_client import TenantManagerClient, open_tenant_manager
from tests.servers.processes import free_port
from tests.servers.tenant_manager import (
    BAD_JSON,
    CUT,
    HANG_UP,
    SILENT,
    TenantManagerDouble,
    answers,
    broker_at,
    mongo_at,
    slow,
    status,
)

pytestmark = pytest.mark.integration

MONGO = mongo_at("mongodb://u7:canary-of-mongo@mongo-7.int:27017", "fetcher_acme7")
BROKER = broker_at("amqp://w7:canary-of-mq@mq-7.int:5672", "tenant_acme7")
CRM = {"mongodb": mongo_at("mongodb://c7:canary-of-crm@mongo-8.int", "crm") | {"tls": True}}
CONNECTIONS = "/v1/tenants/acme-7/associations/fetcher/connections"


@asynccontextmanager
async def a_client(
    address: str, *, timeout_seconds: float = 10, noted: list[str] | None = None
) -> AsyncIterator[TenantManagerClient]:
    told = noted if noted is not None else []
    async with (
        open_asyncio(pytest.fail),
        open_tenant_manager(
            f"{address}/",
            api_key=TenantManagerDouble("").api_key,
            broker_module="fetcher-worker",
            timeout_seconds=timeout_seconds,
            cache_seconds=60,
            new_breaker=CircuitBreaker,
            noted=told.extend,
        ) as client,
    ):
        yield client


async def test_a_tenant_from_the_list_to_its_sources(tenant_manager: TenantManagerDouble) -> None:
    newer = {"fetcher-worker": BROKER | {"vhost": "of-the-worker"}}
    tenant_manager.put("acme-7", mongo=MONGO, broker=BROKER, modules=newer, ledger={"crm": CRM})
    tenant_manager.put("beta-2", mongo=MONGO, broker=BROKER, status="suspended")
    noted = list[str]()
    async with a_client(tenant_manager.address, noted=noted) as client:
        assert await client.active(within_seconds=5) == ["acme-7"]
        config = await client.config("acme-7")
        sources = TenantInternalSources(client, Tenant("acme-7"), noted=noted.extend)
        crm = await sources.find("plugin_crm")
    assert (config.database.host, config.database.database) == ("mongo-7.int", "fetcher_acme7")
    assert config.broker.vhost == "of-the-worker"
    assert (crm.host, crm.plain_password) == ("mongo-8.int", "canary-of-crm")
    assert crm.tls is not None
    assert crm.tls.mode == "enable"
    assert noted == ["canary-of-mongo", "canary-of-mq", "canary-of-crm"]
    listed, asked, ledger = tenant_manager.requests()
    assert listed["path"] == "/v1/tenants/active?service=fetcher"
    assert asked["path"] == CONNECTIONS
    assert ledger["path"] == "/v1/tenants/acme-7/associations/ledger/connections"
    told = {name: asked["headers"][name] for name in ("x-api-key", "accept", "content-type")}
    assert told == {
        "x-api-key": tenant_manager.api_key,
        "accept": "application/json",
        "content-type": "application/json",
    }


async def test_words_on_a_tenant(tenant_manager: TenantManagerDouble) -> None:
    async with a_client(tenant_manager.address) as client:
        with pytest.raises(TenantUnknown, match=r"^tenant not found: acme-7$"):
            await client.config("acme-7")
        tenant_manager.put("acme-7", status="purged")
        with pytest.raises(TenantSuspended, match="purged"):
            await client.config("acme-7")
        tenant_manager.put("acme-7", status="denied")
        with pytest.raises(TenantDenied):
            await client.config("acme-7")
        tenant_manager.put("acme-7", mongo=MONGO, broker=BROKER)
        assert (await client.config("acme-7")).broker.user == "w7"
        tenant_manager.remove("acme-7")
        assert (await client.config("acme-7")).broker.user == "w7"
        client.forget("acme-7")
        with pytest.raises(TenantUnknown):
            await client.config("acme-7")


async def test_answers_that_are_none(tenant_manager: TenantManagerDouble) -> None:
    tenant_manager.put("acme-7", mongo=MONGO, broker=BROKER)
    executed = "failed to execute request: "
    async with a_client(tenant_manager.address, timeout_seconds=0.5) as client:
        for mode, text in (
            (status(502, "canary"), "tenant manager returned status 502"),
            (status(401, "canary"), "tenant manager returned status 401"),
            (status(302), "tenant manager returned status 302"),
            (HANG_UP, f"{executed}the exchange broke off"),
            (CUT, f"{executed}the exchange broke off"),
            (SILENT, f"{executed}no answer in time"),
        ):
            tenant_manager.fail(mode)
            with pytest.raises(TenantsUnavailable) as caught:
                await client.config("acme-7")
            assert str(caught.value) == f"{text} for tenant acme-7"
        for mode in (BAD_JSON, answers({"databases": 7}), answers([])):
            tenant_manager.fail(mode)
            with pytest.raises(TenantAnswerUnreadable):
                await client.config("acme-7")
        tenant_manager.fail(None)
        assert (await client.config("acme-7")).tenant_id == "acme-7"


async def test_an_answer_without_end_is_not_read_to_its_end(
    tenant_manager: TenantManagerDouble,
) -> None:
    tenant_manager.fail(answers(["x" * (10 * 1024 * 1024)]))
    async with a_client(tenant_manager.address) as client:
        with pytest.raises(TenantsUnavailable, match="the answer is too long"):
            await client.active(within_seconds=10)


async def test_nobody_there_is_left_alone_after_five_tries() -> None:
    async with a_client(f"http://127.0.0.1:{free_port()}") as client:
        for _ in range(5):
            with pytest.raises(TenantsUnavailable, match="cannot be reached"):
                await client.active(within_seconds=5)
        assert client.is_left_alone
        with pytest.raises(TenantsLeftAlone):
            await client.active(within_seconds=5)


async def test_five_failures_then_no_request(tenant_manager: TenantManagerDouble) -> None:
    tenant_manager.put("acme-7", mongo=MONGO, broker=BROKER)
    tenant_manager.fail(status(503))
    async with a_client(tenant_manager.address) as client:
        for number in range(8):
            raised = TenantsUnavailable if number < 5 else TenantsLeftAlone
            with pytest.raises(raised):
                await client.config("acme-7")
    assert len(tenant_manager.requests()) == 5


async def test_who_waits_shares_one_request(tenant_manager: TenantManagerDouble) -> None:
    tenant_manager.put("acme-7", mongo=MONGO, broker=BROKER)
    tenant_manager.fail(slow(0.3))
    async with a_client(tenant_manager.address) as client, trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(client.config, "acme-7")
    assert len(tenant_manager.requests()) == 1


async def test_a_wrong_key_is_told_once_and_never_shown(
    tenant_manager: TenantManagerDouble,
) -> None:
    with capture_logs() as logs:
        async with (
            open_asyncio(pytest.fail),
            open_tenant_manager(
                tenant_manager.address,
                api_key="canary-key",
                broker_module="fetcher-manager",
                timeout_seconds=5,
                cache_seconds=60,
                new_breaker=CircuitBreaker,
                noted=lambda _: pytest.fail("no secret was told"),
            ) as client,
        ):
            for _ in range(3):
                with pytest.raises(TenantsUnavailable):
                    await client.config("acme-7")
            assert not client.is_left_alone
    assert [each["why"] for each in logs] == ["tenant manager returned status 401"]
    assert "canary" not in repr(logs)
