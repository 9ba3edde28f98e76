"""Jobs that wait for a connection hinder no repair of it, and go on as soon as it is repaired."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fetcher.domain.breakers import FAILURES_TO_OPEN, SourceDown, failed
from fetcher.domain.job_store import Claimed
from fetcher.domain.jobs import Job, JobStatus
from fetcher_engine import SourceFailure, Stage
from tests.unit.api.harness import CONNECTIONS, JOBS, START, Api, a_connection, a_job, an_api

CONNECTION = a_connection()
PATH = f"{CONNECTIONS}/{CONNECTION.id}"
REASON = "connection sales_db is down"


async def an_api_with_a_parked_job() -> tuple[Api, Job]:
    """Its connection's breaker is open."""
    api = an_api()
    await api.records.connections.insert(CONNECTION)
    for _ in range(FAILURES_TO_OPEN):
        down = SourceDown(stage="auth", reason="auth")
        await api.records.breakers.change(CONNECTION.id, failed(CONNECTION, down))
    job = a_job(mapped_fields={"sales_db": {"orders": ("id",)}})
    await api.records.jobs.insert(job)
    claim = await api.records.leases.claim(job.id, owner="w", lease_seconds=60)
    assert isinstance(claim, Claimed)
    until = START + timedelta(seconds=300)
    assert await api.records.leases.park(claim.lease, until=until, reason=REASON)
    return api, job


async def due_jobs(api: Api) -> list[Job]:
    claims = await api.records.dispatch.claim_due(limit=5, lease_seconds=15)
    return [claim.job for claim in claims]


async def test_a_parked_job_shows_what_it_waits_for() -> None:
    api, job = await an_api_with_a_parked_job()
    shown = (await api.get(f"{JOBS}/{job.id}")).json
    assert (shown["status"], shown["waitingReason"]) == ("pending", REASON)
    assert [attempt["errorCode"] for attempt in shown["attempts"]] == ["parked"]
    assert await due_jobs(api) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PATCH", PATH, {"password": "the right one"}, 200),
        ("PATCH", PATH, {"configName": "sales_2"}, 200),
        ("DELETE", PATH, None, 204),
        ("POST", f"{PATH}/test", None, 200),
    ],
    ids=["new password", "new name", "deleted", "tested"],
)
async def test_what_repairs_a_connection_closes_its_breaker_and_makes_its_jobs_due(
    method: str, path: str, body: object, status: int
) -> None:
    api, job = await an_api_with_a_parked_job()
    assert (await api.call(method, path, body)).status == status
    assert await api.records.breakers.find([CONNECTION.id]) == {}
    assert api.hints == [job.id]
    assert [each.id for each in await due_jobs(api)] == [job.id]


async def test_a_test_that_fails_leaves_everything_as_it_is() -> None:
    api, _ = await an_api_with_a_parked_job()
    api.engines.source("sales_db").test_error = SourceFailure(Stage.AUTH, "auth")
    answered = await api.call("POST", f"{PATH}/test")
    assert (answered.status, answered.json["errorCode"]) == (500, "engine_connect")
    assert await api.records.breakers.count_open() == 1
    assert api.hints == []


async def test_a_refused_change_leaves_everything_as_it_is() -> None:
    api, _ = await an_api_with_a_parked_job()
    assert (await api.call("PATCH", PATH, {"port": 0})).status == 400
    running = replace(a_job(), mapped_fields={"sales_db": {"orders": ("id",)}}, request_hash="h2")
    await api.records.jobs.insert(running)
    assert (await api.call("PATCH", PATH, {"password": "new"})).status == 409
    assert await api.records.breakers.count_open() == 1
    assert api.hints == []


async def test_a_second_wrong_password_can_be_mended_while_the_woken_job_waits_for_a_worker() -> (
    None
):
    api, job = await an_api_with_a_parked_job()
    assert (await api.call("PATCH", PATH, {"password": "wrong again"})).status == 200
    assert (await api.call("PATCH", PATH, {"password": "right"})).status == 200
    cancelled = await api.call("POST", f"{JOBS}/{job.id}/cancel")
    assert (cancelled.status, cancelled.json["status"]) == (200, JobStatus.CANCELLED)
