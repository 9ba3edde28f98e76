"""The Tenant Manager's double speaks as spec configuration 11.4 says."""

import http.client
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

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

ACTIVE = "/v1/tenants/active?service=fetcher"
ACME = "/v1/tenants/acme-7/associations/fetcher/connections"
MONGO = mongo_at("mongodb://u:p%40ss@127.0.0.1:27018/?authSource=ops", "fetcher_acme7")
BROKER = broker_at("amqps://w7:secret@mq.test/%2F", "tenant_acme7")


def ask(double: TenantManagerDouble, path: str, *, seconds: float = 10) -> tuple[int, Any]:
    request = urllib.request.Request(  # noqa: S310 - ours, http
        double.address + path, headers={"X-API-Key": double.api_key, "Accept": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read() or b"null")


def test_a_tenant_is_listed_and_tells_where_its_things_lie(
    tenant_manager: TenantManagerDouble,
) -> None:
    tenant_manager.put("acme-7", mongo=MONGO, broker=BROKER)
    tenant_manager.put("beta-2", mongo=MONGO, broker=BROKER, status="suspended")
    assert ask(tenant_manager, ACTIVE) == (
        200,
        [{"id": "acme-7", "name": "Tenant acme-7", "status": "active"}],
    )
    code, told = ask(tenant_manager, ACME)
    assert code == 200
    assert told["databases"] == {"fetcher": {"mongodb": MONGO}}
    assert told["messaging"] == {"rabbitmq": BROKER}
    assert (MONGO["password"], MONGO["port"], MONGO["authSource"]) == ("p@ss", 27018, "ops")
    assert (BROKER["port"], BROKER["vhost"], BROKER["tls"]) == (5671, "tenant_acme7", True)


def test_what_is_refused_and_what_is_unknown(tenant_manager: TenantManagerDouble) -> None:
    tenant_manager.put("acme-7", status="purged")
    code, told = ask(tenant_manager, ACME)
    assert (code, told["status"]) == (403, "purged")
    tenant_manager.put("acme-7", status="denied")
    code, told = ask(tenant_manager, ACME)
    assert code == 403
    assert "status" not in told
    tenant_manager.remove("acme-7")
    assert ask(tenant_manager, ACME)[0] == 404
    tenant_manager.put("acme-7")
    assert ask(tenant_manager, ACME.replace("fetcher", "ledger"))[0] == 404
    tenant_manager.put("acme-7", ledger={"crm": {"mongodb": MONGO}})
    code, told = ask(tenant_manager, ACME.replace("fetcher", "ledger"))
    assert (code, told["databases"]) == (200, {"crm": {"mongodb": MONGO}})


def test_it_fails_as_it_is_told_to_where_it_is_told_to(
    tenant_manager: TenantManagerDouble,
) -> None:
    tenant_manager.put("acme-7", mongo=MONGO)
    tenant_manager.fail(status(502))
    assert ask(tenant_manager, ACME) == (502, None)
    tenant_manager.fail(answers([None]), on="/active")
    assert ask(tenant_manager, ACTIVE) == (200, [None])
    assert ask(tenant_manager, ACME)[0] == 502
    tenant_manager.fail(None)
    assert ask(tenant_manager, ACME)[0] == 200
    tenant_manager.fail(BAD_JSON)
    with pytest.raises(json.JSONDecodeError):
        ask(tenant_manager, ACME)
    tenant_manager.fail(HANG_UP)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(tenant_manager, ACME)
    tenant_manager.fail(CUT)
    with pytest.raises(http.client.IncompleteRead):
        ask(tenant_manager, ACME)
    for mode in (SILENT, slow(5)):
        tenant_manager.fail(mode)
        with pytest.raises(TimeoutError):
            ask(tenant_manager, ACME, seconds=0.2)


def test_requests_are_kept_until_they_are_forgotten(tenant_manager: TenantManagerDouble) -> None:
    ask(tenant_manager, ACTIVE)
    ask(tenant_manager, ACME)
    assert [each["path"] for each in tenant_manager.requests()] == [ACTIVE, ACME]
    (asked,) = tenant_manager.requests("/connections")
    assert asked["headers"]["x-api-key"] == tenant_manager.api_key
    tenant_manager.forget_requests()
    assert tenant_manager.requests() == []


def test_another_key_is_refused(tenant_manager: TenantManagerDouble) -> None:
    stranger = TenantManagerDouble(tenant_manager.address, api_key="another")
    assert ask(stranger, ACTIVE)[0] == 401
