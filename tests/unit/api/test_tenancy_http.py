"""Whose request it is: rest-api 4 and 17.6, configuration 11.2 and 17.8."""

import gc
import tracemalloc
from collections.abc import Mapping
from typing import Any

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

from fetcher.api.application import manager_routes, tenant_handlers
from fetcher.api.no_tenant import services_of_no_tenant
from fetcher.api.tenancy import tenant_of
from fetcher.domain.access import Granted, Permission, Refusal, Refused, Verdict
from fetcher.domain.errors import FetcherError, OperationRefused, PortUnavailable
from fetcher.domain.tenants import (
    TenantAnswerUnreadable,
    TenantContextRequired,
    TenantDenied,
    TenantNotConfigured,
    TenantsLeftAlone,
    TenantsUnavailable,
    TenantSuspended,
)
from fetcher_engine import Limits
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import CONNECTIONS, JOBS, PRODUCT, a_body, a_connection, an_api
from tests.unit.api.tenant_harness import a_token, tenants_api

MISSING_TOKEN = ("MISSING_TOKEN", "Authorization token is required")
INVALID_TOKEN = ("INVALID_TOKEN", "Failed to parse authorization token")
MISSING_TENANT = ("MISSING_TENANT", "tenantId is required in JWT token")
INVALID_TENANT = ("INVALID_TENANT", "tenantId has invalid format")
UNAVAILABLE = (503, "SERVICE_UNAVAILABLE", "Service Unavailable", "Service temporarily unavailable")
NOT_OPENED = (500, "TENANT_DB_ERROR", "Failed to resolve tenant database", "Internal server error")
TOKEN = a_token(tenantId="acme-7")


# --- the token ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("authorization", "told"),
    [
        (None, MISSING_TOKEN),
        ("Bearer", MISSING_TOKEN),
        ("Bearer a b", MISSING_TOKEN),
        ("Basic x", MISSING_TOKEN),
        ("Bearer null", MISSING_TOKEN),
        ("x", INVALID_TOKEN),
        ("Bearer a.b.c", INVALID_TOKEN),
        (f"Bearer {TOKEN}.x", INVALID_TOKEN),
        (f"Bearer {a_token(sub='kim')}", MISSING_TENANT),
        (f"Bearer {a_token(tenantId='')}", MISSING_TENANT),
        (f"Bearer {a_token(tenantId=7)}", MISSING_TENANT),
        (f"Bearer {a_token(tenantId=None)}", MISSING_TENANT),
        (f"Bearer {a_token(tenantId=['acme-7'])}", MISSING_TENANT),
        (f"Bearer {a_token(tenant_id='acme-7', tenantID='acme-7')}", MISSING_TENANT),
        *(
            (f"Bearer {a_token(tenantId=each)}", INVALID_TENANT)
            for each in ("-a", "_a", "a/b", "a:b", "é1", "a" * 257, " ", "a\n", "a b", "\x00")
        ),
    ],
)
async def test_token_that_names_no_tenant_is_refused(
    authorization: str | None, told: tuple[str, str]
) -> None:
    api = tenants_api()
    headers = {} if authorization is None else {"Authorization": authorization}
    answered = await api.get(CONNECTIONS, headers=headers)
    code, message = told
    assert (answered.status, answered.json) == (
        401,
        {"code": code, "title": "Unauthorized", "message": message, "errorCode": code},
    )
    assert answered.headers["WWW-Authenticate"] == "Bearer"
    assert answered.headers["Content-Type"] == "application/json"
    assert (api.gate.asked, api.ran) == ([], [])


@pytest.mark.parametrize("tenant_id", ["a", "A_9-z", "0", "a" * 256])
def test_ids_that_are_accepted(tenant_id: str) -> None:
    assert tenant_of(f"Bearer {a_token(tenantId=tenant_id)}").id == tenant_id


@pytest.mark.parametrize("authorization", [f"Bearer {TOKEN}", f"bEARER  {TOKEN} ", TOKEN])
async def test_tenant_of_the_token_serves_the_request(authorization: str) -> None:
    api = tenants_api()
    assert (await api.get(CONNECTIONS, headers={"Authorization": authorization})).status == 200
    assert (api.gate.asked, api.ran) == (["acme-7"], ["acme-7/list_connections"])
    assert api.gate.inside == []


async def test_no_header_names_a_tenant() -> None:
    api = tenants_api("acme-7", "beta-2")
    sent = {"X-Tenant-ID": "beta-2", "X-Organization-Id": "beta-2"}
    assert (await api.get(CONNECTIONS, tenant="acme-7", headers=sent)).status == 200
    assert (await api.get(CONNECTIONS, headers=sent)).json["code"] == "MISSING_TOKEN"
    assert api.ran == ["acme-7/list_connections"]


IN_THE_TABLE = {MISSING_TOKEN[0], INVALID_TOKEN[0], MISSING_TENANT[0], INVALID_TENANT[0]}
_HEADER = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=300)
_CLAIMS = st.dictionaries(st.sampled_from(["tenantId", "TenantId", "sub"]), st.text() | st.none())


@given(_HEADER | _CLAIMS.map(lambda claims: a_token(**claims)))
@example("Bearer " + "." * 40_000)
@example("Bearer " + a_token(tenantId="a" * 20_000))
def test_whatever_the_header_says_it_names_a_tenant_or_is_refused_by_the_table(sent: str) -> None:
    try:
        tenant = tenant_of(sent)
    except FetcherError as refused:
        assert refused.code in IN_THE_TABLE  # noqa: PT017 - either may be right
        return
    assert tenant.id


@given(_HEADER | _CLAIMS.map(lambda claims: f"Bearer {a_token(**claims)}"))
def test_whatever_the_header_says_no_handler_runs_for_a_tenant_that_is_not_there(
    sent: str,
) -> None:
    async def ask() -> None:
        api = tenants_api()
        del api.gate.tenants["acme-7"]
        headers = [(b"authorization", sent.encode("latin-1"))]
        scope = a_scope("POST", JOBS.encode(), headers=headers)
        talk, raw = await answer_of(api.app, scope, [b"{}"])
        assert (talk.status, talk.status and raw[:1]) in {(401, b"{"), (404, b"{"), (431, b"{")}
        assert api.ran == []

    trio.run(ask)


# --- the gate ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (
            TenantSuspended("suspended"),
            (403, "0131", "Service Suspended", "tenant service is suspended"),
        ),
        (TenantSuspended("purged"), (403, "0131", "Service Suspended", "tenant service is purged")),
        (TenantDenied(), (403, "0131", "Access Denied", "tenant service access denied")),
        (TenantsLeftAlone(), UNAVAILABLE),
        (TenantsUnavailable("tenant manager returned status 502"), UNAVAILABLE),
        (TenantNotConfigured("mongodb"), UNAVAILABLE),
        (PortUnavailable("mongodb is away"), UNAVAILABLE),
        (OperationRefused("mongodb says no"), UNAVAILABLE),
        (TenantAnswerUnreadable(), NOT_OPENED),
        (RuntimeError("s3cret"), NOT_OPENED),
        (ExceptionGroup("s3cret", [ValueError("s3cret")]), NOT_OPENED),
    ],
)
async def test_tenant_that_cannot_be_entered(
    failure: Exception, told: tuple[int, str, str, str]
) -> None:
    api = tenants_api()
    api.gate.tenants["acme-7"] = failure
    answered = await api.get(CONNECTIONS, tenant="acme-7")
    status, code, title, message = told
    assert (answered.status, answered.json) == (
        status,
        {"code": code, "title": title, "message": message, "errorCode": code},
    )
    assert answered.headers.get("Retry-After") == ("5" if status == 503 else None)
    assert api.ran == []


async def test_unknown_tenant_is_named_to_who_named_it() -> None:
    answered = await tenants_api().get(CONNECTIONS, tenant="acme-9")
    assert answered.problem == (404, "TENANT_NOT_FOUND", "Tenant Not Found")
    assert answered.json["message"] == "tenant not found: acme-9"


# --- isolation ---------------------------------------------------------------------------------


async def test_one_tenant_sees_nothing_of_another() -> None:
    api = tenants_api("acme-7", "beta-2")
    secret = a_connection()
    await api.apis["beta-2"].records.connections.insert(secret)
    path = f"{CONNECTIONS}/{secret.id}"
    assert (await api.get(path, tenant="beta-2")).json["id"] == str(secret.id)
    assert (await api.get(path, tenant="acme-7")).problem == (404, "FET-1001", "Entity Not Found")
    assert (await api.get(CONNECTIONS, tenant="acme-7")).json["items"] == []


async def test_same_config_name_may_be_every_tenant_s() -> None:
    api = tenants_api("acme-7", "beta-2")
    for tenant in ("acme-7", "beta-2"):
        created = await api.call("POST", CONNECTIONS, a_body(), tenant=tenant, headers=PRODUCT)
        assert created.status == 201
        again = await api.call("POST", CONNECTIONS, a_body(), tenant=tenant, headers=PRODUCT)
        assert again.problem == (409, "FET-1002", "Conflict")


async def test_same_id_under_two_tenants_is_limited_apart() -> None:
    taken: list[str] = []

    class Limiter:
        async def take(self, key: str) -> float:
            await trio.lowlevel.checkpoint()
            taken.append(key)
            return 0.0

    api = tenants_api("acme-7", "beta-2", limiter=Limiter())
    connection = a_connection()
    for tenant in ("acme-7", "beta-2"):
        await api.apis[tenant].records.connections.insert(connection)
        await api.call("POST", f"{CONNECTIONS}/{connection.id}/test", tenant=tenant)
        await api.get(f"{CONNECTIONS}/{connection.id}/schema", tenant=tenant)
    assert taken == [
        f"tenant:acme-7:{connection.id}",
        f"tenant:acme-7:schema:{connection.id}",
        f"tenant:beta-2:{connection.id}",
        f"tenant:beta-2:schema:{connection.id}",
    ]


async def test_system_routes_need_no_tenant() -> None:
    api = tenants_api()
    for path in ("/health", "/readyz", "/metrics", "/version", "/openapi.json"):
        assert (await api.get(path)).status == 200
    assert (await api.get("/v1/nope")).json["errorCode"] == "route_not_found"
    assert (await api.call("PUT", CONNECTIONS)).json["errorCode"] == "method_not_allowed"
    assert api.gate.asked == []


async def test_every_product_route_is_served_by_its_tenant_or_not_at_all() -> None:
    api = tenants_api()
    services = api.apis["acme-7"].services
    product = [route for route in manager_routes(services) if route.permission is not None]
    assert len(product) > 20
    for route in product:
        path = route.path.replace("{id}", str(a_connection().id))
        await api.call(route.method, path)
        assert api.ran == []
        if route.name != "job_events":
            await api.call(route.method, path, tenant="acme-7")
            assert api.ran.pop() == f"acme-7/{route.name}"


async def test_routes_of_nobody_touch_nothing() -> None:
    services = an_api().services
    nobodys = services_of_no_tenant(
        system=services.system,
        process=services.operations.process,
        ceilings=Limits.defaults(),
        settings=services.settings,
    )
    with pytest.raises(TenantContextRequired):
        await nobodys.connections.list_page(Any)  # type: ignore[arg-type] # it looks at nothing
    with pytest.raises(TenantContextRequired):
        nobodys.now()
    assert nobodys.refuses_host is not None
    with pytest.raises(TenantContextRequired):
        nobodys.refuses_host("10.0.0.1", 5432)


async def test_handlers_of_one_tenant_are_small() -> None:
    """Hundreds of tenants lie in one process: a kilobyte each is nothing, a document each is."""
    services = an_api().services
    kept = [tenant_handlers(services)]
    tracemalloc.start()
    try:
        kept += [tenant_handlers(services) for _ in range(50)]
        gc.collect()
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes / 50 < 40_000


async def test_document_names_what_tenants_are_refused_with() -> None:
    api = tenants_api()
    document = (await api.get("/openapi.json")).json
    operations = {
        each["operationId"]: each for path in document["paths"].values() for each in path.values()
    }
    product = [route for route in manager_routes(an_api().services) if route.permission]
    for route in product:
        described = operations[route.name]
        assert described["security"] == [{"bearer": []}]
        told = {
            status: set(_codes(described["responses"][status]))
            for status in ("401", "403", "404", "429", "500", "503")
        }
        assert told["401"] == IN_THE_TABLE, route.name
        assert told["403"] >= {"0131"}
        assert told["404"] >= {"TENANT_NOT_FOUND"}
        assert told["429"] >= {"tenant_requests_limit"}
        assert told["500"] >= {"TENANT_DB_ERROR"}
        assert told["503"] >= {"SERVICE_UNAVAILABLE"}
    assert "401" not in operations["health"]["responses"]
    alone = (await an_api().get("/openapi.json")).json
    assert "0131" not in str(alone)


def _codes(response: Any) -> list[str]:
    schema = response["content"]["application/json"]["schema"]
    described = next(each for each in schema.get("anyOf", [schema]) if "allOf" in each)
    codes: list[str] = described["properties"]["errorCode"]["enum"]
    return codes


async def test_authorization_comes_before_the_tenant() -> None:
    class Judge:
        relays = False

        def __init__(self, verdict: Verdict) -> None:
            self.verdict = verdict

        async def judge(
            self, token: str | None, permission: Permission, *, trace: Mapping[str, str]
        ) -> Verdict:
            await trio.lowlevel.checkpoint()
            return self.verdict

    refusing = tenants_api(authorizer=Judge(Refused(Refusal.MISSING_TOKEN)))
    answered = await refusing.call("POST", JOBS, {})
    assert (answered.status, answered.raw) == (401, b"Missing Token")
    forbidding = tenants_api(authorizer=Judge(Refused(Refusal.FORBIDDEN)))
    answered = await forbidding.call("POST", JOBS, {}, tenant="a:b")
    assert (answered.status, answered.raw) == (403, b"Forbidden")
    assert refusing.gate.asked == forbidding.gate.asked == []
    granting = tenants_api(authorizer=Judge(Granted("acme/kim")))
    answered = await granting.call("POST", JOBS, {}, tenant="a:b")
    assert (answered.status, answered.json["code"]) == (401, "INVALID_TENANT")
    answered = await granting.call("POST", CONNECTIONS, a_body(), tenant="acme-7", headers=PRODUCT)
    assert answered.status == 201
    [entry] = (await granting.get("/v1/operations/audit", tenant="acme-7")).json["items"]
    assert (entry["action"], entry["actor"]) == ("connection.created", "acme/kim")
