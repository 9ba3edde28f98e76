"""POST /v1/fetcher/{id}/cancel and /rerun (design section 4)."""

import json
from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from fetcher.domain.ids import JobId, new_job_id
from fetcher.domain.jobs import AttemptRecord, JobStatus, ResultFacts, TableProgress
from tests.unit.api.asgi_client import a_scope, exchange
from tests.unit.api.harness import (
    JOBS,
    START,
    Answered,
    Api,
    a_connection,
    a_job,
    a_request,
    an_api,
    an_api_with,
    end,
    stored,
)
from tests.unit.api.results import put


async def cancel(api: Api, job_id: JobId) -> Answered:
    return await api.call("POST", f"{JOBS}/{job_id}/cancel")


async def rerun(api: Api, job_id: JobId) -> Answered:
    return await api.call("POST", f"{JOBS}/{job_id}/rerun")


async def test_pending_job_is_cancelled_at_once_with_its_event() -> None:
    api = an_api()
    job = a_job(metadata={"source": "acme-reports", "correlationId": "r-1"})
    await api.records.jobs.insert(job)
    answered = await cancel(api, job.id)
    assert (answered.status, answered.json["status"]) == (200, "cancelled")
    assert answered.json["jobId"] == str(job.id)
    shown = (await api.get(f"{JOBS}/{job.id}")).json
    assert shown["error"] == {"message": "job cancelled", "code": "cancelled"}
    assert "completedAt" in shown
    [claim] = await api.records.events.claim_due(limit=5, lease_seconds=15)
    assert claim.mark.status == "failed"
    payload = json.loads(claim.mark.payload)
    assert payload["jobId"] == str(job.id)
    assert payload["metadata"]["correlationId"] == "r-1"
    assert payload["metadata"]["error"] == {"message": "job cancelled", "code": "cancelled"}
    assert api.event_hints == [job.id]


async def test_cancelling_again_is_no_error() -> None:
    api = an_api()
    job = a_job()
    await api.records.jobs.insert(job)
    first, second = await cancel(api, job.id), await cancel(api, job.id)
    assert (first.status, second.status) == (200, 200)
    assert first.json == second.json


async def test_running_job_is_asked_to_stop() -> None:
    api = an_api()
    job = a_job()
    await api.records.jobs.insert(job)
    await api.records.leases.claim(job.id, owner="w", lease_seconds=60)
    answered = await cancel(api, job.id)
    assert (answered.status, answered.json["status"]) == (202, "processing")
    shown = (await api.get(f"{JOBS}/{job.id}")).json
    assert "cancelRequestedAt" in shown
    assert (shown["status"], len(shown["attempts"])) == ("processing", 1)
    assert shown["attempts"][0]["worker"] == "w"
    assert api.event_hints == []
    assert (await cancel(api, job.id)).status == 202


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED])
async def test_ended_job_cannot_be_cancelled(status: JobStatus) -> None:
    api = an_api()
    job = a_job()
    await api.records.jobs.insert(job)
    await end(api, job, status)
    answered = await cancel(api, job.id)
    assert answered.problem == (409, "FET-1022", "Job Ended")
    assert answered.json["status"] == status.value


async def test_unknown_job_and_bad_id() -> None:
    api = an_api()
    for operation in (cancel, rerun):
        unknown = await operation(api, new_job_id())
        assert unknown.problem == (404, "FET-1001", "Entity Not Found")
        bad = await operation(api, "nope")  # type: ignore[arg-type] # no id
        assert bad.problem == (400, "FET-0404", "Invalid Path Parameter")


async def test_objects_of_earlier_attempts_are_left_to_the_reaper() -> None:
    api = an_api(key_prefix="team/")
    job = await put(api, a_job(attempt=2, takeovers=2))
    assert (await cancel(api, job.id)).status == 200
    keys = (f"team/external-data/{job.id}.json", f"team/external-data/{job.id}.2.json")
    [(job_id, noted)] = await api.records.cleanup.find_due(limit=5)
    assert (job_id, sorted(noted)) == (job.id, sorted(keys))


async def test_client_that_goes_away_leaves_the_cancel_whole(autojump_clock: MockClock) -> None:
    api = an_api()
    job = await put(api, a_job(attempt=1))
    jobs = api.records.jobs
    asking = jobs.request_cancel

    async def slow(*arguments: object) -> object:
        await trio.sleep(5)
        return await asking(*arguments)  # type: ignore[arg-type] # passed on

    jobs.request_cancel = slow  # type: ignore[method-assign,assignment] # a slow store
    async with exchange(api.app, a_scope("POST", f"{JOBS}/{job.id}/cancel".encode())) as talk:
        await talk.body(b"")
        await trio.sleep(1)
        await talk.disconnect()
        await trio.sleep(10)
    assert api.event_hints == [job.id]
    assert len(await api.records.cleanup.find_due(limit=5)) == 1


async def test_store_that_does_not_answer_is_503(autojump_clock: MockClock) -> None:
    api = an_api()
    job = await put(api, a_job())

    async def never(*_: object) -> None:
        await trio.sleep_forever()

    api.records.jobs.request_cancel = never  # type: ignore[method-assign,assignment] # it hangs
    assert (await cancel(api, job.id)).status == 503


@pytest.mark.parametrize("status", [JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED])
async def test_ended_job_runs_again_as_a_new_one(status: JobStatus) -> None:
    api = await an_api_with()
    request = a_request(
        mappedFields={"sales_db": {"orders": ["id", "id", "total"]}},
        filters={"sales_db": {"orders": {"total": {"gte": [10]}}}},
        options={"values": "natural"},
    )
    first = await stored(api, await api.ask(request))
    await end(api, first, status)
    answered = await rerun(api, first.id)
    assert answered.status == 202
    assert answered.headers["Location"] == f"{JOBS}/{answered.json['jobId']}"
    again = await stored(api, answered)
    assert again.id != first.id
    for name in ("mapped_fields", "filters", "metadata", "options", "request_hash"):
        assert getattr(again, name) == getattr(first, name)
    assert (again.status, again.attempt, again.completed_at) == (JobStatus.PENDING, 0, None)
    assert again.request_id == answered.headers["X-Request-Id"]
    assert api.hints == [first.id, again.id]


@pytest.mark.parametrize("status", [JobStatus.PENDING, JobStatus.PROCESSING])
async def test_job_that_has_not_ended_cannot_run_again(status: JobStatus) -> None:
    api = await an_api_with()
    job = await put(api, a_job(status=status))
    answered = await rerun(api, job.id)
    assert answered.problem == (409, "FET-1023", "Job Not Ended")
    assert answered.json["status"] == status.value


async def test_identical_job_that_runs_is_the_answer() -> None:
    api = await an_api_with()
    first = await stored(api, await api.ask(a_request()))
    await end(api, first, JobStatus.FAILED)
    second = await stored(api, await rerun(api, first.id))
    again = await rerun(api, first.id)
    assert (again.status, again.json["jobId"]) == (200, str(second.id))


async def test_product_and_connection_are_judged_anew() -> None:
    api = await an_api_with()
    first = await stored(api, await api.ask(a_request()))
    await end(api, first, JobStatus.COMPLETED)
    connections = api.records.connections._state.connections  # type: ignore[attr-defined] # memory
    [connection_id] = connections
    connections[connection_id] = a_connection(id=connection_id, product_name="billing")
    assert (await rerun(api, first.id)).problem == (400, "FET-1016", "Product Mismatch")
    connections.clear()
    assert (await rerun(api, first.id)).problem == (400, "FET-1020", "No Connections Found")


async def test_connection_that_is_down_refuses_the_rerun(autojump_clock: MockClock) -> None:
    api = await an_api_with()
    first = await stored(api, await api.ask(a_request()))
    await end(api, first, JobStatus.FAILED)
    await trio.sleep(120)
    api.engines.source("sales_db").test_error = OSError("refused")
    assert (await rerun(api, first.id)).problem == (400, "FET-1040", "Connection Down")


async def test_reserved_members_of_an_old_record_are_not_taken_over() -> None:
    api = await an_api_with()
    metadata = {"source": "acme-reports", "error": "old", "terminalEventStatus": "failed"}
    job = await put(api, a_job(status=JobStatus.FAILED, completed_at=START, metadata=metadata))
    again = await stored(api, await rerun(api, job.id))
    assert again.metadata == {"source": "acme-reports"}


async def test_job_read_shows_all_that_is_known() -> None:
    api = an_api()
    facts = ResultFacts(path="p", hmac="h", size_bytes=12, row_count=0, key_version="1")
    job = await put(
        api,
        a_job(
            status=JobStatus.PENDING, waiting_reason="breaker_open", due_at=START, started_at=START
        ),
    )
    shown = (await api.get(f"{JOBS}/{job.id}")).json
    assert (shown["waitingReason"], shown["startedAt"][:10]) == ("breaker_open", "2026-03-14")
    ended = replace(
        job, status=JobStatus.COMPLETED, completed_at=START, result=facts, result_deleted_at=START
    )
    api.records.jobs._state.jobs[job.id].job = ended  # type: ignore[attr-defined] # memory store
    shown = (await api.get(f"{JOBS}/{job.id}")).json
    assert (shown["sizeBytes"], shown["rowCount"]) == (12, 0)
    assert shown["resultDeletedAt"] == "2026-03-14T09:26:53.123456Z"
    assert "waitingReason" not in shown


async def test_progress_and_attempts_are_shown() -> None:
    api = an_api()
    job = await put(
        api,
        a_job(
            status=JobStatus.PROCESSING,
            progress={"sales_db": {"orders": TableProgress(rows=5, bytes=70)}},
            attempts=(
                AttemptRecord(
                    attempt=1, owner="w1", started_at=START, ended_at=START, code="released"
                ),
                AttemptRecord(attempt=2, owner="w2", started_at=START),
            ),
        ),
    )
    shown = (await api.get(f"{JOBS}/{job.id}")).json
    assert shown["progress"] == {"sales_db": {"orders": {"rows": 5, "bytes": 70}}}
    at = "2026-03-14T09:26:53.123456Z"
    assert shown["attempts"] == [
        {"attempt": 1, "startedAt": at, "endedAt": at, "worker": "w1", "errorCode": "released"},
        {"attempt": 2, "startedAt": at, "worker": "w2"},
    ]
