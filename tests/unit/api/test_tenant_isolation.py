"""No operation of one tenant's shows or touches what is another's: configuration 11.3."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from fetcher.api.application import manager_routes
from fetcher.api.problems import problem_of
from fetcher.api.route_finder import RouteFinder
from fetcher.domain.jobs import FailureFacts, JobStatus
from fetcher.domain.json_text import parse
from fetcher.domain.tenants import (
    TenantContextRequired,
    TenantDenied,
    TenantsLeftAlone,
    TenantsUnavailable,
    TenantUnknown,
)
from tests.unit.api.asgi_client import a_scope, answer_of, exchange
from tests.unit.api.harness import (
    CONNECTIONS,
    JOBS,
    PRODUCT,
    Api,
    a_body,
    a_connection,
    a_job,
    a_request,
    an_api,
    end,
)
from tests.unit.api.tenant_harness import TenantsApi, bearer, tenants_api

MARK = "kestrel"
BODIES: Mapping[str, object] = {
    "create_connection": a_body(configName="other_db"),
    "patch_connection": {"host": "pg2.acme.test"},
    "validate_schema": {"mappedFields": {"kestrel_db": {"orders": ["id"]}}},
    "create_job": a_request(mappedFields={"kestrel_db": {"orders": ["id"]}}),
    "validate_job": a_request(mappedFields={"kestrel_db": {"orders": ["id"]}}),
    "redrive_dead_letters": {},
}


async def marked(api: TenantsApi) -> tuple[str, str]:
    """Everything of beta-2 bears the mark; the ids of a connection and a job of it."""
    beta = api.apis["beta-2"]
    connection = a_connection(config_name=f"{MARK}_db", host=f"{MARK}.test", username=MARK)
    await beta.records.connections.insert(connection)
    job = a_job(
        metadata={"source": MARK},
        mapped_fields={f"{MARK}_db": {"orders": ("id",)}},
        failure=FailureFacts(message=f"{MARK} is down", code="connect", source=f"{MARK}_db"),
    )
    await beta.records.jobs.insert(job)
    await end(beta, job, JobStatus.FAILED)
    waiting = a_job(metadata={"source": MARK}, request_hash="cd" * 32)
    await beta.records.jobs.insert(waiting)
    headers = {"X-Product-Name": MARK}
    created = await api.call(
        "POST", CONNECTIONS, a_body(configName=f"{MARK}_2"), tenant="beta-2", headers=headers
    )
    assert created.status == 201
    return str(connection.id), str(job.id)


async def test_no_look_shows_anything_of_another_tenant() -> None:
    api = tenants_api("acme-7", "beta-2")
    await marked(api)
    looks = [
        route.path
        for route in manager_routes(an_api().services)
        if route.method == "GET" and "{id}" not in route.path and route.name != "job_events"
    ]
    shown: dict[str, bool] = {}
    for path in looks:
        assert MARK not in (await api.get(path, tenant="acme-7")).raw.decode().lower(), path
        shown[path] = MARK in (await api.get(path, tenant="beta-2")).raw.decode().lower()
    assert {path for path, is_shown in shown.items() if is_shown} == {
        CONNECTIONS,
        JOBS,
        "/v1/operations/audit",
        "/v1/operations/jobs",
    }


async def test_no_operation_reaches_another_tenant_s_records() -> None:
    api = tenants_api("acme-7", "beta-2")
    connection_id, job_id = await marked(api)
    before = await _all_of(api.apis["beta-2"])
    for route in manager_routes(an_api().services):
        if route.permission is None or route.name == "job_events":
            continue
        for each in (connection_id, job_id):
            answered = await api.call(
                route.method,
                route.path.replace("{id}", each),
                BODIES.get(route.name),
                tenant="acme-7",
                headers=PRODUCT,
            )
            if "{id}" in route.path:
                assert (answered.status, answered.json["code"]) == (404, "FET-1001"), route.name
            assert MARK not in answered.raw.decode().replace(f"{MARK}_db", ""), route.name
    assert await _all_of(api.apis["beta-2"]) == before
    created = await api.call("POST", JOBS, BODIES["create_job"], tenant="acme-7", headers=PRODUCT)
    assert created.problem == (400, "FET-1020", "No Connections Found")


async def _all_of(api: Api) -> list[bytes]:
    paths = (CONNECTIONS, JOBS, "/v1/operations/audit", "/v1/operations/jobs")
    return [(await api.get(path)).raw for path in paths]


async def test_event_stream_tells_of_its_own_tenant_s_jobs_alone(autojump_clock: MockClock) -> None:
    api = tenants_api("acme-7", "beta-2")
    headers = [(b"authorization", bearer("acme-7")["Authorization"].encode())]
    scope = a_scope("GET", f"{JOBS}/events".encode(), headers=headers)
    async with exchange(api.app, scope) as stream:
        await stream.body(b"")
        assert await stream.next() == b"retry: 1000\n\n"
        for tenant in ("beta-2", "acme-7"):
            job = a_job(metadata={"source": tenant})
            await api.apis[tenant].records.jobs.insert(replace(job, status=JobStatus.PENDING))
            await end(api.apis[tenant], job, JobStatus.COMPLETED)
            await trio.sleep(2)
        event = await stream.next()
        assert b'"source":"acme-7"' in event


@pytest.mark.parametrize("header", ["X-Tenant-ID", "X-Organization-Id", "X-Tenant-Id"])
async def test_no_header_opens_another_tenant(header: str) -> None:
    api = tenants_api("acme-7", "beta-2")
    connection_id, _ = await marked(api)
    path = f"{CONNECTIONS}/{connection_id}"
    answered = await api.get(path, tenant="acme-7", headers={header: "beta-2"})
    assert answered.problem == (404, "FET-1001", "Entity Not Found")


async def test_operation_that_is_reached_without_a_tenant_fails_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = tenants_api()
    monkeypatch.setattr(RouteFinder, "product_route", lambda *_: None)
    for route in manager_routes(an_api().services):
        if route.permission is None:
            continue
        path = route.path.replace("{id}", str(a_connection().id))
        authorization = bearer("acme-7")["Authorization"].encode()
        scope = a_scope(route.method, path.encode(), headers=[(b"authorization", authorization)])
        talk, raw = await answer_of(api.app, scope)
        body = parse(raw)
        assert isinstance(body, dict)
        assert (talk.status, body["code"]) == (400, "FET-1080"), route.name
    assert (api.ran, api.gate.asked) == ([], [])


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (TenantContextRequired(), (400, "FET-1080", "Tenant Context Required")),
        (TenantUnknown("acme-9"), (404, "FET-1081", "Tenant Not Found")),
        (TenantsLeftAlone(), (503, "FET-1082", "Tenant Service Unavailable")),
        (TenantsUnavailable("timeout"), (503, "FET-0003", "Service Unavailable")),
        (TenantDenied(), (500, "FET-0002", "Internal Server Error")),
    ],
)
def test_failures_of_a_tenant_while_an_operation_runs(
    failure: Exception, told: tuple[int, str, str]
) -> None:
    problem = problem_of(failure)
    assert (problem.status, problem.body["code"], problem.body["title"]) == told
    assert "acme" not in str(problem.body)
